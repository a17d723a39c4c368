package attention

import (
	"math"
	"slices"
	"testing"
)

// The rungs by hand, with two channels and words that are easy to add: the mixers alone, before the
// layer behind them.
func TestMixed(t *testing.T) {
	x := []float32{1, 0, 0, 1} // two tokens
	eye := func() Linear { return Linear{In: 2, Out: 2, Weight: []float32{1, 0, 0, 1}, Bias: []float32{0, 0}} }
	rung := func(mix string, p MixerParams) *Mixer {
		p.Words, p.Norm, p.Up = []float32{1, 0, 0, 1}, Norm{Gain: []float32{1, 1}, Bias: []float32{0, 0}}, eye()
		p.Classify = eye()
		m, err := NewMixer(Config{Labels: []string{"a", "b"}, Hidden: 2, Intermediate: 2, VocabSize: 2, NormEps: 1e-5}, mix, &p)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	e := math.E
	root := math.Exp(1 / math.Sqrt2)
	for _, c := range []struct {
		mix  string
		p    MixerParams
		want []float64
	}{
		{MixNone, MixerParams{}, []float64{0, 0, 0, 0}},
		{MixAverage, MixerParams{}, []float64{.5, .5, .5, .5}},
		// Raw dot products are 1 with itself and 0 with the other: it listens to itself.
		{MixSimilarity, MixerParams{}, []float64{e / (e + 1), 1 / (e + 1), 1 / (e + 1), e / (e + 1)}},
		// The same with identity matrices, scaled by 1/sqrt(2).
		{MixAttention, MixerParams{Query: eye(), Key: eye(), Value: eye(), Output: eye()},
			[]float64{root / (root + 1), 1 / (root + 1), 1 / (root + 1), root / (root + 1)}},
	} {
		got := rung(c.mix, c.p).mixed(slices.Clone(x), 2, nil, &Workspace{}, nil)
		for i, w := range c.want {
			if math.Abs(float64(got[i])-w) > 1e-6 {
				t.Errorf("%s: %v, want %v", c.mix, got, c.want)
				break
			}
		}
	}
}

// The gates of a GRU at work: an update gate that is shut keeps the note, one that is open with a
// reset gate that is shut forgets it.
func TestGRUStep(t *testing.T) {
	h := []float32{0.75}
	GRUStep(h, []float32{0, 40, 1}, []float32{0, 0, 1}, nil) // z = 1
	if h[0] != 0.75 {
		t.Errorf("kept note %g, want 0.75", h[0])
	}
	GRUStep(h, []float32{-40, -40, 1}, []float32{0, 0, 5}, nil) // z = 0, r = 0
	if want := float32(math.Tanh(1)); math.Abs(float64(h[0]-want)) > 1e-6 {
		t.Errorf("new note %g, want tanh 1 = %g", h[0], want)
	}
	gates := make([]float32, 3)
	GRUStep(h, []float32{0, 0, 0}, []float32{0, 0, 0}, gates)
	if !slices.Equal(gates, []float32{.5, .5, 0}) {
		t.Errorf("gates %v, want half open and nothing new", gates)
	}
}

func TestMixerMaskAndTrace(t *testing.T) {
	p := &MixerParams{Words: []float32{1, 0, 0, 1, 3, 3}, Norm: Norm{Gain: []float32{1, 1}, Bias: []float32{0, 0}},
		Up:       Linear{Weight: []float32{1, 0, 0, 1}, Bias: []float32{0, 0}},
		Classify: Linear{Weight: []float32{1, 0, 0, 1}, Bias: []float32{0, 0}}}
	m, err := NewMixer(Config{Labels: []string{"a", "b"}, Hidden: 2, Intermediate: 2, VocabSize: 3, NormEps: 1e-5}, MixSimilarity, p)
	if err != nil {
		t.Fatal(err)
	}
	short, masked := make([]float32, 2), make([]float32, 2)
	if err := m.Logits(short, Input{IDs: []int32{0, 1}}, m.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	if err := m.Logits(masked, Input{IDs: []int32{0, 1, 2}, Mask: []uint8{1, 1, 0}}, m.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	for i := range short {
		if math.Abs(float64(short[i]-masked[i])) > 1e-6 {
			t.Errorf("logits %v, with a hidden token more %v", short, masked)
		}
	}
	trace, err := m.Trace(Input{IDs: []int32{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]float32{trace.Attention[0][0][:2], trace.Attention[0][0][2:]} {
		if s := row[0] + row[1]; math.Abs(float64(s-1)) > 1e-6 {
			t.Errorf("weights %v sum to %g", row, s)
		}
	}
}
