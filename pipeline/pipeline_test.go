package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/tokenize/window"
)

// wordCounter is a router that can be computed by hand: a token a word, the queue is "long" when the
// last token that it reads is "refund", else "short".
type wordCounter struct {
	delay  bool // finish in another order than begun
	fail   string
	panics string
}

func (wordCounter) Facts() router.Facts             { return router.Facts{Name: "words"} }
func (wordCounter) Queues() []string                { return []string{"short", "refunds"} }
func (wordCounter) Check(router.Setting) error      { return nil }
func (wordCounter) Whole() (router.Setting, string) { return router.Setting{}, "one pass" }
func (w wordCounter) NewSession() router.Session    { return w }
func (wordCounter) Encode(dst *router.Encoded, text []byte) {
	dst.Text = text
	dst.IDs, dst.Start, dst.End, dst.Special = dst.IDs[:0], dst.Start[:0], dst.End[:0], dst.Special[:0]
	for i := range strings.Fields(string(text)) {
		dst.IDs = append(dst.IDs, int32(i))
		dst.Start, dst.End, dst.Special = append(dst.Start, 0), append(dst.End, 0), append(dst.Special, false)
	}
}

func (w wordCounter) Read(_ context.Context, e *router.Encoded, s router.Setting, dst *router.Reading) error {
	words := strings.Fields(string(e.Text))
	if w.delay {
		time.Sleep(time.Duration(len(words)*7%5) * 100 * time.Microsecond)
	}
	if w.fail != "" && strings.Contains(string(e.Text), w.fail) {
		return errors.New("connection refused")
	}
	if w.panics != "" && strings.Contains(string(e.Text), w.panics) {
		panic("index out of range")
	}
	kept := len(words)
	if s.MaxTokens > 0 {
		kept = min(kept, s.MaxTokens)
	}
	dst.Kept = append(dst.Kept[:0], window.Range{Start: 0, End: kept})
	dst.TokensKept, dst.Windows, dst.Cells = kept, 1, int64(kept*kept)
	dst.Logits = append(dst.Logits[:0], 1, 0)
	for _, word := range words[:kept] {
		if strings.Trim(word, ".,") == "refund" {
			dst.Logits[1] = 2
		}
	}
	return nil
}

// slice is a source made of messages in memory.
type slice struct {
	raws   []string
	next   int
	failAt int // give an error there; 0: never
	after  func(i int)
}

func (s *slice) Next() (*mail.Message, error) {
	if s.failAt > 0 && s.next == s.failAt {
		return nil, errors.New("week.mbox: read error")
	}
	if s.next >= len(s.raws) {
		return nil, io.EOF
	}
	i := s.next
	s.next++
	if s.after != nil {
		s.after(i)
	}
	m := &mail.Message{Source: "week.mbox", RecordNo: int64(i + 1), Offset: int64(1000 * i), Length: int64(len(s.raws[i])), Raw: []byte(s.raws[i])}
	if s.raws[i] == "" {
		m.Reject = &mail.Reject{Stage: "read", Code: "mbox.bad", Detail: "planted"}
	}
	return m, nil
}
func (s *slice) Sources() []mail.Source {
	return []mail.Source{{Name: "week.mbox", Seen: int64(s.next)}}
}
func (s *slice) BytesRead() int64  { return 0 }
func (s *slice) TotalBytes() int64 { return 0 }

// export makes n messages: one in ten says "refund" at its end, past a cap of 20 in half of those;
// one in 25 is a copy of the message before, one in 40 cannot be read.
func export(n int) []string {
	raws := make([]string, n)
	for i := range raws {
		words := 5 + i*13%40
		body := strings.Repeat("word ", words-1)
		if i%10 == 3 {
			body += "refund"
		} else {
			body += "thanks"
		}
		label := "short"
		if i%10 == 3 {
			label = "refunds"
		}
		raws[i] = fmt.Sprintf("Message-ID: <%d@example.invalid>\r\nDate: Mon, 16 Nov 2026 10:%02d:00 +0000\r\nX-Queue: %s\r\nSubject: s\r\n\r\n%s\r\n", i, i%60, label, body)
		if i%25 == 24 {
			raws[i] = raws[i-1]
		}
		if i%40 == 39 {
			raws[i] = ""
		}
	}
	return raws
}

func labels(testing.TB) *mail.Labels { return &mail.Labels{} }

func options(workers int) Options {
	return Options{
		Router: wordCounter{delay: true}, Setting: router.Setting{MaxTokens: 20}, Whole: true, Control: 3, Placebos: 1,
		Others: []router.Setting{{MaxTokens: 10}, {MaxTokens: 30}}, Workers: workers,
	}
}

