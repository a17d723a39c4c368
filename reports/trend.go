package reports

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"misroute/pipeline/result"
	"misroute/reports/cohort"
	"misroute/reports/stats"
)

// Trend puts weeks side by side: how often mail went wrong, whether that is more than chance, and
// whether the mail or the router changed. Its fields are the JSON form.
type Trend struct {
	Schema   int      `json:"schema_version"`
	Report   string   `json:"report"` // "trend"
	Headline string   `json:"headline"`
	Findings []string `json:"findings"`
	Doubt    []string `json:"doubt"`

	Weeks []Week `json:"weeks"`
	// Centre is the pooled misroute rate, Effect the design effect in the limits around it.
	Centre Number `json:"centre"`
	Effect Number `json:"design_effect"`
	// OneSide is how many weeks up to the last lie on the same side of the centre.
	OneSide int `json:"weeks_on_one_side"`
	// Slope is a steady rise or fall, in rate a week; nil with fewer than three labelled weeks.
	Slope *stats.LinearTrend `json:"slope,omitempty"`

	Unit    string       `json:"length_unit"`
	Buckets []string     `json:"buckets"` // labels, in the order of Week.Lengths
	Queues  []QueueTrend `json:"queues"`
	// Drift of what the mail is like: the last week against all before.
	QueueDrift  *stats.ChiSquareResult `json:"queue_drift,omitempty"`
	LengthDrift *stats.ChiSquareResult `json:"length_drift,omitempty"`
	// FirstSeen lists queues that no week before had.
	FirstSeen []FirstSeen `json:"first_seen"`

	Repeats  int               `json:"repeats"` // rows of a message that an earlier run had
	Tests    []Test            `json:"tests"`
	Seeds    map[string]uint64 `json:"seeds"` // none: nothing here is drawn at random
	Warnings []string          `json:"warnings"`

	options Options
}

// Week is one week of mail, or one run where mail has no dates.
type Week struct {
	Name     string       `json:"week"`
	Runs     []RunFact    `json:"runs"`
	Scored   int          `json:"scored"`
	Rejected int          `json:"rejected"` // of runs that have this week mostly
	Rate     Rate         `json:"misroutes"`
	Limits   *LimitRange  `json:"limits,omitempty"` // of chance, by this week's own n; nil without labels
	Out      bool         `json:"out"`              // outside of its limits
	Cut      int          `json:"cut"`              // scored messages that lost tokens
	Median   Number       `json:"median_length"`
	Ninetyth Number       `json:"p90_length"`
	Cost     *CostSum     `json:"cost,omitempty"` // of its misroutes, with a costs file
	Lengths  []GroupCount `json:"lengths"`
	// Change from the week before, nil for the first.
	Change *WeekChange         `json:"change,omitempty"`
	Mixed  []cohort.Mixture    `json:"mixed,omitempty"`
	judged []*result.Row       // labelled
	rows   []*result.Row       // scored
	design stats.Design        // of the misroutes
	order  int                 // for periods that are runs: which run
	runs   map[*result.Run]int // rows by run
}

