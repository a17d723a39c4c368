package pipeline

import (
	"context"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
)

// Outcome is what became of one message: a reject, or a row with what belongs to it.
type Outcome struct {
	Row      result.Row
	Readings []result.Reading
	Timing   result.Timing
	Reject   *result.Reject // set: there is no row
}

// Place says where the message stands in the run.
func (o *Outcome) Place() result.Place {
	if o.Reject != nil {
		return o.Reject.Place()
	}
	return o.Row.Place()
}

// An Evaluator evaluates one message after the other, for engines that bring their own goroutines and
// their own order; a [Collector] puts what comes of it into the files that [Run] would have left. Each
// goroutine has its own.
type Evaluator struct {
	r *runner
	x *text.Extractor
	s router.Session // nil: as routed
}

// NewEvaluator evaluates as the options say; those of a run as a whole (shard, workers, memory,
// events, quarantine) are not looked at.
func NewEvaluator(labels Identifier, o Options) *Evaluator {
	e := &Evaluator{r: &runner{o: o, labels: labels}, x: text.NewExtractor(o.Text)}
	if o.Router != nil {
		e.s = o.Router.NewSession()
	}
	return e
}

// Evaluate says what became of m. What is wrong with the message is its reject; the only error is the
// context's, and then nothing became of it.
func (e *Evaluator) Evaluate(ctx context.Context, m *mail.Message) (Outcome, error) {
	j := &job{msg: m}
	j.guard(stageText, func() { e.r.parseOne(e.x, j) })
	if j.scorable() {
		j.guard(stageScore, func() { e.r.routeOne(ctx, e.s, j) })
	}
	j.release()
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	return j.outcome(), nil
}

// A Collector takes the outcomes of an export, or of one part of it, in reading order, finds the
// duplicates, keeps the ledger and makes the files. One goroutine at a time.
type Collector struct{ w *writer }

// NewCollector collects into out. The run's facts say which queues its model knows.
func NewCollector(out *result.Partial, run *result.Run) *Collector {
	own := router.Setting{MaxTokens: run.Cap}.Limit() + " " + run.Strategy
	return &Collector{newWriter(out, run.Queues, len(run.Queues) == 0, own)}
}

// Add takes one outcome.
func (c *Collector) Add(o *Outcome) error {
	c.w.take(o)
	return c.w.flushFull()
}

// Finish makes the last outcomes durable and balances the ledger: every record of the sources was
// added, or stands in another part, as elsewhere says by source.
func (c *Collector) Finish(sources []mail.Source, elsewhere map[string]int64) (Summary, error) {
	c.w.src, c.w.skipped = given(sources), elsewhere
	if err := c.w.flush(); err != nil {
		return Summary{}, err
	}
	c.w.measure()
	return c.w.summary(), c.w.balanced()
}

// given are sources that were read by others.
type given []mail.Source

func (g given) Sources() []mail.Source { return g }
func (g given) BytesRead() int64       { return 0 }
func (g given) TotalBytes() int64      { return 0 }
