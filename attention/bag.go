package attention

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// BagModelType is the model_type of a [Bag] in config.json.
const BagModelType = "misroute-bag"

// What a token id means to a [Bag], one byte an id. The bag sees ids, never text; whoever trains it
// looks at the tokenizer once and writes these down.
const (
	BagIgnored   = 0 // specials and punctuation: neither a word nor a break between words
	BagStart     = 1 // begins a word
	BagContinues = 2 // continues the word before it, as "##ing" does
	BagShort     = 3 // begins a word, but is too short to be one alone (a single letter)
)

// BagRules are the fixed rules of a [Bag], stored in config.json: how tokens become features.
type BagRules struct {
	Grams     int  `json:"grams"`     // longest run of words that is one feature: 1 words, 2 pairs as well
	Sublinear bool `json:"sublinear"` // a count c weighs 1 + ln c, so that a word said ten times is not ten words
	Normalize bool `json:"normalize"` // unit length per message; otherwise the mean over the features read
	// The first Opening words, where the subject and the point of a mail mostly stand, count once more, as
	// features of their own whose length is OpeningShare of the others'. 0: they do not.
	Opening      int     `json:"opening,omitempty"`
	OpeningShare float32 `json:"opening_share,omitempty"`
}

// Bag is the router without context. Every word has one fixed vector, whatever stands around it; the
// message is their average, and a linear layer over it picks the queue. Since nothing nonlinear
// stands between the vectors and the layer, the two are stored multiplied: a feature's vector has one
// number a queue. With Grams > 1 runs of words are features of their own, which is all the context
// this router ever has.
//
// Words are put together again from the tokenizer's pieces (see [BagStart]), so that a rare word is
// still one feature. A feature that training did not keep weighs nothing.
//
// A Bag is immutable and safe for goroutines.
type Bag struct {
	config Config
	rules  BagRules
	t      BagTensors
	stops  map[uint64]struct{}
	index  gramIndex
}

// BagTensors are the arrays a [Bag] is made of.
type BagTensors struct {
	Kinds   []uint8   // [V] see [BagStart]
	Stops   []uint64  // hashes of words so common that runs pass over them
	Keys    []uint64  // [F] hashes of the features, strictly ascending
	Scale   []float32 // [F] inverse document frequency
	Vectors []float32 // [F][labels]
	Bias    []float32 // [labels]
}

// NewBag checks the shapes of t against each other and builds the router. It keeps the slices.
// Of c it reads Labels, VocabSize and TrainedCap.
func NewBag(c Config, rules BagRules, t BagTensors) (*Bag, error) {
	labels, f := len(c.Labels), len(t.Keys)
	switch {
	case labels < 2:
		return nil, fmt.Errorf("%d queues; a router needs at least two", labels)
	case rules.Grams < 1 || rules.Grams > maxGrams:
		return nil, fmt.Errorf("grams is %d; it must be 1 to %d", rules.Grams, maxGrams)
	case rules.Opening < 0 || rules.Opening > 0 && !(rules.OpeningShare > 0 && rules.OpeningShare <= 1):
		return nil, fmt.Errorf("an opening of %d words with a share of %g: want a number of words and a share over 0, up to 1", rules.Opening, rules.OpeningShare)
	case len(t.Kinds) != c.VocabSize:
		return nil, fmt.Errorf("%d token kinds for a vocabulary of %d", len(t.Kinds), c.VocabSize)
	case len(t.Scale) != f:
		return nil, fmt.Errorf("%d scales for %d features", len(t.Scale), f)
	case len(t.Vectors) != f*labels:
		return nil, fmt.Errorf("%d numbers in the vectors of %d features and %d queues", len(t.Vectors), f, labels)
	case len(t.Bias) != labels:
		return nil, fmt.Errorf("%d biases for %d queues", len(t.Bias), labels)
	}
	for i := 1; i < f; i++ {
		if t.Keys[i] <= t.Keys[i-1] {
			return nil, fmt.Errorf("the feature keys are not strictly ascending at %d", i)
		}
	}
	c.ModelType, c.Layers, c.Heads, c.Hidden, c.Positions = BagModelType, 0, 0, labels, 0
	b := &Bag{config: c, rules: rules, t: t, stops: make(map[uint64]struct{}, len(t.Stops)), index: newGramIndex(t.Keys)}
	for _, s := range t.Stops {
		b.stops[s] = struct{}{}
	}
	return b, nil
}

