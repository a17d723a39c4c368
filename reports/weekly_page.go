package reports

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"misroute/reports/chart"
)

// HTML writes the report as one file that asks the network for nothing.
func (w *Weekly) HTML(out io.Writer) error {
	p := &page{
		Title: "Misroutes", Eyebrow: w.eyebrow(), Lead: w.words.lead, Rest: w.words.rest + ".", Fine: w.Total.N > 0 && w.Total.Wrong == 0,
		Do: w.Do, Doubt: w.Doubt, Cards: w.cards(), Facts: w.facts(),
	}
	if w.Week != "" {
		p.Title += ", " + w.Week
	}
	if w.Total.N > 0 {
		p.Lede = []string{"That is " + percent(w.Total.Rate) + " (95 % interval " + w.Total.interval() + ")."}
	}
	switch {
	case len(w.Findings) > 0 && len(p.Lede) > 0:
		p.Lede[0] += " " + w.Findings[0]
		p.Lede = append(p.Lede, w.Findings[1:]...)
	default:
		p.Lede = append(p.Lede, w.Findings...)
	}
	p.Sections = w.sections()
	return p.write(out)
}

func (w *Weekly) eyebrow() string {
	parts := []string{"Weekly misroute report"}
	if w.Week != "" {
		parts = append(parts, w.Week)
	}
	if m := w.Run.Model; m.Family == asRouted {
		parts = append(parts, "as routed, without a model")
	} else if m.Name != "" {
		parts = append(parts, "router "+name(m.Name))
	}
	if w.Run.Cap > 0 {
		parts = append(parts, "cap "+count(w.Run.Cap)+", "+w.Run.Strategy)
	}
	return strings.Join(parts, " · ")
}

func (w *Weekly) cards() []card {
	var cards []card
	if w.Total.N > 0 {
		cards = append(cards, card{percent(w.Total.Rate), "misrouted, 95 % interval " + w.Total.interval(), ""})
	}
	if c := w.Cut; c != nil {
		cards = append(cards, card{percent(c.Share), "of messages lost text to the cap", ""})
		if c.Table != nil {
			cards = append(cards, card{count(c.Table.Cost), "misroutes caused by the cut", "c2"}, card{count(c.Table.Helped), "saved by the cut", ""})
		}
	}
	if w.Cost != nil {
		cards = append(cards, card{decimals(Number(w.Cost.Sum), 1), "cost of all misroutes", ""})
	}
	if m := w.Measured; m != nil && m.MeanScoreMillis > 0 {
		cards = append(cards, card{decimals(Number(m.MeanScoreMillis), 1) + " ms", "a message, one core", ""})
	}
	return cards
}

func (w *Weekly) sections() []section {
	list := []section{w.lengthSection()}
	if w.Cut != nil && w.Cut.Table != nil {
		list = append(list, w.cutSection())
	}
	if w.Sweep != nil {
		var d *Depth
		if w.Cut != nil {
			d = w.Cut.Depth
		}
		list = append(list, w.Sweep.section(d, w.Run.Cap))
	}
	list = append(list, w.queueSection())
	if w.Calibration != nil {
		list = append(list, w.scoreSection())
	}
	if w.Total.N > 0 {
		list = append(list, w.messageSection())
	}
	return append(list, w.recordSection())
}

func (w *Weekly) lengthSection() section {
	s := section{ID: "length", Nav: "By length", Heading: w.words.length}
	if w.Total.N > 0 {
		l := w.lengthChart()
		fig := part{Figure: l.Markup(), Key: []keyEntry{{"cap", "at the cap"}}}
		if w.Cut == nil || w.Cut.Messages == 0 {
			fig.Key[0].Label = "misroute rate, 95 % interval"
		}
		for _, b := range w.Buckets {
			if b.Whole != nil {
				fig.Key = append(fig.Key, keyEntry{"whole", "read whole"})
				break
			}
		}
		if len(w.fewNote()) > 0 {
			fig.Key = append(fig.Key, keyEntry{"fewk", "grey: fewer than 30 messages, no ranking"})
		}
		s.Parts = append(s.Parts, fig)
	}
	s.Parts = append(s.Parts, part{Table: w.lengthTable().Markup(), Notes: w.fewNote()})
	var columns []part
	if c := w.Cut; c != nil && len(c.ByLost) > 0 {
		columns = append(columns, part{Heading: "By share of tokens lost", Table: w.lostTable().Markup()})
	}
	if len(w.Windows) > 0 {
		columns = append(columns, part{Heading: "By number of windows", Table: w.windowsTable().Markup()})
	}
	if len(columns) > 0 {
		s.Parts = append(s.Parts, part{Columns: columns})
	}
	return s
}

