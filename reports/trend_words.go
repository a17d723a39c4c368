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

// warn says what could mislead in the numbers.
func (t *Trend) warn() {
	add := func(format string, args ...any) { t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...)) }
	if t.Repeats > 0 {
		add("%s repeat a message of an earlier run and are left out", plural(t.Repeats, "row", "rows"))
	}
	labelled := 0
	for i := range t.Weeks {
		w := &t.Weeks[i]
		if w.Rate.N > 0 {
			labelled++
		}
		for _, m := range w.Mixed {
			if m.Dimension != "languages" {
				add("%s mixes %s", w.Name, m)
			}
		}
		if i == 0 {
			continue
		}
		if a, b := routers(&t.Weeks[i-1]), routers(w); a != b {
			add("the router changed between %s and %s: %s, then %s", t.Weeks[i-1].Name, w.Name, a, b)
		}
		if w.Rate.Few && w.Rate.N > 0 {
			add("%s has only %s with a label", w.Name, plural(w.Rate.N, "message", "messages"))
		}
	}
	if labelled > 1 && labelled < stats.SignalRun {
		add("limits from %d weeks are provisional: each week moves the centre it is judged by", labelled)
	}
	if d := t.QueueDrift; d != nil && d.Sparse {
		add("some queues expect fewer than 5 messages a week: the p of the drift of queues is a rough guide")
	}
}

// routers names what read the mail of a week.
func routers(w *Week) string {
	set := map[string]bool{}
	for _, r := range w.Runs {
		name := r.Model + ", " + r.Setting
		if r.SHA256 != "" {
			name = r.Model + " " + short(r.SHA256) + ", " + r.Setting
		}
		set[name] = true
	}
	return clipList(sortedKeys(set), 3)
}

// say makes the headline and what stands out.
func (t *Trend) say() {
	last := &t.Weeks[len(t.Weeks)-1]
	t.Findings = []string{}
	if last.Rate.N == 0 {
		t.Headline = fmt.Sprintf("%s: %s, none labelled: nobody can say which went to the wrong queue", last.Name, plural(last.Scored, "message", "messages"))
	} else {
		t.Headline = fmt.Sprintf("%s: %s of %s went to the wrong queue (%s), %s", last.Name, count(last.Rate.Wrong), plural(last.Rate.N, "message", "messages"), percent(last.Rate.Rate), t.position(last))
	}
	if c := last.Change; c != nil {
		t.Findings = append(t.Findings, t.changeWords(last.Name, t.Weeks[len(t.Weeks)-2].Name, c))
	}
	for i := range t.Weeks[:len(t.Weeks)-1] {
		if w := &t.Weeks[i]; w.Out {
			t.Findings = append(t.Findings, fmt.Sprintf("%s: %s of %s, %s.", w.Name, count(w.Rate.Wrong), count(w.Rate.N), t.position(w)))
		}
	}
	if s := t.Slope; s != nil && s.P < t.options.Alpha {
		verb := "rises"
		if s.Slope < 0 {
			verb = "falls"
		}
		t.Findings = append(t.Findings, fmt.Sprintf("Over all weeks the rate %s by %s points a week (%s to %s, p %s).", verb,
			bare(Number(math.Abs(s.Slope))), points(Number(s.Interval.Low)), points(Number(s.Interval.High)), pvalue(s.P)))
	}
	if t.OneSide >= stats.SignalRun {
		side := "above"
		if last.Rate.Rate < t.Centre {
			side = "below"
		}
		t.Findings = append(t.Findings, fmt.Sprintf("The last %d weeks all lie %s the centre: a lasting change, although no single one is outside of its limits.", t.OneSide, side))
	}
	for _, d := range []struct {
		what   string
		result *stats.ChiSquareResult
	}{{"belongs to other queues", t.QueueDrift}, {"has other lengths", t.LengthDrift}} {
		if d.result != nil && d.result.P < t.options.Alpha {
			t.Findings = append(t.Findings, fmt.Sprintf("The mail of %s %s than before (p %s; %s of it would have to change to look the same).", last.Name, d.what, pvalue(d.result.P), percent(Number(d.result.Distance))))
		}
	}
	for _, f := range clip(t.FirstSeen, 5) {
		known := ""
		if !f.Known {
			known = ", which no router knows"
		}
		t.Findings = append(t.Findings, fmt.Sprintf("First seen in %s: the queue %s%s (%s belong there, %s sent there).", f.Week, name(f.Queue), known, count(f.Labelled), count(f.Sent)))
	}
	if n := len(t.FirstSeen); n > 5 {
		t.Findings = append(t.Findings, fmt.Sprintf("%s more queues were seen for the first time.", count(n-5)))
	}
	t.Doubt = sentences(t.Warnings)
}

