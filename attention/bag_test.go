package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// ids of the small vocabulary below: 0 [CLS], 1 ",", 2 "cake", 3 "##s", 4 "i", 5 "refund", 6 "the"
var bagKinds = []uint8{BagIgnored, BagIgnored, BagStart, BagContinues, BagShort, BagStart, BagStart}

func words(ids ...int32) []uint64 { return BagWords(nil, ids, nil, bagKinds) }

func TestBagWordsJoinsPieces(t *testing.T) {
	cake, cakes := words(2), words(2, 3)
	if len(cake) != 1 || len(cakes) != 1 || cake[0] == cakes[0] {
		t.Fatalf("cake %x, cake ##s %x: want one word each, not the same", cake, cakes)
	}
	// Specials, punctuation and lone letters are no words; "i" with a continuation is one.
	got := words(0, 2, 3, 1, 4, 5, 0)
	if want := slices.Concat(cakes, words(5)); !slices.Equal(got, want) {
		t.Errorf("words %x, want %x", got, want)
	}
	if got := words(4, 3); len(got) != 1 {
		t.Errorf("a letter with a continuation gives %d words, want 1", len(got))
	}
	// A continuation with nothing before it begins a word: windows may start anywhere.
	if got := words(0, 3, 5); len(got) != 2 {
		t.Errorf("an orphaned continuation gives %d words in all, want 2", len(got))
	}
	if got := BagWords(nil, []int32{2, 5}, []uint8{1, 0}, bagKinds); !slices.Equal(got, cake) {
		t.Errorf("a masked-out token was read: %x", got)
	}
}

func TestBagGramsPassOverStopWords(t *testing.T) {
	the := words(6)[0]
	stops := map[uint64]struct{}{the: {}}
	grams := func(stops map[uint64]struct{}, ids ...int32) (list []uint64) {
		BagGrams(words(ids...), 2, stops, func(h uint64) { list = append(list, h) })
		return list
	}
	refundCake, refundTheCake := grams(nil, 5, 2), grams(stops, 5, 6, 2)
	if len(refundCake) != 3 || len(refundTheCake) != 4 {
		t.Fatalf("%d and %d features, want 2 words + 1 pair and 3 words + 1 pair", len(refundCake), len(refundTheCake))
	}
	if pair := refundCake[2]; !slices.Contains(refundTheCake, pair) {
		t.Errorf("the pair %x is not found across the stop word in %x", pair, refundTheCake)
	}
	if swapped := grams(nil, 2, 5); swapped[2] == refundCake[2] {
		t.Error("a pair and its swap are the same feature")
	}
	for _, h := range refundTheCake {
		if h >= 1<<BagKeyBits {
			t.Errorf("key %x has more than %d bits", h, BagKeyBits)
		}
	}
}

