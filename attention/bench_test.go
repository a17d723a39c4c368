package attention

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"misroute/attention/kernel"
)

// shape is the size of an encoder.
type shape struct{ layers, hidden, heads, wide, positions int }

var miniLM = shape{6, 384, 12, 1536, 512}

// randomEncoder is an encoder of a given shape with random parameters: speed does not depend on them.
func randomEncoder(tb testing.TB, s shape) *Encoder {
	tb.Helper()
	cfg, p := randomParams(s, 5000, 7)
	m, err := NewEncoder(cfg, p)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func randomEncoderInt8(tb testing.TB, s shape) *Encoder {
	tb.Helper()
	cfg, p := randomParams(s, 5000, 7)
	m, err := NewEncoderInt8(cfg, p)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func randomParams(s shape, vocabulary, labels int) (Config, *EncoderParams) {
	r := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int, spread float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = spread * (2*r.Float32() - 1)
		}
		return x
	}
	linear := func(out, in int) Linear {
		return Linear{Weight: numbers(out*in, 0.08), Bias: numbers(out, 0.1)}
	}
	norm := func() Norm {
		gain := numbers(s.hidden, 0.1)
		for i := range gain {
			gain[i]++
		}
		return Norm{gain, numbers(s.hidden, 0.1)}
	}
	c := s.hidden
	p := &EncoderParams{Words: numbers(vocabulary*c, 1), Positions: numbers(s.positions*c, 0.3), Types: numbers(2*c, 0.3), EmbedNorm: norm(),
		Pool: linear(c, c), Classify: linear(labels, c)}
	for range s.layers {
		p.Layers = append(p.Layers, LayerParams{linear(c, c), linear(c, c), linear(c, c), linear(c, c), norm(), linear(s.wide, c), linear(c, s.wide), norm()})
	}
	cfg := Config{ModelType: "bert", Labels: make([]string, labels), Layers: s.layers, Heads: s.heads, Hidden: c, Intermediate: s.wide,
		VocabSize: vocabulary, TypeVocab: 2, NormEps: 1e-12, Activation: "gelu"}
	return cfg, p
}

func message(tokens int) Input {
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = int32(i * 7919 % 4999)
	}
	return Input{IDs: ids}
}

// peak measures the most multiply-adds this core does now.
func peak() (gflops float64) {
	for range 200 {
		start := time.Now()
		flops := kernel.PeakLoop(2000)
		gflops = max(gflops, flops/time.Since(start).Seconds()/1e9)
	}
	return gflops
}

// BenchmarkMiniLM times one message of the shape of MiniLM-L6: the least time, what that is in
// GFLOPS of the work really done, and the share of the core's peak in the same seconds.
func BenchmarkMiniLM(b *testing.B) {
	for _, variant := range kernel.Variants()[:max(1, len(kernel.Variants())-1)] {
		restore, err := kernel.Use(variant)
		if err != nil {
			b.Fatal(err)
		}
		m := randomEncoder(b, miniLM)
		for _, tokens := range []int{32, 128, 256, 512} {
			b.Run(fmt.Sprintf("%s/tokens=%d", variant, tokens), func(b *testing.B) { timeModel(b, m, tokens) })
		}
		restore()
	}
}

// BenchmarkMiniLMInt8 is BenchmarkMiniLM with 8-bit weights; its GFLOPS count the same operations.
func BenchmarkMiniLMInt8(b *testing.B) {
	m := randomEncoderInt8(b, miniLM)
	for _, tokens := range []int{32, 128, 256, 512} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) { timeModel(b, m, tokens) })
	}
}

func timeModel(b *testing.B, m Model, tokens int) {
	ws, in := m.NewWorkspace(), message(tokens)
	logits := make([]float32, len(m.Config().Labels))
	_, flops := m.Cost(tokens)
	top := peak()
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		if err := m.Logits(logits, in, ws); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	top = max(top, peak())
	gflops := float64(flops) / best.Seconds() / 1e9
	b.ReportMetric(best.Seconds()*1e3, "min-ms")
	b.ReportMetric(gflops, "GFLOPS")
	b.ReportMetric(100*gflops/top, "%peak")
	b.ReportMetric(0, "ns/op")
}
