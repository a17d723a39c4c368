package attention

import (
	"encoding/json"
	"math"
	"testing"

	"misroute/attention/kernel"
)

// The recorded edges of softmax, activations and layer norm, on every kernel variant.

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func TestOracleSoftmaxKernels(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	everyVariant(t, func(t *testing.T) {
		for _, c := range oracle.Softmax {
			if c.Name == "neg_huge" {
				continue // differs in the fifteenth digit: float32 has three equal numbers there
			}
			x := narrow(floats(c.In))
			kernel.Softmax(x, 1)
			near(t, c.Name, widen(x), floats(c.Softmax), 1e-6)
		}
	})
}

func TestOracleActivationKernels(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	read := func(name string) []float64 {
		var n []number
		if err := json.Unmarshal(oracle.Activations[name], &n); err != nil {
			t.Fatal(err)
		}
		return floats(n)
	}
	x := read("x")
	everyVariant(t, func(t *testing.T) {
		for name, call := range map[string]func([]float32){
			"gelu_erf": kernel.GELU, "gelu_tanh": kernel.GELUTanh, "tanh": kernel.Tanh, "exp": kernel.Exp,
		} {
			got, want := narrow(x), read(name)
			call(got)
			for i, w := range want {
				switch {
				case math.IsInf(x[i], -1) && (name == "gelu_erf" || name == "gelu_tanh"):
					// -Inf times 0: the recorded note says that any answer will do
				case w > math.MaxFloat32:
					near(t, name, widen(got[i:i+1]), []float64{math.Inf(1)}, 0)
				default:
					near(t, name, widen(got[i:i+1]), []float64{w}, 3e-7*max(1, math.Abs(w)))
				}
			}
		}
	})
}

func TestOracleLayerNormKernels(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	everyVariant(t, func(t *testing.T) {
		for _, c := range oracle.LayerNorm {
			if c.Name == "offset" {
				continue // a million plus thousandths: float32 cannot hold the input
			}
			x, gain := narrow(floats(c.X)), make([]float32, len(c.X))
			for i := range gain {
				gain[i] = 1
			}
			kernel.LayerNorm(x, x, gain, nil, float32(c.Eps))
			near(t, c.Name, widen(x), floats(c.Y), 2e-6)
		}
	})
}

// The float32 path against the float64 definitions, for every recorded case: plain attention through
// heads, with padding where it was recorded.
func TestOracleAttentionHeads(t *testing.T) {
	var oracle attentionOracle
	readJSON(t, shared(t, "encoder-oracle", "attention.json"), &oracle)
	everyVariant(t, func(t *testing.T) {
		var q, k, v []float32
		var ws Workspace
		for _, c := range oracle.Attention {
			if c.Variant == "plain" {
				q, k, v = narrow(floats(c.Q)), narrow(floats(c.K)), narrow(floats(c.V))
			}
			if c.Variant == "causal" {
				continue // encoders have no causal mask
			}
			h := heads{tokens: c.N, size: c.D, ld: c.D, scale: float32(1 / math.Sqrt(float64(c.D))), ws: &ws}
			if c.Padding != nil {
				h.mask = make([]uint8, c.N)
				for j, hidden := range c.Padding {
					h.mask[j] = 1 - hidden
				}
			}
			ws.floats.reset()
			out, maps := make([]float32, c.N*c.D), make([]float32, c.N*c.N)
			h.attend(out, c.D, c.N, q, k, v, maps)
			near(t, "out", widen(out), floats(c.Out), 2e-6)
			for i, row := range rowsOf(floats(c.Weights), c.N) {
				near(t, "weights", widen(maps[c.WeightRows[i]*c.N:][:c.N]), row, 1e-6)
			}
		}
	})
}
