package attention_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/attention/kernel"
)

// maker invents model folders: settings and weights at random, under the names of the library. The
// weights are larger than usual, so that attention is peaked and masks, positions and windows show.
type maker struct {
	*rand.Rand
	config  map[string]any
	tensors []checkpoint.Tensor
	fixed   map[string]any // settings that are not left to chance
}

func (g *maker) tensor(name string, spread float64, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(g.NormFloat64() * spread)
	}
	g.tensors = append(g.tensors, checkpoint.Tensor{Name: name, Shape: shape, Data: data})
}

func (g *maker) linear(name string, out, in int, bias bool) {
	g.tensor(name+".weight", 1.2/math.Sqrt(float64(in)), out, in)
	if bias {
		g.tensor(name+".bias", 0.1, out)
	}
}

func (g *maker) norm(name string, size int, bias bool) {
	g.tensor(name+".weight", 0.2, size)
	gain := g.tensors[len(g.tensors)-1].Data
	for i := range gain {
		gain[i]++
	}
	if bias {
		g.tensor(name+".bias", 0.1, size)
	}
}

func pick[E any](g *maker, choices ...E) E { return choices[g.IntN(len(choices))] }

func (g *maker) flip() bool { return g.IntN(2) == 0 }

// set puts a field in the config, or leaves the default to stand when it is one.
func (g *maker) set(name string, value, missing any) {
	if value != missing || g.flip() {
		g.config[name] = value
	}
}

const (
	vocabulary   = 61
	mostTokens   = 72
	paddingToken = 1
)

// common invents sizes: head sizes that are no multiple of a vector among them.
func (g *maker) common(modelType string) (hidden, wide, layers, labels int) {
	heads := pick(g, 1, 2, 3, 5)
	hidden = heads * 2 * (1 + g.IntN(9))
	wide, layers, labels = 8+g.IntN(40), 1+g.IntN(4), 1+g.IntN(6)
	names := map[string]string{}
	for i := range labels {
		names[fmt.Sprint(i)] = fmt.Sprintf("queue %d", i)
	}
	g.config = map[string]any{
		"model_type": modelType, "hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": layers,
		"intermediate_size": wide, "vocab_size": vocabulary, "id2label": names, "pad_token_id": paddingToken,
	}
	return hidden, wide, layers, labels
}

func (g *maker) activation() string { return pick(g, attention.Activations()...) }

func (g *maker) bert(modelType string) {
	hidden, wide, layers, labels := g.common(modelType)
	prefix, positions := "bert", mostTokens
	if modelType != "bert" {
		prefix, positions = "roberta", mostTokens+paddingToken+1
	}
	g.set("hidden_act", g.activation(), "gelu")
	g.set("layer_norm_eps", pick(g, 1e-12, 1e-5), 1e-12)
	g.set("type_vocab_size", 2, 2)
	g.config["max_position_embeddings"] = positions
	g.tensor(prefix+".embeddings.word_embeddings.weight", 1, vocabulary, hidden)
	g.tensor(prefix+".embeddings.position_embeddings.weight", 1, positions, hidden)
	g.tensor(prefix+".embeddings.token_type_embeddings.weight", 1, 2, hidden)
	g.norm(prefix+".embeddings.LayerNorm", hidden, true)
	for i := range layers {
		l := layerName(prefix+".encoder.layer.%d.", i)
		for _, part := range []string{"self.query", "self.key", "self.value", "output.dense"} {
			g.linear(l+"attention."+part, hidden, hidden, true)
		}
		g.norm(l+"attention.output.LayerNorm", hidden, true)
		g.linear(l+"intermediate.dense", wide, hidden, true)
		g.linear(l+"output.dense", hidden, wide, true)
		g.norm(l+"output.LayerNorm", hidden, true)
	}
	if prefix == "bert" {
		g.linear("bert.pooler.dense", hidden, hidden, true)
		g.linear("classifier", labels, hidden, true)
		return
	}
	g.linear("classifier.dense", hidden, hidden, true)
	g.linear("classifier.out_proj", labels, hidden, true)
}

