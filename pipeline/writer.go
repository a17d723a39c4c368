package pipeline

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// writer takes the messages in reading order, finds duplicates, counts, and makes segments durable.
// Apart from done, which is the reader's, only one goroutine uses it.
type writer struct {
	out    *result.Partial
	src    progressed
	o      Options // events and quarantine
	queues map[string]bool
	// asRouted: without a model every label can be routed to, and nothing was timed.
	asRouted bool
	name     string // of the run's own setting
	// checkpoint is how many messages make a segment.
	checkpoint int
	texts      int64         // bytes of the segment's texts
	flushing   time.Duration // how long the last segment took to become durable
	seg        result.Segment
	began      time.Time // of the segment
	start      time.Time
	lastSay    time.Time

	ledger  result.Ledger
	sources map[string]*result.SourceLedger
	first   map[[16]byte]int64 // content and Message-ID -> record number of the first copy
	wrong   int64
	tokens  int64
	scoring time.Duration
	scored  int64 // in this process
	setting map[string]*meanTime
	peak    int64

	// skipped counts records of other shards, by source; the reader's goroutine writes it, and the end of
	// the run reads it.
	skipped map[string]int64

	fromFile int64    // labels that the labels file gave
	noLabel  []string // examples of message ids that are not in it

	done resumer
}

type meanTime struct {
	sum   time.Duration
	count int64
}

// progressed is what the writer wants to know of a source.
type progressed interface {
	Sources() []mail.Source
	BytesRead() int64
	TotalBytes() int64
}

func newWriter(out *result.Partial, queues []string, asRouted bool, name string) *writer {
	w := &writer{
		out: out, asRouted: asRouted, name: name, checkpoint: segmentMessages, start: time.Now(), began: time.Now(),
		queues: map[string]bool{}, sources: map[string]*result.SourceLedger{},
		first: map[[16]byte]int64{}, setting: map[string]*meanTime{}, skipped: map[string]int64{},
	}
	for _, q := range queues {
		w.queues[q] = true
	}
	return w
}

// writerOf makes the writer of a run, which may go on with one that was interrupted.
func writerOf(out *result.Partial, src Source, o Options) (*writer, error) {
	var queues []string
	if o.Router != nil {
		queues = o.Router.Queues()
	}
	w := newWriter(out, queues, o.Router == nil, o.Setting.Name())
	w.src, w.o, w.checkpoint = src, o, o.Checkpoint
	w.done = resumer{out: out}
	err := out.Each(func(s *result.Segment) error {
		w.done.left += int64(s.Messages())
		for i := range s.Rows {
			row := &s.Rows[i]
			if row.Status != result.StatusDuplicate && row.Status != result.StatusFiltered {
				w.first[contentKey(row)] = row.RecordNo
			}
			w.count(row)
		}
		for i := range s.Rejects {
			r := &s.Rejects[i]
			w.countReject(r)
		}
		return nil
	})
	return w, err
}

func (w *writer) write(fail context.Context, r *runner, in <-chan *job) error {
	for {
		var j *job
		var ok bool
		select {
		case j, ok = <-in:
		case <-fail.Done():
			return fail.Err()
		}
		if !ok {
			w.say(true)
			return nil
		}
		select {
		case <-j.done:
		case <-fail.Done():
			return fail.Err()
		}
		if err := w.add(j); err != nil {
			return err
		}
		r.memory.Release(j.bytes)
		if err := w.flushFull(); err != nil {
			return err
		}
		w.say(false)
	}
}

// add takes a finished message.
func (w *writer) add(j *job) error {
	j.release()
	o := j.outcome()
	w.seg.Checksum = addChecksum(w.seg.Checksum, j.msg)
	w.take(&o)
	if o.Reject != nil && w.o.Quarantine != nil {
		return w.o.Quarantine(o.Reject, j.msg.Raw)
	}
	return nil
}

// take puts an outcome into the segment.
func (w *writer) take(o *Outcome) {
	if o.Reject != nil {
		w.countReject(o.Reject)
		w.seg.Rejects = append(w.seg.Rejects, *o.Reject)
		return
	}
	row := &o.Row
	if row.Scored() {
		key := contentKey(row)
		if first, again := w.first[key]; again {
			makeDuplicate(row, first)
			o.Readings = nil
		} else {
			w.first[key] = row.RecordNo
		}
	}
	w.count(row)
	if row.Scored() {
		if !w.asRouted {
			w.seg.Timings = append(w.seg.Timings, o.Timing)
			w.scoring += time.Duration(o.Timing.ScoreNanos)
			w.time(w.name, o.Timing.ScoreNanos)
		}
		w.scored++
		w.tokens += int64(row.TokensKept)
		for i := range o.Readings {
			x := &o.Readings[i]
			w.time(fmt.Sprintf("%s %d %s", x.Kind, x.Cap, x.Strategy), x.Nanos)
			w.tokens += int64(x.TokensKept)
			x.Nanos = 0
		}
		w.seg.Readings = append(w.seg.Readings, o.Readings...)
	}
	w.seg.Rows = append(w.seg.Rows, *row)
	w.texts += row.TextBytes()
}

func (w *writer) time(name string, nanos int64) {
	m := w.setting[name]
	if m == nil {
		m = new(meanTime)
		w.setting[name] = m
	}
	m.sum += time.Duration(nanos)
	m.count++
}

