package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/pipeline"
	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
	"misroute/tokenize/window"
)

const defaultCap = 256

// tokenVariable is the environment variable with the bearer token of a deployed router.
const tokenVariable = "MISROUTE_TOKEN"

// evalOptions is everything `misroute eval` was asked for.
type evalOptions struct {
	exports  []string
	model    string
	asRouted bool
	router   router.Options
	http     router.HTTPOptions
	setting  router.Setting
	capSet   bool // --cap was given, so it is not lowered to the model's positions
	mail     mail.Options
	text     text.Options

	subject    bool
	withText   bool
	whole      bool
	control    int
	caps       []int // sweep
	strategies []window.Strategy
	placebos   int
	seed       uint64

	out             string
	force           bool
	resume          bool
	workers         int
	memory          int64
	progress        string
	maxRejects      float64
	allowIncomplete bool
	quarantine      string
	shard           pipeline.Shard
	onlyRejects     string // a run whose rejected records alone are evaluated

	report reportOptions
}

// EvalCommand evaluates one router over one export.
func EvalCommand() *cli.Command {
	return &cli.Command{
		Name:      "eval",
		Usage:     "evaluate a router over an export: the weekly misroute report",
		ArgsUsage: "EXPORT...",
		Description: "Reads mbox, Maildir, .eml folders, CSV and JSONL (plain or compressed; - is standard input),\n" +
			"routes every message at the cap, reads those that were cut once more whole, and leaves a run folder:\n" +
			"results.parquet, readings.parquet, rejects.parquet, report.html, report.md, report.json.\n\n" +
			"Examples:\n" +
			"  misroute eval --model models/router inbox-2026-W47.mbox\n" +
			"  misroute eval --model models/router --labels labels.csv --cap 128 inbox.mbox.gz\n" +
			"  misroute eval --as-routed --routed-header X-Queue-Chosen inbox.mbox\n" +
			"  zcat inbox.mbox.gz | misroute eval --model models/router --out runs/today -\n\n" +
			"Exit codes: 0 done; 2 unusable input; 3 too many records rejected; 130 interrupted (go on with --resume).",
		Flags: append(append(routerFlags(), append(runFlags(), reportFlags()...)...), mailFlags()...),
		Action: func(c *cli.Context) error {
			o, err := bindEval(c)
			if err != nil {
				return err
			}
			return runEval(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

// routerFlags choose the router and how much of a message it reads.
func routerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Category: "Router:", Usage: "model folder `DIR` (config.json, model.safetensors, tokenizer.json), or the URL of a deployed router (http://host/predict)"},
		&cli.BoolFlag{Name: "as-routed", Category: "Router:", Usage: "judge the deployed router's own decisions instead of a model (see --routed-header)"},
		&cli.BoolFlag{Name: "int8", Category: "Router:", Usage: "8-bit weights: faster, and not the same logits; never chosen silently"},
		&cli.BoolFlag{Name: "literal-specials", Category: "Router:", Usage: `read "[SEP]" and the like in a message as text, not as special tokens`},
		&cli.StringFlag{Name: "tokenizer", Category: "Deployed router:", Usage: "its tokenizer.json `FILE`, so that messages can be cut here; else its own cut holds"},
		&cli.StringFlag{Name: "queues", Category: "Deployed router:", Usage: "its queues in the order of its outputs, `A,B,C`, if it answers without labels"},
		&cli.DurationFlag{Name: "http-timeout", Category: "Deployed router:", Value: 30 * time.Second, Usage: "longest wait for one answer"},
		&cli.IntFlag{Name: "http-retries", Category: "Deployed router:", Value: 4, Usage: "further attempts when it is busy or unreachable"},
		&cli.StringFlag{Name: "cap", Category: "Truncation:", Value: strconv.Itoa(defaultCap), Usage: "most tokens the router reads of a message, specials included; none: no cap"},
		&cli.StringFlag{Name: "strategy", Category: "Truncation:", Value: window.KeepHead.String(), Usage: "which tokens are kept over the cap: head, tail, head+tail, windows, smart"},
		&cli.IntFlag{Name: "head-tokens", Category: "Truncation:", Usage: "head+tail: tokens kept from the start (default: a quarter)"},
		&cli.IntFlag{Name: "overlap", Category: "Truncation:", Usage: "windows: tokens that neighbouring windows share"},
		&cli.StringFlag{Name: "aggregate", Category: "Truncation:", Value: window.AggregateMean.String(), Usage: "windows: how their logits become one: mean, max, first, length"},
	}
}

// runFlags say how the run goes and where it is left.
func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Category: "Run:", Usage: "run folder `DIR` (default: runs/EXPORT-MODEL-CAP-STRATEGY)"},
		&cli.BoolFlag{Name: "force", Category: "Run:", Usage: "replace another finished run in --out"},
		&cli.BoolFlag{Name: "resume", Category: "Run:", Usage: "go on with the interrupted run in --out"},
		&cli.IntFlag{Name: "workers", Category: "Run:", Usage: "messages at a time (default: one a core)"},
		&cli.StringFlag{Name: "memory", Category: "Run:", Value: "256MiB", Usage: "bytes of mail in flight"},
		progressFlag(),
		&cli.Float64Flag{Name: "max-reject-rate", Category: "Run:", Value: 0.01, Usage: "share of records that may be rejected before the exit code is 3"},
		&cli.BoolFlag{Name: "allow-incomplete", Category: "Run:", Usage: "a source that is cut off is no failure"},
		&cli.StringFlag{Name: "quarantine", Category: "Run:", Usage: "write the raw bytes of rejected records into `DIR`"},
		&cli.StringFlag{Name: "only-rejects", Category: "Run:", Usage: "evaluate only the records that `RUN` rejected, once whatever was wrong is mended"},
		&cli.BoolFlag{Name: "no-whole", Category: "Run:", Usage: "do not read cut messages whole: faster, and the report cannot say what the cut cost"},
		&cli.IntFlag{Name: "control", Category: "Run:", Value: 10, Usage: "reread one in `N` uncut messages as a control (0: none)"},
		&cli.Uint64Flag{Name: "seed", Category: "Run:", Value: 1, Usage: "seed of everything random"},
		&cli.StringFlag{Name: "shard", Category: "Run:", Usage: "evaluate part `I/N` of the export only; misroute merge joins the parts"},
		&cli.BoolFlag{Name: "with-text", Category: "Run:", Usage: "store subjects and texts in the run folder, and show them in the report"},
	}
}