// LimitRange are the limits of the p-chart.
type LimitRange struct {
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// GroupCount is a group of one week.
type GroupCount struct {
	Scored int `json:"scored"`
	N      int `json:"labelled"`
	Wrong  int `json:"wrong"`
}

// WeekChange is the change of the misroute rate from one week to the next, taken apart.
type WeekChange struct {
	Difference Number `json:"difference"`
	Low        Number `json:"low"`
	High       Number `json:"high"`
	// LengthMix and Within add up to Difference: mail of other lengths, and the router doing
	// better or worse at the same lengths.
	LengthMix Number `json:"length_mix"`
	Within    Number `json:"within_lengths"`
	// QueueMix is the same question asked of queues.
	QueueMix     Number `json:"queue_mix"`
	WithinQueues Number `json:"within_queues"`
}

// QueueTrend is one queue over the weeks.
type QueueTrend struct {
	Name  string       `json:"name"`
	Known bool         `json:"known"` // to a router
	Weeks []GroupCount `json:"weeks"` // of the messages that belong there
	Sent  []int        `json:"sent"`  // messages routed there, labelled or not
	// Share of the labelled messages: the last week against all before together.
	Before Number `json:"share_before"`
	Last   Number `json:"share_last"`
	Low    Number `json:"share_change_low"`
	High   Number `json:"share_change_high"`
	Q      Number `json:"q"` // of that change; exploratory
}

// FirstSeen is a queue in the week that had it first.
type FirstSeen struct {
	Queue    string `json:"queue"`
	Week     string `json:"week"`
	Labelled int    `json:"labelled"`
	Sent     int    `json:"sent"`
	Known    bool   `json:"known"`
}

// NewTrend puts the mail of runs side by side by week: the ISO week of a message's date. Messages
// without a date go with the week most of their run has; a run without any dates is a week of its
// own, in the order given. A message that several runs hold counts once, in the first.
func NewTrend(runs []*result.Folder, o Options) (*Trend, error) {
	if len(runs) == 0 {
		return nil, errors.New("a trend needs at least one run")
	}
	o = o.defaults()
	t := &Trend{
		Schema: SchemaVersion, Report: "trend", options: o, Centre: undefined, Effect: undefined,
		FirstSeen: []FirstSeen{}, Warnings: []string{}, Tests: []Test{}, Seeds: map[string]uint64{},
	}
	t.Unit = lengthUnit(runs)
	t.sortIntoWeeks(runs)
	if len(t.Weeks) == 0 {
		return nil, errors.New("no scored message in any of the runs")
	}
	queues := cohort.NewQueues(runs...)
	if n := queues.Len(); n > mostQueues {
		return nil, fmt.Errorf("%s queues among routers and labels, at most %s can be followed: are the labels queues?", count(n), count(mostQueues))
	}
	buckets, err := t.buckets()
	if err != nil {
		return nil, err
	}
	t.count(buckets)
	t.chart()
	t.countQueues(queues)
	t.changes(queues)
	t.drift()
	for _, q := range o.Costs.Unknown(queues.Names()) {
		t.Warnings = append(t.Warnings, fmt.Sprintf("the costs file names the queue %q, which neither a router nor a label knows", q))
	}
	t.warn()
	t.say()
	return t, nil
}

// sortIntoWeeks gives every scored message its week.
func (t *Trend) sortIntoWeeks(runs []*result.Folder) {
	weeks := map[string]*Week{}
	seen := map[messageKey]bool{}
	for at, f := range runs {
		order := make([]*result.Row, 0, len(f.Rows))
		dated := map[string]int{}
		for i := range f.Rows {
			if r := &f.Rows[i]; r.Scored() {
				order = append(order, r)
				if r.Week != "" {
					dated[r.Week]++
				}
			}
		}
		slices.SortFunc(order, func(a, b *result.Row) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Member, b.Member), cmp.Compare(a.RecordNo, b.RecordNo))
		})
		most := ""
		for _, w := range sortedKeys(dated) {
			if most == "" || dated[w] > dated[most] {
				most = w
			}
		}
		home, number := most, 0
		if most == "" {
			home, number = fmt.Sprintf("run %d", at+1), at+1
			if len(f.Run.Inputs) == 1 {
				home += " (" + f.Run.Inputs[0].Name + ")"
			}
		}
		of := func(name string, number int) *Week {
			if weeks[name] == nil {
				weeks[name] = &Week{Name: name, order: number, runs: map[*result.Run]int{}}
			}
			return weeks[name]
		}
		for _, r := range order {
			k := messageKey{r.MessageID, r.ContentSHA256}
			if seen[k] {
				t.Repeats++
				continue
			}
			seen[k] = true
			w := of(cmp.Or(r.Week, home), number)
			w.rows = append(w.rows, r)
			w.runs[&f.Run]++
		}
		if len(f.Rejects) > 0 && (weeks[home] != nil || len(order) > 0) {
			of(home, number).Rejected += len(f.Rejects)
		}
		for _, w := range weeks {
			if w.runs[&f.Run] > 0 {
				w.Runs = append(w.Runs, runFact(f))
			}
		}
	}
	for _, name := range sortedKeys(weeks) {
		if len(weeks[name].rows) > 0 {
			t.Weeks = append(t.Weeks, *weeks[name])
		}
	}
	// Weeks sort by name; runs without dates come after them, in the order given.
	slices.SortStableFunc(t.Weeks, func(a, b Week) int { return cmp.Compare(a.order, b.order) })
	for i := range t.Weeks {
		t.mix(&t.Weeks[i], runs)
	}
}

