package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"misroute/attention"
)

// encoderNames are the tensor names of one family of encoders. A layer's names stand under
// layer + number; the families differ in names only, see attention.EncoderParams for the parts.
type encoderNames struct {
	embeddings                string
	layer                     string
	query, key, value, output string
	attentionNorm             string
	up, down, outputNorm      string
	pool, classify            string
}

var bertNames = encoderNames{
	embeddings: "bert.embeddings.", layer: "bert.encoder.layer.",
	query: "attention.self.query", key: "attention.self.key", value: "attention.self.value", output: "attention.output.dense",
	attentionNorm: "attention.output.LayerNorm",
	up:            "intermediate.dense", down: "output.dense", outputNorm: "output.LayerNorm",
	pool: "bert.pooler.dense", classify: "classifier",
}

var robertaNames = func() encoderNames {
	n := bertNames
	n.embeddings, n.layer = "roberta.embeddings.", "roberta.encoder.layer."
	n.pool, n.classify = "classifier.dense", "classifier.out_proj"
	return n
}()

var distilbertNames = encoderNames{
	embeddings: "distilbert.embeddings.", layer: "distilbert.transformer.layer.",
	query: "attention.q_lin", key: "attention.k_lin", value: "attention.v_lin", output: "attention.out_lin",
	attentionNorm: "sa_layer_norm",
	up:            "ffn.lin1", down: "ffn.lin2", outputNorm: "output_layer_norm",
	pool: "pre_classifier", classify: "classifier",
}

// encoderPlan is what config.json says about an encoder: its sizes, the names of its tensors and the
// number of rows of its position table.
type encoderPlan func(f *fields) (cfg attention.Config, n encoderNames, rows int)

var encoderPlans = map[string]encoderPlan{
	"bert": planBERT, "distilbert": planDistilBERT, "roberta": planRoBERTa, "xlm-roberta": planRoBERTa,
}

func buildBERT(config json.RawMessage, t Tensors, o Options) (attention.Model, error) {
	return buildEncoder(planBERT, config, t, o)
}

func buildRoBERTa(config json.RawMessage, t Tensors, o Options) (attention.Model, error) {
	return buildEncoder(planRoBERTa, config, t, o)
}

func buildDistilBERT(config json.RawMessage, t Tensors, o Options) (attention.Model, error) {
	return buildEncoder(planDistilBERT, config, t, o)
}

// planBERT reads a BertForSequenceClassification. Defaults are BertConfig's.
func planBERT(f *fields) (attention.Config, encoderNames, int) {
	cfg := bertConfig(f, attention.Config{VocabSize: 30522, TypeVocab: 2, NormEps: 1e-12})
	return cfg, bertNames, f.positions(512)
}

// planRoBERTa reads a RobertaForSequenceClassification or XLMRobertaForSequenceClassification.
// Defaults are those of their config classes.
func planRoBERTa(f *fields) (attention.Config, encoderNames, int) {
	missing := attention.Config{VocabSize: 50265, TypeVocab: 2, NormEps: 1e-12, PadID: 1}
	if f.text("model_type", "") == "xlm-roberta" {
		missing.VocabSize = 30522
	}
	cfg := bertConfig(f, missing)
	rows := f.positions(512)
	// The first row of a token's own is PadID+1; the rows before it are padding's and nobody's.
	cfg.Positions = rows - int(cfg.PadID) - 1
	if f.err == nil && cfg.Positions < 1 {
		f.fail("max_position_embeddings", "is %d, which leaves no position after pad_token_id %d", rows, cfg.PadID)
	}
	return cfg, robertaNames, rows
}

// planDistilBERT reads a DistilBertForSequenceClassification. Defaults are DistilBertConfig's, which
// also answers to the names that other families use.
func planDistilBERT(f *fields) (attention.Config, encoderNames, int) {
	f.rename(map[string]string{"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"})
	f.common()
	cfg := attention.Config{
		Labels:       f.labels(),
		Layers:       f.integer("n_layers", 6, 1),
		Hidden:       f.integer("dim", 768, 1),
		Intermediate: f.integer("hidden_dim", 4*768, 1),
		VocabSize:    f.integer("vocab_size", 30522, 1),
		PadID:        int32(f.integer("pad_token_id", 0, 0)),
		Activation:   f.activation("activation"),
		NormEps:      1e-12, // fixed in the family's code
	}
	cfg.Heads = f.heads("n_heads", 12, cfg.Hidden)
	return cfg, distilbertNames, f.positions(512)
}

