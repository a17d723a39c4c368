// Command misroute-beam is misroute eval as an Apache Beam pipeline, for exports that one machine
// would read too slowly: the same flags ask for the same rows, and the run folder has the same bytes.
//
// The same program submits the job and, started by a runner, is its worker.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	// The harness calls registered functions without reflection.
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/exec/optimized"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/spark"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"
	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/object"
)

const name = "misroute-beam"

func main() {
	if startedByRunner(os.Args[1:]) {
		flag.Parse()
		beam.Init() // works until the runner ends it
	}
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// startedByRunner says whether the arguments are those that a runner gives its workers.
func startedByRunner(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "worker=true" })
}

// Exit codes, as those of misroute.
const (
	exitOK          = 0
	exitFatal       = 1
	exitUsage       = 2
	exitRejected    = 3
	exitInterrupted = 130
)

// exitError is an error that knows the exit code it stands for.
type exitError struct {
	code int
	error
}

func (e *exitError) Unwrap() error { return e.error }

// usageError marks err as the caller's: a flag that makes no sense, an input that cannot be used.
func usageError(err error) error { return &exitError{exitUsage, err} }

func usagef(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer removeFetched()
	err := newApp(stdout, stderr).RunContext(ctx, args)
	if err == nil {
		return exitOK
	}
	var e *exitError
	code := exitFatal
	switch {
	case ctx.Err() != nil:
		err = errors.New("interrupted: nothing was published; a job that was handed to a cluster goes on there until it is cancelled there")
		code = exitInterrupted
	case errors.As(err, &e):
		code = e.code
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, object.Redact(err.Error()))
	return code
}

func newApp(stdout, stderr io.Writer) *cli.App {
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, name, c.App.Version) }
	return &cli.App{
		Name:      name,
		Usage:     "misroute eval on a cluster: the same evaluation as an Apache Beam pipeline",
		ArgsUsage: "EXPORT...",
		Version:   evaluation.Version,
		Description: "Reads exports, routes every message at the cap, and leaves the run folder that misroute eval would have\n" +
			"left, byte for byte (times and report files apart); misroute report, compare and trend take it from there.\n" +
			"Exports, model, --labels, --groups, --tokenizer and --out are paths that every worker reaches: a shared\n" +
			"folder, s3://BUCKET/... or gs://BUCKET/.... The export is split into --shards parts by content, so that one huge mbox splits\n" +
			"as well; results.parquet comes last, and only when nothing is missing.\n\n" +
			"Examples:\n" +
			"  misroute-beam --runner flink --endpoint jobs:8099 --environment_type EXTERNAL --environment_config workers:50000 \\\n" +
			"    --model /models/router --out /runs/2026-W47 /mail/inbox-2026-W47.mbox.gz\n" +
			"  misroute-beam --runner dataflow --project P --region europe-west1 --staging_location gs://B/staging \\\n" +
			"    --model gs://B/models/router --out gs://B/runs/2026-W47 gs://B/mail/inbox-2026-W47.mbox.gz\n" +
			"  misroute-beam --runner prism --model models/router --out runs/2026-W47 inbox.mbox   # to try it, in this process\n\n" +
			"Every other flag of Beam's Go runners (such as --max_num_workers, --worker_machine_type) is taken as well;\n" +
			"Dataflow's --labels is --beam_labels here.\n\n" +
			"Exit codes: 0 done; 1 the job failed; 2 unusable input; 3 too many records rejected; 130 interrupted.",
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Suggest:         true,
		Flags:           slices.Concat(jobFlags(), evaluationFlags(), beamFlags()),
		Action: func(c *cli.Context) error {
			o, err := bindJob(c)
			if err != nil {
				return err
			}
			return submit(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return usagef("%w; see %s --help", err, name)
		},
		// Exit codes are decided by run alone; cli's own handler would exit the process.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}
