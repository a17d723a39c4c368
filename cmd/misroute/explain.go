package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
	"misroute/reports"
	"misroute/tokenize/window"
)

// ExplainCommand shows why one message went where it went.
func ExplainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "show why one message went where it went: the cut, the sentence that decides, attention",
		ArgsUsage: "[RUN] [EXPORT...] MESSAGE-ID",
		Description: "Reads one message again and shows what of it the router read, the scores at the cap and whole, from which\n" +
			"cap on the prediction is right, what every sentence is worth, and what the router looked at.\n\n" +
			"With a RUN, the run's cap, strategy and quotes hold, and --model must be the model of the run; the export is\n" +
			"needed unless the run was made with --with-text. MESSAGE-ID is an id with or without its brackets, the\n" +
			"beginning of one, or #123 for a record number. The text is shown on the terminal; pages and files have it\n" +
			"under --with-text only.\n\n" +
			"Examples:\n" +
			"  misroute explain --model models/router runs/2026-W47 MESSAGE-ID inbox-2026-W47.mbox\n" +
			"  misroute explain --model models/router --cap 128 inbox-2026-W47.mbox '#17'\n" +
			"  misroute explain --model models/router --layer 2 --head 3 --out out --with-text inbox.mbox MESSAGE-ID\n\n" +
			"Exit codes: 0 done; 2 no such message, or unusable input.",
		Flags: append(append(evaluation.RouterFlags(), evaluation.MailFlags()...),
			&cli.IntFlag{Name: "layer", Category: "Looking inside:", Usage: "attention of layer `N`, from 1", DefaultText: "the last"},
			&cli.IntFlag{Name: "head", Category: "Looking inside:", Usage: "attention of head `N`, from 1", DefaultText: "the mean over heads, and the most focused head"},
			&cli.IntFlag{Name: "window", Category: "Looking inside:", Value: 1, Usage: "look into window `N` of the reading, where it has several"},
			&cli.StringFlag{Name: "form", Value: "terminal", Usage: "`FORM` on standard output: terminal, html, markdown, json"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "also write explain.html, explain.md and explain.json into `DIR`"},
			&cli.BoolFlag{Name: "with-text", Usage: "write the text into pages and files too"},
			&cli.StringFlag{Name: "color", Value: "auto", Usage: "colour on the terminal: auto, always, never (NO_COLOR is respected)"},
		),
		Action: func(c *cli.Context) error {
			o, err := bindExplain(c)
			if err != nil {
				return err
			}
			return runExplain(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

// explainOptions is everything `misroute explain` was asked for.
type explainOptions struct {
	eval                evaluation.Options
	run                 *result.Folder // nil: none
	id                  string
	exports             []string
	layer, head, window int
	form, out           string
	report              reportOptions
}

func bindExplain(c *cli.Context) (explainOptions, error) {
	o := explainOptions{
		layer: c.Int("layer"), head: c.Int("head"), window: c.Int("window"), form: c.String("form"), out: c.String("out"),
		report: reportOptions{color: c.String("color")},
	}
	o.report.WithText = c.Bool("with-text")
	if checkForm(o.form) != nil {
		return o, usagef("--form %q: want terminal, html, markdown or json", o.form)
	}
	switch o.report.color {
	case "auto", "always", "never":
	default:
		return o, usagef("--color %q: want auto, always or never", o.report.color)
	}
	switch {
	case o.layer < 0 || o.head < 0:
		return o, usagef("--layer and --head count from 1")
	case o.window < 1:
		return o, usagef("--window counts from 1")
	case c.Bool("as-routed"):
		return o, usagef("--as-routed has no model to look into: give --model")
	}
	if err := o.arguments(c); err != nil {
		return o, err
	}
	if err := o.reading(c); err != nil {
		return o, err
	}
	if o.run != nil {
		return o, o.useRun(c)
	}
	return o, nil
}

// reading says which router reads the message, and how.
func (o *explainOptions) reading(c *cli.Context) error {
	var err error
	if o.eval, err = evaluation.BindReading(c); err != nil {
		return usageError(err)
	}
	if o.eval.Model == "" {
		return usagef("explain reads the message again: give --model DIR%s", o.modelOfRun())
	}
	return nil
}

// modelOfRun names the model that a run was made with.
func (o *explainOptions) modelOfRun() string {
	if o.run == nil || o.run.Run.Model.SHA256 == "" {
		return ""
	}
	return fmt.Sprintf(" (the run was made with %s, sha256 %.12s)", o.run.Run.Model.Name, o.run.Run.Model.SHA256)
}

// arguments tells run, message and exports apart: a run folder comes first, and the message stands
// after it or, without a run, last.
func (o *explainOptions) arguments(c *cli.Context) error {
	args := c.Args().Slice()
	for i, a := range args {
		if len(a) > 1 && strings.HasPrefix(a, "-") && i > 0 {
			return usagef("%s stands after an argument: flags come first", a)
		}
	}
	if len(args) > 1 && isRunAt(c.Context, args[0]) {
		f, err := readRun(c.Context, args[0])
		if err != nil {
			return usageError(err)
		}
		o.run, args = f, args[1:]
		if o.id, args = args[0], args[1:]; len(args) > 0 && looksLikeFile(o.id) && !looksLikeFile(args[len(args)-1]) {
			o.id, args = args[len(args)-1], append([]string{o.id}, args[:len(args)-1]...)
		}
	} else {
		if len(args) == 0 {
			return usagef("explain: no message given; see misroute explain --help")
		}
		o.id, args = args[len(args)-1], args[:len(args)-1]
	}
	if o.exports = args; len(args) == 0 {
		o.exports = configuredExports(c)
	}
	if o.id == "" {
		return usagef("explain: the message id is empty; see misroute explain --help")
	}
	if o.run == nil && len(o.exports) == 0 {
		return usagef("explain wants an export (or a run) and a message id; see misroute explain --help")
	}
	return nil
}

// useRun takes the run's facts for the setting, and refuses flags that contradict them.
func (o *explainOptions) useRun(c *cli.Context) error {
	run := &o.run.Run
	if run.Model.Family == "as-routed" {
		return usagef("%s judged the deployed router's decisions, without a model: explain an export with --model instead", o.run.Dir)
	}
	strategy, err := window.ParseStrategy(run.Strategy)
	if err != nil {
		return usagef("%s: %w", o.run.Dir, err)
	}
	asked := o.eval.Setting
	o.eval.Setting = router.Setting{MaxTokens: run.Cap, Strategy: strategy, HeadTokens: run.HeadTokens, Overlap: run.Overlap}
	if run.Aggregate != "" {
		if o.eval.Setting.Aggregate, err = window.ParseAggregation(run.Aggregate); err != nil {
			return usagef("%s: %w", o.run.Dir, err)
		}
	}
	for _, x := range []struct {
		flag    string
		differs bool
		was     string
	}{
		{"cap", asked.MaxTokens != run.Cap, fmt.Sprint(run.Cap)},
		{"strategy", asked.Strategy != strategy, run.Strategy},
		{"quotes", o.eval.Text.Quotes != run.Quotes, run.Quotes},
	} {
		if c.IsSet(x.flag) && x.differs {
			return usagef("--%s %s: the run was made with %s; explain an export to try other settings", x.flag, c.String(x.flag), x.was)
		}
	}
	o.eval.CapSet = true
	o.eval.Text.Quotes = run.Quotes
	if run.Quotes == "" {
		o.eval.Text.Quotes = text.QuotesStrip
	}
	o.eval.Subject, o.eval.Text.NoSubject = run.Subject, !run.Subject
	o.eval.Router.Int8 = run.Precision == "int8"
	return nil
}

// configuredExports are those of the configuration file.
func configuredExports(c *cli.Context) []string {
	if config, _ := configOf(c); config != nil {
		if v, _, ok := config.lookup(c.Command.Name, configExports); ok {
			return v.values
		}
	}
	return nil
}

func runExplain(ctx context.Context, o explainOptions, stdout, stderr io.Writer) error {
	r, err := o.eval.OpenRouter(ctx, stderr)
	if err != nil {
		return usageError(err)
	}
	if o.run != nil && r.Facts().SHA256 != o.run.Run.Model.SHA256 {
		return usagef("%s was made with another model (%s, sha256 %.12s; --model has %.12s): give the run's own, or explain the export alone",
			o.run.Dir, o.run.Run.Model.Name, o.run.Run.Model.SHA256, r.Facts().SHA256)
	}
	found, err := o.find(ctx)
	if err != nil {
		return err
	}
	examined, err := o.examine(ctx, r, found)
	if err != nil {
		return err
	}
	x, err := reports.NewExplain(examined, o.report.Options)
	if err != nil {
		return usageError(err)
	}
	return o.report.draw(ctx, x, o.form, o.out, "explain", stdout)
}
