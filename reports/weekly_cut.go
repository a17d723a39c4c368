package reports

import (
	"fmt"
	"slices"

	"misroute/reports/stats"
)

// Cut is what the cap cost: the messages that lost tokens, compared with themselves read whole.
type Cut struct {
	Cap       int    `json:"cap"`
	Strategy  string `json:"strategy"`
	Reference string `json:"reference"`     // how whole messages were read; empty: they were not
	Messages  int    `json:"messages"`      // scored messages that lost tokens, labelled or not
	Share     Number `json:"share"`         // of all scored
	Lost      Number `json:"lost"`          // mean share of tokens lost among them
	Under     Rate   `json:"under"`         // labelled messages that lost nothing
	Over      Rate   `json:"over"`          // labelled messages that lost tokens, at the cap
	Missing   int    `json:"missing"`       // of those, without a whole reading
	Again     int    `json:"read_whole"`    // messages that lost tokens and were read whole, labelled or not
	Changed   int    `json:"changed_whole"` // of those, sent to another queue when read whole

	// The rest is over labelled messages that lost tokens and were also read whole.
	Table *stats.Counterfactual `json:"counterfactual,omitempty"`
	Whole *Rate                 `json:"whole,omitempty"`
	Test  *stats.Paired         `json:"test,omitempty"` // baseline whole, candidate at the cap
	Need  int                   `json:"need"`           // fewest changed messages that can decide
	Gap   *Gap                  `json:"gap,omitempty"`

	Placebo *Placebo    `json:"placebo,omitempty"`
	Probe   *Probe      `json:"probe,omitempty"`
	Control Control     `json:"control"`
	ByLost  []LostShare `json:"by_share_lost,omitempty"`
	Blind   Blind       `json:"blind"`
	Depth   *Depth      `json:"decision_depth,omitempty"`
	Limits  []string    `json:"limits"`
}

// Gap takes the distance of long from short mail apart: Total = Harder + Cut.
type Gap struct {
	Total  Number `json:"total"`
	Harder Number `json:"harder_mail"`
	Cut    Number `json:"cut"`
}

// Placebo drops as many tokens as the cut did, at random spans.
type Placebo struct {
	Messages int     `json:"messages"`
	Seeds    []int64 `json:"seeds"`
	Rate     Number  `json:"rate"` // of misroutes, mean over seeds
	Cost     Number  `json:"cost"` // above the same messages read whole
	// Test compares the cut (candidate) with the placebo (baseline): what where the text stood was
	// worth. Its n counts a message once for each seed, and its design effect takes that back.
	Test *stats.Paired `json:"test"`
}

// Probe looks at the misroutes that the cut caused with other strategies at the same cap.
type Probe struct {
	Strategies []string `json:"strategies"`
	Caused     int      `json:"caused"`
	Confirmed  int      `json:"confirmed"` // another part of the message, at the same cap, goes right too
}

// Control is the negative control: messages the cap does not touch must not change.
type Control struct {
	Under int `json:"under"`   // labelled or not
	Again int `json:"again"`   // of those, read again
	Flips int `json:"flips"`   // of those, with another prediction: a fault of the program
	First int `json:"example"` // record number of the first flip
}

// LostShare is the misroute rate by share of tokens lost.
type LostShare struct {
	Label string `json:"label"`
	Rate
}

// Blind says how sure the router was when it was wrong without having read the message.
type Blind struct {
	CutWrong   int    `json:"cut_wrong"`
	CutScore   Number `json:"cut_wrong_mean_score"`
	CutECE     Number `json:"cut_ece"`
	UncutWrong int    `json:"uncut_wrong"`
	UncutScore Number `json:"uncut_wrong_mean_score"`
	UncutECE   Number `json:"uncut_ece"`
}

// Depth says from which cap on messages are routed right and stay right.
type Depth struct {
	Strategy string `json:"strategy"`
	N        int    `json:"n"`
	Steps    []Step `json:"steps"`
	Never    int    `json:"never"`          // wrong even whole
	Back     int    `json:"back_and_forth"` // right at some cap and wrong at a larger one
}