// position says where a week lies in the limits of chance.
func (t *Trend) position(w *Week) string {
	labelled := 0
	for i := range t.Weeks {
		if t.Weeks[i].Rate.N > 0 {
			labelled++
		}
	}
	centre := "the " + percent(t.Centre) + " of all weeks"
	switch {
	case labelled < 2:
		return "with no other week to compare with"
	case w.Out && w.Rate.Rate > t.Centre:
		return "more than chance explains around " + centre
	case w.Out:
		return "fewer than chance explains around " + centre
	}
	return "inside the limits of chance around " + centre
}

// changeWords takes the change from the week before apart.
func (t *Trend) changeWords(week, before string, c *WeekChange) string {
	s := fmt.Sprintf("Against %s: %s points (%s to %s)", before, points(c.Difference), points(c.Low), points(c.High))
	if c.Low <= 0 && c.High >= 0 {
		s += ", not told from chance"
	}
	if c.LengthMix.Defined() {
		s += fmt.Sprintf("; %s because mail has other lengths, %s at the same lengths", points(c.LengthMix), points(c.Within))
	}
	return s + "."
}

// Terminal writes the trend for a terminal.
func (t *Trend) Terminal(out io.Writer, o TermOptions) error { return t.sheet().terminal(out, o) }

// Markdown writes the trend for a chat message or a mail.
func (t *Trend) Markdown(out io.Writer) error { return t.sheet().markdown(out) }

// HTML writes the trend as one file that asks the network for nothing.
func (t *Trend) HTML(out io.Writer) error { return t.sheet().html(out) }

// JSON writes the trend's numbers.
func (t *Trend) JSON(out io.Writer) error { return writeJSON(out, t) }

func (t *Trend) sheet() *sheet {
	last := &t.Weeks[len(t.Weeks)-1]
	span := t.Weeks[0].Name
	if len(t.Weeks) > 1 {
		span += " to " + last.Name
	}
	lead, rest, _ := strings.Cut(t.Headline, ": ")
	s := &sheet{
		title: "Misroutes, " + span, eyebrow: "Trend · " + span, lead: lead + ":", rest: rest + ".",
		fine: (!last.Out || last.Rate.Rate < t.Centre) && !(t.Slope != nil && t.Slope.P < t.options.Alpha && t.Slope.Slope > 0), lede: t.Findings, doubt: t.Doubt, facts: t.facts(),
	}
	weeks := sheetSection{id: "weeks", nav: "By week", heading: t.weeksHeading(), tables: []*table.Table{t.weekTable()}, notes: t.weekNotes()}
	if t.Centre.Defined() {
		weeks.figure = t.weeksChart()
		weeks.caption = "Misroute rate by week with its interval. The band is where chance alone would keep it, by each week's number of messages; the dotted line is the rate of all weeks."
	}
	s.sections = append(s.sections, weeks)
	if len(t.Weeks) > 1 {
		s.sections = append(s.sections, sheetSection{id: "why", nav: "Other mail or another router", heading: "Did the mail change, or the routing?", tables: []*table.Table{t.changeTable()},
			notes: []string{"Each change is the sum of two parts: mail of other lengths (or queues), and messages of the same length (or queue) going wrong more or less often."}})
	}
	s.sections = append(s.sections, sheetSection{id: "length", nav: "By length", heading: t.lengthHeading(), tables: []*table.Table{t.lengthTable()}, notes: []string{"Share of all scored messages."}})
	if len(t.Queues) > 0 {
		s.sections = append(s.sections, sheetSection{id: "queues", nav: "By queue", heading: t.queueHeading(), tables: []*table.Table{t.queueTable()}, notes: t.queueNotes()})
	}
	return s
}

func (t *Trend) weeksHeading() string {
	out := 0
	for i := range t.Weeks {
		if t.Weeks[i].Out {
			out++
		}
	}
	switch {
	case !t.Centre.Defined():
		return "No week has labels"
	case len(t.Weeks) == 1:
		return "One week"
	case out == 0:
		return "No week is outside of what chance explains"
	}
	return plural(out, "week is", "weeks are") + " outside of what chance explains"
}

