package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/tokenize/window"
)

// SweepCommand compares truncation caps and strategies in one pass over the mail.
func SweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "compare truncation caps and strategies in one pass over the mail",
		ArgsUsage: "EXPORT...",
		Description: "Reads every message once and scores it again only where a setting cuts it. Says what truncation costs,\n" +
			"what the same cut at a random place would cost, and which is the smallest cap that is not worse.\n\n" +
			"Examples:\n" +
			"  misroute sweep --model models/router inbox-2026-W47.mbox\n" +
			"  misroute sweep --model models/router --caps 64,128,256,512,none --strategies head,tail,head+tail inbox.mbox\n\n" +
			"Exit codes: as for eval.",
		Flags: append(append(evaluation.RouterFlags(), append(runFlags(), reportFlags()...)...), append(evaluation.MailFlags(),
			&cli.StringFlag{Name: "caps", Category: "Truncation:", Value: "64,128,256,512,none", Usage: "caps to compare, in tokens; none: the whole message"},
			&cli.StringFlag{Name: "strategies", Category: "Truncation:", Value: "head,tail,head+tail,windows", Usage: "strategies to compare"},
			&cli.IntFlag{Name: "placebos", Category: "Truncation:", Value: 5, Usage: "random cuts of the same size for each cut message"},
		)...),
		Action: func(c *cli.Context) error {
			o, err := bindEval(c)
			if err != nil {
				return err
			}
			if o.AsRouted {
				return usagef("sweep reads the mail again at other caps: it needs --model, not --as-routed")
			}
			if o.Caps, o.Strategies, err = bindSweep(c); err != nil {
				return err
			}
			if o.Placebos = c.Int("placebos"); o.Placebos < 0 || o.Placebos > 100 {
				return usagef("--placebos %d: want 0 to 100", o.Placebos)
			}
			// The control is what a sweep stands on: every uncut message unless asked otherwise.
			if !c.IsSet("control") {
				o.Control = 1
			}
			return runSweep(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

// bindSweep reads --caps and --strategies; caps come in rising order, none (0) is left to the
// reference reading.
func bindSweep(c *cli.Context) (caps []int, strategies []window.Strategy, err error) {
	for _, word := range strings.Split(c.String("caps"), ",") {
		n, err := evaluation.ParseCap(strings.TrimSpace(word))
		if err != nil {
			return nil, nil, usagef("--caps %w", err)
		}
		if n > 0 {
			caps = append(caps, n)
		}
	}
	if len(caps) == 0 {
		return nil, nil, usagef("--caps %s: want at least one number of tokens", c.String("caps"))
	}
	slices.Sort(caps)
	caps = slices.Compact(caps)
	for _, word := range strings.Split(c.String("strategies"), ",") {
		s, err := window.ParseStrategy(strings.TrimSpace(word))
		if err != nil {
			return nil, nil, usagef("--strategies: %w", err)
		}
		if !slices.Contains(strategies, s) {
			strategies = append(strategies, s)
		}
	}
	return caps, strategies, nil
}

// runSweep evaluates with every setting and prints the sweep's report.
func runSweep(ctx context.Context, o evalOptions, stdout, stderr io.Writer) error {
	w, out, err := evaluate(ctx, &o, stderr)
	if err != nil {
		return err
	}
	// The sweep's own report stands beside the weekly one, which holds the same numbers with the
	// misroutes in front.
	s := w.SweepReport()
	if err := writeForms(out.dir, "sweep", s); err != nil {
		return err
	}
	if err := out.deliver(ctx, resumeBrings); err != nil {
		return err
	}
	if err := s.Terminal(stdout, o.report.terminal(stdout, o.out)); err != nil {
		return err
	}
	return o.verdict(&w.Run, o.out)
}
