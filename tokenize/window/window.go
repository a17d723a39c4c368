package window

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"misroute/tokenize"
)

// Strategy says which tokens are kept over the cap.
type Strategy int

const (
	// KeepHead keeps the first tokens.
	KeepHead Strategy = iota
	// KeepTail keeps the last ones.
	KeepTail
	// KeepHeadTail keeps HeadTokens first ones and fills up with the last ones (Sun et al. 2019, "How to
	// Fine-Tune BERT for Text Classification?", section 5.3.1: 128 and 382 of 510).
	KeepHeadTail
	// KeepWindows reads everything in several windows whose logits are aggregated.
	KeepWindows
	// KeepSmart keeps the most telling sentences, in their order.
	KeepSmart
)

var strategyNames = [...]string{"head", "tail", "head+tail", "windows", "smart"}

func (s Strategy) String() string {
	if s < 0 || int(s) >= len(strategyNames) {
		return fmt.Sprintf("strategy(%d)", int(s))
	}
	return strategyNames[s]
}

// ParseStrategy reads the name of a strategy.
func ParseStrategy(name string) (Strategy, error) {
	if i := slices.Index(strategyNames[:], name); i >= 0 {
		return Strategy(i), nil
	}
	return 0, fmt.Errorf("unknown strategy %q; known: %s", name, strings.Join(strategyNames[:], ", "))
}

// Options say how a message is cut to the cap.
type Options struct {
	MaxTokens  int // the cap: tokens of one window, specials included; 0 means no cap
	Strategy   Strategy
	HeadTokens int  // head+tail: tokens kept at the start; 0 means a quarter of the room (Sun et al.: 128 of 510)
	Overlap    int  // windows: tokens that neighbours share, 0 <= Overlap < room
	FromEnd    bool // windows: laid from the end of the message backwards, the last window first
	Aggregate  Aggregation
	// AsReference also lays windows for a cap of the specials alone, as the Hugging Face library 0.22.2
	// does: one of the specials, and one with everything, over the cap. No model is served by that; it is
	// there to compare.
	AsReference bool
	// Importance rates tokens for the smart strategy: the weight of a token id in a cheap linear router.
	// Without one, rare tokens count as telling.
	Importance func(id int32) float32
	// SentenceEnd says for the smart strategy whether a sentence ends with a token, given the one after it
	// and whether white space lies between them; see SentenceEnds.
	SentenceEnd func(id, next int32, gap bool) bool
}

// Range is a half-open range, of token indices or of bytes as the field that holds it says.
type Range struct{ Start, End int }

// Window is one sequence for the model.
type Window struct {
	IDs       []int32 // specials included
	TypeIDs   []int32
	Positions []int32 // index in the encoding of each token
}

// Plan is how one message is read. Its slices are reused by the next Plan.
type Plan struct {
	Total        int      // tokens of the message before cutting, specials included
	Windows      []Window // at least one
	Kept         []Range  // indices of the encoding's text tokens that some window reads
	Dropped      []Range  // those that none reads
	DroppedBytes []Range  // the bytes of the message that Dropped stands for

	ids, types, positions []int32
	smart                 smartScratch
}

// KeptTokens is the number of the message's own tokens some window reads.
func (p *Plan) KeptTokens() int {
	n := 0
	for _, r := range p.Kept {
		n += r.End - r.Start
	}
	return n
}

// Truncated says whether tokens were cut.
func (p *Plan) Truncated() bool { return len(p.Dropped) > 0 }

// Planner cuts messages to a cap. It is immutable and safe for goroutines.
type Planner struct {
	before, after []int32
	room          int // tokens of the message in one window; 0: no cap
	head          int
	bare          bool // a cap of the specials alone: see Options.AsReference
	o             Options
}

// NewPlanner checks the options against the specials that Tokenizer.Specials returns.
func NewPlanner(before, after []int32, o Options) (*Planner, error) {
	p := &Planner{before: before, after: after, o: o}
	specials := len(before) + len(after)
	switch {
	case o.Strategy < 0 || int(o.Strategy) >= len(strategyNames):
		return nil, fmt.Errorf("unknown %v", o.Strategy)
	case o.MaxTokens < 0:
		return nil, fmt.Errorf("a cap of %d tokens: must be positive, or 0 for none", o.MaxTokens)
	case o.Overlap < 0:
		return nil, fmt.Errorf("an overlap of %d tokens: must not be negative", o.Overlap)
	}
	if o.MaxTokens == 0 {
		return p, nil
	}
	p.room = o.MaxTokens - specials
	if p.room == 0 && o.AsReference {
		p.bare = true
		return p, nil
	}
	if p.room < 1 {
		return nil, fmt.Errorf("a cap of %d tokens leaves no room beside the %d specials: at least %d", o.MaxTokens, specials, specials+1)
	}
	if o.Strategy == KeepWindows && o.Overlap >= p.room {
		return nil, fmt.Errorf("an overlap of %d tokens does not fit windows of %d (cap %d less %d specials): at most %d",
			o.Overlap, p.room, o.MaxTokens, specials, p.room-1)
	}
	if o.Strategy == KeepHeadTail {
		p.head = o.HeadTokens
		if p.head == 0 {
			p.head = (p.room + 2) / 4 // rounded; 128 of 510
		}
		if p.head < 0 || p.head > p.room {
			return nil, fmt.Errorf("%d head tokens do not fit a room of %d (cap %d less %d specials)", o.HeadTokens, p.room, o.MaxTokens, specials)
		}
	}
	return p, nil
}

