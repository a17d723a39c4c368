package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"misroute/pipeline/result"
	"misroute/reports/cohort"
	"misroute/reports/stats"
)

// number gives the pairs their queues, buckets and threads.
func (w *comparison) number() error {
	w.unit()
	lengths := make([]int, len(w.pairs))
	var caps []int
	for i := range w.pairs {
		p := &w.pairs[i]
		p.length = lengthIn(w.c.Unit, p.base.Row)
		if w.c.LengthsOf == sideCandidate {
			p.length = lengthIn(w.c.Unit, p.cand.Row)
		}
		lengths[i] = p.length
		for _, r := range []*result.Row{w.pairs[i].base.Row, w.pairs[i].cand.Row} {
			if n := int(r.Cap); n > 0 && !slices.Contains(caps, n) {
				caps = append(caps, n)
			}
		}
	}
	buckets, err := bucketsAtCaps(w.o.Buckets, w.c.Unit, lengths, caps)
	if err != nil {
		return err
	}
	w.buckets = buckets
	w.queues = cohort.NewQueues(append(slices.Clone(w.base.folders), w.cand.folders...)...)
	if n := w.queues.Len(); n > mostQueues {
		return fmt.Errorf("%s queues among routers and labels, at most %s can be compared: are the labels queues?", count(n), count(mostQueues))
	}
	numberPairs(w.pairs, w.queues, w.buckets, w.o.Costs)
	for _, p := range w.pairs {
		if p.label >= 0 {
			w.judged = append(w.judged, p)
		}
	}
	w.c.Sets.Labelled = len(w.judged)
	return nil
}

// Units of length, and the sides of a comparison.
const (
	unitTokens     = "tokens"
	unitWords      = "words" // what an as-routed run, which has no tokenizer, counts instead
	unitCharacters = "characters"
	sideBaseline   = "baseline"
	sideCandidate  = "candidate"
)

// lengthUnit is what the lengths of runs have in common: tokens of their tokenizers, words where
// all were evaluated as routed, characters where some were, or where nobody counted more.
func lengthUnit(runs []*result.Folder) string {
	routed, counted := 0, true
	for _, f := range runs {
		if f.Run.Model.Family == asRouted {
			routed++
		}
		for i := range f.Rows {
			r := &f.Rows[i]
			counted = counted && (!r.Scored() || r.TokensTotal > 0 || r.TextChars == 0)
		}
	}
	switch {
	case !counted || routed > 0 && routed < len(runs):
		return unitCharacters
	case routed > 0:
		return unitWords
	}
	return unitTokens
}

// lengthIn is the length of a message in a unit.
func lengthIn(unit string, r *result.Row) int {
	if unit == unitCharacters {
		return int(r.TextChars)
	}
	return int(r.TokensTotal)
}

// unit decides what lengths are and whose: the baseline's, unless the candidate alone has tokens.
func (w *comparison) unit() {
	c := w.c
	c.LengthsOf, c.Unit = sideBaseline, lengthUnit(w.base.folders)
	if c.Unit != unitTokens && lengthUnit(w.cand.folders) == unitTokens {
		c.LengthsOf, c.Unit = sideCandidate, unitTokens
	}
}

// resampling is the options of everything drawn at random.
func (w *comparison) resampling() stats.Resampling {
	return stats.Resampling{Seed: w.o.Seed, Workers: w.o.Workers}
}