// bertConfig reads the fields that BERT and RoBERTa share; missing holds the defaults that differ.
func bertConfig(f *fields, missing attention.Config) attention.Config {
	f.common()
	cfg := attention.Config{
		Labels:       f.labels(),
		Layers:       f.integer("num_hidden_layers", 12, 1),
		Hidden:       f.integer("hidden_size", 768, 1),
		Intermediate: f.integer("intermediate_size", 3072, 1),
		VocabSize:    f.integer("vocab_size", missing.VocabSize, 1),
		TypeVocab:    f.integer("type_vocab_size", missing.TypeVocab, 1),
		PadID:        int32(f.integer("pad_token_id", int(missing.PadID), 0)),
		Activation:   f.activation("hidden_act"),
		NormEps:      float32(f.positive("layer_norm_eps", float64(missing.NormEps))),
	}
	cfg.Heads = f.heads("num_attention_heads", 12, cfg.Hidden)
	return cfg
}

// positions is the number of rows of the position table.
func (f *fields) positions(missing int) int { return f.integer("max_position_embeddings", missing, 1) }

// buildEncoder reads a model of any of the three families.
func buildEncoder(plan encoderPlan, config json.RawMessage, t Tensors, o Options) (attention.Model, error) {
	f := parseFields(config)
	cfg, n, rows := plan(f)
	if completeEncoder(&cfg, f, rows); f.err != nil {
		return nil, f.err
	}
	r := &reader{t: t}
	p := readEncoderParams(r, &cfg, n, rows)
	p.Layer = layers(r, cfg.Layers, func(i int) attention.LayerParams { return readEncoderLayer(r, &cfg, n, i) })
	if r.err != nil {
		return nil, r.err
	}
	if o.Int8 {
		return attention.NewEncoderInt8(cfg, p)
	}
	return attention.NewEncoder(cfg, p)
}

// completeEncoder adds what all families have in common.
func completeEncoder(cfg *attention.Config, f *fields, rows int) {
	cfg.ModelType = f.text("model_type", "")
	cfg.TrainedCap = f.integer("max_trained_tokens", 0, 0)
	if cfg.Positions == 0 {
		cfg.Positions = rows
	}
}

// readEncoderParams asks r for every tensor beside the layers.
func readEncoderParams(r *reader, cfg *attention.Config, n encoderNames, rows int) *attention.EncoderParams {
	c := cfg.Hidden
	p := &attention.EncoderParams{
		Words:     r.tensor(n.embeddings+"word_embeddings.weight", cfg.VocabSize, c),
		Positions: r.tensor(n.embeddings+"position_embeddings.weight", rows, c),
		EmbedNorm: r.norm(n.embeddings+"LayerNorm", c),
	}
	if cfg.TypeVocab > 0 {
		p.Types = r.tensor(n.embeddings+"token_type_embeddings.weight", cfg.TypeVocab, c)
	}
	p.Pool = r.linear(n.pool, c, c)
	p.Classify = r.linear(n.classify, len(cfg.Labels), c)
	return p
}

// readEncoderLayer asks r for the tensors of layer i.
func readEncoderLayer(r *reader, cfg *attention.Config, n encoderNames, i int) attention.LayerParams {
	l, c, wide := fmt.Sprintf("%s%d.", n.layer, i), cfg.Hidden, cfg.Intermediate
	return attention.LayerParams{
		Query: r.linear(l+n.query, c, c), Key: r.linear(l+n.key, c, c), Value: r.linear(l+n.value, c, c),
		Output:        r.linear(l+n.output, c, c),
		AttentionNorm: r.norm(l+n.attentionNorm, c),
		Up:            r.linear(l+n.up, wide, c),
		Down:          r.linear(l+n.down, c, wide),
		OutputNorm:    r.norm(l+n.outputNorm, c),
	}
}

// ignoreBERT lets tensors stand that the library writes or once wrote and does not read for
// classification: index rows, and heads of the pre-training.
func ignoreBERT(tensor string) bool {
	return isBuffer(tensor) || strings.HasPrefix(tensor, "cls.") || strings.HasPrefix(tensor, "vocab_")
}