// Step is one cap of the depth curve.
type Step struct {
	Cap     int    `json:"cap"`     // 0: whole
	Decided int    `json:"decided"` // right from this cap on
	Share   Number `json:"share"`   // right from this cap or a smaller one on
}

// threadGroups counts misroutes by thread.
func threadGroups(rows []*line) []stats.Group {
	of, n := clusters(rows)
	groups := make([]stats.Group, n)
	for i, r := range rows {
		g := &groups[of[i]]
		g.N++
		if r.wrong() {
			g.K++
		}
	}
	return groups
}

// threads fills the design effect of the total.
func (t *tally) threads(w *Weekly) {
	if len(t.judged) == 0 {
		return
	}
	d := stats.DesignEffect(threadGroups(t.judged))
	ci := d.Interval(stats.Z95)
	w.Threads = &Threads{Threads: d.Clusters, Effective: Number(d.Effective()), DesignEffect: Number(d.Effect), Low: Number(ci.Low), High: Number(ci.High)}
}

// cut fills the cost of truncation, where the run cut anything or had a cap to cut at.
func (t *tally) cut(w *Weekly) {
	if t.run.Cap == 0 && !slices.ContainsFunc(t.rows, (*line).cut) {
		return
	}
	c := &Cut{Cap: t.run.Cap, Strategy: t.run.Strategy, Reference: t.run.Reference, Share: undefined, Lost: undefined, Need: stats.FewestChanged(t.o.Alpha), Limits: []string{}}
	w.Cut = c
	lost := 0.0
	for _, r := range t.rows {
		if r.cut() {
			c.Messages++
			lost += float64(r.total-r.kept) / float64(r.total)
			if ref := t.whole(r); ref != nil {
				c.Again++
				if ref.prediction != r.prediction {
					c.Changed++
				}
			}
			continue
		}
		if r.windows > 1 {
			continue // lost nothing, but was read in pieces: one pass may well differ
		}
		c.Control.Under++
		ref := t.reading(r, kindControl)
		if ref == nil {
			ref = t.whole(r)
		}
		if ref != nil {
			c.Control.Again++
			if ref.prediction != r.prediction {
				if c.Control.Flips == 0 {
					c.Control.First = int(r.record)
				}
				c.Control.Flips++
			}
		}
	}
	if len(t.rows) > 0 {
		c.Share = Number(float64(c.Messages) / float64(len(t.rows)))
	}
	if c.Messages > 0 {
		c.Lost = Number(lost / float64(c.Messages))
	}
	if c.Control.Flips > 0 {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s under the cap changed when read whole (first: record %d): a fault of the program, the cost of the cut cannot be trusted", plural(c.Control.Flips, "message", "messages"), c.Control.First))
	}
	var over, under, compared []*line
	for _, r := range t.judged {
		if !r.cut() {
			under = append(under, r)
			continue
		}
		over = append(over, r)
		if t.whole(r) != nil {
			compared = append(compared, r)
		}
	}
	c.Under, c.Over, c.Missing = t.rate(under), t.rate(over), len(over)-len(compared)
	t.byShareLost(c, over)
	t.counterfactual(w, c, compared)
	t.placeboCut(w, c)
	t.probe(c)
	c.Depth = t.depth()
	c.Blind = t.blind(under, over)
	c.Limits = t.limits(c)
}