// contrast compares over the judged messages that belong.
func (w *comparison) contrast(kind, name string, belongs func(*pairedMessage) bool) Contrast {
	index := map[int32]int{}
	var clusters []stats.PairCluster
	var baseGroups, candGroups []stats.Group
	var mixing cohort.Mixing
	for i := range w.judged {
		p := &w.judged[i]
		if !belongs(p) {
			continue
		}
		at, ok := index[p.cluster]
		if !ok {
			at = len(clusters)
			index[p.cluster] = at
			clusters = append(clusters, stats.PairCluster{})
			baseGroups = append(baseGroups, stats.Group{})
			candGroups = append(candGroups, stats.Group{})
		}
		clusters[at].N++
		baseGroups[at].N++
		candGroups[at].N++
		b, c := p.baseWrong(), p.candWrong()
		if b {
			baseGroups[at].K++
		}
		if c {
			candGroups[at].K++
		}
		if c && !b {
			clusters[at].B++
		}
		if b && !c {
			clusters[at].C++
		}
		mixing.Add(p.base.run, p.base.Row)
	}
	return Contrast{
		Name: name, Kind: kind, Holm: undefined, Q: undefined,
		Base:  clusteredRate(stats.DesignEffect(baseGroups), w.o.Alpha),
		Cand:  clusteredRate(stats.DesignEffect(candGroups), w.o.Alpha),
		Pairs: stats.ComparePaired(clusters, w.o.Alpha, w.resampling()),
		Mixed: mixing.Mixed(),
	}
}

// clusteredRate is a Rate whose interval knows that messages of a thread depend on each other.
func clusteredRate(d stats.Design, alpha float64) Rate {
	r := newRate(d.K, d.N, few)
	ci := d.Interval(stats.ZOf(alpha))
	r.Low, r.High = Number(ci.Low), Number(ci.High)
	return r
}

// overall compares all labelled messages and applies the gate.
func (w *comparison) overall() {
	c := w.c
	c.Overall = w.contrast("overall", "all messages", func(*pairedMessage) bool { return true })
	c.Gate = stats.Judge(&c.Overall.Pairs, w.o.Margin, w.identical())
	c.Confirmed = c.Overall.Pairs.Decided()
	c.Tests = append(c.Tests, contrastTest(&c.Overall, "sign flips by thread"))

	routable := w.contrast("overall", "labels both routers know", func(p *pairedMessage) bool {
		return slices.Contains(p.base.run.Queues, p.base.Label) && slices.Contains(p.cand.run.Queues, p.base.Label)
	})
	if n := routable.Pairs.N; n != len(w.judged) && n > 0 {
		c.Routable = &routable
	}

	list := make([]stats.Pair, len(w.judged))
	costs := map[int32]*stats.CostCluster{}
	for i := range w.judged {
		p := &w.judged[i]
		list[i] = stats.Pair{Cluster: p.cluster, Label: int32(p.label), Base: int32(p.from), Cand: int32(p.to)}
		if costs[p.cluster] == nil {
			costs[p.cluster] = &stats.CostCluster{}
		}
		costs[p.cluster].N++
		costs[p.cluster].Base += p.baseCost
		costs[p.cluster].Cand += p.toCost
	}
	if d, ok := stats.CompareMacroF1(list, w.queues.Len(), w.o.Alpha, w.resampling()); ok {
		c.MacroF1 = &d
	}
	if w.o.Costs == nil {
		return
	}
	clusters := make([]stats.CostCluster, 0, len(costs))
	for _, k := range sortedKeys(costs) {
		clusters = append(clusters, *costs[k])
	}
	if d, ok := stats.CompareCost(clusters, w.o.Alpha, w.resampling()); ok {
		c.Severity = &d
		c.Tests = append(c.Tests, Test{Name: "severity", Method: "sign flips by thread", N: d.N, P: d.Cluster.P, Adjusted: undefined})
	}
}

// identical says that both runs gave every message the same answer with the same score. The
// tolerance lets two kernels of the same arithmetic, which sum in another order, count as the same.
func (w *comparison) identical() bool {
	const tolerance = 1e-3
	for i := range w.pairs {
		p := &w.pairs[i]
		if p.from != p.to || math.Abs(float64(p.base.Score-p.cand.Score)) > tolerance {
			return false
		}
	}
	return true
}

func contrastTest(c *Contrast, method string) Test {
	name := c.Kind + " " + c.Name
	if c.Kind == "overall" {
		name = c.Kind
	}
	return Test{Name: name, Method: method, N: c.Pairs.N, P: c.Pairs.P(), Adjusted: undefined}
}