func bindEval(c *cli.Context) (evalOptions, error) {
	o, err := bindEvalOf(c, exportsOf(c))
	if err != nil {
		return o, err
	}
	o.report, err = bindReport(c)
	return o, err
}

// bindEvalOf reads everything but the report's flags.
func bindEvalOf(c *cli.Context, exports []string) (evalOptions, error) {
	o := evalOptions{
		exports: exports, model: c.String("model"), asRouted: c.Bool("as-routed"),
		router: router.Options{Int8: c.Bool("int8"), LiteralSpecials: c.Bool("literal-specials")},
		capSet: c.IsSet("cap"), subject: !c.Bool("no-subject"), withText: c.Bool("with-text"),
		whole: !c.Bool("no-whole"), control: c.Int("control"), seed: c.Uint64("seed"),
		out: c.String("out"), force: c.Bool("force"), resume: c.Bool("resume"), workers: c.Int("workers"),
		progress: c.String("progress"), maxRejects: c.Float64("max-reject-rate"),
		allowIncomplete: c.Bool("allow-incomplete"), quarantine: c.String("quarantine"),
		onlyRejects: c.String("only-rejects"),
	}
	o.http = router.HTTPOptions{Tokenizer: c.String("tokenizer"), Timeout: c.Duration("http-timeout"), Retries: c.Int("http-retries"), Token: os.Getenv(tokenVariable)}
	if o.http.Retries == 0 {
		o.http.Retries = -1
	}
	if names := c.String("queues"); names != "" {
		o.http.Queues = strings.Split(names, ",")
	}
	if len(o.exports) == 0 {
		return o, usagef("%s: no export given; see misroute %s --help", c.Command.Name, c.Command.Name)
	}
	for _, e := range o.exports {
		if len(e) > 1 && strings.HasPrefix(e, "-") {
			return o, usagef("%s stands after an export: flags come first, then exports", e)
		}
	}
	switch {
	case o.asRouted && o.model != "":
		return o, usagef("--as-routed judges the deployed router; leave --model away")
	case !o.asRouted && o.model == "":
		return o, usagef("no router: give --model DIR (train one with misroute train), or --as-routed")
	case o.maxRejects < 0 || o.maxRejects > 1:
		return o, usagef("--max-reject-rate %v: want a share from 0 to 1", o.maxRejects)
	case o.control < 0:
		return o, usagef("--control %d: want 0 or more", o.control)
	}
	var err error
	if o.setting, err = bindSetting(c); err != nil {
		return o, err
	}
	if word := c.String("shard"); word != "" {
		if o.shard, err = pipeline.ParseShard(word); err != nil {
			return o, usagef("--shard %w", err)
		}
	}
	if o.memory, err = parseBytes(c.String("memory")); err != nil {
		return o, usagef("--memory: %w", err)
	}
	o.mail, o.text, err = mailOptions(c)
	return o, err
}

