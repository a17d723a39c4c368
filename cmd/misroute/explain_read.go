package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"misroute/attention"
	"misroute/pipeline/result"
	"misroute/pipeline/router"
	"misroute/pipeline/text"
	"misroute/reports"
	"misroute/tokenize/window"
)

// examine reads the message in every way that the report is about.
func (o *explainOptions) examine(ctx context.Context, r router.Router, m *foundMessage) (*reports.Examined, error) {
	subject := o.eval.Subject
	var enc router.Encoded
	r.Encode(&enc, []byte(m.text.Reading(subject)))
	facts := r.Facts()
	whole, reference := r.Whole()
	set := o.eval.Setting
	e := &reports.Examined{
		MessageID: m.id.MessageID, Source: m.source, Member: m.member, RecordNo: m.recordNo, Language: m.text.Language,
		Label: m.id.Label, Routed: m.id.Routed, Queues: r.Queues(), Kernel: facts.Kernel, Precision: facts.Precision,
		Cap: set.MaxTokens, Strategy: set.Strategy.String(), Quotes: o.eval.Text.Quotes, Subject: subject, Reference: reference,
		Router: result.ModelFacts{
			Name: facts.Name, Family: facts.Family, SHA256: facts.SHA256, Tokenizer: facts.Tokenizer, TokenizerSHA256: facts.TokenizerSHA256,
			Parameters: facts.Parameters, Layers: facts.Layers, Heads: facts.Heads, Hidden: facts.Hidden, Positions: facts.Positions, TrainedCap: facts.TrainedCap,
		},
		Text: enc.Text, Zones: zonesOf(&m.text, subject), Warnings: m.warnings,
	}
	if o.run != nil {
		e.RunID = o.run.Run.RunID
	}
	if m.id.HasDate {
		year, week := m.id.Date.ISOWeek()
		e.Week = fmt.Sprintf("%d-W%02d", year, week)
	}
	local, _ := r.(*router.Local)
	for i := range enc.IDs {
		t := reports.TokenAt{Start: int(enc.Start[i]), End: int(enc.End[i]), Special: enc.Special[i]}
		if local != nil {
			t.Piece = local.Tokenizer().Token(enc.IDs[i])
		}
		e.Tokens = append(e.Tokens, t)
	}
	read := reader{ctx: ctx, r: r, s: r.NewSession(), enc: &enc, whole: whole}
	if err := o.readAll(&read, e); err != nil {
		return nil, err
	}
	if local != nil {
		if err := o.lookInside(local, &enc, e); err != nil {
			return nil, err
		}
	}
	if m.row != nil {
		o.compareWithRow(e, m.row)
	}
	return e, nil
}

// zonesOf are the zones of what the tokenizer reads: the subject, then the body's own.
func zonesOf(t *text.Text, subject bool) []reports.ZoneAt {
	reading := t.Reading(subject)
	body := len(reading) - len(t.Body)
	var zones []reports.ZoneAt
	if body > 0 {
		zones = append(zones, reports.ZoneAt{From: 0, To: body, Zone: "subject"})
	}
	if len(t.Spans) == 0 && len(t.Body) > 0 {
		zones = append(zones, reports.ZoneAt{From: body, To: len(reading), Zone: string(text.Own)})
	}
	for _, s := range t.Spans {
		zones = append(zones, reports.ZoneAt{From: body + s.From, To: body + s.To, Zone: string(s.Zone)})
	}
	return zones
}

// reader reads one message in several ways.
type reader struct {
	ctx   context.Context
	r     router.Router
	s     router.Session
	enc   *router.Encoded
	whole router.Setting
}

// read gives a reading of its own, since a session reuses what it fills.
func (x *reader) read(e *router.Encoded, set router.Setting) (*router.Reading, error) {
	if err := x.ctx.Err(); err != nil {
		return nil, err
	}
	dst := &router.Reading{}
	if err := x.s.Read(x.ctx, e, set, dst); err != nil {
		return nil, fmt.Errorf("reading the message (%s): %w", set.Name(), err)
	}
	for _, v := range dst.Logits {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("reading the message (%s): a logit is %v", set.Name(), v)
		}
	}
	return dst, nil
}

