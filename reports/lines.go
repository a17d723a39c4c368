package reports

import (
	"cmp"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"

	"misroute/pipeline/result"
	"misroute/reports/cohort"
)

// A weekly report is about every message of a run, so what is kept of each decides how large a run can
// be: a line of numbers without pointers, under 100 bytes, instead of a row of a kilobyte. What only
// the examples show (ids, ranges, texts) is read once more for those alone.

// shared is a string that many rows share, by its number in the tally; 0 is the empty one.
type shared int32

// line is what the report keeps of a scored row.
type line struct {
	record       int64
	thread       uint64 // hash of the thread key; 0: none, a cluster of its own
	cells, flops int64
	margin       float64 // of the label, from the scores; see labelMargin
	label        shared
	prediction   shared
	score        float32
	total, kept  int32 // tokens
	chars        int32
	windows      int32
	source       shared
	at           int32 // number of the row in the file
	from, to     int32 // its readings
}

func (r *line) cut() bool   { return r.kept < r.total }
func (r *line) wrong() bool { return r.label != 0 && r.prediction != r.label }

// otherReading is what the report keeps of a reading.
type otherReading struct {
	record                   int64
	seed                     int64
	cells, flops             int64
	source                   shared
	strategy                 shared
	prediction               shared
	zone                     shared
	margin                   float32 // of the label
	cap                      int32
	kept, windows            int32
	decisiveFrom, decisiveTo int32
	kind                     readingKind
}

type readingKind uint8

const (
	kindOther readingKind = iota
	kindWhole
	kindSetting
	kindPlacebo
	kindControl
)

var readingKinds = map[string]readingKind{
	result.ReadWhole: kindWhole, result.ReadSetting: kindSetting, result.ReadPlacebo: kindPlacebo, result.ReadControl: kindControl,
}

// rowFacts are the columns that a report reads of every row.
type rowFacts struct {
	Source   string `parquet:"source"`
	RecordNo int64  `parquet:"record_no"`

	ThreadKey  string              `parquet:"thread_key"`
	Week       string              `parquet:"week"`
	Label      string              `parquet:"label"`
	Prediction string              `parquet:"prediction"`
	Score      float32             `parquet:"score"`
	Scores     []result.QueueScore `parquet:"scores,list"`

	TokensTotal int32    `parquet:"tokens_total"`
	TokensKept  int32    `parquet:"tokens_kept"`
	Cap         int32    `parquet:"cap"`
	Strategy    string   `parquet:"strategy"`
	Windows     int32    `parquet:"windows"`
	Cells       int64    `parquet:"cells"`
	FLOPs       int64    `parquet:"flops"`
	TextChars   int32    `parquet:"text_chars"`
	Language    string   `parquet:"language"`
	Warnings    []string `parquet:"warnings,list"`
	Status      string   `parquet:"status"`
}

// shownFacts are the columns that an example shows besides.
type shownFacts struct {
	MessageID string         `parquet:"message_id"`
	Kept      []result.Range `parquet:"kept,list"`
	Subject   string         `parquet:"subject"`
	Text      string         `parquet:"text"`
}

// input is a run to be reported: a folder in memory, or one on disk, which is read in pieces.
type input interface {
	run() *result.Run
	measured() *result.Measured
	rows(fn func(*rowFacts)) error
	readings(fn func(*result.Reading)) error
	rejects(fn func(*result.Reject)) error
	// shown calls fn for every row with its number; at most the wanted ones are looked at.
	shown(fn func(at int32, s *shownFacts)) error
}

// inMemory is an input that was read whole.
type inMemory struct{ f *result.Folder }

func (m inMemory) run() *result.Run           { return &m.f.Run }
func (m inMemory) measured() *result.Measured { return m.f.Measured }
func (m inMemory) rows(fn func(*rowFacts)) error {
	for i := range m.f.Rows {
		r := &m.f.Rows[i]
		fn(&rowFacts{
			Source: r.Source, RecordNo: r.RecordNo, ThreadKey: r.ThreadKey, Week: r.Week, Label: r.Label, Prediction: r.Prediction,
			Score: r.Score, Scores: r.Scores, TokensTotal: r.TokensTotal, TokensKept: r.TokensKept, Cap: r.Cap, Strategy: r.Strategy,
			Windows: r.Windows, Cells: r.Cells, FLOPs: r.FLOPs, TextChars: r.TextChars, Language: r.Language, Warnings: r.Warnings, Status: r.Status,
		})
	}
	return nil
}
func (m inMemory) readings(fn func(*result.Reading)) error {
	for i := range m.f.Readings {
		fn(&m.f.Readings[i])
	}
	return nil
}
func (m inMemory) rejects(fn func(*result.Reject)) error {
	for i := range m.f.Rejects {
		fn(&m.f.Rejects[i])
	}
	return nil
}
func (m inMemory) shown(fn func(int32, *shownFacts)) error {
	for i := range m.f.Rows {
		r := &m.f.Rows[i]
		fn(int32(i), &shownFacts{MessageID: r.MessageID, Kept: r.Kept, Subject: r.Subject, Text: r.Text})
	}
	return nil
}

