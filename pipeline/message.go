package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
	"misroute/tokenize/window"
)

// Stages a record can fail in, beside those of package mail.
const (
	stageText  = "text"
	stageScore = "score"
)

// Reason codes of this package; package mail lists the others.
const (
	// CodeInternal: a stage panicked on this message. The run goes on; the message is a bug report.
	CodeInternal mail.Code = "internal"
	// CodeRouter: the router gave no answer for this message.
	CodeRouter mail.Code = "score.router_failed"
	// CodeNotFinite: a score is NaN or infinite.
	CodeNotFinite mail.Code = "score.not_finite"
	// CodeNotRouted: evaluated as routed, and the export does not say where the message went.
	CodeNotRouted mail.Code = "score.not_routed"
)

// encodings are reused between messages: tokenizing allocates nothing in steady state.
var encodings = sync.Pool{New: func() any { return new(router.Encoded) }}

// guard runs one message's stage. A panic is a bug of ours, met by one message: it becomes a reject
// of that message, and the run goes on. The detail has no text of the message.
func (j *job) guard(stage string, fn func()) {
	defer func() {
		if p := recover(); p != nil {
			detail := fmt.Sprint(p)
			if err, ok := p.(error); ok {
				detail = fmt.Sprintf("%T: %v", p, err)
			}
			j.fail(stage, CodeInternal, "panic: "+detail)
		}
	}()
	fn()
}

func (j *job) fail(stage string, code mail.Code, detail string) {
	j.setReject(&mail.Reject{Stage: stage, Code: code, Detail: detail})
}

// setReject records why and where; the writer owns nothing but the order.
func (j *job) setReject(r *mail.Reject) {
	m := j.msg
	j.reject = &result.Reject{
		Source: m.Source, Member: m.Member, RecordNo: m.RecordNo,
		ByteOffset: m.Offset, ByteLength: m.Length, Line: m.Line,
		Stage: r.Stage, Code: string(r.Code), Detail: r.Detail,
		LimitName: r.LimitName, LimitValue: r.LimitValue, LimitActual: r.LimitActual,
		MessageID: j.id.MessageID, RecoveredChars: r.RecoveredChars,
	}
	if len(m.Raw) > 0 {
		sum := sha256.Sum256(m.Raw)
		j.reject.SHA256 = hex.EncodeToString(sum[:])
	}
	j.readings = nil
}

func (r *runner) parseOne(x *text.Extractor, j *job) {
	start := time.Now()
	m := j.msg
	j.row = result.Row{
		Source: m.Source, Member: m.Member, RecordNo: m.RecordNo,
		ByteOffset: m.Offset, ByteLength: m.Length, Status: result.StatusScored,
	}
	if m.Reject != nil {
		j.setReject(m.Reject)
		return
	}
	j.id = r.labels.Identify(m)
	id := &j.id
	row := &j.row
	row.MessageID, row.ThreadKey, row.Label, row.LabelSource, row.Routed = id.MessageID, id.ThreadKey, id.Label, id.LabelSource, id.Routed
	if id.HasDate {
		d := id.Date.UTC().Truncate(time.Millisecond)
		row.Date = &d
		year, week := id.Date.ISOWeek()
		row.Week = fmt.Sprintf("%d-W%02d", year, week)
	}
	addWarnings(row, m.Warnings, id.Warnings)
	if m.Filtered != "" {
		row.Status = result.StatusFiltered
		addWarnings(row, []mail.Code{m.Filtered})
		return
	}
	t, reject := x.Extract(m, id)
	if reject != nil {
		j.setReject(reject)
		return
	}
	j.text = t
	if t.Salvaged {
		row.Status = result.StatusSalvaged
	}
	addWarnings(row, t.Warnings)
	row.ContentSHA256, row.Language = t.ContentSHA256, t.Language
	row.QuoteCharsDropped = clamp32(t.QuoteCharsDropped)
	if row.ThreadKey == "" {
		row.ThreadKey = t.BodyHash
	}
	reading := t.Reading(r.o.Subject)
	row.TextChars = clamp32(countRunes(reading))
	if r.o.WithText {
		row.Subject, row.Text = strings.ToValidUTF8(t.Subject, "\uFFFD"), strings.ToValidUTF8(t.Body, "\uFFFD")
	}
	textDone := time.Now()
	j.timing.TextNanos = textDone.Sub(start).Nanoseconds()
	if r.o.Router != nil {
		j.enc = encodings.Get().(*router.Encoded)
		r.o.Router.Encode(j.enc, []byte(reading))
		row.TokensTotal = clamp32(j.enc.Tokens())
		if r.o.Subject && t.Subject != "" && t.Body != "" {
			row.SubjectTokens = tokensBefore(j.enc, len(t.Subject))
		}
		j.timing.TokenNanos = time.Since(textDone).Nanoseconds()
	} else {
		// Without a model there is no tokenizer either: length in words is the next best measure.
		row.TokensTotal = clamp32(len(strings.Fields(reading)))
	}
}