func (g *maker) distilbert() {
	hidden, wide, layers, labels := g.common("distilbert")
	for from, to := range map[string]string{"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers", "intermediate_size": "hidden_dim"} {
		g.config[to] = g.config[from]
		delete(g.config, from)
	}
	g.set("activation", g.activation(), "gelu")
	g.config["max_position_embeddings"] = mostTokens
	const embeddings = "distilbert.embeddings."
	g.tensor(embeddings+"word_embeddings.weight", 1, vocabulary, hidden)
	g.tensor(embeddings+"position_embeddings.weight", 1, mostTokens, hidden)
	g.norm(embeddings+"LayerNorm", hidden, true)
	for i := range layers {
		l := layerName("distilbert.transformer.layer.%d.", i)
		for _, part := range []string{"q_lin", "k_lin", "v_lin", "out_lin"} {
			g.linear(l+"attention."+part, hidden, hidden, true)
		}
		g.norm(l+"sa_layer_norm", hidden, true)
		g.linear(l+"ffn.lin1", wide, hidden, true)
		g.linear(l+"ffn.lin2", hidden, wide, true)
		g.norm(l+"output_layer_norm", hidden, true)
	}
	g.linear("pre_classifier", hidden, hidden, true)
	g.linear("classifier", labels, hidden, true)
}

func (g *maker) modernbert() {
	hidden, wide, layers, labels := g.common("modernbert")
	g.set("hidden_activation", g.activation(), "gelu")
	g.set("classifier_activation", g.activation(), "gelu")
	g.set("norm_eps", pick(g, 1e-5, 1e-6), 1e-5)
	g.set("classifier_pooling", pick(g, "cls", "mean"), "cls")
	g.set("global_attn_every_n_layers", pick(g, 1, 2, 3, 4), 3)
	g.set("local_attention", pick(g, 0, 1, 5, 16, 33, 128), 128)
	g.set("global_rope_theta", pick(g, 160_000., 70.), 160_000.)
	g.set("local_rope_theta", pick[any](g, 10_000., 12., nil), 10_000.)
	biases := map[string]bool{}
	for _, name := range []string{"norm_bias", "attention_bias", "mlp_bias", "classifier_bias"} {
		biases[name] = g.flip()
		g.set(name, biases[name], false)
	}
	g.tensor("model.embeddings.tok_embeddings.weight", 1, vocabulary, hidden)
	g.norm("model.embeddings.norm", hidden, biases["norm_bias"])
	for i := range layers {
		l := layerName("model.layers.%d.", i)
		if i > 0 {
			g.norm(l+"attn_norm", hidden, biases["norm_bias"])
		}
		g.linear(l+"attn.Wqkv", 3*hidden, hidden, biases["attention_bias"])
		g.linear(l+"attn.Wo", hidden, hidden, biases["attention_bias"])
		g.norm(l+"mlp_norm", hidden, biases["norm_bias"])
		g.linear(l+"mlp.Wi", 2*wide, hidden, biases["mlp_bias"])
		g.linear(l+"mlp.Wo", hidden, wide, biases["mlp_bias"])
	}
	g.norm("model.final_norm", hidden, biases["norm_bias"])
	g.linear("head.dense", hidden, hidden, biases["classifier_bias"])
	g.norm("head.norm", hidden, biases["norm_bias"])
	g.linear("classifier", labels, hidden, true)
}

