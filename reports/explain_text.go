package reports

import (
	"fmt"
	"io"
	"strings"

	"misroute/reports/table"
)

// longOnTerminal is how many bytes of one passage a terminal shows; beyond it the middle is skipped.
const longOnTerminal = 800

// Terminal writes the report for a terminal. It shows the text: somebody asked for this one message.
func (x *Explain) Terminal(out io.Writer, o TermOptions) error {
	var b strings.Builder
	o.paragraph(&b, "", "", x.Headline, "strong")
	for _, s := range x.Findings {
		o.paragraph(&b, "", "", s, "")
	}
	for _, s := range x.Doubt {
		o.paragraph(&b, "? ", "  ", s, "few")
	}
	x.mailText(&b, o)
	style := table.TextOptions{Indent: 2, Width: o.width()}
	if o.Color {
		style.Style = o.style
	}
	steps := x.blocks(true)
	for _, s := range steps {
		b.WriteByte('\n')
		o.paragraph(&b, "", "", s.heading, "strong")
		for _, t := range s.tables {
			if err := t.Text(&b, style); err != nil {
				return err
			}
		}
		if s.heat != nil {
			x.heatText(&b, s.heat, o)
		}
		for _, n := range s.notes {
			o.paragraph(&b, "  ", "  ", n, "few")
		}
	}
	b.WriteByte('\n')
	for _, f := range x.explainFacts() {
		o.paragraph(&b, f.Name+": ", "  ", f.Value, "few")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// block is a heading with tables, in the media that have no pictures.
type block struct {
	heading string
	tables  []*table.Table
	heat    *HeatMap
	notes   []string
}

// blocks are what stands under the message, in the page's order.
func (x *Explain) blocks(text bool) []block {
	scores := block{heading: x.scoreHeading(), tables: []*table.Table{x.scoreTable()}}
	list := []block{scores}
	if len(x.Windows) > 1 {
		list = append(list, block{heading: "Window by window, each read alone", tables: []*table.Table{x.windowTable()}})
	}
	list = append(list, block{heading: x.depthHeading(), tables: []*table.Table{x.depthTable()}, notes: []string{x.depthNote()}})
	if len(x.Sentences) > 0 {
		list = append(list, block{heading: x.sentenceHeading(), tables: []*table.Table{x.sentenceTable(text)}})
	}
	if x.Words != nil && len(x.Words.Words) > 0 {
		list = append(list, block{heading: "What words said for " + x.Words.For + " against " + x.Words.Against, tables: []*table.Table{x.shareTable(text, 16)}, notes: []string{x.sayShares()}})
	}
	if x.Attention == nil {
		return list
	}
	for i := range x.Attention.Maps {
		m := &x.Attention.Maps[i]
		heading := "Attention, " + m.name()
		if i == 1 {
			heading += ", the most focused one"
		}
		list = append(list, block{heading: heading, tables: []*table.Table{x.firstTable(m, text, 10)}, heat: m,
			notes: []string{fmt.Sprintf("Outside each row's ten strongest tokens: %s; of the row of %s: %s.", percent(m.Outside), x.firstName(), percent(m.FirstOutside))}})
	}
	list = append(list, block{heading: "Share of attention outside each row's ten strongest", notes: []string{x.sayNoise(), notProof}})
	if x.Attention.Heads <= 8 {
		list[len(list)-1].tables = []*table.Table{x.outsideTable()}
	}
	return list
}

// mailText draws the text with a gutter: | read, : not read, > the sentence that decides.
func (x *Explain) mailText(b *strings.Builder, o TermOptions) {
	b.WriteByte('\n')
	o.paragraph(b, "", "", "The message (| read, : not read, > the sentence that decides)", "strong")
	zone, lost := "", false
	for _, p := range x.passages {
		if p.lost != lost {
			words := " " + x.cutWords(p) + " "
			fill := max(6, o.width()-4-table.Width(words))
			b.WriteString("  " + o.style("cutrow", strings.Repeat("-", fill/2)+words+strings.Repeat("-", fill-fill/2)) + "\n")
			lost = p.lost
		}
		if p.zone != zone {
			b.WriteString("  " + o.style("head", "["+zoneName(p.zone)+"]") + "\n")
			zone = p.zone
		}
		gutter, class := "| ", ""
		switch {
		case p.decisive:
			gutter, class = "> ", "hot"
		case p.lost:
			gutter, class = ": ", "few"
		}
		x.passageText(b, o, p, gutter, class)
	}
}

func (x *Explain) passageText(b *strings.Builder, o TermOptions, p passage, gutter, class string) {
	text := strings.Trim(string(x.e.Text[p.from:p.to]), " \r\n")
	if text == "" {
		return
	}
	write := func(s string) {
		for _, line := range strings.Split(cleanLines(s), "\n") {
			if strings.TrimSpace(line) == "" {
				b.WriteString("  " + strings.TrimRight(gutter, " ") + "\n")
				continue
			}
			o.paragraph(b, "  "+gutter, "  "+gutter, line, class)
		}
	}
	if len(text) <= longOnTerminal {
		write(text)
		return
	}
	head, tail := headOf(text, longOnTerminal/2), tailOf(text, longOnTerminal/2)
	write(head)
	at := p.from + strings.Index(string(x.e.Text[p.from:p.to]), text)
	b.WriteString("  " + o.style("few", fmt.Sprintf("%s[ … %s … ]", gutter, plural(x.e.tokensIn(at+len(head), at+len(text)-len(tail)), "token", "tokens"))) + "\n")
	write(tail)
}

// shades of a terminal's heat map, from nothing to the darkest.
var shades = []string{"  ", "░░", "▒▒", "▓▓", "██"}

// heatText draws a map with a letter for each column, which also stands at its row.
func (x *Explain) heatText(b *strings.Builder, m *HeatMap, o TermOptions) {
	const label = 12
	pick := m.pick(min(26, (o.width()-label-14)/2))
	top := max(m.top(), 1e-12)
	b.WriteByte('\n')
	b.WriteString(strings.Repeat(" ", label+5))
	for k := range pick {
		fmt.Fprintf(b, "%-2c", 'a'+k)
	}
	b.WriteString(" most\n")
	for k, i := range pick {
		word := table.Fit(x.wordLabel(x.e.Attention.Positions, m.Words[i].at, true), label)
		var line strings.Builder
		for _, j := range pick {
			line.WriteString(shades[shadeOf(float64(m.Grid[i][j]), top)])
		}
		most := 0.0
		for _, v := range m.Grid[i] {
			most = max(most, float64(v))
		}
		fmt.Fprintf(b, "  %s %c %s %3.0f %%\n", table.Pad(word, label, table.Right), 'a'+k, line.String(), 100*most)
	}
	fmt.Fprintf(b, "%s░ from %s  ▒ from %s  ▓ from %s  █ from %s\n", strings.Repeat(" ", label+5),
		percent(Number(shadeLimits[0]*top)), percent(Number(shadeLimits[1]*top)), percent(Number(shadeLimits[2]*top)), percent(Number(shadeLimits[3]*top)))
}

// shadeLimits are fifths of the square root, which the page's shades go with, in shares of the largest.
var shadeLimits = [4]float64{0.04, 0.16, 0.36, 0.64}

// shadeOf chooses a shade.
func shadeOf(w, top float64) int {
	for i, limit := range shadeLimits {
		if w < limit*top {
			return i
		}
	}
	return len(shades) - 1
}

// Markdown writes the report for a chat or a ticket: with the text only where it was asked for.
func (x *Explain) Markdown(out io.Writer) error {
	var b strings.Builder
	esc := table.EscapeMarkdown
	fmt.Fprintf(&b, "**%s** %s\n", esc(x.lead), esc(x.rest))
	for _, s := range x.Findings {
		fmt.Fprintf(&b, "\n%s\n", esc(s))
	}
	b.WriteString("\n**In doubt**\n\n")
	for _, s := range x.Doubt {
		fmt.Fprintf(&b, "- %s\n", esc(s))
	}
	parts := block{heading: "The message, and what the router read of it", tables: []*table.Table{x.zoneTable()}, notes: []string{x.sayRead()}}
	if x.o.WithText {
		for _, p := range x.passages {
			if p.lost {
				continue
			}
			parts.notes = append(parts.notes, oneLine(headOf(string(x.e.Text[p.from:p.to]), longOnTerminal)))
		}
	}
	for _, s := range append([]block{parts}, x.blocks(x.o.WithText)...) {
		fmt.Fprintf(&b, "\n### %s\n", esc(s.heading))
		for _, t := range s.tables {
			b.WriteByte('\n')
			if err := t.Markdown(&b); err != nil {
				return err
			}
		}
		for _, n := range s.notes {
			fmt.Fprintf(&b, "\n%s\n", esc(n))
		}
	}
	b.WriteString("\n### Run facts\n\n")
	for _, f := range x.explainFacts() {
		fmt.Fprintf(&b, "- %s: %s\n", esc(f.Name), esc(f.Value))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
