package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"misroute/pipeline/result"
	"misroute/reports/cohort"
	"misroute/reports/stats"
	"misroute/reports/table"
)

// Weekly is the report of one run: how often mail went to the wrong queue, by length and by queue,
// and what the cut cost. Its fields are the JSON form.
type Weekly struct {
	Schema   int      `json:"schema_version"`
	Report   string   `json:"report"` // "weekly"
	Headline string   `json:"headline"`
	Findings []string `json:"findings"` // what stands out, one sentence each
	Do       []string `json:"do"`       // what to do about it
	Doubt    []string `json:"doubt"`    // what could make the above wrong
	Week     string   `json:"week"`     // ISO week or weeks of the messages; empty without dates

	Total    Rate      `json:"total"`              // all labelled, scored messages
	Routable *Rate     `json:"routable,omitempty"` // without labels the router does not know, where there are some
	Threads  *Threads  `json:"threads,omitempty"`
	Cost     *CostSum  `json:"cost,omitempty"` // with a costs file
	Macro    Number    `json:"macro_f1"`
	Unit     string    `json:"length_unit"` // tokens; words as routed, where there is no tokenizer; characters where nobody counted
	Buckets  []Bucket  `json:"buckets"`
	Windows  []Windows `json:"by_windows,omitempty"`
	Queues   []Queue   `json:"queues"`
	// Confusion[label][prediction], in the order of Queues.
	Confusion [][]int `json:"confusion,omitempty"`
	Pairs     []Pair  `json:"pairs"` // label to prediction, most misroutes first
	Cut       *Cut    `json:"cut,omitempty"`
	Sweep     *Sweep  `json:"sweep,omitempty"`

	Calibration *Calibration `json:"calibration,omitempty"`
	Abstain     *Abstain     `json:"abstain,omitempty"`

	Caused []Example `json:"caused_by_cut"` // wrong at the cap, right whole: by change of margin
	Saved  []Example `json:"saved_by_cut"`  // right at the cap, wrong whole
	Others []Example `json:"other_misroutes"`
	// Counts behind the three lists, never capped.
	CausedN int `json:"caused_by_cut_n"`
	SavedN  int `json:"saved_by_cut_n"`
	OthersN int `json:"other_misroutes_n"`

	Rejected []Reason `json:"rejected"`
	Warned   []Reason `json:"message_warnings"` // read, but with a remark
	Skipped  []Reason `json:"not_scored"`       // duplicates and filtered

	Run      result.Run        `json:"run"`
	Measured *result.Measured  `json:"measured,omitempty"`
	Tests    []Test            `json:"tests"`
	Seeds    map[string]uint64 `json:"seeds"`
	Warnings []string          `json:"warnings"`

	options Options
	words   words
}

// Threads says how much the messages depend on each other.
type Threads struct {
	Threads      int    `json:"threads"`
	Effective    Number `json:"effective_n"`
	DesignEffect Number `json:"design_effect"`
	Low          Number `json:"low"` // of the total rate, on the effective n
	High         Number `json:"high"`
}

// CostSum weighs misroutes by a costs file.
type CostSum struct {
	Sum  float64 `json:"sum"`
	Mean Number  `json:"mean"` // a labelled message
}

// Bucket is a range of message lengths.
type Bucket struct {
	Label string `json:"label"`
	Over  int    `json:"over"`  // lengths above this
	UpTo  int    `json:"up_to"` // up to and including this; 0: open
	Rate
	Cut   int   `json:"cut"`             // of the N, lost tokens
	Whole *Rate `json:"whole,omitempty"` // the same messages read whole; nil where nothing was cut
	// P of the paired test of cut against whole, Holm-adjusted over the buckets tested.
	P Number `json:"holm_p"`
	// Messages of any kind, labelled or not.
	Messages int    `json:"messages"`
	Cost     Number `json:"cost"` // of the bucket's misroutes, with a costs file
}

// Windows is the misroute rate by the number of windows read.
type Windows struct {
	Label string `json:"windows"`
	Rate
}

