package reports

import (
	"cmp"
	"fmt"
	"slices"

	"misroute/reports/stats"
)

// Sweep is what other caps and strategies would have done with the same messages.
type Sweep struct {
	N        int             `json:"n"`       // labelled messages that every setting answers for
	Missing  int             `json:"missing"` // labelled messages left out because one does not
	Cost     string          `json:"cost"`    // what Price is: FLOPs, or tokens where the router counts none
	Settings []SettingResult `json:"settings"`
	Tests    int             `json:"tests"` // in the family that Holm's correction covers

	// The fixed sequence: caps of the run's strategy against the largest reading, from the largest
	// down, stopped at the first that is not shown to be as good.
	Sequence []SequenceStep `json:"sequence"`
	Smallest int            `json:"smallest_cap"` // that is not worse; 0: none below the largest
	Answer   string         `json:"answer"`

	lead, rest string // the answer as a headline
}

// SettingResult is one setting of the sweep.
type SettingResult struct {
	Name     string `json:"name"`
	Cap      int    `json:"cap"` // 0: whole
	Strategy string `json:"strategy"`
	Now      bool   `json:"now,omitempty"` // the run's own
	Rate
	Cut       int     `json:"cut"`
	CutShare  Number  `json:"cut_share"`
	Cells     Number  `json:"mean_cells"`
	FLOPs     Number  `json:"mean_flops"`
	Millis    Number  `json:"mean_ms"` // measured for cut messages, by FLOPs for the others
	Price     Number  `json:"mean_price"`
	Cost      Number  `json:"cost"` // of its misroutes, with a costs file
	Dominated bool    `json:"dominated"`
	Test      *Versus `json:"against_now,omitempty"`
	Saved     *Saving `json:"per_misroute_saved,omitempty"`
}

// Versus compares a setting with the run's own.
type Versus struct {
	stats.Paired
	Holm    float64 `json:"holm_p"`
	Verdict string  `json:"verdict"` // better, worse, ~
}

// Saving is what a misroute saved costs, for a setting that is dearer than the run's own.
type Saving struct {
	Saved    int    `json:"saved"`
	PerSaved Number `json:"price_per_saved"` // undefined where the interval of Saved includes 0
	Low      Number `json:"low"`
	High     Number `json:"high"`
	Millis   Number `json:"ms_per_saved"`
}

// SequenceStep is one cap of the fixed sequence.
type SequenceStep struct {
	Cap       int             `json:"cap"`
	Test      stats.Paired    `json:"test"` // baseline the largest reading
	Judgement stats.Judgement `json:"judgement"`
	Reached   bool            `json:"reached"` // no earlier step failed
}

// sweepTable holds every message's answer under every setting.
type sweepTable struct {
	t       *tally
	rows    []*line
	of      []int32 // cluster of each row
	n       int     // clusters
	list    []setting
	answers [][]answer // by setting, then row
	now     int
}

// sweep compares the settings of a run that has several; nil for one that has not.
func (t *tally) sweep(w *Weekly) *Sweep {
	s := t.settings()
	named := 0
	for _, at := range s.list {
		if at.cap > 0 {
			named++
		}
	}
	if named < 2 {
		return nil
	}
	x := t.sweepTable(s)
	sw := &Sweep{N: len(x.rows), Missing: len(t.judged) - len(x.rows), Cost: "FLOPs", Settings: []SettingResult{}, Sequence: []SequenceStep{}}
	if len(x.rows) == 0 {
		sw.lead, sw.rest = "No labelled message", "was read by every setting: there is nothing to compare."
		sw.Answer = sw.lead + " " + sw.rest
		return sw
	}
	sw.settings(x)
	sw.compare(x)
	sw.sequence(x)
	sw.lead, sw.rest = sw.sayAnswer(x)
	sw.Answer = sw.lead + " " + sw.rest
	for _, r := range sw.Settings {
		if r.Test != nil {
			w.Tests = append(w.Tests, Test{Name: r.Name + " against " + x.list[x.now].String(), Method: "sign flip by thread, Holm over settings", N: r.Test.N, P: r.Test.P(), Adjusted: Number(r.Test.Holm)})
		}
	}
	for _, step := range sw.Sequence {
		if step.Reached {
			w.Tests = append(w.Tests, Test{Name: fmt.Sprintf("cap %d not worse than the largest reading", step.Cap), Method: "Bonett-Price bound below the margin, fixed sequence", N: step.Test.N, P: step.Test.P(), Adjusted: undefined})
		}
	}
	return sw
}