func start(t testing.TB, out string, resume bool) *result.Partial {
	t.Helper()
	p, err := result.OpenPartial(out, map[string]string{"test": "1"}, resume)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func finish(t testing.TB, p *result.Partial, s Summary, out string) *result.Folder {
	t.Helper()
	run := result.Run{Schema: result.SchemaVersion, RunID: "x", Ledger: s.Ledger, Sources: s.Sources, Inputs: s.Inputs}
	if _, err := p.Assemble(run, s.Measured); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(); err != nil {
		t.Fatal(err)
	}
	f, err := result.ReadFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sameFiles(t *testing.T, what, a, b string) {
	t.Helper()
	for _, f := range []string{result.ResultsFile, result.ReadingsFile, result.RejectsFile} {
		x, err := os.ReadFile(filepath.Join(a, f))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s: %s differs", what, f)
		}
	}
}

// One worker or sixteen: the same bytes, in reading order, and a ledger that balances.
func TestWorkersLeaveNoTrace(t *testing.T) {
	raws := export(400)
	outs := map[int]string{}
	for _, workers := range []int{1, 2, 16} {
		out := t.TempDir()
		p := start(t, out, false)
		s, err := Run(context.Background(), &slice{raws: raws}, labels(t), p, options(workers))
		if err != nil {
			t.Fatal(err)
		}
		f := finish(t, p, s, out)
		outs[workers] = out
		// 10 are unreadable (at 39, 79, ...); of the 16 copies (at 24, 49, ...) two stand at such a place
		// (199, 399).
		want := result.Ledger{Read: 400, Scored: 376, Rejected: 10, Duplicate: 14, Labelled: 376, Routable: 376}
		if s.Ledger != want {
			t.Errorf("%d workers: ledger %+v, want %+v", workers, s.Ledger, want)
		}
		last := int64(0)
		for i := range f.Rows {
			if f.Rows[i].RecordNo <= last {
				t.Fatalf("%d workers: record %d after %d", workers, f.Rows[i].RecordNo, last)
			}
			last = f.Rows[i].RecordNo
		}
	}
	sameFiles(t, "1 and 2 workers", outs[1], outs[2])
	sameFiles(t, "1 and 16 workers", outs[1], outs[16])
}

// The readings say what they must: cut messages are read whole, a setting only where it cuts, and the
// control never differs.
func TestReadings(t *testing.T) {
	out := t.TempDir()
	p := start(t, out, false)
	s, err := Run(context.Background(), &slice{raws: export(400)}, labels(t), p, options(2))
	if err != nil {
		t.Fatal(err)
	}
	f := finish(t, p, s, out)
	rows := map[int64]*result.Row{}
	cut := 0
	for i := range f.Rows {
		rows[f.Rows[i].RecordNo] = &f.Rows[i]
		if f.Rows[i].Cut() && f.Rows[i].Scored() {
			cut++
		}
	}
	kinds := map[string]int{}
	for _, r := range f.Readings {
		row := rows[r.RecordNo]
		kinds[r.Kind]++
		switch r.Kind {
		case result.ReadWhole:
			if !row.Cut() || r.Prediction != row.Label {
				t.Errorf("record %d read whole: %q, label %q, cut %v", r.RecordNo, r.Prediction, row.Label, row.Cut())
			}
		case result.ReadControl:
			if row.Cut() || r.Prediction != row.Prediction || r.Score != row.Score {
				t.Errorf("record %d: the control differs", r.RecordNo)
			}
		case result.ReadSetting:
			if r.Cap >= row.TokensTotal {
				t.Errorf("record %d: %d tokens were read again at cap %d", r.RecordNo, row.TokensTotal, r.Cap)
			}
		}
	}
	if kinds[result.ReadWhole] != cut || kinds[result.ReadPlacebo] != cut || kinds[result.ReadControl] == 0 || kinds[result.ReadSetting] == 0 {
		t.Errorf("%d cut messages, readings %v", cut, kinds)
	}
}

// A run that is interrupted and resumed, again and again, leaves the bytes of one that was not.
func TestResumeGivesTheSameBytes(t *testing.T) {
	raws := export(400)
	whole := t.TempDir()
	p := start(t, whole, false)
	s, err := Run(context.Background(), &slice{raws: raws}, labels(t), p, options(2))
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p, s, whole)

	out := t.TempDir()
	// 20 and 50 stop among messages that an earlier round has finished.
	for round, stop := range []int{3, 39, 100, 20, 101, 260, 50, 1000} {
		ctx, cancel := context.WithCancel(context.Background())
		src := &slice{raws: raws, after: func(i int) {
			if i == stop {
				cancel()
			}
		}}
		p := start(t, out, round > 0)
		s, err := Run(ctx, src, labels(t), p, options(3))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if s.Interrupted != (stop < len(raws)) {
			t.Fatalf("round %d: interrupted is %v", round, s.Interrupted)
		}
		if !s.Interrupted {
			finish(t, p, s, out)
		}
		p.Close()
	}
	sameFiles(t, "interrupted seven times", whole, out)
}