// onDisk is a finished run in a folder.
type onDisk struct {
	dir string
	r   result.Run
	m   *result.Measured
}

func openInput(dir string) (*onDisk, error) {
	d := &onDisk{dir: dir}
	var err error
	if d.r, err = result.ReadFinished(dir); err != nil {
		return nil, err
	}
	d.m, err = result.ReadMeasured(dir)
	return d, err
}

func (d *onDisk) run() *result.Run           { return &d.r }
func (d *onDisk) measured() *result.Measured { return d.m }
func (d *onDisk) rows(fn func(*rowFacts)) error {
	return eachOf(d.dir, result.ResultsFile, fn)
}
func (d *onDisk) readings(fn func(*result.Reading)) error {
	return eachOf(d.dir, result.ReadingsFile, fn)
}
func (d *onDisk) rejects(fn func(*result.Reject)) error {
	return eachOf(d.dir, result.RejectsFile, fn)
}
func (d *onDisk) shown(fn func(int32, *shownFacts)) error {
	at := int32(0)
	return eachOf(d.dir, result.ResultsFile, func(s *shownFacts) { fn(at, s); at++ })
}

func eachOf[T any](dir, file string, fn func(*T)) error {
	for row, err := range result.Stream[T](filepath.Join(dir, file)) {
		if err != nil {
			return err
		}
		fn(&row)
	}
	return nil
}

// tally is what NewWeekly works on: the rows in an order of their own, and who belongs where.
type tally struct {
	in       input
	run      *result.Run
	o        Options
	rows     []*line // scored, by source and record
	judged   []*line // of those, labelled
	readings []otherReading
	names    []string // by number
	numbers  map[string]shared
	others   *settings // computed when first asked for
	queues   []string
	queueAt  map[shared]int
	folded   int // the queue that takes the labels past mostQueues; -1: none
	unit     string

	weeks                     map[string]int // of scored rows
	mixing                    cohort.Mixing
	rejected, warned, skipped reasons
	mentioned                 map[string]bool // labels and predictions of all rows
	samples                   []sample
}

// sample is a labelled row whose scores help to fit the temperature.
type sample struct {
	source shared
	record int64
	label  int
	logs   []float64
}

// lineBlock lines are made at a time: a list that grows by doubling holds twice what it needs while it
// is copied.
const lineBlock = 4096

func newTally(in input, o Options) (*tally, error) {
	t := &tally{
		in: in, run: in.run(), o: o, unit: "tokens", names: []string{""}, numbers: map[string]shared{"": 0}, folded: -1,
		weeks: map[string]int{}, rejected: newReasons(), warned: newReasons(), skipped: newReasons(), mentioned: map[string]bool{},
	}
	if err := t.readRows(); err != nil {
		return nil, err
	}
	if err := t.readOthers(); err != nil {
		return nil, err
	}
	err := in.rejects(func(r *result.Reject) { t.rejected.add(r.Stage, r.Code, r.Source, r.RecordNo, r.Detail) })
	if err != nil {
		return nil, err
	}
	tokens := false
	for _, r := range t.rows {
		if r.label != 0 {
			t.judged = append(t.judged, r)
		}
		tokens = tokens || r.total > 0
	}
	switch {
	case !tokens && len(t.rows) > 0:
		t.unit = unitCharacters // nobody counted tokens
	case t.run.Model.Family == asRouted:
		t.unit = unitWords // there is no tokenizer without a model
	}
	t.listQueues()
	return t, nil
}

// number of a string that many rows share.
func (t *tally) number(s string) shared {
	n, ok := t.numbers[s]
	if !ok {
		n = shared(len(t.names))
		t.names = append(t.names, s)
		t.numbers[s] = n
	}
	return n
}

// name of a number.
func (t *tally) name(n shared) string { return t.names[n] }

// readRows makes the lines, and counts what needs none.
func (t *tally) readRows() error {
	index := map[string]int{}
	for i, q := range t.run.Queues {
		index[q] = i
	}
	every := t.sampleEvery()
	var block []line
	at := int32(-1)
	err := t.in.rows(func(r *rowFacts) {
		at++
		t.mentioned[r.Label], t.mentioned[r.Prediction] = true, true
		for _, code := range r.Warnings {
			t.warned.add("", code, r.Source, r.RecordNo, "")
		}
		row := result.Row{Status: r.Status, Label: r.Label, Language: r.Language, Strategy: r.Strategy, Cap: r.Cap, Scores: r.Scores}
		if !row.Scored() {
			t.skipped.add("", r.Status, r.Source, r.RecordNo, "")
			return
		}
		if r.Week != "" {
			t.weeks[r.Week]++
		}
		t.mixing.Add(t.run, &row)
		if len(block) == cap(block) {
			block = make([]line, 0, lineBlock)
		}
		block = append(block, line{
			record: r.RecordNo, thread: threadOf(r.ThreadKey), cells: r.Cells, flops: r.FLOPs, margin: math.NaN(),
			label: t.number(r.Label), prediction: t.number(r.Prediction), score: r.Score,
			total: r.TokensTotal, kept: r.TokensKept, chars: r.TextChars, windows: r.Windows, source: t.number(r.Source), at: at,
		})
		x := &block[len(block)-1]
		if x.cut() && r.Label != "" {
			x.margin = labelMargin(&row)
		}
		if r.Label != "" && r.RecordNo%every == 0 {
			t.sample(x, r.Scores, index)
		}
		t.rows = append(t.rows, x)
	})
	delete(t.mentioned, "")
	byPlace := func(a, b *line) int { return t.comparePlaces(a.source, a.record, b.source, b.record) }
	if !slices.IsSortedFunc(t.rows, byPlace) {
		slices.SortStableFunc(t.rows, byPlace)
	}
	slices.SortStableFunc(t.samples, func(a, b sample) int { return t.comparePlaces(a.source, a.record, b.source, b.record) })
	return err
}

