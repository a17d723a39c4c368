package attention_test

import (
	"fmt"
	"math"
	"strings"

	"misroute/attention"
)

func (m *naive) runDeBERTa(in attention.Input) inside {
	eps, hidden := m.number("layer_norm_eps", 1e-7), m.count("hidden_size", 1536)
	const embeddings = "deberta.embeddings."
	var x [][]float64
	for i, id := range in.IDs {
		row := m.vector(embeddings+"word_embeddings.weight", int(id))
		if m.flag("position_biased_input", true) {
			row = add(row, m.vector(embeddings+"position_embeddings.weight", i))
		}
		if m.count("type_vocab_size", 0) > 0 {
			row = add(row, m.vector(embeddings+"token_type_embeddings.weight", kind(in, i)))
		}
		x = append(x, row)
	}
	if m.count("embedding_size", hidden) != hidden {
		x = m.linear(x, embeddings+"embed_proj")
	}
	x = m.norm(x, embeddings+"LayerNorm", eps)
	for i, shown := range mask(in) {
		if shown == 0 {
			x[i] = make([]float64, hidden)
		}
	}
	var table [][]float64
	if m.flag("relative_attention", false) {
		table = m.tensors["deberta.encoder.rel_embeddings.weight"]
		if strings.Contains(m.text("norm_rel_ebd", "none"), "layer_norm") {
			table = m.norm(table, "deberta.encoder.LayerNorm", eps)
		}
	}
	out := inside{hidden: [][][]float64{x}}
	for i := range m.count("num_hidden_layers", 24) {
		l := layerName("deberta.encoder.layer.%d.", i)
		context, weights := m.disentangled(x, table, l+"attention.self.", in)
		x = m.norm(sum(m.linear(context, l+"attention.output.dense"), x), l+"attention.output.LayerNorm", eps)
		wide := apply(m.linear(x, l+"intermediate.dense"), m.text("hidden_act", "gelu"))
		x = m.norm(sum(m.linear(wide, l+"output.dense"), x), l+"output.LayerNorm", eps)
		out.hidden, out.weights = append(out.hidden, x), append(out.weights, weights)
	}
	pooled := apply(m.linear(x[:1], "pooler.dense"), m.text("pooler_hidden_act", "gelu"))
	out.logits = m.linear(pooled, "classifier")[0]
	return out
}

// disentangled attention: content to content, content to position, position to content.
func (m *naive) disentangled(x, table [][]float64, self string, in attention.Input) (context [][]float64, weights [][][]float64) {
	heads := m.count("num_attention_heads", 24)
	types := strings.ToLower(fmt.Sprint(m.config["pos_att_type"])) // a string or a list
	c2p, p2c := strings.Contains(types, "c2p"), strings.Contains(types, "p2c")
	terms := 1.0
	if c2p {
		terms++
	}
	if p2c {
		terms++
	}
	q, k, v := m.linear(x, self+"query_proj"), m.linear(x, self+"key_proj"), m.linear(x, self+"value_proj")
	var posKey, posQuery [][]float64
	if table != nil {
		keyName, queryName := self+"pos_key_proj", self+"pos_query_proj"
		if m.flag("share_att_key", false) {
			keyName, queryName = self+"key_proj", self+"query_proj"
		}
		if c2p {
			posKey = m.linear(table, keyName)
		}
		if p2c {
			posQuery = m.linear(table, queryName)
		}
	}
	row := make(map[int]int, 2*len(x)) // of the table, by distance
	for rel := 1 - len(x); rel < len(x); rel++ {
		row[rel] = m.relativeRow(rel, len(table))
	}
	context = make([][]float64, len(x))
	shown := mask(in)
	for h := range heads {
		size := len(q[0]) / heads
		cut := func(row []float64) []float64 { return row[h*size : (h+1)*size] }
		w := make([][]float64, len(x))
		values := make([][]float64, len(x))
		for i := range x {
			values[i] = cut(v[i])
			w[i] = make([]float64, len(x))
			for j := range x {
				switch {
				case shown[i] == 0:
					continue // sees all keys equally
				case shown[j] == 0:
					w[i][j] = math.Inf(-1)
					continue
				}
				s := inner(cut(q[i]), cut(k[j]))
				if posKey != nil {
					s += inner(cut(q[i]), cut(posKey[row[i-j]]))
				}
				if posQuery != nil {
					s += inner(cut(k[j]), cut(posQuery[row[i-j]]))
				}
				w[i][j] = s / math.Sqrt(float64(size)*terms)
			}
			w[i] = attention.Softmax(w[i])
		}
		for i, row := range attention.Blend(w, values) {
			context[i] = append(context[i], row...)
		}
		weights = append(weights, w)
	}
	return context, weights
}

// relativeRow is the table's row for the distance rel = query - key.
func (m *naive) relativeRow(rel, rows int) int {
	longest := m.count("max_relative_positions", -1)
	if longest < 1 {
		longest = m.count("max_position_embeddings", 512)
	}
	bucket := float64(rel)
	if buckets := m.count("position_buckets", -1); buckets > 0 {
		middle := float64(buckets / 2)
		if size := math.Abs(bucket); size > middle {
			steps := math.Ceil(math.Log(size/middle) / math.Log(float64(longest-1)/middle) * (middle - 1))
			bucket = math.Copysign(middle+steps, bucket)
		}
	}
	return int(min(max(bucket+float64(rows/2), 0), float64(rows-1)))
}