// Plan fills dst with how the message is read. The encoding must carry the specials the planner was
// made for.
func (p *Planner) Plan(dst *Plan, enc *tokenize.Encoding) error {
	first, last := len(p.before), len(enc.IDs)-len(p.after)
	if first > last || !slices.Equal(enc.IDs[:first], p.before) || !slices.Equal(enc.IDs[last:], p.after) {
		return errors.New("the encoding does not carry the specials of the tokenizer the planner was made for")
	}
	dst.reset(len(enc.IDs))
	n := last - first
	switch {
	case p.bare && n > 0:
		p.window(dst, enc, Range{first, first})
		if p.o.Strategy == KeepWindows {
			p.window(dst, enc, Range{first, last})
		}
	case p.room == 0 || n <= p.room:
		p.window(dst, enc, Range{first, last})
	default:
		p.cut(dst, enc, first, last)
	}
	dst.finish(enc, first, last)
	return nil
}

// cut lays the windows of a message that is over the cap.
func (p *Planner) cut(dst *Plan, enc *tokenize.Encoding, first, last int) {
	switch p.o.Strategy {
	case KeepHead:
		p.window(dst, enc, Range{first, first + p.room})
	case KeepTail:
		p.window(dst, enc, Range{last - p.room, last})
	case KeepHeadTail:
		p.window(dst, enc, Range{first, first + p.head}, Range{last - (p.room - p.head), last})
	case KeepWindows:
		step := p.room - p.o.Overlap
		if p.o.FromEnd {
			for end := last; ; end -= step {
				start := max(first, end-p.room)
				p.window(dst, enc, Range{start, end})
				if start == first {
					return
				}
			}
		}
		for start := first; ; start += step {
			end := min(last, start+p.room)
			p.window(dst, enc, Range{start, end})
			if end == last {
				return
			}
		}
	case KeepSmart:
		p.window(dst, enc, p.sentences(dst, enc, first, last)...)
	}
}

// window appends a window of the given ranges of the encoding between the specials.
func (p *Planner) window(dst *Plan, enc *tokenize.Encoding, parts ...Range) {
	from := len(dst.ids)
	dst.take(enc, Range{0, len(p.before)})
	for _, r := range parts {
		dst.take(enc, r)
		if r.Start < r.End {
			dst.Kept = append(dst.Kept, r)
		}
	}
	dst.take(enc, Range{len(enc.IDs) - len(p.after), len(enc.IDs)})
	dst.Windows = append(dst.Windows, Window{Positions: dst.positions[from:]})
}

func (d *Plan) reset(total int) {
	d.Total = total
	d.Windows, d.Kept = d.Windows[:0], d.Kept[:0]
	d.Dropped, d.DroppedBytes = d.Dropped[:0], d.DroppedBytes[:0]
	d.ids, d.types, d.positions = d.ids[:0], d.types[:0], d.positions[:0]
}

func (d *Plan) take(enc *tokenize.Encoding, r Range) {
	d.ids = append(d.ids, enc.IDs[r.Start:r.End]...)
	d.types = append(d.types, enc.TypeIDs[r.Start:r.End]...)
	for i := r.Start; i < r.End; i++ {
		d.positions = append(d.positions, int32(i))
	}
}

// finish hands out the windows' slices, now that their memory stands still, and works out what was
// dropped.
func (d *Plan) finish(enc *tokenize.Encoding, first, last int) {
	at := 0
	for i := range d.Windows {
		w := &d.Windows[i]
		n := at + len(w.Positions)
		w.IDs, w.TypeIDs, w.Positions = d.ids[at:n:n], d.types[at:n:n], d.positions[at:n:n]
		at = n
	}
	slices.SortFunc(d.Kept, func(a, b Range) int { return a.Start - b.Start })
	merged := d.Kept[:0]
	for _, r := range d.Kept {
		if n := len(merged); n > 0 && r.Start <= merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, r.End)
		} else {
			merged = append(merged, r)
		}
	}
	d.Kept = merged
	at = first
	for _, r := range d.Kept {
		d.drop(enc, at, r.Start)
		at = r.End
	}
	d.drop(enc, at, last)
}

// drop records tokens [start, end) as dropped. Their bytes run from the first's start to the last's
// end; bytes that a kept neighbour stands for as well (the parts of one character) stay kept.
func (d *Plan) drop(enc *tokenize.Encoding, start, end int) {
	if start >= end {
		return
	}
	d.Dropped = append(d.Dropped, Range{start, end})
	from, to := int(enc.Start[start]), int(enc.End[end-1])
	if start > 0 && !enc.Special[start-1] {
		from = max(from, int(enc.End[start-1]))
	}
	if end < len(enc.IDs) && !enc.Special[end] {
		to = min(to, int(enc.Start[end]))
	}
	if from < to {
		d.DroppedBytes = append(d.DroppedBytes, Range{from, to})
	}
}
