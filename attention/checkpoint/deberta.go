package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"misroute/attention"
)

// buildDeBERTa reads a DebertaV2ForSequenceClassification, which serves v3 models as well. Defaults are
// DebertaV2Config's and, for fields that class does not list, those of the model's code.
func buildDeBERTa(config json.RawMessage, t Tensors, o Options) (attention.Model, error) {
	f := parseFields(config)
	f.common()
	cfg := attention.Config{
		ModelType:    "deberta-v2",
		Labels:       f.labels(),
		Layers:       f.integer("num_hidden_layers", 24, 1),
		Hidden:       f.integer("hidden_size", 1536, 1),
		Intermediate: f.integer("intermediate_size", 6144, 1),
		VocabSize:    f.integer("vocab_size", 128100, 1),
		Positions:    f.integer("max_position_embeddings", 512, 1),
		TypeVocab:    f.integer("type_vocab_size", 0, 0),
		PadID:        int32(f.integer("pad_token_id", 0, 0)),
		Activation:   f.activation("hidden_act"),
		NormEps:      float32(f.positive("layer_norm_eps", 1e-7)),
		TrainedCap:   f.integer("max_trained_tokens", 0, 0),
	}
	cfg.Heads = f.heads("num_attention_heads", 24, cfg.Hidden)
	embedding := f.integer("embedding_size", cfg.Hidden, 1)
	positionInput := f.boolean("position_biased_input", true)
	p := &attention.DeBERTaParams{PoolActivation: f.activation("pooler_hidden_act")}
	d := f.disentangled(cfg, p)
	f.refuseDeBERTa(cfg)
	if f.err != nil {
		return nil, f.err
	}

	r := &reader{t: t}
	c := cfg.Hidden
	p.Words = r.tensor("deberta.embeddings.word_embeddings.weight", cfg.VocabSize, embedding)
	if positionInput {
		p.Positions = r.tensor("deberta.embeddings.position_embeddings.weight", cfg.Positions, embedding)
	}
	if cfg.TypeVocab > 0 {
		p.Types = r.tensor("deberta.embeddings.token_type_embeddings.weight", cfg.TypeVocab, embedding)
	}
	if embedding != c {
		p.Project = r.linearBias("deberta.embeddings.embed_proj", c, embedding, false)
	}
	p.EmbedNorm = r.norm("deberta.embeddings.LayerNorm", c)
	if d.relative {
		p.Relative = r.tensor("deberta.encoder.rel_embeddings.weight", p.Distances.Rows(), c)
	}
	if d.norm {
		p.RelativeNorm = r.norm("deberta.encoder.LayerNorm", c)
	}
	p.Pool = r.linear("pooler.dense", c, c)
	p.Classify = r.linear("classifier", len(cfg.Labels), c)
	p.Layer = layers(r, cfg.Layers, func(i int) attention.DeBERTaLayer {
		return d.layer(r, fmt.Sprintf("deberta.encoder.layer.%d.", i), cfg, p)
	})
	if r.err != nil {
		return nil, r.err
	}
	if o.Int8 {
		return attention.NewDeBERTaInt8(cfg, p)
	}
	return attention.NewDeBERTa(cfg, p)
}

// disentangled are the settings of relative positions that decide which tensors there are.
type disentangled struct {
	relative bool // relative_attention
	norm     bool // the table has a norm
	shared   bool // the content's projections serve the table as well
}

