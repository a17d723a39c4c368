package pipeline

import (
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// Shard is part I of N of an export, counted from 1. The zero value is the whole export.
type Shard struct{ I, N int }

// ParseShard reads "2/7".
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	var sh Shard
	var err1, err2 error
	sh.I, err1 = strconv.Atoi(i)
	sh.N, err2 = strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || sh.I < 1 || sh.N < 1 || sh.I > sh.N {
		return Shard{}, fmt.Errorf("%q: want I/N with I from 1 to N, like 2/7", s)
	}
	return sh, nil
}

func (s Shard) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.I, s.N)
}

// has says whether the message belongs to the shard.
func (s Shard) has(m *mail.Message) bool { return s.N <= 1 || PartOf(m, s.N) == s.I }

// PartOf says in which of n parts a message is, from 1. It goes by content, so that one huge mbox
// splits evenly and true copies stay together.
func PartOf(m *mail.Message, n int) int {
	h := fnv.New64a()
	switch {
	case m.Raw != nil:
		h.Write(m.Raw)
	case m.Columns != nil:
		io.WriteString(h, m.Columns.ID+"\x00"+m.Columns.Subject+"\x00"+m.Columns.Text+"\x00"+m.Columns.HTML)
	default:
		fmt.Fprintf(h, "%s\x00%s\x00%d", m.Source, m.Member, m.RecordNo)
	}
	// FNV's low bits are weak for short texts: fold the high ones in.
	sum := h.Sum64()
	return int((sum^sum>>32)%uint64(n)) + 1
}

// Merge writes the parts of one evaluation, in any order, as the run that an unsharded evaluation
// would have left, and returns its facts (without a run id). Parts of different runs, a part that is
// missing and one that is there twice are refused by name.
func Merge(dirs []string, out *result.Partial) (result.Run, result.Measured, error) {
	run, measured, err := checkParts(dirs)
	if err != nil {
		return run, measured, err
	}
	m := merger{first: map[[16]byte]int64{}, out: out, order: map[string]int{}}
	for i, in := range run.Inputs {
		m.order[in.Name] = i
	}
	if err := m.merge(dirs); err != nil {
		return run, measured, err
	}
	l := &run.Ledger
	l.Duplicate += m.duplicates
	l.Scored -= m.duplicates
	l.Labelled -= m.labelled
	l.Unlabelled -= m.duplicates - m.labelled
	queues := map[string]bool{}
	for _, q := range run.Queues {
		queues[q] = true
	}
	for label, n := range m.labels {
		if len(queues) == 0 || queues[label] {
			l.Routable -= n
		} else {
			l.Unroutable -= n
		}
	}
	for i := range run.Sources {
		s := &run.Sources[i]
		d := m.bySource[s.Source]
		s.Duplicate += d.ok + d.salvaged
		s.OK -= d.ok
		s.Salvaged -= d.salvaged
	}
	return run, measured, nil
}

// checkParts reads the facts of all parts and adds up their ledgers.
func checkParts(dirs []string) (run result.Run, measured result.Measured, err error) {
	byShard := map[string]string{}
	warnings := map[string][]string{} // by shard
	for i, dir := range dirs {
		part, err := result.ReadRun(dir)
		if err != nil {
			return run, measured, fmt.Errorf("%s: %w", dir, err)
		}
		if part.Shard == "" {
			return run, measured, fmt.Errorf("%s is a whole run, not a part (eval --shard)", dir)
		}
		if other, twice := byShard[part.Shard]; twice {
			return run, measured, fmt.Errorf("%s and %s are both part %s", other, dir, part.Shard)
		}
		byShard[part.Shard], warnings[part.Shard] = dir, part.Warnings
		if i == 0 {
			run = part
			continue
		}
		if err := sameRun(&run, &part, dirs[0], dir); err != nil {
			return run, measured, err
		}
		addLedger(&run.Ledger, part.Ledger)
		for k := range run.Sources {
			addSource(&run.Sources[k], part.Sources[k])
		}
	}
	sh, err := ParseShard(run.Shard)
	if err != nil {
		return run, measured, fmt.Errorf("%s: shard %w", dirs[0], err)
	}
	run.Warnings = nil
	for i := 1; i <= sh.N; i++ {
		name := (Shard{i, sh.N}).String()
		if byShard[name] == "" {
			return run, measured, fmt.Errorf("part %s is missing", name)
		}
		for _, w := range warnings[name] { // most are every part's, but an export can change under one of them
			if !slices.Contains(run.Warnings, w) {
				run.Warnings = append(run.Warnings, w)
			}
		}
	}
	if len(dirs) != sh.N {
		return run, measured, fmt.Errorf("%d parts given, the run has %d", len(dirs), sh.N)
	}
	run.Shard, run.RunID = "", ""
	for _, dir := range dirs {
		m, err := result.ReadMeasured(dir)
		if err != nil {
			return run, measured, err
		}
		if m != nil {
			measured.Seconds = max(measured.Seconds, m.Seconds)
			measured.PeakBytes = max(measured.PeakBytes, m.PeakBytes)
			measured.Workers += m.Workers
			measured.MessagesPerSecond += m.MessagesPerSecond
			measured.MeanScoreMillis += m.MeanScoreMillis / float64(len(dirs))
		}
	}
	return run, measured, nil
}

