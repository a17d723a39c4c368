package reports

import (
	"fmt"
	"strconv"

	"misroute/reports/chart"
	"misroute/reports/table"
)

// settingTable is the cap and strategy table.
func (sw *Sweep) settingTable() *table.Table {
	t := &table.Table{Caption: "Caps and strategies", Columns: []table.Column{
		{Head: "cap"}, {Head: "strategy"}, {Head: "cut", Align: table.Right}, {Head: "wrong", Align: table.Right}, {Head: "rate", Align: table.Right},
	}}
	measured, weighted := false, false
	for _, r := range sw.Settings {
		measured = measured || r.Millis.Defined()
		weighted = weighted || r.Cost.Defined()
	}
	if weighted {
		t.Columns = append(t.Columns, table.Column{Head: "cost", Align: table.Right})
	}
	if measured {
		t.Columns = append(t.Columns, table.Column{Head: "ms", Align: table.Right})
	}
	t.Columns = append(t.Columns, table.Column{Head: sw.costHead(), Align: table.Right},
		table.Column{Head: "cells", Align: table.Right, In: table.InHTML | table.InCSV | table.InMarkdown},
		table.Column{Head: "against now"}, table.Column{Head: "difference", Align: table.Right, In: table.InHTML | table.InCSV | table.InMarkdown},
		table.Column{Head: "per misroute saved", Align: table.Right, In: table.InCSV})
	best, better := sw.best()
	for _, r := range sw.Settings {
		limit, class := "whole", ""
		if r.Cap > 0 {
			limit = count(r.Cap)
		}
		against, verdict, difference := "now", "", ""
		if r.Test != nil {
			against, difference = r.Test.Verdict, fmt.Sprintf("%s (%s)", points(Number(r.Test.Difference)), signedInterval(r.Test.Interval.Low, r.Test.Interval.High))
			verdict = map[string]string{"better": "good", "worse": "bad"}[r.Test.Verdict]
		}
		switch {
		case r.Now:
			class = "now"
		case better && r.Name == best.Name:
			class = "best"
		}
		cells := []table.Cell{cell(limit), cell(r.Strategy), cell(percent(r.CutShare)), cell(count(r.Wrong)), cell(percent(r.Rate.Rate))}
		if weighted {
			cells = append(cells, cell(decimals(r.Cost, 1)))
		}
		if measured {
			cells = append(cells, cell(decimals(r.Millis, 2)))
		}
		saved := ""
		if s := r.Saved; s != nil && s.Saved > 0 {
			saved = "undefined"
			if s.PerSaved.Defined() {
				saved = magnitude(float64(s.PerSaved)) + " (" + magnitude(float64(s.Low)) + " to " + magnitude(float64(s.High)) + ")"
			}
		}
		cells = append(cells, cell(magnitude(float64(r.Price))), cell(magnitude(float64(r.Cells))), table.Cell{Text: against, Class: verdict}, cell(difference), cell(saved))
		t.AddRow(class, cells...)
	}
	return t
}

func (sw *Sweep) costHead() string {
	if sw.Cost == "FLOPs" {
		return "FLOP"
	}
	return "tokens"
}

// sequenceTable shows the fixed sequence with its end.
func (sw *Sweep) sequenceTable() *table.Table {
	t := &table.Table{Caption: "Caps against the largest reading, from the largest down", Columns: []table.Column{
		{Head: "cap"}, {Head: "worse", Align: table.Right}, {Head: "better", Align: table.Right},
		{Head: "difference, 95 %", Align: table.Right}, {Head: "verdict"},
	}}
	for _, s := range sw.Sequence {
		verdict := table.Cell{Text: "not tested"}
		class := "few"
		if s.Reached {
			class = ""
			switch word := s.Judgement.Verdict.String(); word {
			case "PASS":
				verdict = table.Cell{Text: "not worse", Class: "good"}
			case "REGRESSION":
				verdict = table.Cell{Text: "worse", Class: "bad"}
			default:
				verdict = table.Cell{Text: "cannot tell"}
			}
		}
		t.AddRow(class, cell(count(s.Cap)), cell(count(s.Test.B)), cell(count(s.Test.C)), cell(signedInterval(s.Test.Interval.Low, s.Test.Interval.High)), verdict)
	}
	return t
}

// tradeChart is the Pareto picture, with one colour a strategy.
func (sw *Sweep) tradeChart() (*chart.Trade, []keyEntry) {
	t := &chart.Trade{
		Title: "Misroutes against mean cost of a message, by cap and strategy", CostName: "mean cost of a message, " + sw.costHead() + " (log)",
		Cost: func(v float64) string { return magnitude(v) },
	}
	series := map[string]int{}
	var key []keyEntry
	best, better := sw.best()
	for _, r := range sw.Settings {
		name := r.Strategy
		if r.Cap == 0 {
			name = "whole"
		}
		at, ok := series[name]
		if !ok {
			at = min(len(series), 3) // the stylesheet has four; more strategies share the last
			series[name] = at
			key = append(key, keyEntry{"line ks" + strconv.Itoa(at), name})
		}
		label := r.Name
		if r.Now {
			label += " · now"
		}
		t.Settings = append(t.Settings, chart.Setting{
			Label: label, Series: at, Cost: max(float64(r.Price), 1), Wrong: r.Wrong, Low: float64(r.Low) * float64(r.N), High: float64(r.High) * float64(r.N),
			Dominated: r.Dominated, Now: r.Now, Named: r.Now || !r.Dominated || better && r.Name == best.Name,
		})
	}
	return t, key
}

// section draws the sweep as a part of a page.
func (sw *Sweep) section(d *Depth, limit int) section {
	s := section{ID: "sweep", Nav: "Caps and strategies", Heading: sw.sayHeading()}
	if sw.N == 0 {
		s.Parts = []part{{Notes: []string{sw.Answer}}}
		return s
	}
	trade, key := sw.tradeChart()
	s.Parts = append(s.Parts, part{Figure: trade.Markup(), Key: key}, part{Table: sw.settingTable().Markup(), Notes: sw.notes()})
	columns := []part{{Heading: "The smallest cap that is not worse", Table: sw.sequenceTable().Markup(), Notes: []string{sw.Answer}}}
	if d != nil {
		columns = append(columns, depthPart(d, limit))
	}
	s.Parts = append(s.Parts, part{Columns: columns})
	return s
}

func (sw *Sweep) notes() []string {
	var s []string
	s = append(s, fmt.Sprintf("Over %s; ~: not told from the setting in use (%s, Holm).", plural(sw.N, "labelled message", "labelled messages"), plural(sw.Tests, "test", "tests")))
	if saving := sw.saySaving(); saving != "" {
		s = append(s, saving)
	}
	if sw.Missing > 0 {
		s = append(s, fmt.Sprintf("%s left out: not read by every setting.", plural(sw.Missing, "labelled message is", "labelled messages are")))
	}
	return s
}
