package reports

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"misroute/pipeline/result"
)

// weekOf is a week of the cake shop's mail under its own name, ids and threads.
func weekOf(seed uint64, n int, name string) *result.Folder {
	f := crumb(seed, n)
	f.Run.RunID = "run of " + name
	for i := range f.Rows {
		r := &f.Rows[i]
		r.RunID, r.Week = f.Run.RunID, name
		r.MessageID = name + r.MessageID
		r.ThreadKey = name + r.ThreadKey
		r.ContentSHA256 = name + r.ContentSHA256
	}
	return f
}

func trended(t *testing.T, o Options, runs ...*result.Folder) *Trend {
	t.Helper()
	x, err := NewTrend(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func trendText(t *testing.T, x *Trend) string {
	t.Helper()
	var b bytes.Buffer
	all := forms(x)
	for _, name := range sortedKeys(all) {
		if err := all[name](&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestTrendWeeksSideBySide(t *testing.T) {
	weeks := []*result.Folder{weekOf(1, 310, "2026-W45"), weekOf(2, 90, "2026-W46"), weekOf(3, 400, "2026-W47")}
	x := trended(t, Options{}, weeks[2], weeks[0], weeks[1])
	wrong, n := 0, 0
	for i, w := range x.Weeks {
		if w.Name != fmt.Sprintf("2026-W%d", 45+i) {
			t.Errorf("week %d is %s", i, w.Name)
		}
		sum := 0
		for _, b := range w.Lengths {
			sum += b.Scored
		}
		if sum != w.Scored || w.Rejected != 3 || len(w.Runs) != 1 {
			t.Errorf("%s: buckets hold %d of %d, %d rejected, %d runs", w.Name, sum, w.Scored, w.Rejected, len(w.Runs))
		}
		wrong += w.Rate.Wrong
		n += w.Rate.N
		// Three standard errors with this week's own n and the design effect.
		p := float64(x.Centre)
		half := 3 * math.Sqrt(p*(1-p)*float64(x.Effect)/float64(w.Rate.N))
		if math.Abs(float64(w.Limits.High)-(p+half)) > 1e-12 || math.Abs(float64(w.Limits.Low)-max(0, p-half)) > 1e-12 {
			t.Errorf("%s: limits %v", w.Name, w.Limits)
		}
		if i == 0 {
			continue
		}
		if c := w.Change; math.Abs(float64(c.LengthMix+c.Within-c.Difference)) > 1e-12 || math.Abs(float64(c.QueueMix+c.WithinQueues-c.Difference)) > 1e-12 {
			t.Errorf("%s: the parts do not add up: %+v", w.Name, c)
		}
	}
	if n != 800 || math.Abs(float64(x.Centre)-float64(wrong)/800) > 1e-15 {
		t.Errorf("centre %v of %d", x.Centre, n)
	}
	if len(x.FirstSeen) != 0 {
		t.Errorf("first seen: %+v", x.FirstSeen)
	}
}

// A week whose mail is longer and whose router is as good as ever at each length is not blamed on
// the router.
func TestTrendBlamesTheMail(t *testing.T) {
	make := func(name string, short, long int) *result.Folder {
		f := &result.Folder{Run: result.Run{RunID: name, Queues: []string{"a", "b"}, Cap: 256, Strategy: "head"}}
		for i := range short + long {
			r := result.Row{RunID: name, RecordNo: int64(i), MessageID: fmt.Sprint(name, i), ThreadKey: fmt.Sprint(name, i), Week: name, Label: "a", Prediction: "a", TokensTotal: 50, TokensKept: 50, Cap: 256, Status: result.StatusScored}
			wrong := i%20 == 0 // 5 % of short messages
			if i >= short {
				r.TokensTotal, r.TokensKept = 300, 256
				wrong = i%2 == 0 // half of the long ones
			}
			if wrong {
				r.Prediction = "b"
			}
			f.Rows = append(f.Rows, r)
		}
		return f
	}
	x := trended(t, Options{}, make("2026-W46", 900, 100), make("2026-W47", 500, 500))
	c := x.Weeks[1].Change
	// Shares of long mail .1 to .5, rates .05 and .5 in both weeks: (.5-.1)*(.5-.05) = .18, all of it mix.
	if math.Abs(float64(c.LengthMix)-.18) > 1e-9 || math.Abs(float64(c.Within)) > 1e-9 {
		t.Errorf("%+v", c)
	}
	if x.LengthDrift.P > 1e-6 || math.Abs(x.LengthDrift.Distance-.4) > 1e-9 || !x.Weeks[1].Out {
		t.Errorf("drift %+v, out %v", x.LengthDrift, x.Weeks[1].Out)
	}
	if !strings.Contains(trendText(t, x), "because mail has other lengths") {
		t.Error("the report does not say so")
	}
}

// Rates of 8, 10, 12, 14 and 16 % of 200: every week is inside of its limits, the rise is not chance.
func TestTrendSeesASteadyRise(t *testing.T) {
	var runs []*result.Folder
	for i := range 5 {
		// 2026 has 53 weeks: W52, W53, W01 of 2027, ... lie one week apart.
		name := []string{"2026-W52", "2026-W53", "2027-W01", "2027-W02", "2027-W03"}[i]
		f := &result.Folder{Run: result.Run{RunID: name, Queues: []string{"a", "b"}}}
		for j := range 200 {
			r := result.Row{RunID: name, RecordNo: int64(j), MessageID: fmt.Sprint(name, j), ThreadKey: fmt.Sprint(name, j), Week: name, Label: "a", Prediction: "a", TokensTotal: 50, TokensKept: 50, Status: result.StatusScored}
			if j < 16+4*i {
				r.Prediction = "b"
			}
			f.Rows = append(f.Rows, r)
		}
		runs = append(runs, f)
	}
	x := trended(t, Options{}, runs...)
	for i := range x.Weeks {
		if x.Weeks[i].Out {
			t.Errorf("%s is out", x.Weeks[i].Name)
		}
	}
	if x.Slope == nil || math.Abs(x.Slope.Slope-.02) > 1e-12 || x.Slope.P > .01 {
		t.Errorf("slope %+v", x.Slope)
	}
	if !strings.Contains(strings.Join(x.Findings, " "), "rises by 2.0 points a week") {
		t.Errorf("%q", x.Findings)
	}
	if at := x.times(); at[2]-at[1] != 1 || at[4]-at[0] != 4 {
		t.Errorf("weeks lie at %v", at)
	}
}

func TestTrendFirstSeenAndDrift(t *testing.T) {
	a, b := weekOf(1, 300, "2026-W46"), weekOf(2, 300, "2026-W47")
	for i := range b.Rows {
		if b.Rows[i].Label == "refunds" {
			b.Rows[i].Label = "vouchers"
		}
	}
	x := trended(t, Options{}, a, b)
	if len(x.FirstSeen) != 1 || x.FirstSeen[0].Queue != "vouchers" || x.FirstSeen[0].Week != "2026-W47" || x.FirstSeen[0].Known || x.FirstSeen[0].Labelled == 0 {
		t.Errorf("first seen %+v", x.FirstSeen)
	}
	if x.QueueDrift.P > 1e-6 {
		t.Errorf("drift %+v", x.QueueDrift)
	}
	for _, q := range x.Queues {
		if q.Name == "vouchers" && (q.Before != 0 || q.Last == 0 || float64(q.Q) > 1e-6) {
			t.Errorf("%+v", q)
		}
	}
}

func TestTrendWeighsMisroutes(t *testing.T) {
	costs, err := ParseCosts(strings.NewReader("from,to,cost\nrefunds,*,2.5\nnowhere,*,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := weekOf(1, 300, "2026-W47")
	want := 0.0
	for i := range f.Rows {
		switch r := &f.Rows[i]; {
		case r.Wrong() && r.Label == "refunds":
			want += 2.5
		case r.Wrong():
			want++
		}
	}
	x := trended(t, Options{Costs: costs}, f)
	if c := x.Weeks[0].Cost; c == nil || math.Abs(c.Sum-want) > 1e-9 || math.Abs(float64(c.Mean)-want/300) > 1e-12 {
		t.Errorf("cost %+v, want %v", c, want)
	}
	if !strings.Contains(strings.Join(x.Warnings, " "), `"nowhere"`) || !strings.Contains(trendText(t, x), "cost") {
		t.Errorf("%q", x.Warnings)
	}
}

func TestTrendRouterChange(t *testing.T) {
	a, b := weekOf(1, 100, "2026-W46"), weekOf(2, 100, "2026-W47")
	b.Run.Model.Name = "crumb-v4"
	x := trended(t, Options{}, a, b)
	if !strings.Contains(strings.Join(x.Warnings, "\n"), "the router changed between 2026-W46 and 2026-W47: crumb-v3") {
		t.Errorf("%q", x.Warnings)
	}
}

func TestTrendWithoutDatesLabelsOrCompany(t *testing.T) {
	a, b := weekOf(1, 50, ""), weekOf(2, 50, "")
	for i := range b.Rows {
		b.Rows[i].MessageID += "b"
	}
	b.Run.Inputs = nil
	x := trended(t, Options{}, a, b)
	if len(x.Weeks) != 2 || x.Weeks[0].Name != "run 1 (2026-W47.mbox)" || x.Weeks[1].Name != "run 2" {
		t.Errorf("%d weeks, %q", len(x.Weeks), x.Weeks[0].Name)
	}
	// Undated rows go with most of their run.
	c := weekOf(1, 50, "2026-W47")
	c.Rows[7].Week = ""
	c.Rows[8].Week = "2026-W46"
	x = trended(t, Options{}, c)
	if len(x.Weeks) != 2 || x.Weeks[0].Scored != 1 || x.Weeks[1].Scored != 49 {
		t.Errorf("%d weeks", len(x.Weeks))
	}
	for i := range c.Rows {
		c.Rows[i].Label = ""
	}
	x = trended(t, Options{}, c)
	if x.Centre.Defined() || !strings.Contains(x.Headline, "none labelled") {
		t.Errorf("%q", x.Headline)
	}
	trendText(t, x)
	one := trended(t, Options{}, weekOf(4, 40, "2026-W47"))
	if !strings.Contains(one.Headline, "no other week") || one.QueueDrift != nil {
		t.Errorf("%q", one.Headline)
	}
	trendText(t, one)
	if _, err := NewTrend(nil, Options{}); err == nil {
		t.Error("no run")
	}
	if _, err := NewTrend([]*result.Folder{{}}, Options{}); err == nil {
		t.Error("no message")
	}
}

func TestTrendIgnoresOrderAndRepeats(t *testing.T) {
	a, b := weekOf(1, 200, "2026-W46"), weekOf(2, 200, "2026-W47")
	want := trendText(t, trended(t, Options{}, a, b))
	random := rand.New(rand.NewPCG(1, 9))
	for _, f := range []*result.Folder{a, b} {
		f.Rows = slices.Clone(f.Rows)
		random.Shuffle(len(f.Rows), func(i, j int) { f.Rows[i], f.Rows[j] = f.Rows[j], f.Rows[i] })
	}
	if trendText(t, trended(t, Options{}, b, a)) != want {
		t.Error("the order of rows or of runs changes the report")
	}
	x := trended(t, Options{}, a, b, a)
	if x.Repeats != 200 || x.Weeks[0].Scored != 200 {
		t.Errorf("%d repeats, %d scored", x.Repeats, x.Weeks[0].Scored)
	}
}

func TestTrendEscapesStrangers(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	a, b := weekOf(1, 60, ""), weekOf(2, 60, "2026-W47")
	a.Run.Inputs[0].Name = evil
	for i := range b.Rows {
		if b.Rows[i].Label == "refunds" {
			b.Rows[i].Label = evil
		}
	}
	text := trendText(t, trended(t, Options{}, b, a))
	page := text[strings.Index(text, "<!doctype"):strings.Index(text, "</html>")]
	if strings.Contains(page, "<script") || !strings.Contains(page, "&lt;script&gt;") {
		t.Error("a stranger's markup must show as text")
	}
}

func TestTrendLook(t *testing.T) {
	dir := os.Getenv("MISROUTE_LOOK")
	if dir == "" {
		t.Skip("MISROUTE_LOOK names no folder to write pages to")
	}
	var runs []*result.Folder
	for i := range 9 {
		runs = append(runs, weekOf(uint64(i), 200+40*i, fmt.Sprintf("2026-W%d", 39+i)))
	}
	runs[6] = worse(runs[6], 6)
	for name, write := range forms(trended(t, Options{}, runs...)) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "trend"+name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTrendGolden(t *testing.T) {
	var runs []*result.Folder
	for i := range 9 {
		runs = append(runs, weekOf(uint64(i), 200+40*i, fmt.Sprintf("2026-W%d", 39+i)))
	}
	runs[6] = worse(runs[6], 6)
	x := trended(t, Options{}, runs...)
	golden(t, "trend.md", x.Markdown)
	golden(t, "trend.txt", func(out io.Writer) error { return x.Terminal(out, TermOptions{}) })
}
