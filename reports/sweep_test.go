package reports

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"misroute/pipeline/result"
)

// crumbSweep is the cake shop's week read at several caps by three strategies. A message goes
// right when the sentence that decides was read, and nine times in ten that sentence stands in the
// first or the last hundred tokens.
func crumbSweep(seed uint64, n int) *result.Folder {
	f := crumb(seed, n)
	f.Readings = nil
	f.Run.Model.Positions = 2048
	f.Run.Reference = "one pass"
	f.Run.Caps, f.Run.Strategies = []int{64, 128, 256, 512, 0}, []string{"head", "tail", "head+tail"}
	f.Measured = &result.Measured{Seconds: 2.1, MessagesPerSecond: 148, Workers: 2, PeakBytes: 210_000_000, MeanScoreMillis: 6.2, BySetting: map[string]float64{}}
	for i := range f.Rows {
		r := &f.Rows[i]
		random := rand.New(rand.NewPCG(seed, uint64(r.RecordNo)))
		decisive := int32(random.IntN(int(min(r.TokensTotal, 100))))
		if random.Float64() < 0.6 {
			decisive = r.TokensTotal - 1 - decisive
		}
		unlucky := random.Float64() < 0.02 // wrong however it is read
		elsewhere := f.Run.Queues[(slices.Index(f.Run.Queues, r.Label)+1)%len(f.Run.Queues)]
		predict := func(limit int32, strategy string) (string, int32) {
			kept := min(limit, r.TokensTotal)
			head := map[string]int32{"head": kept, "tail": 0, "head+tail": kept / 2}[strategy]
			if limit == 0 {
				kept, head = r.TokensTotal, r.TokensTotal
			}
			if seen := decisive < head || decisive >= r.TokensTotal-(kept-head); !seen || unlucky {
				return elsewhere, kept
			}
			return r.Label, kept
		}
		r.Prediction, _ = predict(256, "head")
		read := func(kind string, limit int32, strategy string) {
			prediction, kept := predict(limit, strategy)
			f.Readings = append(f.Readings, result.Reading{Source: r.Source, RecordNo: r.RecordNo, Kind: kind, Cap: limit, Strategy: strategy, Prediction: prediction,
				LabelMargin: 2 - 4*b2f(prediction != r.Label), TokensKept: kept, Windows: 1, Cells: int64(kept) * int64(kept) * 4, FLOPs: int64(kept) * 4_000_000})
		}
		if r.Cut() {
			read(result.ReadWhole, 0, "head")
		} else if i%9 == 0 {
			read(result.ReadControl, 0, "head")
		}
		for _, limit := range []int32{64, 128, 256, 512} {
			for _, strategy := range f.Run.Strategies {
				if r.TokensTotal > limit && (limit != 256 || strategy != "head") {
					read(result.ReadSetting, limit, strategy)
				}
				f.Measured.BySetting[fmt.Sprintf("setting %d %s", limit, strategy)] = float64(limit) * 0.028
			}
		}
	}
	return f
}

func TestSweepGolden(t *testing.T) {
	w := weekly(t, crumbSweep(1, 310), Options{})
	golden(t, "sweep.html", w.HTML)
	golden(t, "sweep.txt", func(out io.Writer) error { return w.Terminal(out, TermOptions{}) })
}

// The sweep must find what was planted: with the deciding sentence at one of the ends, head+tail
// reads it and head does not.
func TestSweepFindsThePlant(t *testing.T) {
	w := weekly(t, crumbSweep(4, 2000), Options{})
	sw := w.Sweep
	if sw == nil || sw.N != 2000 || sw.Missing != 0 {
		t.Fatalf("sweep %+v", sw)
	}
	if len(sw.Settings) != 13 {
		t.Errorf("%d settings, want 4 caps by 3 strategies and the whole", len(sw.Settings))
	}
	best, ok := sw.best()
	if !ok || best.Strategy != "head+tail" || best.Cap != 256 {
		t.Errorf("best %q, want head+tail 256", best.Name)
	}
	if !strings.HasPrefix(w.Do[0], "Keep the cap at 256 but read head+tail: ") {
		t.Errorf("advice %q", w.Do[0])
	}
	if c := w.Cut; c.Control.Again == 0 || c.Control.Flips != 0 || c.Probe == nil || c.Probe.Caused != c.Table.Cost || c.Probe.Confirmed != c.Probe.Caused {
		t.Errorf("control %+v, probe %+v", c.Control, c.Probe)
	}
	d := w.Cut.Depth
	if d == nil || d.N != 2000 || len(d.Steps) != 5 {
		t.Fatalf("depth %+v", d)
	}
	right := 0
	for _, s := range d.Steps {
		right += s.Decided
	}
	if right+d.Never != d.N {
		t.Errorf("%d decided and %d never of %d", right, d.Never, d.N)
	}
	whole := sw.Settings[len(sw.Settings)-1]
	if whole.Cap != 0 || whole.Wrong != d.Never {
		t.Errorf("whole %+v, never right %d", whole.Rate, d.Never)
	}
	for _, r := range sw.Settings {
		if r.Strategy == "head+tail" && r.Cap == 256 && r.Dominated {
			t.Error("head+tail 256 is dominated by nothing")
		}
		if r.Now != (r.Cap == 256 && r.Strategy == "head") {
			t.Errorf("%s: now %v", r.Name, r.Now)
		}
	}
}

// A cap of at least the length of every message changes nothing: the sequence passes it, and
// stops where the cut begins to cost.
func TestFixedSequenceStopsAtTheFirstFailure(t *testing.T) {
	sw := weekly(t, crumbSweep(4, 2000), Options{}).Sweep
	failed := false
	for _, s := range sw.Sequence {
		if s.Reached == failed {
			t.Errorf("cap %d: reached %v after a failure %v", s.Cap, s.Reached, failed)
		}
		failed = failed || s.Judgement.Verdict.String() != "PASS"
	}
	for i := 1; i < len(sw.Sequence); i++ {
		if sw.Sequence[i-1].Cap <= sw.Sequence[i].Cap {
			t.Errorf("caps do not fall: %d, %d", sw.Sequence[i-1].Cap, sw.Sequence[i].Cap)
		}
	}
	if !strings.Contains(sw.Answer, "as good as reading the whole message") && !strings.Contains(sw.Answer, "not worse than reading the whole message") {
		t.Errorf("answer %q", sw.Answer)
	}
}

func TestSweepReport(t *testing.T) {
	s, err := NewSweep(crumbSweep(1, 310), Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sweep-report.md", s.Markdown)
	if s.Headline != s.Sweep.Answer {
		t.Errorf("headline %q", s.Headline)
	}
	var page strings.Builder
	if err := s.HTML(&page); err != nil {
		t.Fatal(err)
	}
	checkPage(t, page.String())
	alone, err := NewSweep(planted(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(io.Writer) error{alone.HTML, alone.Markdown, alone.JSON, func(w io.Writer) error { return alone.Terminal(w, TermOptions{}) }} {
		if err := write(io.Discard); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkSweep(b *testing.B) {
	f := crumbSweep(1, 20_000)
	for b.Loop() {
		if _, err := NewSweep(f, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
