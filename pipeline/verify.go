package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"sort"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/tokenize/window"
)

// Recount counts a finished run's rows and rejects anew.
func Recount(f *result.Folder) (result.Ledger, map[string]result.SourceLedger) {
	w := writer{sources: map[string]*result.SourceLedger{}, queues: map[string]bool{}, asRouted: len(f.Run.Queues) == 0}
	for _, q := range f.Run.Queues {
		w.queues[q] = true
	}
	for i := range f.Rows {
		w.count(&f.Rows[i])
	}
	for i := range f.Rejects {
		w.countReject(&f.Rejects[i])
	}
	sources := map[string]result.SourceLedger{}
	for name, s := range w.sources {
		sources[name] = *s
	}
	return w.ledger, sources
}

// Problems lists what is wrong with a finished run by its own files alone: a ledger that does not
// balance, rows out of order or twice, a prediction that is not its highest score, more tokens read
// than the cap allows, readings of no row, a control that differs. At most a few of each kind.
func Problems(f *result.Folder) []string {
	p := problems{counts: map[string]int{}}
	ledger, sources := Recount(f)
	if ledger != f.Run.Ledger {
		p.say("ledger", "the run says %+v, its rows say %+v", f.Run.Ledger, ledger)
	}
	for _, s := range f.Run.Sources {
		got := sources[s.Source]
		got.Source, got.Format, got.Incomplete, got.IncompleteAt = s.Source, s.Format, s.Incomplete, s.IncompleteAt
		if got != s {
			p.say("source ledger", "%s: the run says %+v, its rows say %+v", s.Source, s, got)
		}
	}
	order := map[string]int{}
	for i, in := range f.Run.Inputs {
		order[in.Name] = i
	}
	rows := map[result.Place]*result.Row{}
	last := position{-1, 0}
	for i := range f.Rows {
		r := &f.Rows[i]
		at := position{order[r.Source], r.RecordNo}
		if !last.before(at) {
			p.say("order", "%s record %d stands after record %d", r.Source, r.RecordNo, last.recordNo)
		}
		last = at
		rows[r.Place()] = r
		p.row(f, r)
	}
	for i := range f.Readings {
		x := &f.Readings[i]
		r := rows[x.Place()]
		switch {
		case r == nil:
			p.say("reading", "%s record %d: a reading of no row", x.Source, x.RecordNo)
		case x.Kind == result.ReadControl && (x.Prediction != r.Prediction || x.Score != r.Score):
			p.say("control", "%s record %d: read again it went to %s (%v), at first to %s (%v)", x.Source, x.RecordNo, x.Prediction, x.Score, r.Prediction, r.Score)
		}
	}
	return p.list()
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

func (p *problems) row(f *result.Folder, r *result.Row) {
	where := fmt.Sprintf("%s record %d", r.Source, r.RecordNo)
	if r.RunID != f.Run.RunID {
		p.say("run id", "%s belongs to run %s", where, r.RunID)
	}
	if !r.Scored() {
		if r.Prediction != "" || len(r.Scores) > 0 {
			p.say("status", "%s is %s and has a prediction", where, r.Status)
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
			p.say("scores", "%s: they sum to %v", where, sum)
		}
		if best.Score != r.Score {
			p.say("prediction", "%s: %s has %v, the highest score is %s with %v", where, r.Prediction, r.Score, best.Queue, best.Score)
		}
	}
	if r.TokensKept > r.TokensTotal || r.Cap > 0 && r.Strategy != window.KeepWindows.String() && r.TokensKept > r.Cap {
		p.say("cap", "%s: %d of %d tokens read at cap %d", where, r.TokensKept, r.TokensTotal, r.Cap)
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

// Rescore evaluates n of the run's scored messages again, spread evenly over it, from the source, and
// says what differs; nothing of the run is written. o must be the options that the run was made with.
func Rescore(ctx context.Context, src Source, labels Identifier, f *result.Folder, o Options, n int) (compared int, differences []string, err error) {
	want := map[result.Place]bool{}
	old := map[result.Place]*result.Row{}
	var scored []*result.Row
	for i := range f.Rows {
		if f.Rows[i].Scored() {
			scored = append(scored, &f.Rows[i])
		}
	}
	for k := range min(n, len(scored)) {
		r := scored[k*len(scored)/min(n, len(scored))]
		want[r.Place()] = true
		old[r.Place()] = r
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
