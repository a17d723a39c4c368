// Package table turns finished cells into aligned text for a terminal, CSV, Markdown and HTML.
//
// One [Table] is filled once and drawn four times, so that a number cannot differ between the
// terminal, the page and the chat message. Cells hold words written by strangers (queue names,
// file names, subjects): every writer escapes for its own medium, and none of them lets a control
// character or a change of reading direction through.
package table

import (
	"html/template"
	"strings"
)

// Align is the side a column's cells lean on.
type Align int

// Text leans left, numbers lean right.
const (
	Left Align = iota
	Right
)

// Format names the media a column appears in.
type Format int

// Media; they combine with |. The zero value of Column.In means all of them.
const (
	InText Format = 1 << iota
	InCSV
	InMarkdown
	InHTML
)

// Column heads a column.
type Column struct {
	Head  string
	Align Align
	Max   int    // most display cells in text, the rest becomes …; 0: no limit of its own
	In    Format // 0: everywhere
}

// Cell is one finished value.
type Cell struct {
	Text  string
	Note  string        // said smaller, after Text
	Class string        // class in HTML, style in text; never shown
	Tag   string        // class of a chip around Text, in HTML only
	Mark  template.HTML // picture of the value, in HTML only, before Text; made by us, never from mail
}

// Row is one line of a table. A row with a Rule has no cells: it is a line drawn across, with words.
type Row struct {
	Cells []Cell
	Class string
	Rule  string
}

// Table is a heading, columns and rows. The first column names the row.
type Table struct {
	Caption string // what the table shows: its accessible name in HTML, not drawn elsewhere
	Columns []Column
	Rows    []Row
}

// Add appends a row of plain cells.
func (t *Table) Add(cells ...string) {
	row := Row{Cells: make([]Cell, len(cells))}
	for i, c := range cells {
		row.Cells[i].Text = c
	}
	t.Rows = append(t.Rows, row)
}

// AddRow appends a row of cells under a class.
func (t *Table) AddRow(class string, cells ...Cell) {
	t.Rows = append(t.Rows, Row{Cells: cells, Class: class})
}

// AddRule appends a line drawn across all columns.
func (t *Table) AddRule(words, class string) {
	t.Rows = append(t.Rows, Row{Rule: words, Class: class})
}

// shown gives the indexes of the columns that appear in a medium.
func (t *Table) shown(f Format) []int {
	var at []int
	for i, c := range t.Columns {
		if c.In == 0 || c.In&f != 0 {
			at = append(at, i)
		}
	}
	return at
}

// cell gives a row's cell of a column, empty where the row is short.
func (r *Row) cell(i int) Cell {
	if i < len(r.Cells) {
		return r.Cells[i]
	}
	return Cell{}
}

// plain is a cell in one run of text.
func (c Cell) plain() string {
	switch {
	case c.Note == "":
		return c.Text
	case c.Text == "":
		return c.Note
	}
	return c.Text + " " + c.Note
}

// Clean makes a stranger's words safe to show on one line: invalid bytes, control characters
// (among them ESC, which drives terminals, and line ends) and the invisible characters that turn
// the reading direction around become U+FFFD, so that two names that differ still look different.
func Clean(s string) string {
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
			r == 0x200e, r == 0x200f, r == 0x061c,
			r >= 0xe0000 && r <= 0xe007f, r == 0xfeff:
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