func (g *maker) deberta() {
	hidden, wide, layers, labels := g.common("deberta-v2")
	relative, shared, positionInput := g.IntN(5) > 0, g.flip(), g.flip()
	types, embedding := 2*g.IntN(2), hidden
	if g.IntN(4) == 0 {
		embedding = 6
	}
	attTypes := pick(g, "c2p", "p2c", "p2c|c2p", "c2p | P2C", "")
	longest, buckets := pick(g, mostTokens, 80, 200), pick(g, -1, 4, 9, 16, 40)
	g.set("hidden_act", g.activation(), "gelu")
	g.set("pooler_hidden_act", g.activation(), "gelu")
	g.set("layer_norm_eps", pick(g, 1e-7, 1e-5), 1e-7)
	g.set("relative_attention", relative, false)
	g.set("share_att_key", shared, false)
	g.set("position_biased_input", positionInput, true)
	g.set("type_vocab_size", types, 0)
	g.set("embedding_size", embedding, hidden)
	g.set("position_buckets", buckets, -1)
	g.config["max_position_embeddings"] = longest
	span := longest
	if far := pick(g, -1, 30, 100); far > 0 {
		g.config["max_relative_positions"], span = far, far
	}
	if buckets > 0 {
		span = buckets
	}
	if attTypes != "" {
		g.config["pos_att_type"] = attTypes
	}
	norm := pick(g, "none", "layer_norm", "layer_norm|other")
	g.set("norm_rel_ebd", norm, "none")

	const embeddings = "deberta.embeddings."
	g.tensor(embeddings+"word_embeddings.weight", 1, vocabulary, embedding)
	if positionInput {
		g.tensor(embeddings+"position_embeddings.weight", 1, longest, embedding)
	}
	if types > 0 {
		g.tensor(embeddings+"token_type_embeddings.weight", 1, types, embedding)
	}
	if embedding != hidden {
		g.linear(embeddings+"embed_proj", hidden, embedding, false)
	}
	g.norm(embeddings+"LayerNorm", hidden, true)
	if relative {
		g.tensor("deberta.encoder.rel_embeddings.weight", 1, 2*span, hidden)
	}
	if norm != "none" {
		g.norm("deberta.encoder.LayerNorm", hidden, true)
	}
	for i := range layers {
		l := layerName("deberta.encoder.layer.%d.", i)
		for _, part := range []string{"self.query_proj", "self.key_proj", "self.value_proj", "output.dense"} {
			g.linear(l+"attention."+part, hidden, hidden, true)
		}
		if relative && !shared && (attTypes == "c2p" || len(attTypes) > 3) {
			g.linear(l+"attention.self.pos_key_proj", hidden, hidden, true)
		}
		if relative && !shared && (attTypes == "p2c" || len(attTypes) > 3) {
			g.linear(l+"attention.self.pos_query_proj", hidden, hidden, true)
		}
		g.norm(l+"attention.output.LayerNorm", hidden, true)
		g.linear(l+"intermediate.dense", wide, hidden, true)
		g.linear(l+"output.dense", hidden, wide, true)
		g.norm(l+"output.LayerNorm", hidden, true)
	}
	g.linear("pooler.dense", hidden, hidden, true)
	g.linear("classifier", labels, hidden, true)
}

var families = []string{"bert", "roberta", "xlm-roberta", "distilbert", "modernbert", "deberta-v2"}

// model writes a random model of the family to a folder and returns it.
func (g *maker) model(t testing.TB, family string) (dir string) {
	t.Helper()
	switch family {
	case "distilbert":
		g.distilbert()
	case "modernbert":
		g.modernbert()
	case "deberta-v2":
		g.deberta()
	default:
		g.bert(family)
	}
	maps.Copy(g.config, g.fixed)
	dir = t.TempDir()
	if err := checkpoint.Write(dir, g.config, g.tensors); err != nil {
		t.Fatal(err)
	}
	return dir
}

// input invents a message: ids with padding ids among them, sometimes a mask with holes, padding on
// either side, or nothing shown at all.
func (g *maker) input(n, types int) attention.Input {
	in := attention.Input{IDs: make([]int32, n)}
	for i := range in.IDs {
		in.IDs[i] = int32(g.IntN(vocabulary))
	}
	if types > 1 && g.flip() {
		in.TypeIDs = make([]int32, n)
		for i := range in.TypeIDs {
			in.TypeIDs[i] = int32(g.IntN(types))
		}
	}
	if g.flip() {
		return in
	}
	in.Mask = make([]uint8, n)
	from, to := 0, n
	switch g.IntN(4) {
	case 0:
		to = g.IntN(n + 1)
	case 1:
		from = g.IntN(n)
	}
	for i := from; i < to; i++ {
		in.Mask[i] = uint8(min(1, g.IntN(5)))
	}
	return in
}

