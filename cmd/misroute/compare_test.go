package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/result"
)

// smallRun is a run of n messages over two queues of which the first wrong are misroutes.
func smallRun(id string, n, wrong int) *result.Folder {
	f := &result.Folder{Run: result.Run{Schema: 1, RunID: id, ToolVersion: evaluation.Version, Queues: []string{"cakes", "refunds"}, Cap: 256, Strategy: "head", Model: result.ModelFacts{Name: "model-" + id}}}
	for i := range n {
		r := result.Row{
			RunID: id, Source: "week.mbox", RecordNo: int64(i + 1), MessageID: fmt.Sprintf("<%d@crumb.example>", i), ContentSHA256: fmt.Sprintf("%064x", i),
			ThreadKey: fmt.Sprint(i), Week: "2026-W47", Label: "cakes", Prediction: "cakes", Score: .9, Margin: 2,
			Scores:      []result.QueueScore{{Queue: "cakes", Score: .9}, {Queue: "refunds", Score: .1}},
			TokensTotal: int32(10 + i), TokensKept: int32(min(256, 10+i)), Cap: 256, Strategy: "head", Windows: 1, Cells: 100, FLOPs: 1000, Status: result.StatusScored,
		}
		if i < wrong {
			r.Prediction = "refunds"
			r.Scores[0].Score, r.Scores[1].Score = .1, .9
		}
		f.Rows = append(f.Rows, r)
	}
	f.Run.Ledger = result.Ledger{Read: int64(n), Scored: int64(n), Labelled: int64(n), Routable: int64(n)}
	return f
}

// written puts a run into a fresh folder.
func written(t *testing.T, f *result.Folder) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), f.Run.RunID)
	if err := result.WriteFolder(dir, f); err != nil {
		t.Fatal(err)
	}
	return dir
}

// called runs one verb as the program would.
func called(t *testing.T, verb *cli.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	app := newApp(&out, &errs)
	app.Commands = []*cli.Command{verb}
	verb.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usageError(err) }
	code = report(&errs, app.RunContext(t.Context(), append([]string{"misroute", verb.Name}, args...)))
	return code, out.String(), errs.String()
}

func TestCompareExitCodesFollowTheVerdict(t *testing.T) {
	base, worse, slightly := written(t, smallRun("base", 300, 10)), written(t, smallRun("worse", 300, 40)), written(t, smallRun("slightly", 300, 12))
	weeks := t.TempDir()
	if err := result.WriteFolder(filepath.Join(weeks, "2026-W47"), smallRun("w47", 300, 10)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(weeks, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	shorter := written(t, smallRun("shorter", 290, 10))
	garbage := t.TempDir()
	if err := os.WriteFile(filepath.Join(garbage, result.ResultsFile), []byte("PAR1 not really PAR1"), 0o644); err != nil {
		t.Fatal(err)
	}
	unfinished := t.TempDir()
	if err := os.MkdirAll(filepath.Join(unfinished, "2026-W46", result.PartialDir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string // on standard output, or on standard error for a code of 2 and more
	}{
		{[]string{base, base}, 0, "PASS: no message changed"},
		{[]string{"--strict", base, base}, 0, "PASS"},
		{[]string{base, weeks}, 0, "PASS"},
		{[]string{worse, base}, 0, "PASS: the candidate is better"},
		{[]string{base, worse}, 4, "REGRESSION"},
		{[]string{base, slightly}, 0, "INCONCLUSIVE"},
		{[]string{"--strict", base, slightly}, 5, "INCONCLUSIVE"},
		{[]string{"--margin", "5", base, slightly}, 0, "PASS: the candidate is not worse by 5 points"},
		{[]string{"--margin", "0", base, base}, 0, "PASS"},
		{[]string{base, shorter}, 2, "10 only in the baseline"},
		{[]string{base, shorter}, 2, "only in the baseline: <290@crumb.example> (week.mbox, record 291): not there"},
		{[]string{"--intersect", base, shorter}, 0, "290"},
		{[]string{garbage, base}, 2, "baseline: " + garbage},
		{[]string{base, garbage}, 2, "candidate: " + garbage},
		{[]string{base, unfinished}, 2, "not finished"},
		{[]string{base, filepath.Join(base, "absent")}, 2, "no such folder"},
		{[]string{base, t.TempDir()}, 2, "no run here"},
		{[]string{base}, 2, "got 1 arguments"},
		{[]string{"--margin", "-1", base, base}, 2, "--margin"},
		{[]string{"--alpha", "1", base, base}, 2, "--alpha"},
		{[]string{"--format", "pdf", base, base}, 2, "--format"},
		{[]string{"--costs", filepath.Join(base, "absent.csv"), base, base}, 2, "--costs"},
		{[]string{"--nonsense", base, base}, 2, "nonsense"},
	} {
		code, stdout, stderr := called(t, CompareCommand(), c.args...)
		said := stdout
		if c.code >= 2 {
			said = stderr
		}
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("compare %q: exit %d, want %d; %q is not in\n%s", c.args, code, c.code, c.says, said)
		}
		if c.code == 2 && stdout != "" && !strings.Contains(stdout, "USAGE") {
			t.Errorf("compare %q failed and still printed a report:\n%s", c.args, stdout)
		}
	}
}

func TestCompareWritesFiles(t *testing.T) {
	base, worse := written(t, smallRun("base", 300, 10)), written(t, smallRun("worse", 300, 40))
	out := filepath.Join(t.TempDir(), "made", "here")
	code, stdout, _ := called(t, CompareCommand(), "--format", "markdown", "--out", out, base, worse)
	if code != exitRegression || !strings.HasPrefix(stdout, "**REGRESSION:** the candidate is worse") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	for name, want := range map[string]string{"compare.html": "<!doctype html>", "compare.md": "**REGRESSION:**", "compare.json": "{\n \"schema_version\": 1,"} {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: %v, begins %.60q", name, err, b)
		}
	}
}