// counterfactual compares cut messages with themselves read whole.
func (t *tally) counterfactual(w *Weekly, c *Cut, compared []*line) {
	if len(compared) == 0 {
		return
	}
	c.Table = &stats.Counterfactual{UncutFlips: c.Control.Flips}
	of, n := clusters(compared)
	pairs := make([]stats.PairCluster, n)
	wrongWhole := 0
	for i, r := range compared {
		rightWhole := t.whole(r).prediction == r.label
		c.Table.Add(!r.wrong(), rightWhole)
		p := &pairs[of[i]]
		p.N++
		switch {
		case !rightWhole:
			wrongWhole++
			if !r.wrong() {
				p.C++
			}
		case r.wrong():
			p.B++
		}
	}
	test := stats.ComparePaired(pairs, t.o.Alpha, stats.Resampling{Seed: t.o.Seed})
	c.Test = &test
	whole := newRate(wrongWhole, len(compared), few)
	c.Whole = &whole
	w.Tests = append(w.Tests,
		Test{Name: "cut against whole, all cut messages", Method: "McNemar mid-p", N: test.N, P: test.MidP, Adjusted: undefined},
		Test{Name: "cut against whole, all cut messages", Method: "sign flip by thread", N: test.N, P: test.Cluster.P, Adjusted: undefined})
	if test.Disagree() {
		w.Warnings = append(w.Warnings, fmt.Sprintf("cut against whole: mid-p %s treats messages as independent, the test by thread says %s; the latter counts", pvalue(test.MidP), pvalue(test.Cluster.P)))
	}
	atCap := stats.Group{K: c.Table.Cost + c.Table.BothWrong, N: len(compared)}
	if gap, ok := stats.SplitGap(stats.Group{K: c.Under.Wrong, N: c.Under.N}, atCap, stats.Group{K: wrongWhole, N: len(compared)}); ok {
		c.Gap = &Gap{Total: Number(gap.Gap), Harder: Number(gap.Harder), Cut: Number(gap.Cut)}
	}
}

// placeboCut compares the cut with the same number of tokens dropped at random.
func (t *tally) placeboCut(w *Weekly, c *Cut) {
	var rows []*line
	for _, r := range t.judged {
		if r.cut() && len(t.placebos(r)) > 0 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return
	}
	of, n := clusters(rows)
	pairs := make([]stats.PairCluster, n)
	seeds := map[int64]bool{}
	rate, whole, wholeKnown := 0.0, 0, 0
	for i, r := range rows {
		drawn := t.placebos(r)
		wrong := 0
		for _, d := range drawn {
			seeds[d.seed] = true
			p := &pairs[of[i]]
			p.N++
			switch placeboWrong := d.prediction != r.label; {
			case placeboWrong:
				wrong++
				if !r.wrong() {
					p.C++
				}
			case r.wrong():
				p.B++
			}
		}
		rate += float64(wrong) / float64(len(drawn))
		if ref := t.whole(r); ref != nil {
			wholeKnown++
			if ref.prediction != r.label {
				whole++
			}
		}
	}
	test := stats.ComparePaired(pairs, t.o.Alpha, stats.Resampling{Seed: t.o.Seed})
	p := &Placebo{Messages: len(rows), Seeds: sortedKeys(seeds), Rate: Number(rate / float64(len(rows))), Cost: undefined, Test: &test}
	if wholeKnown == len(rows) {
		p.Cost = p.Rate - Number(float64(whole)/float64(len(rows)))
	}
	c.Placebo = p
	w.Tests = append(w.Tests, Test{Name: "cut against placebo cut", Method: "sign flip by thread", N: len(rows), P: test.Cluster.P, Adjusted: undefined})
}

// probe asks the other strategies at the run's cap about the misroutes the cut caused.
func (t *tally) probe(c *Cut) {
	s := t.settings()
	p := &Probe{}
	for _, at := range s.list {
		if at.cap == t.run.Cap && at.cap > 0 && at.strategy != t.run.Strategy {
			p.Strategies = append(p.Strategies, at.strategy)
		}
	}
	if len(p.Strategies) == 0 {
		return
	}
	for _, r := range t.judged {
		if whole, known := t.readWhole(r); !r.wrong() || !r.cut() || !known || whole != r.label {
			continue
		}
		p.Caused++
		if t.confirmed(s, r, p.Strategies) {
			p.Confirmed++
		}
	}
	c.Probe = p
}

func (t *tally) confirmed(s *settings, r *line, strategies []string) bool {
	return slices.ContainsFunc(strategies, func(name string) bool {
		a, ok := s.at(r, setting{t.run.Cap, name})
		return ok && a.prediction == r.label
	})
}

