package tokenize

import "container/heap"

// pair is two neighbouring symbols of a word.
type pair struct{ a, b int32 }

// mergeLearner runs byte-pair encoding over counted words: again and again it joins the most frequent
// pair of neighbours into a new symbol (Sennrich et al. 2016, section 3.2). Pair counts are kept up
// to date rather than counted anew, with the words of each pair at hand, so the work is proportional
// to the symbols that change.
type mergeLearner struct {
	symbols []int32 // all words, one after the other; gone symbols are cut off at the word's end
	starts  []int32 // of word i: symbols[starts[i]:ends[i]]
	ends    []int32
	counts  []int64

	pairs map[pair]*pairInfo
	queue pairQueue

	join   func(a, b int32) int32 // the symbol for a joined with b
	merged func(a, b, to int32)   // told of every merge
}

type pairInfo struct {
	pair
	count  int64
	queued int64   // the count under which it stands in the queue
	words  []int32 // words that have or had the pair; some more than once
}

// pairQueue orders by count, greatest first; equal counts by the symbols' numbers, smallest first, so
// that a run always learns the same vocabulary.
type pairQueue []queued

type queued struct {
	count int64
	info  *pairInfo
}

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	x, y := q[i], q[j]
	if x.count != y.count {
		return x.count > y.count
	}
	if x.info.a != y.info.a {
		return x.info.a < y.info.a
	}
	return x.info.b < y.info.b
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *pairQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// add takes a word of at least one symbol.
func (l *mergeLearner) add(word []int32, count int64) {
	l.starts = append(l.starts, int32(len(l.symbols)))
	l.symbols = append(l.symbols, word...)
	l.ends = append(l.ends, int32(len(l.symbols)))
	l.counts = append(l.counts, count)
}

func (l *mergeLearner) change(a, b int32, count int64, word int32) *pairInfo {
	p := pair{a, b}
	info := l.pairs[p]
	if info == nil {
		info = &pairInfo{pair: p}
		l.pairs[p] = info
	}
	info.count += count
	if count > 0 && (len(info.words) == 0 || info.words[len(info.words)-1] != word) {
		info.words = append(info.words, word)
	}
	return info
}

// run merges pairs that occur at least minCount times while more() says so.
func (l *mergeLearner) run(minCount int64, more func() bool) {
	l.pairs = map[pair]*pairInfo{}
	for w := range l.starts {
		word := l.symbols[l.starts[w]:l.ends[w]]
		for i := 1; i < len(word); i++ {
			l.change(word[i-1], word[i], l.counts[w], int32(w))
		}
	}
	for _, info := range l.pairs {
		info.queued = info.count
		l.queue = append(l.queue, queued{info.count, info})
	}
	heap.Init(&l.queue)
	for more() && l.queue.Len() > 0 {
		top := heap.Pop(&l.queue).(queued)
		info := top.info
		if top.count != info.queued { // a later entry stands for it
			continue
		}
		if info.count != info.queued { // fell since it was queued
			info.queued = info.count
			if info.count >= minCount {
				heap.Push(&l.queue, queued{info.count, info})
			}
			continue
		}
		if info.count < minCount {
			return
		}
		l.merge(info)
	}
}

// merge joins the pair everywhere.
func (l *mergeLearner) merge(info *pairInfo) {
	to := l.join(info.a, info.b)
	l.merged(info.a, info.b, to)
	words := info.words
	info.words, info.count, info.queued = nil, 0, 0
	var grown []*pairInfo
	for i, w := range words {
		if i > 0 && words[i-1] == w {
			continue
		}
		grown = l.mergeWord(w, info.pair, to, grown)
	}
	delete(l.pairs, info.pair)
	for _, g := range grown {
		if g.count > g.queued {
			g.queued = g.count
			heap.Push(&l.queue, queued{g.count, g})
		}
	}
}

// mergeWord joins the pair in one word from left to right and appends the pairs that became more
// frequent to grown.
func (l *mergeLearner) mergeWord(w int32, p pair, to int32, grown []*pairInfo) []*pairInfo {
	word := l.symbols[l.starts[w]:l.ends[w]]
	count := l.counts[w]
	out := 0
	for i := 0; i < len(word); i++ {
		if i+1 == len(word) || word[i] != p.a || word[i+1] != p.b {
			word[out] = word[i]
			out++
			continue
		}
		if out > 0 {
			l.change(word[out-1], p.a, -count, w)
			grown = append(grown, l.change(word[out-1], to, count, w))
		}
		if i+2 < len(word) {
			l.change(p.b, word[i+2], -count, w)
			grown = append(grown, l.change(to, word[i+2], count, w))
		}
		word[out] = to
		out++
		i++
	}
	l.ends[w] = l.starts[w] + int32(out)
	return grown
}