// Queue is one line of the queue table. Rate is over the messages that belong to it.
type Queue struct {
	Name string `json:"name"`
	Rate
	Sent      int    `json:"sent"` // messages routed to it, labelled ones
	Precision Number `json:"precision"`
	Recall    Number `json:"recall"`
	F1        Number `json:"f1"`
	Cost      Number `json:"cost"`     // of its misroutes
	Mostly    string `json:"mostly"`   // the queue most of its misroutes went to
	MostlyN   int    `json:"mostly_n"` // how many
	Known     bool   `json:"known"`    // to the router
	Predicted int    `json:"predicted"`
}

// Pair is a way mail goes wrong.
type Pair struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	N     int     `json:"n"`
	Cost  float64 `json:"cost"`
	Over  int     `json:"cut"`         // of the N, lost tokens
	Right int     `json:"right_whole"` // of those, right when read whole
	Added int     `json:"wrong_whole"` // went this way only when read whole
}

// Reason counts records by what happened to them.
type Reason struct {
	Stage   string `json:"stage,omitempty"`
	Code    string `json:"code"`
	N       int    `json:"n"`
	Example string `json:"example"` // source and record number of the first
	Detail  string `json:"detail,omitempty"`
}

// Test is a hypothesis test the report made.
type Test struct {
	Name     string  `json:"name"`
	Method   string  `json:"method"`
	N        int     `json:"n"`
	P        float64 `json:"p"`
	Adjusted Number  `json:"adjusted_p"`
}

// Example is a message worth looking at.
type Example struct {
	Source     string `json:"source"`
	RecordNo   int64  `json:"record_no"`
	MessageID  string `json:"message_id"`
	Label      string `json:"label"`
	Prediction string `json:"prediction"`
	Tokens     int    `json:"tokens"`
	Kept       int    `json:"kept"`
	Ranges     []Span `json:"ranges,omitempty"` // tokens that were read, where the message was cut
	Score      Number `json:"score"`
	Whole      string `json:"whole,omitempty"`    // the queue when read whole, where it was
	Change     Number `json:"margin_change"`      // of the label's margin, cut to whole
	Decisive   *Span  `json:"decisive,omitempty"` // tokens of the sentence that decides
	Zone       string `json:"zone,omitempty"`     // where that sentence stands
	Subject    string `json:"subject,omitempty"`  // only with text
	Text       string `json:"text,omitempty"`
}

// Span is a half-open range of tokens.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// few is the n below which a cell is greyed, and neither tested nor ranked.
const few = cohort.SmallBucket

// mostQueues bounds the confusion counts, which grow with the square of the queues. A label file
// with more labels than that has the wrong column; the rest is folded into one queue.
const mostQueues = 1000

// mostConfused bounds the confusion matrix of the JSON form, for the same reason.
const mostConfused = 200

// foldedQueue takes the labels past mostQueues.
const foldedQueue = "(other labels)"

// NewWeekly computes the report of a run that was read whole.
func NewWeekly(f *result.Folder, o Options) (*Weekly, error) { return newWeekly(inMemory{f}, o) }

// ReadWeekly computes the report of the finished run in dir. It reads the columns that a report needs,
// a few rows at a time, and keeps some hundred bytes a message.
func ReadWeekly(dir string, o Options) (*Weekly, error) {
	in, err := openInput(dir)
	if err != nil {
		return nil, err
	}
	return newWeekly(in, o)
}

func newWeekly(in input, o Options) (*Weekly, error) {
	o = o.defaults()
	t, err := newTally(in, o)
	if err != nil {
		return nil, err
	}
	w := &Weekly{
		Schema: SchemaVersion, Report: "weekly", Run: *t.run, Measured: in.measured(), Unit: t.unit,
		Seeds:    map[string]uint64{"run": t.run.Seed, "report": o.Seed},
		Warnings: slices.Clone(t.run.Warnings), options: o,
	}
	w.Week = t.sayWeeks(&w.Warnings)
	w.Total = t.rate(t.judged)
	if known := t.routable(); len(known) != len(t.judged) {
		r := t.rate(known)
		w.Routable = &r
	}
	if err := t.lengths(w); err != nil {
		return nil, err
	}
	t.perQueue(w)
	t.threads(w)
	t.cut(w)
	w.Sweep = t.sweep(w)
	t.calibrate(w)
	if err := t.examples(w); err != nil {
		return nil, err
	}
	w.Rejected, w.Warned, w.Skipped = t.rejected.list(), t.warned.list(), t.skipped.list()
	t.checks(w)
	w.words = w.say()
	w.Headline, w.Findings, w.Do, w.Doubt = w.words.headline, w.words.findings, w.words.do, w.words.doubt
	w.Warnings = nonNil(w.Warnings)
	return w, nil
}