// makeDuplicate takes back what a true copy was scored with: it counts once.
func makeDuplicate(row *result.Row, first int64) {
	row.Status, row.DuplicateOf = result.StatusDuplicate, first
	row.Prediction, row.Score, row.Margin, row.Scores = "", 0, 0, nil
	row.TokensKept, row.Kept, row.Windows, row.Cells, row.FLOPs = 0, nil, 0, 0, 0
}

// contentKey is the same for true copies only: same Message-ID and same content.
func contentKey(row *result.Row) [16]byte {
	sum := sha256.Sum256([]byte(row.MessageID + "\x00" + row.ContentSHA256))
	return [16]byte(sum[:16])
}

func (w *writer) source(name string) *result.SourceLedger {
	s := w.sources[name]
	if s == nil {
		s = &result.SourceLedger{Source: name}
		w.sources[name] = s
	}
	return s
}

func (w *writer) countReject(r *result.Reject) {
	w.ledger.Read++
	w.ledger.Rejected++
	s := w.source(r.Source)
	s.Seen++
	s.Rejected++
}

func (w *writer) count(row *result.Row) {
	l, s := &w.ledger, w.source(row.Source)
	l.Read++
	s.Seen++
	switch row.Status {
	case result.StatusDuplicate:
		l.Duplicate++
		s.Duplicate++
		return
	case result.StatusFiltered:
		l.Filtered++
		s.Filtered++
		return
	case result.StatusSalvaged:
		s.Salvaged++
	default:
		s.OK++
	}
	l.Scored++
	if row.LabelSource == mail.LabelFile {
		w.fromFile++
	} else if len(w.noLabel) < 3 && row.MessageID != "" {
		w.noLabel = append(w.noLabel, row.MessageID)
	}
	if row.Label == "" {
		l.Unlabelled++
		return
	}
	l.Labelled++
	if w.asRouted || w.queues[row.Label] {
		l.Routable++
	} else {
		l.Unroutable++
	}
	if row.Wrong() {
		w.wrong++
	}
}

// flushFull makes a segment durable that is large or old enough.
func (w *writer) flushFull() error {
	if w.seg.Messages() < w.checkpoint && w.texts < segmentTexts && time.Since(w.began) <= max(segmentAge, segmentPause*w.flushing) {
		return nil
	}
	return w.flush()
}

// flush makes the segment durable, if there is anything in it.
func (w *writer) flush() error {
	if w.seg.Messages() == 0 {
		w.began = time.Now()
		return nil
	}
	start := time.Now()
	err := w.out.Append(&w.seg)
	w.seg, w.texts = result.Segment{}, 0
	w.began = time.Now()
	w.flushing = w.began.Sub(start)
	return err
}

func (w *writer) say(done bool) {
	now := time.Now()
	if !done && now.Sub(w.lastSay) < eventInterval {
		return
	}
	w.lastSay = now
	w.measure()
	w.o.Events(Event{
		Messages: w.ledger.Read, Rejected: w.ledger.Rejected, Wrong: w.wrong, Labelled: w.ledger.Labelled,
		Tokens: w.tokens, BytesRead: w.src.BytesRead(), TotalBytes: w.src.TotalBytes(),
		Elapsed: now.Sub(w.start), Done: done,
	})
}

// measure looks at the memory that the process has.
func (w *writer) measure() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.peak = max(w.peak, int64(m.Sys-m.HeapReleased))
}

// balanced checks EVALUATION's ledger: nothing was lost and nothing counted twice.
func (w *writer) balanced() error {
	l := w.ledger
	if l.Read != l.Scored+l.Rejected+l.Duplicate+l.Filtered || l.Scored != l.Labelled+l.Unlabelled || l.Labelled != l.Routable+l.Unroutable {
		return fmt.Errorf("the ledger does not balance, which is a bug: %+v", l)
	}
	for _, s := range w.src.Sources() {
		if got := w.source(s.Name).Seen + w.skipped[s.Name]; got != s.Seen {
			return fmt.Errorf("%s: %d records were read and %d were written, which is a bug", s.Name, s.Seen, got)
		}
	}
	return nil
}

func (w *writer) summary() Summary {
	s := Summary{Ledger: w.ledger, FromLabelsFile: w.fromFile, NotInLabelsFile: w.noLabel}
	for _, src := range w.src.Sources() {
		l := *w.source(src.Name)
		l.Format, l.Incomplete, l.IncompleteAt = string(src.Format), src.Incomplete, src.IncompleteAt
		s.Sources = append(s.Sources, l)
		if src.Changed != "" {
			s.Warnings = append(s.Warnings, src.Name+" "+src.Changed)
		}
		s.Inputs = append(s.Inputs, result.InputFacts{Name: src.Name, Format: string(src.Format), Bytes: src.Bytes, SHA256: src.SHA256})
	}
	seconds := time.Since(w.start).Seconds()
	s.Measured = result.Measured{
		StartedAt: w.start.UTC(), Seconds: seconds, Workers: w.o.Workers, PeakBytes: w.peak,
		MessagesPerSecond: float64(w.scored) / seconds, BySetting: map[string]float64{},
	}
	if w.scored > 0 {
		s.Measured.MeanScoreMillis = w.scoring.Seconds() * 1e3 / float64(w.scored)
	}
	for name, m := range w.setting {
		s.Measured.BySetting[name] = m.sum.Seconds() * 1e3 / float64(m.count)
	}
	return s
}
