package reports

import (
	"fmt"
	"io"
	"strings"

	"misroute/pipeline/result"
	"misroute/reports/table"
)

// checks warns of rows that do not belong in one report.
func (t *tally) checks(w *Weekly) {
	for _, m := range t.mixing.Mixed() {
		rest := 0
		for _, v := range m.Values[1:] {
			rest += v.N
		}
		// A guess at the language of short mail errs now and then: one in twenty is no mixture.
		if m.Dimension != "languages" || rest*20 > len(t.rows) {
			w.Warnings = append(w.Warnings, "mixes "+m.String())
		}
	}
	if folded := t.folded; folded >= 0 {
		w.Warnings = append(w.Warnings, fmt.Sprintf("more than %s queues: the rest is counted as %s; are the labels queues?", count(folded), foldedQueue))
	}
	if problem := imbalance(w.Run.Ledger); problem != "" {
		w.Warnings = append(w.Warnings, problem)
	}
}

// imbalance says what does not add up in a ledger.
func imbalance(l result.Ledger) string {
	for _, sum := range []struct {
		name        string
		whole, part int64
	}{
		{"read", l.Read, l.Scored + l.Rejected + l.Duplicate + l.Filtered},
		{"scored", l.Scored, l.Labelled + l.Unlabelled},
		{"labelled", l.Labelled, l.Routable + l.Unroutable},
	} {
		if sum.whole != sum.part {
			return fmt.Sprintf("the ledger does not balance: %s %s, but its parts add up to %s", count(sum.whole), sum.name, count(sum.part))
		}
	}
	return ""
}

// JSON writes the report's numbers.
func (w *Weekly) JSON(out io.Writer) error {
	return writeJSON(out, w)
}

// styles are the terminal's colours by class: the few that say something, none for decoration.
var styles = map[string]string{
	"bad": "31", "hot": "33", "cutrow": "33", "few": "2", "head": "2", "good": "32", "strong": "1", "now": "33",
}

func (o TermOptions) style(class, text string) string {
	if !o.Color {
		return text
	}
	for _, c := range strings.Fields(class) {
		if code, ok := styles[c]; ok {
			return "\x1b[" + code + "m" + text + "\x1b[0m"
		}
	}
	return text
}

func (o TermOptions) width() int {
	if o.Width <= 0 {
		return 80
	}
	return max(o.Width, 40)
}

