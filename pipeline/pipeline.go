// Package pipeline runs the stages of an evaluation with bounded goroutines: a reader that splits,
// workers that parse and tokenize, workers that route, and one writer that keeps the order of the
// messages. It turns failures of single messages into rejects, emits events, and never prints.
//
//	reader -> parse x N -> route x N -> writer (in reading order) -> result.Partial
//
// One errgroup owns every goroutine. The number of messages and the bytes in flight are both
// bounded, so that memory does not depend on the size of the export. A message reserves its place
// with the writer before a worker takes it: the rows come out in reading order and with the same
// bytes, whatever the number of workers.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
)

// Source gives the messages of a run, in order. *mail.Reader is one.
type Source interface {
	// Next returns io.EOF at the end. A record that cannot be read is a message with Reject set.
	Next() (*mail.Message, error)
	Sources() []mail.Source
	// BytesRead and TotalBytes measure progress; a total of 0 is unknown.
	BytesRead() int64
	TotalBytes() int64
}

// Identifier finds out who a message is and where it should go; *mail.Labels is one. Safe for
// goroutines.
type Identifier interface {
	Identify(*mail.Message) mail.Identity
}

// Options of a run. The zero value of a field means its default.
type Options struct {
	// Router is nil for an evaluation as routed: the prediction is the deployed router's queue.
	Router  router.Router
	Setting router.Setting
	// Whole reads every cut message once more whole: the reference that tells what the cut cost.
	Whole bool
	// Others are a sweep's further settings; each is read only for messages that it would cut.
	Others []router.Setting
	// Placebos is how many random cuts of the same size each cut message is read with.
	Placebos int
	Seed     uint64
	// Shard evaluates one part of the export alone; see [Merge].
	Shard Shard
	// Control rereads one in so many uncut messages whole, as the negative control; 0: none.
	Control int

	Text     text.Options
	Subject  bool // prepend the subject
	WithText bool // store subject and text in the rows

	Workers int   // parse workers and route workers each; 0: GOMAXPROCS
	Memory  int64 // bytes of messages in flight; 0: 256 MiB
	// Checkpoint is how many messages are made durable together, the most a kill can cost; 0: 4096. It
	// leaves no trace in the result.
	Checkpoint int

	// Events, if set, is called from one goroutine a few times a second, and once at the end.
	Events func(Event)
	// Quarantine, if set, is called with every rejected message's raw bytes, in order.
	Quarantine func(*result.Reject, []byte) error
}

const (
	// A message in flight holds its bytes, its text, and its tokens: some five times its size.
	// 256 MiB of messages thus stay well under 2 GB, and hold thousands of ordinary ones.
	defaultMemory = 256 << 20
	// What a message costs beside its bytes: rows, channels, the smallest buffers.
	messageOverhead = 4 << 10
	// Enough messages to keep every worker busy while the writer waits for a long one.
	queuePerWorker = 64
	// A segment is the work a kill can cost. Thousands of rows make it worth a file, and a few
	// seconds bound the loss where a router is slow.
	segmentMessages = 4096
	segmentAge      = 2 * time.Second
	// On a slow disk a segment takes seconds to become durable: then so many times that long passes
	// before the next one, or the run would do nothing else.
	segmentPause = 20
	// Stored texts may be of any size: a segment has no more of them than fits into memory twice.
	segmentTexts = 32 << 20
	// What a person can follow.
	eventInterval = 200 * time.Millisecond
)

func (o *Options) defaults() {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	if o.Checkpoint <= 0 {
		o.Checkpoint = segmentMessages
	}
	if o.Events == nil {
		o.Events = func(Event) {}
	}
}

// Event is the state of a run for a person to watch.
type Event struct {
	Messages, Rejected    int64
	Wrong, Labelled       int64
	Tokens                int64 // read by the model so far
	BytesRead, TotalBytes int64
	Elapsed               time.Duration
	Done                  bool
}

// Summary is what a run counted.
type Summary struct {
	Ledger   result.Ledger
	Sources  []result.SourceLedger
	Inputs   []result.InputFacts
	Measured result.Measured
	// Warnings about the sources, for a person: what changed while it was read.
	Warnings []string
	// Interrupted: the context was cancelled; everything that was begun was finished and is kept.
	Interrupted bool
	// FromLabelsFile counts the labels that the labels file gave; NotInLabelsFile has a few message ids
	// that are not in it.
	FromLabelsFile  int64
	NotInLabelsFile []string
}

// job is one message on its way. Whoever holds it owns its fields; done hands it to the writer.
type job struct {
	msg   *mail.Message
	bytes int64 // held of the memory bound
	done  chan struct{}

	id   mail.Identity
	text text.Text
	enc  *router.Encoded

	row      result.Row
	readings []result.Reading
	reject   *result.Reject
	timing   result.Timing
}

