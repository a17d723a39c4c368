package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"misroute/attention"
)

func smallMixer(t *testing.T, mix string) *Mixer {
	t.Helper()
	m, err := NewMixer(attention.Config{Labels: []string{"a", "b"}, Hidden: 16, Intermediate: 32, VocabSize: 42, Positions: 24, NormEps: 1e-5}, mix, 3)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMixers(t *testing.T) {
	for _, mix := range attention.Mixes() {
		m := smallMixer(t, mix)
		router, err := m.Model()
		if err != nil {
			t.Fatal(err)
		}
		examples := letters(5, 5)
		got := m.forward(newTape(), examples).logits
		want, err := Logits(router, examples, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range slices.Concat(want...) {
			if math.Abs(float64(got[i]-w)) > 1e-5 {
				t.Errorf("%s: logits %v, the router's %v", mix, got, want)
				break
			}
		}
		checkDirection(t, mix, m, examples, &Loss{Smoothing: .1}, 0)
		checkDirection(t, mix+" dropout", m, examples, &Loss{}, .2)
	}
}

// Who can learn that "x y" goes to one queue and "y x" to the other? Only a rung that knows order.
func TestMixersThatSeeOrder(t *testing.T) {
	var training []Example
	for _, e := range letters(1000, 1) {
		if slices.Contains(e.IDs, 40) {
			training = append(training, e)
		}
	}
	for mix, sees := range map[string]bool{
		attention.MixNone: false, attention.MixAverage: false, attention.MixSimilarity: false, attention.MixAttention: false,
		attention.MixRecurrent: true, attention.MixPositions: true,
	} {
		m := smallMixer(t, mix)
		judged, err := m.Fit(context.Background(), training[:150], training[150:], Options{Epochs: 20, Batch: 8, Rate: 1e-2, Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := judged.Accuracy(); sees != (a > 0.9) {
			t.Errorf("%s: accuracy %.3f on pairs that only order tells apart", mix, a)
		}
	}
}
