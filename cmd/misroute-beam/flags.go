package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/router"
)

// runners by the names that --runner takes. There is no default: Prism, which needs nothing, is a runner
// for tests, in memory and without retries.
var runners = []string{"dataflow", "flink", "spark", "universal", "prism"}

// evaluationFlags are those of misroute eval that the rows depend on.
func evaluationFlags() []cli.Flag {
	return slices.Concat(evaluation.RouterFlags(), evaluation.RowFlags(), evaluation.MailFlags())
}

// jobFlags say how the run goes and where it is left.
func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "runner", Category: "Run:", Usage: "`ENGINE` that does the work: " + strings.Join(runners, ", ") + " (universal: any job server of Beam's portable API; prism: in this process, to try it)"},
		&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Category: "Run:", Usage: "run folder `DIR` (on every worker), or s3://..., gs://..."},
		&cli.BoolFlag{Name: "force", Category: "Run:", Usage: "replace the finished run in --out"},
		&cli.IntFlag{Name: "shards", Category: "Run:", Value: 16, Usage: "parts that are evaluated side by side; a worker holds the rows of one (some 2 kB each) at once"},
		&cli.IntFlag{Name: "workers", Category: "Run:", Usage: "messages at a time in one worker process", DefaultText: "one a core"},
		&cli.StringFlag{Name: "kernel", Category: "Run:", Usage: "hold all workers to one `VARIANT` of the engine, where their processors differ: avx512, avx2, generic"},
		&cli.Float64Flag{Name: "max-reject-rate", Category: "Run:", Value: 0.01, Usage: "share of records that may be rejected before the exit code is 3"},
		&cli.BoolFlag{Name: "allow-incomplete", Category: "Run:", Usage: "a source that is cut off is no failure"},
		&cli.StringFlag{Name: "log", Category: "Run:", Value: "none", Usage: "what of Beam's own messages is shown: none, error, warn, info, debug"},
	}
}

// shown are the flags of Beam's runners that are listed in the help; the others are taken too.
var shown = map[string]string{
	"endpoint":           "`HOST:PORT` of the runner's job server",
	"environment_type":   "where workers run: DOCKER, EXTERNAL (a worker pool) or LOOPBACK (this process)",
	"environment_config": "of DOCKER the `IMAGE`, of EXTERNAL the HOST:PORT of the worker pool",
	"worker_binary":      "`FILE` that workers run (default: this program)",
	"job_name":           "`NAME` of the job (default: one is made)",
	"async":              "hand the job over and do not wait for it",
	"parallelism":        "Flink: `N` tasks at a time (default: as Flink is configured)",
	"project":            "Dataflow: the `PROJECT`",
	"region":             "Dataflow: the `REGION`",
	"staging_location":   "Dataflow: `gs://...` for the worker binary",
	"temp_location":      "Dataflow: `gs://...` for what is in between",
}

// workersOwn are flags with which a runner starts its workers; nobody submits a job with them.
var workersOwn = []string{"worker", "id", "logging_endpoint", "control_endpoint", "semi_persist_dir", "options"}

// beamFlags offers the flags that Beam's runners have defined for the standard library. One whose name
// an evaluation has already gets the prefix beam_.
func beamFlags() []cli.Flag {
	taken := map[string]bool{}
	for _, f := range slices.Concat(jobFlags(), evaluationFlags()) {
		for _, n := range f.Names() {
			taken[n] = true
		}
	}
	var list []cli.Flag
	flag.VisitAll(func(f *flag.Flag) {
		if slices.Contains(workersOwn, f.Name) || strings.HasPrefix(f.Name, "test.") {
			return
		}
		as := f.Name
		if taken[as] {
			as = "beam_" + as
		}
		usage, listed := shown[f.Name]
		value := &beamValue{f}
		if value.IsBoolFlag() {
			list = append(list, &cli.BoolFlag{
				Name: as, Category: beamCategory, Usage: usage, Value: f.DefValue == "true", DisableDefaultText: true, Hidden: !listed,
				Action: func(_ *cli.Context, v bool) error { return value.Set(strconv.FormatBool(v)) },
			})
			return
		}
		list = append(list, &cli.GenericFlag{Name: as, Category: beamCategory, Usage: usage, Value: value, Hidden: !listed})
	})
	return list
}

const beamCategory = "Beam runner:"

// beamValue sets a flag of the standard library's set, where Beam looks for it.
type beamValue struct{ f *flag.Flag }

func (v *beamValue) Set(s string) error { return flag.Set(v.f.Name, s) }

// String is empty: the help has no defaults to show, and Beam keeps the value.
func (v *beamValue) String() string { return "" }

