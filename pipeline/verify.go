package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sort"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/tokenize/window"
)

// Checked is what a finished run's files say by themselves.
type Checked struct {
	Rows, Readings, Rejects int64
	Problems                []string
}

// Check counts the rows of the finished run in dir anew and lists what is wrong with it by its own files
// alone: a ledger that does not balance, records out of order or twice, a prediction that is not its
// highest score, more tokens read than the cap allows, readings of no row, a control that differs. At
// most a few of each kind. The files are read side by side, a few rows at a time.
func Check(dir string, run *result.Run) (Checked, error) {
	c := checker{problems: problems{counts: map[string]int{}}, run: run, order: map[string]int{}}
	for i, in := range run.Inputs {
		c.order[in.Name] = i
	}
	w := newWriter(nil, run.Queues, len(run.Queues) == 0, "")
	readings, stop := inOrder(&c, dir, result.ReadingsFile, "reading", (*result.Reading).Place)
	defer stop()
	rejects, stop := inOrder(&c, dir, result.RejectsFile, "reject", (*result.Reject).Place)
	defer stop()
	last := position{-1, 0}
	for row, err := range result.Stream[result.Row](filepath.Join(dir, result.ResultsFile)) {
		if err != nil {
			return c.checked, err
		}
		r := &row
		c.checked.Rows++
		w.count(r)
		at := c.position(r.Place())
		if !last.before(at) {
			c.say("order", "%s record %d stands after record %d", r.Source, r.RecordNo, last.recordNo)
		}
		last = at
		c.row(r)
		c.readings(r, at, readings)
		for x := rejects.upTo(at); x != nil; x = rejects.upTo(at) {
			if c.position(x.Place()) == at {
				c.say("twice", "%s record %d is a row and a reject", x.Source, x.RecordNo)
			}
			c.checked.Rejects++
			w.countReject(x)
		}
	}
	end := position{len(run.Inputs) + 1, 0}
	for x := readings.upTo(end); x != nil; x = readings.upTo(end) {
		c.checked.Readings++
		c.say("reading", "%s record %d: a reading of no row", x.Source, x.RecordNo)
	}
	for x := rejects.upTo(end); x != nil; x = rejects.upTo(end) {
		c.checked.Rejects++
		w.countReject(x)
	}
	c.ledger(w)
	c.checked.Problems = c.list()
	for _, err := range []error{readings.err, rejects.err} {
		if err != nil {
			return c.checked, err
		}
	}
	return c.checked, nil
}

// checker compares the files of a run.
type checker struct {
	problems
	run     *result.Run
	order   map[string]int // source -> its place among the inputs
	checked Checked
}

func (c *checker) position(p result.Place) position { return position{c.order[p.Source], p.RecordNo} }

// ledger compares what was counted with what the run says.
func (c *checker) ledger(w *writer) {
	if w.ledger != c.run.Ledger {
		c.say("ledger", "the run says %+v, its rows say %+v", c.run.Ledger, w.ledger)
	}
	for _, s := range c.run.Sources {
		got := *w.source(s.Source)
		got.Source, got.Format, got.Incomplete, got.IncompleteAt = s.Source, s.Format, s.Incomplete, s.IncompleteAt
		if got != s {
			c.say("source ledger", "%s: the run says %+v, its rows say %+v", s.Source, s, got)
		}
	}
}

// readings compares a row with the readings up to it.
func (c *checker) readings(r *result.Row, at position, list *ordered[result.Reading]) {
	for x := list.upTo(at); x != nil; x = list.upTo(at) {
		c.checked.Readings++
		switch {
		case c.position(x.Place()) != at || x.Member != r.Member:
			c.say("reading", "%s record %d: a reading of no row", x.Source, x.RecordNo)
		case x.Kind == result.ReadControl && (x.Prediction != r.Prediction || x.Score != r.Score):
			c.say("control", "%s record %d: read again it went to %s (%v), at first to %s (%v)", x.Source, x.RecordNo, x.Prediction, x.Score, r.Prediction, r.Score)
		}
	}
}

// ordered reads a file of a run record by record.
type ordered[T any] struct {
	next func() (T, error, bool)
	at   func(*T) position
	row  T
	ok   bool
	err  error
}

// inOrder opens a file of a run; what stands out of order in it is a problem.
func inOrder[T any](c *checker, dir, file, what string, place func(*T) result.Place) (*ordered[T], func()) {
	next, stop := iter.Pull2(result.Stream[T](filepath.Join(dir, file)))
	o := &ordered[T]{next: next}
	last := position{-1, 0}
	o.at = func(x *T) position {
		at := c.position(place(x))
		if at.before(last) {
			c.say("order", "%s: %s record %d stands after record %d", what, place(x).Source, at.recordNo, last.recordNo)
		}
		last = at
		return at
	}
	o.advance()
	if errors.Is(o.err, os.ErrNotExist) { // a run of an older version may lack it
		o.err = nil
	}
	return o, stop
}

func (o *ordered[T]) advance() { o.row, o.err, o.ok = o.next() }

// upTo gives the next record that stands at or before a position; nil: there is none.
func (o *ordered[T]) upTo(p position) *T {
	if !o.ok || o.err != nil {
		return nil
	}
	if at := o.at(&o.row); p.before(at) {
		return nil
	}
	row := o.row
	o.advance()
	return &row
}

