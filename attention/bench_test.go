package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
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
// GFLOPS of the work really done, and the share of the core's peak in the same seconds: of its best
// moment, a few microseconds, and of its best stretch with as much work as the message, run in turn with
// it, since nothing that takes milliseconds is spared by interrupts and neighbours.
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

// mailLengths is a log-normal mixture of message lengths with a median of 120 tokens, capped at 512: the
// quantiles of 64 messages, in an order without pattern.
func mailLengths() []int {
	lengths := make([]int, 64)
	for i := range lengths {
		// the i-th of 64 equal slices of the distribution, by the inverse of the normal integral
		z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/64-1)
		lengths[i*37%64] = max(16, min(512, int(120*math.Exp(0.8*z))))
	}
	return lengths
}

// BenchmarkMix times 64 messages of mixed lengths one by one, on as many goroutines as there are
// processors, each with its own messages. MISROUTE_LENGTHS may name a JSON file with other lengths.
func BenchmarkMix(b *testing.B) {
	lengths := mailLengths()
	if path := os.Getenv("MISROUTE_LENGTHS"); path != "" {
		readJSON(b, path, &lengths)
	}
	for _, m := range []*Encoder{randomEncoder(b, miniLM), randomEncoderInt8(b, miniLM)} {
		b.Run(m.Precision(), func(b *testing.B) {
			workers := runtime.GOMAXPROCS(0)
			best := time.Duration(math.MaxInt64)
			round := func() {
				var wait sync.WaitGroup
				for range workers {
					wait.Go(func() {
						ws := m.NewWorkspace()
						for _, n := range lengths {
							logits(b, m, message(n), ws)
						}
					})
				}
				wait.Wait()
			}
			for b.Loop() {
				start := time.Now()
				round()
				best = min(best, time.Since(start))
			}
			b.ReportMetric(best.Seconds()*1e3, "min-ms")
			b.ReportMetric(float64(workers*len(lengths))/best.Seconds(), "messages/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLongMessages shows the square term: one message of 32 to 8,192 tokens under full attention
// and under a window of 64 tokens to each side, with the share of the scores' products in the work.
func BenchmarkLongMessages(b *testing.B) {
	s := miniLM
	s.layers, s.positions = 2, 8192
	m := randomEncoder(b, s)
	for _, window := range []int{0, 64} {
		kind := "full"
		if window > 0 {
			kind = fmt.Sprintf("window=%d", window)
		}
		for tokens := 32; tokens <= s.positions; tokens *= 2 {
			b.Run(fmt.Sprintf("%s/tokens=%d", kind, tokens), func(b *testing.B) { timeLayer(b, m, tokens, window) })
		}
	}
}

// timeLayer times one whole layer.
func timeLayer(b *testing.B, m *Encoder, tokens, window int) {
	c, l := m.cfg.Hidden, &m.layers[0]
	size := c / m.cfg.Heads
	var ws Workspace
	x, qkv, context := kernel.Memory(tokens*c), kernel.Memory(tokens*3*c), kernel.Memory(tokens*c)
	m.embed(x, message(tokens))
	h := heads{tokens: tokens, size: size, ld: 3 * c, scale: float32(1 / math.Sqrt(float64(size))), local: window > 0, window: window, ws: &ws}
	whole, scores := time.Hour, time.Hour
	for b.Loop() {
		ws.floats.reset()
		start := time.Now()
		l.qkv.product(qkv, 3*c, x, c, tokens, &ws)
		before := time.Now()
		for i := range m.cfg.Heads {
			h.attend(context[i*size:], c, tokens, qkv[i*size:], qkv[c+i*size:], qkv[2*c+i*size:], nil)
		}
		scores = min(scores, time.Since(before))
		m.feedForward(x, context, tokens, l, &ws)
		whole = min(whole, time.Since(start))
	}
	b.ReportMetric(whole.Seconds()*1e3, "min-ms/layer")
	b.ReportMetric(whole.Seconds()*1e6/float64(tokens), "µs/token")
	b.ReportMetric(100*scores.Seconds()/whole.Seconds(), "%attention")
	b.ReportMetric(0, "ns/op")
}

func timeModel(b *testing.B, m Model, tokens int) {
	ws, in := m.NewWorkspace(), message(tokens)
	logits := make([]float32, len(m.Config().Labels))
	_, flops := m.Cost(tokens)
	top, topAsLong := peak(), 0.0
	best := time.Hour
	turns := int(float64(flops) / (kernel.PeakLoop(1000) / 1000)) // of the loop: as much work as a message
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if err := m.Logits(logits, in, ws); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
		start = time.Now()
		most := kernel.PeakLoop(turns)
		topAsLong = max(topAsLong, most/time.Since(start).Seconds()/1e9)
	}
	top = max(top, peak())
	gflops := float64(flops) / best.Seconds() / 1e9
	b.ReportMetric(best.Seconds()*1e3, "min-ms")
	b.ReportMetric(gflops, "GFLOPS")
	b.ReportMetric(100*gflops/top, "%peak")
	b.ReportMetric(100*gflops/topAsLong, "%peak-as-long")
	b.ReportMetric(0, "ns/op")
}