func (t *tally) sweepTable(s *settings) *sweepTable {
	x := &sweepTable{t: t, list: s.list, answers: make([][]answer, len(s.list)), now: -1}
	for i, at := range s.list {
		if at == s.run || s.run.cap == 0 && at.cap == 0 {
			x.now = i
		}
	}
	line := make([]answer, len(s.list))
rows:
	for _, r := range t.judged {
		for i, at := range s.list {
			a, ok := s.at(r, at)
			if !ok {
				continue rows
			}
			line[i] = a
		}
		x.rows = append(x.rows, r)
		for i := range line {
			x.answers[i] = append(x.answers[i], line[i])
		}
	}
	x.of, x.n = clusters(x.rows)
	return x
}

func (x *sweepTable) wrong(setting, row int) bool {
	return x.answers[setting][row].prediction != x.rows[row].label
}

// price is what a reading costs: FLOPs, or tokens where the router counts none.
func (x *sweepTable) price(a answer, flops bool) float64 {
	if flops {
		return float64(a.flops)
	}
	return float64(a.kept)
}

// settings fills one line a setting.
func (sw *Sweep) settings(x *sweepTable) {
	flops := false
	for _, answers := range x.answers {
		for _, a := range answers {
			flops = flops || a.flops > 0
		}
	}
	if !flops {
		sw.Cost = "tokens"
	}
	n := float64(len(x.rows))
	perFLOP := undefined
	m := x.t.in.measured()
	if m != nil && m.MeanScoreMillis > 0 && x.now >= 0 {
		sum := 0.0
		for _, a := range x.answers[x.now] {
			sum += float64(a.flops)
		}
		if sum > 0 {
			perFLOP = Number(m.MeanScoreMillis * n / sum)
		}
	}
	options := make([]stats.Option, len(x.list))
	for i, at := range x.list {
		r := SettingResult{Name: at.String(), Cap: at.cap, Strategy: at.strategy, Now: i == x.now, Millis: undefined, Cost: undefined}
		if x.t.o.Costs != nil {
			r.Cost = 0
		}
		if at.cap == 0 {
			r.Strategy = x.t.run.Reference
		}
		wrong, cells, uncut, price, total := 0, 0.0, 0.0, 0.0, 0.0
		for k, a := range x.answers[i] {
			if x.wrong(i, k) {
				wrong++
				if x.t.o.Costs != nil {
					r.Cost += Number(x.t.cost(x.rows[k].label, a.prediction))
				}
			}
			if a.cut {
				r.Cut++
			} else {
				uncut += float64(a.flops)
			}
			cells += float64(a.cells)
			total += float64(a.flops)
			price += x.price(a, flops)
		}
		r.Rate = newRate(wrong, len(x.rows), few)
		r.CutShare, r.Cells, r.FLOPs, r.Price = Number(float64(r.Cut)/n), Number(cells/n), Number(total/n), Number(price/n)
		if perFLOP.Defined() {
			if each, ok := m.BySetting[at.timing()]; ok && i != x.now && at.cap > 0 {
				r.Millis = (Number(each)*Number(r.Cut) + perFLOP*Number(uncut)) / Number(n)
			} else {
				r.Millis = perFLOP * r.FLOPs
			}
		}
		options[i] = stats.Option{Cost: price, Loss: float64(wrong)}
		sw.Settings = append(sw.Settings, r)
	}
	for i, dominated := range stats.Dominated(options) {
		sw.Settings[i].Dominated = dominated
	}
}

// paired compares two settings over the same messages.
func (x *sweepTable) paired(baseline, candidate int) stats.Paired {
	pairs := make([]stats.PairCluster, x.n)
	for k := range x.rows {
		p := &pairs[x.of[k]]
		p.N++
		switch b, c := x.wrong(baseline, k), x.wrong(candidate, k); {
		case c && !b:
			p.B++
		case b && !c:
			p.C++
		}
	}
	return stats.ComparePaired(pairs, x.t.o.Alpha, stats.Resampling{Seed: x.t.o.Seed})
}

