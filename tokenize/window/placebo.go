package window

import (
	"math/rand"
	"slices"

	"misroute/tokenize"
)

// Placebo fills dst with a plan that keeps as many tokens as a cap of maxTokens would, but drops the
// others in one span at a random place. Comparing it with a cut at the end tells what the place of
// the cut costs apart from the number of tokens (a placebo for truncation).
func Placebo(dst *Plan, enc *tokenize.Encoding, maxTokens int, rng *rand.Rand) {
	first, last := textRange(enc)
	dst.reset(len(enc.IDs))
	p := Planner{before: enc.IDs[:first], after: enc.IDs[last:]}
	excess := len(enc.IDs) - maxTokens
	if maxTokens <= 0 || excess <= 0 {
		p.window(dst, enc, Range{first, last})
	} else {
		excess = min(excess, last-first)
		at := first + rng.Intn(last-first-excess+1)
		p.window(dst, enc, Range{first, at}, Range{at + excess, last})
	}
	dst.finish(enc, first, last)
}

// textRange returns the range of the message's own tokens between the template's specials.
func textRange(enc *tokenize.Encoding) (first, last int) {
	last = len(enc.IDs)
	if first = slices.Index(enc.Special, false); first < 0 {
		return last, last
	}
	for last > first && enc.Special[last-1] {
		last--
	}
	return first, last
}
