package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline"
	"misroute/pipeline/object"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/reports"
)

// evalOptions is everything `misroute eval` was asked for.
type evalOptions struct {
	evaluation.Options

	out        string
	force      bool
	resume     bool
	workers    int
	memory     int64
	checkpoint int
	progress   string
	tolerance
	quarantine string

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
			"Exports, the model and the run folder may be s3://BUCKET/KEY: AWS_ENDPOINT_URL (default: AWS) and AWS_REGION say\n" +
			"where, the usual AWS environment and files say who. The README tells what is kept on this machine.\n\n" +
			"Exit codes: 0 done; 1 disk full, a store that is down, or the model changed during the run (go on with --resume);\n" +
			"2 unusable input; 3 too many records rejected, or a source cut off; 130 interrupted (go on with --resume). Ctrl-C once\n" +
			"finishes the messages at hand, twice stops at once; both, and a kill, leave a run that --resume continues to the same bytes.",
		Flags: slices.Concat(evaluation.RouterFlags(), runFlags(), reportFlags(), evaluation.MailFlags()),
		Action: func(c *cli.Context) error {
			o, err := bindEval(c)
			if err != nil {
				return err
			}
			return runEval(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

// runFlags say how the run goes, where it is left and what is in it.
func runFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Category: "Run:", Usage: "run folder `DIR`, also s3://BUCKET/KEY (default: runs/EXPORT-MODEL-CAP-STRATEGY)"},
		&cli.BoolFlag{Name: "force", Category: "Run:", Usage: "replace another finished run in --out"},
		&cli.BoolFlag{Name: "resume", Category: "Run:", Usage: "go on with the interrupted run in --out"},
		&cli.IntFlag{Name: "workers", Category: "Run:", Usage: "messages at a time", DefaultText: "one a core"},
		&cli.StringFlag{Name: "memory", Category: "Run:", Value: "1GiB", Usage: "memory to stay under, beside the model's; grows by some 200 bytes a message"},
		&cli.IntFlag{Name: "checkpoint", Category: "Run:", Value: 4096, Usage: "most messages that a killed run has to do again"},
		progressFlag(),
		&cli.StringFlag{Name: "quarantine", Category: "Run:", Usage: "write the raw bytes of rejected records into `DIR`"},
		&cli.StringFlag{Name: "only-rejects", Category: "Run:", Usage: "evaluate only the records that `RUN` rejected, once whatever was wrong is mended"},
		&cli.StringFlag{Name: "shard", Category: "Run:", Usage: "evaluate part `I/N` of the export only; misroute merge joins the parts"},
	}, append(verdictFlags(), evaluation.RowFlags()...)...)
}

// verdictFlags say what makes a finished run exit with code 3.
func verdictFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "max-reject-rate", Category: "Run:", Value: 0.01, Usage: "share of records that may be rejected before the exit code is 3"},
		&cli.BoolFlag{Name: "allow-incomplete", Category: "Run:", Usage: "a source that is cut off is no failure"},
	}
}

// tolerance is what verdictFlags say.
type tolerance struct {
	maxRejects      float64
	allowIncomplete bool
}

func bindTolerance(c *cli.Context) (tolerance, error) {
	t := tolerance{c.Float64("max-reject-rate"), c.Bool("allow-incomplete")}
	if !(t.maxRejects >= 0 && t.maxRejects <= 1) {
		return t, usagef("--max-reject-rate %v: want a share from 0 to 1", t.maxRejects)
	}
	return t, nil
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
		out: c.String("out"), force: c.Bool("force"), resume: c.Bool("resume"), workers: c.Int("workers"), checkpoint: c.Int("checkpoint"),
		progress: c.String("progress"), quarantine: c.String("quarantine"),
	}
	var err error
	if o.Options, err = evaluation.Bind(c, exports); err != nil {
		return o, usageError(err)
	}
	o.OnlyRejects = c.String("only-rejects")
	if o.tolerance, err = bindTolerance(c); err != nil {
		return o, err
	}
	if o.checkpoint < 1 {
		return o, usagef("--checkpoint %d: want at least 1", o.checkpoint)
	}
	if word := c.String("shard"); word != "" {
		if o.Shard, err = pipeline.ParseShard(word); err != nil {
			return o, usagef("--shard %w", err)
		}
	}
	if o.memory, err = parseBytes(c.String("memory")); err != nil {
		return o, usagef("--memory: %w", err)
	}
	return o, nil
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
	w, out, err := evaluate(ctx, &o, stderr)
	if err != nil {
		return err
	}
	if err := out.deliver(ctx, resumeBrings); err != nil {
		return err
	}
	if err := w.Terminal(stdout, o.report.terminal(stdout, o.out)); err != nil {
		return err
	}
	return o.verdict(&w.Run, o.out)
}