// mix finds out what else differs within a week.
func (t *Trend) mix(w *Week, runs []*result.Folder) {
	of := map[string]*result.Run{}
	for _, f := range runs {
		of[f.Run.RunID] = &f.Run
	}
	var mixing cohort.Mixing
	for _, r := range w.rows {
		run := of[r.RunID]
		if run == nil {
			run = &runs[0].Run
		}
		mixing.Add(run, r)
	}
	w.Mixed = mixing.Mixed()
}

// buckets are the length buckets of all weeks, with edges at every cap that was used.
func (t *Trend) buckets() (cohort.Buckets, error) {
	var lengths, caps []int
	for i := range t.Weeks {
		for _, r := range t.Weeks[i].rows {
			lengths = append(lengths, lengthIn(t.Unit, r))
			if n := int(r.Cap); n > 0 && !slices.Contains(caps, n) {
				caps = append(caps, n)
			}
		}
	}
	return bucketsAtCaps(t.options.Buckets, t.Unit, lengths, caps)
}

// bucketsAtCaps are the asked-for buckets, or by default those with edges at the usual caps and at
// the given ones, so that no bucket hides a cut.
func bucketsAtCaps(spec, unit string, lengths, caps []int) (cohort.Buckets, error) {
	if strings.TrimSpace(spec) != "" {
		return cohort.ParseBuckets(spec, lengths)
	}
	edges := slices.Concat(cohort.DefaultEdges, caps)
	if unit == unitCharacters {
		edges = slices.Clone(cohort.DefaultEdges)
		for i := range edges {
			edges[i] *= 4 // about four characters of English a token
		}
	}
	slices.Sort(edges)
	edges = slices.DeleteFunc(slices.Compact(edges), func(e int) bool { return e <= 0 })
	return cohort.NewBuckets(edges)
}

// count fills in the numbers of each week by itself.
func (t *Trend) count(buckets cohort.Buckets) {
	for i := range buckets.Len() {
		t.Buckets = append(t.Buckets, buckets.Label(i))
	}
	for i := range t.Weeks {
		w := &t.Weeks[i]
		w.Scored = len(w.rows)
		w.Lengths = make([]GroupCount, buckets.Len())
		lengths := make([]int, 0, len(w.rows))
		for _, r := range w.rows {
			b := &w.Lengths[buckets.Of(lengthIn(t.Unit, r))]
			b.Scored++
			lengths = append(lengths, lengthIn(t.Unit, r))
			if r.Cut() {
				w.Cut++
			}
			if r.Label == "" {
				continue
			}
			w.judged = append(w.judged, r)
			b.N++
			if r.Wrong() {
				b.Wrong++
			}
		}
		t.weigh(w)
		slices.Sort(lengths)
		w.Median, w.Ninetyth = Number(lengths[len(lengths)/2]), Number(lengths[len(lengths)*9/10])
		w.design = stats.DesignEffect(cohort.Threads(w.judged))
		w.Rate = clusteredRate(w.design, t.options.Alpha)
	}
}

