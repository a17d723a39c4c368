package reports

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"misroute/reports/chart"
	"misroute/reports/stats"
	"misroute/reports/table"
)

// Terminal writes the comparison for a terminal.
func (c *Compare) Terminal(out io.Writer, o TermOptions) error { return c.sheet(5).terminal(out, o) }

// Markdown writes the comparison for a pull request or a chat message.
func (c *Compare) Markdown(out io.Writer) error { return c.sheet(10).markdown(out) }

// HTML writes the comparison as one file that asks the network for nothing.
func (c *Compare) HTML(out io.Writer) error { return c.sheet(c.options.Examples).html(out) }

// JSON writes the comparison's numbers.
func (c *Compare) JSON(out io.Writer) error { return writeJSON(out, c) }

// sheet lays the comparison out; at most the given number of ways and flips is listed.
func (c *Compare) sheet(most int) *sheet {
	s := &sheet{
		title:   "Comparison, " + c.Gate.Verdict.String(),
		eyebrow: "Comparison · baseline " + name(c.Baseline.Name) + " · candidate " + name(c.Candidate.Name),
		lead:    c.Gate.Verdict.String() + ":",
		rest:    strings.TrimPrefix(c.Headline, c.Gate.Verdict.String()+": ") + ".",
		fine:    c.Gate.Verdict == stats.Pass,
		lede:    []string{c.differenceWords() + " " + c.flipWords()},
		doubt:   c.Doubt,
		facts:   c.facts(),
	}
	o := &c.Overall
	s.cards = []card{
		{percent(o.Base.Rate), "misrouted by the baseline, " + o.Base.interval(), ""},
		{percent(o.Cand.Rate), "misrouted by the candidate, " + o.Cand.interval(), ""},
		{points(Number(o.Pairs.Difference)), "points difference, " + points(Number(o.Pairs.Interval.Low)) + " to " + points(Number(o.Pairs.Interval.High)), ""},
		{count(c.Flips.Negative), "right before, wrong now", "c2"},
		{count(c.Flips.Positive), "wrong before, right now", ""},
	}
	family := c.familyNote()
	caption := "Change of the misroute rate with its " + confidence(o.Pairs.Alpha) + " interval. The dashed line is the margin."
	s.sections = []sheetSection{
		{id: "cost", nav: "Both runs", heading: "Both runs side by side", tables: []*table.Table{c.sideTable()}, notes: c.sideNotes()},
		{id: "length", nav: "By length", heading: c.familyHeading("length", c.Lengths), figure: c.changesChart("Change of the misroute rate by message length in "+c.Unit, c.Lengths), caption: caption, tables: []*table.Table{c.contrastTable("Misroutes by message length in both runs", c.Unit, c.Lengths, c.Confirmed)}, notes: family},
		{id: "queues", nav: "By queue", heading: c.familyHeading("queue", c.queueContrasts()), figure: c.changesChart("Change of the misroute rate by queue", c.queueContrasts()), caption: caption, tables: []*table.Table{c.queueTable()}, notes: family},
	}
	s.sections = append(s.sections, sheetSection{id: "kept", nav: "Precision", heading: "Precision, recall and F1 of each queue", tables: []*table.Table{c.keptTable()}, pageOnly: true})
	if len(c.Ways) > 0 {
		s.sections = append(s.sections, sheetSection{id: "ways", nav: "Ways", heading: "Ways mail goes wrong: what the candidate saves and adds", tables: []*table.Table{c.waysTable(most)}, notes: c.waysNote(most)})
	}
	if len(c.Explored) > 0 {
		s.sections = append(s.sections, sheetSection{id: "explored", nav: "Languages and weeks", heading: "Languages and weeks (exploratory)", tables: []*table.Table{c.contrastTable("Misroutes by language and week in both runs", "group", c.Explored, false)}, folded: "Languages and weeks (exploratory)"})
	}
	for _, f := range []struct {
		id, nav, heading string
		n                int
		list             []Flip
	}{
		{"worse", "Got worse", "Right in the baseline, wrong in the candidate", c.Flips.Negative, c.Flips.Worst},
		{"better", "Got better", "Wrong in the baseline, right in the candidate", c.Flips.Positive, c.Flips.Best},
		{"other", "Other changes", "Changed, but neither better nor worse", c.Flips.Neutral + c.Flips.Unlabelled, c.Flips.Other},
	} {
		if f.n == 0 {
			continue
		}
		x := sheetSection{id: f.id, nav: f.nav, heading: f.heading, tables: []*table.Table{c.flipTable(f.heading, clip(f.list, most))}, folded: f.heading + ": " + plural(f.n, "message", "messages")}
		if shown := min(len(f.list), most); shown < f.n {
			x.notes = []string{fmt.Sprintf("%s of %s, by change of the label's margin.", count(shown), count(f.n))}
		}
		s.sections = append(s.sections, x)
	}
	return s
}

