package attention_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"misroute/attention"
)

// shape is a size in which a family is published; the layers are fewer, time grows with their number.
type shape struct{ hidden, heads, wide, layers int }

func (s shape) config(modelType string) attention.Config {
	return attention.Config{
		ModelType: modelType, Labels: []string{"a", "b"}, Layers: s.layers, Heads: s.heads, Hidden: s.hidden,
		Intermediate: s.wide, VocabSize: 1000, Activation: "gelu", NormEps: 1e-5,
	}
}

// numbers are random weights whose products keep their size.
func numbers(r *rand.Rand, n, in int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64()) / float32(in)
	}
	return x
}

func someLinear(r *rand.Rand, out, in int) attention.Linear {
	return attention.Linear{Out: out, In: in, Weight: numbers(r, out*in, in), Bias: numbers(r, out, 1)}
}

func someNorm(r *rand.Rand, n int) attention.Norm {
	return attention.Norm{Gain: numbers(r, n, 1), Bias: numbers(r, n, 1)}
}

// modernBase has the shape of ModernBERT-base and its one global layer in three.
func modernBase(b *testing.B, layers int) attention.Model {
	s, r := shape{768, 12, 1152, layers}, rand.New(rand.NewPCG(1, 1))
	c := s.hidden
	p := &attention.ModernBERTParams{
		Tokens: numbers(r, 1000*c, 1), EmbedNorm: someNorm(r, c), FinalNorm: someNorm(r, c), Pooling: "mean",
		Head: someLinear(r, c, c), HeadActivation: "gelu", HeadNorm: someNorm(r, c), Classify: someLinear(r, 2, c),
	}
	for i := range layers {
		p.Layers = append(p.Layers, attention.ModernBERTLayer{
			AttentionNorm: someNorm(r, c), QKV: someLinear(r, 3*c, c), Output: someLinear(r, c, c), FeedNorm: someNorm(r, c),
			GateUp: someLinear(r, 2*s.wide, c), Down: someLinear(r, c, s.wide), Local: i%3 != 0, Window: 64, Theta: 10_000,
		})
	}
	m, err := attention.NewModernBERT(s.config("modernbert"), p)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// debertaBase has the shape of DeBERTa-v3-base.
func debertaBase(b *testing.B, layers int) attention.Model {
	s, r := shape{768, 12, 3072, layers}, rand.New(rand.NewPCG(1, 1))
	c := s.hidden
	p := &attention.DeBERTaParams{
		Words: numbers(r, 1000*c, 1), EmbedNorm: someNorm(r, c), Relative: numbers(r, 512*c, 1), RelativeNorm: someNorm(r, c),
		Distances: attention.Distances{Span: 256, Buckets: 256, MaxDistance: 512}, ContentToPos: true, PosToContent: true, ScaleTerms: 3,
		Pool: someLinear(r, c, c), PoolActivation: "gelu", Classify: someLinear(r, 2, c),
	}
	for range layers {
		p.Layers = append(p.Layers, attention.DeBERTaLayer{LayerParams: attention.LayerParams{
			Query: someLinear(r, c, c), Key: someLinear(r, c, c), Value: someLinear(r, c, c), Output: someLinear(r, c, c),
			AttentionNorm: someNorm(r, c), Up: someLinear(r, s.wide, c), Down: someLinear(r, c, s.wide), OutputNorm: someNorm(r, c),
		}})
	}
	m, err := attention.NewDeBERTa(s.config("deberta-v2"), p)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkFamilies times three layers of each family; the best time stands beside the mean, since
// other work shares the machine.
func BenchmarkFamilies(b *testing.B) {
	for _, family := range []struct {
		name string
		make func(b *testing.B, layers int) attention.Model
	}{{"modernbert", modernBase}, {"deberta", debertaBase}} {
		m := family.make(b, 3)
		ws, logits := m.NewWorkspace(), make([]float32, 2)
		for _, tokens := range []int{128, 512, 2048} {
			b.Run(fmt.Sprintf("%s/tokens=%d", family.name, tokens), func(b *testing.B) {
				in := attention.Input{IDs: make([]int32, tokens)}
				for i := range in.IDs {
					in.IDs[i] = int32(i * 7 % 1000)
				}
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					if err := m.Logits(logits, in, ws); err != nil {
						b.Fatal(err)
					}
					best = min(best, time.Since(start))
				}
				_, flops := m.Cost(tokens)
				b.ReportMetric(best.Seconds()*1e3, "best-ms")
				b.ReportMetric(float64(flops)/best.Seconds()/1e9, "best-GFLOPS")
			})
		}
	}
}
