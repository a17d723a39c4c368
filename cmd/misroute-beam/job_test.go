package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"misroute/pipeline"
	"misroute/pipeline/result"
)

var (
	testdata = absolute("../../testdata")
	words    = filepath.Join(testdata, "models", "crumb-words")
	week     = filepath.Join(testdata, "crumb", "2026-W47.mbox")
)

func absolute(p string) string {
	abs, err := filepath.Abs(p)
	if err != nil {
		panic(err)
	}
	return abs
}

// A story is an evaluation that misroute eval and misroute-beam are asked for in the same words.
type story struct {
	name    string
	args    []string
	exports []string
	want    result.Ledger
}

// stories are made in dir: the demo week as it is; the same week in two folders, so that every message
// of the second is a duplicate, with another strategy, texts, and rejects; and the deployed router's
// decisions without a model. The demo week has 310 messages (testdata/crumb/README.md), 14 of them longer
// than longMessage, as counting the bytes between its separators says.
func stories(t *testing.T, dir string) []story {
	t.Helper()
	mbox, err := os.ReadFile(week)
	if err != nil {
		t.Fatal(err)
	}
	a, b := filepath.Join(dir, "a", "week.mbox"), filepath.Join(dir, "b", "week.mbox")
	for _, p := range []string{a, b} {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, mbox, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return []story{
		{"week", []string{"--model", words}, []string{week}, result.Ledger{Read: 310, Scored: 310}},
		{"twice", []string{"--model", words, "--cap", "24", "--strategy", "head+tail", "--control", "3", "--with-text", "--quotes", "keep",
			"--max-message-bytes", fmt.Sprint(longMessage), "--max-reject-rate", "1"}, []string{a, b}, result.Ledger{Read: 620, Scored: 296, Duplicate: 296, Rejected: 28}},
		{"as routed", []string{"--as-routed", "--routed-header", "X-Queue"}, []string{b}, result.Ledger{Read: 310, Scored: 310}},
	}
}

const longMessage = 4000

// local is what misroute eval leaves, made once for each story.
func local(t *testing.T, misroute string, s story) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run")
	args := slices.Concat([]string{"eval", "--progress", "none", "--out", out}, s.args, s.exports)
	if b, err := exec.Command(misroute, args...).CombinedOutput(); err != nil {
		t.Fatalf("misroute eval: %v\n%s", err, b)
	}
	return out
}

// tools are the programs that the tests run beside this one, built from the module cache when they are
// first needed: the folder to build in, and the package.
var tools = map[string]struct{ in, pkg string }{
	"misroute": {"../..", "./cmd/misroute"},
	"prism":    {".", "github.com/apache/beam/sdks/v2/go/cmd/prism"},
	"boot":     {".", "github.com/apache/beam/sdks/v2/go/container"},
}

// toolsDir is where they stand, if any was built.
var toolsDir string

func removeTools() {
	if toolsDir != "" {
		os.RemoveAll(toolsDir)
	}
}

func tool(t *testing.T, name string) string {
	t.Helper()
	if toolsDir == "" {
		var err error
		if toolsDir, err = os.MkdirTemp("", "misroute-beam-test-"); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(toolsDir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, tools[name].pkg)
	cmd.Dir = tools[name].in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", tools[name].pkg, err, out)
	}
	return path
}

// program runs misroute-beam in a folder of its own, and gives its exit code and what it printed.
func program(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), programEnv+"=1"), env...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), bad.String()
}

// sameRun compares two run folders: the facts, every field of every row, reading and reject, and the
// bytes of their files.
func sameRun(t *testing.T, want, got string) *result.Folder {
	t.Helper()
	a, err := result.ReadFolder(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := result.ReadFolder(got)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.Run, b.Run) {
		t.Errorf("run facts differ:\nwant %+v\ngot  %+v", a.Run, b.Run)
	}
	n := differences(t, "row", a.Rows, b.Rows) + differences(t, "reading", a.Readings, b.Readings) + differences(t, "reject", a.Rejects, b.Rejects)
	for _, f := range []string{result.ResultsFile, result.ReadingsFile, result.RejectsFile} {
		x, err := os.ReadFile(filepath.Join(want, f))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(got, f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s: %d bytes, want the %d of the local run", f, len(y), len(x))
		}
	}
	checked, err := pipeline.Check(got, &b.Run)
	if err != nil || len(checked.Problems) > 0 {
		t.Errorf("the run is not sound: %v, %s", err, strings.Join(checked.Problems, "; "))
	}
	t.Logf("%d rows, %d readings, %d rejects: %d differences", len(b.Rows), len(b.Readings), len(b.Rejects), n)
	return b
}

