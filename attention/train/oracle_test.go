package train

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"misroute/attention"
)

// gradients.json was made with PyTorch in float64; its note asks a float32 engine for 2e-4 relative.
const oracleTolerance = 2e-4

type array struct {
	Shape []int
	Data  []float64
}

func (a array) float32() []float32 {
	x := make([]float32, len(a.Data))
	for i, v := range a.Data {
		x[i] = float32(v)
	}
	return x
}

type layerCase struct {
	Heads, Hidden, FFN int
	Eps                float64
	Mask               [][]uint8 `json:"attention_mask"`
	X, R, Out          array
	GradX              array `json:"grad_x"`
	Params, Grads      map[string]array
}

type classifierCase struct {
	IDs    [][]int32 `json:"input_ids"`
	Mask   [][]uint8 `json:"attention_mask"`
	Types  [][]int32 `json:"token_type_ids"`
	Labels []int32
	Params map[string]array
	Losses map[string]struct {
		Logits array
		Loss   float64
		Grads  map[string]array
	}
	AdamW struct {
		LR      float64
		Decay   float64 `json:"weight_decay"`
		Clip    float64 `json:"clip_norm"`
		History []struct {
			Loss float64
			Norm float64 `json:"grad_norm_before_clip"`
		}
		Final map[string]array `json:"final_params"`
	} `json:"adamw_5_steps"`
}

func readOracle(t *testing.T) (o struct {
	Self       layerCase      `json:"self_attention"`
	Layer      layerCase      `json:"encoder_layer"`
	Classifier classifierCase `json:"classifier"`
}) {
	t.Helper()
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", "..", root) // this package stands two folders below the module's root
	}
	text, err := os.ReadFile(filepath.Join(root, "data", "encoder-oracle", "gradients.json"))
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// compare holds numbers against recorded ones, relative to the largest of the array: single entries
// are sums that cancel.
func compare(t *testing.T, name string, got []float32, want array) {
	t.Helper()
	if len(got) != len(want.Data) {
		t.Errorf("%s: %d numbers, want %d", name, len(got), len(want.Data))
		return
	}
	largest := 1e-2
	for _, w := range want.Data {
		largest = max(largest, math.Abs(w))
	}
	worst := 0.0
	for i, w := range want.Data {
		worst = max(worst, math.Abs(float64(got[i])-w))
	}
	if !(worst <= oracleTolerance*largest) {
		t.Errorf("%s: off by %.3g, its largest number being %.3g", name, worst, largest)
	}
}

// torchNames maps the parts of an encoder to PyTorch's names; prefix stands before a layer's.
func torchNames(prefix string) map[string]string {
	names := map[string]string{
		"words": "bert.embeddings.word_embeddings.weight", "positions": "bert.embeddings.position_embeddings.weight",
		"types":           "bert.embeddings.token_type_embeddings.weight",
		"embed norm.gain": "bert.embeddings.LayerNorm.weight", "embed norm.bias": "bert.embeddings.LayerNorm.bias",
		"pool.weight": "bert.pooler.dense.weight", "pool.bias": "bert.pooler.dense.bias",
		"classify.weight": "classifier.weight", "classify.bias": "classifier.bias",
	}
	for ours, theirs := range map[string]string{
		"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
		"output": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense",
	} {
		for _, kind := range []string{".weight", ".bias"} {
			names["layer 0 "+ours+kind] = prefix + theirs + kind
		}
	}
	for ours, theirs := range map[string]string{"attention norm": "attention.output.LayerNorm", "output norm": "output.LayerNorm"} {
		names["layer 0 "+ours+".gain"] = prefix + theirs + ".weight"
		names["layer 0 "+ours+".bias"] = prefix + theirs + ".bias"
	}
	return names
}

