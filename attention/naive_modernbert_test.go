package attention_test

import (
	"math"

	"misroute/attention"
)

// runModernBERT reads the field names of transformers 4.
func (m *naive) runModernBERT(in attention.Input) inside {
	eps := m.number("norm_eps", 1e-5)
	heads, hidden := m.count("num_attention_heads", 12), m.count("hidden_size", 768)
	every, radius := m.count("global_attn_every_n_layers", 3), m.count("local_attention", 128)/2
	globalTheta := m.number("global_rope_theta", 160_000)
	localTheta := m.number("local_rope_theta", 10_000)
	if v, there := m.config["local_rope_theta"]; there && v == nil {
		localTheta = globalTheta
	}
	shown := attention.KeyPadding(mask(in))

	var x [][]float64
	for _, id := range in.IDs {
		x = append(x, m.vector("model.embeddings.tok_embeddings.weight", int(id)))
	}
	x = m.norm(x, "model.embeddings.norm", eps)
	out := inside{hidden: [][][]float64{x}}
	for i := range m.count("num_hidden_layers", 22) {
		l := layerName("model.layers.%d.", i)
		theta, visible := globalTheta, shown
		if i%every != 0 {
			near := attention.Window(radius)
			theta, visible = localTheta, func(q, k int) bool { return shown(q, k) && near(q, k) }
		}
		input := x
		if i > 0 {
			input = m.norm(x, l+"attn_norm", eps)
		}
		qkv := m.linear(input, l+"attn.Wqkv")
		part := func(from int) (y [][]float64) {
			for _, row := range qkv {
				y = append(y, row[from:from+hidden])
			}
			return y
		}
		context, weights := attention.MultiHead(turn(part(0), heads, theta), turn(part(hidden), heads, theta), part(2*hidden), heads, visible)
		x = sum(x, m.linear(context, l+"attn.Wo"))
		wide := m.linear(m.norm(x, l+"mlp_norm", eps), l+"mlp.Wi")
		x = sum(x, m.linear(gated(wide, m.text("hidden_activation", "gelu")), l+"mlp.Wo"))
		out.hidden, out.weights = append(out.hidden, x), append(out.weights, weights)
	}
	x = m.norm(x, "model.final_norm", eps)
	out.hidden[len(out.hidden)-1] = x

	pooled := x[:1]
	if m.text("classifier_pooling", "cls") == "mean" {
		mean, n := make([]float64, hidden), 0.0
		for i, row := range x {
			if mask(in)[i] != 0 {
				mean, n = add(mean, row), n+1
			}
		}
		for j := range mean {
			mean[j] /= n
		}
		pooled = [][]float64{mean}
	}
	pooled = apply(m.linear(pooled, "head.dense"), m.text("classifier_activation", "gelu"))
	out.logits = m.linear(m.norm(pooled, "head.norm", eps), "classifier")[0]
	return out
}

// gated is activation(first half) * second half of every row.
func gated(x [][]float64, act string) [][]float64 {
	f := naiveActivation(act)
	y := make([][]float64, len(x))
	for i, row := range x {
		half := len(row) / 2
		y[i] = make([]float64, half)
		for j := range y[i] {
			y[i][j] = f(row[j]) * row[half+j]
		}
	}
	return y
}

// turn rotates channel j of a head with channel j + half by position * theta^(-2j/HS).
func turn(x [][]float64, heads int, theta float64) [][]float64 {
	y := make([][]float64, len(x))
	for p, row := range x {
		size := len(row) / heads
		y[p] = make([]float64, len(row))
		for h := range heads {
			for j := range size / 2 {
				sin, cos := math.Sincos(float64(p) * math.Pow(theta, -2*float64(j)/float64(size)))
				a, b := row[h*size+j], row[h*size+j+size/2]
				y[p][h*size+j] = a*cos - b*sin
				y[p][h*size+j+size/2] = b*cos + a*sin
			}
		}
	}
	return y
}