// differences counts fields that differ, and names the first few.
func differences[T any](t *testing.T, what string, want, got []T) (n int) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%d %ss, want %d", len(got), what, len(want))
		return max(len(want), len(got))
	}
	for i := range want {
		x, y := reflect.ValueOf(want[i]), reflect.ValueOf(got[i])
		for k := range x.NumField() {
			if f, ok := x.Field(k).Interface().(float32); ok && math.IsNaN(float64(f)) && math.IsNaN(y.Field(k).Float()) {
				continue
			}
			if !reflect.DeepEqual(x.Field(k).Interface(), y.Field(k).Interface()) {
				if n++; n <= 3 {
					t.Errorf("%s %d: %s is %v, want %v", what, i, x.Type().Field(k).Name, y.Field(k), x.Field(k))
				}
			}
		}
	}
	return n
}

// onlyRun checks that a run folder holds a finished run and nothing of how it was made.
func onlyRun(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{result.ReadingsFile, result.RejectsFile, result.ResultsFile, result.MeasuredFile, result.TimingsFile}; !slices.Equal(names, want) {
		t.Errorf("the run folder has %v, want %v", names, want)
	}
}

// noRun checks that a failed job left nothing that looks like a run.
func noRun(t *testing.T, out string) {
	t.Helper()
	if _, err := result.ReadRun(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed job left a run: %v", err)
	}
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != partsName {
			t.Errorf("a failed job left %s", e.Name())
		}
	}
}

// evaluate runs a story on a runner and compares it with the local run.
func evaluate(t *testing.T, s story, runner ...string) {
	t.Helper()
	want := local(t, tool(t, "misroute"), s)
	out := filepath.Join(t.TempDir(), "run")
	args := slices.Concat(runner, []string{"--shards", "3", "--out", out}, s.args, s.exports)
	code, stdout, stderr := program(t, nil, args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	f := sameRun(t, want, out)
	onlyRun(t, out)
	l := f.Run.Ledger
	l.Labelled, l.Unlabelled, l.Routable, l.Unroutable = 0, 0, 0, 0
	if l != s.want {
		t.Errorf("ledger %+v, want %+v", l, s.want)
	}
	if s.name == "twice" && (f.Rows[0].Text == "" || f.Rows[0].Source != "a/week.mbox") {
		t.Errorf("first row of %s, text %q: want the folder in the name, and a text", f.Rows[0].Source, f.Rows[0].Text)
	}
	if want := fmt.Sprintf("%d records: %d scored", f.Run.Ledger.Read, f.Run.Ledger.Scored); !strings.Contains(stdout, want) || !strings.Contains(stdout, f.Run.RunID) {
		t.Errorf("printed %q, want %q and the run's id", stdout, want)
	}
}

// Prism in the program's own process.
func TestPrism(t *testing.T) {
	for _, s := range stories(t, t.TempDir()) {
		t.Run(s.name, func(t *testing.T) { evaluate(t, s, "--runner", "prism") })
	}
}

// A job server of its own, which calls back into the submitting process.
func TestJobServer(t *testing.T) {
	endpoint := startPrism(t)
	for _, s := range stories(t, t.TempDir()) {
		t.Run(s.name, func(t *testing.T) {
			evaluate(t, s, "--runner", "universal", "--endpoint", endpoint, "--environment_type", "LOOPBACK")
		})
	}
}

// A job server and a worker pool: the program is staged, fetched and started elsewhere.
func TestWorkerPool(t *testing.T) {
	endpoint, workers := startPrism(t), startPool(t, "")
	s := stories(t, t.TempDir())[1]
	evaluate(t, s, "--runner", "universal", "--endpoint", endpoint, "--environment_type", "EXTERNAL", "--environment_config", workers)
}

// A message that makes the program itself fail ends the job: one line says what happened, nothing looks
// like a run, and the same folder serves the next attempt.
func TestPanic(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	args := []string{"--runner", "prism", "--model", words, "--out", out, week}
	code, stdout, stderr := program(t, []string{faultEnv + "=panic"}, args...)
	if code != exitFatal || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "has no run: a worker panicked, which is a bug: a planted panic") {
		t.Errorf("exit code %d, printed %q and %q; want one line with the panic", code, stdout, stderr)
	}
	noRun(t, out)
	if code, _, stderr := program(t, nil, args...); code != exitOK {
		t.Errorf("the next attempt: exit code %d: %s", code, stderr)
	}
}

// A worker that is killed ends the job too, where the runner does not try again, as Prism.
func TestKilledWorker(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	code, stdout, stderr := program(t, nil, "--runner", "universal", "--endpoint", startPrism(t), "--environment_type", "EXTERNAL",
		"--environment_config", startPool(t, "kill"), "--model", words, "--out", out, week)
	if code != exitFatal || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "the job failed, and "+out+" has no run: ") {
		t.Errorf("exit code %d, printed %q and %q; want one line", code, stdout, stderr)
	}
	t.Log(strings.ReplaceAll(stderr, out, "OUT"))
	noRun(t, out)
}

