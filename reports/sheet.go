package reports

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"misroute/reports/table"
)

// sheet is a finished report of words and tables, the same for every medium. Comparisons and trends
// are made into one and then drawn; nothing is computed on the way.
type sheet struct {
	title, eyebrow string
	lead, rest     string // the headline: what a page makes bold, and what follows
	fine           bool   // the headline is good news
	lede           []string
	do, doubt      []string
	cards          []card
	sections       []sheetSection
	facts          []fact
}

// sheetSection is a heading with what belongs under it.
type sheetSection struct {
	id, nav, heading string
	figure           template.HTML // on pages alone
	caption          string        // of the figure
	key              []keyEntry
	tables           []*table.Table
	notes            []string
	pageOnly         bool // too long for a terminal or a chat message
	folded           string
}

// headline is lead and rest as one sentence.
func (s *sheet) headline() string { return strings.TrimSpace(s.lead + " " + s.rest) }

// terminal draws the sheet for a terminal.
func (s *sheet) terminal(out io.Writer, o TermOptions) error {
	var b strings.Builder
	o.paragraph(&b, "", "", s.headline(), "strong")
	for _, line := range s.lede {
		o.paragraph(&b, "", "", line, "")
	}
	for _, line := range s.do {
		o.paragraph(&b, "> ", "  ", line, "good")
	}
	for _, line := range s.doubt {
		o.paragraph(&b, "? ", "  ", line, "few")
	}
	text := table.TextOptions{Indent: 2, Width: o.width()}
	if o.Color {
		text.Style = o.style
	}
	for _, x := range s.sections {
		if x.pageOnly {
			continue
		}
		b.WriteByte('\n')
		o.paragraph(&b, "", "", x.heading, "strong")
		for _, t := range x.tables {
			if err := t.Text(&b, text); err != nil {
				return err
			}
		}
		for _, n := range x.notes {
			o.paragraph(&b, "  ", "  ", n, "few")
		}
	}
	b.WriteByte('\n')
	for _, f := range s.facts {
		o.paragraph(&b, f.Name+": ", "  ", f.Value, "few")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// markdown draws the sheet for a pull request, a chat message or a mail. Sections with a folded
// title open on a click where the medium knows details.
func (s *sheet) markdown(out io.Writer) error {
	var b strings.Builder
	esc := table.EscapeMarkdown
	fmt.Fprintf(&b, "**%s** %s\n", esc(s.lead), esc(s.rest))
	for _, line := range s.lede {
		fmt.Fprintf(&b, "\n%s\n", esc(line))
	}
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n**%s**\n\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "- %s\n", esc(line))
		}
	}
	list("Do this", s.do)
	list("In doubt", s.doubt)
	for _, x := range s.sections {
		if x.pageOnly {
			continue
		}
		if x.folded != "" {
			fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n", esc(x.folded))
		}
		fmt.Fprintf(&b, "\n### %s\n", esc(x.heading))
		for _, t := range x.tables {
			b.WriteByte('\n')
			if err := t.Markdown(&b); err != nil {
				return err
			}
		}
		for _, n := range x.notes {
			fmt.Fprintf(&b, "\n%s\n", esc(n))
		}
		if x.folded != "" {
			b.WriteString("\n</details>\n")
		}
	}
	b.WriteString("\n### Run facts\n\n")
	for _, f := range s.facts {
		fmt.Fprintf(&b, "- %s: %s\n", esc(f.Name), esc(f.Value))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// html draws the sheet as one page that asks the network for nothing.
func (s *sheet) html(out io.Writer) error {
	p := &page{
		Title: s.title, Eyebrow: s.eyebrow, Lead: s.lead, Rest: s.rest, Fine: s.fine,
		Lede: s.lede, Do: s.do, Doubt: s.doubt, Cards: s.cards, Facts: s.facts,
	}
	for _, x := range s.sections {
		y := section{ID: x.id, Nav: x.nav, Heading: x.heading}
		if x.figure != "" {
			y.Parts = append(y.Parts, part{Figure: x.figure, Caption: x.caption, Key: x.key})
		}
		for _, t := range x.tables {
			y.Parts = append(y.Parts, part{Table: t.Markup()})
		}
		y.Parts = append(y.Parts, part{Notes: x.notes})
		p.Sections = append(p.Sections, y)
	}
	return p.write(out)
}

// writeJSON writes the numbers of a report.
func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", " ")
	return e.Encode(v)
}
