package checkpoint

import (
	"slices"
	"strings"
	"testing"

	"misroute/attention"
)

func tinyConfig(modelType string) attention.Config {
	c := attention.Config{ModelType: modelType, Labels: []string{"a", "b", "c"}, Layers: 2, Heads: 2, Hidden: 8, Intermediate: 16,
		VocabSize: 11, Positions: 12, TypeVocab: 2, Activation: "gelu", NormEps: 1e-12}
	switch modelType {
	case "distilbert":
		c.TypeVocab = 0
	case "roberta":
		c.TypeVocab, c.PadID, c.NormEps = 1, 1, 1e-5
	}
	return c
}

func tinyParams(c *attention.Config) *attention.EncoderParams {
	h, seed := c.Hidden, 0
	linear := func(out, in int) attention.Linear {
		seed++
		return attention.Linear{Weight: numbers(out*in, seed), Bias: numbers(out, seed+50)}
	}
	norm := func() attention.Norm {
		seed++
		return attention.Norm{Gain: numbers(h, seed), Bias: numbers(h, seed+50)}
	}
	rows := c.Positions
	if c.ModelType == "roberta" {
		rows += int(c.PadID) + 1
	}
	p := &attention.EncoderParams{Words: numbers(c.VocabSize*h, 90), Positions: numbers(rows*h, 91), EmbedNorm: norm()}
	if c.TypeVocab > 0 {
		p.Types = numbers(c.TypeVocab*h, 92)
	}
	for range c.Layers {
		p.Layers = append(p.Layers, attention.LayerParams{Query: linear(h, h), Key: linear(h, h), Value: linear(h, h), Output: linear(h, h),
			AttentionNorm: norm(), Up: linear(c.Intermediate, h), Down: linear(h, c.Intermediate), OutputNorm: norm()})
	}
	p.Pool, p.Classify = linear(h, h), linear(len(c.Labels), h)
	return p
}

func logitsOf(t *testing.T, m attention.Model) []float32 {
	t.Helper()
	got := make([]float32, len(m.Config().Labels))
	if err := m.Logits(got, attention.Input{IDs: []int32{2, 7, 3, 3, 10}}, m.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEncoderRoundTrip(t *testing.T) {
	for _, modelType := range []string{"bert", "distilbert", "roberta"} {
		c := tinyConfig(modelType)
		dir := t.TempDir()
		if err := Write(dir, EncoderConfig(&c), EncoderTensors(&c, tinyParams(&c))); err != nil {
			t.Fatal(err)
		}
		folder, err := Load(dir, Options{})
		if err != nil {
			t.Fatalf("%s: %v", modelType, err)
		}
		made, err := attention.NewEncoder(c, tinyParams(&c))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := logitsOf(t, folder.Model), logitsOf(t, made); !slices.Equal(got, want) {
			t.Errorf("%s: logits %v, before writing %v", modelType, got, want)
		}
		if folder.Model.Config().Positions != c.Positions {
			t.Errorf("%s: %d positions, want %d", modelType, folder.Model.Config().Positions, c.Positions)
		}
	}
}

// A model without a head, saved without its family's prefix, is what most published encoders are.
func TestReadPretrained(t *testing.T) {
	for _, modelType := range []string{"bert", "distilbert", "roberta"} {
		c := tinyConfig(modelType)
		want := tinyParams(&c)
		var bare []Tensor
		for _, tensor := range EncoderTensors(&c, want) {
			if !strings.HasPrefix(tensor.Name, "classifier") && !strings.HasPrefix(tensor.Name, "pre_classifier") {
				_, tensor.Name, _ = strings.Cut(tensor.Name, ".")
				bare = append(bare, tensor)
			}
		}
		config := EncoderConfig(&c)
		config["architectures"] = []string{"SomeModel"}
		dir := t.TempDir()
		if err := Write(dir, config, bare); err != nil {
			t.Fatal(err)
		}
		got, err := ReadPretrained(dir, []string{"x", "y"})
		if err != nil {
			t.Fatalf("%s: %v", modelType, err)
		}
		if !slices.Equal(got.Config.Labels, []string{"x", "y"}) || !slices.Equal(got.Params.Words, want.Words) ||
			!slices.Equal(got.Params.Layers[1].Down.Weight, want.Layers[1].Down.Weight) {
			t.Errorf("%s: queues %v, or the weights are others", modelType, got.Config.Labels)
		}
		if has := len(got.Params.Pool.Weight) > 0; has != (modelType == "bert") {
			t.Errorf("%s: pooler there: %v", modelType, has)
		}
		if err := Write(dir, config, bare[1:]); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPretrained(dir, []string{"x", "y"}); err == nil || !strings.Contains(err.Error(), "word_embeddings.weight") {
			t.Errorf("%s: without word vectors: error %v", modelType, err)
		}
	}
}
