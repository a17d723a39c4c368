package attention_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"misroute/attention"
	"misroute/attention/checkpoint"
)

// naive is a model folder computed the plain way: float64, whole T x T maps, one function per layer,
// on the definitions of attention.go. It is the reference of every faster path and is never deleted.
// It reads config.json and the tensors by itself, so that a loader's mistake shows as well.
type naive struct {
	config  map[string]any
	tensors map[string]table
}

// table is a tensor of one or two dimensions in float64; a vector is one row.
type table [][]float64

// inside is what a naive forward pass leaves behind.
type inside struct {
	logits  []float64
	hidden  [][][]float64   // [0] after the embeddings, [l] after layer l: T x C
	weights [][][][]float64 // [layer][head]: T x T
}

func readNaive(t testing.TB, dir string) *naive {
	t.Helper()
	m := &naive{tensors: map[string]table{}}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &m.config)
	}
	if err != nil {
		t.Fatal(err)
	}
	weights, err := os.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	info, err := weights.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.NewFile(weights, info.Size(), "model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Infos() {
		info := &f.Infos()[i]
		data := make([]float32, info.Len())
		if err := f.ReadFloat32(data, info); err != nil {
			t.Fatal(err)
		}
		m.tensors[info.Name] = rows(data, info.Shape[len(info.Shape)-1])
	}
	return m
}

// run computes the family that config.json names.
func (m *naive) run(in attention.Input) inside {
	switch family := m.text("model_type", ""); family {
	case "bert":
		return m.runBERT(in, "bert")
	case "roberta", "xlm-roberta":
		return m.runBERT(in, "roberta")
	case "distilbert":
		return m.runDistilBERT(in)
	case "modernbert":
		return m.runModernBERT(in)
	case "deberta-v2":
		return m.runDeBERTa(in)
	default:
		panic("no naive " + family)
	}
}

// Settings with their defaults.

func (m *naive) number(name string, missing float64) float64 {
	if v, ok := m.config[name].(float64); ok {
		return v
	}
	return missing
}

func (m *naive) count(name string, missing int) int { return int(m.number(name, float64(missing))) }

func (m *naive) text(name, missing string) string {
	if v, ok := m.config[name].(string); ok {
		return v
	}
	return missing
}

func (m *naive) flag(name string, missing bool) bool {
	if v, ok := m.config[name].(bool); ok {
		return v
	}
	return missing
}

// has says whether there is a tensor.
func (m *naive) has(name string) bool { _, ok := m.tensors[name]; return ok }

// rows cuts data into rows.
func rows(data []float32, size int) (t table) {
	for at := 0; at < len(data); at += size {
		row := make([]float64, size)
		for j := range row {
			row[j] = float64(data[at+j])
		}
		t = append(t, row)
	}
	return t
}

// vector is row i of a table, or a whole vector for i = 0.
func (m *naive) vector(name string, i int) []float64 {
	t, ok := m.tensors[name]
	if !ok {
		panic("no tensor " + name)
	}
	return t[i]
}

// linear is x Wᵀ + b for every row; without a bias tensor there is no b.
func (m *naive) linear(x [][]float64, name string) [][]float64 {
	w := m.tensors[name+".weight"]
	bias := make([]float64, len(w))
	if m.has(name + ".bias") {
		bias = m.vector(name+".bias", 0)
	}
	y := make([][]float64, len(x))
	for i, row := range x {
		y[i] = make([]float64, len(w))
		for o := range w {
			y[i][o] = bias[o] + inner(row, w[o])
		}
	}
	return y
}

func inner(a, b []float64) (s float64) {
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// norm is layer norm of every row.
func (m *naive) norm(x [][]float64, name string, eps float64) [][]float64 {
	gain := m.vector(name+".weight", 0)
	bias := make([]float64, len(gain))
	if m.has(name + ".bias") {
		bias = m.vector(name+".bias", 0)
	}
	y := make([][]float64, len(x))
	for i, row := range x {
		mean, variance := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(len(row))
		}
		y[i] = make([]float64, len(row))
		for j, v := range row {
			y[i][j] = (v-mean)/math.Sqrt(variance+eps)*gain[j] + bias[j]
		}
	}
	return y
}

func sum(a, b [][]float64) [][]float64 {
	y := make([][]float64, len(a))
	for i := range a {
		y[i] = make([]float64, len(a[i]))
		for j := range a[i] {
			y[i][j] = a[i][j] + b[i][j]
		}
	}
	return y
}

// apply is an activation on every element.
func apply(x [][]float64, name string) [][]float64 {
	f := naiveActivation(name)
	y := make([][]float64, len(x))
	for i, row := range x {
		y[i] = make([]float64, len(row))
		for j, v := range row {
			y[i][j] = f(v)
		}
	}
	return y
}

// naiveActivation writes the formulas of Hugging Face transformers' activations.py out again.
func naiveActivation(name string) func(float64) float64 {
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	gelu := func(x float64) float64 { return x * 0.5 * (1 + math.Erf(x/math.Sqrt2)) }
	switch name {
	case "gelu", "gelu_python":
		return gelu
	case "gelu_10":
		return func(x float64) float64 { return max(-10, min(10, gelu(x))) }
	case "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate":
		return func(x float64) float64 {
			return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}
	case "quick_gelu":
		return func(x float64) float64 { return x * logistic(1.702*x) }
	case "relu":
		return func(x float64) float64 { return max(0, x) }
	case "relu2":
		return func(x float64) float64 { return max(0, x) * max(0, x) }
	case "relu6":
		return func(x float64) float64 { return min(max(0, x), 6) }
	case "leaky_relu":
		return func(x float64) float64 {
			if x < 0 {
				return 0.01 * x
			}
			return x
		}
	case "silu", "swish":
		return func(x float64) float64 { return x * logistic(x) }
	case "mish":
		return func(x float64) float64 { return x * math.Tanh(math.Log(1+math.Exp(x))) }
	case "sigmoid":
		return logistic
	case "tanh":
		return math.Tanh
	case "linear":
		return func(x float64) float64 { return x }
	}
	panic("no naive activation " + name)
}

// mask is the input's mask with nil written out.
func mask(in attention.Input) []uint8 {
	if in.Mask != nil {
		return in.Mask
	}
	m := make([]uint8, len(in.IDs))
	for i := range m {
		m[i] = 1
	}
	return m
}

// kind is the type of token i.
func kind(in attention.Input, i int) int {
	if in.TypeIDs == nil {
		return 0
	}
	return int(in.TypeIDs[i])
}

// add sums vectors.
func add(vectors ...[]float64) []float64 {
	total := make([]float64, len(vectors[0]))
	for _, v := range vectors {
		for j := range total {
			total[j] += v[j]
		}
	}
	return total
}

func layerName(format string, i int) string { return fmt.Sprintf(format, i) }
