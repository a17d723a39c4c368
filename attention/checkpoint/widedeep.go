package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"

	"misroute/attention"
)

func init() { Register(attention.WideDeepModelType, buildWideDeep) }

// under are the tensors whose names begin with a prefix, without it.
type under struct {
	Tensors
	prefix string
}

func (u under) Has(name string) bool            { return u.Tensors.Has(u.prefix + name) }
func (u under) Shape(name string) ([]int, bool) { return u.Tensors.Shape(u.prefix + name) }
func (u under) Float32(name string, shape ...int) ([]float32, error) {
	return u.Tensors.Float32(u.prefix+name, shape...)
}
func (u under) ReadFloat32(dst []float32, name string, shape ...int) error {
	return u.Tensors.ReadFloat32(dst, u.prefix+name, shape...)
}

// buildWideDeep reads both parts: each has its tensors under a prefix, and in config.json an object of
// its own as if it stood alone.
func buildWideDeep(config json.RawMessage, t Tensors) (attention.Model, error) {
	f := parseFields(config)
	var wide, deep json.RawMessage
	if !f.decode("wide", &wide, "an object") || !f.decode("deep", &deep, "an object") {
		f.fail("wide", "or deep is missing")
	}
	window := f.integer("deep_tokens", 0, 2)
	if f.err != nil {
		return nil, f.err
	}
	bag, err := buildBag(wide, under{t, "wide."})
	if err != nil {
		return nil, fmt.Errorf("wide part: %w", err)
	}
	encoder, err := buildBERT(deep, under{t, "deep."}, Options{})
	if err != nil {
		return nil, fmt.Errorf("deep part: %w", err)
	}
	return attention.NewWideDeep(bag.(*attention.Bag), encoder, window)
}

// WideDeepTensors are both parts' arrays for Write; deep is EncoderTensors of the deep part.
func WideDeepTensors(wide *attention.Bag, deep []Tensor) []Tensor {
	var list []Tensor
	add := func(prefix string, part []Tensor) {
		for _, t := range part {
			t.Name = prefix + t.Name
			list = append(list, t)
		}
	}
	add("wide.", BagTensors(wide))
	add("deep.", deep)
	return list
}

// WideDeepConfig is the config.json for Write; deep is EncoderConfig of the deep part.
func WideDeepConfig(wide *attention.Bag, deep map[string]any, window int) map[string]any {
	w := BagConfig(wide)
	m := map[string]any{"model_type": attention.WideDeepModelType, "wide": w, "deep": deep, "deep_tokens": window}
	maps.Copy(m, map[string]any{"id2label": w["id2label"], "label2id": w["label2id"], "vocab_size": w["vocab_size"]})
	return m
}