func (t *Trend) weeksChart() template.HTML {
	w := &chart.Weeks{Title: t.Headline, Centre: float64(t.Centre)}
	names := shortNames(t.Weeks)
	for i := range t.Weeks {
		x := &t.Weeks[i]
		y := chart.Week{Label: names[i], Sub: "no labels", Out: x.Out}
		if x.Rate.N > 0 {
			y.Sub = count(x.Rate.Wrong) + " of " + count(x.Rate.N)
			y.Rate = &chart.Point{Value: float64(x.Rate.Rate), Low: float64(x.Rate.Low), High: float64(x.Rate.High), Few: x.Rate.Few}
			y.Low, y.High = float64(x.Limits.Low), float64(x.Limits.High)
		}
		w.Weeks = append(w.Weeks, y)
	}
	return w.Markup()
}

// shortNames fits weeks over a column or under a point: without the year where all have the same
// one, and clipped where a run without dates has a long name.
func shortNames(weeks []Week) []string {
	const year = len("2026-")
	same := true
	for i := range weeks {
		n := weeks[i].Name
		same = same && len(n) == len("2026-W47") && n[year] == 'W' && n[:year] == weeks[0].Name[:year]
	}
	names := make([]string, len(weeks))
	for i := range weeks {
		names[i] = table.Fit(table.Clean(weeks[i].Name), 12)
		if same {
			names[i] = weeks[i].Name[year:]
		}
	}
	return names
}

func (t *Trend) weekTable() *table.Table {
	r := table.Right
	wide := table.InHTML | table.InCSV | table.InMarkdown
	c := &table.Table{Caption: "Misroutes by week", Columns: []table.Column{
		{Head: "week", Max: 28}, {Head: "messages", Align: r, In: wide}, {Head: "labelled", Align: r}, {Head: "wrong", Align: r}, {Head: "rate", Align: r},
		{Head: confidence(t.options.Alpha) + " interval", Align: r}, {Head: "limits of chance", Align: r}, {Head: ""},
		{Head: "cut", Align: r, In: wide}, {Head: "rejected", Align: r, In: wide},
	}}
	if t.options.Costs != nil {
		c.Columns = append(c.Columns, table.Column{Head: "cost", Align: r})
	}
	for i := range t.Weeks {
		w := &t.Weeks[i]
		limits, mark, class := "-", "", ""
		if w.Limits != nil && len(t.Weeks) > 1 {
			limits = interval(w.Limits.Low, w.Limits.High)
		}
		if w.Out {
			mark, class = "above", "bad"
			if w.Rate.Rate < t.Centre {
				mark, class = "below", "good"
			}
		}
		cells := []table.Cell{cell(w.Name), cell(count(w.Scored)), counted(w.Rate), {Text: count(w.Rate.Wrong), Class: class}, cell(percent(w.Rate.Rate)), cell(w.Rate.interval())}
		cells = append(cells, cell(limits), table.Cell{Text: mark, Class: class}, cell(percent(ratio(stats.Ratio{Num: w.Cut, Den: w.Scored}))), cell(count(w.Rejected)))
		if w.Cost != nil {
			cells = append(cells, cell(decimals(Number(w.Cost.Sum), 1)))
		}
		c.AddRow(rowClass(w.Rate), cells...)
	}
	return c
}

func (t *Trend) weekNotes() []string {
	var notes []string
	if t.Centre.Defined() && len(t.Weeks) > 1 {
		notes = append(notes, fmt.Sprintf("Limits: three standard errors around %s, by each week's number of messages and a design effect of %s for threads.", percent(t.Centre), decimals(t.Effect, 2)))
	}
	for i := range t.Weeks {
		if w := &t.Weeks[i]; w.Rate.Few && w.Rate.N > 0 {
			return append(notes, fmt.Sprintf("%s fewer than %d messages: no ranking.", fewMark, few))
		}
	}
	return notes
}