func (w *Weekly) lengthChart() *chart.Length {
	l := &chart.Length{Title: "Misroute rate by message length, with 95 % intervals: " + w.words.length, AxisNote: w.Unit + " in the whole message", Cut: -1}
	for i, b := range w.Buckets {
		g := chart.Group{Label: strings.ReplaceAll(strings.ReplaceAll(b.Label, "-", "–"), ">", "> "), Sub: "none"}
		if b.N > 0 {
			g.Sub = count(b.Wrong) + " of " + count(b.N)
			g.AtCap = estimate(b.Rate)
		}
		if b.Whole != nil {
			g.Whole = estimate(*b.Whole)
		}
		l.Groups = append(l.Groups, g)
		if w.Cut == nil || w.Cut.Cap == 0 || w.Unit != "tokens" || l.Cut >= 0 {
			continue
		}
		switch {
		case b.UpTo == w.Cut.Cap:
			l.Cut = float64(i + 1)
		case b.UpTo == 0 || b.UpTo > w.Cut.Cap:
			l.Cut = float64(i) + 0.5
		}
	}
	if l.Cut >= 0 {
		l.CutLabel = "past the cap: " + count(w.Cut.Cap) + " tokens"
		if len(w.Windows) > 0 {
			l.CutLabel = "in windows past " + count(w.Cut.Cap) + " tokens"
		}
	}
	return l
}

func estimate(r Rate) *chart.Point {
	return &chart.Point{Value: float64(r.Rate), Low: float64(r.Low), High: float64(r.High), Few: r.Few}
}

func (w *Weekly) cutSection() section {
	c := w.Cut
	s := section{ID: "cut", Nav: "Cost of the cut", Heading: w.words.cut}
	table := part{Heading: "Cut against whole, " + plural(c.Test.N, "message", "messages"), Table: w.counterfactualTable().Markup(), Class: "cf", Notes: w.testNotes()}
	columns := []part{table}
	if g := c.Gap; g != nil {
		parts := []chart.Part{
			{Label: "gap to messages not cut", Value: points(g.Total), Size: float64(g.Total), Class: "b-total"},
			{Label: "harder mail", Value: points(g.Harder), Size: float64(g.Harder), Class: "b-hard"},
			{Label: "the cut", Value: points(g.Cut), Size: float64(g.Cut), Class: "b-cut"},
		}
		if c.Placebo != nil && c.Placebo.Cost.Defined() {
			parts = append(parts, chart.Part{Label: "a placebo cut", Value: points(c.Placebo.Cost), Size: float64(c.Placebo.Cost), Class: "b-placebo"})
		}
		columns = append(columns, part{
			Heading: "The gap of cut mail, split exactly, in points",
			Figure:  chart.Split("The misroute rate of cut messages above the others: "+points(g.Total)+" points, of which "+points(g.Harder)+" harder mail and "+points(g.Cut)+" the cut", parts),
			Notes:   w.gapNotes(),
		})
	} else {
		columns[0].Notes = w.cutNotes()
	}
	if d := c.Depth; d != nil && w.Sweep == nil {
		columns = append(columns, depthPart(d, c.Cap))
	}
	s.Parts = append(s.Parts, part{Columns: columns})
	return s
}

func depthPart(d *Depth, limit int) part {
	steps := make([]chart.DepthStep, len(d.Steps))
	now := -1
	for i, x := range d.Steps {
		label := "whole"
		if x.Cap > 0 {
			label = strconv.Itoa(x.Cap)
		}
		steps[i] = chart.DepthStep{Label: label, Share: float64(x.Share)}
		if x.Cap == limit {
			now = i
		}
	}
	note := fmt.Sprintf("%s of %s never right; %s right at some cap and wrong at a larger one.", count(d.Never), plural(d.N, "message", "messages"), count(d.Back))
	return part{Heading: "Decision depth", Figure: chart.Depth("Share of messages right from a cap on", steps, now), Notes: []string{note}}
}

func (w *Weekly) queueSection() section {
	s := section{ID: "queues", Nav: "Queues", Heading: w.words.queues}
	s.Parts = append(s.Parts, part{Table: w.queueTable().Markup()})
	if w.Total.N == 0 {
		return s
	}
	if len(w.Pairs) > 0 {
		p := part{Heading: "Ways mail goes wrong", Table: w.pairTable(mostPairs).Markup()}
		if len(w.Pairs) > mostPairs {
			p.Notes = []string{fmt.Sprintf("%s more in %s.", count(len(w.Pairs)-mostPairs), "report.json")}
		}
		s.Parts = append(s.Parts, p)
	}
	if len(w.Confusion) > 1 && len(w.Queues) <= mostMatrix {
		s.Parts = append(s.Parts, part{Heading: "Confusion: rows belong to, columns went to", Table: w.confusionTable().Markup(), Class: "matrix"})
	}
	return s
}

