package window

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

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

// sentences picks the ranges of the smart strategy: sentences are ranked by importance and taken until
// the room is full, and read in the order of the text (after Fiok et al. 2021, "Text Guide", which
// picks by the words that a cheap model finds telling). The first sentence that does not fit is cut
// to what is left, so that every strategy reads as many tokens as the cap allows.
func (p *Planner) sentences(dst *Plan, enc *tokenize.Encoding, first, last int) []Range {
	s := dst.smart.sentences[:0]
	start := first
	for i := first; i < last; i++ {
		if i+1 < last && !p.ends(enc, start, i) {
			continue
		}
		s = append(s, sentence{Range{start, i + 1}, p.weigh(enc, start, i+1)})
		start = i + 1
	}
	slices.SortFunc(s, func(a, b sentence) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Start, b.Start))
	})
	dst.smart.sentences = s
	picked, left := dst.smart.picked[:0], p.room
	for _, x := range s {
		if left == 0 {
			break
		}
		x.End = min(x.End, x.Start+left)
		left -= x.End - x.Start
		picked = append(picked, x.Range)
	}
	slices.SortFunc(picked, func(a, b Range) int { return a.Start - b.Start })
	dst.smart.picked = picked
	return picked
}

// A sentence has at least 4 tokens ("1." ends none) and at most 48: a signature or a table without full
// stops must not win or lose as one.
const (
	minSentence = 4
	maxSentence = 48
)

// ends says whether the sentence from start on ends with token i. Where the tokens that end sentences
// are not known, a gap of more than one byte between tokens stands in for them: a paragraph.
func (p *Planner) ends(enc *tokenize.Encoding, start, i int) bool {
	n := i + 1 - start
	switch {
	case n >= maxSentence:
		return true
	case n < minSentence:
		return false
	}
	gap := enc.Start[i+1] - enc.End[i]
	return gap > 1 || p.o.SentenceEnd != nil && p.o.SentenceEnd(enc.IDs[i], enc.IDs[i+1], gap > 0)
}

// weigh is the mean importance of the tokens [start, end), by size: a word that speaks against a queue
// tells as much as one that speaks for it.
func (p *Planner) weigh(enc *tokenize.Encoding, start, end int) float32 {
	importance := p.o.Importance
	if importance == nil {
		importance = rankImportance
	}
	var sum float32
	for _, id := range enc.IDs[start:end] {
		w := importance(id)
		sum += max(w, -w)
	}
	return sum / float32(end-start)
}

// rankImportance stands in for a linear router's weights: vocabularies are numbered from frequent to
// rare, near enough, and by Zipf's law (frequency ~ 1/rank) the logarithm of the rank is a token's
// self-information up to a constant.
func rankImportance(id int32) float32 { return float32(math.Log2(float64(max(id, 0)) + 1)) }

// SentenceEnds returns Options.SentenceEnd for a tokenizer: a closing mark, with white space after it,
// which in some vocabularies is part of the next token.
func SentenceEnds(t *tokenize.Tokenizer) func(id, next int32, gap bool) bool {
	const spaces = "\u0120\u2581 "
	closes, starts := make([]bool, t.MaxID()+1), make([]bool, t.MaxID()+1)
	for id := range closes {
		token := t.Token(int32(id))
		r, _ := utf8.DecodeRuneInString(token)
		starts[id] = strings.ContainsRune(spaces+"\u010a", r)
		switch strings.TrimLeft(strings.TrimPrefix(token, "##"), spaces) {
		case ".", "!", "?", "...", "!!", "!!!", "?!", "??", "\u2026", "\u3002", "\uff01", "\uff1f", "\u010a":
			closes[id] = true
		}
	}
	has := func(set []bool, id int32) bool { return id >= 0 && int(id) < len(set) && set[id] }
	return func(id, next int32, gap bool) bool { return has(closes, id) && (gap || has(starts, next)) }
}