// scorable says whether the message is text by now, for the router to read.
func (j *job) scorable() bool { return j.reject == nil && j.row.Scored() }

// release gives back what the stages shared with other messages.
func (j *job) release() {
	if j.enc != nil {
		encodings.Put(j.enc)
		j.enc = nil
	}
}

func (j *job) outcome() Outcome {
	return Outcome{Row: j.row, Readings: j.readings, Timing: j.timing, Reject: j.reject}
}

// Run evaluates src into out. A cancelled ctx drains: what was begun is finished and made durable,
// and Summary.Interrupted is set. An error means that the run cannot go on; what was finished before
// it is durable too, and a later run can resume from it.
func Run(ctx context.Context, src Source, labels Identifier, out *result.Partial, o Options) (Summary, error) {
	o.defaults()
	w, err := writerOf(out, src, o)
	if err != nil {
		return Summary{}, err
	}
	r := &runner{o: o, src: src, labels: labels, memory: semaphore.NewWeighted(o.Memory)}
	// The group's context ends the run on a failure; ctx only stops the reader.
	g, fail := errgroup.WithContext(context.WithoutCancel(ctx))
	parse := make(chan *job)
	route := make(chan *job)
	ordered := make(chan *job, o.Workers*queuePerWorker)

	g.Go(func() error {
		defer close(parse)
		defer close(ordered)
		return r.read(ctx, fail, w, parse, ordered)
	})
	var parsing atomic.Int64
	parsing.Store(int64(o.Workers))
	for range o.Workers {
		g.Go(func() error {
			defer func() {
				if parsing.Add(-1) == 0 {
					close(route)
				}
			}()
			return r.parse(fail, parse, route)
		})
		g.Go(func() error { return r.route(fail, route) })
	}
	g.Go(func() error { return w.write(fail, r, ordered) })
	err = g.Wait()
	if flushErr := w.flush(); err == nil {
		err = flushErr
	}
	s := w.summary()
	s.Interrupted = r.interrupted.Load()
	if err != nil {
		return s, err
	}
	if w.done.left > 0 {
		if s.Interrupted { // among messages that were finished before: they count, and were not read
			return s, nil
		}
		return s, fmt.Errorf("the unfinished run has %d messages more than the export: the export changed; start over without --resume", w.done.left)
	}
	return s, w.balanced()
}

// runner holds what the stages share.
type runner struct {
	o           Options
	src         Source
	labels      Identifier
	memory      *semaphore.Weighted
	interrupted atomic.Bool
}

// weight is what a message holds of the memory bound: never more than all of it, so that one giant
// message passes alone instead of waiting for ever.
func (r *runner) weight(m *mail.Message) int64 {
	return min(int64(len(m.Raw))+columnBytes(m)+messageOverhead, r.o.Memory)
}

func columnBytes(m *mail.Message) int64 {
	if m.Columns == nil {
		return 0
	}
	return int64(len(m.Columns.Text) + len(m.Columns.HTML) + len(m.Columns.Subject))
}

// read is the only goroutine that touches the source.
func (r *runner) read(ctx, fail context.Context, w *writer, parse, ordered chan<- *job) error {
	for {
		if ctx.Err() != nil {
			r.interrupted.Store(true)
			return nil
		}
		m, err := r.src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if ctx.Err() != nil { // a source that watches the context itself
				r.interrupted.Store(true)
				return nil
			}
			return err
		}
		if !r.o.Shard.has(m) {
			w.skipped[m.Source]++
			continue
		}
		known, err := w.done.has(m)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		j := &job{msg: m, bytes: r.weight(m), done: make(chan struct{})}
		if err := r.memory.Acquire(fail, j.bytes); err != nil {
			return fail.Err()
		}
		select {
		case ordered <- j:
		case <-fail.Done():
			return fail.Err()
		}
		select {
		case parse <- j:
		case <-fail.Done():
			return fail.Err()
		}
	}
}

// parse turns bytes into text and tokens.
func (r *runner) parse(fail context.Context, in <-chan *job, out chan<- *job) error {
	x := text.NewExtractor(r.o.Text)
	for {
		select {
		case <-fail.Done():
			return fail.Err()
		case j, ok := <-in:
			if !ok {
				return nil
			}
			j.guard(stageText, func() { r.parseOne(x, j) })
			if !j.scorable() {
				close(j.done)
				continue
			}
			select {
			case out <- j:
			case <-fail.Done():
				return fail.Err()
			}
		}
	}
}

// route asks the router about every reading of a message.
func (r *runner) route(fail context.Context, in <-chan *job) error {
	var s router.Session
	if r.o.Router != nil {
		s = r.o.Router.NewSession()
	}
	for {
		select {
		case <-fail.Done():
			return fail.Err()
		case j, ok := <-in:
			if !ok {
				return nil
			}
			j.guard(stageScore, func() { r.routeOne(fail, s, j) })
			close(j.done)
		}
	}
}
