package train

import (
	"math/rand/v2"
	"testing"

	"misroute/attention"
)

// In the first layer the neighbour heads look where their step says before anything is learned.
func TestOrderPriorLooksAtNeighbours(t *testing.T) {
	c := attention.Config{ModelType: "bert", Labels: []string{"a", "b"}, Layers: 3, Heads: 4, Hidden: 64, Intermediate: 256,
		VocabSize: 500, Positions: 128, TypeVocab: 2, Activation: "gelu", NormEps: 1e-12}
	e, err := NewEncoder(c, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	m, err := attention.NewEncoder(e.Config, e.Params())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const tokens = 100
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = int32(rng.IntN(c.VocabSize))
	}
	trace, err := m.Trace(attention.Input{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	for h, step := range []int{-1, 1, -2} {
		sum, n := 0.0, 0
		for i := range tokens {
			if j := i + step; j >= 0 && j < tokens {
				sum += float64(trace.Attention[0][h][i*tokens+j])
				n++
			}
		}
		// One of 100 would be .01 without the prior; a head that sees nothing else would give 1.
		if mean := sum / float64(n); mean < .08 || mean > .3 {
			t.Errorf("head %d gives the token at %+d a weight of %.2f, want about .1", h, step, mean)
		}
	}
}
