// Command misroute evaluates email routers: how many messages of a weekly export went to the wrong
// queue, whether long messages fared worse, whether the token cap did it, and whether the new model
// is better.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
)

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code. The first interrupt drains (verbs see
// their context cancelled), the second one stops at once.
func run(args []string, stdout, stderr io.Writer) (code int) {
	quietLimits()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		<-signals
		fmt.Fprintln(stderr, "misroute: interrupted: finishing the messages at hand (again to stop at once)")
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	ctx, buckets := withBuckets(ctx, stderr)
	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, args)
	return report(stderr, buckets.plain(errors.Join(err, buckets.close())))
}

func newApp(stdout, stderr io.Writer) *cli.App {
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "misroute", c.App.Version) }
	return &cli.App{
		Name:    "misroute",
		Usage:   "evaluate email routers: misroutes by length, and what the token cap cost",
		Version: evaluation.Version,
		Description: "Typical Monday:\n" +
			"  misroute eval --model models/router --out runs/2026-W47 inbox-2026-W47.mbox\n" +
			"  misroute compare runs/2026-W47 runs/2026-W47-candidate",
		Writer:    stdout,
		ErrWriter: stderr,
		Commands:  commands(),
		Suggest:   true,
		Metadata:  map[string]any{},
		// bash, zsh and fish ask the program itself; see the verb completion.
		EnableBashCompletion: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "settings by verb, from `FILE` (default: misroute.yaml, where there is one)"},
		},
		Before: func(c *cli.Context) error {
			file, err := findConfig(c, time.Now())
			c.App.Metadata[configKey] = loadedConfig{file, err}
			return nil
		},
		// An unknown word must not print the help and exit 0.
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("no verb %q; see misroute --help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error { return usageError(err) },
		// Exit codes are decided by report alone; cli's own handler would exit the process.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}

// commands lists the verbs in the order of a week's work.
func commands() []*cli.Command {
	list := []*cli.Command{
		EvalCommand(),
		SweepCommand(),
		TrainCommand(),
		LadderCommand(),
		ReportCommand(),
		CompareCommand(),
		TrendCommand(),
		ExplainCommand(),
		MergeCommand(),
		VerifyCommand(),
		InspectCommand(),
		TokensCommand(),
		ModelCommand(),
		BenchCommand(),
		CutCommand(),
		ConfigCommand(),
		CompletionCommand(),
		ManCommand(),
	}
	for _, c := range list {
		if len(c.Flags) > 0 {
			c.Before = applyConfig
		}
		c.OnUsageError = func(c *cli.Context, err error, _ bool) error {
			return usagef("%w; see misroute %s --help", err, c.Command.Name)
		}
	}
	return list
}
