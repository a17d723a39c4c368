package train

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"misroute/attention"
)

// BenchmarkStep is one step of training at the shape of MiniLM-L6: forward, backward, clipping, AdamW
// over all parameters, on one goroutine. peers/compare.sh runs it beside PyTorch.
func BenchmarkStep(b *testing.B) {
	for _, shape := range []struct{ batch, tokens int }{{16, 128}, {8, 256}} {
		b.Run(fmt.Sprintf("messages=%d/tokens=%d", shape.batch, shape.tokens), func(b *testing.B) {
			e, err := NewEncoder(attention.Config{ModelType: "bert", Labels: make([]string, 8), Layers: 6, Heads: 12, Hidden: 384,
				Intermediate: 1536, VocabSize: 30522, Positions: 512, TypeVocab: 2, Activation: "gelu", NormEps: 1e-12}, 0.02, 1)
			if err != nil {
				b.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 1))
			batch := make([]Example, shape.batch)
			for i := range batch {
				ids := make([]int32, shape.tokens)
				for j := range ids {
					ids[j] = random.Int32N(30522)
				}
				batch[i] = Example{IDs: ids, Label: int32(i % 8)}
			}
			n := len(e.all.Values)
			r := &run{o: Options{Clip: 1, LayerRate: 1}.filled(), net: e, p: &e.all, optimizer: NewAdamW(n, 0.01),
				schedule: Schedule{Peak: 1e-5, WarmUp: 1, Total: 1 << 30}, tapes: []*tape{newTape()}, gradients: [][]float32{make([]float32, n)}}
			r.step(batch) // memory is there from then on
			best, before := time.Hour, processUsage()
			for b.Loop() {
				start := time.Now()
				r.step(batch)
				best = min(best, time.Since(start))
			}
			after, tokens := processUsage(), float64(shape.batch*shape.tokens)
			b.ReportMetric(tokens/best.Seconds(), "best-tokens/s")
			b.ReportMetric(tokens*float64(b.N)/(after.cpu-before.cpu).Seconds(), "tokens/CPU-s")
			b.ReportMetric(after.peakMB, "peak-MB")
		})
	}
}