// control looks for flips where there can be none: same model, same text, nothing cut.
func (w *comparison) control() {
	var c Unchanged
	for i := range w.pairs {
		p := &w.pairs[i]
		a, b := p.base.run, p.cand.run
		if a.Model.SHA256 == "" || a.Model.SHA256 != b.Model.SHA256 || a.Model.TokenizerSHA256 != b.Model.TokenizerSHA256 ||
			a.Quotes != b.Quotes || a.Subject != b.Subject || a.Precision != b.Precision {
			return
		}
		if p.base.Cut() || p.cand.Cut() || p.base.Windows > 1 || p.cand.Windows > 1 {
			continue
		}
		c.N++
		if p.from != p.to {
			c.Flips++
		}
	}
	w.c.Control = &c
}

// price divides what one run costs more by the misroutes it saves.
func (w *comparison) price() {
	extra := w.c.Candidate.FLOPs - w.c.Baseline.FLOPs
	if extra == 0 || w.c.Candidate.FLOPs == 0 || w.c.Baseline.FLOPs == 0 { // nobody knows what a deployed router costs
		return
	}
	sign, dearer := 1, sideCandidate
	if extra < 0 {
		sign, dearer = -1, sideBaseline
	}
	index := map[int32]int{}
	var saved []int
	var cost []float64
	for i := range w.judged {
		p := &w.judged[i]
		at, ok := index[p.cluster]
		if !ok {
			at = len(saved)
			index[p.cluster] = at
			saved, cost = append(saved, 0), append(cost, 0)
		}
		cost[at] += float64(sign) * float64(p.cand.FLOPs-p.base.FLOPs)
		if p.baseWrong() {
			saved[at] += sign
		}
		if p.candWrong() {
			saved[at] -= sign
		}
	}
	w.c.Price = &Price{dearer, stats.PerMisrouteSaved(saved, cost, w.o.Alpha, w.resampling())}
}

// side gathers what a side is and costs.
func (w *comparison) side(s *runSide, candidate bool) Side {
	out := Side{Messages: len(s.rows), MeanKept: undefined, Millis: undefined, ECE: undefined, WrongScore: undefined}
	names := map[string]bool{}
	millis, measured := 0.0, 0
	for _, f := range s.folders {
		out.Runs = append(out.Runs, runFact(f))
		names[modelName(&f.Run)] = true
		if m := f.Measured; m != nil && m.MeanScoreMillis > 0 {
			millis += m.MeanScoreMillis * float64(len(f.Rows))
			measured += len(f.Rows)
			out.PeakBytes = max(out.PeakBytes, m.PeakBytes)
		}
	}
	out.Name = strings.Join(sortedKeys(names), ", ")
	if measured > 0 {
		out.Millis = Number(millis / float64(measured))
	}
	kept := 0.0
	var scores []float64
	var right []bool
	wrongScore, wrong := 0.0, 0
	for i := range w.pairs {
		p := &w.pairs[i]
		row := p.base.Row
		if candidate {
			row = p.cand.Row
		}
		kept += float64(row.TokensKept)
		out.Windows += int64(row.Windows)
		out.Cells += row.Cells
		out.FLOPs += row.FLOPs
		if row.Cut() {
			out.Cut++
		}
		if p.label < 0 || row.Score == 0 { // as routed: no scores
			continue
		}
		scores = append(scores, float64(row.Score))
		right = append(right, !row.Wrong())
		if row.Wrong() {
			wrongScore += float64(row.Score)
			wrong++
		}
	}
	if len(w.pairs) > 0 && lengthUnit(s.folders) == unitTokens {
		out.MeanKept = Number(kept / float64(len(w.pairs)))
	}
	if e, ok := stats.ECE(stats.Reliability(scores, right, stats.DefaultBins)); ok {
		out.ECE = Number(e)
	}
	if w.o.Threshold > 0 && len(scores) > 0 {
		missed := make([]bool, len(right))
		for i, r := range right {
			missed[i] = !r
		}
		at := stats.AtThreshold(stats.CoverageRisk(scores, missed), w.o.Threshold)
		out.Abstain = &Handed{w.o.Threshold, at.Routed, len(scores), at.Wrong}
	}
	if wrong > 0 {
		out.WrongScore = Number(wrongScore / float64(wrong))
	}
	return out
}