func bindSetting(c *cli.Context) (router.Setting, error) {
	s := router.Setting{HeadTokens: c.Int("head-tokens"), Overlap: c.Int("overlap")}
	var err error
	if s.MaxTokens, err = parseCap(c.String("cap")); err != nil {
		return s, usagef("--cap %w", err)
	}
	if s.Strategy, err = window.ParseStrategy(c.String("strategy")); err != nil {
		return s, usagef("--strategy: %w", err)
	}
	if s.Aggregate, err = window.ParseAggregation(c.String("aggregate")); err != nil {
		return s, usagef("--aggregate: %w", err)
	}
	return s, nil
}

// parseCap reads a number of tokens, or "none" for 0.
func parseCap(s string) (int, error) {
	if s == "none" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q: want a number of tokens, or none", s)
	}
	return n, nil
}

// parseBytes reads 1000, 64KiB, 256MiB, 2GiB (also KB, MB, GB as powers of ten).
func parseBytes(s string) (int64, error) {
	units := []struct {
		suffix string
		factor int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	for _, u := range units {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			if err != nil || !(n > 0) || n*float64(u.factor) > 1<<50 {
				break
			}
			return int64(n * float64(u.factor)), nil
		}
	}
	return 0, fmt.Errorf("%q: want a size like 256MiB", s)
}

// runEval evaluates, publishes the run folder, and prints the weekly report.
func runEval(ctx context.Context, o evalOptions, stdout, stderr io.Writer) error {
	folder, err := evaluate(ctx, &o, stderr)
	if err != nil {
		return err
	}
	if err := printWeekly(folder, o.report, stdout); err != nil {
		return err
	}
	return verdict(folder, &o)
}

// openRouter loads the model, or finds the deployed router, and settles the cap.
func openRouter(ctx context.Context, o *evalOptions, stderr io.Writer) (router.Router, error) {
	if o.asRouted {
		return nil, nil
	}
	r, err := findRouter(ctx, o)
	if err != nil {
		return nil, usageError(err)
	}
	f := r.Facts()
	switch {
	case o.capSet:
	case f.Family == "http" && o.http.Tokenizer == "":
		o.setting.MaxTokens = 0 // it cuts by itself, as it does in production
	case f.Positions > 0 && o.setting.MaxTokens > f.Positions:
		fmt.Fprintf(stderr, "misroute: the model reads %d tokens at most: --cap is %d\n", f.Positions, f.Positions)
		o.setting.MaxTokens = f.Positions
	}
	if o.setting.MaxTokens == 0 && o.setting.Strategy == window.KeepWindows {
		o.setting.WindowTokens = f.Positions
	}
	if err := r.Check(o.setting); err != nil {
		return nil, usageError(err)
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(stderr, "misroute: %s\n", w)
	}
	return r, nil
}