// oracleName finds the recorded array of a part; layers are recorded under names of their own.
func oracleArray(t *testing.T, arrays map[string]array, name string) array {
	t.Helper()
	for _, prefix := range []string{"bert.encoder.layer.0.", ""} {
		if a, ok := arrays[torchNames(prefix)[name]]; ok {
			return a
		}
	}
	theirs := torchNames("")[name]
	for key, a := range arrays {
		if strings.HasSuffix(theirs, key) || strings.HasSuffix(key, theirs) {
			return a
		}
	}
	t.Fatalf("no array for %q among %d", name, len(arrays))
	return array{}
}

func loadParameters(t *testing.T, e *Encoder, arrays map[string]array, only string) {
	t.Helper()
	for _, p := range e.all.Parts {
		if strings.HasPrefix(p.Name, only) {
			copy(e.all.Values[p.From:p.To], oracleArray(t, arrays, p.Name).float32())
		}
	}
}

func tinyEncoder(t *testing.T, hidden, ffn int) *Encoder {
	t.Helper()
	e, err := NewEncoder(attention.Config{ModelType: "bert", Labels: []string{"a", "b", "c"}, Layers: 1, Heads: 2, Hidden: hidden,
		Intermediate: ffn, VocabSize: 13, Positions: 8, TypeVocab: 2, Activation: "gelu", NormEps: 1e-12}, 0.02, 1)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func flatMask(mask [][]uint8) []uint8 { return slices.Concat(mask...) }

func TestSelfAttentionGradient(t *testing.T) {
	o := readOracle(t).Self
	tp := newTape()
	c := o.Hidden
	x, dout := o.X.float32(), o.R.float32()
	linear := func(arrays map[string]array, name string) attention.Linear {
		l := attention.Linear{In: c, Out: c, Weight: make([]float32, c*c), Bias: make([]float32, c)}
		if arrays != nil {
			l.Weight, l.Bias = arrays[name+".weight"].float32(), arrays[name+".bias"].float32()
		}
		return l
	}
	q, k, v := linear(o.Params, "query"), linear(o.Params, "key"), linear(o.Params, "value")
	kv := attention.Linear{In: c, Out: 2 * c, Weight: slices.Concat(k.Weight, v.Weight), Bias: slices.Concat(k.Bias, v.Bias)}
	gq := linear(nil, "")
	gkv := attention.Linear{In: c, Out: 2 * c, Weight: make([]float32, 2*c*c), Bias: make([]float32, 2*c)}
	ys, keysValues := tp.linear(x, q), tp.linear(x, kv)
	out, n := make([]float32, len(x)), len(o.Mask[0])
	dq, dkv, dx := tp.zero(len(x)), tp.zero(2*len(x)), make([]float32, len(x))
	for b, mask := range o.Mask {
		a := attended{queries: n, keys: n, heads: o.Heads, size: c / o.Heads, q: ys[b*n*c:], kv: keysValues[b*n*2*c:], mask: mask}
		tp.attend(out[b*n*c:], &a)
		tp.attendBack(dq[b*n*c:], dkv[b*n*2*c:], dout[b*n*c:], &a)
	}
	tp.linearBack(dx, dq, x, q, gq)
	tp.linearBack(dx, dkv, x, kv, gkv)
	compare(t, "out", out, o.Out)
	compare(t, "dx", dx, o.GradX)
	compare(t, "query.weight", gq.Weight, o.Grads["query.weight"])
	compare(t, "query.bias", gq.Bias, o.Grads["query.bias"])
	compare(t, "key.weight", gkv.Weight[:c*c], o.Grads["key.weight"])
	compare(t, "value.weight", gkv.Weight[c*c:], o.Grads["value.weight"])
	compare(t, "value.bias", gkv.Bias[c:], o.Grads["value.bias"])
}

func TestEncoderLayerGradient(t *testing.T) {
	o := readOracle(t).Layer
	e := tinyEncoder(t, o.Hidden, o.FFN)
	loadParameters(t, e, o.Params, "layer 0")
	tp := newTape()
	gradient := make([]float32, len(e.all.Values))
	g := e.view(&layout{vector: gradient})
	n := len(o.Mask[0])
	at := []int{0, n, 2 * n}
	var s layerPass
	y := e.layer(tp, &s, &e.p.Layers[0], o.X.float32(), at, flatMask(o.Mask))
	dx := e.layerBack(tp, &s, &e.p.Layers[0], &g.Layers[0], o.R.float32(), at)
	compare(t, "out", y, o.Out)
	compare(t, "dx", dx, o.GradX)
	for _, p := range e.all.Parts {
		if strings.HasPrefix(p.Name, "layer 0") {
			compare(t, p.Name, gradient[p.From:p.To], oracleArray(t, o.Grads, p.Name))
		}
	}
}

// tokens leaves out the padding: this engine never sees any.
func (o *classifierCase) messages(e *Encoder) ([]Example, messages) {
	var examples []Example
	var types []int32
	for b, ids := range o.IDs {
		n := 0
		for _, m := range o.Mask[b] {
			n += int(m)
		}
		examples = append(examples, Example{IDs: ids[:n], Label: o.Labels[b]})
		types = append(types, o.Types[b][:n]...)
	}
	m := e.messages(examples)
	m.types = types
	return examples, m
}

func TestClassifierGradient(t *testing.T) {
	o := readOracle(t).Classifier
	e := tinyEncoder(t, 8, 16)
	loadParameters(t, e, o.Params, "")
	examples, m := o.messages(e)
	for name, want := range o.Losses {
		loss := &Loss{}
		total := 3.0
		switch name {
		case "sum":
			total = 1
		case "class_weighted":
			loss.Weights = []float64{1, 2, .5}
			total = loss.total(examples)
		case "label_smoothing_0.1":
			loss.Smoothing = .1
		}
		tp := newTape()
		gradient := make([]float32, len(e.all.Values))
		s := e.forward(tp, m)
		compare(t, name+" logits", s.logits, want.Logits)
		got := e.backward(gradient, s, examples, loss, total, tp)
		if math.Abs(got-want.Loss) > oracleTolerance*want.Loss {
			t.Errorf("%s: loss %.6f, want %.6f", name, got, want.Loss)
		}
		for _, p := range e.all.Parts {
			compare(t, name+" "+p.Name, gradient[p.From:p.To], oracleArray(t, want.Grads, p.Name))
		}
	}
}

func TestAdamWAgainstPyTorch(t *testing.T) {
	o := readOracle(t).Classifier
	e := tinyEncoder(t, 8, 16)
	loadParameters(t, e, o.Params, "")
	examples, m := o.messages(e)
	optimizer := NewAdamW(len(e.all.Values), o.AdamW.Decay)
	optimizer.DecayAll = true // the file says "all parameters"
	tp := newTape()
	for i, want := range o.AdamW.History {
		tp.start(0, 0, 0)
		gradient := make([]float32, len(e.all.Values))
		loss := e.backward(gradient, e.forward(tp, m), examples, &Loss{}, 3, tp)
		length := e.all.norm(gradient)
		if math.Abs(loss-want.Loss) > oracleTolerance*want.Loss || math.Abs(length-want.Norm) > oracleTolerance*want.Norm {
			t.Errorf("step %d: loss %.6f, norm %.6f, want %.6f, %.6f", i+1, loss, length, want.Loss, want.Norm)
		}
		optimizer.update(&e.all, gradient, clip(length, o.AdamW.Clip), func(*Part) float64 { return o.AdamW.LR })
	}
	for _, p := range e.all.Parts {
		// Where the gradient is zero but for rounding (a key's bias moves all scores of a query alike),
		// Adam divides noise by noise: float32 cannot follow float64 there.
		if strings.HasSuffix(p.Name, "key.bias") {
			continue
		}
		compare(t, p.Name, e.all.Values[p.From:p.To], oracleArray(t, o.AdamW.Final, p.Name))
	}
}