// changesChart draws the differences of groups under that of all messages.
func (c *Compare) changesChart(title string, list []Contrast) template.HTML {
	const most = 40 // a picture of more rows shows less than the table
	g := &chart.Changes{Title: title, Margin: c.Gate.Margin}
	add := func(x *Contrast, label string, told bool) {
		p := &x.Pairs
		if p.N > 0 {
			g.Rows = append(g.Rows, chart.Change{Label: label, Told: told, Point: chart.Point{Value: p.Difference, Low: p.Interval.Low, High: p.Interval.High, Few: x.few()}})
		}
	}
	add(&c.Overall, c.Overall.Name, c.Overall.Pairs.Decided())
	for i := range clip(list, most) {
		x := &list[i]
		add(x, x.Name, x.Holm.Defined() && float64(x.Holm) < x.Pairs.Alpha)
	}
	return g.Markup()
}

func (c *Compare) flipWords() string {
	f := &c.Flips
	if f.Flipped() == 0 {
		return "Every prediction is the same."
	}
	share := newRate(f.Flipped(), c.Sets.Paired, 0)
	s := fmt.Sprintf("%s (%s, 95 %% interval %s): %s got worse, %s better",
		plural(f.Flipped(), "prediction changed", "predictions changed"), percent(share.Rate), share.interval(), count(f.Negative), count(f.Positive))
	if f.Neutral > 0 {
		s += fmt.Sprintf(", %s went from one wrong queue to another", count(f.Neutral))
	}
	if f.Unlabelled > 0 {
		s += fmt.Sprintf(", %s of messages without a label", count(f.Unlabelled))
	}
	p := &c.Overall.Pairs
	return s + fmt.Sprintf(". p %s by thread, mid-p %s; %s in %s.", pvalue(p.P()), pvalue(p.MidP),
		plural(p.N, "message", "messages"), plural(p.Clusters, "thread", "threads"))
}

// familyHeading says what the groups of a kind show.
func (c *Compare) familyHeading(kind string, list []Contrast) string {
	var worse, better []string
	for i := range list {
		x := &list[i]
		if !x.Holm.Defined() || float64(x.Holm) >= c.Overall.Pairs.Alpha {
			continue
		}
		label := name(x.Name)
		if x.Kind == "length" {
			label += " " + c.Unit
		}
		if x.Pairs.Difference > 0 {
			worse = append(worse, label)
		} else {
			better = append(better, label)
		}
	}
	var parts []string
	if len(worse) > 0 {
		parts = append(parts, "worse at "+clipList(worse, 3))
	}
	if len(better) > 0 {
		parts = append(parts, "better at "+clipList(better, 3))
	}
	if len(parts) > 0 {
		return "By " + kind + ": " + strings.Join(parts, "; ")
	}
	if !c.Confirmed {
		return "By " + kind + " (exploratory: the overall difference is not decided)"
	}
	return "By " + kind + ": no single one stands out"
}

func (c *Compare) familyNote() []string {
	tested, small := 0, false
	for _, list := range [][]Contrast{c.Lengths, c.queueContrasts()} {
		for i := range list {
			if list[i].few() {
				small = small || list[i].Base.N > 0
			} else {
				tested++
			}
		}
	}
	how := "q is the false discovery rate over them"
	if c.Confirmed {
		how = "p is adjusted over them (Holm)"
	}
	note := fmt.Sprintf("~ not told from chance. %s of lengths and queues; %s.", plural(tested, "test", "tests"), how)
	if small {
		note += fmt.Sprintf(" %s fewer than %d messages: not tested.", fewMark, few)
	}
	return []string{note}
}

func (c *Compare) queueContrasts() []Contrast {
	list := make([]Contrast, len(c.Queues))
	for i := range c.Queues {
		list[i] = c.Queues[i].Contrast
	}
	return list
}

// contrastColumns head the cells of contrastCells.
func (c *Compare) contrastColumns(first string, confirmed bool) []table.Column {
	p := "q"
	if confirmed {
		p = "p (Holm)"
	}
	r := table.Right
	return []table.Column{
		{Head: first, Max: 28}, {Head: "messages", Align: r}, {Head: "baseline", Align: r},
		// On a terminal the candidate is left to the two columns that follow, for the names' sake.
		{Head: "candidate", Align: r, In: table.InHTML | table.InCSV | table.InMarkdown},
		{Head: "worse", Align: r}, {Head: "better", Align: r}, {Head: "points", Align: r},
		{Head: confidence(c.Overall.Pairs.Alpha) + " interval", Align: r}, {Head: p, Align: r},
	}
}