// listQueues numbers the queues: the router's own first, then what labels and predictions add.
func (t *tally) listQueues() {
	all := cohort.QueuesOf(t.run.Queues, t.mentioned)
	t.queueAt = map[shared]int{}
	for i := range min(all.Len(), mostQueues) {
		t.queueAt[t.number(all.Name(i))] = i
		t.queues = append(t.queues, all.Name(i))
	}
	if all.Len() > mostQueues {
		t.folded = len(t.queues)
		t.queues = append(t.queues, foldedQueue)
	}
}

func (t *tally) queue(n shared) int {
	if i, ok := t.queueAt[n]; ok {
		return i
	}
	return max(t.folded, 0)
}

// routable are the judged rows whose label the router knows; all of them for a run as routed.
func (t *tally) routable() []*line {
	if len(t.run.Queues) == 0 {
		return t.judged
	}
	known := map[shared]bool{}
	for _, q := range t.run.Queues {
		known[t.number(q)] = true
	}
	var rows []*line
	for _, r := range t.judged {
		if known[r.label] {
			rows = append(rows, r)
		}
	}
	return rows
}

// cost of sending mail of a queue to another, by the costs file.
func (t *tally) cost(label, prediction shared) float64 {
	return t.o.Costs.Of(t.name(label), t.name(prediction))
}

func (t *tally) rate(rows []*line) Rate {
	wrong := 0
	for _, r := range rows {
		if r.wrong() {
			wrong++
		}
	}
	return newRate(wrong, len(rows), few)
}

// length of a message in the unit of the report.
func (t *tally) length(r *line) int {
	if t.unit == unitCharacters {
		return int(r.chars)
	}
	return int(r.total)
}

// readWhole is the reference reading of a row: its own where nothing was cut.
func (t *tally) readWhole(r *line) (prediction shared, known bool) {
	if ref := t.whole(r); ref != nil {
		return ref.prediction, true
	}
	if !r.cut() {
		return r.prediction, true
	}
	return 0, false
}

// sayWeeks names the ISO weeks of the scored messages, and warns when there is more than one.
func (t *tally) sayWeeks(warnings *[]string) string {
	n, dated := t.weeks, 0
	for _, messages := range n {
		dated += messages
	}
	if len(n) == 0 {
		return ""
	}
	weeks := sortedKeys(n)
	main := slices.MaxFunc(weeks, func(a, b string) int { return cmp.Or(cmp.Compare(n[a], n[b]), cmp.Compare(b, a)) })
	if len(weeks) == 1 {
		return main
	}
	// A week's export has stragglers at its ends (time zones, late mail); a mixture has not one
	// week that is nearly all of it.
	if n[main]*10 >= dated*9 {
		return main
	}
	*warnings = append(*warnings, fmt.Sprintf("mixes %d weeks, %s to %s: use trend to tell a change from a mixture", len(weeks), weeks[0], weeks[len(weeks)-1]))
	return weeks[0] + " to " + weeks[len(weeks)-1]
}

// edges of the length buckets: the usual caps and the run's own, so that no bucket hides the cut.
func (t *tally) bucketing() (cohort.Buckets, error) {
	if t.o.Buckets != "" {
		lengths := make([]int, len(t.rows))
		for i, r := range t.rows {
			lengths[i] = t.length(r)
		}
		return cohort.ParseBuckets(t.o.Buckets, lengths)
	}
	edges := slices.Clone(cohort.DefaultEdges)
	if t.unit == unitCharacters {
		for i := range edges {
			edges[i] *= 4 // about four characters of English a token
		}
	} else if c := t.run.Cap; c > 0 && !slices.Contains(edges, c) {
		edges = append(edges, c)
		slices.Sort(edges)
	}
	return cohort.NewBuckets(edges)
}