func (o *explainOptions) readAll(x *reader, e *reports.Examined) error {
	set := o.eval.Setting
	atCap, err := x.read(x.enc, set)
	if err != nil {
		return err
	}
	e.AtCap = atCap.Logits
	for _, k := range atCap.Kept {
		e.Kept = append(e.Kept, result.Range{From: int32(k.Start), To: int32(k.End)})
	}
	whole, err := x.read(x.enc, x.whole)
	if err != nil {
		return err
	}
	e.Whole = whole.Logits
	if err := o.readCaps(x, e); err != nil {
		return err
	}
	if err := o.readWindows(x, e); err != nil {
		return err
	}
	target, _ := e.Target()
	all, err := router.Occlude(x.ctx, x.r, x.s, x.enc, target)
	if err != nil {
		return err
	}
	for _, d := range all {
		e.Sentences = append(e.Sentences, reports.LeftOut{FromToken: d.Tokens.Start, ToToken: d.Tokens.End, FromByte: d.Bytes.Start, ToByte: d.Bytes.End, Drop: d.Drop})
	}
	return nil
}

// readCaps reads the message at rising caps, by its own strategy where one pass cuts the message, else
// from its head. A router that cuts by itself has none.
func (o *explainOptions) readCaps(x *reader, e *reports.Examined) error {
	set := o.eval.Setting
	if set.Strategy == window.KeepWindows {
		set = router.Setting{}
	}
	for _, limit := range risingCaps(x.enc.Tokens(), o.eval.Setting.MaxTokens, x.r.Facts().Positions) {
		set.MaxTokens, set.WindowTokens = limit, 0
		if set.HeadTokens >= limit {
			set.HeadTokens = 0 // the quarter of it that is usual
		}
		if x.r.Check(set) != nil {
			continue
		}
		at, err := x.read(x.enc, set)
		if err != nil {
			return err
		}
		e.Caps = append(e.Caps, reports.ReadPart{To: limit, Kept: at.TokensKept, Logits: at.Logits})
	}
	return nil
}

// risingCaps are powers of two and their middles below the message's length, and the cap in use.
func risingCaps(tokens, limit, positions int) []int {
	var caps []int
	add := func(n int) {
		if n < tokens && (positions == 0 || n <= positions) {
			caps = append(caps, n)
		}
	}
	for n := 16; n < tokens && n < 1<<20; n *= 2 {
		add(n)
		add(n + n/2)
	}
	if limit > 0 {
		add(limit)
	}
	if positions > 0 {
		add(positions)
	}
	slices.Sort(caps)
	return slices.Compact(caps)
}

// mostWindows bounds the work, and what a person looks at.
const mostWindows = 32

// readWindows reads the whole message in stretches, each alone: those of the strategy where that is
// windows, else halves of the cap, so that the cut falls between two of them.
func (o *explainOptions) readWindows(x *reader, e *reports.Examined) error {
	first, last := 0, x.enc.Tokens()
	for first < last && x.enc.Special[first] {
		first++
	}
	for last > first && x.enc.Special[last-1] {
		last--
	}
	specials := x.enc.Tokens() - (last - first)
	room := (last - first + 3) / 4
	if limit := o.eval.Setting.MaxTokens; limit > specials {
		room = limit - specials
		if o.eval.Setting.Strategy != window.KeepWindows {
			room = (room + 1) / 2
		}
	}
	room = max(room, 8, (last-first+mostWindows-1)/mostWindows)
	most := last // of one window
	if p := x.r.Facts().Positions; p > specials {
		most = p - specials
		room = min(room, most)
	}
	if last-first <= room {
		return nil
	}
	var part router.Encoded
	for from, to := first, 0; from < last; from = to {
		to = min(last, from+room)
		// A rest of a few tokens says nothing by itself.
		if rest := last - to; rest < room/2 && last-from <= most {
			to = last
		}
		takePart(&part, x.enc, first, last, from, to)
		at, err := x.read(&part, x.whole)
		if err != nil {
			return err
		}
		e.Windows = append(e.Windows, reports.ReadPart{From: from, To: to, Kept: at.TokensKept, Logits: at.Logits})
	}
	return nil
}

