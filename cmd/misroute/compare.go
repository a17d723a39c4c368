package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/reports"
	"misroute/reports/stats"
	"misroute/reports/table"
)

// CompareCommand judges a candidate against a baseline.
func CompareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "judge a candidate run against a baseline, over the same messages",
		ArgsUsage: "BASELINE CANDIDATE",
		Description: "BASELINE and CANDIDATE are run folders, or folders that hold weekly runs. Messages are paired by id and\n" +
			"content; runs over different messages are refused and the difference is listed, unless --intersect.\n\n" +
			"The verdict: PASS when the candidate's misroute rate is surely less than --margin points above the\n" +
			"baseline's, REGRESSION when it is surely higher, INCONCLUSIVE when these messages cannot tell.\n\n" +
			"Examples:\n" +
			"  misroute compare runs/2026-W47 runs/2026-W47-candidate\n" +
			"  misroute compare --format markdown --strict runs/main runs/pr > comment.md\n" +
			"  misroute compare --margin 1 --costs costs.csv --out out runs/v3 runs/v4\n\n" +
			"Exit codes: 0 PASS (and INCONCLUSIVE without --strict); 2 input that cannot be compared; 4 REGRESSION;\n" +
			"5 INCONCLUSIVE with --strict.",
		Flags: append(reportFlags(),
			&cli.Float64Flag{Name: "margin", Value: 100 * stats.DefaultMargin, Usage: "`POINTS` of misroute rate by which a candidate may be worse and still pass"},
			&cli.Float64Flag{Name: "alpha", Value: stats.DefaultAlpha, Usage: "`LEVEL` of the tests; intervals cover one minus it"},
			&cli.BoolFlag{Name: "strict", Usage: "exit 5 when the verdict is INCONCLUSIVE"},
			&cli.BoolFlag{Name: "intersect", Usage: "compare the messages both runs have, instead of refusing different sets"},
			&cli.Uint64Flag{Name: "seed", Value: stats.DefaultSeed, Usage: "seed `N` of everything drawn at random"},
			&cli.StringFlag{Name: "format", Value: "terminal", Usage: "`FORM` on standard output: terminal, html, markdown, json"},
			&cli.StringFlag{Name: "out", Usage: "also write compare.html, compare.md and compare.json into `DIR`"},
			&cli.BoolFlag{Name: "with-text", Usage: "show subjects, where the runs stored them"},
		),
		Action: func(c *cli.Context) error {
			o, err := bindCompare(c)
			if err != nil {
				return err
			}
			return runCompare(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

// compareRun is everything `misroute compare` was asked for.
type compareRun struct {
	reportOptions
	baseline, candidate string
	intersect, strict   bool
	format, out         string
}

func bindCompare(c *cli.Context) (compareRun, error) {
	o := compareRun{intersect: c.Bool("intersect"), strict: c.Bool("strict"), format: c.String("format"), out: c.String("out")}
	var err error
	if o.reportOptions, err = bindReport(c); err != nil {
		return o, err
	}
	if c.NArg() != 2 {
		return o, usagef("compare wants a baseline and a candidate, got %d arguments (flags come first); see misroute compare --help", c.NArg())
	}
	o.baseline, o.candidate = c.Args().Get(0), c.Args().Get(1)
	margin := c.Float64("margin")
	if !(margin >= 0 && margin < 100) {
		return o, usagef("--margin %g: want points of misroute rate from 0 to 100, such as 0.5", margin)
	}
	// Zero means the default in the options of a report; somebody who asks for no margin gets one
	// that no count of messages can tell from none.
	o.Margin = max(margin/100, 1e-12)
	if o.Alpha = c.Float64("alpha"); !(o.Alpha > 0 && o.Alpha < 0.5) {
		return o, usagef("--alpha %g: want a level between 0 and 0.5, such as 0.05", o.Alpha)
	}
	o.Seed = c.Uint64("seed")
	return o, checkForm(o.format)
}

// checkForm refuses a --format that no report has.
func checkForm(form string) error {
	switch form {
	case "terminal", "text", "html", "markdown", "md", "json":
		return nil
	}
	return usagef("--format %q: want terminal, html, markdown or json", form)
}

// drawable is a finished report.
type drawable interface {
	Terminal(io.Writer, reports.TermOptions) error
	HTML(io.Writer) error
	Markdown(io.Writer) error
	JSON(io.Writer) error
}

// draw writes a report in one form to stdout and, into out where that is set, as files of a name.
func (o reportOptions) draw(ctx context.Context, r drawable, form, out, name string, stdout io.Writer) error {
	if out != "" {
		dir, bring, err := putFolder(ctx, out)
		if err != nil {
			return err
		}
		if err := writeForms(dir, name, r); err != nil {
			return err
		}
		if err := bring(); err != nil {
			return err
		}
	}
	switch form {
	case "html":
		return r.HTML(stdout)
	case "markdown", "md":
		return r.Markdown(stdout)
	case "json":
		return r.JSON(stdout)
	}
	return r.Terminal(stdout, o.terminal(stdout, ""))
}

func runCompare(ctx context.Context, o compareRun, stdout, stderr io.Writer) error {
	baseline, err := readRuns(ctx, o.baseline)
	if err != nil {
		return usagef("baseline: %w", err)
	}
	candidate, err := readRuns(ctx, o.candidate)
	if err != nil {
		return usagef("candidate: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := reports.NewCompare(baseline, candidate, reports.CompareOptions{Options: o.Options, Intersect: o.intersect, Workers: runtime.GOMAXPROCS(0)})
	var sets *reports.SetsDifferError
	if errors.As(err, &sets) {
		if err := listUnpaired(stderr, sets.Unpaired, o.Examples); err != nil {
			return err
		}
	}
	if err != nil {
		return usageError(err)
	}
	if err := o.draw(ctx, c, o.format, o.out, "compare", stdout); err != nil {
		return err
	}
	switch c.Verdict() {
	case stats.Regression:
		return regressionError(errors.New(c.Headline))
	case stats.Inconclusive:
		if o.strict {
			return inconclusiveError(errors.New(c.Headline))
		}
	}
	return nil
}

// listUnpaired names the messages that are not in both runs, at most so many.
func listUnpaired(w io.Writer, list []reports.Unpaired, most int) error {
	var b strings.Builder
	for i, u := range list {
		if i == most {
			fmt.Fprintf(&b, "and %d more (--examples N lists more)\n", len(list)-most)
			break
		}
		side := "only in the " + u.Side
		if u.Side == "both" {
			side = "in both"
		}
		fmt.Fprintf(&b, "%s: %s (%s, record %d): %s\n", side, table.Clean(u.MessageID), table.Clean(u.Source), u.RecordNo, table.Clean(u.Why))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