func (t *tally) lengths(w *Weekly) error {
	buckets, err := t.bucketing()
	if err != nil {
		return err
	}
	type group struct {
		messages, n, wrong, cut, compared, wrongWhole, cost, helped int
		weight                                                      float64
	}
	groups := make([]group, buckets.Len())
	for _, r := range t.rows {
		g := &groups[buckets.Of(t.length(r))]
		g.messages++
		if r.label == 0 {
			continue
		}
		g.n++
		if r.wrong() {
			g.wrong++
			g.weight += t.cost(r.label, r.prediction)
		}
		if r.cut() {
			g.cut++
		}
		if whole, ok := t.readWhole(r); ok {
			g.compared++
			switch wrong := whole != r.label; {
			case wrong:
				g.wrongWhole++
				if !r.wrong() {
					g.helped++
				}
			case r.wrong():
				g.cost++
			}
		}
	}
	var tested []int
	var p []float64
	for i, g := range groups {
		low, high := buckets.Range(i)
		b := Bucket{Label: buckets.Label(i), Over: low, UpTo: high, Rate: newRate(g.wrong, g.n, few), Cut: g.cut, Messages: g.messages, P: undefined, Cost: undefined}
		if t.o.Costs != nil {
			b.Cost = Number(g.weight)
		}
		if g.cut > 0 && g.compared == g.n {
			whole := newRate(g.wrongWhole, g.n, few)
			b.Whole = &whole
			if !b.Few {
				tested = append(tested, i)
				p = append(p, stats.McNemar(g.cost, g.helped).MidP)
			}
		}
		w.Buckets = append(w.Buckets, b)
	}
	for k, adjusted := range stats.Holm(p) {
		b := &w.Buckets[tested[k]]
		b.P = Number(adjusted)
		w.Tests = append(w.Tests, Test{Name: "cut against whole, " + b.Label + " " + t.unit, Method: "McNemar mid-p, Holm over buckets", N: b.N, P: p[k], Adjusted: Number(adjusted)})
	}
	sum := 0
	for _, b := range w.Buckets {
		sum += b.N
	}
	if sum != w.Total.N {
		return fmt.Errorf("length buckets hold %d messages of %d: a fault of misroute", sum, w.Total.N)
	}
	t.byWindows(w)
	return nil
}

// byWindows reports error by window count: the maximum over windows grows with their number.
func (t *tally) byWindows(w *Weekly) {
	if t.run.Strategy != "windows" {
		return
	}
	names := []string{"1", "2", "3", "4", "5 and more"}
	n, wrong := make([]int, len(names)), make([]int, len(names))
	for _, r := range t.judged {
		i := min(max(int(r.windows), 1), len(names)) - 1
		n[i]++
		if r.wrong() {
			wrong[i]++
		}
	}
	for i, name := range names {
		w.Windows = append(w.Windows, Windows{name, newRate(wrong[i], n[i], few)})
	}
}

// queueCounts are the counts behind the queue table, the confusion matrix and the pairs.
type queueCounts struct {
	confusion *stats.Confusion
	sent      []int     // messages sent to a queue, labelled or not
	cost      []float64 // of a queue's misroutes
	pairs     map[[2]int]*Pair
}

func (t *tally) countQueues() queueCounts {
	c := queueCounts{confusion: stats.NewConfusion(len(t.queues)), sent: make([]int, len(t.queues)), cost: make([]float64, len(t.queues)), pairs: map[[2]int]*Pair{}}
	pair := func(from, to int) *Pair {
		p := c.pairs[[2]int{from, to}]
		if p == nil {
			p = &Pair{From: t.queues[from], To: t.queues[to]}
			c.pairs[[2]int{from, to}] = p
		}
		return p
	}
	for _, r := range t.rows {
		to := t.queue(r.prediction)
		if r.prediction != 0 {
			c.sent[to]++
		}
		if r.label == 0 || r.prediction == 0 {
			continue
		}
		from := t.queue(r.label)
		c.confusion.Add(from, to, 1)
		whole, known := t.readWhole(r)
		switch {
		case r.wrong():
			p := pair(from, to)
			p.N++
			p.Cost += t.cost(r.label, r.prediction)
			c.cost[from] += t.cost(r.label, r.prediction)
			if r.cut() {
				p.Over++
				if known && whole == r.label {
					p.Right++
				}
			}
		case r.cut() && known && whole != r.label && whole != 0:
			pair(from, t.queue(whole)).Added++
		}
	}
	return c
}

