package main

import (
	"context"
	"math"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"misroute/pipeline"
	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// Every part of every export is in exactly one reference, whatever the numbers.
func TestReferences(t *testing.T) {
	for _, c := range []struct{ exports, shards, want int }{{1, 1, 1}, {1, 16, 16}, {3, 16, 18}, {16, 16, 16}, {52, 16, 52}, {2, 3, 4}, {5, 1, 5}} {
		refs := references(c.exports, c.shards)
		if len(refs) != c.want {
			t.Errorf("%d exports, %d shards: %d references, want %d", c.exports, c.shards, len(refs), c.want)
		}
		for e := range c.exports {
			for part := 1; part <= c.shards; part++ {
				n := 0
				for _, r := range refs {
					if r.Export == e && r.has(part) {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%d exports, %d shards: part %d of export %d is in %d references", c.exports, c.shards, part, e, n)
				}
			}
		}
	}
}

// A piece is the same at the other end: no number stays no number, an absent date absent, times to the
// nanosecond of the measured part.
func TestPieceTravels(t *testing.T) {
	date := time.Date(2026, 11, 16, 10, 0, 0, 5e6, time.UTC)
	want := Piece{Export: 2, Outcomes: []pipeline.Outcome{
		{
			Row: result.Row{Source: "a/week.mbox", RecordNo: 3, Date: &date, Warnings: []string{"date.missing"}, Score: 0.1, Scores: []result.QueueScore{{Queue: "cakes", Score: 0.1}},
				Kept: []result.Range{{From: 0, To: 7}}, Text: "\x00 \xff ü"},
			Readings: []result.Reading{{Kind: result.ReadWhole, LabelMargin: float32(math.NaN()), Nanos: 12345}},
			Timing:   result.Timing{RecordNo: 3, ScoreNanos: 987},
		},
		{Reject: &result.Reject{Source: "a/week.mbox", RecordNo: 4, Code: "mbox.bad"}},
		{Row: result.Row{RecordNo: 5}},
	}, Read: &Read{Facts: result.Run{Queues: []string{"cakes"}, Caps: []int{64}}, Source: mail.Source{Name: "a/week.mbox", Seen: 9, Incomplete: true}, Elsewhere: 6}}
	b, err := encodePiece(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePiece(b)
	if err != nil {
		t.Fatal(err)
	}
	r := &got.Outcomes[0].Readings[0]
	if !math.IsNaN(float64(r.LabelMargin)) {
		t.Errorf("label margin %v, want NaN", r.LabelMargin)
	}
	r.LabelMargin, want.Outcomes[0].Readings[0].LabelMargin = 0, 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A part's pieces come in any order; what is missing, doubled or of another kind of worker is refused.
func TestGather(t *testing.T) {
	job := &Job{Exports: []Export{{"x/a.mbox", "a.mbox"}, {"x/b.mbox", "b.mbox"}}}
	row := func(n int64) pipeline.Outcome { return pipeline.Outcome{Row: result.Row{RecordNo: n}} }
	reject := pipeline.Outcome{Reject: &result.Reject{RecordNo: 2}}
	read := func(name, kernel string) *Read {
		return &Read{Facts: result.Run{Kernel: kernel, Key: "k"}, Source: mail.Source{Name: name}}
	}
	pieces := []Piece{
		{Export: 1, Outcomes: []pipeline.Outcome{row(7)}, Read: read("b.mbox", "avx2")},
		{Export: 0, Outcomes: []pipeline.Outcome{row(9)}, Read: read("a.mbox", "avx2")},
		{Export: 0, Outcomes: []pipeline.Outcome{row(1), reject, row(8)}},
		{Export: 1, Outcomes: []pipeline.Outcome{row(3)}},
	}
	g, err := gather(job, iterate(pieces))
	if err != nil {
		t.Fatal(err)
	}
	var order []int64
	for _, o := range g.outcomes {
		order = append(order, o.Place().RecordNo)
	}
	if want := []int64{1, 2, 8, 9, 3, 7}; !reflect.DeepEqual(order, want) {
		t.Errorf("records %v, want %v", order, want)
	}
	mixed := append(pieces[1:len(pieces):len(pieces)], Piece{Export: 1, Read: read("b.mbox", "avx512")})
	for want, pieces := range map[string][]Piece{
		"b.mbox is missing":      pieces[1:],
		"a.mbox was read twice":  append(pieces[:4:4], pieces[1]),
		"kernel avx2 and avx512": mixed,
	} {
		if _, err := gather(job, iterate(pieces)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func iterate(pieces []Piece) func(*Piece) bool {
	return func(p *Piece) bool {
		if len(pieces) == 0 {
			return false
		}
		*p, pieces = pieces[0], pieces[1:]
		return true
	}
}

// A process loads a model once, and tries again after a failure.
func TestEvaluatorOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "router")
	job := &Job{Args: []string{"--model=" + dir}, Exports: []Export{{week, "2026-W47.mbox"}}, Workers: 3}
	if _, err := evaluatorOf(context.Background(), job, os.Stderr); err == nil {
		t.Fatal("a model that is not there was loaded")
	}
	if err := os.CopyFS(dir, os.DirFS(words)); err != nil {
		t.Fatal(err)
	}
	a, err := evaluatorOf(context.Background(), job, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	b, err := evaluatorOf(context.Background(), job, os.Stderr)
	if err != nil || a != b {
		t.Errorf("loaded again: %v", err)
	}
	if cap(a.free) != 3 {
		t.Errorf("%d messages at a time, want 3", cap(a.free))
	}
}

// A panic of a goroutine arrives in the one that Beam watches.
func TestEvaluatePanics(t *testing.T) {
	e := &evaluator{free: make(chan *pipeline.Evaluator, 2)}
	e.free <- nil
	e.free <- nil
	defer func() {
		if p := recover(); p == nil || len(e.free) != 2 {
			t.Errorf("recovered %v, %d of 2 evaluators free", p, len(e.free))
		}
	}()
	e.evaluate(context.Background(), make([]*mail.Message, 5))
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"job job-001 failed:\nbundle failed : panic: out of luck\nFull error:\nwhile executing\ncaused by:\npanic: out of luck\n\ngoroutine 1 [running]:\n":   "a worker panicked, which is a bug: out of luck (--log error shows where)",
		"job failed:\nwhile executing\n\tcaused by:\nsource failed\n\tcaused by:\nDoFn[UID:4, PID:e4, Name: x.routeFn] failed:\nweek.mbox: no messages in it": "week.mbox: no messages in it",
		"connecting to job service\n\tcaused by:\nrefused": "refused",
	} {
		if got := plain(errorString(text)).Error(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := plain(errorString(strings.Repeat("long ", 1000))).Error(); len(got) > longestError+100 {
		t.Errorf("%d bytes of error", len(got))
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }

// Exports, model and run folder in a store that is no file system of the workers: Beam's in memory, and
// an S3 one in this process. So the job is in this process too.
func TestRemoteStore(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	defer server.Close()
	for name, v := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_CA_BUNDLE": "", "HOME": t.TempDir(), "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, v)
	}
	want := local(t, tool(t, "misroute"), story{args: []string{"--model", words}, exports: []string{week}})
	for _, store := range []string{"memfs://", "s3://"} {
		t.Run(store, func(t *testing.T) { evaluateRemote(t, store+"bucket/", want) })
	}
}

func evaluateRemote(t *testing.T, root, want string) {
	ctx := t.Context()
	store, err := filesystem.New(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	put := func(local, to string) {
		if err := upload(ctx, store, local, to); err != nil {
			t.Fatal(err)
		}
	}
	put(week, root+"mail/2026-W47.mbox")
	files, err := os.ReadDir(words)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		put(filepath.Join(words, f.Name()), root+"models/crumb-words/"+f.Name())
	}
	args := []string{"misroute-beam", "--runner", "prism", "--shards", "2", "--model", root + "models/crumb-words", "--out", root + "runs/week/"}
	good := append(args[:len(args):len(args)], root+"mail/*.mbox")
	var stdout, stderr strings.Builder
	if code := run(good, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	got := t.TempDir()
	left, err := store.List(ctx, root+"runs/week/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		if err := copyOf(ctx, store, p, filepath.Join(got, path.Base(p))); err != nil {
			t.Fatal(err)
		}
	}
	sameRun(t, want, got)
	onlyRun(t, got)
	if parts, err := store.List(ctx, root+"runs/week/*/*/*"); err != nil || len(parts) > 0 {
		t.Errorf("parts are left: %v, %v", parts, err)
	}
	for what, args := range map[string][]string{
		"holds a finished run": good,
		"no such file":         append(args[:len(args):len(args)], root+"mail/nothing.mbox"),
	} {
		stderr.Reset()
		if code := run(args, &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), what) {
			t.Errorf("exit code %d: %s; want %q", code, stderr.String(), what)
		}
	}
}