func (c *Compare) contrastCells(x *Contrast) []table.Cell {
	p := &x.Pairs
	difference, interval, test := "-", "-", "-"
	if p.N > 0 {
		difference = points(Number(p.Difference))
		interval = points(Number(p.Interval.Low)) + " to " + points(Number(p.Interval.High))
	}
	for _, v := range []Number{x.Holm, x.Q} {
		if v.Defined() {
			test = significance(float64(v), p.Alpha)
		}
	}
	class := ""
	if test != "~" && test != "-" {
		class = "bad"
		if p.Difference < 0 {
			class = "good"
		}
	}
	return []table.Cell{
		cell(x.Name), counted(x.Base), cell(count(x.Base.Wrong)), cell(count(x.Cand.Wrong)),
		cell(count(p.B)), cell(count(p.C)), {Text: difference, Class: class}, cell(interval), cell(test),
	}
}

func (c *Compare) contrastTable(caption, first string, list []Contrast, confirmed bool) *table.Table {
	t := &table.Table{Caption: caption, Columns: c.contrastColumns(first, confirmed)}
	for i := range list {
		t.AddRow(rowClass(list[i].Base), c.contrastCells(&list[i])...)
	}
	return t
}

func (c *Compare) queueTable() *table.Table {
	return c.contrastTable("Misroutes by queue in both runs", "queue", c.queueContrasts(), c.Confirmed)
}

// keptTable says how well each queue is kept in both runs.
func (c *Compare) keptTable() *table.Table {
	r := table.Right
	t := &table.Table{Caption: "Precision, recall and F1 by queue in both runs", Columns: []table.Column{
		{Head: "queue", Max: 28}, {Head: "precision before", Align: r}, {Head: "precision", Align: r}, {Head: "recall before", Align: r}, {Head: "recall", Align: r},
		{Head: "F1 before", Align: r}, {Head: "F1", Align: r},
	}}
	for i := range c.Queues {
		q := &c.Queues[i]
		cells := []table.Cell{cell(q.Name)}
		for _, v := range []Number{q.BasePrecision, q.CandPrecision, 1 - q.Base.Rate, 1 - q.Cand.Rate, q.BaseF1, q.CandF1} {
			cells = append(cells, cell(decimals(v, 3)))
		}
		t.AddRow(rowClass(q.Base), cells...)
	}
	return t
}

func (c *Compare) waysTable(most int) *table.Table {
	r := table.Right
	t := &table.Table{Caption: "Ways mail goes wrong in both runs", Columns: []table.Column{
		{Head: "belongs to", Max: 24}, {Head: "went to", Max: 24}, {Head: "baseline", Align: r}, {Head: "saved", Align: r},
		{Head: "added", Align: r}, {Head: "candidate", Align: r}, {Head: "q", Align: r},
	}}
	if c.Severity != nil {
		t.Columns = append(t.Columns, table.Column{Head: "cost of one", Align: r})
	}
	for _, x := range clip(c.Ways, most) {
		q := "-"
		if x.Q.Defined() {
			q = significance(float64(x.Q), c.Overall.Pairs.Alpha)
		}
		cells := []table.Cell{cell(x.From), cell(x.To), cell(count(x.Base)), cell(count(x.Saved)), {Text: count(x.Added), Class: badIf(x.Added > x.Saved)}, cell(count(x.Cand)), cell(q)}
		if c.Severity != nil {
			cells = append(cells, cell(trimFloat(x.Cost)))
		}
		t.AddRow("", cells...)
	}
	return t
}

func (c *Compare) waysNote(most int) []string {
	note := "Exploratory: q is the false discovery rate."
	if n := len(c.Ways); n > most {
		note = fmt.Sprintf("%s of %s ways, by what changed most. ", count(most), count(n)) + note
	}
	return []string{note}
}

