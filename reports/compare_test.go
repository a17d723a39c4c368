package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"misroute/pipeline/result"
	"misroute/reports/stats"
)

// another copies a run, so that it can be changed row by row.
func another(f *result.Folder) *result.Folder {
	c := *f
	c.Rows = slices.Clone(f.Rows)
	c.Rejects = slices.Clone(f.Rejects)
	return &c
}

// sendTo makes a row's prediction another queue, with scores that say so.
func sendTo(r *result.Row, queue string) {
	r.Prediction = queue
	r.Scores = slices.Clone(r.Scores)
	for i := range r.Scores {
		r.Scores[i].Score = .02
		if r.Scores[i].Queue == queue {
			r.Scores[i].Score = .9
		}
	}
	r.Score, r.Margin = .9, 3.8
}

// worse makes a candidate that sends the first of every step right messages to general feedback.
func worse(f *result.Folder, step int) *result.Folder {
	c := another(f)
	c.Run.RunID, c.Run.Model.Name = "77aa", "crumb-v4"
	seen := 0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Wrong() || r.Label == "general feedback" {
			continue
		}
		if seen%step == 0 {
			sendTo(r, "general feedback")
		}
		seen++
	}
	return c
}

func compared(t *testing.T, base, cand *result.Folder, o CompareOptions) *Compare {
	t.Helper()
	c, err := NewCompare([]*result.Folder{base}, []*result.Folder{cand}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// drawn is the comparison in every form, one after the other.
func drawn(t *testing.T, c *Compare) string {
	t.Helper()
	var b bytes.Buffer
	all := forms(c)
	for _, name := range sortedKeys(all) {
		if err := all[name](&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestCompareARunAgainstItself(t *testing.T) {
	for _, n := range []int{1, 20, 310} {
		f := crumb(1, n)
		c := compared(t, f, f, CompareOptions{})
		p := c.Overall.Pairs
		if c.Flips.Flipped() != 0 || p.MidP != 1 || p.Exact != 1 || p.P() != 1 || c.Verdict() != stats.Pass || p.Difference != 0 {
			t.Errorf("%d messages: %d flips, mid-p %v, p %v, %v", n, c.Flips.Flipped(), p.MidP, p.P(), c.Verdict())
		}
		if !strings.Contains(c.Headline, "no message changed") {
			t.Errorf("headline %q", c.Headline)
		}
	}
}

func TestCompareFindsARegression(t *testing.T) {
	f := crumb(1, 600)
	c := compared(t, f, worse(f, 12), CompareOptions{})
	if c.Verdict() != stats.Regression || c.Flips.Positive != 0 || c.Flips.Negative == 0 || c.Overall.Pairs.B != c.Flips.Negative {
		t.Fatalf("%v: %+v", c.Verdict(), c.Overall.Pairs)
	}
	if !c.Confirmed {
		t.Error("the overall difference is decided, so lengths and queues are tested")
	}
	added := 0
	for _, x := range c.Ways {
		if x.Base-x.Saved+x.Added != x.Cand {
			t.Errorf("ledger of %s to %s: %d - %d + %d is not %d", x.From, x.To, x.Base, x.Saved, x.Added, x.Cand)
		}
		if x.Added > 0 && x.To != "general feedback" {
			t.Errorf("%d added to %s", x.Added, x.To)
		}
		added += x.Added - x.Saved
	}
	if added != c.Overall.Cand.Wrong-c.Overall.Base.Wrong {
		t.Errorf("the ledger adds %d, the totals %d", added, c.Overall.Cand.Wrong-c.Overall.Base.Wrong)
	}
	for i := range c.Flips.Worst {
		if i > 0 && c.Flips.Worst[i].Change < c.Flips.Worst[i-1].Change {
			t.Errorf("flip %d (%v) stands behind a smaller one (%v)", i, c.Flips.Worst[i].Change, c.Flips.Worst[i-1].Change)
		}
		if c.Flips.Worst[i].Change >= 0 {
			t.Errorf("a negative flip gained margin: %+v", c.Flips.Worst[i])
		}
	}
	n, holm := 0, 0
	for _, q := range c.Queues {
		n += q.Base.N
		if q.Holm.Defined() {
			holm++
		}
		if q.Base.Few && (q.Holm.Defined() || q.Q.Defined()) {
			t.Errorf("%s has %d messages and was tested", q.Name, q.Base.N)
		}
	}
	if n != c.Sets.Labelled || holm == 0 {
		t.Errorf("queues hold %d of %d, %d tested", n, c.Sets.Labelled, holm)
	}
	n = 0
	for _, b := range c.Lengths {
		n += b.Base.N
	}
	if n != c.Sets.Labelled {
		t.Errorf("lengths hold %d of %d", n, c.Sets.Labelled)
	}
}

func TestCompareSwapped(t *testing.T) {
	f := crumb(3, 500)
	g := worse(f, 25)
	for i := range g.Rows { // a few better, too
		if g.Rows[i].Wrong() && i%3 == 0 {
			sendTo(&g.Rows[i], g.Rows[i].Label)
		}
	}
	costs, err := ParseCosts(strings.NewReader("from,to,cost\nallergy questions,general feedback,20\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := CompareOptions{Options: Options{Costs: costs}}
	a, b := compared(t, f, g, o), compared(t, g, f, o)
	x, y := a.Overall.Pairs, b.Overall.Pairs
	if x.B != y.C || x.C != y.B || x.MidP != y.MidP || x.P() != y.P() || x.Difference != -y.Difference {
		t.Errorf("%+v and %+v", x, y)
	}
	if a.Flips.Negative != b.Flips.Positive || a.Flips.Positive != b.Flips.Negative || a.Flips.Neutral != b.Flips.Neutral {
		t.Errorf("flips %+v and %+v", a.Flips, b.Flips)
	}
	if a.MacroF1.Difference != -b.MacroF1.Difference || a.MacroF1.DifferenceInterval.Low != -b.MacroF1.DifferenceInterval.High {
		t.Errorf("macro-F1 %+v and %+v", a.MacroF1, b.MacroF1)
	}
	if a.Severity.Difference != -b.Severity.Difference || a.Severity.Interval.Low != -b.Severity.Interval.High || a.Severity.Cluster.P != b.Severity.Cluster.P {
		t.Errorf("severity %+v and %+v", a.Severity, b.Severity)
	}
	for i := range a.Queues {
		if p, q := a.Queues[i].Pairs, b.Queues[i].Pairs; p.P() != q.P() || p.Difference != -q.Difference {
			t.Errorf("queue %s: %+v and %+v", a.Queues[i].Name, p, q)
		}
	}
}

func TestCompareIgnoresOrderAndWorkers(t *testing.T) {
	f := crumb(1, 400)
	g := worse(f, 15)
	want := drawn(t, compared(t, f, g, CompareOptions{}))
	random := rand.New(rand.NewPCG(5, 5))
	for _, workers := range []int{1, 16} {
		f, g := another(f), another(g)
		random.Shuffle(len(f.Rows), func(i, j int) { f.Rows[i], f.Rows[j] = f.Rows[j], f.Rows[i] })
		random.Shuffle(len(g.Rows), func(i, j int) { g.Rows[i], g.Rows[j] = g.Rows[j], g.Rows[i] })
		if got := drawn(t, compared(t, f, g, CompareOptions{Workers: workers})); got != want {
			t.Errorf("shuffled rows and %d workers change the report", workers)
		}
	}
	// Another export of the same mail numbers its records otherwise: the pairs stay.
	for i := range g.Rows {
		g.Rows[i].RecordNo += 1000
	}
	if c := compared(t, f, g, CompareOptions{}); c.Sets.Paired != 400 {
		t.Errorf("%d pairs", c.Sets.Paired)
	}
}

func TestCompareRefusesDifferentSets(t *testing.T) {
	f := crumb(1, 100)
	g := another(f)
	g.Rows = g.Rows[3:]
	g.Rejects = append(g.Rejects, result.Reject{MessageID: f.Rows[0].MessageID, Code: "mime_too_deep"})
	g.Rows[0].ContentSHA256 = "other"     // message 4
	g.Rows[1].Label = "somewhere else"    // message 5
	g.Rows[2].Status = "filtered"         // message 6
	g.Rows[3].MessageID = "<new@example>" // message 7
	_, err := NewCompare([]*result.Folder{f}, []*result.Folder{g}, CompareOptions{})
	var sets *SetsDifferError
	if !errors.As(err, &sets) {
		t.Fatalf("error %v", err)
	}
	got := map[string]string{}
	for _, u := range sets.Unpaired {
		got[u.Side+" "+u.MessageID] = u.Why
	}
	want := map[string]string{
		"baseline <1@crumb.example>": "rejected there: mime_too_deep",
		"baseline <2@crumb.example>": "not there", "baseline <3@crumb.example>": "not there",
		"baseline <4@crumb.example>": "there with other content", "candidate <4@crumb.example>": "there with other content",
		"both <5@crumb.example>":     fmt.Sprintf("label %q in the baseline, \"somewhere else\" in the candidate", f.Rows[4].Label),
		"baseline <6@crumb.example>": "filtered there",
		"baseline <7@crumb.example>": "not there", "candidate <new@example>": "not there",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("unpaired\n%v\nwant\n%v", got, want)
	}
	if sets.Common != 93 || !strings.Contains(err.Error(), "--intersect") {
		t.Errorf("%d common; %v", sets.Common, err)
	}
	c := compared(t, f, g, CompareOptions{Intersect: true})
	if c.Sets.Paired != 93 || c.Sets.Baseline != 100 || c.Sets.Candidate != 96 || len(c.Sets.Unpaired) != 9 || !c.Sets.Intersect {
		t.Errorf("%+v", c.Sets)
	}
}

func TestCompareNeedsLabels(t *testing.T) {
	f := crumb(1, 10)
	for i := range f.Rows {
		f.Rows[i].Label = ""
	}
	if _, err := NewCompare([]*result.Folder{f}, []*result.Folder{f}, CompareOptions{}); err == nil {
		t.Error("without a label nothing can be better or worse")
	}
	if _, err := NewCompare(nil, []*result.Folder{f}, CompareOptions{}); err == nil {
		t.Error("no baseline")
	}
	g := crumb(2, 10)
	for i := range g.Rows {
		g.Rows[i].MessageID = "elsewhere"
		g.Rows[i].ContentSHA256 += "x"
	}
	if _, err := NewCompare([]*result.Folder{f}, []*result.Folder{g}, CompareOptions{Intersect: true}); err == nil {
		t.Error("nothing in common")
	}
}

// Weekly runs of one side are taken together; a message that two exports hold counts once.
func TestCompareFoldersOfWeeks(t *testing.T) {
	all := crumb(1, 300)
	week := func(f *result.Folder, from, to int, name string) *result.Folder {
		w := another(f)
		w.Rows = slices.Clone(f.Rows[from:to])
		w.Run.RunID += name
		for i := range w.Rows {
			w.Rows[i].Week = name
		}
		return w
	}
	g := worse(all, 10)
	one := compared(t, all, g, CompareOptions{})
	c, err := NewCompare(
		[]*result.Folder{week(all, 0, 150, "2026-W46"), week(all, 140, 300, "2026-W47")},
		[]*result.Folder{week(g, 140, 300, "2026-W47"), week(g, 0, 150, "2026-W46")}, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Sets.Paired != 300 || c.Sets.Repeats != 20 || c.Overall.Pairs.MidP != one.Overall.Pairs.MidP || c.Overall.Pairs.P() != one.Overall.Pairs.P() {
		t.Errorf("%+v", c.Sets)
	}
	weeks := 0
	for _, x := range c.Explored {
		if x.Kind == "week" {
			weeks++
			if !x.Q.Defined() || x.Holm.Defined() {
				t.Errorf("%s: exploratory groups carry a q: %v %v", x.Name, x.Q, x.Holm)
			}
		}
	}
	if weeks != 2 {
		t.Errorf("%d weeks", weeks)
	}
}

func TestCompareSaysWhatItCannotTell(t *testing.T) {
	f := crumb(1, 120)
	c := compared(t, f, worse(f, 40), CompareOptions{})
	if c.Verdict() != stats.Inconclusive || c.Gate.Needed <= 120 || c.Gate.Detectable <= 0 {
		t.Fatalf("%+v", c.Gate)
	}
	text := drawn(t, c)
	for _, want := range []string{"INCONCLUSIVE", "cannot tell", "need at least 5 changed messages", "exploratory"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said", want)
		}
	}
	if c.Confirmed {
		t.Error("an undecided whole leaves its parts exploratory")
	}
}

func TestCompareQueuesThatOneSideMisses(t *testing.T) {
	f := crumb(1, 200)
	g := another(f)
	g.Run.Queues = []string{"refunds", "new queue"}
	for i := range g.Rows {
		switch {
		case i%50 == 0:
			f.Rows[i].Label, g.Rows[i].Label = "retired", "retired" // no router knows it
		case i%7 == 0:
			g.Rows[i].Prediction = "new queue"
			g.Rows[i].Scores = nil
		}
	}
	c := compared(t, f, g, CompareOptions{})
	if c.Routable == nil || c.Routable.Base.N >= c.Overall.Base.N {
		t.Errorf("labels that a router does not know need totals of their own: %+v", c.Routable)
	}
	names := map[string]QueueChange{}
	for _, q := range c.Queues {
		names[q.Name] = q
	}
	if q := names["new queue"]; q.Base.N != 0 || q.BasePrecision.Defined() || !q.CandPrecision.Defined() {
		t.Errorf("new queue: %+v", q)
	}
	if q := names["retired"]; q.Base.N != 4 || q.Base.Wrong != 4 {
		t.Errorf("retired: %+v", q)
	}
	drawn(t, c)
}

func TestCompareControlAndPrice(t *testing.T) {
	f := crumb(1, 400)
	whole := another(f)
	whole.Run.Cap = 0
	readings := map[int64]*result.Reading{}
	for i := range f.Readings {
		if f.Readings[i].Kind == result.ReadWhole {
			readings[f.Readings[i].RecordNo] = &f.Readings[i]
		}
	}
	uncut, saved, extra := 0, 0, int64(0)
	for i := range whole.Rows {
		r := &whole.Rows[i]
		x := readings[r.RecordNo]
		if x == nil {
			uncut++
			continue
		}
		wrong := r.Wrong()
		extra += x.FLOPs - r.FLOPs
		r.Prediction, r.TokensKept, r.FLOPs, r.Cap = x.Prediction, r.TokensTotal, x.FLOPs, 0
		saved += int(b2f(wrong)) - int(b2f(r.Wrong()))
	}
	c := compared(t, f, whole, CompareOptions{})
	if c.Control == nil || *c.Control != (Unchanged{uncut, 0}) {
		t.Errorf("control %+v, want %d messages and no flip", c.Control, uncut)
	}
	if p := c.Price; p == nil || p.Dearer != "candidate" || p.Saved != saved || p.Extra != float64(extra) || !p.Defined || math.Abs(p.PerSaved-float64(extra)/float64(saved)) > 1 {
		t.Errorf("price %+v, want %d saved for %d", p, saved, extra)
	}
	// The other way round the same run is the dearer one, at the same price.
	d := compared(t, whole, f, CompareOptions{})
	if d.Price.Dearer != "baseline" || d.Price.SavedCost != c.Price.SavedCost {
		t.Errorf("%+v and %+v", d.Price, c.Price)
	}
	for i := range whole.Rows {
		if readings[whole.Rows[i].RecordNo] == nil {
			sendTo(&whole.Rows[i], "wholesale")
			break
		}
	}
	c = compared(t, f, whole, CompareOptions{})
	if c.Control.Flips != 1 || !strings.Contains(strings.Join(c.Warnings, " "), "a fault of one of the runs") {
		t.Errorf("a flip under the cap must be said: %+v %q", c.Control, c.Warnings)
	}
	other := another(f)
	other.Run.Model.SHA256 = "else"
	if c := compared(t, f, other, CompareOptions{}); c.Control != nil || c.Price != nil {
		t.Errorf("two models have no control: %+v %+v", c.Control, c.Price)
	}
}

// The deployed router's own decisions against a model: lengths are the model's, and nobody knows
// what the deployed router costs.
func TestCompareWithADeployedRouter(t *testing.T) {
	f := crumb(1, 300)
	routed := another(f)
	routed.Run.Model = result.ModelFacts{Name: "as routed", Family: asRouted}
	for i := range routed.Rows {
		r := &routed.Rows[i]
		r.Routed, r.Scores, r.Score, r.Margin = r.Prediction, nil, 0, 0
		r.TokensTotal, r.TokensKept, r.Cap, r.Cells, r.FLOPs, r.Windows = 0, 0, 0, 0, 0, 0
	}
	c := compared(t, routed, f, CompareOptions{})
	if c.Unit != unitTokens || c.LengthsOf != sideCandidate || c.Lengths[0].Base.N == 300 || c.Price != nil || c.Baseline.ECE.Defined() {
		t.Errorf("%s of the %s, price %v", c.Unit, c.LengthsOf, c.Price)
	}
	drawn(t, c)
	if c := compared(t, routed, routed, CompareOptions{}); c.Unit != unitCharacters || c.Verdict() != stats.Pass {
		t.Errorf("%s, %v", c.Unit, c.Verdict())
	}
	for i := range routed.Rows {
		routed.Rows[i].TokensTotal, routed.Rows[i].TokensKept = 20, 20
	}
	if c := compared(t, routed, routed, CompareOptions{}); c.Unit != unitWords || c.Baseline.MeanKept.Defined() {
		t.Errorf("%s, %v tokens read", c.Unit, c.Baseline.MeanKept)
	}
	if u := lengthUnit([]*result.Folder{routed, f}); u != unitCharacters {
		t.Errorf("words and tokens have %s in common", u)
	}
}

func TestCompareRefusesLabelsThatAreNoQueues(t *testing.T) {
	f := crumb(1, mostQueues+10)
	for i := range f.Rows {
		f.Rows[i].Label = fmt.Sprint("ticket ", i)
	}
	if _, err := NewCompare([]*result.Folder{f}, []*result.Folder{f}, CompareOptions{}); err == nil || !strings.Contains(err.Error(), "are the labels queues") {
		t.Errorf("error %v", err)
	}
	if _, err := NewTrend([]*result.Folder{f}, Options{}); err == nil || !strings.Contains(err.Error(), "are the labels queues") {
		t.Errorf("error %v", err)
	}
}

// 200,000 messages and 200 queues leave a page of less than two megabytes.
func TestCompareSize(t *testing.T) {
	if os.Getenv("MISROUTE_LONG") != "1" {
		t.Skip("200,000 rows are compared under MISROUTE_LONG=1")
	}
	f := crumb(1, 200_000)
	for i := range f.Rows {
		f.Rows[i].Label += fmt.Sprint(i % 33)
	}
	var page bytes.Buffer
	if err := compared(t, f, worse(f, 3), CompareOptions{Workers: 2}).HTML(&page); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 2<<20 {
		t.Errorf("%d bytes", page.Len())
	}
	t.Logf("%d bytes", page.Len())
}

func TestCompareThreshold(t *testing.T) {
	f := crumb(1, 200)
	c := compared(t, f, worse(f, 10), CompareOptions{Options: Options{Threshold: .7}})
	routed, wrong := 0, 0
	for i := range f.Rows {
		if f.Rows[i].Score >= .7 {
			routed++
			if f.Rows[i].Wrong() {
				wrong++
			}
		}
	}
	if a := c.Baseline.Abstain; a == nil || *a != (Handed{.7, routed, 200, wrong}) {
		t.Errorf("%+v, want %d of 200 routed, %d wrong", a, routed, wrong)
	}
	if !strings.Contains(drawn(t, c), "routed at score 0.7") {
		t.Error("the threshold is not shown")
	}
}

func TestCompareEscapesStrangers(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	f := crumb(1, 60)
	for i := range f.Rows {
		f.Rows[i].MessageID += evil
		f.Rows[i].Subject = evil
		f.Rows[i].Source = evil
		if f.Rows[i].Label == "refunds" {
			f.Rows[i].Label = evil
		}
	}
	g := worse(f, 4)
	c := compared(t, f, g, CompareOptions{Options: Options{WithText: true}})
	var page, chat bytes.Buffer
	if err := c.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if err := c.Markdown(&chat); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script") || strings.Contains(chat.String(), "<script") {
		t.Error("a stranger's markup is in the report")
	}
	if !strings.Contains(page.String(), "&lt;script&gt;") {
		t.Error("and should show as text")
	}
}

func TestCompareFormsAgree(t *testing.T) {
	f := crumb(1, 500)
	c := compared(t, f, worse(f, 20), CompareOptions{})
	var b bytes.Buffer
	if err := c.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Schema   int    `json:"schema_version"`
		Headline string `json:"headline"`
		Gate     struct {
			Verdict string `json:"verdict"`
		} `json:"gate"`
		Tests    []Test   `json:"tests"`
		Warnings []string `json:"warnings"`
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != SchemaVersion || back.Gate.Verdict != "REGRESSION" || len(back.Tests) != len(c.Tests) || back.Warnings == nil {
		t.Errorf("%+v", back)
	}
	var terminal bytes.Buffer
	if err := c.Terminal(&terminal, TermOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(terminal.String(), "REGRESSION: the candidate is worse") {
		t.Errorf("it begins %q", strings.SplitN(terminal.String(), "\n", 2)[0])
	}
	interval := points(Number(c.Overall.Pairs.Interval.Low)) + " to " + points(Number(c.Overall.Pairs.Interval.High))
	for name, write := range map[string]func(io.Writer) error{
		"terminal": func(w io.Writer) error { return c.Terminal(w, TermOptions{Width: 200}) }, "html": c.HTML, "markdown": c.Markdown,
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if plain := strings.ReplaceAll(strings.ReplaceAll(out.String(), "&#43;", "+"), `\+`, "+"); !strings.Contains(plain, interval) {
			t.Errorf("%s lacks the interval %s", name, interval)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	f := crumb(1, 200_000)
	g := worse(f, 100)
	b.ReportAllocs()
	for b.Loop() {
		c, err := NewCompare([]*result.Folder{f}, []*result.Folder{g}, CompareOptions{Workers: 2})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.HTML(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCompareLook writes the comparison where somebody wants to look at it, like TestLook.
func TestCompareLook(t *testing.T) {
	dir := os.Getenv("MISROUTE_LOOK")
	if dir == "" {
		t.Skip("MISROUTE_LOOK names no folder to write pages to")
	}
	f := crumb(1, 900)
	for name, write := range forms(compared(t, f, worse(f, 25), CompareOptions{Options: Options{WithText: true}})) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "compare"+name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// forms are the four drawings of a report.
func forms(r interface {
	Terminal(io.Writer, TermOptions) error
	HTML(io.Writer) error
	Markdown(io.Writer) error
	JSON(io.Writer) error
}) map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		".txt": func(w io.Writer) error { return r.Terminal(w, TermOptions{}) }, ".html": r.HTML, ".md": r.Markdown, ".json": r.JSON,
	}
}

func TestCompareGolden(t *testing.T) {
	f := crumb(1, 900)
	c := compared(t, f, worse(f, 25), CompareOptions{})
	golden(t, "compare.md", c.Markdown)
	golden(t, "compare.txt", func(out io.Writer) error { return c.Terminal(out, TermOptions{}) })
}

// comparedPages adds a comparison and a trend, tame and hostile, to the pages that a browser opens.
func comparedPages(t *testing.T, pages map[string][]byte, nasty *result.Folder) {
	t.Helper()
	f := crumb(1, 310)
	b := another(nasty)
	b.Run.RunID, b.Run.Model.Name = "b", hostile[2]
	b.Rows = slices.Clone(worse(nasty, 5).Rows)
	for i := range nasty.Rows {
		// Hostile ids repeat; messages are told apart by content.
		nasty.Rows[i].ContentSHA256, b.Rows[i].ContentSHA256 = fmt.Sprint(i), fmt.Sprint(i)
	}
	later := another(b)
	later.Run.RunID, later.Run.Inputs = "later", []result.InputFacts{{Name: hostile[1]}}
	for i := range later.Rows {
		later.Rows[i].Week, later.Rows[i].ContentSHA256 = "", fmt.Sprint("later ", i)
	}
	for name, r := range map[string]interface{ HTML(io.Writer) error }{
		"compare":         compared(t, f, worse(f, 9), CompareOptions{}),
		"compare-hostile": compared(t, nasty, b, CompareOptions{Options: Options{WithText: true}}),
		"trend":           trended(t, Options{}, weekOf(1, 310, "2026-W46"), weekOf(2, 250, "2026-W47")),
		"trend-hostile":   trended(t, Options{}, nasty, later),
	} {
		var page bytes.Buffer
		if err := r.HTML(&page); err != nil {
			t.Fatal(name, err)
		}
		pages[name] = page.Bytes()
	}
}
