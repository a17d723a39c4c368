package checkpoint

import (
	"path/filepath"
	"strings"
	"testing"

	"misroute/attention"
)

func smallBag(t *testing.T) *attention.Bag {
	t.Helper()
	word := attention.BagWords(nil, []int32{1, 2}, nil, []uint8{0, 1, 2})
	b, err := attention.NewBag(attention.Config{Labels: []string{"refunds", "praise"}, VocabSize: 3},
		attention.BagRules{Grams: 2, Sublinear: true, Normalize: true},
		attention.BagTensors{
			Kinds: []uint8{0, 1, 2}, Keys: word, Stops: []uint64{1<<attention.BagKeyBits - 1},
			Scale: []float32{1.5}, Vectors: []float32{2, -1}, Bias: []float32{.25, 0},
		})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBagRoundTrip(t *testing.T) {
	b, dir := smallBag(t), filepath.Join(t.TempDir(), "words")
	if err := Write(dir, BagConfig(b), BagTensors(b)); err != nil {
		t.Fatal(err)
	}
	folder, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := folder.Model.(*attention.Bag)
	if read.Rules() != b.Rules() || read.Tensors().Keys[0] != b.Tensors().Keys[0] || read.Tensors().Stops[0] != b.Tensors().Stops[0] {
		t.Errorf("read back %+v %+v", read.Rules(), read.Tensors())
	}
	got, want := make([]float32, 2), []float32{2.25, -1} // one feature of unit length
	if err := folder.Model.Logits(got, attention.Input{IDs: []int32{0, 1, 2}}, folder.Model.NewWorkspace()); err != nil || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("logits %v, error %v, want %v", got, err, want)
	}
	if _, err := Load(dir, Options{Int8: true}); err == nil {
		t.Error("a bag was loaded as int8")
	}
}

func TestBagRefuses(t *testing.T) {
	b := smallBag(t)
	for _, c := range []struct {
		name   string
		change func(config map[string]any, tensors []Tensor)
		want   string
	}{
		{"rules", func(c map[string]any, _ []Tensor) { delete(c, "bag") }, "bag is missing"},
		{"half", func(_ map[string]any, t []Tensor) { t[1].Data[0] = 1 << 24 }, "not two halves of a key"},
		{"kind", func(_ map[string]any, t []Tensor) { t[0].Data[1] = 0.5 }, "not the number of a kind"},
		{"vector", func(_ map[string]any, t []Tensor) { t[3].Shape = []int{2, 1} }, "features.vector"},
		{"queues", func(c map[string]any, _ []Tensor) { c["id2label"] = map[string]string{"0": "a"} }, "config.json asks for [1 1]"},
	} {
		config, tensors := BagConfig(b), BagTensors(b)
		c.change(config, tensors)
		dir := t.TempDir()
		if err := Write(dir, config, tensors); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}