func (c *Compare) flipTable(caption string, list []Flip) *table.Table {
	t := &table.Table{Caption: caption, Columns: []table.Column{
		{Head: "message", Max: 36}, {Head: "belongs to", Max: 20}, {Head: "baseline", Max: 20}, {Head: "candidate", Max: 20},
		{Head: c.Unit, Align: table.Right}, {Head: "margin", Align: table.Right},
	}}
	text := c.options.WithText
	if text {
		t.Columns = append(t.Columns, table.Column{Head: "subject", Max: 40})
	}
	for _, f := range list {
		id := f.MessageID
		if id == "" {
			id = fmt.Sprintf("%s #%d", f.Source, f.RecordNo)
		}
		label := f.Label
		if label == "" {
			label = "-"
		}
		change := decimals(f.Change, 2)
		if f.Change > 0 {
			change = "+" + change
		}
		cells := []table.Cell{cell(id), cell(label), cell(f.Base), cell(f.Cand), cell(count(f.Length)), cell(change)}
		if text {
			cells = append(cells, cell(f.Subject))
		}
		t.AddRow("", cells...)
	}
	return t
}

// precision is that of the side's weights, as its first run has it.
func (s *Side) precision() string {
	if len(s.Runs) == 0 || s.Runs[0].Precision == "" {
		return "-"
	}
	return s.Runs[0].Precision
}

// sideTable puts what both runs are and cost side by side.
func (c *Compare) sideTable() *table.Table {
	t := &table.Table{Caption: "Baseline and candidate side by side", Columns: []table.Column{
		{Head: ""}, {Head: "baseline", Align: table.Right, Max: 30}, {Head: "candidate", Align: table.Right, Max: 30}, {Head: "change", Align: table.Right},
	}}
	a, b := &c.Baseline, &c.Candidate
	t.Add("model", a.Name, b.Name, "")
	t.Add("reads", settingsOf(a), settingsOf(b), "")
	if x, y := a.precision(), b.precision(); x != y {
		t.Add("weights", x, y, "")
	}
	o := &c.Overall
	t.Add("misroutes", count(o.Base.Wrong), count(o.Cand.Wrong), signed(o.Cand.Wrong-o.Base.Wrong))
	t.Add("misroute rate", percent(o.Base.Rate), percent(o.Cand.Rate), pointsOf(o.Pairs.Difference))
	if r := c.Routable; r != nil {
		t.Add("of labels both know", percent(r.Base.Rate), percent(r.Cand.Rate), pointsOf(r.Pairs.Difference))
	}
	if m := c.MacroF1; m != nil {
		change := signedDecimals(m.Difference, 3)
		if m.DifferenceInterval.Contains(0) {
			change = "~ " + change
		}
		t.Add("macro-F1", decimals(Number(m.Base), 3), decimals(Number(m.Cand), 3), change)
	}
	if s := c.Severity; s != nil {
		change := signedDecimals(s.Cand-s.Base, 1)
		if s.Cluster.P >= o.Pairs.Alpha {
			change = "~ " + change
		}
		t.Add("cost of misroutes", decimals(Number(s.Base), 1), decimals(Number(s.Cand), 1), change)
	}
	t.Add("messages cut", count(a.Cut), count(b.Cut), signed(b.Cut-a.Cut))
	t.Add("tokens read a message", decimals(a.MeanKept, 1), decimals(b.MeanKept, 1), relative(float64(a.MeanKept), float64(b.MeanKept)))
	if a.Cells+b.Cells > 0 { // a router without attention has none
		t.Add("score-grid cells", known(a.Cells), known(b.Cells), relative(float64(a.Cells), float64(b.Cells)))
	}
	t.Add("FLOPs", known(a.FLOPs), known(b.FLOPs), relative(float64(a.FLOPs), float64(b.FLOPs)))
	if a.Millis.Defined() || b.Millis.Defined() {
		t.Add("ms a message, measured", decimals(a.Millis, 2), decimals(b.Millis, 2), relative(float64(a.Millis), float64(b.Millis)))
	}
	if a.ECE.Defined() || b.ECE.Defined() {
		t.Add("calibration error", decimals(a.ECE, 3), decimals(b.ECE, 3), "")
		t.Add("mean score when wrong", decimals(a.WrongScore, 2), decimals(b.WrongScore, 2), "")
	}
	if a.Abstain != nil && b.Abstain != nil {
		at := trimFloat(a.Abstain.Threshold)
		share := func(h *Handed) Number { return ratio(stats.Ratio{Num: h.Routed, Den: h.Of}) }
		risk := func(h *Handed) Number { return ratio(stats.Ratio{Num: h.Wrong, Den: h.Routed}) }
		t.Add("routed at score "+at, percent(share(a.Abstain)), percent(share(b.Abstain)), pointsOf(float64(share(b.Abstain)-share(a.Abstain))))
		t.Add("of those misrouted", percent(risk(a.Abstain)), percent(risk(b.Abstain)), pointsOf(float64(risk(b.Abstain)-risk(a.Abstain))))
	}
	return t
}