// comparePlaces orders by source and record.
func (t *tally) comparePlaces(source shared, record int64, source2 shared, record2 int64) int {
	if source != source2 {
		return cmp.Compare(t.names[source], t.names[source2])
	}
	return cmp.Compare(record, record2)
}

// threadOf hashes a thread key. Two of a million threads fall together with a chance of one in 37
// million, and then two messages count as one thread.
func threadOf(key string) uint64 {
	if key == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	return max(1, h.Sum64())
}

// mostSampled bounds the numbers that the temperature is fitted to (8 MB of them, a hundred thousand
// messages with ten queues): one parameter is known to a thousandth by then.
const mostSampled = 1 << 20

// sampleEvery says that one record in so many is a sample.
func (t *tally) sampleEvery() int64 {
	numbers := t.run.Ledger.Labelled * int64(len(t.run.Queues))
	return max(1, (numbers+mostSampled-1)/mostSampled)
}

// sample keeps the scores of a row whose label the router knows.
func (t *tally) sample(x *line, scores []result.QueueScore, index map[string]int) {
	label, ok := index[t.name(x.label)]
	if !ok || len(scores) != len(t.run.Queues) {
		return
	}
	logs := make([]float64, len(scores))
	if logScores(logs, scores, index) {
		t.samples = append(t.samples, sample{x.source, x.record, label, logs})
	}
}

// readOthers reads the readings and gives each line its own.
func (t *tally) readOthers() error {
	err := t.in.readings(func(r *result.Reading) {
		t.readings = append(t.readings, otherReading{
			record: r.RecordNo, seed: r.Seed, cells: r.Cells, flops: r.FLOPs, source: t.number(r.Source), strategy: t.number(r.Strategy),
			prediction: t.number(r.Prediction), zone: t.number(r.DecisiveZone), margin: r.LabelMargin, cap: r.Cap, kept: r.TokensKept, windows: r.Windows,
			decisiveFrom: r.DecisiveFrom, decisiveTo: r.DecisiveTo, kind: readingKinds[r.Kind],
		})
	})
	if err != nil {
		return err
	}
	// Those of one message by kind; a sweep's by setting, placebos by seed.
	slices.SortStableFunc(t.readings, func(a, b otherReading) int {
		return cmp.Or(t.comparePlaces(a.source, a.record, b.source, b.record), cmp.Compare(a.kind, b.kind), cmp.Compare(a.seed, b.seed))
	})
	i := 0
	for _, r := range t.rows {
		for i < len(t.readings) && t.comparePlaces(t.readings[i].source, t.readings[i].record, r.source, r.record) < 0 {
			i++
		}
		r.from = int32(i)
		r.to = r.from
		for int(r.to) < len(t.readings) && t.readings[r.to].source == r.source && t.readings[r.to].record == r.record {
			r.to++
		}
	}
	return nil
}

// readingsOf a row.
func (t *tally) readingsOf(r *line) []otherReading { return t.readings[r.from:r.to] }

// reading of a kind, the last one where there are several; nil: none.
func (t *tally) reading(r *line, kind readingKind) *otherReading {
	list := t.readingsOf(r)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].kind == kind {
			return &list[i]
		}
	}
	return nil
}

// whole is the reading of the whole message, where there is one.
func (t *tally) whole(r *line) *otherReading { return t.reading(r, kindWhole) }

// placebos are the placebo readings at the run's own setting, by seed.
func (t *tally) placebos(r *line) (list []otherReading) {
	for _, x := range t.readingsOf(r) {
		if x.kind == kindPlacebo && int(x.cap) == t.run.Cap && t.name(x.strategy) == t.run.Strategy {
			list = append(list, x)
		}
	}
	return list
}

// clusters numbers the threads of rows.
func clusters(rows []*line) (of []int32, n int) {
	numbers := map[uint64]int32{}
	of = make([]int32, len(rows))
	for i, r := range rows {
		c, known := numbers[r.thread]
		if !known || r.thread == 0 {
			c = int32(n)
			n++
			numbers[r.thread] = c
		}
		of[i] = c
	}
	return of, n
}