// takePart makes dst the encoding of tokens [from, to) between the specials that stand before first
// and from last on. Text that is not taken becomes spaces: a deployed router is sent text.
func takePart(dst, src *router.Encoded, first, last, from, to int) {
	*dst = router.Encoded{Text: bytes.Repeat([]byte{' '}, len(src.Text))}
	copy(dst.Text[src.Start[from]:src.End[to-1]], src.Text[src.Start[from]:])
	for _, r := range [][2]int{{0, first}, {from, to}, {last, src.Tokens()}} {
		dst.IDs = append(dst.IDs, src.IDs[r[0]:r[1]]...)
		dst.TypeIDs = append(dst.TypeIDs, src.TypeIDs[r[0]:r[1]]...)
		dst.Start = append(dst.Start, src.Start[r[0]:r[1]]...)
		dst.End = append(dst.End, src.End[r[0]:r[1]]...)
		dst.Special = append(dst.Special, src.Special[r[0]:r[1]]...)
	}
}

// traceBytes is the most memory that the maps of one pass may take: a trace keeps every layer's and
// every head's.
const traceBytes = 1 << 30

// lookInside fills in the attention maps or the shares of the reading's window.
func (o *explainOptions) lookInside(l *router.Local, enc *router.Encoded, e *reports.Examined) error {
	before, after := l.Tokenizer().Specials()
	set := o.eval.Setting
	limit := set.MaxTokens
	if limit == 0 {
		limit = set.WindowTokens
	}
	p, err := window.NewPlanner(before, after, window.Options{MaxTokens: limit, Strategy: set.Strategy, HeadTokens: set.HeadTokens, Overlap: set.Overlap, Aggregate: set.Aggregate})
	if err != nil {
		return usageError(err)
	}
	var plan window.Plan
	if err := p.Plan(&plan, &enc.Encoding); err != nil {
		return err
	}
	if o.window > len(plan.Windows) {
		return usagef("--window %d: the message is read in %d", o.window, len(plan.Windows))
	}
	w := &plan.Windows[o.window-1]
	positions := make([]int, len(w.Positions))
	for i, at := range w.Positions {
		positions[i] = int(at)
	}
	if n := len(plan.Windows); n > 1 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("The router reads %d windows; the inside shown is that of window %d.", n, o.window))
	}
	model := l.Model()
	if bag, ok := model.(*attention.Bag); ok {
		shares, err := bag.Shares(w.IDs)
		if err != nil {
			return err
		}
		e.Shares = &reports.TokenShares{Positions: positions, Shares: shares, Bias: bag.Tensors().Bias}
	}
	tracer, ok := model.(attention.Tracer)
	if !ok {
		if o.layer > 0 || o.head > 0 {
			return usagef("--layer, --head: a %s router has no attention to show", l.Facts().Family)
		}
		return nil
	}
	f := l.Facts()
	if need := int64(max(1, f.Layers)) * int64(max(1, f.Heads)) * int64(len(w.IDs)) * int64(len(w.IDs)) * 4; need > traceBytes {
		e.Warnings = append(e.Warnings, fmt.Sprintf("No attention maps: those of %d tokens would take %.1f GiB; a smaller --cap shows them.", len(w.IDs), float64(need)/(1<<30)))
		return nil
	}
	trace, err := tracer.Trace(attention.Input{IDs: w.IDs, TypeIDs: w.TypeIDs})
	if err != nil {
		return err
	}
	e.Attention = &reports.WeightMaps{Positions: positions, Weights: trace.Attention, Layer: o.layer, Head: o.head}
	return nil
}

// compareWithRow warns where this reading is not the one that the run recorded.
func (o *explainOptions) compareWithRow(e *reports.Examined, row *result.Row) {
	best := 0
	for i, v := range e.AtCap {
		if v > e.AtCap[best] {
			best = i
		}
	}
	sum := 0.0
	for _, v := range e.AtCap {
		sum += math.Exp(float64(v) - float64(e.AtCap[best]))
	}
	score := 1 / sum
	if row.Prediction != e.Queues[best] || math.Abs(float64(row.Score)-score) > 1e-3 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("The run recorded %s with score %.3f, this reading says %s with %.3f: was it made with other flags?", row.Prediction, row.Score, e.Queues[best], score))
	}
	if int(row.TokensTotal) != len(e.Tokens) {
		e.Warnings = append(e.Warnings, fmt.Sprintf("The run counted %d tokens, there are %d now: was it made with other flags?", row.TokensTotal, len(e.Tokens)))
	}
}
