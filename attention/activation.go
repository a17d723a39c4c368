package attention

import (
	"maps"
	"math"
	"slices"

	"misroute/attention/kernel"
)

// activations are the activation functions by the names of config.json, applied in place. The names
// and formulas are those of Hugging Face transformers; several are spellings of one function. The
// last few are rare in classifiers and have no kernel: they are plain Go, for correctness, not speed.
var activations = map[string]func(x []float32){
	"gelu":              kernel.GELU,
	"gelu_python":       kernel.GELU,
	"gelu_new":          kernel.GELUTanh,
	"gelu_pytorch_tanh": kernel.GELUTanh,
	"gelu_fast":         kernel.GELUTanh,
	"gelu_accurate":     kernel.GELUTanh,
	"relu":              kernel.ReLU,
	"tanh":              kernel.Tanh,
	"linear":            func([]float32) {},
	"silu":              each(func(x float64) float64 { return x * sigmoid(x) }),
	"swish":             each(func(x float64) float64 { return x * sigmoid(x) }),
	"quick_gelu":        each(func(x float64) float64 { return x * sigmoid(1.702*x) }),
	"sigmoid":           each(sigmoid),
	"mish":              each(func(x float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) }),
	"relu2":             each(func(x float64) float64 { return max(x, 0) * max(x, 0) }),
	"relu6":             each(func(x float64) float64 { return min(max(x, 0), 6) }),
	"gelu_10":           each(func(x float64) float64 { return min(max(x*0.5*math.Erfc(-x/math.Sqrt2), -10), 10) }),
	"leaky_relu":        each(func(x float64) float64 { return max(x, 0.01*x) }),
}

// Activations lists the names that config.json may use, sorted.
func Activations() []string { return slices.Sorted(maps.Keys(activations)) }

// activation finds a function by its name; nil when it is unknown.
func activation(name string) func([]float32) { return activations[name] }

func each(f func(float64) float64) func([]float32) {
	return func(x []float32) {
		for i, v := range x {
			x[i] = float32(f(float64(v)))
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
