package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"misroute/pipeline/result"
	"misroute/reports"
	"misroute/reports/stats"
)

// TrendCommand puts weeks side by side.
func TrendCommand() *cli.Command {
	return &cli.Command{
		Name:      "trend",
		Usage:     "put weeks side by side: more misroutes than chance explains, or only other mail?",
		ArgsUsage: "RUN...",
		Description: "Each RUN is a run folder, or a folder that holds weekly runs. Messages are put into the ISO week of their\n" +
			"date. A control chart says which weeks are outside of what chance explains; each change is split into mail\n" +
			"of other lengths and misroutes at the same lengths, so that a week of longer mail is not blamed on the router.\n\n" +
			"Examples:\n" +
			"  misroute trend runs\n" +
			"  misroute trend runs/2026-W45 runs/2026-W46 runs/2026-W47\n" +
			"  misroute trend --format markdown runs\n\n" +
			"Exit codes: 0 done; 2 no readable run there.",
		Flags: append(trendFlags(),
			&cli.Float64Flag{Name: "alpha", Value: stats.DefaultAlpha, Usage: "`LEVEL` of the tests; intervals cover one minus it"},
			&cli.StringFlag{Name: "format", Value: "terminal", Usage: "`FORM` on standard output: terminal, html, markdown, json"},
			&cli.StringFlag{Name: "out", Usage: "also write trend.html, trend.md and trend.json into `DIR`"},
		),
		Action: func(c *cli.Context) error {
			o := trendRun{runs: c.Args().Slice(), format: c.String("format"), out: c.String("out")}
			var err error
			if o.reportOptions, err = bindTrend(c); err != nil {
				return err
			}
			if len(o.runs) == 0 {
				return usagef("trend wants at least one run; see misroute trend --help")
			}
			if err := checkForm(o.format); err != nil {
				return err
			}
			return runTrend(c.Context, o, c.App.Writer)
		},
	}
}

// trendFlags are the report flags that mean something for a trend: it lists no examples and hands
// nothing to a person.
func trendFlags() []cli.Flag {
	var flags []cli.Flag
	for _, f := range reportFlags() {
		switch f.Names()[0] {
		case "buckets", "color", "costs":
			flags = append(flags, f)
		}
	}
	return flags
}

func bindTrend(c *cli.Context) (reportOptions, error) {
	o := reportOptions{color: c.String("color")}
	o.Buckets, o.Alpha = c.String("buckets"), c.Float64("alpha")
	if err := reports.CheckBuckets(o.Buckets); err != nil {
		return o, usagef("--buckets: %w", err)
	}
	if !(o.Alpha > 0 && o.Alpha < 0.5) {
		return o, usagef("--alpha %g: want a level between 0 and 0.5, such as 0.05", o.Alpha)
	}
	switch o.color {
	case "auto", "always", "never":
	default:
		return o, usagef("--color %q: want auto, always or never", o.color)
	}
	var err error
	o.Costs, err = readCosts(c.String("costs"))
	return o, err
}

// trendRun is everything `misroute trend` was asked for.
type trendRun struct {
	reportOptions
	runs        []string
	format, out string
}

func runTrend(ctx context.Context, o trendRun, stdout io.Writer) error {
	var all []*result.Folder
	for _, dir := range o.runs {
		runs, err := readRuns(ctx, dir)
		if err != nil {
			return usageError(err)
		}
		all = append(all, runs...)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	t, err := reports.NewTrend(all, o.Options)
	if err != nil {
		return usageError(err)
	}
	return o.draw(ctx, t, o.format, o.out, "trend", stdout)
}