// weigh sums the severity of a week's misroutes, in a fixed order: sums of fractions depend on it.
func (t *Trend) weigh(w *Week) {
	if t.options.Costs == nil || len(w.judged) == 0 {
		return
	}
	type way struct{ from, to string }
	ways := map[way]int{}
	for _, r := range w.judged {
		if r.Wrong() {
			ways[way{r.Label, r.Prediction}]++
		}
	}
	keys := make([]way, 0, len(ways))
	for k := range ways {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b way) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	w.Cost = &CostSum{}
	for _, k := range keys {
		w.Cost.Sum += float64(ways[k]) * t.options.Costs.Of(k.from, k.to)
	}
	w.Cost.Mean = Number(w.Cost.Sum / float64(len(w.judged)))
}

// chart draws the limits of chance around the pooled rate.
func (t *Trend) chart() {
	var all []*result.Row
	periods := make([]stats.Group, len(t.Weeks))
	for i := range t.Weeks {
		all = append(all, t.Weeks[i].judged...)
		periods[i] = stats.Group{K: t.Weeks[i].Rate.Wrong, N: t.Weeks[i].Rate.N}
	}
	if len(all) == 0 {
		return
	}
	effect := stats.DesignEffect(cohort.Threads(all)).Effect
	c := stats.PChartLimits(periods, effect)
	t.Centre, t.Effect = Number(c.Centre), Number(effect)
	t.OneSide = c.RunOfOneSide(periods)
	if slope, ok := stats.CochranArmitage(periods, t.times(), effect, stats.ZOf(t.options.Alpha)); ok {
		t.Slope = &slope
		t.Tests = append(t.Tests, Test{Name: "steady change of the misroute rate", Method: "Cochran-Armitage", N: len(all), P: slope.P, Adjusted: undefined})
	}
	for i := range t.Weeks {
		if periods[i].N > 0 {
			t.Weeks[i].Limits = &LimitRange{Number(c.Limits[i].Low), Number(c.Limits[i].High)}
			t.Weeks[i].Out = c.Out[i]
		}
	}
}

// times places the weeks: in weeks, so that a missing one leaves a gap; by order where the mail has
// no dates.
func (t *Trend) times() []float64 {
	times := make([]float64, len(t.Weeks))
	for i := range t.Weeks {
		var year, week int
		if n, err := fmt.Sscanf(t.Weeks[i].Name, "%d-W%d", &year, &week); n != 2 || err != nil {
			for j := range times {
				times[j] = float64(j)
			}
			return times
		}
		// January 4 always lies in week 1.
		start := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC)
		monday := start.AddDate(0, 0, -int(start.Weekday()+6)%7+7*(week-1))
		times[i] = float64(monday.Unix() / (7 * 24 * 3600))
	}
	return times
}

// countQueues follows every queue over the weeks.
func (t *Trend) countQueues(queues *cohort.Queues) {
	t.Queues = make([]QueueTrend, queues.Len())
	for q := range t.Queues {
		t.Queues[q] = QueueTrend{
			Name: queues.Name(q), Known: queues.Known(q), Weeks: make([]GroupCount, len(t.Weeks)), Sent: make([]int, len(t.Weeks)),
			Before: undefined, Last: undefined, Low: undefined, High: undefined, Q: undefined,
		}
	}
	for i := range t.Weeks {
		for _, r := range t.Weeks[i].rows {
			if q, ok := queues.Of(r.Prediction); ok {
				t.Queues[q].Sent[i]++
			}
			q, ok := queues.Of(r.Label)
			if !ok {
				continue
			}
			x := &t.Queues[q].Weeks[i]
			x.Scored++
			x.N++
			if r.Wrong() {
				x.Wrong++
			}
		}
	}
	for i := range t.Weeks {
		for q := range t.Queues {
			x := &t.Queues[q]
			if i == 0 || x.Weeks[i].N+x.Sent[i] == 0 {
				continue
			}
			before := 0
			for j := range i {
				before += x.Weeks[j].N + x.Sent[j]
			}
			if before == 0 {
				t.FirstSeen = append(t.FirstSeen, FirstSeen{x.Name, t.Weeks[i].Name, x.Weeks[i].N, x.Sent[i], x.Known})
			}
		}
	}
}