// maxGrams bounds the work a token can ask for.
const maxGrams = 8

// Config describes the router: no layers, no heads, no limit on positions.
func (b *Bag) Config() *Config { return &b.config }

// Rules are how the router turns tokens into features.
func (b *Bag) Rules() BagRules { return b.rules }

// Tensors are the router's arrays, not to be changed.
func (b *Bag) Tensors() BagTensors { return b.t }

// Parameters counts the vectors, the scales and the biases.
func (b *Bag) Parameters() int64 {
	return int64(len(b.t.Vectors) + len(b.t.Scale) + len(b.t.Bias))
}

// Kernel is "generic": the sums are over a few hundred rows of a few numbers, too short for more.
func (b *Bag) Kernel() string { return "generic" }

// Precision is "float32".
func (b *Bag) Precision() string { return "float32" }

// NewWorkspace makes the scratch memory of one goroutine.
func (b *Bag) NewWorkspace() *Workspace { return &Workspace{} }

// Cost has no score grid; every token starts up to Grams features of one multiply-add a queue.
func (b *Bag) Cost(tokens int) (cells, flops int64) {
	return 0, 2 * int64(tokens) * int64(b.rules.Grams) * int64(len(b.config.Labels))
}

// Logits adds up the vectors of the message's features, weighted by tf-idf, and the bias.
func (b *Bag) Logits(dst []float32, in Input, ws *Workspace) error {
	if err := b.config.check(dst, in); err != nil {
		return err
	}
	s := &ws.bag
	b.Features(s, in.IDs, in.Mask)
	copy(dst, b.t.Bias)
	for i, row := range s.Rows {
		v := s.Values[i]
		vector := b.t.Vectors[int(row)*len(dst):][:len(dst)]
		for c := range dst {
			dst[c] += v * vector[c]
		}
	}
	return nil
}

// BagWords appends to dst one hash a word of ids: pieces joined, ignored tokens left out. mask may be
// nil; a masked-out token is not read.
func BagWords(dst []uint64, ids []int32, mask []uint8, kinds []uint8) []uint64 {
	var word uint64
	pieces, short := 0, false
	flush := func() {
		if pieces > 1 || pieces == 1 && !short {
			dst = append(dst, word)
		}
		pieces = 0
	}
	for i, id := range ids {
		if mask != nil && mask[i] == 0 {
			continue
		}
		switch kind := kinds[id]; {
		case kind == BagContinues && pieces > 0:
			word = mixGram(word, uint64(id)+1)
			pieces++
		case kind == BagIgnored:
			flush()
		default:
			flush()
			word, pieces, short = mixGram(0, uint64(id)+1), 1, kind == BagShort
		}
	}
	flush()
	return dst
}

// BagGrams calls add with the hash of every word, and of every run of 2 to grams words in which stop
// words are passed over: "state of the art" holds the pair "state art". It rearranges words.
func BagGrams(words []uint64, grams int, stops map[uint64]struct{}, add func(uint64)) {
	kept := words[:0]
	for _, w := range words {
		add(w)
		if _, stop := stops[w]; !stop {
			kept = append(kept, w)
		}
	}
	for i := range kept {
		h := kept[i]
		for n := 1; n < grams && i+n < len(kept); n++ {
			// Rotated, so that "a b" and "b a" are two features.
			h = mixGram(bits.RotateLeft64(h, 23), kept[i+n])
			add(h)
		}
	}
}

// BagKeyBits is the length of a feature's hash: two halves that float32 holds exactly, so that the
// keys are an ordinary tensor. A million features collide somewhere with a chance of 0.2 %, and a
// strange word is taken for one of them with a chance of 4e-9.
const BagKeyBits = 48

// mixGram adds x to a running hash by the finalizer of splitmix64 (Steele et al. 2014, "Fast
// Splittable Pseudorandom Number Generators"): every bit of both reaches every bit of the result.
func mixGram(h, x uint64) uint64 {
	h ^= x + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return (h ^ h>>31) & (1<<BagKeyBits - 1)
}

