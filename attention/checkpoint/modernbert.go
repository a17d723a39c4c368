package checkpoint

import (
	"encoding/json"
	"fmt"
	"strings"

	"misroute/attention"
)

// buildModernBERT reads a ModernBertForSequenceClassification, in the field names of transformers 4
// (global_attn_every_n_layers, global_rope_theta, local_rope_theta) or 5 (layer_types,
// rope_parameters). Defaults are ModernBertConfig's.
func buildModernBERT(config json.RawMessage, t Tensors, o Options) (attention.Model, error) {
	f := parseFields(config)
	f.common()
	cfg := attention.Config{
		ModelType:    "modernbert",
		Labels:       f.labels(),
		Layers:       f.integer("num_hidden_layers", 22, 1),
		Hidden:       f.integer("hidden_size", 768, 1),
		Intermediate: f.integer("intermediate_size", 1152, 1),
		VocabSize:    f.integer("vocab_size", 50368, 1),
		Positions:    f.integer("max_position_embeddings", 8192, 1),
		PadID:        int32(f.integer("pad_token_id", 50283, 0)),
		Activation:   f.activation("hidden_activation"),
		NormEps:      float32(f.positive("norm_eps", 1e-5)),
		TrainedCap:   f.integer("max_trained_tokens", 0, 0),
	}
	cfg.Heads = f.heads("num_attention_heads", 12, cfg.Hidden)
	if f.err == nil && cfg.Hidden/cfg.Heads%2 != 0 {
		f.fail("num_attention_heads", "is %d, which gives the odd head size %d: rotary positions turn pairs of channels", cfg.Heads, cfg.Hidden/cfg.Heads)
	}
	p := &attention.ModernBERTParams{
		Pooling:        f.oneOf("classifier_pooling", "cls", "cls", "mean"),
		HeadActivation: f.activation("classifier_activation"),
	}
	attentionBias, mlpBias := f.boolean("attention_bias", false), f.boolean("mlp_bias", false)
	normBias, classifierBias := f.boolean("norm_bias", false), f.boolean("classifier_bias", false)
	layer := f.modernLayers(cfg.Layers)
	if f.err != nil {
		return nil, f.err
	}

	r := &reader{t: t}
	c, wide := cfg.Hidden, cfg.Intermediate
	p.Tokens = r.tensor("model.embeddings.tok_embeddings.weight", cfg.VocabSize, c)
	p.EmbedNorm = r.normBias("model.embeddings.norm", c, normBias)
	p.FinalNorm = r.normBias("model.final_norm", c, normBias)
	p.Head = r.linearBias("head.dense", c, c, classifierBias)
	p.HeadNorm = r.normBias("head.norm", c, normBias)
	p.Classify = r.linear("classifier", len(cfg.Labels), c)
	p.Layer = layers(r, cfg.Layers, func(i int) attention.ModernBERTLayer {
		name := fmt.Sprintf("model.layers.%d.", i)
		l := layer(i)
		if i > 0 { // the embeddings' norm stands right before the first layer and serves as its norm
			l.AttentionNorm = r.normBias(name+"attn_norm", c, normBias)
		}
		l.QKV = r.linearBias(name+"attn.Wqkv", 3*c, c, attentionBias)
		l.Output = r.linearBias(name+"attn.Wo", c, c, attentionBias)
		l.FeedNorm = r.normBias(name+"mlp_norm", c, normBias)
		l.GateUp = r.linearBias(name+"mlp.Wi", 2*wide, c, mlpBias)
		l.Down = r.linearBias(name+"mlp.Wo", c, wide, mlpBias)
		return l
	})
	if r.err != nil {
		return nil, r.err
	}
	if o.Int8 {
		return attention.NewModernBERTInt8(cfg, p)
	}
	return attention.NewModernBERT(cfg, p)
}

const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

// modernLayers reads which layers are local, their window and the bases of the rotary positions. A
// token of a local layer sees local_attention/2 neighbours to each side, rounded down.
func (f *fields) modernLayers(layers int) func(i int) attention.ModernBERTLayer {
	window := f.integer("local_attention", 128, 0) / 2
	if f.set("sliding_window") { // the half of local_attention, by the name it has in the library's code
		window = f.integer("sliding_window", window, 0)
	}
	globalTheta, localTheta := f.thetas()

	every := f.integer("global_attn_every_n_layers", 3, 1)
	var types []string
	byType := f.decode("layer_types", &types, "a list of strings")
	if byType && len(types) != layers {
		f.fail("layer_types", "has %d entries for %d layers", len(types), layers)
	}
	for _, t := range types {
		if t != fullAttention && t != slidingAttention {
			f.fail("layer_types", "has %s, not one of %s, %s", quote(t), fullAttention, slidingAttention)
		}
	}
	return func(i int) attention.ModernBERTLayer {
		local := i%every != 0
		if byType {
			local = types[i] == slidingAttention
		}
		if local {
			return attention.ModernBERTLayer{Local: true, Window: window, Theta: localTheta}
		}
		return attention.ModernBERTLayer{Theta: globalTheta}
	}
}

// thetas reads the bases of the rotary positions of global and local layers. A local base of null
// means the global one; a missing one has its own default.
func (f *fields) thetas() (global, local float64) {
	global = f.positive("global_rope_theta", 160_000)
	local = f.positive("local_rope_theta", 10_000)
	nullLocal := f.isNull("local_rope_theta")

	type rope struct {
		Theta   *float64 `json:"rope_theta"`
		Type    *string  `json:"rope_type"`
		Partial *float64 `json:"partial_rotary_factor"`
	}
	var parameters map[string]*rope
	f.decode("rope_parameters", &parameters, "an object of objects")
	for name, theta := range map[string]*float64{fullAttention: &global, slidingAttention: &local} {
		r := parameters[name]
		if r == nil {
			continue
		}
		if r.Type != nil && *r.Type != "default" {
			f.refuse("rope_parameters."+name+".rope_type", quote(*r.Type), "only unscaled rotary positions")
		}
		if r.Partial != nil && *r.Partial != 1 {
			f.refuse("rope_parameters."+name+".partial_rotary_factor", fmt.Sprint(*r.Partial), "only whole heads are turned")
		}
		if r.Theta == nil {
			continue
		}
		if !(*r.Theta > 0) {
			f.fail("rope_parameters."+name+".rope_theta", "is %v, not a number over 0", *r.Theta)
		}
		*theta = *r.Theta
		nullLocal = nullLocal && name != slidingAttention
	}
	if f.set("rope_scaling") {
		f.refuse("rope_scaling", "set", "only unscaled rotary positions")
	}
	if nullLocal {
		local = global
	}
	return global, local
}

// ignoreModernBERT lets the projection back to the vocabulary stand, a remainder of the pre-training.
func ignoreModernBERT(tensor string) bool { return strings.HasPrefix(tensor, "decoder.") }