func findRouter(ctx context.Context, o *evalOptions) (router.Router, error) {
	if router.IsURL(o.model) {
		return router.OpenHTTP(ctx, o.model, o.http)
	}
	return router.Open(o.model, o.router)
}

// evaluate runs the pipeline into o.out and returns the finished run.
func evaluate(ctx context.Context, o *evalOptions, stderr io.Writer) (*result.Folder, error) {
	r, err := openRouter(ctx, o, stderr)
	if err != nil {
		return nil, err
	}
	src, err := mail.Open(ctx, o.exports, o.mail)
	if err != nil {
		return nil, usageError(err)
	}
	defer src.Close()
	source, err := o.narrow(src)
	if err != nil {
		return nil, err
	}
	if o.out == "" {
		o.out = defaultOut(o, r)
		if o.onlyRejects != "" {
			o.out += "-rejects"
		}
		if o.shard.N > 0 {
			o.out += fmt.Sprintf("-%d-of-%d", o.shard.I, o.shard.N)
		}
	}
	run := runFacts(o, r)
	key, err := runKey(o, run)
	if err != nil {
		return nil, err
	}
	if err := refuseOther(o.out, o.force, key); err != nil {
		return nil, err
	}
	run.Key = key["all"]
	partial, err := result.OpenPartial(o.out, key, o.resume)
	if err != nil {
		return nil, usageError(err)
	}
	show, err := newProgress(o.progress, stderr)
	if err != nil {
		return nil, err
	}
	p := o.pipeline(r)
	p.Events = showEvents(show)
	if o.quarantine != "" {
		p.Quarantine = quarantine(o.quarantine)
	}
	summary, err := pipeline.Run(ctx, source, &o.mail.Labels, partial, p)
	show.close()
	if err != nil && summary.Ledger.Read == 0 {
		return nil, usageError(err) // not one message came out: the input is of no use
	}
	if err != nil {
		return nil, fmt.Errorf("%w; what was finished is kept: go on with --resume --out %s", err, o.out)
	}
	if summary.Interrupted {
		return nil, fmt.Errorf("%w: %d messages are done and kept; go on with --resume --out %s", context.Canceled, summary.Ledger.Read, o.out)
	}
	if err := usable(o, &summary); err != nil {
		return nil, err
	}
	if l, ok := r.(*router.Local); ok {
		if err := l.Unchanged(); err != nil {
			return nil, fmt.Errorf("the model changed during the run: %w", err)
		}
	}
	run.Inputs, run.Sources, run.Ledger = summary.Inputs, summary.Sources, summary.Ledger
	summary.Measured.Host = processor()
	return publish(partial, o.out, o.report, run, summary.Measured)
}

// pipeline gives the pipeline's options.
func (o *evalOptions) pipeline(r router.Router) pipeline.Options {
	return pipeline.Options{
		Router: r, Setting: o.setting, Whole: o.whole, Others: others(o), Placebos: o.placebos, Seed: o.seed, Control: o.control,
		Text: o.text, Subject: o.subject, WithText: o.withText, Workers: o.workers, Memory: o.memory, Shard: o.shard,
	}
}

// narrow leaves of the source what --only-rejects asks for.
func (o *evalOptions) narrow(src pipeline.Source) (pipeline.Source, error) {
	if o.onlyRejects == "" {
		return src, nil
	}
	f, err := result.ReadFolder(o.onlyRejects)
	if err != nil {
		return nil, usageError(err)
	}
	if len(f.Rejects) == 0 {
		return nil, usagef("--only-rejects: %s rejected nothing", o.onlyRejects)
	}
	places := map[result.Place]bool{}
	for i := range f.Rejects {
		places[f.Rejects[i].Place()] = true
	}
	return pipeline.Only(src, places), nil
}

// usable refuses a run that says nothing: an export without a message, labels that fit nothing.
func usable(o *evalOptions, s *pipeline.Summary) error {
	if s.Ledger.Read == 0 {
		return usagef("%s: no message in it", strings.Join(o.exports, ", "))
	}
	if err := o.mail.Labels.Check(s.FromLabelsFile, s.Ledger.Scored, s.NotInLabelsFile...); err != nil {
		return usageError(err)
	}
	if s.Ledger.Scored == 0 {
		return usagef("%s: none of %d records could be evaluated; see misroute inspect --rejects", strings.Join(o.exports, ", "), s.Ledger.Read)
	}
	return nil
}

