package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"misroute/pipeline"
	"misroute/pipeline/mail"
)

const (
	// A batch keeps every core busy to its end, and bounds the mail that is held.
	batchMessages = 256
	batchBytes    = 8 << 20
	// Outcomes travel some at a time: each piece describes its types anew.
	pieceOutcomes = 256
)

var (
	messages = beam.NewCounter("misroute", "messages")
	rejected = beam.NewCounter("misroute", "rejected")
)

// routeFn evaluates the messages of a reference and sends what became of them to their parts' collectors.
type routeFn struct {
	Job Job
	e   *evaluator
}

// Setup runs once for each instance of the DoFn, of which a process has many.
func (f *routeFn) Setup(ctx context.Context) (err error) {
	f.e, err = evaluatorOf(ctx, &f.Job, io.Discard)
	return err
}

// ProcessElement gives errors of the export and the storage only: what is wrong with a message is a
// reject, since an error ends the job, or has the whole bundle tried again.
func (f *routeFn) ProcessElement(ctx context.Context, ref Ref, emit func(int, Piece)) error {
	export := f.Job.Exports[ref.Export]
	path, err := fetch(ctx, export.Path)
	if err != nil {
		return err
	}
	src, err := mail.Open(ctx, []string{path}, f.e.Mail)
	if err != nil {
		return err
	}
	defer src.Close()
	r := routing{fn: f, ref: ref, emit: emit, parts: map[int]*pending{}}
	for part := ref.Split; part <= f.Job.Shards; part += ref.Splits {
		r.parts[part] = new(pending)
	}
	for {
		m, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		m.Source = export.Name
		if err := r.add(ctx, m); err != nil {
			return err
		}
	}
	source := src.Sources()[0]
	source.Name = export.Name
	return r.finish(ctx, source)
}

// routing is one reference on its way.
type routing struct {
	fn    *routeFn
	ref   Ref
	emit  func(int, Piece)
	parts map[int]*pending

	batch []*mail.Message
	in    []int // the part of each message of the batch
	bytes int
}

// pending are a part's outcomes that were not sent yet, and how many there were in all.
type pending struct {
	outcomes []pipeline.Outcome
	total    int64
}

func (r *routing) add(ctx context.Context, m *mail.Message) error {
	part := pipeline.PartOf(m, r.fn.Job.Shards)
	if !r.ref.has(part) {
		return nil
	}
	r.batch, r.in = append(r.batch, m), append(r.in, part)
	if r.bytes += len(m.Raw); len(r.batch) < batchMessages && r.bytes < batchBytes {
		return nil
	}
	return r.flush(ctx)
}

// batchStarts is called before every batch; tests have something go wrong there.
var batchStarts = func() {}

// flush evaluates the batch. Only this goroutine emits: emitters are not made for several.
func (r *routing) flush(ctx context.Context) error {
	batchStarts()
	outcomes, err := r.fn.e.evaluate(ctx, r.batch)
	if err != nil {
		return fmt.Errorf("%s: %w", r.fn.Job.Exports[r.ref.Export].Name, err)
	}
	messages.Inc(ctx, int64(len(outcomes)))
	for i, o := range outcomes {
		if o.Reject != nil {
			rejected.Inc(ctx, 1)
		}
		p := r.parts[r.in[i]]
		p.total++
		if p.outcomes = append(p.outcomes, o); len(p.outcomes) == pieceOutcomes {
			r.emit(r.in[i], Piece{Export: r.ref.Export, Outcomes: p.outcomes})
			p.outcomes = nil
		}
	}
	clear(r.batch) // let go of the mail
	r.batch, r.in, r.bytes = r.batch[:0], r.in[:0], 0
	return nil
}

// finish sends what is left, and to every part what was read of the export.
func (r *routing) finish(ctx context.Context, source mail.Source) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	for part, p := range r.parts {
		r.emit(part, Piece{
			Export: r.ref.Export, Outcomes: p.outcomes,
			Read: &Read{Facts: r.fn.e.facts, Source: source, Elsewhere: source.Seen - p.total},
		})
	}
	return nil
}