// A source that fails keeps what was finished, and a changed export is refused by place.
func TestFailureKeepsWhatWasFinished(t *testing.T) {
	raws := export(100)
	out := t.TempDir()
	p := start(t, out, false)
	if _, err := Run(context.Background(), &slice{raws: raws, failAt: 60}, labels(t), p, options(2)); err == nil || !strings.Contains(err.Error(), "read error") {
		t.Fatalf("error %v, want the source's", err)
	}
	p.Close()
	n := 0
	q := start(t, out, true)
	if err := q.Each(func(s *result.Segment) error { n += s.Messages(); return nil }); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Skip("nothing was finished before the failure")
	}
	changed := append([]string(nil), raws...)
	changed[0] = strings.Replace(raws[0], "word", "bird", 1)
	if _, err := Run(context.Background(), &slice{raws: changed}, labels(t), q, options(2)); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another message of the same length: %v, want a refusal", err)
	}
	changed[0] += "one line more\r\n"
	if _, err := Run(context.Background(), &slice{raws: changed}, labels(t), q, options(2)); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a changed export: %v, want a refusal", err)
	}
	q.Close()
	if _, err := Run(context.Background(), &slice{raws: raws[:n-1]}, labels(t), start(t, out, true), options(2)); err == nil || !strings.Contains(err.Error(), "more than the export") {
		t.Errorf("a shorter export: %v, want a refusal", err)
	}
}

// One message's failure is a reject with a reason; a panic too.
func TestOneBadMessage(t *testing.T) {
	raws := export(30)
	raws[4] = strings.Replace(raws[4], "thanks", "unplugged", 1)
	raws[7] = strings.Replace(raws[7], "thanks", "overrun", 1)
	out := t.TempDir()
	p := start(t, out, false)
	o := options(4)
	o.Router = wordCounter{fail: "unplugged", panics: "overrun"}
	var quarantined []int64
	o.Quarantine = func(r *result.Reject, raw []byte) error {
		quarantined = append(quarantined, r.RecordNo)
		return nil
	}
	s, err := Run(context.Background(), &slice{raws: raws}, labels(t), p, o)
	if err != nil {
		t.Fatal(err)
	}
	f := finish(t, p, s, out)
	if len(f.Rejects) != 2 || f.Rejects[0].Code != string(CodeRouter) || f.Rejects[1].Code != string(CodeInternal) {
		t.Fatalf("rejects %+v", f.Rejects)
	}
	if r := f.Rejects[1]; r.RecordNo != 8 || r.ByteOffset != 7000 || r.SHA256 == "" || !strings.Contains(r.Detail, "index out of range") {
		t.Errorf("reject %+v: want record 8 at byte 7000 with its digest and reason", r)
	}
	if len(quarantined) != 2 || quarantined[0] != 5 || quarantined[1] != 8 {
		t.Errorf("quarantined %v, want records 5 and 8", quarantined)
	}
}

