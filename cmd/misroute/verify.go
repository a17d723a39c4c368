package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline"
	"misroute/pipeline/result"
)

// VerifyCommand checks a finished run again.
func VerifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check a finished run again: its balance, its rows, and a sample of them from the source",
		ArgsUsage: "RUN [EXPORT...]",
		Description: "Counts the rows anew and checks each. With the exports, the model and the flags of the run, it also compares\n" +
			"the exports' checksums and evaluates a sample of the messages again: every column must be the same.\n\n" +
			"Examples:\n" +
			"  misroute verify runs/2026-W47\n" +
			"  misroute verify --model models/router --sample 200 runs/2026-W47 inbox-2026-W47.mbox\n\n" +
			"Exit codes: 0 all is well; 1 something is not; 2 unusable input.",
		Flags: append(append(evaluation.RouterFlags(), evaluation.MailFlags()...), append(runFlags(),
			&cli.IntFlag{Name: "sample", Value: 50, Usage: "evaluate `N` messages again"},
			&cli.StringFlag{Name: "caps", Category: "Truncation:", Usage: "caps of a sweep's run"},
			&cli.StringFlag{Name: "strategies", Category: "Truncation:", Value: "head,tail,head+tail,windows", Usage: "strategies of a sweep's run"},
			&cli.IntFlag{Name: "placebos", Category: "Truncation:", Value: 5, Usage: "placebo cuts of a sweep's run"},
		)...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return usagef("verify: no run given; see misroute verify --help")
			}
			return runVerify(c.Context, c, c.App.Writer)
		},
	}
}

func runVerify(ctx context.Context, c *cli.Context, stdout io.Writer) error {
	dir := c.Args().First()
	folder, err := bucketsOf(ctx).runCopy(ctx, dir)
	if err != nil {
		return usageError(err)
	}
	run, err := result.ReadFinished(folder)
	if err != nil {
		return usageError(err)
	}
	checked, err := pipeline.Check(folder, &run)
	if err != nil {
		return usageError(err)
	}
	found := checked.Problems
	if id := run.ID(); id != run.RunID {
		found = append(found, fmt.Sprintf("run id: the facts hash to %s, the file says %s", id, run.RunID))
	}
	for _, p := range found {
		fmt.Fprintln(stdout, p)
	}
	fmt.Fprintf(stdout, "%s: run %s, %d rows, %d readings, %d rejects: %s\n", dir, run.RunID, checked.Rows, checked.Readings, checked.Rejects, verdictWord(len(found)))
	n := len(found)
	if exports := c.Args().Tail(); len(exports) > 0 {
		bad, err := verifySource(ctx, c, folder, &run, exports, stdout)
		if err != nil {
			return err
		}
		n += bad
	}
	if n > 0 {
		return fmt.Errorf("%s: %d problems", dir, n)
	}
	return nil
}

func verdictWord(problems int) string {
	if problems == 0 {
		return "balanced and consistent"
	}
	return fmt.Sprintf("%d problems", problems)
}

// verifySource evaluates a sample again.
func verifySource(ctx context.Context, c *cli.Context, folder string, run *result.Run, exports []string, stdout io.Writer) (problems int, err error) {
	if err := matchExports(ctx, &exports); err != nil {
		return 0, usageError(err)
	}
	o, err := bindEvalOf(c, exports)
	if err != nil {
		return 0, err
	}
	if len(run.Caps) > 0 {
		if o.Caps, o.Strategies, err = bindSweep(c); err != nil {
			return 0, err
		}
		o.Placebos = c.Int("placebos")
	}
	r, err := o.OpenRouter(ctx, io.Discard)
	if err != nil {
		return 0, usageError(err)
	}
	key, err := o.Key(o.Facts(r))
	if err != nil {
		return 0, usageError(err)
	}
	if key["all"] != run.Key {
		return 0, usagef("the run was made with other options, another model or another kernel (model %s, cap %d %s, kernel %s): give verify the flags of its eval",
			run.Model.Name, run.Cap, run.Strategy, run.Kernel)
	}
	src, err := openExports(ctx, &exports, o.Mail)
	if err != nil {
		return 0, usageError(err)
	}
	defer src.Close()
	p := o.Pipeline(r)
	p.Workers, p.Memory = o.workers, limitMemory(o.memory)
	p.Shard = pipeline.Shard{} // the places are the run's own
	n, differences, err := pipeline.Rescore(ctx, src, &o.Mail.Labels, folder, run, p, c.Int("sample"))
	if err != nil {
		return 0, err
	}
	for _, d := range differences {
		fmt.Fprintln(stdout, d)
	}
	problems = len(differences)
	for i, in := range src.Sources() {
		if i >= len(run.Inputs) || in.SHA256 != run.Inputs[i].SHA256 {
			fmt.Fprintf(stdout, "checksum: %s is not the file that was evaluated\n", in.Name)
			problems++
		}
	}
	fmt.Fprintf(stdout, "%d messages evaluated again: %d differences\n", n, len(differences))
	return problems, nil
}
