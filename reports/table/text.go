package table

import (
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Width is the number of terminal columns a string takes: wide East Asian characters and emoji
// take two, combining marks none.
func Width(s string) int { return displaywidth.String(s) }

// Fit cuts a string to at most width terminal columns, with … where something is missing.
func Fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return displaywidth.TruncateString(s, width, "…")
}

// Pad fills a string with spaces up to width terminal columns; a longer one is left as it is.
func Pad(s string, width int, a Align) string {
	gap := width - Width(s)
	if gap <= 0 {
		return s
	}
	if a == Right {
		return strings.Repeat(" ", gap) + s
	}
	return s + strings.Repeat(" ", gap)
}

// TextOptions of the terminal form.
type TextOptions struct {
	Indent int
	Gap    int                             // spaces between columns; 0: two
	Width  int                             // of the terminal; the widest columns of words give way; 0: no limit
	Style  func(class, text string) string // colours a cell; nil: none
}

// minWords is the narrowest a column of words becomes before a table is allowed to be too wide:
// below that a queue name says nothing.
const minWords = 8

// Text writes the table in aligned columns, without trailing spaces.
func (t *Table) Text(w io.Writer, o TextOptions) error {
	if o.Gap == 0 {
		o.Gap = 2
	}
	at := t.shown(InText)
	widths := t.textWidths(at, o)
	var b strings.Builder
	head := Row{Cells: make([]Cell, len(t.Columns))}
	for i, c := range t.Columns {
		head.Cells[i] = Cell{Text: c.Head, Class: "head"}
	}
	t.line(&b, &head, at, widths, o)
	for i := range t.Rows {
		if t.Rows[i].Rule != "" {
			rule(&b, &t.Rows[i], widths, o)
			continue
		}
		t.line(&b, &t.Rows[i], at, widths, o)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// textWidths gives each shown column the width of its widest cell, then takes from the widest
// column of words until the whole fits.
func (t *Table) textWidths(at []int, o TextOptions) []int {
	widths := make([]int, len(at))
	total := o.Indent + o.Gap*max(0, len(at)-1)
	for k, i := range at {
		c := t.Columns[i]
		widths[k] = Width(Clean(c.Head))
		for r := range t.Rows {
			if t.Rows[r].Rule == "" {
				cell := t.Rows[r].cell(i)
				widths[k] = max(widths[k], Width(Clean(cell.plain())))
			}
		}
		if c.Max > 0 {
			widths[k] = min(widths[k], max(c.Max, Width(c.Head)))
		}
		total += widths[k]
	}
	for o.Width > 0 && total > o.Width {
		widest := -1
		for k, i := range at {
			if t.Columns[i].Align == Left && widths[k] > minWords && (widest < 0 || widths[k] > widths[widest]) {
				widest = k
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

func (t *Table) line(b *strings.Builder, r *Row, at, widths []int, o TextOptions) {
	var line strings.Builder
	pending := o.Indent // spaces owed: written only before something, so that no line ends in blanks
	for k, i := range at {
		cell := r.cell(i)
		text := Fit(Clean(cell.plain()), widths[k])
		fill := widths[k] - Width(text)
		if t.Columns[i].Align == Right {
			pending += fill
		}
		if text != "" {
			line.WriteString(strings.Repeat(" ", pending))
			pending = 0
			class := cell.Class
			if class == "" {
				class = r.Class
			}
			if o.Style != nil && class != "" {
				text = o.Style(class, text)
			}
			line.WriteString(text)
		}
		if t.Columns[i].Align != Right {
			pending += fill
		}
		pending += o.Gap
	}
	b.WriteString(line.String())
	b.WriteByte('\n')
}

// rule draws "---- words ----" as wide as the table.
func rule(b *strings.Builder, r *Row, widths []int, o TextOptions) {
	total := o.Gap * max(0, len(widths)-1)
	for _, w := range widths {
		total += w
	}
	words := " " + Clean(r.Rule) + " "
	left := max(3, (total-Width(words))/2)
	right := max(3, total-Width(words)-left)
	text := strings.Repeat("-", left) + words + strings.Repeat("-", right)
	if o.Style != nil && r.Class != "" {
		text = o.Style(r.Class, text)
	}
	b.WriteString(strings.Repeat(" ", o.Indent))
	b.WriteString(text)
	b.WriteByte('\n')
}
