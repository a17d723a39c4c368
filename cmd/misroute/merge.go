package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"misroute/pipeline"
	"misroute/pipeline/result"
)

// mergeOptions is everything `misroute merge` was asked for.
type mergeOptions struct {
	parts  []string
	out    string
	force  bool
	report reportOptions
	tolerance
}

// MergeCommand joins the parts of a sharded evaluation.
func MergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "join the parts of a sharded evaluation into the one run it would have been",
		ArgsUsage: "PART...",
		Description: "The parts come from misroute eval --shard 1/N ... N/N, with the same model, options and exports. The merged\n" +
			"run has the bytes of an unsharded one (times apart). A part that is missing, doubled, or of another run is\n" +
			"refused by name.\n\n" +
			"Example:\n" +
			"  for i in 1 2 3; do misroute eval --shard $i/3 --model models/router --out parts/$i inbox.mbox & done; wait\n" +
			"  misroute merge --out runs/2026-W47 parts/1 parts/2 parts/3\n\n" +
			"Exit codes: 0 done; 2 parts that do not make one run; 3 too many records rejected, or a source cut off.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true, Usage: "run folder `DIR` to make"},
			&cli.BoolFlag{Name: "force", Usage: "replace another finished run in --out"},
			&cli.BoolFlag{Name: "with-text", Usage: "show subjects and text, where the parts stored them"},
		}, append(verdictFlags(), reportFlags()...)...),
		Action: func(c *cli.Context) error {
			o := mergeOptions{parts: c.Args().Slice(), out: c.String("out"), force: c.Bool("force")}
			if len(o.parts) == 0 {
				return usagef("merge: no parts given; see misroute merge --help")
			}
			var err error
			if o.report, err = bindReport(c); err != nil {
				return err
			}
			if o.tolerance, err = bindTolerance(c); err != nil {
				return err
			}
			return runMerge(c.Context, o, c.App.Writer)
		},
	}
}

func runMerge(ctx context.Context, o mergeOptions, stdout io.Writer) error {
	parts := make([]string, len(o.parts))
	for i, path := range o.parts {
		var err error
		if parts[i], err = bucketsOf(ctx).runCopy(ctx, path); err != nil {
			return usageError(err)
		}
	}
	first, err := result.ReadRun(parts[0])
	if err != nil {
		return usageError(fmt.Errorf("%s: %w", parts[0], err))
	}
	key := map[string]string{"all": first.Key, "shard": ""}
	out, err := openRunOut(ctx, o.out)
	if err != nil {
		return usageError(err)
	}
	if err := refuseOther(ctx, o.out, o.force, key); err != nil {
		return err
	}
	partial, err := result.OpenPartial(out.dir, key, false)
	if err != nil {
		return usageError(err)
	}
	defer partial.Close()
	if err := out.begin(ctx); err != nil {
		return usageError(err)
	}
	run, measured, err := pipeline.Merge(parts, partial)
	if err != nil {
		return usageError(err)
	}
	w, err := publish(partial, o.report, run, measured)
	if err != nil {
		return err
	}
	if err := out.deliver(ctx, "merge again"); err != nil {
		return err
	}
	if err := w.Terminal(stdout, o.report.terminal(stdout, o.out)); err != nil {
		return err
	}
	return o.verdict(&w.Run, o.out)
}