// depth is the decision depth over the caps of the run's own strategy, for a run with several.
func (t *tally) depth() *Depth {
	s := t.settings()
	var caps []setting
	for _, at := range s.list {
		if at.cap == 0 || at.strategy == t.run.Strategy {
			caps = append(caps, at)
		}
	}
	if len(caps) < 3 { // the run's own and the whole are no curve
		return nil
	}
	d := &Depth{Strategy: t.run.Strategy, Steps: make([]Step, len(caps))}
	right := make([]bool, len(caps))
rows:
	for _, r := range t.judged {
		for i, at := range caps {
			a, ok := s.at(r, at)
			if !ok {
				continue rows
			}
			right[i] = a.prediction == r.label
		}
		d.N++
		at, found, back := stats.DecisionDepth(right)
		if found {
			d.Steps[at].Decided++
		} else {
			d.Never++
		}
		if back {
			d.Back++
		}
	}
	sum := 0
	for i, at := range caps {
		sum += d.Steps[i].Decided
		d.Steps[i].Cap = at.cap
		d.Steps[i].Share = ratio(stats.Ratio{Num: sum, Den: d.N})
	}
	return d
}

// byShareLost is the second axis of length: how much of a cut message was lost.
func (t *tally) byShareLost(c *Cut, over []*line) {
	if len(over) == 0 {
		return
	}
	labels := []string{"up to 25 %", "25 to 50 %", "50 to 75 %", "over 75 %"}
	n, wrong := make([]int, 4), make([]int, 4)
	for _, r := range over {
		share := 1 - float64(r.kept)/float64(r.total)
		at := 3
		switch {
		case share <= 0.25:
			at = 0
		case share <= 0.5:
			at = 1
		case share <= 0.75:
			at = 2
		}
		n[at]++
		if r.wrong() {
			wrong[at]++
		}
	}
	for i, label := range labels {
		c.ByLost = append(c.ByLost, LostShare{label, newRate(wrong[i], n[i], few)})
	}
}

// blind compares how sure wrong predictions were on cut and on uncut messages.
func (t *tally) blind(under, over []*line) Blind {
	b := Blind{CutScore: undefined, UncutScore: undefined, CutECE: undefined, UncutECE: undefined}
	if t.run.Model.Family == asRouted {
		return b
	}
	mean := func(rows []*line) (n int, score, ece Number) {
		sum := 0.0
		scores, right := make([]float64, len(rows)), make([]bool, len(rows))
		for i, r := range rows {
			scores[i], right[i] = float64(r.score), !r.wrong()
			if r.wrong() {
				n++
				sum += float64(r.score)
			}
		}
		score, ece = undefined, undefined
		if n > 0 {
			score = Number(sum / float64(n))
		}
		if e, ok := stats.ECE(stats.Reliability(scores, right, stats.DefaultBins)); ok && len(rows) >= few {
			ece = Number(e)
		}
		return n, score, ece
	}
	b.CutWrong, b.CutScore, b.CutECE = mean(over)
	b.UncutWrong, b.UncutScore, b.UncutECE = mean(under)
	return b
}

// limits says what the comparison cannot know.
func (t *tally) limits(c *Cut) []string {
	limits := []string{}
	m := t.run.Model
	if m.Positions > 0 {
		beyond := 0
		for _, r := range t.rows {
			if int(r.total) > m.Positions && t.whole(r) != nil {
				beyond++
			}
		}
		if beyond > 0 {
			limits = append(limits, fmt.Sprintf("%s longer than the router's %s positions: the whole reading is made of windows (%s), not of one pass", plural(beyond, "message is", "messages are"), count(m.Positions), t.run.Reference))
		}
	}
	if m.TrainedCap > 0 && t.run.Cap > m.TrainedCap {
		limits = append(limits, fmt.Sprintf("the cap of %d is above the %d the router was trained with: it has not learned from text that late", t.run.Cap, m.TrainedCap))
	}
	if m.TrainedCap > 0 && slices.ContainsFunc(t.readings, func(x otherReading) bool { return x.kind == kindWhole }) && t.run.Cap <= m.TrainedCap {
		limits = append(limits, fmt.Sprintf("the router was trained with a cap of %d: read whole, it sees more than it has learned from", m.TrainedCap))
	}
	if c.Missing > 0 {
		limits = append(limits, fmt.Sprintf("%s cut but not read whole, and left out of the comparison", plural(c.Missing, "labelled message was", "labelled messages were")))
	}
	return limits
}
