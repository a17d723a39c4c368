package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"

	"misroute/attention"
)

func init() { Register(attention.BagModelType, buildBag) }

// Names of a bag's tensors. All are float32 like everything else in the file, also the keys: each is
// two halves of 24 bits, which float32 holds exactly.
const (
	bagKinds   = "tokens.kind"     // [V]
	bagStops   = "stops.key"       // [S, 2]; missing without stop words
	bagKeys    = "features.key"    // [F, 2]
	bagScale   = "features.scale"  // [F]
	bagVectors = "features.vector" // [F, labels]
	bagBias    = "classifier.bias" // [labels]
	bagHalf    = attention.BagKeyBits / 2
)

func buildBag(config json.RawMessage, t Tensors) (attention.Model, error) {
	f := parseFields(config)
	cfg := attention.Config{Labels: f.labels(), VocabSize: f.integer("vocab_size", 0, 1), TrainedCap: f.integer("max_trained_tokens", 0, 0)}
	var rules attention.BagRules
	if !f.decode("bag", &rules, "the rules of a bag") {
		f.fail("bag", "is missing")
	}
	keys, ok := t.Shape(bagKeys)
	if f.err == nil && (!ok || len(keys) != 2) {
		f.err = fmt.Errorf("tensor %s has shape %v, want features x 2", quote(bagKeys), keys)
	}
	if f.err != nil {
		return nil, f.err
	}
	r := &reader{t: t}
	tensors := attention.BagTensors{
		Keys:    r.keys(bagKeys, keys[0]),
		Scale:   r.tensor(bagScale, keys[0]),
		Vectors: r.tensor(bagVectors, keys[0], len(cfg.Labels)),
		Bias:    r.tensor(bagBias, len(cfg.Labels)),
	}
	if stops, ok := t.Shape(bagStops); ok && len(stops) == 2 {
		tensors.Stops = r.keys(bagStops, stops[0])
	}
	for i, v := range r.tensor(bagKinds, cfg.VocabSize) {
		if v != float32(uint8(v)) {
			r.err = errors.Join(r.err, fmt.Errorf("tensor %s is %g at [%d], not the number of a kind", quote(bagKinds), v, i))
			break
		}
		tensors.Kinds = append(tensors.Kinds, uint8(v))
	}
	if r.err != nil {
		return nil, r.err
	}
	return attention.NewBag(cfg, rules, tensors)
}

// keys reads n feature hashes.
func (r *reader) keys(name string, n int) []uint64 {
	keys := make([]uint64, 0, n)
	data := r.tensor(name, n, 2)
	for i := 0; i+1 < len(data); i += 2 {
		high, low := data[i], data[i+1]
		if !(high >= 0 && high < 1<<bagHalf && low >= 0 && low < 1<<bagHalf) {
			r.err = fmt.Errorf("tensor %s is %g, %g at [%d], not two halves of a key", quote(name), high, low, i/2)
			return nil
		}
		keys = append(keys, uint64(high)<<bagHalf|uint64(low))
	}
	return keys
}

// BagTensors are the arrays of a words router for Write.
func BagTensors(b *attention.Bag) []Tensor {
	t, labels := b.Tensors(), len(b.Config().Labels)
	kinds := make([]float32, len(t.Kinds))
	for i, k := range t.Kinds {
		kinds[i] = float32(k)
	}
	list := []Tensor{
		{Name: bagKinds, Shape: []int{len(kinds)}, Data: kinds},
		{Name: bagKeys, Shape: []int{len(t.Keys), 2}, Data: halves(t.Keys)},
		{Name: bagScale, Shape: []int{len(t.Keys)}, Data: t.Scale},
		{Name: bagVectors, Shape: []int{len(t.Keys), labels}, Data: t.Vectors},
		{Name: bagBias, Shape: []int{labels}, Data: t.Bias},
	}
	if len(t.Stops) > 0 {
		list = append(list, Tensor{Name: bagStops, Shape: []int{len(t.Stops), 2}, Data: halves(t.Stops)})
	}
	return list
}

func halves(keys []uint64) []float32 {
	data := make([]float32, 0, 2*len(keys))
	for _, k := range keys {
		data = append(data, float32(k>>bagHalf), float32(k&(1<<bagHalf-1)))
	}
	return data
}

// BagConfig is the config.json of a words router for Write.
func BagConfig(b *attention.Bag) map[string]any {
	cfg := b.Config()
	id2label, label2id := labelMaps(cfg.Labels)
	m := map[string]any{
		"model_type": attention.BagModelType,
		"bag":        b.Rules(),
		"id2label":   id2label,
		"label2id":   label2id,
		"vocab_size": cfg.VocabSize,
	}
	if cfg.TrainedCap > 0 {
		m["max_trained_tokens"] = cfg.TrainedCap
	}
	return m
}

// labelMaps are the two directions between queue names and logits, as config.json has them.
func labelMaps(labels []string) (id2label map[string]string, label2id map[string]int) {
	id2label, label2id = make(map[string]string, len(labels)), make(map[string]int, len(labels))
	for i, label := range labels {
		id2label[fmt.Sprint(i)] = label
		label2id[label] = i
	}
	return id2label, label2id
}
