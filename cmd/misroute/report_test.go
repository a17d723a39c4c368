package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"misroute/pipeline/result"
)

// fourMessages writes a run of four messages, one of them misrouted.
func fourMessages(t *testing.T) string {
	t.Helper()
	f := &result.Folder{Run: result.Run{Schema: result.SchemaVersion, Model: result.ModelFacts{Name: "m", Family: "bert"}, Cap: 8, Strategy: "head", Queues: []string{"a", "b"},
		Ledger: result.Ledger{Read: 4, Scored: 4, Labelled: 4, Routable: 4}}}
	for i := range 4 {
		f.Rows = append(f.Rows, result.Row{Source: "w.mbox", RecordNo: int64(i + 1), MessageID: fmt.Sprintf("<%d@x>", i), Label: "a", Prediction: []string{"a", "b"}[i/3],
			Score: 0.9, TokensTotal: 5, TokensKept: 5, Windows: 1, Cap: 8, Strategy: "head", Status: result.StatusScored})
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := result.WriteFolder(dir, f); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReportVerb(t *testing.T) {
	dir := fourMessages(t)
	verb := func(args ...string) (string, error) {
		var out, errs bytes.Buffer
		app := newApp(&out, &errs)
		app.Commands = append(app.Commands[:0:0], ReportCommand())
		err := app.Run(append([]string{"misroute", "report"}, args...))
		return out.String(), err
	}
	out, err := verb(dir)
	if err != nil {
		t.Fatal(err)
	}
	const headline = "1 of 4 messages went to the wrong queue (25.0 %, 95 % interval 4.6 to 69.9)" // Wilson 1 of 4
	if !strings.HasPrefix(out, headline+"\n") {
		t.Errorf("terminal begins %.120q", out)
	}
	for _, name := range []string{"report.html", "report.md", "report.json"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(b) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err = verb("--format", "json", dir)
	var numbers struct {
		Headline string `json:"headline"`
	}
	if err != nil || json.Unmarshal([]byte(out), &numbers) != nil || numbers.Headline != headline {
		t.Errorf("json: %v %.100q", err, out)
	}
	for _, bad := range [][]string{
		{}, {dir, dir}, {filepath.Join(dir, "nothing")}, {"--format", "pdf", dir}, {"--buckets", "9,3", dir}, {"--buckets", "equal:x", dir},
		{"--threshold", "2", dir}, {"--color", "blue", dir}, {"--costs", filepath.Join(dir, "none.csv"), dir}, {"--examples", "0", dir},
	} {
		_, err := verb(bad...)
		var code *exitError
		if !errors.As(err, &code) || code.code != exitUsage {
			t.Errorf("%q: %v, want a usage error", bad, err)
		}
	}
}
