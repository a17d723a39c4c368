package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"misroute/pipeline/result"
)

// finished leaves a run as [Run] does.
func finished(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	p := start(t, dir, false)
	s, err := Run(context.Background(), &slice{raws: export(400)}, labels(t), p, options(2))
	if err != nil {
		t.Fatal(err)
	}
	s.Inputs = []result.InputFacts{{Name: "week.mbox"}}
	assemble(t, p, result.Run{Schema: result.SchemaVersion, RunID: "x", Queues: []string{"short", "refunds"}}, s)
	return dir
}

// changed checks a copy of the run in which something is changed.
func changed(t *testing.T, run string, change func(*result.Folder)) Checked {
	t.Helper()
	f, err := result.ReadFolder(run)
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	dir := t.TempDir()
	if err := result.WriteFolder(dir, f); err != nil {
		t.Fatal(err)
	}
	c, err := Check(dir, &f.Run)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheck(t *testing.T) {
	run := finished(t)
	c := changed(t, run, func(*result.Folder) {})
	// 10 of 400 are unreadable, as in TestWorkersLeaveNoTrace.
	if len(c.Problems) > 0 || c.Rows != 390 || c.Rejects != 10 || c.Readings == 0 {
		t.Errorf("%d rows, %d rejects, %d readings: %q; want 390, 10, some, nothing wrong", c.Rows, c.Rejects, c.Readings, c.Problems)
	}
	for name, x := range map[string]struct {
		change func(*result.Folder)
		want   string
	}{
		"a row is lost":        {func(f *result.Folder) { f.Rows = slices.Delete(f.Rows, 7, 8) }, "ledger: the run says"},
		"a row is doubled":     {func(f *result.Folder) { f.Rows = slices.Insert(f.Rows, 7, f.Rows[7]) }, "order: week.mbox record 8 stands after record 8"},
		"rows out of order":    {func(f *result.Folder) { f.Rows[7], f.Rows[8] = f.Rows[8], f.Rows[7] }, "order: week.mbox record 8 stands after record 9"},
		"a reading of no row":  {func(f *result.Folder) { f.Readings[len(f.Readings)-1].RecordNo = 4000 }, "reading: week.mbox record 4000: a reading of no row"},
		"readings disordered":  {func(f *result.Folder) { slices.Reverse(f.Readings) }, "order: reading: week.mbox record"},
		"a reject of a row":    {func(f *result.Folder) { f.Rejects[0].RecordNo = 39 }, "twice: week.mbox record 39 is a row and a reject"},
		"a reject is lost":     {func(f *result.Folder) { f.Rejects = f.Rejects[:9] }, "source ledger: week.mbox"},
		"a control that flips": {func(f *result.Folder) { control(f).Prediction = "elsewhere" }, "control: week.mbox record"},
		"another score":        {func(f *result.Folder) { f.Rows[0].Score = 0.1 }, "prediction: week.mbox record 1"},
		"another run's row":    {func(f *result.Folder) { f.Rows[0].RunID = "y" }, "run id: week.mbox record 1 belongs to run y"},
		"more than the cap":    {func(f *result.Folder) { f.Rows[0].TokensKept = f.Rows[0].TokensTotal + 1 }, "cap: week.mbox record 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := changed(t, run, x.change).Problems
			if !slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, x.want) }) {
				t.Errorf("problems %s, want one that begins with %q", fmt.Sprintf("%.300q", got), x.want)
			}
		})
	}
}

func control(f *result.Folder) *result.Reading {
	for i := range f.Readings {
		if f.Readings[i].Kind == result.ReadControl {
			return &f.Readings[i]
		}
	}
	return nil
}