// gramIndex finds a feature's row by its hash: open addressing over a table twice as large as needed.
// It beats a map because the keys are hashes already.
type gramIndex struct {
	mask uint64
	slot []int32 // row + 1; 0: free
}

func newGramIndex(keys []uint64) gramIndex {
	size := 1 << bits.Len(uint(2*len(keys)))
	x := gramIndex{mask: uint64(size - 1), slot: make([]int32, size)}
	for row, k := range keys {
		at := k & x.mask
		for x.slot[at] != 0 {
			at = (at + 1) & x.mask
		}
		x.slot[at] = int32(row + 1)
	}
	return x
}

func (x *gramIndex) row(keys []uint64, k uint64) int32 {
	for at := k & x.mask; x.slot[at] != 0; at = (at + 1) & x.mask {
		if row := x.slot[at] - 1; keys[row] == k {
			return row
		}
	}
	return -1
}

// BagFeatures is one message as a [Bag] reads it, and the reused memory to read the next one.
type BagFeatures struct {
	Rows    []int32   // the features in the message, ascending
	Values  []float32 // their tf-idf values, parallel to Rows
	words   []uint64
	opening []uint64
}

// BagOpening calls add with the hashes of the words and runs of the first so many words, as features
// apart from the same words elsewhere. Like [BagGrams] it rearranges words.
func BagOpening(words []uint64, opening, grams int, stops map[uint64]struct{}, add func(uint64)) {
	BagGrams(words[:min(opening, len(words))], grams, stops, func(h uint64) { add(openingGram(h)) })
}

// openingGram is the hash of a feature of the opening, given the hash of its words.
func openingGram(h uint64) uint64 { return mixGram(h, 0x0be9191f) }

// Features reads one message into s by the bag's rules. mask may be nil.
func (b *Bag) Features(s *BagFeatures, ids []int32, mask []uint8) {
	s.words = BagWords(s.words[:0], ids, mask, b.t.Kinds)
	s.Rows, s.Values = s.Rows[:0], s.Values[:0]
	add := func(h uint64) {
		if row := b.index.row(b.t.Keys, h); row >= 0 {
			s.Rows = append(s.Rows, row)
		}
	}
	if b.rules.Opening > 0 {
		s.opening = append(s.opening[:0], s.words[:min(b.rules.Opening, len(s.words))]...)
	}
	BagGrams(s.words, b.rules.Grams, b.stops, add)
	b.weigh(s, 0, 1)
	if b.rules.Opening > 0 {
		from := len(s.Rows)
		BagOpening(s.opening, b.rules.Opening, b.rules.Grams, b.stops, add)
		b.weigh(s, from, b.rules.OpeningShare)
		s.sort(from)
	}
}

// weigh turns the rows from there on, one a feature read, into distinct ones with their values.
func (b *Bag) weigh(s *BagFeatures, from int, length float32) {
	slices.Sort(s.Rows[from:])
	read, kept := len(s.Rows), from
	sum := 0.0
	for i := from; i < read; {
		row, count := s.Rows[i], 0
		for i < read && s.Rows[i] == row {
			count++
			i++
		}
		tf := float64(count)
		if b.rules.Sublinear {
			tf = 1 + math.Log(tf)
		}
		v := tf * float64(b.t.Scale[row])
		sum += v * v
		s.Rows[kept] = row
		s.Values = append(s.Values, float32(v))
		kept++
	}
	s.Rows = s.Rows[:kept]
	if read == from {
		return
	}
	norm := length / float32(read-from)
	if b.rules.Normalize {
		norm = length * float32(1/math.Sqrt(sum))
	}
	for i := range s.Values[from:] {
		s.Values[from+i] *= norm
	}
}

// sort merges the ascending rows before and from there on.
func (s *BagFeatures) sort(from int) {
	for i := from; i < len(s.Rows); i++ {
		for j := i; j > 0 && s.Rows[j-1] > s.Rows[j]; j-- {
			s.Rows[j-1], s.Rows[j] = s.Rows[j], s.Rows[j-1]
			s.Values[j-1], s.Values[j] = s.Values[j], s.Values[j-1]
		}
	}
}