// Bad flags and inputs: exit code 2 and one line that says what, before any job is submitted.
func TestUsage(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "run")
	if err := result.WriteFolder(taken, &result.Folder{Run: result.Run{Schema: result.SchemaVersion}}); err != nil {
		t.Fatal(err)
	}
	prism := []string{"--runner", "prism", "--model", words, "--out", "run"}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no --runner: which of dataflow, flink, spark, universal, prism", []string{week}},
		{"--runner prsm: want one of", []string{"--runner", "prsm", week}},
		{"no --out", []string{"--runner", "prism", week}},
		{"no export given", prism},
		{"flag provided but not defined: -runnr", []string{"--runnr", "prism"}},
		{"--shards 0", slices.Concat(prism, []string{"--shards", "0", week})},
		{"--log loud", slices.Concat(prism, []string{"--log", "loud", week})},
		{"--kernel: kernel variant \"sse\" cannot run here", slices.Concat(prism, []string{"--kernel", "sse", week})},
		{"nix.mbox: no such file or folder", slices.Concat(prism, []string{"nix.mbox"})},
		{"nix-*.mbox: no such file", slices.Concat(prism, []string{"nix-*.mbox"})},
		{"--cap \"many\"", slices.Concat(prism, []string{"--cap", "many", week})},
		{"standard input cannot be split", slices.Concat(prism, []string{"-"})},
		{"no router: give --model", []string{"--runner", "prism", "--out", "run", week}},
		{"nowhere: no such file", []string{"--runner", "prism", "--out", "run", "--model", "nowhere", week}},
		{"no --endpoint", []string{"--runner", "flink", "--out", "run", "--model", words, week}},
		{"no job server answers there", []string{"--runner", "flink", "--endpoint", "localhost:1", "--out", "run", "--model", words, week}},
		{"no --environment_config", []string{"--runner", "flink", "--endpoint", "localhost:1", "--environment_type", "external", "--out", "run", "--model", words, week}},
		{"PROCESS: Beam's Go workers", []string{"--runner", "flink", "--endpoint", "localhost:1", "--environment_type", "PROCESS", "--out", "run", "--model", words, week}},
		{"holds a finished run", []string{"--runner", "prism", "--model", words, "--out", taken, week}},
		{`file system scheme "ftp"`, slices.Concat(prism, []string{"ftp://week.mbox"})},
	} {
		code, stdout, stderr := program(t, nil, c.args...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "misroute-beam: ") || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, printed %q and %q; want exit code 2 and one line with %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

// What the export makes impossible is found by a worker, and told as misroute eval tells it.
func TestUnusableExport(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(notes, []byte("nothing that looks like mail\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "run")
	code, _, stderr := program(t, nil, "--runner", "prism", "--model", words, "--out", out, notes)
	if code != exitFatal || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "has no run: notes.txt: the format is not recognised") {
		t.Errorf("exit code %d, printed %q", code, stderr)
	}
	noRun(t, out)
}

func TestHelp(t *testing.T) {
	code, stdout, _ := program(t, nil, "--help")
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"Examples:", "--runner ENGINE", "--endpoint", "--strategy", "--worker_binary", "Exit codes:"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the help does not have %q", want)
		}
	}
	for _, never := range []string{"--semi_persist_dir", "--test.run", "--max_num_workers value"} {
		if strings.Contains(stdout, never) {
			t.Errorf("the help has %q", never)
		}
	}
}

// Rejects beyond what is allowed are exit code 3, and the run is there.
func TestTooManyRejects(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	code, stdout, stderr := program(t, nil, "--runner", "prism", "--model", words, "--max-message-bytes", fmt.Sprint(longMessage), "--out", out, week)
	if code != exitRejected || !strings.Contains(stderr, "records were rejected") || !strings.Contains(stdout, "310 records") {
		t.Errorf("exit code %d, printed %q and %q", code, stdout, stderr)
	}
	onlyRun(t, out)
	// With --force the run is replaced, and reports of its rows do not stay beside other rows.
	if err := os.WriteFile(filepath.Join(out, "report.html"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := program(t, nil, "--runner", "prism", "--model", words, "--force", "--out", out, week); code != exitOK {
		t.Errorf("--force: exit code %d: %s", code, stderr)
	}
	onlyRun(t, out)
}

// The measured file of a run is JSON with the parts' times in it.
func TestMeasured(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	if code, _, stderr := program(t, nil, "--runner", "prism", "--model", words, "--out", out, week); code != exitOK {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(filepath.Join(out, result.MeasuredFile))
	if err != nil {
		t.Fatal(err)
	}
	var m result.Measured
	if err := json.Unmarshal(b, &m); err != nil || !(m.MeanScoreMillis > 0) {
		t.Errorf("%s: %v", b, err)
	}
}
