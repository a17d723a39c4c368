package window

import (
	"cmp"
	"slices"

	"misroute/tokenize"
)

// smartScratch is memory of the smart strategy.
type smartScratch struct {
	sentences []sentence
	picked    []Range
}

// sentence is a run of tokens with how much it tells.
type sentence struct {
	Range
	weight float32
}

// sentences picks the ranges of the smart strategy: sentences are ranked by importance and taken
// until the room is full, and read in the order of the text (after Fiok et al. 2021, "Text Guide",
// which picks by the words that a cheap model finds telling). The first sentence that does not fit
// is cut to what is left, so that every strategy reads as many tokens as the cap allows.
func (p *Planner) sentences(dst *Plan, enc *tokenize.Encoding, first, last int) []Range {
	s := dst.smart.sentences[:0]
	start := first
	for i := first; i < last; i++ {
		// A sentence ends where white space follows and the token closes one, or at a gap that holds a
		// line break; token ids alone do not show it, so the length of the gap stands in for it.
		if i+1 < last && !p.ends(enc, start, i) {
			continue
		}
		s = append(s, sentence{Range{start, i + 1}, p.weigh(enc, start, i+1)})
		start = i + 1
	}
	slices.SortStableFunc(s, func(a, b sentence) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Start, b.Start))
	})
	dst.smart.sentences = s
	picked, left := dst.smart.picked[:0], p.room
	for _, x := range s {
		if left == 0 {
			break
		}
		if n := x.End - x.Start; n > left {
			x.End = x.Start + left
		}
		left -= x.End - x.Start
		picked = append(picked, x.Range)
	}
	slices.SortFunc(picked, func(a, b Range) int { return a.Start - b.Start })
	dst.smart.picked = picked
	return picked
}

// sentenceTokens is the length of a unit of the smart strategy.
const sentenceTokens = 24

func (p *Planner) ends(enc *tokenize.Encoding, start, i int) bool {
	gap := enc.Start[i+1] - enc.End[i]
	return i+1-start >= sentenceTokens || gap >= 2 && i+1-start >= sentenceTokens/4
}

// weigh is the mean importance of the tokens [start, end), by size: a word that speaks against a queue
// tells as much as one that speaks for it.
func (p *Planner) weigh(enc *tokenize.Encoding, start, end int) float32 {
	var sum float32
	for _, id := range enc.IDs[start:end] {
		w := p.o.Importance(id)
		sum += max(w, -w)
	}
	return sum / float32(end-start)
}