// Bytes in flight stay under the bound; a message larger than the bound passes alone.
func TestMemoryBound(t *testing.T) {
	raws := export(200)
	raws[50] = strings.Replace(raws[50], "\r\n\r\n", "\r\n\r\n"+strings.Repeat("x", 300_000)+" ", 1)
	o := options(4)
	o.Memory = 100_000
	o.Placebos, o.Others = 0, nil
	var inFlight, most atomic.Int64
	src := &slice{raws: raws}
	src.after = func(int) { most.Store(max(most.Load(), inFlight.Add(1))) }
	o.Events = func(Event) {}
	out := t.TempDir()
	p := start(t, out, false)
	s, err := Run(context.Background(), src, labels(t), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if s.Ledger.Read != 200 {
		t.Errorf("%d read, want 200: the giant message must pass", s.Ledger.Read)
	}
}

// On a disk that takes minutes to make a segment durable, messages are not made durable one by one.
func TestSlowDiskGetsLargerSegments(t *testing.T) {
	out := start(t, t.TempDir(), false)
	w := newWriter(out, nil, true, "")
	add := func() {
		t.Helper()
		w.take(&Outcome{Row: result.Row{Source: "week.mbox", Status: result.StatusScored}})
		if err := w.flushFull(); err != nil {
			t.Fatal(err)
		}
	}
	w.began, w.flushing = time.Now().Add(-time.Minute), time.Minute
	add()
	if n := out.Segments(); n != 0 {
		t.Errorf("%d segments a minute after one that took a minute", n)
	}
	w.began = w.began.Add(-segmentPause * time.Minute)
	add()
	if n := out.Segments(); n != 1 || w.flushing >= time.Minute {
		t.Errorf("%d segments after the pause, the last took %v", n, w.flushing)
	}
}

// The goroutines of a run are its workers and a few more, however many messages there are.
func TestGoroutinesAreBounded(t *testing.T) {
	const workers = 4
	before := runtime.NumGoroutine()
	var most atomic.Int64
	src := &slice{raws: export(2000)}
	src.after = func(int) { most.Store(max(most.Load(), int64(runtime.NumGoroutine()-before))) }
	o := options(workers)
	if _, err := Run(context.Background(), src, labels(t), start(t, t.TempDir(), false), o); err != nil {
		t.Fatal(err)
	}
	// A parser and a router a worker, the reader and the writer.
	if n := most.Load(); n > 2*workers+2 {
		t.Errorf("%d goroutines at once, want at most %d", n, 2*workers+2)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left after the run, %d were there before", runtime.NumGoroutine(), before)
}

func TestAsRouted(t *testing.T) {
	raws := []string{
		"Message-ID: <1@x>\r\nX-Queue: refunds\r\nX-Routed: refunds\r\n\r\none two three\r\n",
		"Message-ID: <2@x>\r\nX-Queue: refunds\r\nX-Routed: feedback\r\n\r\nfour five\r\n",
		"Message-ID: <3@x>\r\nX-Queue: refunds\r\n\r\nsix\r\n",
	}
	l := &mail.Labels{RoutedHeader: "X-Routed"}
	out := t.TempDir()
	p := start(t, out, false)
	s, err := Run(context.Background(), &slice{raws: raws}, l, p, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := finish(t, p, s, out)
	if len(f.Rows) != 2 || f.Rows[0].Wrong() || !f.Rows[1].Wrong() || f.Rows[0].TokensTotal != 3 {
		t.Errorf("rows %+v, want one right, one wrong, lengths in words", f.Rows)
	}
	if len(f.Rejects) != 1 || f.Rejects[0].Code != string(CodeNotRouted) {
		t.Errorf("rejects %+v, want the message without a routed queue", f.Rejects)
	}
}

// The parts of a run, merged in any order, are the bytes of the unsharded run.
func TestShardsMergeToTheSameBytes(t *testing.T) {
	raws := export(400)
	for i := 50; i < 400; i += 50 { // copies whose first copy may stand far away
		raws[i] = raws[2]
	}
	facts := result.Run{Schema: result.SchemaVersion, RunID: "x", Key: "k", Queues: []string{"short", "refunds"}}
	evaluate := func(sh Shard) string {
		out := t.TempDir()
		p := start(t, out, false)
		o := options(2)
		o.Shard = sh
		s, err := Run(context.Background(), &slice{raws: raws}, labels(t), p, o)
		if err != nil {
			t.Fatal(err)
		}
		run := facts
		run.Shard, run.Ledger, run.Sources, run.Inputs = sh.String(), s.Ledger, s.Sources, s.Inputs
		run.Warnings = []string{"to all"}
		if sh.I != 1 || sh.N == 1 { // the unsharded run has everything that one of its parts would say
			run.Warnings = append(run.Warnings, "the export changed")
		}
		if _, err := p.Assemble(run, s.Measured); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	whole := evaluate(Shard{})
	for _, n := range []int{1, 2, 7} {
		var parts []string
		for i := n; i >= 1; i-- {
			parts = append(parts, evaluate(Shard{i, n}))
		}
		out := t.TempDir()
		p := start(t, out, false)
		run, measured, err := Merge(parts, p)
		if err != nil {
			t.Fatal(err)
		}
		run.RunID = "x"
		if _, err := p.Assemble(run, measured); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, fmt.Sprintf("%d parts", n), whole, out)
		if n < 7 {
			continue
		}
		for name, c := range map[string]struct {
			dirs []string
			want string
		}{
			"missing":   {parts[1:], "part 7/7 is missing"},
			"doubled":   {append(parts[:7:7], parts[3]), "are both part 4/7"},
			"whole run": {append(parts[:6:6], whole), "is a whole run"},
			"other run": {append(parts[:6:6], evaluate(Shard{1, 2})), "number of parts"},
		} {
			if _, _, err := Merge(c.dirs, start(t, t.TempDir(), false)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want one with %q", name, err, c.want)
			}
		}
	}
}

func TestParseShard(t *testing.T) {
	for _, bad := range []string{"", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"} {
		if s, err := ParseShard(bad); err == nil {
			t.Errorf("%q is read as %v", bad, s)
		}
	}
	if s, err := ParseShard("2/7"); err != nil || s != (Shard{2, 7}) {
		t.Errorf("2/7 is read as %v, %v", s, err)
	}
}
