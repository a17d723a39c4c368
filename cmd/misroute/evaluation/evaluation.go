// Package evaluation is what an evaluation was asked for: the flags that name the exports and the
// router and say how messages are read, and what follows from them, the facts and the key of the run.
// Every program that evaluates has its flags from here, so that the same words ask for the same rows.
// Errors are the caller's: a flag that makes no sense, an input that cannot be used.
package evaluation

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/pipeline"
	"misroute/pipeline/mail"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
	"misroute/tokenize/window"
)

// Version is the tool's version, recorded in every run.
const Version = "0.1.0"

// DefaultCap is the cap where none is asked for.
const DefaultCap = 256

// tokenVariable is the environment variable with the bearer token of a deployed router.
const tokenVariable = "MISROUTE_TOKEN"

// Options are what the rows of a run depend on, beside the content of the exports. How the run goes
// (goroutines, memory, where the rows are left) is no part of it.
type Options struct {
	Exports  []string
	Model    string // a folder, or the URL of a deployed router
	AsRouted bool
	Router   router.Options
	HTTP     router.HTTPOptions
	Setting  router.Setting
	CapSet   bool // --cap was given, so it is not lowered to the model's positions
	Mail     mail.Options
	Text     text.Options

	Subject    bool
	WithText   bool
	Whole      bool
	Control    int
	Caps       []int // of a sweep
	Strategies []window.Strategy
	Placebos   int
	Seed       uint64

	Shard       pipeline.Shard
	OnlyRejects string // a run whose rejected records alone are evaluated
}

// Bind reads the flags of [RouterFlags], [RowFlags] and [MailFlags].
func Bind(c *cli.Context, exports []string) (Options, error) {
	if len(exports) == 0 {
		return Options{}, fmt.Errorf("%s: no export given; see %s --help", c.Command.Name, c.Command.HelpName)
	}
	for _, e := range exports {
		if len(e) > 1 && strings.HasPrefix(e, "-") {
			return Options{}, fmt.Errorf("%s stands after an export: flags come first, then exports", e)
		}
	}
	switch {
	case c.Bool("as-routed") && c.String("model") != "":
		return Options{}, fmt.Errorf("--as-routed judges the deployed router; leave --model away")
	case !c.Bool("as-routed") && c.String("model") == "":
		return Options{}, fmt.Errorf("no router: give --model DIR (train one with misroute train), or --as-routed")
	case c.Int("control") < 0:
		return Options{}, fmt.Errorf("--control %d: want 0 or more", c.Int("control"))
	}
	o, err := BindReading(c)
	if err != nil {
		return o, err
	}
	o.Exports, o.AsRouted, o.WithText = exports, c.Bool("as-routed"), c.Bool("with-text")
	o.Whole, o.Control, o.Seed = !c.Bool("no-whole"), c.Int("control"), c.Uint64("seed")
	return o, nil
}

// BindReading reads the flags of [RouterFlags] and [MailFlags]: which router reads a message, and how.
func BindReading(c *cli.Context) (Options, error) {
	o := Options{
		Model: c.String("model"), CapSet: c.IsSet("cap"), Subject: !c.Bool("no-subject"),
		Router: router.Options{Int8: c.Bool("int8"), LiteralSpecials: c.Bool("literal-specials")},
		HTTP:   router.HTTPOptions{Tokenizer: c.String("tokenizer"), Timeout: c.Duration("http-timeout"), Retries: c.Int("http-retries"), Token: os.Getenv(tokenVariable)},
	}
	if o.HTTP.Retries == 0 {
		o.HTTP.Retries = -1
	}
	if names := c.String("queues"); names != "" {
		o.HTTP.Queues = strings.Split(names, ",")
	}
	var err error
	if o.Setting, err = bindSetting(c); err != nil {
		return o, err
	}
	o.Mail, o.Text, err = MailOptions(c)
	return o, err
}

func bindSetting(c *cli.Context) (router.Setting, error) {
	s := router.Setting{HeadTokens: c.Int("head-tokens"), Overlap: c.Int("overlap")}
	var err error
	if s.MaxTokens, err = ParseCap(c.String("cap")); err != nil {
		return s, fmt.Errorf("--cap %w", err)
	}
	if s.Strategy, err = window.ParseStrategy(c.String("strategy")); err != nil {
		return s, fmt.Errorf("--strategy: %w", err)
	}
	if s.Aggregate, err = window.ParseAggregation(c.String("aggregate")); err != nil {
		return s, fmt.Errorf("--aggregate: %w", err)
	}
	return s, nil
}

// ParseCap reads a number of tokens, or "none" for 0.
func ParseCap(s string) (int, error) {
	if s == "none" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q: want a number of tokens, or none", s)
	}
	return n, nil
}

// OpenRouter loads the model, or finds the deployed router, and settles the cap. What a person should
// know about either goes to notes, a line each. The router of an evaluation as routed is nil.
func (o *Options) OpenRouter(ctx context.Context, notes io.Writer) (router.Router, error) {
	if o.AsRouted {
		return nil, nil
	}
	r, err := o.findRouter(ctx)
	if err != nil {
		return nil, err
	}
	f := r.Facts()
	switch {
	case o.CapSet:
	case f.Family == "http" && o.HTTP.Tokenizer == "":
		o.Setting.MaxTokens = 0 // it cuts by itself, as it does in production
	case f.Positions > 0 && o.Setting.MaxTokens > f.Positions:
		fmt.Fprintf(notes, "misroute: the model reads %d tokens at most: --cap is %d\n", f.Positions, f.Positions)
		o.Setting.MaxTokens = f.Positions
	}
	if o.Setting.MaxTokens == 0 && o.Setting.Strategy == window.KeepWindows {
		o.Setting.WindowTokens = f.Positions
	}
	if err := r.Check(o.Setting); err != nil {
		return nil, err
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(notes, "misroute: %s\n", w)
	}
	return r, nil
}

func (o *Options) findRouter(ctx context.Context) (router.Router, error) {
	if router.IsURL(o.Model) {
		return router.OpenHTTP(ctx, o.Model, o.HTTP)
	}
	return router.Open(o.Model, o.Router)
}

// Pipeline gives the pipeline's options for what was asked; how the run goes is left to the caller.
func (o *Options) Pipeline(r router.Router) pipeline.Options {
	return pipeline.Options{
		Router: r, Setting: o.Setting, Whole: o.Whole, Others: o.others(), Placebos: o.Placebos, Seed: o.Seed, Control: o.Control,
		Text: o.Text, Subject: o.Subject, WithText: o.WithText, Shard: o.Shard,
	}
}

// others lists a sweep's settings.
func (o *Options) others() []router.Setting {
	var list []router.Setting
	for _, strategy := range o.Strategies {
		for _, limit := range o.Caps {
			s := o.Setting
			s.MaxTokens, s.Strategy = limit, strategy
			list = append(list, s)
		}
	}
	return list
}