// tokensBefore counts the tokens, specials aside, that end within the first n bytes.
func tokensBefore(e *router.Encoded, n int) int32 {
	var count int32
	for i := range e.IDs {
		if !e.Special[i] && int(e.End[i]) <= n {
			count++
		}
	}
	return count
}

func addWarnings(row *result.Row, lists ...[]mail.Code) {
	for _, l := range lists {
		for _, c := range l {
			seen := false
			for _, w := range row.Warnings {
				seen = seen || w == string(c)
			}
			if !seen {
				row.Warnings = append(row.Warnings, string(c))
			}
		}
	}
}

func countRunes(s string) int {
	n := 0
	for range s {
		n++
	}
	return n
}

func clamp32(n int) int32 { return int32(min(n, math.MaxInt32)) }

// routeOne fills the row with the run's own reading, and adds the others.
func (r *runner) routeOne(ctx context.Context, s router.Session, j *job) {
	row := &j.row
	j.timing.Source, j.timing.Member, j.timing.RecordNo = row.Source, row.Member, row.RecordNo
	if s == nil {
		r.asRouted(j)
		return
	}
	start := time.Now()
	var reading router.Reading
	if !r.ask(ctx, s, j, r.o.Setting, &reading) {
		return
	}
	j.timing.ScoreNanos = time.Since(start).Nanoseconds()
	p := r.predict(&reading)
	row.Prediction, row.Score, row.Margin, row.Scores = p.queue, p.score, p.margin, p.scores
	row.TokensKept, row.Windows = clamp32(reading.TokensKept), clamp32(reading.Windows)
	row.Cap, row.Strategy = clamp32(r.o.Setting.MaxTokens), r.o.Setting.Strategy.String()
	row.Cells, row.FLOPs = reading.Cells, reading.FLOPs
	row.Kept = make([]result.Range, len(reading.Kept))
	for i, k := range reading.Kept {
		row.Kept[i] = result.Range{From: clamp32(k.Start), To: clamp32(k.End)}
	}
	j.timing.Tokens = row.TokensKept
	r.others(ctx, s, j)
}

// prediction is what a reading's logits say.
type prediction struct {
	queue        string
	score        float32 // softmax probability
	margin       float32 // logit of the best queue minus the second best; 0 where there is one queue
	scores       []result.QueueScore
	best, second int // second is -1 where there is one queue
}

func (r *runner) predict(x *router.Reading) prediction {
	queues := r.o.Router.Queues()
	p := prediction{scores: make([]result.QueueScore, len(queues))}
	p.best, p.second = x.Best()
	softmax := make([]float32, len(queues))
	x.Softmax(softmax)
	for i, q := range queues {
		p.scores[i] = result.QueueScore{Queue: q, Score: softmax[i]}
	}
	p.queue, p.score = queues[p.best], softmax[p.best]
	if p.second >= 0 {
		p.margin = x.Logits[p.best] - x.Logits[p.second]
	}
	return p
}

// marginOf is the logit of the label minus the best other; NaN where the router does not know it.
func (p *prediction) marginOf(label string, x *router.Reading) float32 {
	for i, s := range p.scores {
		rival := p.best
		if p.best == i {
			rival = p.second
		}
		if s.Queue == label && rival >= 0 {
			return x.Logits[i] - x.Logits[rival]
		}
	}
	return float32(math.NaN())
}