func modelName(r *result.Run) string { return cmp.Or(r.Model.Name, r.Model.Family, "unnamed") }

func runFact(f *result.Folder) RunFact {
	weeks := map[string]bool{}
	for i := range f.Rows {
		if w := f.Rows[i].Week; w != "" {
			weeks[w] = true
		}
	}
	all := sortedKeys(weeks)
	span := ""
	switch {
	case len(all) == 1:
		span = all[0]
	case len(all) > 1:
		span = all[0] + " to " + all[len(all)-1]
	}
	return RunFact{
		RunID: f.Run.RunID, Model: modelName(&f.Run), SHA256: f.Run.Model.SHA256, Tokenizer: f.Run.Model.Tokenizer,
		Setting: setting{f.Run.Cap, f.Run.Strategy}.String(), Precision: f.Run.Precision, Kernel: f.Run.Kernel,
		Version: f.Run.ToolVersion, Weeks: span,
	}
}

// flips lists the messages whose prediction changed.
func (w *comparison) flips() {
	f := &w.c.Flips
	for i := range w.pairs {
		p := &w.pairs[i]
		if p.from == p.to {
			continue
		}
		flip := Flip{
			MessageID: p.key.id, Source: p.base.Source, RecordNo: p.base.RecordNo, Label: p.base.Label,
			Base: p.base.Prediction, Cand: p.cand.Prediction, Length: p.length, Change: Number(p.change()),
		}
		if w.o.WithText {
			flip.Subject = cmp.Or(p.base.Subject, p.cand.Subject)
		}
		switch {
		case p.label < 0:
			f.Unlabelled++
			f.Other = append(f.Other, flip)
		case !p.baseWrong():
			f.Negative++
			f.Worst = append(f.Worst, flip)
		case !p.candWrong():
			f.Positive++
			f.Best = append(f.Best, flip)
		default:
			f.Neutral++
			f.Other = append(f.Other, flip)
		}
	}
	// Pairs are in the order of ids already, and a stable sort keeps that for ties.
	largest := func(list *[]Flip) {
		slices.SortStableFunc(*list, func(a, b Flip) int {
			return cmp.Compare(math.Abs(float64(b.Change)), math.Abs(float64(a.Change)))
		})
		*list = clip(*list, w.o.Examples)
	}
	largest(&f.Worst)
	largest(&f.Best)
	largest(&f.Other)
}

// families compares by length and by queue, and looks at languages and weeks.
func (w *comparison) families() {
	c := w.c
	sum := 0
	for i := range w.buckets.Len() {
		x := w.contrast("length", w.buckets.Label(i), func(p *pairedMessage) bool { return p.bucket == i })
		sum += x.Pairs.N
		c.Lengths = append(c.Lengths, x)
	}
	if sum != len(w.judged) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("length buckets hold %s of %s messages", count(sum), count(len(w.judged))))
	}
	base, cand := stats.NewConfusion(w.queues.Len()), stats.NewConfusion(w.queues.Len())
	for i := range w.judged {
		p := &w.judged[i]
		base.Add(p.label, p.from, 1)
		cand.Add(p.label, p.to, 1)
	}
	for q := range w.queues.Len() {
		c.Queues = append(c.Queues, QueueChange{
			Contrast:      w.contrast("queue", w.queues.Name(q), func(p *pairedMessage) bool { return p.label == q }),
			BasePrecision: ratio(base.Precision(q)), CandPrecision: ratio(cand.Precision(q)),
			BaseF1: ratio(base.F1(q)), CandF1: ratio(cand.F1(q)),
		})
	}
	c.Explored = w.explored()

	var family []*Contrast
	for i := range c.Lengths {
		family = append(family, &c.Lengths[i])
	}
	for i := range c.Queues {
		family = append(family, &c.Queues[i].Contrast)
	}
	var others []*Contrast
	for i := range c.Explored {
		others = append(others, &c.Explored[i])
	}
	if c.Confirmed {
		w.adjust(family, "Holm over lengths and queues", stats.Holm, func(x *Contrast, p float64) { x.Holm = Number(p) })
	} else {
		others = append(family, others...)
	}
	w.adjust(others, "Benjamini-Hochberg, exploratory", stats.BenjaminiHochberg, func(x *Contrast, p float64) { x.Q = Number(p) })
}