func bagFor(t *testing.T, rules BagRules) *Bag {
	t.Helper()
	type feature struct {
		key    uint64
		scale  float32
		vector [2]float32
	}
	features := []feature{
		{words(2)[0], 1, [2]float32{1, 0}},
		{words(5)[0], 2, [2]float32{0, 3}},
	}
	slices.SortFunc(features, func(a, b feature) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	tensors := BagTensors{Kinds: bagKinds, Bias: []float32{.5, -.5}}
	for _, f := range features {
		tensors.Keys = append(tensors.Keys, f.key)
		tensors.Scale = append(tensors.Scale, f.scale)
		tensors.Vectors = append(tensors.Vectors, f.vector[:]...)
	}
	b, err := NewBag(Config{Labels: []string{"praise", "refunds"}, VocabSize: len(bagKinds)}, rules, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Worked by hand: "cake cake refund" of the two features above.
func TestBagLogits(t *testing.T) {
	ids := []int32{0, 2, 2, 5, 6, 0}
	norm := math.Hypot(1+math.Ln2, 2)
	for _, c := range []struct {
		rules BagRules
		want  [2]float64
	}{
		{BagRules{Grams: 1}, [2]float64{.5 + 2.0/3, -.5 + 2*3.0/3}}, // the mean of (1,0), (1,0), 2*(0,3)
		{BagRules{Grams: 1, Sublinear: true, Normalize: true}, [2]float64{.5 + (1+math.Ln2)/norm, -.5 + 6/norm}},
	} {
		b := bagFor(t, c.rules)
		ws, got := b.NewWorkspace(), make([]float32, 2)
		if err := b.Logits(got, Input{IDs: ids}, ws); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if math.Abs(float64(v)-c.want[i]) > 1e-6 {
				t.Errorf("%+v: logits %v, want %v", c.rules, got, c.want)
				break
			}
		}
		if n := testing.AllocsPerRun(20, func() { _ = b.Logits(got, Input{IDs: ids}, ws) }); n != 0 {
			t.Errorf("%v allocations a message in steady state, want 0", n)
		}
		// A message of unknown words has nothing but the bias.
		if err := b.Logits(got, Input{IDs: []int32{0, 6}}, ws); err != nil || got[0] != .5 || got[1] != -.5 {
			t.Errorf("unknown words: logits %v, error %v, want the bias", got, err)
		}
	}
}

// No order, no context: any order of the words has the same logits as long as runs are not features.
func TestBagIgnoresOrder(t *testing.T) {
	b := bagFor(t, BagRules{Grams: 1, Sublinear: true, Normalize: true})
	one, two := make([]float32, 2), make([]float32, 2)
	if err := b.Logits(one, Input{IDs: []int32{5, 6, 2}}, b.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	if err := b.Logits(two, Input{IDs: []int32{2, 5, 6}}, b.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(one, two) {
		t.Errorf("logits %v and %v of the same words in another order", one, two)
	}
}

func TestNewBagRefuses(t *testing.T) {
	good := BagTensors{Kinds: []uint8{1}, Keys: []uint64{3, 5}, Scale: []float32{1, 1}, Vectors: make([]float32, 4), Bias: make([]float32, 2)}
	config := Config{Labels: []string{"a", "b"}, VocabSize: 1}
	for _, c := range []struct {
		name   string
		config Config
		rules  BagRules
		change func(*BagTensors)
		want   string
	}{
		{"one queue", Config{Labels: []string{"a"}, VocabSize: 1}, BagRules{Grams: 1}, nil, "at least two"},
		{"grams", config, BagRules{}, nil, "grams is 0"},
		{"kinds", config, BagRules{Grams: 1}, func(t *BagTensors) { t.Kinds = nil }, "0 token kinds"},
		{"scale", config, BagRules{Grams: 1}, func(t *BagTensors) { t.Scale = t.Scale[:1] }, "1 scales for 2"},
		{"vectors", config, BagRules{Grams: 1}, func(t *BagTensors) { t.Vectors = t.Vectors[:3] }, "3 numbers"},
		{"bias", config, BagRules{Grams: 1}, func(t *BagTensors) { t.Bias = nil }, "0 biases"},
		{"order", config, BagRules{Grams: 1}, func(t *BagTensors) { t.Keys = []uint64{5, 5} }, "ascending"},
	} {
		tensors := good
		if c.change != nil {
			c.change(&tensors)
		}
		if _, err := NewBag(c.config, c.rules, tensors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// The first words have features of their own, half as long as the whole message's: by hand for the
// words 1, 2, 1 with an opening of two words, where only the opening's features have a vector.
func TestBagOpeningByHand(t *testing.T) {
	kinds := []uint8{BagStart, BagStart, BagStart}
	words := BagWords(nil, []int32{1, 2, 1}, nil, kinds)
	var keys []uint64
	BagOpening(slices.Clone(words), 2, 1, nil, func(h uint64) { keys = append(keys, h) })
	if len(keys) != 2 {
		t.Fatalf("%d features of an opening of two words", len(keys))
	}
	for _, k := range keys {
		if slices.Contains(words, k) {
			t.Fatal("an opening's feature is the whole message's too")
		}
	}
	slices.Sort(keys)
	b, err := NewBag(Config{Labels: []string{"a", "b"}, VocabSize: 3}, BagRules{Grams: 1, Sublinear: true, Normalize: true, Opening: 2, OpeningShare: .5},
		BagTensors{Kinds: kinds, Keys: keys, Scale: []float32{3, 4}, Vectors: []float32{1, 0, 0, 1}, Bias: []float32{0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	logits := make([]float32, 2)
	if err := b.Logits(logits, Input{IDs: []int32{1, 2, 1}}, b.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	// Values 3 and 4 have length 5; half of 3/5 and 4/5.
	if math.Abs(float64(logits[0])-.3) > 1e-6 || math.Abs(float64(logits[1])-.4) > 1e-6 {
		t.Errorf("logits %v, want .3 and .4", logits)
	}
}

func TestBagFeaturesAscend(t *testing.T) {
	kinds := slices.Repeat([]uint8{BagStart}, 50)
	rng := rand.New(rand.NewPCG(1, 1))
	ids := make([]int32, 30)
	for i := range ids {
		ids[i] = int32(rng.IntN(50))
	}
	var keys []uint64
	add := func(h uint64) { keys = append(keys, h) }
	words := BagWords(nil, ids, nil, kinds)
	BagOpening(slices.Clone(words), 9, 2, nil, add)
	BagGrams(words, 2, nil, add)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	b, err := NewBag(Config{Labels: []string{"a", "b"}, VocabSize: 50}, BagRules{Grams: 2, Opening: 9, OpeningShare: .5, Normalize: true},
		BagTensors{Kinds: kinds, Keys: keys, Scale: slices.Repeat([]float32{1}, len(keys)), Vectors: make([]float32, 2*len(keys)), Bias: []float32{0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	var f BagFeatures
	b.Features(&f, ids, nil)
	if len(f.Rows) != len(keys) || len(f.Values) != len(keys) || !slices.IsSorted(f.Rows) {
		t.Errorf("%d rows and %d values of %d features, ascending: %v", len(f.Rows), len(f.Values), len(keys), slices.IsSorted(f.Rows))
	}
}