// TestRandomModels holds every family, on every kernel variant, against its naive float64 form: random
// settings, sizes, lengths and masks. The tolerance is that of the recorded oracles, relative for
// logits over 1. MISROUTE_LONG=1 tries many more.
func TestRandomModels(t *testing.T) {
	seeds := uint64(5)
	if os.Getenv("MISROUTE_LONG") != "" {
		seeds = 200
	}
	for _, family := range families {
		for seed := range seeds {
			g := &maker{Rand: rand.New(rand.NewPCG(seed, 7))}
			dir := g.model(t, family)
			reference := readNaive(t, dir)
			var inputs []attention.Input
			var wants []inside
			for range 4 {
				in := g.input(1+g.IntN(mostTokens), reference.count("type_vocab_size", 0))
				inputs, wants = append(inputs, in), append(wants, reference.run(in))
			}
			for _, variant := range kernel.Variants() {
				t.Run(fmt.Sprintf("%s/%d/%s", family, seed, variant), func(t *testing.T) {
					restore, err := kernel.Use(variant)
					if err != nil {
						t.Fatal(err)
					}
					defer restore()
					f, err := checkpoint.Load(dir, checkpoint.Options{})
					if err != nil {
						t.Fatal(err)
					}
					for i, in := range inputs {
						compareWithNaive(t, f.Model, in, wants[i])
					}
					if t.Failed() {
						t.Logf("config %v", g.config)
					}
				})
			}
		}
	}
}