// others reads the message in the further ways that were asked for: only a setting that cuts it can
// read it differently.
func (r *runner) others(ctx context.Context, s router.Session, j *job) {
	whole, _ := r.o.Router.Whole()
	if j.row.Cut() {
		if r.o.Whole && (!r.reread(ctx, s, j, result.ReadWhole, whole) || !r.decisive(ctx, s, j)) {
			return
		}
		for k := range r.o.Placebos {
			set := r.o.Setting
			set.Placebo, set.Seed = true, r.o.Seed+uint64(k)
			if !r.reread(ctx, s, j, result.ReadPlacebo, set) {
				return
			}
		}
	} else if r.o.Control > 0 && fraction(j.row.ContentSHA256, r.o.Control) {
		if !r.reread(ctx, s, j, result.ReadControl, whole) {
			return
		}
	}
	for _, set := range r.o.Others {
		if set.MaxTokens == 0 || set.MaxTokens >= int(j.row.TokensTotal) || set == r.o.Setting {
			continue
		}
		if !r.reread(ctx, s, j, result.ReadSetting, set) {
			return
		}
	}
}

// fraction picks one message in n by its content, so that the choice does not depend on the order.
func fraction(sha string, n int) bool {
	h := fnv.New32a()
	h.Write([]byte(sha))
	return h.Sum32()%uint32(n) == 0
}

func (r *runner) reread(ctx context.Context, s router.Session, j *job, kind string, set router.Setting) bool {
	var reading router.Reading
	start := time.Now()
	if !r.ask(ctx, s, j, set, &reading) {
		return false
	}
	p := r.predict(&reading)
	out := result.Reading{
		Source: j.row.Source, Member: j.row.Member, RecordNo: j.row.RecordNo,
		Kind: kind, Cap: clamp32(set.MaxTokens), Strategy: set.Strategy.String(),
		Prediction: p.queue, Score: p.score, Margin: p.margin, LabelMargin: p.marginOf(j.row.Label, &reading),
		TokensKept: clamp32(reading.TokensKept), Windows: clamp32(reading.Windows),
		Cells: reading.Cells, FLOPs: reading.FLOPs, Nanos: time.Since(start).Nanoseconds(),
	}
	if set.Placebo {
		out.Seed = int64(set.Seed)
	}
	j.readings = append(j.readings, out)
	return true
}

// decisive looks for the sentence that decides, where the cut changed the outcome: only there does a
// person need to see it. It adds it to the whole reading, the last one made.
func (r *runner) decisive(ctx context.Context, s router.Session, j *job) bool {
	whole := &j.readings[len(j.readings)-1]
	if whole.Prediction == j.row.Prediction || j.row.Label == "" || j.enc.Tokens() > maxOccludedTokens {
		return true
	}
	queue := slices.Index(r.o.Router.Queues(), j.row.Label)
	if queue < 0 {
		return true
	}
	d, found, err := router.Decide(ctx, r.o.Router, s, j.enc, queue)
	if err != nil {
		j.fail(stageScore, CodeRouter, err.Error())
		return false
	}
	if found {
		whole.DecisiveFrom, whole.DecisiveTo = clamp32(d.Tokens.Start), clamp32(d.Tokens.End)
		whole.DecisiveZone = r.zone(j, d.Bytes.Start)
	}
	return true
}

// Occlusion reads a message once a sentence: up to here that is work for a moment, beyond it a message
// would hold up the run.
const maxOccludedTokens = 4096

// zone names the part of the message that byte at of the reading stands in.
func (r *runner) zone(j *job, at int) string {
	if r.o.Subject && j.text.Subject != "" {
		if at < len(j.text.Subject) {
			return "subject"
		}
		at -= len(j.text.Reading(true)) - len(j.text.Body)
	}
	for _, s := range j.text.Spans {
		if at >= s.From && at < s.To {
			return string(s.Zone)
		}
	}
	return "own"
}

// ask reads once; a failure rejects the message, unless the whole run is ending.
func (r *runner) ask(ctx context.Context, s router.Session, j *job, set router.Setting, dst *router.Reading) bool {
	if err := s.Read(ctx, j.enc, set, dst); err != nil {
		if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
			j.fail(stageScore, CodeRouter, err.Error())
		}
		return false
	}
	for _, v := range dst.Logits {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			j.fail(stageScore, CodeNotFinite, fmt.Sprintf("a logit is %v (%s)", v, set.Name()))
			return false
		}
	}
	return true
}

// asRouted takes the deployed router's decision for the prediction.
func (r *runner) asRouted(j *job) {
	if j.row.Routed == "" {
		j.fail(stageScore, CodeNotRouted, "the export does not say where the message went")
		return
	}
	j.row.Prediction = j.row.Routed
	j.row.TokensKept = j.row.TokensTotal
	j.row.Kept = []result.Range{{From: 0, To: j.row.TokensTotal}}
	j.row.Strategy = window.KeepHead.String()
}
