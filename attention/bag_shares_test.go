package attention

import (
	"math"
	"math/rand"
	"slices"
	"testing"
)

// By hand, with the vectors of bagFor: "cake" is (1, 0), "refund" has scale 2 and is (0, 3). Without
// normalizing, the message is the mean over its three features read: cake, cake, refund.
func TestBagSharesByHand(t *testing.T) {
	b := bagFor(t, BagRules{Grams: 1})
	got, err := b.Shares([]int32{0, 2, 1, 2, 5})
	if err != nil {
		t.Fatal(err)
	}
	want := []float32{0, 0, 1. / 3, 0, 0, 0, 1. / 3, 0, 0, 2}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-6 {
			t.Fatalf("shares %v, want %v", got, want)
		}
	}
	if _, err := b.Shares([]int32{99}); err == nil {
		t.Error("a token outside of the vocabulary was taken")
	}
}

// The shares and the bias are the logits, whatever the rules and the message: pairs across stop
// words, words of several pieces, repeated features.
func TestBagSharesAddUp(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	stops := words(6)
	keys := map[uint64]bool{}
	for range 40 {
		ids := make([]int32, 1+rng.Intn(6))
		for i := range ids {
			ids[i] = rng.Int31n(int32(len(bagKinds)))
		}
		BagGrams(words(ids...), 3, map[uint64]struct{}{stops[0]: {}}, func(h uint64) { keys[h] = true })
		BagOpening(words(ids...), 4, 3, map[uint64]struct{}{stops[0]: {}}, func(h uint64) { keys[h] = true })
	}
	tensors := BagTensors{Kinds: bagKinds, Stops: stops, Bias: []float32{.5, -.5, .25}}
	for k := range keys {
		tensors.Keys = append(tensors.Keys, k)
	}
	slices.Sort(tensors.Keys)
	for range tensors.Keys {
		tensors.Scale = append(tensors.Scale, 1+rng.Float32())
		tensors.Vectors = append(tensors.Vectors, rng.Float32()-.5, rng.Float32()-.5, rng.Float32()-.5)
	}
	c := Config{Labels: []string{"a", "b", "c"}, VocabSize: len(bagKinds)}
	for _, rules := range []BagRules{{Grams: 1}, {Grams: 3}, {Grams: 2, Sublinear: true, Normalize: true}, {Grams: 3, Sublinear: true},
		{Grams: 2, Opening: 4, OpeningShare: .5}, {Grams: 3, Sublinear: true, Normalize: true, Opening: 3, OpeningShare: 1}} {
		b, err := NewBag(c, rules, tensors)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			ids := make([]int32, 1+rng.Intn(30))
			for i := range ids {
				ids[i] = rng.Int31n(int32(len(bagKinds)))
			}
			logits := make([]float32, 3)
			if err := b.Logits(logits, Input{IDs: ids}, b.NewWorkspace()); err != nil {
				t.Fatal(err)
			}
			shares, err := b.Shares(ids)
			if err != nil {
				t.Fatal(err)
			}
			for c, want := range logits {
				sum := float64(tensors.Bias[c])
				for i := range ids {
					sum += float64(shares[i*3+c])
				}
				if math.Abs(sum-float64(want)) > 1e-5 {
					t.Fatalf("%+v %v: the shares of label %d and its bias add up to %v, the logit is %v", rules, ids, c, sum, want)
				}
			}
		}
	}
}
