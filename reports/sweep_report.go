package reports

import (
	"io"

	"misroute/pipeline/result"
	"misroute/reports/table"
)

// SweepReport is the report of a run at several caps and strategies: the same numbers as in the
// weekly report of that run, with the choice of the cap in front.
type SweepReport struct {
	Schema   int      `json:"schema_version"`
	Report   string   `json:"report"` // "sweep"
	Headline string   `json:"headline"`
	Findings []string `json:"findings"`
	Do       []string `json:"do"`
	Doubt    []string `json:"doubt"`

	Week     string            `json:"week"`
	Total    Rate              `json:"total"` // at the run's own setting
	Sweep    *Sweep            `json:"sweep"`
	Cut      *Cut              `json:"cut,omitempty"`
	Buckets  []Bucket          `json:"buckets"`
	Run      result.Run        `json:"run"`
	Measured *result.Measured  `json:"measured,omitempty"`
	Tests    []Test            `json:"tests"`
	Seeds    map[string]uint64 `json:"seeds"`
	Warnings []string          `json:"warnings"`

	weekly     *Weekly
	lead, rest string
}

// NewSweep computes the report of a sweep that was read whole.
func NewSweep(f *result.Folder, o Options) (*SweepReport, error) {
	w, err := NewWeekly(f, o)
	if err != nil {
		return nil, err
	}
	return w.SweepReport(), nil
}

// SweepReport is the same run's report with the choice of the cap in front. A run with one setting has
// no choice to report; its headline says so.
func (w *Weekly) SweepReport() *SweepReport {
	s := &SweepReport{
		Schema: SchemaVersion, Report: "sweep", Do: w.Do, Doubt: w.Doubt, Week: w.Week, Total: w.Total, Sweep: w.Sweep, Cut: w.Cut, Buckets: w.Buckets,
		Run: w.Run, Measured: w.Measured, Tests: nonNil(w.Tests), Seeds: w.Seeds, Warnings: w.Warnings, weekly: w,
	}
	s.lead, s.rest = "One setting", "was evaluated: there is nothing to choose from."
	if w.Sweep != nil {
		s.lead, s.rest = w.Sweep.lead, w.Sweep.rest
	}
	s.Headline = s.lead + " " + s.rest
	s.Findings = []string{"In use: " + w.Headline + "."}
	if c := w.Cut; c != nil && w.Total.Wrong > 0 {
		s.Findings = append(s.Findings, w.sayCounterfactual(c))
	}
	return s
}

// sheet lays the report out.
func (s *SweepReport) sheet() *sheet {
	w := s.weekly
	x := &sheet{
		title: "Caps and strategies", eyebrow: "Sweep · " + w.eyebrow(), lead: s.lead, rest: s.rest,
		lede: s.Findings, do: s.Do, doubt: s.Doubt, cards: w.cards(), facts: w.facts(),
	}
	if sw := s.Sweep; sw != nil && sw.N > 0 {
		trade, key := sw.tradeChart()
		x.sections = append(x.sections,
			sheetSection{id: "settings", nav: "Caps and strategies", heading: sw.sayHeading(), figure: trade.Markup(), key: key, tables: []*table.Table{sw.settingTable()}, notes: sw.notes()},
			sheetSection{id: "smallest", nav: "The smallest cap", heading: "Each cap against the largest reading, from the largest down", tables: []*table.Table{sw.sequenceTable()}})
	}
	if c := w.Cut; c != nil && c.Table != nil {
		cut := sheetSection{id: "cut", nav: "Cost of the cut", heading: w.words.cut, tables: []*table.Table{w.counterfactualTable()}, notes: w.cutNotes()}
		if c.Depth != nil {
			p := depthPart(c.Depth, c.Cap)
			cut.figure, cut.caption = p.Figure, "Decision depth. "+p.Notes[0]
		}
		x.sections = append(x.sections, cut)
	}
	x.sections = append(x.sections, sheetSection{id: "length", nav: "By length", heading: w.words.length, figure: w.lengthChart().Markup(), tables: []*table.Table{w.lengthTable()}, notes: w.fewNote()})
	return x
}

// Terminal writes the report for a terminal.
func (s *SweepReport) Terminal(out io.Writer, o TermOptions) error { return s.sheet().terminal(out, o) }

// HTML writes the report as one page that asks the network for nothing.
func (s *SweepReport) HTML(out io.Writer) error { return s.sheet().html(out) }

// Markdown writes the report for a chat message or a mail.
func (s *SweepReport) Markdown(out io.Writer) error { return s.sheet().markdown(out) }

// JSON writes the report's numbers.
func (s *SweepReport) JSON(out io.Writer) error { return writeJSON(out, s) }