// disentangled reads how distances come into the scores.
func (f *fields) disentangled(cfg attention.Config, p *attention.DeBERTaParams) disentangled {
	d := disentangled{
		relative: f.boolean("relative_attention", false),
		shared:   f.boolean("share_att_key", false),
		norm:     slices.Contains(splitWords(f.text("norm_rel_ebd", "none")), "layer_norm"),
	}
	maxDistance := f.integer("max_relative_positions", -1, -1)
	if maxDistance < 1 {
		maxDistance = cfg.Positions
	}
	buckets := f.integer("position_buckets", -1, -1)
	if buckets == 1 {
		f.fail("position_buckets", "is 1: a bucket table needs 2 or more")
	}
	p.Distances = attention.Distances{Span: maxDistance, MaxDistance: maxDistance}
	if buckets > 0 {
		p.Distances = attention.Distances{Span: buckets, Buckets: buckets, MaxDistance: maxDistance}
	}
	types := f.posAttTypes()
	p.ScaleTerms = 1
	for _, kind := range []struct {
		name string
		on   *bool
	}{{"c2p", &p.ContentToPos}, {"p2c", &p.PosToContent}} {
		if slices.Contains(types, kind.name) {
			p.ScaleTerms++ // also without relative_attention, as in the library
			*kind.on = d.relative
		}
	}
	return d
}

// posAttTypes reads pos_att_type, a list or a string with "|" between its words.
func (f *fields) posAttTypes() []string {
	if !f.set("pos_att_type") {
		return nil
	}
	var text string
	var list []string
	if json.Unmarshal(f.raw["pos_att_type"], &text) == nil {
		list = splitWords(text)
	} else if !f.decode("pos_att_type", &list, "a string or a list of strings") {
		return nil
	}
	for _, kind := range list {
		if kind != "c2p" && kind != "p2c" && kind != "" {
			f.refuse("pos_att_type", quote(kind), "only c2p and p2c")
		}
	}
	return list
}

func splitWords(s string) []string {
	words := strings.Split(strings.ToLower(s), "|")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	return words
}

// refuseDeBERTa names the variants of the family that are not computed.
func (f *fields) refuseDeBERTa(cfg attention.Config) {
	if n := f.integer("conv_kernel_size", 0, 0); n > 0 {
		f.refuse("conv_kernel_size", fmt.Sprint(n), "the convolution beside the first layer of some v2 models")
	}
	if n := f.integer("pooler_hidden_size", cfg.Hidden, 1); n != cfg.Hidden {
		f.refuse("pooler_hidden_size", fmt.Sprint(n), "only a pooler of the hidden size")
	}
	if n := f.integer("attention_head_size", cfg.Hidden/cfg.Heads, 1); n*cfg.Heads != cfg.Hidden {
		f.refuse("attention_head_size", fmt.Sprint(n), "only heads that share the hidden size")
	}
}

// layer reads one layer, whose names stand under prefix.
func (d disentangled) layer(r *reader, prefix string, cfg attention.Config, p *attention.DeBERTaParams) attention.DeBERTaLayer {
	c, wide := cfg.Hidden, cfg.Intermediate
	self := prefix + "attention.self."
	l := attention.DeBERTaLayer{LayerParams: attention.LayerParams{
		Query:         r.linear(self+"query_proj", c, c),
		Key:           r.linear(self+"key_proj", c, c),
		Value:         r.linear(self+"value_proj", c, c),
		Output:        r.linear(prefix+"attention.output.dense", c, c),
		AttentionNorm: r.norm(prefix+"attention.output.LayerNorm", c),
		Up:            r.linear(prefix+"intermediate.dense", wide, c),
		Down:          r.linear(prefix+"output.dense", c, wide),
		OutputNorm:    r.norm(prefix+"output.LayerNorm", c),
	}}
	if p.ContentToPos && !d.shared {
		l.PosKey = r.linear(self+"pos_key_proj", c, c)
	}
	if p.PosToContent && !d.shared {
		l.PosQuery = r.linear(self+"pos_query_proj", c, c)
	}
	return l
}

// ignoreDeBERTa lets remainders of the pre-training stand.
func ignoreDeBERTa(tensor string) bool {
	for _, prefix := range []string{"cls.", "lm_predictions.", "mask_predictions."} {
		if strings.HasPrefix(tensor, prefix) {
			return true
		}
	}
	return isBuffer(tensor)
}
