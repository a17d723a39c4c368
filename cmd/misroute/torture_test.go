//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"misroute/pipeline/result"
)

// These tests run the program as a process of its own and do to it what a night may do: kill -9 at any
// moment, a full disk, an export or a model that changes under its hands, interrupts. Whatever happens,
// a run that is resumed must end with the bytes of one that nothing happened to.

// misroute is a command line of the program, which is the test binary under another name (TestMain).
func misroute(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{"misroute"}, args...), Env: append(os.Environ(), "NO_COLOR=1")}
}

// ended is what a process left.
type ended struct {
	code   int // -1: killed
	stderr string
	took   time.Duration
}

func finishOf(t testing.TB, cmd *exec.Cmd) ended {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), stderr.String(), time.Since(began)}
}

// begin starts cmd; the function it returns waits for the end.
func begin(t testing.TB, cmd *exec.Cmd) func() ended {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := false
	t.Cleanup(func() {
		if !waited {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return func() ended {
		waited = true
		_ = cmd.Wait() // the exit code tells
		return ended{cmd.ProcessState.ExitCode(), stderr.String(), time.Since(began)}
	}
}

func mustSucceed(t testing.TB, cmd *exec.Cmd) time.Duration {
	t.Helper()
	e := finishOf(t, cmd)
	if e.code != 0 {
		t.Fatalf("%q: exit %d\n%s", cmd.Args[1:], e.code, e.stderr)
	}
	return e.took
}

// crumbWeeks is weeks of the demo as one plain mbox, 310 messages each.
func crumbWeeks(t testing.TB, weeks ...string) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, week := range weeks {
		f, err := os.Open(filepath.Join("..", "..", "testdata", "crumb", week+".mbox.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err == nil {
			_, err = io.Copy(&all, z)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

var allWeeks = []string{"2026-W40", "2026-W41", "2026-W42", "2026-W43", "2026-W44", "2026-W45", "2026-W46"}

func writeExport(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.mbox")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const wordsModel = "../../testdata/models/crumb-words"

// durable is the number of messages that an unfinished run has on disk.
func durable(t testing.TB, out string) int {
	t.Helper()
	n := 0
	for i := 0; ; i++ {
		rows := filepath.Join(out, result.PartialDir, fmt.Sprintf("%06d-%s", i, result.ResultsFile))
		if _, err := os.Stat(rows); err != nil {
			return n
		}
		for _, err := range result.Stream[result.Placed](rows) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
}

// awaitSegment returns when the run has made something durable.
func awaitSegment(t testing.TB, out string) {
	t.Helper()
	for range 6000 {
		if _, err := os.Stat(filepath.Join(out, result.PartialDir, "000000-"+result.ResultsFile)); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no segment within 30 seconds")
}

func sameRun(t testing.TB, what, want, got string) {
	t.Helper()
	for _, name := range []string{result.ResultsFile, result.ReadingsFile, result.RejectsFile} {
		a, err := os.ReadFile(filepath.Join(want, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(got, name))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s differs from the run that nothing happened to", what, name)
		}
	}
	if _, err := os.Stat(filepath.Join(got, result.PartialDir)); !os.IsNotExist(err) {
		t.Errorf("%s: the finished run still has a partial folder (%v)", what, err)
	}
}

// eachOnce checks that no message was lost and none doubled.
func eachOnce(t testing.TB, out string, messages int) {
	t.Helper()
	f, err := result.ReadFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[result.Place]bool{}
	for i := range f.Rows {
		seen[f.Rows[i].Place()] = true
	}
	for i := range f.Rejects {
		seen[f.Rejects[i].Place()] = true
	}
	if n := len(f.Rows) + len(f.Rejects); n != messages || len(seen) != messages || f.Run.Ledger.Read != int64(messages) {
		t.Errorf("%d rows and rejects at %d places, the ledger says %d; want %d each once", n, len(seen), f.Run.Ledger.Read, messages)
	}
}

// Killed at any moment, resumed (and killed again), the run ends with the same bytes.
// MISROUTE_LONG=1: the newsgroups week and 50 kills.
func TestKilledAtAnyMoment(t *testing.T) {
	export, model, messages, kills := writeExport(t, crumbWeeks(t, allWeeks[:4]...)), wordsModel, 1240, 5
	if os.Getenv("MISROUTE_LONG") != "" {
		shared := os.Getenv("MISROUTE_SHARED")
		if shared == "" {
			t.Skip("MISROUTE_SHARED is not set")
		}
		export, messages, kills = filepath.Join(shared, "data", "newsgroups", "week-1993-W16.mbox.gz"), 4017, 50
		model = filepath.Join(t.TempDir(), "router")
		mustSucceed(t, misroute(t, "train", "--router", "words", "--out", model, "--progress", "none",
			filepath.Join(shared, "data", "newsgroups", "train.mbox.gz")))
	}
	dir := t.TempDir()
	eval := func(out string, more ...string) *exec.Cmd {
		return misroute(t, slices.Concat([]string{"eval", "--model", model, "--progress", "none", "--checkpoint", "100", "--out", out}, more, []string{export})...)
	}
	whole := filepath.Join(dir, "whole")
	took := mustSucceed(t, eval(whole))
	eachOnce(t, whole, messages)
	mustSucceed(t, misroute(t, "verify", whole))

	const seed = 20261129
	random := rand.New(rand.NewPCG(seed, 0))
	killed, during := 0, 0 // and how many of them with something done and something left
	for i := range kills {
		out := filepath.Join(dir, fmt.Sprint("run", i))
		more, log := []string(nil), ""
		for again := true; again; again = random.IntN(3) == 0 {
			moment := time.Duration((float64(i) + random.Float64()) / float64(kills) * float64(took))
			cmd := eval(out, more...)
			wait := begin(t, cmd)
			time.Sleep(moment)
			cmd.Process.Kill()
			e := wait()
			log += fmt.Sprintf(" %v", moment)
			if e.code > 0 {
				t.Fatalf("seed %d, kill %d after%s: the program ended by itself with %d\n%s", seed, i, log, e.code, e.stderr)
			}
			if e.code == 0 {
				break // it was faster this time
			}
			killed++
			if n := durable(t, out); n > 0 && n < messages {
				during++
			}
			more = []string{"--resume"}
		}
		if e := finishOf(t, eval(out, "--resume", "--workers", fmt.Sprint(1+i%5))); e.code != 0 {
			t.Fatalf("seed %d, kill %d after%s: resumed, it ended with %d\n%s", seed, i, log, e.code, e.stderr)
		}
		sameRun(t, fmt.Sprintf("seed %d, kill %d after%s", seed, i, log), whole, out)
		eachOnce(t, out, messages)
		if t.Failed() {
			return
		}
		os.RemoveAll(out)
	}
	t.Logf("an uninterrupted run took %v; %d kills, %d of them between the first and the last message", took, killed, during)
	if during == 0 {
		t.Errorf("none of %d kills met a run with something done and something left", killed)
	}
}

// A disk that fills up ends the run with one line and exit code 1; what was finished is kept, and with
// room again the run ends as if nothing had happened.
func TestFullDisk(t *testing.T) {
	export := writeExport(t, crumbWeeks(t, allWeeks[:2]...))
	whole := filepath.Join(t.TempDir(), "whole")
	args := func(out string, more ...string) []string {
		return slices.Concat([]string{"eval", "--model", wordsModel, "--progress", "none", "--checkpoint", "100", "--out", out}, more, []string{export})
	}
	mustSucceed(t, misroute(t, args(whole)...))
	full := func(t *testing.T, e ended, out, want string) {
		t.Helper()
		if e.code != exitFatal || !strings.Contains(e.stderr, want) || !strings.Contains(e.stderr, "--resume --out "+out) {
			t.Errorf("exit %d, want %d and a line with %q and how to go on:\n%s", e.code, exitFatal, want, e.stderr)
		}
		if strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("want one line:\n%s", e.stderr)
		}
		if _, err := os.Stat(filepath.Join(out, result.ResultsFile)); err == nil {
			t.Error("a run without room is published")
		}
	}
	t.Run("size limit of a file", func(t *testing.T) {
		st, err := os.Stat(filepath.Join(whole, result.ResultsFile))
		if err != nil {
			t.Fatal(err)
		}
		last := int(st.Size()>>10) - 1
		for _, kib := range []int{0, 4, last} { // the key, a segment, the final file
			out := filepath.Join(t.TempDir(), "run")
			cmd := misroute(t, args(out)...)
			limited := exec.Command("bash", append([]string{"-c", fmt.Sprintf("ulimit -f %d; exec -a misroute \"$0\" \"$@\"", kib), cmd.Path}, cmd.Args[1:]...)...)
			limited.Env = cmd.Env
			e := finishOf(t, limited)
			if kib == 0 {
				if e.code != exitFatal || strings.Count(e.stderr, "\n") != 1 || !strings.Contains(e.stderr, "file too large") {
					t.Errorf("no room at all: exit %d\n%s", e.code, e.stderr)
				}
			} else {
				full(t, e, out, "file too large")
			}
			if n := durable(t, out); kib == last && n != 620 {
				t.Errorf("%d messages are kept, want all 620: only the final file found no room", n)
			}
			mustSucceed(t, misroute(t, args(out, "--resume")...))
			sameRun(t, fmt.Sprintf("limit %d KiB", kib), whole, out)
		}
	})
	t.Run("small disk", func(t *testing.T) {
		mount := t.TempDir()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=160k"); err != nil {
			t.Skipf("no small disk without the right to mount one: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(mount, 0); err != nil {
				t.Error(err)
			}
		})
		out := filepath.Join(mount, "run")
		full(t, finishOf(t, misroute(t, args(out)...)), out, "no space left on device")
		kept := durable(t, out)
		if kept == 0 || kept%100 != 0 {
			t.Errorf("%d messages are kept, want some whole segments of 100", kept)
		}
		full(t, finishOf(t, misroute(t, args(out, "--resume")...)), out, "no space left on device")
		if n := durable(t, out); n < kept {
			t.Errorf("%d messages are kept after another try, %d were before", n, kept)
		}
		if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
		mustSucceed(t, misroute(t, args(out, "--resume")...))
		sameRun(t, "small disk", whole, out)
	})
}

// stopped starts a run, stops the process after its first segment, lets do change the world, and gives
// what the process ends with. One worker and little memory: most of the export is not yet read then.
func stopped(t *testing.T, out string, args []string, do func()) ended {
	t.Helper()
	cmd := misroute(t, slices.Concat([]string{"eval", "--progress", "none", "--workers", "1", "--memory", "8MiB", "--checkpoint", "150", "--out", out}, args)...)
	wait := begin(t, cmd)
	awaitSegment(t, out)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	do()
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	return wait()
}

// An export that another process cuts while it is read: what stood before the cut is evaluated, the cut
// record is rejected, and the exit code and a line say so.
func TestExportShrinksWhileRead(t *testing.T) {
	content := crumbWeeks(t, allWeeks...)
	export, out := writeExport(t, content), filepath.Join(t.TempDir(), "run")
	// In the middle of a message, so that the cut is one.
	at := len(content)*2/3 + bytes.Index(content[len(content)*2/3:], []byte("\nFrom ")) + 700
	e := stopped(t, out, []string{"--model", wordsModel, export}, func() {
		if err := os.Truncate(export, int64(at)); err != nil {
			t.Fatal(err)
		}
	})
	if e.code != exitRejected || !strings.Contains(e.stderr, fmt.Sprintf("inbox.mbox shrank from %d to %d bytes while it was read", len(content), at)) {
		t.Errorf("exit %d, want %d and what happened:\n%s", e.code, exitRejected, e.stderr)
	}
	f, err := result.ReadFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Count(content[:at], []byte("\nX-Queue: "))
	eachOnce(t, out, want)
	if len(f.Rejects) != 1 || f.Rejects[0].Code != "read.truncated" || f.Rejects[0].RecordNo != int64(want) {
		t.Errorf("rejects %+v, want the last record, which was cut", f.Rejects)
	}
	if s := f.Run.Sources[0]; !s.Incomplete || s.IncompleteAt != int64(at) {
		t.Errorf("source %+v, want incomplete at byte %d", s, at)
	}
	mustSucceed(t, misroute(t, "verify", out))
}

// An export that is still being written: every message is evaluated once, and a line says that the
// report is about what was there at the time.
func TestExportGrowsWhileRead(t *testing.T) {
	content := crumbWeeks(t, allWeeks...)
	export, out := writeExport(t, content), filepath.Join(t.TempDir(), "run")
	more := crumbWeeks(t, allWeeks[0]) // copies, and therefore duplicates
	e := stopped(t, out, []string{"--model", wordsModel, export}, func() {
		f, err := os.OpenFile(export, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(more); err != nil {
			t.Fatal(err)
		}
		f.Close()
	})
	if e.code != 0 || !strings.Contains(e.stderr, fmt.Sprintf("inbox.mbox grew from %d to %d bytes while it was read", len(content), len(content)+len(more))) {
		t.Errorf("exit %d, want 0 and what happened:\n%s", e.code, e.stderr)
	}
	eachOnce(t, out, 2170+310)
	f, err := result.ReadFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	if f.Run.Ledger.Duplicate != 310 || f.Run.Inputs[0].Bytes != int64(len(content)+len(more)) {
		t.Errorf("ledger %+v of %d bytes, want the 310 copies as duplicates", f.Run.Ledger, f.Run.Inputs[0].Bytes)
	}
	// An unfinished run whose export was written to anew is not continued with other messages.
	again := filepath.Join(t.TempDir(), "again")
	args := []string{"--model", wordsModel, export}
	cmd := misroute(t, slices.Concat([]string{"eval", "--progress", "none", "--workers", "1", "--checkpoint", "150", "--out", again}, args)...)
	wait := begin(t, cmd)
	awaitSegment(t, again)
	cmd.Process.Kill()
	wait()
	changed := bytes.Replace(content, []byte("cake"), []byte("pies"), 1) // the same length
	if err := os.WriteFile(export, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	e = finishOf(t, misroute(t, slices.Concat([]string{"eval", "--progress", "none", "--resume", "--out", again}, args)...))
	if e.code == 0 || !strings.Contains(e.stderr, "the export changed; start over without --resume") {
		t.Errorf("exit %d, want a refusal:\n%s", e.code, e.stderr)
	}
}

// A model folder that is replaced while the run uses it: the run is not published, since its digest
// would name a model that is gone; resumed with another model it is refused, with the old one it ends
// as if nothing had happened.
func TestModelChangesDuringRun(t *testing.T) {
	model, dir := filepath.Join(t.TempDir(), "router"), t.TempDir()
	if err := os.CopyFS(model, os.DirFS(wordsModel)); err != nil {
		t.Fatal(err)
	}
	export := writeExport(t, crumbWeeks(t, allWeeks...))
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "run")
	mustSucceed(t, misroute(t, "eval", "--model", model, "--progress", "none", "--out", whole, export))
	weights := filepath.Join(model, "model.safetensors")
	old, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	e := stopped(t, out, []string{"--model", model, export}, func() {
		other := bytes.Clone(old)
		other[len(other)-2] ^= 1
		if err := os.WriteFile(weights, other, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	if e.code != exitFatal || !strings.Contains(e.stderr, "the model changed during the run: "+weights) || strings.Count(e.stderr, "\n") != 1 {
		t.Errorf("exit %d, want %d and one line with the file:\n%s", e.code, exitFatal, e.stderr)
	}
	if _, err := os.Stat(filepath.Join(out, result.ResultsFile)); err == nil {
		t.Error("the run is published")
	}
	resume := misroute(t, "eval", "--model", model, "--progress", "none", "--resume", "--out", out, export)
	if e := finishOf(t, resume); e.code != exitUsage || !strings.Contains(e.stderr, `cannot resume: its model is "`) || !strings.Contains(e.stderr, `asked is "`) {
		t.Errorf("resumed with another model: exit %d, want %d and both digests\n%s", e.code, exitUsage, e.stderr)
	}
	if err := os.WriteFile(weights, old, 0o644); err != nil {
		t.Fatal(err)
	}
	mustSucceed(t, misroute(t, resume.Args[1:]...))
	sameRun(t, "the model put back", whole, out)
}

// An interrupt finishes what is at hand and says how to go on; also when the mail comes through a pipe
// whose other end is silent.
func TestInterrupt(t *testing.T) {
	content := crumbWeeks(t, allWeeks[:2]...)
	export, dir := writeExport(t, content), t.TempDir()
	whole := filepath.Join(dir, "whole")
	eval := []string{"eval", "--model", wordsModel, "--progress", "none", "--checkpoint", "150", "--out"}
	pipe := func(out string, more ...string) *exec.Cmd {
		return misroute(t, slices.Concat(eval, []string{out}, more, []string{"-"})...)
	}
	ref := pipe(whole)
	ref.Stdin, _ = os.Open(export)
	mustSucceed(t, ref)

	out := filepath.Join(dir, "run")
	cmd := pipe(out)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	wait := begin(t, cmd)
	if _, err := in.Write(content[:len(content)*3/4]); err != nil {
		t.Fatal(err)
	}
	awaitSegment(t, out)
	cmd.Process.Signal(os.Interrupt)
	e := wait()
	in.Close()
	if e.code != exitInterrupted || !strings.Contains(e.stderr, "go on with --resume --out "+out) {
		t.Errorf("exit %d, want %d and how to go on:\n%s", e.code, exitInterrupted, e.stderr)
	}
	if n := durable(t, out); n == 0 {
		t.Error("nothing is kept")
	}
	again := pipe(out, "--resume")
	again.Stdin, _ = os.Open(export)
	mustSucceed(t, again)
	sameRun(t, "interrupted", whole, out)

	// A second one does not wait for a router that does not answer.
	asked := make(chan struct{}, 1000)
	ctx, release := context.WithCancel(context.Background())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if b, _ := io.ReadAll(r.Body); bytes.Contains(b, []byte("cake")) {
				asked <- struct{}{}
				<-ctx.Done()
			}
		}
		io.WriteString(w, `[{"label":"refunds","score":0.7},{"label":"general feedback","score":0.3}]`)
	}))
	defer srv.Close()
	defer release()
	cmd = misroute(t, "eval", "--model", srv.URL+"/predict", "--http-timeout", "10m", "--progress", "none", "--out", filepath.Join(dir, "http"), export)
	wait = begin(t, cmd)
	<-asked
	cmd.Process.Signal(os.Interrupt)
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the first interrupt does not wait for the messages at hand: %v", err)
	}
	cmd.Process.Signal(os.Interrupt)
	if e := wait(); e.code != exitInterrupted {
		t.Errorf("interrupted twice: exit %d, want %d\n%s", e.code, exitInterrupted, e.stderr)
	}
}

// Two processes in one run folder would mix their segments: the second is refused.
func TestTwoProcessesOneFolder(t *testing.T) {
	export, out := writeExport(t, crumbWeeks(t, allWeeks...)), filepath.Join(t.TempDir(), "run")
	args := []string{"--model", wordsModel, export}
	e := stopped(t, out, args, func() {
		second := finishOf(t, misroute(t, slices.Concat([]string{"eval", "--progress", "none", "--resume", "--out", out}, args)...))
		if second.code != exitUsage || !strings.Contains(second.stderr, "another misroute is writing this run") {
			t.Errorf("exit %d, want %d and a refusal:\n%s", second.code, exitUsage, second.stderr)
		}
	})
	if e.code != 0 {
		t.Errorf("the first one: exit %d\n%s", e.code, e.stderr)
	}
	eachOnce(t, out, 2170)
}