func compareWithNaive(t *testing.T, m attention.Model, in attention.Input, want inside) {
	t.Helper()
	got := make([]float32, len(m.Config().Labels))
	err := m.Logits(got, in, m.NewWorkspace())
	if math.IsNaN(want.logits[0]) && !slices.Contains(mask(in), 1) {
		if err == nil {
			t.Error("the mean of no token was classified")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for j, v := range got {
		if d := math.Abs(float64(v) - want.logits[j]); !(d <= 5e-5*max(1, math.Abs(want.logits[j]))) {
			t.Errorf("logit %d of %d tokens, mask %v: %v, want %v", j, len(in.IDs), in.Mask, v, want.logits[j])
		}
	}
	trace, err := m.(attention.Tracer).Trace(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Hidden) != len(want.hidden) || len(trace.Attention) != len(want.weights) {
		t.Fatalf("%d hidden states and %d layers of attention, want %d and %d", len(trace.Hidden), len(trace.Attention), len(want.hidden), len(want.weights))
	}
	for l := range want.hidden {
		compareRows(t, fmt.Sprint("hidden states ", l), trace.Hidden[l], want.hidden[l], 3e-4)
	}
	for l := range want.weights {
		for h := range want.weights[l] {
			compareRows(t, fmt.Sprintf("attention of layer %d head %d", l, h), trace.Attention[l][h], want.weights[l][h], 1e-4)
		}
	}
}

// compareRows compares a flat matrix with rows of it.
func compareRows(t *testing.T, what string, got []float32, want [][]float64, tolerance float64) {
	t.Helper()
	for i, row := range want {
		for j, w := range row {
			if v := float64(got[i*len(row)+j]); !(math.Abs(v-w) <= tolerance*max(1, math.Abs(w))) {
				t.Fatalf("%s, row %d column %d: %v, want %v", what, i, j, v, w)
			}
		}
	}
}

// TestSameBits runs messages alone and on many goroutines at once, with fresh and with used workspaces:
// the bits must not tell.
func TestSameBits(t *testing.T) {
	for _, family := range families {
		g := &maker{Rand: rand.New(rand.NewPCG(3, 9))}
		f, err := checkpoint.Load(g.model(t, family), checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := f.Model
		labels := len(m.Config().Labels)
		inputs := make([]attention.Input, 40)
		alone := make([][]float32, len(inputs))
		for i := range inputs {
			inputs[i] = g.input(1+g.IntN(mostTokens), 0)
			inputs[i].Mask = nil
			alone[i] = make([]float32, labels)
			if err := m.Logits(alone[i], inputs[i], m.NewWorkspace()); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for worker := range 16 {
			all.Go(func() {
				ws, got := m.NewWorkspace(), make([]float32, labels)
				ws.Width = 1 + worker%3
				for k := range inputs {
					i := (k*7 + worker) % len(inputs)
					if err := m.Logits(got, inputs[i], ws); err != nil {
						t.Error(err)
						return
					}
					if !slices.Equal(got, alone[i]) {
						t.Errorf("%s: message %d has %v in company, %v alone", family, i, got, alone[i])
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// TestInt8 holds every family's 8-bit form against its float32 form. Inputs and weights are rounded to
// 127 steps, about 1/250 of the largest each, so logits of these small models move in the second digit.
func TestInt8(t *testing.T) {
	for _, family := range families {
		var off, size float64
		for seed := range uint64(4) {
			g := &maker{Rand: rand.New(rand.NewPCG(seed, 21))}
			dir := g.model(t, family)
			exact, err := checkpoint.Load(dir, checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			rounded, err := checkpoint.Load(dir, checkpoint.Options{Int8: true})
			if err != nil {
				t.Fatal(err)
			}
			if p := rounded.Model.Precision(); p != "int8" {
				t.Errorf("%s: precision %q", family, p)
			}
			ws := rounded.Model.NewWorkspace()
			for n := 1; n <= mostTokens; n += 7 {
				in := g.input(n, 0)
				in.Mask = nil
				want := make([]float32, len(exact.Model.Config().Labels))
				if err := exact.Model.Logits(want, in, ws); err != nil {
					t.Fatal(err)
				}
				got := make([]float32, len(want))
				if err := rounded.Model.Logits(got, in, ws); err != nil {
					t.Fatal(err)
				}
				for j, v := range got {
					off += math.Abs(float64(v - want[j]))
					size += math.Abs(float64(want[j]))
				}
			}
		}
		t.Logf("%s: off by %.1f%%", family, 100*off/size)
		if !(off < 0.05*size) || off == 0 {
			t.Errorf("%s: the logits are off by %.1f%% of their size", family, 100*off/size)
		}
	}
}

// TestSteadyStateAllocations: a used workspace needs no memory.
func TestSteadyStateAllocations(t *testing.T) {
	for i := range 2 * len(families) {
		family, int8 := families[i/2], i%2 == 1
		g := &maker{Rand: rand.New(rand.NewPCG(5, 9))}
		f, err := checkpoint.Load(g.model(t, family), checkpoint.Options{Int8: int8})
		if err != nil {
			t.Fatal(err)
		}
		m := f.Model
		ws, logits := m.NewWorkspace(), make([]float32, len(m.Config().Labels))
		in := attention.Input{IDs: make([]int32, mostTokens), Mask: make([]uint8, mostTokens)}
		for i := range in.Mask {
			in.Mask[i] = uint8(i % 2)
		}
		in.Mask[0] = 1
		if n := testing.AllocsPerRun(20, func() {
			if err := m.Logits(logits, in, ws); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s, int8 %v: %v allocations a message", family, int8, n)
		}
	}
}

// TestVariantsAgree runs every length up to the longest on every kernel variant: panels and blocks end
// in another place for each.
func TestVariantsAgree(t *testing.T) {
	for _, family := range families {
		g := &maker{Rand: rand.New(rand.NewPCG(11, 9))}
		if family == "modernbert" { // a small window begins on every panel, and every row is read
			g.Rand = rand.New(rand.NewPCG(77, 7)) // four layers
			g.fixed = map[string]any{"local_attention": 5, "global_attn_every_n_layers": 2, "classifier_pooling": "mean"}
		}
		dir := g.model(t, family)
		ids := g.input(mostTokens, 0).IDs
		var want [][]float32 // by length, of the slowest variant
		for _, variant := range slices.Backward(kernel.Variants()) {
			restore, err := kernel.Use(variant)
			if err != nil {
				t.Fatal(err)
			}
			f, err := checkpoint.Load(dir, checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ws := f.Model.NewWorkspace()
			for n := 1; n <= len(ids); n++ {
				got := make([]float32, len(f.Model.Config().Labels))
				if err := f.Model.Logits(got, attention.Input{IDs: ids[:n]}, ws); err != nil {
					t.Fatal(err)
				}
				if len(want) < n {
					want = append(want, got)
				}
				for j, v := range got {
					w := want[n-1][j]
					if d := math.Abs(float64(v - w)); !(d <= 5e-5*max(1, math.Abs(float64(w)))) {
						t.Errorf("%s, %d tokens on %s: logit %d is %v, want %v\nconfig %v", family, n, variant, j, v, w, g.config)
					}
				}
			}
			restore()
		}
	}
}
