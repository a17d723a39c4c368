package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"misroute/attention/kernel"
	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline"
	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// An evaluator is a job's evaluation as one worker process knows it: the model, loaded once however many
// DoFns the runner makes, and what its goroutines need.
type evaluator struct {
	evaluation.Options
	facts result.Run
	// free holds an evaluator for each message that may be on its way. It is the process's semaphore:
	// bundles run side by side, and share it.
	free chan *pipeline.Evaluator
}

// evaluators of this process, by what was asked for.
var evaluators = struct {
	sync.Mutex
	of map[string]func() (*evaluator, error)
}{of: map[string]func() (*evaluator, error){}}

// evaluatorOf gives the process's evaluator for a job. What a person should know about the router goes
// to notes, when it is loaded.
func evaluatorOf(ctx context.Context, job *Job, notes io.Writer) (*evaluator, error) {
	key := fmt.Sprint(job.Workers, " ", job.Kernel, " ", strings.Join(job.Args, "\x00"))
	evaluators.Lock()
	once, known := evaluators.of[key]
	if !known {
		once = sync.OnceValues(func() (*evaluator, error) { return loadEvaluator(ctx, job, notes) })
		evaluators.of[key] = once
	}
	evaluators.Unlock()
	e, err := once()
	if err != nil { // a bundle that is tried again must not meet a failure of before
		evaluators.Lock()
		delete(evaluators.of, key)
		evaluators.Unlock()
	}
	return e, err
}

func loadEvaluator(ctx context.Context, job *Job, notes io.Writer) (*evaluator, error) {
	o, err := question(ctx, job)
	if err != nil {
		return nil, err
	}
	if job.Kernel != "" {
		if _, err := kernel.Use(job.Kernel); err != nil {
			return nil, fmt.Errorf("--kernel: %w", err)
		}
	}
	e := &evaluator{Options: o}
	r, err := e.OpenRouter(ctx, notes)
	if err != nil {
		return nil, err
	}
	e.facts = e.Facts(r)
	key, err := e.Key(e.facts)
	if err != nil {
		return nil, err
	}
	e.facts.Key = key["all"]
	n := job.Workers
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	e.free = make(chan *pipeline.Evaluator, n)
	for range n {
		e.free <- pipeline.NewEvaluator(&e.Mail.Labels, e.Pipeline(r))
	}
	return e, nil
}

// question reads the job's flags as misroute eval reads them.
func question(ctx context.Context, job *Job) (o evaluation.Options, err error) {
	app := &cli.App{
		Name: name, Flags: evaluationFlags(), Writer: io.Discard, ErrWriter: io.Discard, HideHelp: true, HideVersion: true,
		Action: func(c *cli.Context) error {
			for _, n := range pathFlags {
				if c.String(n) == "" {
					continue
				}
				local, err := fetch(ctx, c.String(n))
				if err != nil {
					return fmt.Errorf("--%s: %w", n, err)
				}
				if err := c.Set(n, local); err != nil {
					return err
				}
			}
			exports := make([]string, len(job.Exports))
			for i, e := range job.Exports {
				exports[i] = e.Path
			}
			o, err = evaluation.Bind(c, exports)
			return err
		},
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return err },
		ExitErrHandler: func(*cli.Context, error) {},
	}
	err = app.RunContext(ctx, append([]string{name}, job.Args...))
	return o, err
}

// evaluate says what became of each message of a batch, a few at a time.
func (e *evaluator) evaluate(ctx context.Context, batch []*mail.Message) ([]pipeline.Outcome, error) {
	var (
		outcomes = make([]pipeline.Outcome, len(batch))
		next     atomic.Int64
		wg       sync.WaitGroup
		once     sync.Once
		failure  error
		panicked any
	)
	for range min(cap(e.free), len(batch)) {
		wg.Go(func() {
			ev := <-e.free
			defer func() {
				e.free <- ev
				if p := recover(); p != nil {
					once.Do(func() { panicked = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
				}
			}()
			for i := next.Add(1) - 1; i < int64(len(batch)); i = next.Add(1) - 1 {
				var err error
				if outcomes[i], err = ev.Evaluate(ctx, batch[i]); err != nil {
					once.Do(func() { failure = err })
					return
				}
			}
		})
	}
	wg.Wait()
	if panicked != nil {
		panic(panicked) // in the goroutine that Beam watches: it names the DoFn
	}
	return outcomes, failure
}
