package attention_test

import "misroute/attention"

// runBERT is BERT, and with prefix "roberta" RoBERTa: positions that count what is not padding, and
// the head under other names.
func (m *naive) runBERT(in attention.Input, prefix string) inside {
	eps := m.number("layer_norm_eps", 1e-12)
	act := m.text("hidden_act", "gelu")
	var x [][]float64
	pad, seen := int32(m.count("pad_token_id", 1)), 0
	for i, id := range in.IDs {
		position := i
		if prefix == "roberta" {
			position = int(pad)
			if id != pad {
				seen++
				position += seen
			}
		}
		x = append(x, add(
			m.vector(prefix+".embeddings.word_embeddings.weight", int(id)),
			m.vector(prefix+".embeddings.position_embeddings.weight", position),
			m.vector(prefix+".embeddings.token_type_embeddings.weight", kind(in, i))))
	}
	x = m.norm(x, prefix+".embeddings.LayerNorm", eps)
	out := inside{hidden: [][][]float64{x}}
	for i := range m.count("num_hidden_layers", 12) {
		l := layerName(prefix+".encoder.layer.%d.", i)
		context, weights := attention.MultiHead(
			m.linear(x, l+"attention.self.query"), m.linear(x, l+"attention.self.key"), m.linear(x, l+"attention.self.value"),
			m.count("num_attention_heads", 12), attention.KeyPadding(mask(in)))
		x = m.norm(sum(m.linear(context, l+"attention.output.dense"), x), l+"attention.output.LayerNorm", eps)
		wide := apply(m.linear(x, l+"intermediate.dense"), act)
		x = m.norm(sum(m.linear(wide, l+"output.dense"), x), l+"output.LayerNorm", eps)
		out.hidden, out.weights = append(out.hidden, x), append(out.weights, weights)
	}
	pool, classify := "bert.pooler.dense", "classifier"
	if prefix == "roberta" {
		pool, classify = "classifier.dense", "classifier.out_proj"
	}
	out.logits = m.linear(apply(m.linear(x[:1], pool), "tanh"), classify)[0]
	return out
}

// runDistilBERT is BERT without token types and pooler, under names of its own.
func (m *naive) runDistilBERT(in attention.Input) inside {
	const eps = 1e-12
	var x [][]float64
	for i, id := range in.IDs {
		x = append(x, add(
			m.vector("distilbert.embeddings.word_embeddings.weight", int(id)),
			m.vector("distilbert.embeddings.position_embeddings.weight", i)))
	}
	x = m.norm(x, "distilbert.embeddings.LayerNorm", eps)
	out := inside{hidden: [][][]float64{x}}
	for i := range m.count("n_layers", 6) {
		l := layerName("distilbert.transformer.layer.%d.", i)
		context, weights := attention.MultiHead(
			m.linear(x, l+"attention.q_lin"), m.linear(x, l+"attention.k_lin"), m.linear(x, l+"attention.v_lin"),
			m.count("n_heads", 12), attention.KeyPadding(mask(in)))
		x = m.norm(sum(m.linear(context, l+"attention.out_lin"), x), l+"sa_layer_norm", eps)
		wide := apply(m.linear(x, l+"ffn.lin1"), m.text("activation", "gelu"))
		x = m.norm(sum(m.linear(wide, l+"ffn.lin2"), x), l+"output_layer_norm", eps)
		out.hidden, out.weights = append(out.hidden, x), append(out.weights, weights)
	}
	out.logits = m.linear(apply(m.linear(x[:1], "pre_classifier"), "relu"), "classifier")[0]
	return out
}