// compare tests every setting against the run's own, one family under Holm's correction.
func (sw *Sweep) compare(x *sweepTable) {
	if x.now < 0 {
		return
	}
	var p []float64
	var at []int
	for i := range sw.Settings {
		if i == x.now {
			continue
		}
		v := &Versus{Paired: x.paired(x.now, i), Verdict: "~"}
		sw.Settings[i].Test = v
		p, at = append(p, v.P()), append(at, i)
	}
	sw.Tests = len(p)
	for k, adjusted := range stats.Holm(p) {
		r := &sw.Settings[at[k]]
		r.Test.Holm = adjusted
		if adjusted < x.t.o.Alpha && !r.Few {
			r.Test.Verdict = "better"
			if r.Test.Difference > 0 {
				r.Test.Verdict = "worse"
			}
		}
		if r.Price > sw.Settings[x.now].Price {
			r.Saved = x.saving(at[k], sw)
		}
	}
}

// saving prices the misroutes that a dearer setting saves.
func (x *sweepTable) saving(candidate int, sw *Sweep) *Saving {
	saved, extra := make([]int, x.n), make([]float64, x.n)
	flops := sw.Cost == "FLOPs"
	for k := range x.rows {
		c := x.of[k]
		saved[c] += truth(x.wrong(x.now, k)) - truth(x.wrong(candidate, k))
		extra[c] += x.price(x.answers[candidate][k], flops) - x.price(x.answers[x.now][k], flops)
	}
	r := stats.PerMisrouteSaved(saved, extra, x.t.o.Alpha, stats.Resampling{Seed: x.t.o.Seed})
	s := &Saving{Saved: r.Saved, PerSaved: undefined, Low: undefined, High: undefined, Millis: undefined}
	if r.Defined {
		s.PerSaved, s.Low, s.High = Number(r.PerSaved), Number(r.Interval.Low), Number(r.Interval.High)
		now, then := sw.Settings[x.now], sw.Settings[candidate]
		if now.Millis.Defined() && then.Millis.Defined() && r.Saved != 0 {
			s.Millis = (then.Millis - now.Millis) * Number(len(x.rows)) / Number(r.Saved)
		}
	}
	return s
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sequence works through the caps of the run's strategy, from the largest down.
func (sw *Sweep) sequence(x *sweepTable) {
	var at []int
	for i, s := range x.list {
		if s.cap == 0 || s.strategy == x.t.run.Strategy {
			at = append(at, i)
		}
	}
	if len(at) < 2 {
		return
	}
	slices.SortFunc(at, func(a, b int) int { return -cmp.Compare(a, b) }) // list rises by cap
	passed := make([]bool, 0, len(at)-1)
	for _, i := range at[1:] {
		test := x.paired(at[0], i)
		identical := test.Changed() == 0 && sw.Settings[i].Cut == sw.Settings[at[0]].Cut
		step := SequenceStep{Cap: x.list[i].cap, Test: test, Judgement: stats.Judge(&test, x.t.o.Margin, identical)}
		step.Reached = stats.FixedSequence(passed) == len(passed)
		passed = append(passed, step.Judgement.Verdict == stats.Pass)
		sw.Sequence = append(sw.Sequence, step)
	}
	if k := stats.FixedSequence(passed); k > 0 {
		sw.Smallest = sw.Sequence[k-1].Cap
	}
}

// sayAnswer is the answer of a sweep in one sentence, in the two parts of a headline.
func (sw *Sweep) sayAnswer(x *sweepTable) (lead, rest string) {
	if len(sw.Sequence) == 0 {
		return "One cap", "was tested: there is no smaller one to choose."
	}
	largest := "reading the whole message"
	if last := x.list[len(x.list)-1]; last.cap > 0 {
		largest = "a cap of " + count(last.cap)
	}
	margin := bare(Number(x.t.o.Margin)) + " points"
	if sw.Smallest > 0 {
		i := slices.IndexFunc(sw.Sequence, func(s SequenceStep) bool { return s.Cap == sw.Smallest })
		most := bare(Number(max(0, sw.Sequence[i].Test.Interval.High)))
		return count(sw.Smallest) + " tokens", fmt.Sprintf("is the smallest cap, by %s, that is not worse than %s: misroutes are %s points more at most, inside of the margin of %s.", x.t.run.Strategy, largest, most, margin)
	}
	first := sw.Sequence[0]
	if first.Judgement.Verdict == stats.Regression {
		return "No smaller cap", fmt.Sprintf("is as good as %s: at %s misroutes are %s points more (%s).", largest, count(first.Cap), bare(Number(first.Test.Difference)), signedInterval(first.Test.Interval.Low, first.Test.Interval.High))
	}
	rest = fmt.Sprintf("is shown to be as good as %s: at %s misroutes could be %s points more, past the margin of %s", largest, count(first.Cap), bare(Number(first.Test.Interval.High)), margin)
	if first.Judgement.Needed > 0 {
		rest += fmt.Sprintf("; about %s messages would decide it", count(first.Judgement.Needed))
	}
	return "No smaller cap", rest + "."
}

// best is the setting that is better than the run's own for the least, and false when none is.
func (sw *Sweep) best() (SettingResult, bool) {
	var found *SettingResult
	for i := range sw.Settings {
		r := &sw.Settings[i]
		if r.Test == nil || r.Test.Verdict != "better" {
			continue
		}
		if found == nil || r.Price < found.Price || r.Price == found.Price && r.Wrong < found.Wrong {
			found = r
		}
	}
	if found == nil {
		return SettingResult{}, false
	}
	return *found, true
}

// now is the run's own setting.
func (sw *Sweep) now() (SettingResult, bool) {
	i := slices.IndexFunc(sw.Settings, func(r SettingResult) bool { return r.Now })
	if i < 0 {
		return SettingResult{}, false
	}
	return sw.Settings[i], true
}

// sayDo advises between the settings.
func (sw *Sweep) sayDo() string {
	now, ok := sw.now()
	if !ok || sw.N == 0 {
		return ""
	}
	best, better := sw.best()
	if !better {
		if sw.Smallest > 0 && now.Cap > 0 && sw.Smallest < now.Cap {
			return "The cap can come down: " + sw.Answer
		}
		return fmt.Sprintf("Leave the setting as it is: none of %s is shown to be better (%s, Holm).", plural(sw.Tests, "other", "others"), plural(sw.Tests, "test", "tests"))
	}
	d := fmt.Sprintf("difference %s points, %s; %s, Holm", points(Number(best.Test.Difference)), signedInterval(best.Test.Interval.Low, best.Test.Interval.High), plural(sw.Tests, "test", "tests"))
	fewer := plural(now.Wrong-best.Wrong, "misroute fewer", "misroutes fewer")
	ratio := float64(best.Price / now.Price)
	switch {
	case best.Cap == now.Cap && ratio < 1.02:
		return fmt.Sprintf("Keep the cap at %s but read %s: %s at the same cost (%s).", count(best.Cap), best.Strategy, fewer, d)
	case ratio < 1.02:
		return fmt.Sprintf("Change to %s: %s, and no dearer (%s).", best.Name, fewer, d)
	case best.Cap == 0:
		return fmt.Sprintf("Read messages whole: %s for %s times the cost (%s).", fewer, decimals(Number(ratio), 1), d)
	}
	return fmt.Sprintf("Change to %s: %s for %s times the cost (%s).", best.Name, fewer, decimals(Number(ratio), 1), d)
}

// sayHeading is what the trade says.
func (sw *Sweep) sayHeading() string {
	now, ok := sw.now()
	best, better := sw.best()
	switch {
	case !ok || !better:
		return "What each cap costs, and what it buys"
	case best.Price <= now.Price*1.02:
		return upperFirst(best.Name) + " misroutes fewer than " + now.Name + ", for no more"
	}
	return upperFirst(best.Name) + " misroutes fewer than " + now.Name + ", for more"
}

// saySaving prices the misroutes that the best dearer setting saves.
func (sw *Sweep) saySaving() string {
	now, ok := sw.now()
	if !ok {
		return ""
	}
	for _, r := range sw.Settings {
		s := r.Saved
		if s == nil || r.Dominated || s.Saved <= 0 {
			continue
		}
		if !s.PerSaved.Defined() {
			return fmt.Sprintf("From %s to %s, what a misroute saved costs is undefined: the interval of the saving includes 0.", now.Name, r.Name)
		}
		text := fmt.Sprintf("From %s to %s, a misroute saved costs %s%s (%s to %s)", now.Name, r.Name, magnitude(float64(s.PerSaved)), sw.unit(), magnitude(float64(s.Low)), magnitude(float64(s.High)))
		if s.Millis.Defined() {
			text += fmt.Sprintf(", about %s ms", decimals(s.Millis, 1))
		}
		return text + "."
	}
	return ""
}

// unit follows a magnitude: "5.61 GFLOP", "120 tokens".
func (sw *Sweep) unit() string {
	if sw.Cost == "FLOPs" {
		return "FLOP"
	}
	return " tokens"
}
