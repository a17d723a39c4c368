package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// Messages evaluated one at a time, in any order, and collected by parts leave the files of one run;
// its duplicates and readings included.
func TestOutcomesCollectToTheSameBytes(t *testing.T) {
	raws := export(400)
	for i := 50; i < 400; i += 50 { // copies whose first copy may stand in another part
		raws[i] = raws[2]
	}
	o := options(2)
	facts := result.Run{Schema: result.SchemaVersion, RunID: "x", Key: "k", Queues: []string{"short", "refunds"}, Cap: 20, Strategy: "head"}
	whole := t.TempDir()
	p := start(t, whole, false)
	s, err := Run(context.Background(), &slice{raws: raws}, labels(t), p, o)
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, p, facts, s)

	const parts = 3
	var collected [parts + 1][]Outcome
	e := NewEvaluator(labels(t), o)
	src := &slice{raws: raws}
	for {
		m, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		out, err := e.Evaluate(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		k := PartOf(m, parts)
		collected[k] = append(collected[k], out)
	}
	var dirs []string
	for k := 1; k <= parts; k++ {
		dir := t.TempDir()
		p := start(t, dir, false)
		c := NewCollector(p, &facts)
		for i := range collected[k] {
			if err := c.Add(&collected[k][i]); err != nil {
				t.Fatal(err)
			}
		}
		s, err := c.Finish(src.Sources(), map[string]int64{"week.mbox": int64(400 - len(collected[k]))})
		if err != nil {
			t.Fatal(err)
		}
		part := facts
		part.Shard = fmt.Sprintf("%d/%d", k, parts)
		assemble(t, p, part, s)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	out := t.TempDir()
	p = start(t, out, false)
	run, measured, err := Merge(dirs, p)
	if err != nil {
		t.Fatal(err)
	}
	run.RunID = "x"
	assemble(t, p, run, Summary{Ledger: run.Ledger, Sources: run.Sources, Inputs: run.Inputs, Measured: measured})
	sameFiles(t, "collected parts", whole, out)
}

// A record that was read and never collected is found.
func TestCollectorBalances(t *testing.T) {
	c := NewCollector(start(t, t.TempDir(), false), &result.Run{})
	if err := c.Add(&Outcome{Row: result.Row{Source: "week.mbox", RecordNo: 1, Status: result.StatusScored}}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Finish([]mail.Source{{Name: "week.mbox", Seen: 3}}, map[string]int64{"week.mbox": 1})
	if err == nil {
		t.Error("1 of 2 records collected, no error")
	}
}

// A cancelled evaluation is nobody's reject.
func TestEvaluateCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m, err := (&slice{raws: export(1)}).Next()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := NewEvaluator(labels(t), options(1)).Evaluate(ctx, m); !errors.Is(err, context.Canceled) {
		t.Errorf("outcome %+v, error %v; want the context's error", out, err)
	}
}

func assemble(t *testing.T, p *result.Partial, run result.Run, s Summary) {
	t.Helper()
	run.Ledger, run.Sources, run.Inputs = s.Ledger, s.Sources, s.Inputs
	if _, err := p.Assemble(run, s.Measured); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(); err != nil {
		t.Fatal(err)
	}
}