// problems collects a few examples of each kind.
type problems struct {
	counts   map[string]int
	examples []string
}

const problemExamples = 3

func (p *problems) say(kind, format string, args ...any) {
	p.counts[kind]++
	if p.counts[kind] <= problemExamples {
		p.examples = append(p.examples, kind+": "+fmt.Sprintf(format, args...))
	}
}

func (p *problems) list() []string {
	var kinds []string
	for k, n := range p.counts {
		if n > problemExamples {
			kinds = append(kinds, fmt.Sprintf("%s: %d more", k, n-problemExamples))
		}
	}
	sort.Strings(kinds)
	return append(p.examples, kinds...)
}

func (c *checker) row(r *result.Row) {
	where := fmt.Sprintf("%s record %d", r.Source, r.RecordNo)
	if r.RunID != c.run.RunID {
		c.say("run id", "%s belongs to run %s", where, r.RunID)
	}
	if !r.Scored() {
		if r.Prediction != "" || len(r.Scores) > 0 {
			c.say("status", "%s is %s and has a prediction", where, r.Status)
		}
		return
	}
	if len(r.Scores) > 0 {
		sum, best := 0.0, r.Scores[0]
		for _, s := range r.Scores {
			sum += float64(s.Score)
			if s.Score > best.Score {
				best = s
			}
		}
		if math.Abs(sum-1) > 1e-4 {
			c.say("scores", "%s: they sum to %v", where, sum)
		}
		if best.Score != r.Score {
			c.say("prediction", "%s: %s has %v, the highest score is %s with %v", where, r.Prediction, r.Score, best.Queue, best.Score)
		}
	}
	if r.TokensKept > r.TokensTotal || r.Cap > 0 && r.Strategy != window.KeepWindows.String() && r.TokensKept > r.Cap {
		c.say("cap", "%s: %d of %d tokens read at cap %d", where, r.TokensKept, r.TokensTotal, r.Cap)
	}
}

// Only gives the messages of src that stand at the places, and nothing else.
func Only(src Source, places map[result.Place]bool) Source {
	return &picked{Source: src, want: places, seen: map[string]int64{}}
}

type picked struct {
	Source
	want map[result.Place]bool
	seen map[string]int64
}

func (s *picked) Next() (*mail.Message, error) {
	for {
		m, err := s.Source.Next()
		if err != nil {
			return nil, err
		}
		if s.want[result.Place{Source: m.Source, Member: m.Member, RecordNo: m.RecordNo}] {
			s.seen[m.Source]++
			return m, nil
		}
	}
}

func (s *picked) Sources() []mail.Source {
	list := s.Source.Sources()
	for i := range list {
		list[i].Seen = s.seen[list[i].Name]
	}
	return list
}

// Rescore evaluates n of the scored messages of the run in folder again, spread evenly over it, from the
// source, and says what differs; nothing of the run is written. o must be the options that the run was
// made with.
func Rescore(ctx context.Context, src Source, labels Identifier, folder string, run *result.Run, o Options, n int) (compared int, differences []string, err error) {
	want := map[result.Place]bool{}
	old := map[result.Place]*result.Row{}
	scored, take := int64(0), min(int64(n), run.Ledger.Scored)
	for row, err := range result.Stream[result.Row](filepath.Join(folder, result.ResultsFile)) {
		if err != nil {
			return 0, nil, err
		}
		if !row.Scored() {
			continue
		}
		if k := int64(len(old)); k < take && scored == k*run.Ledger.Scored/take {
			want[row.Place()] = true
			old[row.Place()] = &row
		}
		scored++
	}
	dir, err := os.MkdirTemp("", "misroute-verify-")
	if err != nil {
		return 0, nil, err
	}
	defer os.RemoveAll(dir)
	out, err := result.OpenPartial(dir, nil, false)
	if err != nil {
		return 0, nil, err
	}
	defer out.Close()
	s, err := Run(ctx, Only(src, want), labels, out, o)
	if err != nil {
		return 0, nil, err
	}
	if s.Interrupted {
		return 0, nil, context.Canceled
	}
	p := problems{counts: map[string]int{}}
	if err := out.Each(func(seg *result.Segment) error {
		for i := range seg.Rows {
			got := seg.Rows[i]
			compared++
			was := *old[got.Place()]
			was.RunID, got.RunID = "", ""
			was.Absent()
			got.Absent()
			if name := differs(&was, &got); name != "" {
				p.say("row", "%s record %d: %s differs when it is evaluated again", got.Source, got.RecordNo, name)
			}
		}
		for _, r := range seg.Rejects {
			p.say("row", "%s record %d is rejected when it is evaluated again: %s", r.Source, r.RecordNo, r.Code)
		}
		return nil
	}); err != nil {
		return compared, nil, err
	}
	if missing := len(want) - compared - p.counts["row"]; missing > 0 && len(p.examples) == 0 {
		return compared, nil, errors.New("the source has not all records of the run: it is not the export that was evaluated")
	}
	return compared, p.list(), nil
}

// differs names the first column in which two rows differ.
func differs(a, b *result.Row) string {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			return x.Type().Field(i).Name
		}
	}
	return ""
}