func sameRun(a, b *result.Run, dirA, dirB string) error {
	differ := func(what, x, y string) error {
		return fmt.Errorf("%s and %s are parts of different runs: %s %q and %q", dirA, dirB, what, x, y)
	}
	_, nA, _ := strings.Cut(a.Shard, "/")
	_, nB, _ := strings.Cut(b.Shard, "/")
	switch {
	case nA != nB:
		return differ("number of parts", nA, nB)
	case a.Model.SHA256 != b.Model.SHA256:
		return differ("model", a.Model.SHA256, b.Model.SHA256)
	case a.Kernel != b.Kernel:
		return differ("kernel", a.Kernel, b.Kernel)
	case a.Key != b.Key:
		return differ("configuration", a.Key, b.Key)
	case a.ToolVersion != b.ToolVersion:
		return differ("misroute version", a.ToolVersion, b.ToolVersion)
	case !slices.Equal(a.Inputs, b.Inputs):
		return differ("exports", fmt.Sprint(a.Inputs), fmt.Sprint(b.Inputs))
	case len(a.Sources) != len(b.Sources):
		return differ("sources", fmt.Sprint(len(a.Sources)), fmt.Sprint(len(b.Sources)))
	}
	return nil
}

func addLedger(to *result.Ledger, l result.Ledger) {
	to.Read += l.Read
	to.Scored += l.Scored
	to.Rejected += l.Rejected
	to.Duplicate += l.Duplicate
	to.Filtered += l.Filtered
	to.Labelled += l.Labelled
	to.Unlabelled += l.Unlabelled
	to.Routable += l.Routable
	to.Unroutable += l.Unroutable
}

func addSource(to *result.SourceLedger, s result.SourceLedger) {
	to.Seen += s.Seen
	to.OK += s.OK
	to.Salvaged += s.Salvaged
	to.Duplicate += s.Duplicate
	to.Filtered += s.Filtered
	to.Rejected += s.Rejected
}

// merger puts rows, readings, rejects and timings of all parts into reading order, a few at a time.
type merger struct {
	out   *result.Partial
	order map[string]int     // source -> its place among the inputs
	first map[[16]byte]int64 // as the writer's
	seg   result.Segment

	duplicates, labelled int64 // copies that stood in different parts
	labels               map[string]int64
	bySource             map[string]copies
}

type copies struct{ ok, salvaged int64 }

// position of a record in the run.
type position struct {
	source   int
	recordNo int64
}

func (a position) before(b position) bool {
	return a.source < b.source || a.source == b.source && a.recordNo < b.recordNo
}

func (m *merger) merge(dirs []string) error {
	m.labels, m.bySource = map[string]int64{}, map[string]copies{}
	dropped := map[position]bool{}
	err := eachInOrder(dirs, result.ResultsFile,
		func(r *result.Row) position { return position{m.order[r.Source], r.RecordNo} },
		func(r *result.Row) error {
			if r.Scored() {
				if first, again := m.first[contentKey(r)]; again {
					m.copy(r, first)
					dropped[position{m.order[r.Source], r.RecordNo}] = true
				} else {
					m.first[contentKey(r)] = r.RecordNo
				}
			}
			m.seg.Rows = append(m.seg.Rows, *r)
			return m.flush(false)
		})
	if err != nil {
		return err
	}
	err = eachInOrder(dirs, result.ReadingsFile,
		func(r *result.Reading) position { return position{m.order[r.Source], r.RecordNo} },
		func(r *result.Reading) error {
			if !dropped[position{m.order[r.Source], r.RecordNo}] {
				m.seg.Readings = append(m.seg.Readings, *r)
			}
			return m.flush(false)
		})
	if err != nil {
		return err
	}
	err = eachInOrder(dirs, result.RejectsFile,
		func(r *result.Reject) position { return position{m.order[r.Source], r.RecordNo} },
		func(r *result.Reject) error {
			m.seg.Rejects = append(m.seg.Rejects, *r)
			return m.flush(false)
		})
	if err != nil {
		return err
	}
	err = eachInOrder(dirs, result.TimingsFile,
		func(r *result.Timing) position { return position{m.order[r.Source], r.RecordNo} },
		func(r *result.Timing) error {
			m.seg.Timings = append(m.seg.Timings, *r)
			return m.flush(false)
		})
	if err != nil {
		return err
	}
	return m.flush(true)
}

// copy makes a duplicate of a row whose first copy stood in another part.
func (m *merger) copy(r *result.Row, first int64) {
	m.duplicates++
	if r.Label != "" {
		m.labelled++
		m.labels[r.Label]++
	}
	c := m.bySource[r.Source]
	if r.Status == result.StatusSalvaged {
		c.salvaged++
	} else {
		c.ok++
	}
	m.bySource[r.Source] = c
	makeDuplicate(r, first)
}

func (m *merger) flush(all bool) error {
	n := len(m.seg.Rows) + len(m.seg.Readings) + len(m.seg.Rejects) + len(m.seg.Timings)
	if n == 0 || n < segmentMessages && !all {
		return nil
	}
	err := m.out.Append(&m.seg)
	m.seg = result.Segment{}
	return err
}

// eachInOrder merges one file of all parts by position. Rows of one position stay in their order.
func eachInOrder[T any](dirs []string, file string, at func(*T) position, fn func(*T) error) error {
	type head struct {
		next func() (T, error, bool)
		row  T
		ok   bool
	}
	heads := make([]head, len(dirs))
	advance := func(h *head) error {
		row, err, ok := h.next()
		h.row, h.ok = row, ok
		return err
	}
	for i, dir := range dirs {
		next, stop := iter.Pull2(result.Stream[T](filepath.Join(dir, file)))
		defer stop()
		heads[i].next = next
		if err := advance(&heads[i]); err != nil {
			return err
		}
	}
	for {
		best := -1
		for i := range heads {
			if heads[i].ok && (best < 0 || at(&heads[i].row).before(at(&heads[best].row))) {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		if err := fn(&heads[best].row); err != nil {
			return err
		}
		if err := advance(&heads[best]); err != nil {
			return err
		}
	}
}