// adjust corrects the p of the groups that are large enough to be tested.
func (w *comparison) adjust(group []*Contrast, method string, correct func([]float64) []float64, set func(*Contrast, float64)) {
	group = slices.DeleteFunc(slices.Clone(group), func(x *Contrast) bool { return x.few() })
	p := make([]float64, len(group))
	for i, x := range group {
		p[i] = x.Pairs.P()
	}
	for i, adjusted := range correct(p) {
		set(group[i], adjusted)
		test := contrastTest(group[i], "sign flips by thread, "+method)
		test.Adjusted = Number(adjusted)
		w.c.Tests = append(w.c.Tests, test)
	}
}

// explored compares by language and by week, where there is more than one.
func (w *comparison) explored() []Contrast {
	var out []Contrast
	for _, by := range []struct {
		kind string
		of   func(*result.Row) string
	}{
		{"language", func(r *result.Row) string { return r.Language }},
		{"week", func(r *result.Row) string { return r.Week }},
	} {
		values := map[string]bool{}
		for i := range w.judged {
			values[by.of(w.judged[i].base.Row)] = true
		}
		if len(values) < 2 {
			continue
		}
		for _, v := range sortedKeys(values) {
			name := cmp.Or(v, "unknown")
			out = append(out, w.contrast(by.kind, name, func(p *pairedMessage) bool { return by.of(p.base.Row) == v }))
		}
	}
	return out
}

// ways makes the ledger of queue pairs.
func (w *comparison) ways() {
	type way struct{ from, to int }
	ledger := map[way]*WayChange{}
	changes := map[way]map[int32]float64{} // by thread: added minus saved
	at := func(from, to int) (*WayChange, map[int32]float64) {
		k := way{from, to}
		if ledger[k] == nil {
			a, b := w.queues.Name(from), w.queues.Name(to)
			ledger[k] = &WayChange{From: a, To: b, Cost: w.o.Costs.Of(a, b), Q: undefined}
			changes[k] = map[int32]float64{}
		}
		return ledger[k], changes[k]
	}
	for i := range w.judged {
		p := &w.judged[i]
		if p.baseWrong() {
			x, change := at(p.label, p.from)
			x.Base++
			if p.to != p.from {
				x.Saved++
				change[p.cluster]--
			}
		}
		if p.candWrong() {
			x, change := at(p.label, p.to)
			x.Cand++
			if p.to != p.from {
				x.Added++
				change[p.cluster]++
			}
		}
	}
	keys := make([]way, 0, len(ledger))
	for k := range ledger {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b way) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var tested []*WayChange
	var p []float64
	for _, k := range keys {
		if x := ledger[k]; x.Saved+x.Added >= stats.FewestChanged(w.o.Alpha) {
			differences := make([]float64, 0, len(changes[k]))
			for _, cluster := range sortedKeys(changes[k]) {
				differences = append(differences, changes[k][cluster])
			}
			tested = append(tested, x)
			p = append(p, stats.ClusterSignFlip(differences, w.resampling()).P)
		}
	}
	for i, q := range stats.BenjaminiHochberg(p) {
		tested[i].Q = Number(q)
		w.c.Tests = append(w.c.Tests, Test{
			Name: "way " + tested[i].From + " to " + tested[i].To, Method: "sign flips by thread, Benjamini-Hochberg, exploratory",
			N: tested[i].Saved + tested[i].Added, P: p[i], Adjusted: Number(q),
		})
	}
	for _, k := range keys {
		w.c.Ways = append(w.c.Ways, *ledger[k])
	}
	slices.SortStableFunc(w.c.Ways, func(a, b WayChange) int {
		return cmp.Or(
			cmp.Compare(b.Cost*math.Abs(float64(b.Added-b.Saved)), a.Cost*math.Abs(float64(a.Added-a.Saved))),
			cmp.Compare(b.Added+b.Saved, a.Added+a.Saved), cmp.Compare(b.Base+b.Cand, a.Base+a.Cand))
	})
}