func (t *Trend) changeTable() *table.Table {
	r := table.Right
	wide := table.InHTML | table.InCSV | table.InMarkdown
	c := &table.Table{Caption: "Change from week to week, taken apart", Columns: []table.Column{
		{Head: "week", Max: 28}, {Head: "points", Align: r}, {Head: confidence(t.options.Alpha) + " interval", Align: r}, {Head: "", In: table.InText | table.InMarkdown | table.InHTML},
		{Head: "other lengths", Align: r}, {Head: "same lengths", Align: r}, {Head: "other queues", Align: r, In: wide}, {Head: "same queues", Align: r, In: wide},
	}}
	for i := 1; i < len(t.Weeks); i++ {
		x := t.Weeks[i].Change
		if x == nil {
			c.Add(t.Weeks[i].Name, "-", "-", "", "-", "-", "-", "-")
			continue
		}
		mark := ""
		if x.Low <= 0 && x.High >= 0 {
			mark = "~"
		}
		c.Add(t.Weeks[i].Name, points(x.Difference), points(x.Low)+" to "+points(x.High), mark,
			points(x.LengthMix), points(x.Within), points(x.QueueMix), points(x.WithinQueues))
	}
	return c
}

func (t *Trend) lengthHeading() string {
	if d := t.LengthDrift; d != nil && d.P < t.options.Alpha {
		return "The last week's mail has other lengths"
	}
	return "Lengths of the mail"
}

// shownWeeks are the weeks that fit a table side by side: the last ones.
func (t *Trend) shownWeeks() []Week {
	const most = 6
	return t.Weeks[max(0, len(t.Weeks)-most):]
}

func (t *Trend) lengthTable() *table.Table {
	c := &table.Table{Caption: "Lengths by week", Columns: []table.Column{{Head: t.Unit}}}
	weeks := t.shownWeeks()
	for _, name := range shortNames(weeks) {
		c.Columns = append(c.Columns, table.Column{Head: name, Align: table.Right})
	}
	for b, label := range t.Buckets {
		cells := []string{label}
		for i := range weeks {
			cells = append(cells, percent(ratio(stats.Ratio{Num: weeks[i].Lengths[b].Scored, Den: weeks[i].Scored})))
		}
		c.Add(cells...)
	}
	for _, row := range []struct {
		name string
		of   func(*Week) Number
	}{{"median", func(w *Week) Number { return w.Median }}, {"90 % up to", func(w *Week) Number { return w.Ninetyth }}} {
		cells := []string{row.name}
		for i := range weeks {
			cells = append(cells, decimals(row.of(&weeks[i]), 0))
		}
		c.Add(cells...)
	}
	return c
}

func (t *Trend) queueHeading() string {
	if d := t.QueueDrift; d != nil && d.P < t.options.Alpha {
		return "The last week's mail belongs to other queues"
	}
	return "Queues by week"
}

func (t *Trend) queueTable() *table.Table {
	c := &table.Table{Caption: "Misroutes of labelled messages by queue and week", Columns: []table.Column{{Head: "queue", Max: 24}}}
	weeks := t.shownWeeks()
	from := len(t.Weeks) - len(weeks)
	for _, name := range shortNames(weeks) {
		c.Columns = append(c.Columns, table.Column{Head: name, Align: table.Right})
	}
	drift := t.QueueDrift != nil
	if drift {
		c.Columns = append(c.Columns, table.Column{Head: "share before", Align: table.Right, In: table.InHTML | table.InCSV | table.InMarkdown}, table.Column{Head: "share", Align: table.Right}, table.Column{Head: "q", Align: table.Right})
	}
	for i := range t.Queues {
		q := &t.Queues[i]
		cells := []table.Cell{cell(q.Name)}
		for j := range weeks {
			x := q.Weeks[from+j]
			cells = append(cells, cell(count(x.Wrong)+"/"+count(x.N)))
		}
		if drift {
			cells = append(cells, cell(percent(q.Before)), cell(percent(q.Last)), cell(significance(float64(q.Q), t.options.Alpha)))
		}
		c.AddRow("", cells...)
	}
	return c
}

func (t *Trend) queueNotes() []string {
	if t.QueueDrift == nil {
		return nil
	}
	return []string{"Share of the labelled messages in the last week, with the false discovery rate q of its change against all weeks before (exploratory); ~ not told from chance."}
}

func (t *Trend) facts() []fact {
	var facts []fact
	for i := range t.Weeks {
		w := &t.Weeks[i]
		var lines []string
		for _, r := range w.Runs {
			lines = append(lines, fmt.Sprintf("%s, %s, run %s, misroute %s", r.Model, r.Setting, short(r.RunID), r.Version))
		}
		facts = append(facts, fact{w.Name, clipList(lines, 3)})
	}
	return append(facts, fact{"Statistics", fmt.Sprintf("%s; intervals Wilson and Newcombe, %s; steady change Cochran–Armitage; split Kitagawa; nothing drawn at random",
		plural(len(t.Tests), "test", "tests"), confidence(t.options.Alpha))})
}
