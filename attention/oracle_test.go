package attention

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"misroute/attention/kernel"
)

// shared finds a file of recorded numbers: under MISROUTE_SHARED, which may be relative to the
// module's root. Unset, the test is skipped.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for !exists(filepath.Join(dir, "go.mod")) {
			if dir == filepath.Dir(dir) {
				t.Fatal("no go.mod above the test")
			}
			dir = filepath.Dir(dir)
		}
		root = filepath.Join(dir, root)
	}
	path := filepath.Join(append([]string{root, "data"}, elem...)...)
	if !exists(path) {
		t.Fatalf("MISROUTE_SHARED is set and %s is missing", filepath.Join(elem...))
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// number reads JSON numbers and the strings "NaN", "+Inf" and "-Inf".
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"+Inf"`:
		*n = number(math.Inf(1))
	case `"-Inf"`:
		*n = number(math.Inf(-1))
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}

func floats(n []number) []float64 {
	x := make([]float64, len(n))
	for i, v := range n {
		x[i] = float64(v)
	}
	return x
}

func rowsOf(x []float64, columns int) (rows [][]float64) {
	for row := range slices.Chunk(x, columns) {
		rows = append(rows, row)
	}
	return rows
}

// attentionOracle is attention.json: float64 numbers from PyTorch.
type attentionOracle struct {
	Attention []struct {
		N, D         int
		Variant      string
		Q, K, V, Out []number
		Padding      []uint8 `json:"key_is_padding"`
		WeightRows   []int   `json:"weight_rows"`
		Weights      []number
	}
	AllMasked struct {
		Scores  []number
		Uniform []number `json:"additive_float32_min"`
	} `json:"all_masked_row"`
	Softmax []struct {
		Name, Dtype string
		In, Softmax []number
	}
	Activations map[string]json.RawMessage
	LayerNorm   []struct {
		Name string
		Eps  float64
		X, Y []number
	} `json:"layer_norm"`
}

func TestOracleAttention(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	var q, k, v [][]float64
	for _, c := range oracle.Attention {
		if c.Variant == "plain" {
			q, k, v = rowsOf(floats(c.Q), c.D), rowsOf(floats(c.K), c.D), rowsOf(floats(c.V), c.D)
		}
		var visible Mask
		switch c.Variant {
		case "causal":
			visible = Causal
		case "key_padding":
			visible = func(_, key int) bool { return c.Padding[key] == 0 }
		}
		out, weights := ScaledDotProduct(q, k, v, visible)
		name := fmt.Sprintf("%s n=%d d=%d", c.Variant, c.N, c.D)
		near(t, name+" out", slices.Concat(out...), floats(c.Out), 1e-12)
		for i, row := range rowsOf(floats(c.Weights), c.N) {
			near(t, name+" weights", weights[c.WeightRows[i]], row, 1e-12)
		}
	}
}

func TestOracleAllMaskedRow(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	scores := floats(oracle.AllMasked.Scores)
	hide(scores, 0, func(_, _ int) bool { return false })
	near(t, "weights", Softmax(scores), floats(oracle.AllMasked.Uniform), 1e-15)
}

func TestOracleSoftmax(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	for _, c := range oracle.Softmax {
		tolerance := 1e-12
		if c.Dtype == "float32" {
			tolerance = 1e-7 // recorded in float32
		}
		near(t, c.Name, Softmax(floats(c.In)), floats(c.Softmax), tolerance)
	}
}

// everyVariant runs a test once on each kernel variant of this processor.
func everyVariant(t *testing.T, test func(t *testing.T)) {
	for _, name := range kernel.Variants() {
		t.Run(name, func(t *testing.T) {
			restore, err := kernel.Use(name)
			if err != nil {
				t.Fatal(err)
			}
			defer restore()
			test(t)
		})
	}
}

// encoderCase is one case of cases.json: B messages of the same padded length.
type encoderCase struct {
	Name      string
	IDs       [][]int32 `json:"input_ids"`
	Mask      [][]uint8 `json:"attention_mask"`
	Types     [][]int32 `json:"token_type_ids"`
	Logits    []float64 `json:"logits_float64"`
	Dims      int       `json:"hidden_first_dims"`
	Hidden    []float64 `json:"last_hidden_state"`
	Pooled    []float64 `json:"pooled"`
	Attention []float64 `json:"attention_l0_h0"`
}

func TestOracleEncoders(t *testing.T) {
	for _, name := range []string{"tiny-bert", "tiny-distilbert", "tiny-roberta"} {
		dir := shared(t, "encoder-oracle", name)
		var file struct{ Cases []encoderCase }
		readJSON(t, filepath.Join(dir, "cases.json"), &file)
		t.Run(name, func(t *testing.T) {
			everyVariant(t, func(t *testing.T) {
				m := loadEncoder(t, dir)
				for _, c := range file.Cases {
					t.Run(c.Name, func(t *testing.T) { checkCase(t, m, c) })
				}
			})
		})
	}
}

// tolerance against float64; float32 PyTorch itself is within 4e-6 of it.
const tolerance = 2e-5

func checkCase(t *testing.T, m *Encoder, c encoderCase) {
	ws := m.NewWorkspace()
	labels := len(m.cfg.Labels)
	length := len(c.IDs[0])
	for i, ids := range c.IDs {
		in := Input{IDs: ids, Mask: c.Mask[i], TypeIDs: c.Types[i]}
		want := c.Logits[i*labels:][:labels]
		logits := make([]float32, labels)
		if err := m.Logits(logits, in, ws); err != nil {
			t.Fatal(err)
		}
		near(t, "logits", widen(logits), want, tolerance)
		trace, err := m.Trace(in)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "logits of the whole last layer", widen(trace.Logits), want, tolerance)
		near(t, "pooled", widen(trace.Pooled), c.Pooled[i*m.cfg.Hidden:][:m.cfg.Hidden], tolerance)
		if c.Attention != nil {
			near(t, "attention", widen(trace.Attention[0][0]), c.Attention[i*length*length:][:length*length], tolerance)
		}
		last := trace.Hidden[m.cfg.Layers]
		allMasked := !slices.Contains(c.Mask[i], 1)
		for pos := range length {
			if c.Mask[i][pos] == 0 && !allMasked {
				continue // what a padded position holds is nobody's business
			}
			want := c.Hidden[(i*length+pos)*c.Dims:][:c.Dims]
			near(t, fmt.Sprintf("hidden state at %d", pos), widen(last[pos*m.cfg.Hidden:][:c.Dims]), want, tolerance)
		}
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// tensors reads the float32 tensors of a safetensors file: enough for the recorded models.
func tensors(t testing.TB, path string) map[string][]float32 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := binary.LittleEndian.Uint64(data)
	var header map[string]struct {
		Dtype   string
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(data[8:8+size], &header); err != nil {
		t.Fatal(err)
	}
	all := map[string][]float32{}
	for name, h := range header {
		if h.Dtype != "F32" {
			continue
		}
		raw := data[8+size:][h.Offsets[0]:h.Offsets[1]]
		x := make([]float32, len(raw)/4)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		all[name] = x
	}
	return all
}

// loadEncoder builds a recorded model under its Hugging Face names.
func loadEncoder(t testing.TB, dir string) *Encoder {
	t.Helper()
	cfg, params := readEncoder(t, dir)
	m, err := NewEncoder(cfg, params)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func readEncoder(t testing.TB, dir string) (Config, *EncoderParams) {
	t.Helper()
	var c struct {
		Type   string            `json:"model_type"`
		Labels map[string]string `json:"id2label"`
		Layers int               `json:"num_hidden_layers"`
		Heads  int               `json:"num_attention_heads"`
		Hidden int               `json:"hidden_size"`
		FFN    int               `json:"intermediate_size"`
		Vocab  int               `json:"vocab_size"`
		Types  int               `json:"type_vocab_size"`
		Pad    int32             `json:"pad_token_id"`
		Eps    float32           `json:"layer_norm_eps"`
		// DistilBERT's names
		DLayers int `json:"n_layers"`
		DHeads  int `json:"n_heads"`
		DHidden int `json:"dim"`
		DFFN    int `json:"hidden_dim"`
	}
	readJSON(t, filepath.Join(dir, "config.json"), &c)
	all := tensors(t, filepath.Join(dir, "model.safetensors"))
	take := func(name string) []float32 {
		x, ok := all[name]
		if !ok {
			t.Fatalf("%s has no %s", dir, name)
		}
		return x
	}
	linear := func(name string) Linear { return Linear{Weight: take(name + ".weight"), Bias: take(name + ".bias")} }
	norm := func(name string) Norm { return Norm{take(name + ".weight"), take(name + ".bias")} }
	labels := make([]string, len(c.Labels))
	for i := range labels {
		labels[i] = c.Labels[fmt.Sprint(i)]
	}
	cfg := Config{ModelType: c.Type, Labels: labels, Layers: c.Layers, Heads: c.Heads, Hidden: c.Hidden, Intermediate: c.FFN,
		VocabSize: c.Vocab, TypeVocab: c.Types, PadID: c.Pad, NormEps: c.Eps, Activation: "gelu"}
	body := c.Type + ".embeddings."
	p := &EncoderParams{Words: take(body + "word_embeddings.weight"), Positions: take(body + "position_embeddings.weight"),
		EmbedNorm: norm(body + "LayerNorm")}
	if c.Type == "distilbert" {
		cfg.Layers, cfg.Heads, cfg.Hidden, cfg.Intermediate, cfg.NormEps = c.DLayers, c.DHeads, c.DHidden, c.DFFN, 1e-12
		p.Pool, p.Classify = linear("pre_classifier"), linear("classifier")
		for i := range cfg.Layers {
			l := fmt.Sprintf("distilbert.transformer.layer.%d.", i)
			p.Layers = append(p.Layers, LayerParams{
				Query: linear(l + "attention.q_lin"), Key: linear(l + "attention.k_lin"), Value: linear(l + "attention.v_lin"),
				Output: linear(l + "attention.out_lin"), AttentionNorm: norm(l + "sa_layer_norm"),
				Up: linear(l + "ffn.lin1"), Down: linear(l + "ffn.lin2"), OutputNorm: norm(l + "output_layer_norm"),
			})
		}
		return cfg, p
	}
	p.Types = take(body + "token_type_embeddings.weight")
	if c.Type == "bert" {
		p.Pool, p.Classify = linear("bert.pooler.dense"), linear("classifier")
	} else {
		p.Pool, p.Classify = linear("classifier.dense"), linear("classifier.out_proj")
	}
	for i := range cfg.Layers {
		l := fmt.Sprintf("%s.encoder.layer.%d.", c.Type, i)
		p.Layers = append(p.Layers, LayerParams{
			Query: linear(l + "attention.self.query"), Key: linear(l + "attention.self.key"), Value: linear(l + "attention.self.value"),
			Output: linear(l + "attention.output.dense"), AttentionNorm: norm(l + "attention.output.LayerNorm"),
			Up: linear(l + "intermediate.dense"), Down: linear(l + "output.dense"), OutputNorm: norm(l + "output.LayerNorm"),
		})
	}
	return cfg, p
}
