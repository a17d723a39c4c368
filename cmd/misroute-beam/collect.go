package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"

	"misroute/pipeline"
	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// collectFn makes the files of one part, as misroute eval --shard I/N makes them.
type collectFn struct{ Job Job }

func (f *collectFn) ProcessElement(ctx context.Context, number int, next func(*Piece) bool, emit func(Part)) error {
	shard := pipeline.Shard{I: number, N: f.Job.Shards}
	g, err := gather(&f.Job, next)
	if err != nil {
		return fmt.Errorf("part %s: %w", shard, err)
	}
	tmp, err := os.MkdirTemp("", name+"-part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out, err := result.OpenPartial(tmp, nil, false)
	if err != nil {
		return err
	}
	defer out.Close()
	c := pipeline.NewCollector(out, &g.facts)
	for i := range g.outcomes {
		if err := c.Add(&g.outcomes[i].Outcome); err != nil {
			return err
		}
	}
	s, err := c.Finish(g.sources, g.elsewhere)
	if err != nil {
		return fmt.Errorf("part %s: %w", shard, err)
	}
	run := g.facts
	run.Shard, run.Inputs, run.Sources, run.Ledger = shard.String(), s.Inputs, s.Sources, s.Ledger
	run.RunID = run.ID()
	dir, err := out.Assemble(run, s.Measured)
	if err != nil {
		return err
	}
	to := fmt.Sprintf("%s/%05d-of-%05d", partsDir(f.Job.Out), number, f.Job.Shards)
	if err := publish(ctx, dir, to); err != nil {
		return err
	}
	emit(Part{Number: number, Path: to, FromLabelsFile: s.FromLabelsFile, NotInLabels: s.NotInLabelsFile})
	return nil
}

// gathered is a part before it is written.
type gathered struct {
	facts     result.Run
	outcomes  []placed // in reading order
	sources   []mail.Source
	elsewhere map[string]int64
}

type placed struct {
	export int
	pipeline.Outcome
}

// gather takes the pieces of a part, which come in any order.
func gather(job *Job, next func(*Piece) bool) (*gathered, error) {
	g := &gathered{sources: make([]mail.Source, len(job.Exports)), elsewhere: map[string]int64{}}
	read := make([]bool, len(job.Exports))
	first := true
	for p := (Piece{}); next(&p); p = (Piece{}) {
		for _, o := range p.Outcomes {
			g.outcomes = append(g.outcomes, placed{p.Export, o})
		}
		if p.Read == nil {
			continue
		}
		if read[p.Export] {
			return nil, fmt.Errorf("%s was read twice for it, which is a bug", job.Exports[p.Export].Name)
		}
		read[p.Export] = true
		g.sources[p.Export] = p.Read.Source
		g.elsewhere[p.Read.Source.Name] = p.Read.Elsewhere
		if first {
			g.facts, first = p.Read.Facts, false
		} else if what := difference(&g.facts, &p.Read.Facts); what != "" {
			return nil, fmt.Errorf("workers differ: %s; give all the same model, and with different processors --kernel avx2 or generic", what)
		}
	}
	if i := slices.Index(read, false); i >= 0 {
		return nil, fmt.Errorf("%s is missing, which is a bug", job.Exports[i].Name)
	}
	slices.SortFunc(g.outcomes, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.export, b.export), cmp.Compare(a.Place().RecordNo, b.Place().RecordNo))
	})
	return g, nil
}

// difference names a fact in which two workers differ.
func difference(a, b *result.Run) string {
	switch {
	case a.Kernel != b.Kernel:
		return fmt.Sprintf("kernel %s and %s", a.Kernel, b.Kernel)
	case a.Model.SHA256 != b.Model.SHA256:
		return fmt.Sprintf("model %.12s and %.12s", a.Model.SHA256, b.Model.SHA256)
	case !reflect.DeepEqual(a, b):
		return fmt.Sprintf("configuration %.12s and %.12s", a.Key, b.Key)
	}
	return ""
}
