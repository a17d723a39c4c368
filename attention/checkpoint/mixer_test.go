package checkpoint

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"misroute/attention"
)

// numbers are n small numbers that are not alike.
func numbers(n, seed int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*7+seed*13)%23-11) / 16
	}
	return x
}

func mixerParams(c *attention.Config, mix string) *attention.MixerParams {
	h := c.Hidden
	linear := func(out, in, seed int) attention.Linear {
		return attention.Linear{Weight: numbers(out*in, seed), Bias: numbers(out, seed+1)}
	}
	p := &attention.MixerParams{Words: numbers(c.VocabSize*h, 1), Norm: attention.Norm{Gain: numbers(h, 2), Bias: numbers(h, 3)},
		Up: linear(c.Intermediate, h, 4), Classify: linear(len(c.Labels), c.Intermediate, 5)}
	switch mix {
	case attention.MixPositions:
		p.Positions = numbers(c.Positions*h, 6)
		fallthrough
	case attention.MixAttention:
		p.Query, p.Key, p.Value, p.Output = linear(h, h, 7), linear(h, h, 8), linear(h, h, 9), linear(h, h, 10)
	case attention.MixRecurrent:
		p.Input, p.Hidden = linear(3*h, h, 11), linear(3*h, h, 12)
	}
	return p
}

func TestMixerRoundTrip(t *testing.T) {
	cfg := attention.Config{Labels: []string{"a", "b", "c"}, VocabSize: 6, Hidden: 4, Intermediate: 8, Positions: 9, NormEps: 1e-5, TrainedCap: 9}
	in := attention.Input{IDs: []int32{1, 5, 2, 2, 0}}
	for _, mix := range attention.Mixes() {
		dir := filepath.Join(t.TempDir(), "rung")
		if err := Write(dir, MixerConfig(&cfg, mix), MixerTensors(&cfg, mixerParams(&cfg, mix))); err != nil {
			t.Fatal(err)
		}
		folder, err := Load(dir, Options{})
		if err != nil {
			t.Fatalf("%s: %v", mix, err)
		}
		made, err := attention.NewMixer(cfg, mix, mixerParams(&cfg, mix))
		if err != nil {
			t.Fatal(err)
		}
		got, want := make([]float32, 3), make([]float32, 3)
		if err := folder.Model.Logits(got, in, folder.Model.NewWorkspace()); err != nil {
			t.Fatal(err)
		}
		if err := made.Logits(want, in, made.NewWorkspace()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: logits %v, before writing %v", mix, got, want)
		}
		if folder.Model.Config().TrainedCap != 9 {
			t.Errorf("%s: the cap it was trained with is lost", mix)
		}
	}
	config := MixerConfig(&cfg, "gossip")
	dir := t.TempDir()
	if err := Write(dir, config, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), "mixer") {
		t.Errorf("an unknown mixer: error %v", err)
	}
}