// paragraph wraps words to the terminal, with a hanging indent.
func (o TermOptions) paragraph(b *strings.Builder, first, indent, text, class string) {
	line, room := first, o.width()
	empty := true
	flush := func() {
		b.WriteString(o.style(class, strings.TrimRight(line, " ")))
		b.WriteByte('\n')
		line, empty = indent, true
	}
	for _, word := range strings.Fields(glue(table.Clean(text))) {
		word = strings.ReplaceAll(word, "\u00a0", " ")
		if !empty && table.Width(line)+1+table.Width(word) > room {
			flush()
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	flush()
}

// glue keeps a number and its percent sign on one line.
func glue(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") }

// Terminal writes the report for a terminal.
func (w *Weekly) Terminal(out io.Writer, o TermOptions) error {
	var b strings.Builder
	o.paragraph(&b, "", "", w.Headline, "strong")
	for _, s := range w.Findings {
		o.paragraph(&b, "", "", s, "")
	}
	for _, s := range w.Do {
		o.paragraph(&b, "> ", "  ", s, "good")
	}
	for _, s := range w.Doubt {
		o.paragraph(&b, "? ", "  ", s, "few")
	}
	section := func(title string, t *table.Table) error {
		if title != "" {
			b.WriteByte('\n')
			o.paragraph(&b, "", "", title, "strong")
		}
		text := table.TextOptions{Indent: 2, Width: o.width()}
		if o.Color {
			text.Style = o.style
		}
		return t.Text(&b, text)
	}
	steps := []func() error{
		func() error { return section(w.words.length, w.lengthTable()) },
		func() error {
			if len(w.Windows) == 0 {
				return nil
			}
			return section("By number of windows", w.windowsTable())
		},
		func() error {
			if w.Cut == nil || w.Cut.Table == nil {
				return nil
			}
			err := section(w.words.cut, w.counterfactualTable())
			for _, s := range w.cutNotes() {
				o.paragraph(&b, "  ", "  ", s, "")
			}
			return err
		},
		func() error {
			if w.Sweep == nil || w.Sweep.N == 0 {
				return nil
			}
			err := section(w.Sweep.sayHeading(), w.Sweep.settingTable())
			for _, s := range w.Sweep.notes() {
				o.paragraph(&b, "  ", "  ", s, "")
			}
			return err
		},
		func() error { return section(w.words.queues, w.queueTable()) },
		func() error {
			if len(w.Pairs) == 0 {
				return nil
			}
			return section("Ways mail goes wrong", w.pairTable(5))
		},
		func() error {
			if w.Abstain == nil {
				return nil
			}
			return section(w.words.scores, w.abstainTable())
		},
		func() error {
			if len(w.Rejected) == 0 {
				return nil
			}
			return section(w.words.rejected, reasonTable("Rejected records", w.Rejected))
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	b.WriteByte('\n')
	w.terminalFoot(&b, o)
	_, err := io.WriteString(out, b.String())
	return err
}

func (w *Weekly) terminalFoot(b *strings.Builder, o TermOptions) {
	b2 := w.ledger()
	if w.Run.Ledger.Rejected > 0 && o.Folder != "" {
		b2 += fmt.Sprintf(" (see %s/%s)", strings.TrimSuffix(o.Folder, "/"), result.RejectsFile)
	}
	o.paragraph(b, "", "", b2, "")
	router := w.router()
	if c := w.capFact(); c != "" {
		router += "; cap " + c
	}
	o.paragraph(b, "", "", router, "few")
	if m := w.Measured; m != nil {
		o.paragraph(b, "", "", fmt.Sprintf("%s s, %s messages/s, %s, %s", decimals(Number(m.Seconds), 1), decimals(Number(m.MessagesPerSecond), 0), plural(m.Workers, "worker", "workers"), w.Run.Kernel), "few")
	}
	fewest := false
	for _, x := range w.Buckets {
		fewest = fewest || x.Few && x.N > 0
	}
	if fewest {
		o.paragraph(b, "", "", fmt.Sprintf("%s fewer than %d messages: no ranking", fewMark, few), "few")
	}
	if o.Folder != "" {
		o.paragraph(b, "", "", strings.TrimSuffix(o.Folder, "/")+"/report.html", "")
	}
}

// cutNotes are the sentences under the counterfactual table: about the test, then about the gap.
func (w *Weekly) cutNotes() []string { return append(w.testNotes(), w.gapNotes()...) }

func (w *Weekly) testNotes() []string {
	c := w.Cut
	net := fmt.Sprintf("Net cost of the cut %s of %s, %s points (%s); mid-p %s, by thread %s.", minus(count(c.Table.Net())), plural(c.Test.N, "message", "messages"),
		points(Number(c.Test.Difference)), signedInterval(c.Test.Interval.Low, c.Test.Interval.High), pvalue(c.Test.MidP), pvalue(c.Test.Cluster.P))
	if c.Test.Changed() < c.Need {
		net += fmt.Sprintf(" Nothing can be shown with fewer than %d changed messages.", c.Need)
	}
	s := []string{net}
	if c.Control.Again > 0 {
		s = append(s, fmt.Sprintf("Control: %s among %s under the cap that were read again.", plural(c.Control.Flips, "flip", "flips"), plural(c.Control.Again, "message", "messages")))
	} else {
		s = append(s, fmt.Sprintf("Control: %s under the cap lost nothing; their whole reading is the same one.", plural(c.Control.Under, "message", "messages")))
	}
	if b := c.Blind; b.CutScore.Defined() && b.UncutScore.Defined() {
		s = append(s, fmt.Sprintf("Mean score of a misroute: %s when cut, %s when read to the end.", decimals(b.CutScore, 2), decimals(b.UncutScore, 2)))
	}
	return s
}

func (w *Weekly) gapNotes() []string {
	var s []string
	c := w.Cut
	if c.Gap != nil {
		s = append(s, w.sayGap(c))
	}
	if p := c.Placebo; p != nil {
		s = append(s, fmt.Sprintf("A placebo cut of the same size at random places misroutes %s of them; the real cut is %s points from that (%s; p %s; %s).",
			percent(p.Rate), points(Number(p.Test.Difference)), signedInterval(p.Test.Interval.Low, p.Test.Interval.High), pvalue(p.Test.P()), plural(len(p.Seeds), "draw", "draws")))
	}
	return s
}

// sayGap is the exact split in a sentence.
func (w *Weekly) sayGap(c *Cut) string {
	g := c.Gap
	more, by := "more", g.Total
	if by < 0 {
		more, by = "less", -by
	}
	s := fmt.Sprintf("Cut messages are misrouted %s points %s often than the others (%s against %s): ", bare(by), more, percent(c.Over.Rate), percent(c.Under.Rate))
	return s + fmt.Sprintf("%s points are harder mail, what remains when they are read whole, and %s points are the cut.", points(g.Harder), points(g.Cut))
}

// Markdown writes the report for a chat message or a mail.
func (w *Weekly) Markdown(out io.Writer) error {
	var b strings.Builder
	esc := table.EscapeMarkdown
	fmt.Fprintf(&b, "**%s** %s", esc(w.words.lead), esc(strings.TrimPrefix(strings.TrimPrefix(w.Headline, w.words.lead), " ")))
	b.WriteString("\n")
	for _, s := range w.Findings {
		fmt.Fprintf(&b, "\n%s\n", esc(s))
	}
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n**%s**\n\n", title)
		for _, s := range lines {
			fmt.Fprintf(&b, "- %s\n", esc(s))
		}
	}
	list("Do this", w.Do)
	list("In doubt", w.Doubt)
	section := func(title string, t *table.Table, notes ...string) error {
		fmt.Fprintf(&b, "\n### %s\n\n", esc(title))
		err := t.Markdown(&b)
		for _, s := range notes {
			fmt.Fprintf(&b, "\n%s\n", esc(s))
		}
		return err
	}
	if err := section(w.words.length, w.lengthTable(), w.fewNote()...); err != nil {
		return err
	}
	if len(w.Windows) > 0 {
		if err := section("By number of windows", w.windowsTable()); err != nil {
			return err
		}
	}
	if w.Cut != nil && w.Cut.Table != nil {
		if err := section(w.words.cut, w.counterfactualTable(), w.cutNotes()...); err != nil {
			return err
		}
	}
	if w.Sweep != nil && w.Sweep.N > 0 {
		if err := section(w.Sweep.sayHeading(), w.Sweep.settingTable(), w.Sweep.notes()...); err != nil {
			return err
		}
	}
	if err := section(w.words.queues, w.queueTable()); err != nil {
		return err
	}
	if len(w.Pairs) > 0 {
		if err := section("Ways mail goes wrong", w.pairTable(10)); err != nil {
			return err
		}
	}
	if w.Abstain != nil {
		if err := section(w.words.scores, w.abstainTable()); err != nil {
			return err
		}
	}
	if len(w.Rejected) > 0 {
		if err := section(w.words.rejected, reasonTable("Rejected records", w.Rejected)); err != nil {
			return err
		}
	}
	b.WriteString("\n### Run facts\n\n")
	for _, f := range w.facts() {
		fmt.Fprintf(&b, "- %s: %s\n", esc(f.Name), esc(f.Value))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (w *Weekly) fewNote() []string {
	for _, b := range w.Buckets {
		if b.Few && b.N > 0 {
			return []string{fmt.Sprintf("%s fewer than %d messages: no ranking.", fewMark, few)}
		}
	}
	return nil
}
