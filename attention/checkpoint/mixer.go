package checkpoint

import (
	"encoding/json"

	"misroute/attention"
)

func init() { Register(attention.MixerModelType, buildMixer) }

func buildMixer(config json.RawMessage, t Tensors) (attention.Model, error) {
	f := parseFields(config)
	cfg := attention.Config{
		Labels: f.labels(), VocabSize: f.integer("vocab_size", 0, 1), Hidden: f.integer("hidden_size", 0, 1),
		Intermediate: f.integer("intermediate_size", 0, 1), NormEps: float32(f.positive("layer_norm_eps", 1e-12)),
		TrainedCap: f.integer("max_trained_tokens", 0, 0),
	}
	mix := f.oneOf("mixer", "", attention.Mixes()...)
	positions := 0
	if mix == attention.MixPositions {
		positions = f.integer("max_position_embeddings", 0, 1)
	}
	if f.err != nil {
		return nil, f.err
	}
	r := &reader{t: t}
	c := cfg.Hidden
	p := &attention.MixerParams{Words: r.tensor("words.weight", cfg.VocabSize, c)}
	switch mix {
	case attention.MixPositions, attention.MixAttention:
		if positions > 0 {
			p.Positions = r.tensor("positions.weight", positions, c)
		}
		p.Query, p.Key, p.Value = r.linear("query", c, c), r.linear("key", c, c), r.linear("value", c, c)
		p.Output = r.linear("output", c, c)
	case attention.MixRecurrent:
		p.Input, p.Hidden = r.linear("input", 3*c, c), r.linear("hidden", 3*c, c)
	}
	p.Norm = r.norm("norm", c)
	p.Up = r.linear("up", cfg.Intermediate, c)
	p.Classify = r.linear("classifier", len(cfg.Labels), cfg.Intermediate)
	if r.err != nil {
		return nil, r.err
	}
	return attention.NewMixer(cfg, mix, p)
}

// MixerTensors are the parameters of a rung of the ladder for Write. The arrays are shared.
func MixerTensors(cfg *attention.Config, p *attention.MixerParams) []Tensor {
	var list []Tensor
	add := func(name string, data []float32, shape ...int) {
		if len(data) > 0 {
			list = append(list, Tensor{Name: name, Shape: shape, Data: data})
		}
	}
	linear := func(name string, l attention.Linear, in int) {
		add(name+".weight", l.Weight, len(l.Weight)/in, in)
		add(name+".bias", l.Bias, len(l.Bias))
	}
	c := cfg.Hidden
	add("words.weight", p.Words, cfg.VocabSize, c)
	add("positions.weight", p.Positions, len(p.Positions)/c, c)
	linear("query", p.Query, c)
	linear("key", p.Key, c)
	linear("value", p.Value, c)
	linear("output", p.Output, c)
	linear("input", p.Input, c)
	linear("hidden", p.Hidden, c)
	add("norm.weight", p.Norm.Gain, c)
	add("norm.bias", p.Norm.Bias, c)
	linear("up", p.Up, c)
	linear("classifier", p.Classify, cfg.Intermediate)
	return list
}

// MixerConfig is the config.json of a rung of the ladder for Write.
func MixerConfig(cfg *attention.Config, mix string) map[string]any {
	id2label, label2id := labelMaps(cfg.Labels)
	m := map[string]any{
		"model_type": attention.MixerModelType, "mixer": mix, "id2label": id2label, "label2id": label2id,
		"vocab_size": cfg.VocabSize, "hidden_size": cfg.Hidden, "intermediate_size": cfg.Intermediate, "layer_norm_eps": cfg.NormEps,
	}
	if mix == attention.MixPositions {
		m["max_position_embeddings"] = cfg.Positions
	}
	if cfg.TrainedCap > 0 {
		m["max_trained_tokens"] = cfg.TrainedCap
	}
	return m
}