// IsBoolFlag says whether the flag needs no value.
func (v *beamValue) IsBoolFlag() bool {
	b, ok := v.f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// jobOptions is everything misroute-beam was asked for.
type jobOptions struct {
	runner          string
	exports         []string // patterns too
	out             string   // as it was given
	job             Job
	force           bool
	maxRejects      float64
	allowIncomplete bool
	log             *slog.Logger
}

func bindJob(c *cli.Context) (jobOptions, error) {
	o := jobOptions{
		runner: c.String("runner"), exports: c.Args().Slice(), out: c.String("out"), force: c.Bool("force"), maxRejects: c.Float64("max-reject-rate"),
		allowIncomplete: c.Bool("allow-incomplete"),
		job: Job{
			Shards: c.Int("shards"), Workers: c.Int("workers"), Kernel: c.String("kernel"),
		},
	}
	switch {
	case o.runner == "":
		return o, usagef("no --runner: which of %s does the work?", strings.Join(runners, ", "))
	case !slices.Contains(runners, o.runner):
		return o, usagef("--runner %s: want one of %s", o.runner, strings.Join(runners, ", "))
	case c.String("out") == "":
		return o, usagef("no --out: name the run folder, on a path that every worker reaches")
	case o.job.Shards < 1 || o.job.Shards > 99999:
		return o, usagef("--shards %d: want 1 to 99999", o.job.Shards)
	case o.job.Workers < 0:
		return o, usagef("--workers %d: want 0 or more", o.job.Workers)
	case o.maxRejects < 0 || o.maxRejects > 1:
		return o, usagef("--max-reject-rate %v: want a share from 0 to 1", o.maxRejects)
	}
	var err error
	if o.job.Out, err = everywhere(strings.TrimSuffix(c.String("out"), "/")); err != nil {
		return o, err
	}
	if o.job.Args, err = argsOf(c); err != nil {
		return o, err
	}
	if slices.Contains(o.exports, "-") {
		return o, usagef("standard input cannot be split over workers: give files, or use misroute eval")
	}
	if o.log, err = newLog(c.String("log"), c.App.ErrWriter); err != nil {
		return o, err
	}
	return o, bindWorkers(o.runner)
}

// bindWorkers settles what the runner's workers run.
func bindWorkers(runner string) error {
	if runner != "dataflow" && runner != "prism" && *jobopts.Endpoint == "" {
		return usagef("--runner %s: no --endpoint: give the HOST:PORT of its job server", runner)
	}
	kind := strings.ToUpper(*jobopts.EnvironmentType)
	switch kind {
	case "", "DOCKER", "LOOPBACK":
	case "EXTERNAL":
		if *jobopts.EnvironmentConfig == "" {
			return usagef("--environment_type EXTERNAL: no --environment_config: give the HOST:PORT of the worker pool")
		}
	case "PROCESS":
		return usagef("--environment_type PROCESS: Beam's Go workers are given a quoted id that way and do not start; use EXTERNAL with a worker pool")
	default:
		return usagef("--environment_type %s: want DOCKER, EXTERNAL or LOOPBACK", *jobopts.EnvironmentType)
	}
	inProcess := kind == "LOOPBACK" || runner == "prism" && *jobopts.Endpoint == ""
	if inProcess || *jobopts.WorkerBinary != "" {
		return nil
	}
	// Without a worker binary Beam would call the Go compiler on whatever stands in the working folder.
	if runtime.GOOS != "linux" {
		return usagef("workers run Linux: build one with CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -o worker ./cmd/misroute-beam, and give --worker_binary worker")
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--worker_binary: %w", err)
	}
	return flag.Set("worker_binary", self)
}

// pathFlags name files and folders that the workers read.
var pathFlags = []string{"model", "tokenizer", "labels", "groups"}

// everywhere makes a path one that means the same to a worker, which stands in another folder.
func everywhere(p string) (string, error) {
	if remote(p) || router.IsURL(p) {
		return p, nil
	}
	return filepath.Abs(p)
}

// argsOf gives the evaluation's part of the command line, for the workers to read again.
func argsOf(c *cli.Context) (args []string, err error) {
	for _, f := range evaluationFlags() {
		n := f.Names()[0]
		if !c.IsSet(n) {
			continue
		}
		values := []string{fmt.Sprint(c.Value(n))}
		if _, many := f.(*cli.StringSliceFlag); many {
			values = c.StringSlice(n)
		}
		for _, v := range values {
			if slices.Contains(pathFlags, n) {
				if v, err = everywhere(v); err != nil {
					return nil, err
				}
			}
			args = append(args, "--"+n+"="+v)
		}
	}
	return args, nil
}