// resumeBrings is how a finished run gets to its place in a bucket after all.
const resumeBrings = "the same command with --resume brings it there"

// evaluate runs the pipeline and returns the report of the finished run, and what brings it to o.out.
func evaluate(ctx context.Context, o *evalOptions, stderr io.Writer) (*reports.Weekly, *runOut, error) {
	r, err := o.OpenRouter(ctx, stderr)
	if err != nil {
		return nil, nil, usageError(err)
	}
	src, err := openExports(ctx, &o.Exports, o.Mail)
	if err != nil {
		return nil, nil, usageError(err)
	}
	defer src.Close()
	source, err := o.narrow(ctx, src)
	if err != nil {
		return nil, nil, err
	}
	if o.out == "" {
		o.out = defaultOut(o, r)
		if o.OnlyRejects != "" {
			o.out += "-rejects"
		}
		if o.Shard.N > 0 {
			o.out += fmt.Sprintf("-%d-of-%d", o.Shard.I, o.Shard.N)
		}
	}
	run := o.Facts(r)
	key, err := o.Key(run)
	if err != nil {
		return nil, nil, usageError(err)
	}
	run.Key = key["all"]
	out, err := openRunOut(ctx, o.out)
	if err != nil {
		return nil, nil, usageError(err)
	}
	if err := refuseOther(ctx, o.out, o.force, key); err != nil {
		return nil, nil, err
	}
	if o.resume {
		done, err := out.finished(key)
		if err != nil {
			return nil, nil, err
		}
		if done {
			w, err := reports.ReadWeekly(out.dir, o.report.Options)
			return w, out, err
		}
	}
	partial, err := result.OpenPartial(out.dir, key, o.resume)
	if err != nil {
		return nil, nil, usageError(err)
	}
	defer partial.Close()
	if err := out.begin(ctx); err != nil {
		return nil, nil, usageError(err)
	}
	w, err := o.into(ctx, partial, r, source, run, stderr)
	return w, out, err
}

// into evaluates the source with the router and publishes the run in the folder of partial.
func (o *evalOptions) into(ctx context.Context, partial *result.Partial, r router.Router, source pipeline.Source, run result.Run, stderr io.Writer) (*reports.Weekly, error) {
	show, err := newProgress(o.progress, stderr)
	if err != nil {
		return nil, err
	}
	p := o.Pipeline(r)
	p.Workers, p.Memory, p.Checkpoint = o.workers, limitMemory(o.memory), o.checkpoint
	p.Events = showEvents(show)
	if o.quarantine != "" {
		p.Quarantine = quarantine(o.quarantine)
	}
	summary, err := pipeline.Run(ctx, source, &o.Mail.Labels, partial, p)
	show.close()
	if errors.Is(err, object.ErrChanged) {
		return nil, usageError(err) // there is nothing to go on with
	}
	if err != nil && summary.Ledger.Read == 0 && !fullDisk(err) {
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
			return nil, fmt.Errorf("the model changed during the run: %w; put the old file back and go on with --resume, or start over", err)
		}
	}
	summary.Warnings = append(summary.Warnings, learned(r, summary.Inputs)...)
	for _, warning := range summary.Warnings {
		fmt.Fprintf(stderr, "misroute: %s\n", warning)
	}
	run.Inputs, run.Sources, run.Ledger = summary.Inputs, summary.Sources, summary.Ledger
	run.Warnings = append(run.Warnings, summary.Warnings...)
	summary.Measured.Host = processor()
	w, err := publish(partial, o.report, run, summary.Measured)
	if err != nil {
		return nil, fmt.Errorf("%w; every message is done and kept: finish with --resume --out %s", err, o.out)
	}
	return w, nil
}