// ignoreRoBERTa also lets the pooler stand, which the classifier does not use in this family.
func ignoreRoBERTa(tensor string) bool {
	return ignoreBERT(tensor) || strings.HasPrefix(tensor, "roberta.pooler.") || strings.HasPrefix(tensor, "lm_head.")
}

// EncoderTensors gives the parameters of a classifier the names that its family's
// ...ForSequenceClassification saves, for Write. The arrays are shared. It must be called before
// attention.NewEncoder, which takes the matrices.
func EncoderTensors(cfg *attention.Config, p *attention.EncoderParams) []Tensor {
	n, c, wide := bertNames, cfg.Hidden, cfg.Intermediate
	switch cfg.ModelType {
	case "distilbert":
		n = distilbertNames
	case "roberta", "xlm-roberta":
		n = robertaNames
	}
	var list []Tensor
	add := func(name string, data []float32, shape ...int) {
		list = append(list, Tensor{Name: name, Shape: shape, Data: data})
	}
	norm := func(name string, p attention.Norm) {
		add(name+".weight", p.Gain, c)
		add(name+".bias", p.Bias, c)
	}
	linear := func(name string, p attention.Linear, out, in int) {
		add(name+".weight", p.Weight, out, in)
		add(name+".bias", p.Bias, out)
	}
	add(n.embeddings+"word_embeddings.weight", p.Words, cfg.VocabSize, c)
	add(n.embeddings+"position_embeddings.weight", p.Positions, len(p.Positions)/c, c)
	if cfg.TypeVocab > 0 {
		add(n.embeddings+"token_type_embeddings.weight", p.Types, cfg.TypeVocab, c)
	}
	norm(n.embeddings+"LayerNorm", p.EmbedNorm)
	for i := range p.Layers {
		l, layer := fmt.Sprintf("%s%d.", n.layer, i), &p.Layers[i]
		linear(l+n.query, layer.Query, c, c)
		linear(l+n.key, layer.Key, c, c)
		linear(l+n.value, layer.Value, c, c)
		linear(l+n.output, layer.Output, c, c)
		norm(l+n.attentionNorm, layer.AttentionNorm)
		linear(l+n.up, layer.Up, wide, c)
		linear(l+n.down, layer.Down, c, wide)
		norm(l+n.outputNorm, layer.OutputNorm)
	}
	linear(n.pool, p.Pool, c, c)
	linear(n.classify, p.Classify, len(cfg.Labels), c)
	return list
}

// EncoderConfig is the config.json of a classifier, for Write, in the words of Hugging Face
// transformers; max_trained_tokens is our own.
func EncoderConfig(cfg *attention.Config) map[string]any {
	id2label, label2id := labelMaps(cfg.Labels)
	m := map[string]any{
		"model_type":   cfg.ModelType,
		"id2label":     id2label,
		"label2id":     label2id,
		"pad_token_id": cfg.PadID,
		"torch_dtype":  "float32",
		"vocab_size":   cfg.VocabSize,
	}
	set := func(more map[string]any) { maps.Copy(m, more) }
	if cfg.ModelType == "distilbert" {
		set(map[string]any{
			"architectures": []string{"DistilBertForSequenceClassification"}, "activation": cfg.Activation, "dim": cfg.Hidden,
			"hidden_dim": cfg.Intermediate, "max_position_embeddings": cfg.Positions, "n_heads": cfg.Heads, "n_layers": cfg.Layers,
		})
	} else {
		set(map[string]any{
			"hidden_act": cfg.Activation, "hidden_size": cfg.Hidden, "intermediate_size": cfg.Intermediate, "layer_norm_eps": cfg.NormEps,
			"num_attention_heads": cfg.Heads, "num_hidden_layers": cfg.Layers, "position_embedding_type": "absolute",
			"type_vocab_size": cfg.TypeVocab,
		})
		class, rows := "BertForSequenceClassification", cfg.Positions
		if cfg.ModelType != "bert" {
			class, rows = "RobertaForSequenceClassification", rows+int(cfg.PadID)+1
		}
		if cfg.ModelType == "xlm-roberta" {
			class = "XLMRobertaForSequenceClassification"
		}
		set(map[string]any{"architectures": []string{class}, "max_position_embeddings": rows})
	}
	if cfg.TrainedCap > 0 {
		m["max_trained_tokens"] = cfg.TrainedCap
	}
	return m
}