// publish writes the final files and the reports, then renames them into place.
func publish(partial *result.Partial, out string, report reportOptions, run result.Run, measured result.Measured) (*result.Folder, error) {
	var err error
	if run.RunID, err = runID(run); err != nil {
		return nil, err
	}
	dir, err := partial.Assemble(run, measured)
	if err != nil {
		return nil, err
	}
	folder, err := result.ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	if err := writeReports(dir, folder, report); err != nil {
		return nil, err
	}
	if err := partial.Publish(); err != nil {
		return nil, err
	}
	folder.Dir = out
	return folder, nil
}

// verdict turns what a finished run met into an exit code.
func verdict(f *result.Folder, o *evalOptions) error {
	l := f.Run.Ledger
	if rate := float64(l.Rejected) / float64(max(l.Read, 1)); rate > o.maxRejects {
		return rejectedError(fmt.Errorf("%d of %d records were rejected (%.1f %%, allowed %.1f %%); see misroute inspect --rejects %s",
			l.Rejected, l.Read, 100*rate, 100*o.maxRejects, o.out))
	}
	if !o.allowIncomplete {
		for _, s := range f.Run.Sources {
			if s.Incomplete {
				return rejectedError(fmt.Errorf("%s is cut off after %d bytes: %d messages before that are in the report (--allow-incomplete accepts it)",
					s.Source, s.IncompleteAt, s.Seen))
			}
		}
	}
	return nil
}

// others lists a sweep's settings.
func others(o *evalOptions) []router.Setting {
	var list []router.Setting
	for _, strategy := range o.strategies {
		for _, limit := range o.caps {
			s := o.setting
			s.MaxTokens, s.Strategy = limit, strategy
			list = append(list, s)
		}
	}
	return list
}

// defaultOut names the run after what it is, so that different runs do not meet in one folder.
func defaultOut(o *evalOptions, r router.Router) string {
	name := filepath.Base(o.exports[0])
	if name == "-" {
		name = "stdin"
	}
	for _, ext := range []string{".gz", ".zst", ".bz2", ".mbox", ".csv", ".jsonl", ".json", ".tar", ".zip", ".tgz"} {
		name = strings.TrimSuffix(name, ext)
	}
	if len(o.exports) > 1 {
		name += fmt.Sprintf("+%d", len(o.exports)-1)
	}
	model := "as-routed"
	if r != nil {
		limit := "none"
		if o.setting.MaxTokens > 0 {
			limit = strconv.Itoa(o.setting.MaxTokens)
		}
		model = strings.Map(fileSafe, r.Facts().Name) + "-" + limit + "-" + o.setting.Strategy.String()
		if o.router.Int8 {
			model += "-int8"
		}
	}
	return filepath.Join("runs", name+"-"+model)
}

// refuseOther keeps a finished run of another kind from being overwritten.
func refuseOther(out string, force bool, key map[string]string) error {
	old, err := result.ReadRun(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && (old.Key == key["all"] && old.Shard == key["shard"] || force) {
		return nil
	}
	if err != nil && force {
		return nil
	}
	if err != nil {
		return usageError(fmt.Errorf("--out: %w; use another folder, or --force", err))
	}
	return usagef("--out %s holds another finished run (%s, cap %d %s); use another folder, or --force", out, old.Model.Name, old.Cap, old.Strategy)
}

// quarantine writes the bytes of rejects into dir, named by source and record.
func quarantine(dir string) func(*result.Reject, []byte) error {
	return func(r *result.Reject, raw []byte) error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%06d.eml", strings.Map(fileSafe, r.Source), r.RecordNo)
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			return err
		}
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".json"), append(b, '\n'), 0o600)
	}
}

func fileSafe(r rune) rune {
	if r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
		return r
	}
	return '_'
}