// sideNotes say what the dearer run's money buys, and that the control holds.
func (c *Compare) sideNotes() []string {
	var notes []string
	if p := c.Price; p != nil {
		if p.Defined {
			notes = append(notes, fmt.Sprintf("The %s costs more: %sFLOPs for each misroute it saves (%s to %s).", p.Dearer, magnitude(p.PerSaved), magnitude(p.Interval.Low), magnitude(p.Interval.High)))
		} else {
			notes = append(notes, fmt.Sprintf("The %s costs more; what it pays for each misroute it saves is undefined, for it may save none (%s saved, %s interval %s to %s).",
				p.Dearer, count(p.Saved), confidence(c.Overall.Pairs.Alpha), decimals(Number(p.SavedInterval.Low), 0), decimals(Number(p.SavedInterval.High), 0)))
		}
	}
	if k := c.Control; k != nil && k.N > 0 {
		notes = append(notes, fmt.Sprintf("Control: %s among %s that neither run cut.", plural(k.Flips, "flip", "flips"), plural(k.N, "message", "messages")))
	}
	return notes
}

func settingsOf(s *Side) string {
	set := map[string]bool{}
	for _, r := range s.Runs {
		set[r.Setting] = true
	}
	return strings.Join(sortedKeys(set), ", ")
}

// pointsOf prints a difference of rates with its unit.
func pointsOf(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return points(Number(x)) + " points"
}

// signed prints a change of a count.
func signed(n int) string {
	if n > 0 {
		return "+" + count(n)
	}
	return count(n)
}

func signedDecimals(x float64, places int) string {
	s := decimals(Number(x), places)
	if x > 0 {
		return "+" + s
	}
	return s
}

// known prints a cost, or "-" where there is none: a deployed router does not tell.
func known(cost int64) string {
	if cost == 0 {
		return "-"
	}
	return magnitude(float64(cost))
}

// relative prints a change in per cent of the first value.
func relative(from, to float64) string {
	if !(from > 0) || !(to > 0) { // undefined values compare false
		return "-"
	}
	return points(Number(to/from-1)) + " %"
}

func (c *Compare) facts() []fact {
	var facts []fact
	for _, s := range []struct {
		name string
		side *Side
	}{{"Baseline", &c.Baseline}, {"Candidate", &c.Candidate}} {
		facts = append(facts, fact{s.name, runsWords(s.side.Runs)})
	}
	sets := fmt.Sprintf("%s in the baseline, %s in the candidate, %s paired by message id and content, %s labelled",
		count(c.Sets.Baseline), count(c.Sets.Candidate), count(c.Sets.Paired), count(c.Sets.Labelled))
	if c.Sets.Intersect {
		sets += ", intersection asked for"
	}
	p := &c.Overall.Pairs
	return append(facts, fact{"Messages", sets}, fact{"Statistics", fmt.Sprintf(
		"%s; sign flips by thread, %s draws; bootstrap by thread, %s draws; seed %d; design effect %s; intervals Wilson and Bonett–Price, %s",
		plural(len(c.Tests), "test", "tests"), count(p.Cluster.Draws), count(stats.BootstrapDraws), p.Cluster.Seed, decimals(Number(p.Effect), 2), confidence(p.Alpha))})
}

// runsWords names runs; those that differ only in their week and id are named once.
func runsWords(runs []RunFact) string {
	type named struct {
		words      string
		weeks, ids []string
	}
	var list []*named
	index := map[string]*named{}
	for _, r := range runs {
		words := r.Model
		if r.SHA256 != "" {
			words += " (sha256 " + short(r.SHA256) + ")"
		}
		for _, more := range []string{r.Setting, r.Tokenizer, r.Precision, r.Kernel} {
			if more != "" {
				words += ", " + more
			}
		}
		words += ", misroute " + r.Version
		x := index[words]
		if x == nil {
			x = &named{words: words}
			index[words] = x
			list = append(list, x)
		}
		x.ids = append(x.ids, short(r.RunID))
		if r.Weeks != "" {
			x.weeks = append(x.weeks, r.Weeks)
		}
	}
	var lines []string
	for _, x := range list {
		line := x.words
		if len(x.weeks) > 0 {
			line += ", " + clipWords(x.weeks, 8)
		}
		lines = append(lines, line+", "+strings.TrimPrefix(plural(len(x.ids), "run", "runs"), "1 ")+" "+clipWords(x.ids, 8))
	}
	return clipList(lines, 6)
}

// clipWords lists the first and says how many more there are.
func clipWords(list []string, most int) string {
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %s more", count(len(list)-most))
	}
	return strings.Join(list, ", ")
}