// changes compares every week with the one before.
func (t *Trend) changes(queues *cohort.Queues) {
	byQueue := func(i int) []stats.Group {
		groups := make([]stats.Group, queues.Len())
		for q := range groups {
			groups[q] = stats.Group{K: t.Queues[q].Weeks[i].Wrong, N: t.Queues[q].Weeks[i].N}
		}
		return groups
	}
	byLength := func(i int) []stats.Group {
		groups := make([]stats.Group, len(t.Weeks[i].Lengths))
		for b, x := range t.Weeks[i].Lengths {
			groups[b] = stats.Group{K: x.Wrong, N: x.N}
		}
		return groups
	}
	for i := 1; i < len(t.Weeks); i++ {
		d, ci, ok := stats.Newcombe(t.Weeks[i-1].design, t.Weeks[i].design, stats.ZOf(t.options.Alpha))
		if !ok {
			continue
		}
		c := &WeekChange{Difference: Number(d), Low: Number(ci.Low), High: Number(ci.High), LengthMix: undefined, Within: undefined, QueueMix: undefined, WithinQueues: undefined}
		if s, ok := stats.Kitagawa(byLength(i-1), byLength(i)); ok {
			c.LengthMix, c.Within = Number(s.Mix), Number(s.Within)
		}
		if s, ok := stats.Kitagawa(byQueue(i-1), byQueue(i)); ok {
			c.QueueMix, c.WithinQueues = Number(s.Mix), Number(s.Within)
		}
		t.Weeks[i].Change = c
	}
}

// drift compares the mail of the last week with all before: where it belongs, and how long it is.
func (t *Trend) drift() {
	last := len(t.Weeks) - 1
	if last < 1 {
		return
	}
	// Threads bring messages of one queue together; the effect on the misroute rate stands in for
	// that on the shares.
	effect := 1.0
	if t.Effect.Defined() {
		effect = float64(t.Effect)
	}
	lengths := [][]int{make([]int, len(t.Buckets)), make([]int, len(t.Buckets))}
	for i := range t.Weeks {
		for b, x := range t.Weeks[i].Lengths {
			lengths[i/last][b] += x.Scored
		}
	}
	byLength := stats.ChiSquare(lengths, effect)
	t.LengthDrift = &byLength
	t.Tests = append(t.Tests, Test{Name: "drift of lengths, last week against those before", Method: "chi-square", N: t.Weeks[last].Scored, P: byLength.P, Adjusted: undefined})

	belongs := [][]int{make([]int, len(t.Queues)), make([]int, len(t.Queues))}
	n := [2]int{}
	for q := range t.Queues {
		for i, x := range t.Queues[q].Weeks {
			belongs[i/last][q] += x.N
			n[i/last] += x.N
		}
	}
	if n[0] == 0 || n[1] == 0 {
		return
	}
	byQueue := stats.ChiSquare(belongs, effect)
	t.QueueDrift = &byQueue
	t.Tests = append(t.Tests, Test{Name: "drift of queue shares, last week against those before", Method: "chi-square", N: n[1], P: byQueue.P, Adjusted: undefined})
	var p []float64
	for q := range t.Queues {
		x := &t.Queues[q]
		before := stats.Design{K: belongs[0][q], N: n[0], Clusters: n[0], Effect: effect}
		after := stats.Design{K: belongs[1][q], N: n[1], Clusters: n[1], Effect: effect}
		_, ci, _ := stats.Newcombe(before, after, stats.ZOf(t.options.Alpha))
		x.Before, x.Last, x.Low, x.High = ratio(before.Rate()), ratio(after.Rate()), Number(ci.Low), Number(ci.High)
		p = append(p, stats.ChiSquare([][]int{{before.K, before.N - before.K}, {after.K, after.N - after.K}}, effect).P)
	}
	for q, adjusted := range stats.BenjaminiHochberg(p) {
		t.Queues[q].Q = Number(adjusted)
		t.Tests = append(t.Tests, Test{Name: "share of " + t.Queues[q].Name, Method: "chi-square, Benjamini-Hochberg, exploratory", N: n[1], P: p[q], Adjusted: Number(adjusted)})
	}
}