func (w *Weekly) scoreSection() section {
	c, a := w.Calibration, w.Abstain
	s := section{ID: "scores", Nav: "Scores", Heading: w.words.scores}
	var bins []chart.ScorePoint
	for _, b := range c.Bins {
		bins = append(bins, chart.ScorePoint{Score: float64(b.Score), Point: chart.Point{Value: float64(b.Rate), Low: float64(b.From), High: float64(b.To), Few: b.Few}})
	}
	note := fmt.Sprintf("Expected calibration error %s points over %s.", bare(c.ECE), plural(c.N, "message", "messages"))
	if c.Temperature.Defined() {
		note += fmt.Sprintf(" A temperature of %s fits the labels best (loss %s to %s nats).", decimals(c.Temperature, 2), decimals(c.Before, 3), decimals(c.After, 3))
	}
	var curve []chart.RiskPoint
	for _, p := range a.Curve {
		curve = append(curve, riskPoint(p))
	}
	var marks []chart.RiskMark
	for _, p := range a.Points {
		if p.Threshold > 0 && !p.Few {
			marks = append(marks, chart.RiskMark{Label: fmt.Sprintf("%g", p.Threshold), RiskPoint: riskPoint(p)})
		}
	}
	s.Parts = []part{
		{Columns: []part{
			{Heading: "How often a score was right", Figure: chart.Reliability("Share of right predictions by mean score, with 95 % intervals", bins), Notes: []string{note}},
			{Heading: "If doubtful messages went to a person", Figure: chart.Risk("Misroutes among decided messages by share decided", curve, marks), Notes: []string{"Numbers at the line: the threshold below which the router would not decide."}},
		}},
		{Table: w.abstainTable().Markup()},
	}
	return s
}

func riskPoint(p CoverageAt) chart.RiskPoint {
	return chart.RiskPoint{Coverage: float64(p.Coverage), Point: *estimate(p.Rate)}
}

func (w *Weekly) messageSection() section {
	s := section{ID: "messages", Nav: "Messages", Heading: w.words.messages}
	intro := "Bar: the whole message; dark is what the router read, the line is the cut, the dot is the sentence that decides, where that was looked for."
	if !w.options.WithText {
		intro += " Text is left out; run with --with-text to see it."
	}
	s.Parts = append(s.Parts, part{Notes: []string{intro}})
	for _, x := range []struct {
		heading string
		list    []Example
		n       int
	}{
		{"Wrong at the cap, right when read whole", w.Caused, w.CausedN},
		{"Other misroutes, the surest first", w.Others, w.OthersN},
		{"Right at the cap, wrong when read whole", w.Saved, w.SavedN},
	} {
		if len(x.list) == 0 {
			continue
		}
		p := part{Heading: x.heading, Table: w.exampleTable(x.heading, x.list).Markup(), Class: "msgs"}
		if x.n > len(x.list) {
			p.Notes = []string{fmt.Sprintf("The first %s of %s.", count(len(x.list)), count(x.n))}
		}
		if w.options.WithText {
			p.More = texts(x.list)
		}
		s.Parts = append(s.Parts, p)
	}
	return s
}

func texts(list []Example) *more {
	m := &more{Summary: "Their text"}
	for _, e := range list {
		if e.Subject != "" || e.Text != "" {
			m.Texts = append(m.Texts, textBlock{Title: e.MessageID + " " + e.Subject, Text: e.Text})
		}
	}
	if len(m.Texts) == 0 {
		return nil
	}
	return m
}

func (w *Weekly) recordSection() section {
	s := section{ID: "records", Nav: "Records", Heading: w.words.rejected}
	for _, x := range []struct {
		heading string
		list    []Reason
	}{{"Rejected", w.Rejected}, {"Not scored", w.Skipped}, {"Read with a remark", w.Warned}} {
		if len(x.list) == 0 {
			continue
		}
		p := part{Heading: x.heading}
		list := x.list
		if len(list) > mostReasons {
			p.Notes = []string{fmt.Sprintf("%s more kinds in report.json.", count(len(list)-mostReasons))}
			list = list[:mostReasons]
		}
		p.Table = reasonTable(x.heading+" records, by reason", list).Markup()
		s.Parts = append(s.Parts, p)
	}
	s.Parts = append(s.Parts, part{Notes: []string{w.ledger() + "."}})
	return s
}