// learned warns of exports that the router was trained on.
func learned(r router.Router, inputs []result.InputFacts) (warnings []string) {
	if r == nil {
		return nil
	}
	for _, in := range inputs {
		if slices.Contains(r.Facts().TrainedOn, in.SHA256) {
			warnings = append(warnings, in.Name+" is mail that the router was trained on: it errs less there than on mail it has never seen")
		}
	}
	return warnings
}

// narrow leaves of the source what --only-rejects asks for.
func (o *evalOptions) narrow(ctx context.Context, src pipeline.Source) (pipeline.Source, error) {
	if o.OnlyRejects == "" {
		return src, nil
	}
	f, err := readRun(ctx, o.OnlyRejects)
	if err != nil {
		return nil, usageError(err)
	}
	if len(f.Rejects) == 0 {
		return nil, usagef("--only-rejects: %s rejected nothing", o.OnlyRejects)
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
		return usagef("%s: no message in it", strings.Join(o.Exports, ", "))
	}
	if err := o.Mail.Labels.Check(s.FromLabelsFile, s.Ledger.Scored, s.NotInLabelsFile...); err != nil {
		return usageError(err)
	}
	if s.Ledger.Scored == 0 {
		return usagef("%s: none of %d records could be evaluated; see misroute inspect --rejects", strings.Join(o.Exports, ", "), s.Ledger.Read)
	}
	return nil
}

// publish writes the final files and the reports, then renames them into place.
func publish(partial *result.Partial, report reportOptions, run result.Run, measured result.Measured) (*reports.Weekly, error) {
	run.RunID = run.ID()
	dir, err := partial.Assemble(run, measured)
	if err != nil {
		return nil, err
	}
	w, err := reports.ReadWeekly(dir, report.Options)
	if err != nil {
		return nil, err
	}
	if err := writeReports(dir, w, report); err != nil {
		return nil, err
	}
	if err := partial.Publish(); err != nil {
		return nil, err
	}
	return w, nil
}

// verdict turns what a finished run met into an exit code.
func (t tolerance) verdict(run *result.Run, out string) error {
	l := run.Ledger
	if rate := float64(l.Rejected) / float64(max(l.Read, 1)); rate > t.maxRejects {
		return rejectedError(fmt.Errorf("%d of %d records were rejected (%.1f %%, allowed %.1f %%); see misroute inspect --rejects %s",
			l.Rejected, l.Read, 100*rate, 100*t.maxRejects, out))
	}
	if !t.allowIncomplete {
		for _, s := range run.Sources {
			if s.Incomplete {
				return rejectedError(fmt.Errorf("%s is cut off after %d bytes: %d messages before that are in the report (--allow-incomplete accepts it)",
					s.Source, s.IncompleteAt, s.Seen))
			}
		}
	}
	return nil
}

// defaultOut names the run after what it is, so that different runs do not meet in one folder.
func defaultOut(o *evalOptions, r router.Router) string {
	name := filepath.Base(o.Exports[0])
	if name == "-" {
		name = "stdin"
	}
	for _, ext := range []string{".gz", ".zst", ".bz2", ".mbox", ".csv", ".jsonl", ".json", ".tar", ".zip", ".tgz"} {
		name = strings.TrimSuffix(name, ext)
	}
	if len(o.Exports) > 1 {
		name += fmt.Sprintf("+%d", len(o.Exports)-1)
	}
	model := "as-routed"
	if r != nil {
		limit := "none"
		if o.Setting.MaxTokens > 0 {
			limit = strconv.Itoa(o.Setting.MaxTokens)
		}
		model = strings.Map(fileSafe, r.Facts().Name) + "-" + limit + "-" + o.Setting.Strategy.String()
		if o.Router.Int8 {
			model += "-int8"
		}
	}
	return filepath.Join("runs", name+"-"+model)
}

// refuseOther keeps a finished run of another kind from being overwritten.
func refuseOther(ctx context.Context, out string, force bool, key map[string]string) error {
	old, err := runFacts(ctx, out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var store *object.Error
	if errors.As(err, &store) {
		return usageError(err)
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
