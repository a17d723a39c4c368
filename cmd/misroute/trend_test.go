package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"misroute/pipeline/result"
)

func TestTrend(t *testing.T) {
	runs := t.TempDir()
	for i, wrong := range []int{9, 10, 60} {
		f := smallRun(fmt.Sprintf("w%d", i), 300, wrong)
		for j := range f.Rows {
			f.Rows[j].MessageID += f.Run.RunID
			f.Rows[j].ThreadKey += f.Run.RunID
			f.Rows[j].Week = fmt.Sprintf("2026-W%d", 45+i)
		}
		if err := result.WriteFolder(filepath.Join(runs, f.Rows[0].Week), f); err != nil {
			t.Fatal(err)
		}
	}
	last := filepath.Join(runs, "2026-W47")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{runs}, 0, "2026-W47: 60 of 300 messages went to the wrong queue (20.0 %), more than chance"},
		{[]string{filepath.Join(runs, "2026-W45"), last}, 0, "2026-W45"},
		{[]string{last}, 0, "no other week"},
		{[]string{"--format", "json", runs}, 0, `"report": "trend"`},
		{[]string{"--buckets", "equal:3", runs}, 0, "tokens"},
		{[]string{}, 2, "at least one run"},
		{[]string{filepath.Join(runs, "absent")}, 2, "no such folder"},
		{[]string{"--alpha", "2", runs}, 2, "--alpha"},
		{[]string{"--buckets", "5,4", runs}, 2, "--buckets"},
		{[]string{"--color", "blue", runs}, 2, "--color"},
		{[]string{"--format", "pdf", runs}, 2, "--format"},
	} {
		code, stdout, stderr := called(t, TrendCommand(), c.args...)
		said := strings.Join(strings.Fields(stdout), " ")
		if c.code != 0 {
			said = stderr
		}
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("trend %q: exit %d, want %d; %q is not in\n%s", c.args, code, c.code, c.says, said)
		}
	}
	out := t.TempDir()
	if code, _, stderr := called(t, TrendCommand(), "--out", out, runs); code != 0 {
		t.Fatal(code, stderr)
	}
	for _, name := range []string{"trend.html", "trend.md", "trend.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
}