// perQueue fills the queue table, the confusion matrix and the pairs.
func (t *tally) perQueue(w *Weekly) {
	c := t.countQueues()
	all := c.confusion
	known := map[string]bool{}
	for _, name := range t.run.Queues {
		known[name] = true
	}
	for i, name := range t.queues {
		n := all.Label(i)
		line := Queue{
			Name: name, Rate: newRate(n-all.At(i, i), n, few), Sent: all.Predicted(i), Predicted: c.sent[i],
			Precision: ratio(all.Precision(i)), Recall: ratio(all.Recall(i)), F1: ratio(all.F1(i)),
			Cost: undefined, Known: known[name] || len(known) == 0,
		}
		if t.o.Costs != nil {
			line.Cost = Number(c.cost[i])
		}
		for j, to := range t.queues {
			if k := all.At(i, j); i != j && k > line.MostlyN {
				line.Mostly, line.MostlyN = to, k
			}
		}
		w.Queues = append(w.Queues, line)
	}
	w.Macro = undefined
	if f1, ok := all.MacroF1(); ok {
		w.Macro = Number(f1)
	}
	if len(t.queues) <= mostConfused {
		w.Confusion = make([][]int, len(t.queues))
		for i := range w.Confusion {
			w.Confusion[i] = make([]int, len(t.queues))
			for j := range w.Confusion[i] {
				w.Confusion[i][j] = all.At(i, j)
			}
		}
	}
	w.Pairs = make([]Pair, 0, len(c.pairs))
	for _, p := range c.pairs {
		w.Pairs = append(w.Pairs, *p)
	}
	slices.SortFunc(w.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(b.Right, a.Right), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	t.weigh(w, c.cost)
}

// weigh sums the costs of misroutes, where a costs file gives them.
func (t *tally) weigh(w *Weekly, cost []float64) {
	if t.o.Costs == nil {
		return
	}
	sum := &CostSum{Mean: undefined}
	for _, c := range cost {
		sum.Sum += c
	}
	if len(t.judged) > 0 {
		sum.Mean = Number(sum.Sum / float64(len(t.judged)))
	}
	w.Cost = sum
	for _, q := range t.o.Costs.Unknown(t.queues) {
		w.Warnings = append(w.Warnings, fmt.Sprintf("the costs file names the queue %q, which neither the router nor a label knows", q))
	}
}

// labelMargin is the logit of the label minus the best other, from the scores: their logarithms
// differ from the logits by one constant. NaN where the label has no score.
func labelMargin(r *result.Row) float64 {
	label, best := math.NaN(), math.Inf(-1)
	for _, s := range r.Scores {
		// A float32 softmax can round to zero; its logarithm must stay finite to be compared.
		l := math.Log(max(float64(s.Score), 1e-38))
		if s.Queue == r.Label {
			label = l
		} else {
			best = max(best, l)
		}
	}
	if math.IsInf(best, -1) {
		return math.NaN()
	}
	return label - best
}

// candidate is a line that may become an example.
type candidate struct {
	*line
	size  float64 // what the list is ordered by, the largest first
	whole shared
}

// examples lists the messages worth looking at.
func (t *tally) examples(w *Weekly) error {
	var caused, saved, others []candidate
	for _, r := range t.judged {
		whole, known := t.readWhole(r)
		wrongWhole := known && whole != r.label
		switch {
		case r.wrong() && r.cut() && known && !wrongWhole:
			caused = append(caused, candidate{r, size(t.change(r)), whole})
		case r.wrong():
			others = append(others, candidate{r, size(t.score(r)), whole}) // the surest mistake first
		case r.cut() && wrongWhole:
			saved = append(saved, candidate{r, size(t.change(r)), whole})
		}
	}
	w.CausedN, w.SavedN, w.OthersN = len(caused), len(saved), len(others)
	lists := []struct {
		from []candidate
		to   *[]Example
	}{{caused, &w.Caused}, {saved, &w.Saved}, {others, &w.Others}}
	shown := map[int32]*shownFacts{}
	for i := range lists {
		l := &lists[i]
		slices.SortStableFunc(l.from, func(a, b candidate) int { return cmp.Compare(b.size, a.size) })
		l.from = l.from[:min(len(l.from), t.o.Examples)]
		for _, c := range l.from {
			shown[c.at] = nil
		}
	}
	if len(shown) > 0 {
		err := t.in.shown(func(at int32, s *shownFacts) {
			if _, wanted := shown[at]; wanted {
				shown[at] = s
			}
		})
		if err != nil {
			return err
		}
	}
	for _, l := range lists {
		*l.to = []Example{}
		for _, c := range l.from {
			*l.to = append(*l.to, t.example(c.line, c.whole, shown[c.at]))
		}
	}
	return nil
}

// size is an absolute size, that of an undefined number below all others.
func size(x Number) float64 {
	if !x.Defined() {
		return -1
	}
	return math.Abs(float64(x))
}

// change of the label's margin from cut to whole.
func (t *tally) change(r *line) Number {
	if ref := t.whole(r); ref != nil {
		return Number(float64(ref.margin) - r.margin)
	}
	return undefined
}

// score of the prediction, where the router gives scores.
func (t *tally) score(r *line) Number {
	if t.run.Model.Family == asRouted {
		return undefined
	}
	return Number(r.score)
}

func (t *tally) example(r *line, whole shared, s *shownFacts) Example {
	e := Example{
		Source: t.name(r.source), RecordNo: r.record, MessageID: s.MessageID, Label: t.name(r.label), Prediction: t.name(r.prediction),
		Tokens: t.length(r), Kept: int(r.kept), Score: t.score(r), Change: undefined,
	}
	if !r.cut() {
		e.Kept = e.Tokens
	} else {
		e.Whole = t.name(whole)
		for _, k := range s.Kept {
			e.Ranges = append(e.Ranges, Span{int(k.From), int(k.To)})
		}
		if len(e.Ranges) == 0 {
			e.Ranges = []Span{{0, e.Kept}}
		}
		e.Change = t.change(r)
		if ref := t.whole(r); ref != nil && ref.decisiveTo > ref.decisiveFrom {
			e.Decisive, e.Zone = &Span{int(ref.decisiveFrom), int(ref.decisiveTo)}, t.name(ref.zone)
		}
	}
	if t.o.WithText {
		e.Subject, e.Text = table.Fit(s.Subject, mostSubject), excerpt(s.Text)
	}
	return e
}

// A page shows at most this much of a message; the rows have all of it.
const (
	mostSubject = 200  // columns
	mostText    = 2000 // characters
)

// excerpt cuts a text at a character, and says so.
func excerpt(s string) string {
	n := 0
	for i := range s {
		if n++; n > mostText {
			return s[:i] + " […]"
		}
	}
	return s
}

// asRouted is the family of a run that evaluates the deployed router's own decisions.
const asRouted = "as-routed"

type reasons map[[2]string]*reasonCount

type reasonCount struct {
	Reason
	source string
	record int64
}

func newReasons() reasons { return reasons{} }

func (m reasons) add(stage, code, source string, record int64, detail string) {
	k := [2]string{stage, code}
	c := m[k]
	if c == nil {
		c = &reasonCount{Reason: Reason{Stage: stage, Code: code}, source: source, record: record}
		c.Detail = detail
		m[k] = c
	}
	c.N++
	// The first in the order of the messages, whatever the order of the rows.
	if source < c.source || source == c.source && record < c.record {
		c.source, c.record, c.Detail = source, record, detail
	}
}

func (m reasons) list() []Reason {
	list := make([]Reason, 0, len(m))
	for _, c := range m {
		c.Example = fmt.Sprintf("%s record %d", c.source, c.record)
		list = append(list, c.Reason)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.N != b.N {
			return a.N > b.N
		}
		return a.Stage+"/"+a.Code < b.Stage+"/"+b.Code
	})
	return list
}

// nonNil keeps null out of JSON where a reader expects a list.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
