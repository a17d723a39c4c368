package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// submit checks what can be checked here, hands the job to the runner, and says what came of it.
func submit(ctx context.Context, o jobOptions, stdout, stderr io.Writer) error {
	var err error
	if o.job.Exports, err = findExports(ctx, o.exports); err != nil {
		return err
	}
	if err := o.prepare(ctx, stderr); err != nil {
		return err
	}
	beam.Init() // sets a log of its own
	slog.SetDefault(o.log)
	p, s := beam.NewPipelineWithRoot()
	build(s, o.job)
	start := time.Now()
	_, err = beam.Run(ctx, o.runner, p)
	if err != nil {
		return fmt.Errorf("the job failed, and %s has no run: %w", o.out, plain(err))
	}
	if *jobopts.Async { // there are no metrics to ask for either: Beam's result of such a job is empty
		fmt.Fprintf(stdout, "submitted: the run is finished when %s/%s is there; %s may go then\n", o.out, result.ResultsFile, partsDir(o.out))
		return nil
	}
	return o.finish(ctx, time.Since(start), stdout)
}

// findExports expands patterns, and says which file is missing before any worker finds out.
func findExports(ctx context.Context, paths []string) ([]Export, error) {
	var found []string
	for _, p := range paths {
		if !strings.ContainsAny(p, "*?[") && !remote(p) {
			found = append(found, p)
			continue
		}
		fs, err := filesystem.New(ctx, p)
		if err != nil {
			return nil, usageError(err)
		}
		files, err := fs.List(ctx, p)
		fs.Close()
		if err != nil {
			return nil, usageError(fmt.Errorf("%s: %w", p, err))
		}
		if len(files) == 0 {
			return nil, usagef("%s: no such file", p)
		}
		found = append(found, files...)
	}
	exports := make([]Export, len(found))
	for i, n := range mail.SourceNames(found) {
		exports[i] = Export{found[i], n}
	}
	return exports, nil
}

// prepare refuses what no worker could do, and a run folder that is taken.
func (o *jobOptions) prepare(ctx context.Context, stderr io.Writer) error {
	if _, err := evaluatorOf(ctx, &o.job, stderr); err != nil {
		return usageError(err)
	}
	var local []string
	for i, e := range o.job.Exports {
		if remote(e.Path) {
			continue
		}
		local = append(local, e.Path)
		var err error
		if o.job.Exports[i].Path, err = everywhere(e.Path); err != nil {
			return err
		}
	}
	if len(local) > 0 {
		src, err := mail.Open(ctx, local, mail.Options{})
		if err != nil {
			return usageError(err)
		}
		src.Close()
	}
	if err := reachable(*jobopts.Endpoint); err != nil {
		return err
	}
	if exists(ctx, o.job.Out+"/"+result.ResultsFile) {
		if !o.force {
			return usagef("--out %s holds a finished run; use another folder, or --force", o.out)
		}
		if err := removeRun(ctx, o.job.Out); err != nil {
			return err
		}
	}
	return removeParts(ctx, o.job.Out)
}

// reachable says whether anybody answers at an endpoint: Beam would try for two minutes.
func reachable(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	c, err := net.DialTimeout("tcp", endpoint, 10*time.Second)
	if err != nil {
		return usagef("--endpoint %s: no job server answers there: %w", endpoint, err)
	}
	return c.Close()
}

// finish says what the finished run counted, and what it means for the exit code.
func (o *jobOptions) finish(ctx context.Context, took time.Duration, stdout io.Writer) error {
	marker := o.job.Out + "/" + result.ResultsFile
	if !exists(ctx, marker) { // Beam's runners report a job that was cancelled as done
		return fmt.Errorf("the job ended without a run: %s is not there (was it cancelled?)", marker)
	}
	local, err := fetchAnew(ctx, marker)
	if err != nil {
		return err
	}
	run, err := result.ReadRun(filepath.Dir(local))
	if err != nil {
		return err
	}
	if err := removeParts(ctx, o.job.Out); err != nil {
		return err
	}
	l := run.Ledger
	fmt.Fprintf(stdout, "%d records: %d scored, %d duplicate, %d filtered, %d rejected, in %s\n", l.Read, l.Scored, l.Duplicate, l.Filtered, l.Rejected, took.Round(time.Second/10))
	fmt.Fprintf(stdout, "run %s in %s; misroute report %s makes its report\n", run.RunID, o.out, o.out)
	if rate := float64(l.Rejected) / float64(max(l.Read, 1)); rate > o.maxRejects {
		return &exitError{exitRejected, fmt.Errorf("%d of %d records were rejected (%.1f %%, allowed %.1f %%); see misroute inspect --rejects %s",
			l.Rejected, l.Read, 100*rate, 100*o.maxRejects, o.out)}
	}
	for _, s := range run.Sources {
		if s.Incomplete && !o.allowIncomplete {
			return &exitError{exitRejected, fmt.Errorf("%s is cut off after %d bytes: %d messages before that are in the run (--allow-incomplete accepts it)",
				s.Source, s.IncompleteAt, s.Seen)}
		}
	}
	return nil
}

// plain finds the cause in what Beam says, which nests errors over many lines and may end in a stack.
func plain(err error) error {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "panic: "); ok {
		what, _, _ := strings.Cut(after, "\n")
		return fmt.Errorf("a worker panicked, which is a bug: %s (--log error shows where)", what)
	}
	for _, before := range []string{"caused by:", "] failed:"} {
		if i := strings.LastIndex(text, before); i >= 0 {
			text = text[i+len(before):]
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestError {
		text = strings.ToValidUTF8(text[:longestError], "") + " ... (--log error shows all of it)"
	}
	return errors.New(text)
}

// longestError is what a person reads of an error.
const longestError = 500
