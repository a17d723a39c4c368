package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"misroute/pipeline"
	"misroute/pipeline/result"
)

// mergeFn makes the run folder of all parts, as misroute merge makes it. It comes last and runs once:
// the parts are its side input.
type mergeFn struct{ Job Job }

func (f *mergeFn) ProcessElement(ctx context.Context, _ []byte, next func(*Part) bool) error {
	var parts []Part
	for p := (Part{}); next(&p); p = (Part{}) {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Number, b.Number) })
	dirs := make([]string, len(parts))
	for i, p := range parts {
		var err error
		if dirs[i], err = fetchAnew(ctx, p.Path); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp("", name+"-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out, err := result.OpenPartial(tmp, nil, false)
	if err != nil {
		return err
	}
	defer out.Close()
	run, measured, err := pipeline.Merge(dirs, out)
	if err != nil {
		return err
	}
	if err := f.usable(ctx, &run, parts); err != nil {
		return err
	}
	run.RunID = run.ID()
	dir, err := out.Assemble(run, measured)
	if err != nil {
		return err
	}
	return publish(ctx, dir, f.Job.Out)
}

// usable refuses a run that says nothing: labels that fit nothing, no message that could be read.
func (f *mergeFn) usable(ctx context.Context, run *result.Run, parts []Part) error {
	o, err := question(ctx, &f.Job)
	if err != nil {
		return err
	}
	var labelled int64
	var examples []string
	for _, p := range parts {
		labelled += p.FromLabelsFile
		examples = append(examples, p.NotInLabels...)
	}
	if err := o.Mail.Labels.Check(labelled, run.Ledger.Scored, examples...); err != nil {
		return err
	}
	if run.Ledger.Scored == 0 {
		return fmt.Errorf("none of %d records could be evaluated; the parts in %s have the reasons (misroute inspect --rejects)", run.Ledger.Read, partsDir(f.Job.Out))
	}
	return nil
}
