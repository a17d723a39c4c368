package attention

import "fmt"

// Shares takes a message's logits apart: row t of the result is what token t adds to each label's
// logit (T x labels, flat), and the rows and the bias add up to [Bag.Logits]. A feature's part is
// split evenly over the places where the message says it, a run of words evenly over its words, a
// word evenly over its pieces. Nothing is approximated: the router is a sum, and this is the sum.
func (b *Bag) Shares(ids []int32) ([]float32, error) {
	labels := len(b.config.Labels)
	if err := b.config.check(make([]float32, labels), Input{IDs: ids}); err != nil {
		return nil, err
	}
	places := map[int32][][]bagWord{} // a feature's row: the words of each place
	words := b.words(ids)
	for run := range b.runs(words) {
		if row := b.index.row(b.t.Keys, gramOf(run)); row >= 0 {
			places[row] = append(places[row], run)
		}
	}
	for run := range b.runs(words[:min(b.rules.Opening, len(words))]) {
		if row := b.index.row(b.t.Keys, openingGram(gramOf(run))); row >= 0 {
			places[row] = append(places[row], run)
		}
	}
	var s BagFeatures
	b.Features(&s, ids, nil)
	shares := make([]float32, len(ids)*labels)
	for i, row := range s.Rows {
		if len(places[row]) == 0 {
			return nil, fmt.Errorf("feature %d has a value and no place", row)
		}
		vector := b.t.Vectors[int(row)*labels:][:labels]
		place := s.Values[i] / float32(len(places[row]))
		for _, words := range places[row] {
			for _, w := range words {
				part := place / float32(len(words)*(w.end-w.start))
				for t := w.start; t < w.end; t++ {
					for c, v := range vector {
						shares[t*labels+c] += part * v
					}
				}
			}
		}
	}
	return shares, nil
}

// bagWord is one word of a message: its hash and its tokens.
type bagWord struct {
	hash       uint64
	start, end int
}

// gramOf is the hash of a run of words, as [BagGrams] makes it.
func gramOf(words []bagWord) uint64 {
	hashes := make([]uint64, len(words))
	for i, w := range words {
		hashes[i] = w.hash
	}
	var last uint64
	n := 0
	// The words come first, then the runs from the first word on, the whole run last of these.
	BagGrams(hashes, len(words), nil, func(h uint64) {
		if n++; n <= 2*len(words)-1 {
			last = h
		}
	})
	return last
}

// runs yields the words, and every run of up to Grams words with stop words passed over: the features
// of [BagGrams] with their places.
func (b *Bag) runs(words []bagWord) func(yield func([]bagWord) bool) {
	return func(yield func([]bagWord) bool) {
		var kept []bagWord
		for i, w := range words {
			if !yield(words[i : i+1]) {
				return
			}
			if _, stop := b.stops[w.hash]; !stop {
				kept = append(kept, w)
			}
		}
		for i := range kept {
			for n := 1; n < b.rules.Grams && i+n < len(kept); n++ {
				if !yield(kept[i : i+n+1]) {
					return
				}
			}
		}
	}
}

// words gives the words of [BagWords] with their tokens: a word runs to the next token that does not
// continue it, and has no hash of its own where BagWords reads none.
func (b *Bag) words(ids []int32) []bagWord {
	var words []bagWord
	for i := 0; i < len(ids); {
		end := i + 1
		if b.t.Kinds[ids[i]] != BagIgnored {
			for end < len(ids) && b.t.Kinds[ids[end]] == BagContinues {
				end++
			}
		}
		if h := BagWords(nil, ids[i:end], nil, b.t.Kinds); len(h) == 1 {
			words = append(words, bagWord{h[0], i, end})
		}
		i = end
	}
	return words
}
