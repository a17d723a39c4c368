package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// measurePeak finds the most multiply-adds the core does now, with nothing but registers: the best of a
// few short runs.
func measurePeak(b *testing.B) float64 {
	best := 0.0
	for range 200 {
		start := time.Now()
		flops := PeakLoop(2000)
		best = max(best, flops/time.Since(start).Seconds())
	}
	return best / 1e9
}

func BenchmarkMatMul(b *testing.B) {
	for _, variant := range Variants() {
		if variant == "generic" {
			continue
		}
		restore, err := Use(variant)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range [][3]int{{128, 384, 384}, {128, 384, 1536}, {128, 1536, 384}, {128, 768, 3072}, {13, 384, 1536}, {17, 384, 1536}, {128, 32, 512}, {8, 512, 32}, {8, 512, 64}} {
			m, k, n := s[0], s[1], s[2]
			b.Run(fmt.Sprintf("%s/m=%d,k=%d,n=%d", variant, m, k, n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				a, c, p := random(r, m*k, 1), make([]float32, m*n), Pack(random(r, n*k, 1), nil, n, k)
				peak := measurePeak(b)
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					MatMul(c, n, a, k, m, p)
					best = min(best, time.Since(start))
				}
				gflops := 2 * float64(m) * float64(k) * float64(n) / best.Seconds() / 1e9
				b.ReportMetric(gflops, "best-GFLOPS")
				b.ReportMetric(100*gflops/peak, "%peak")
				b.ReportMetric(peak, "peak-GFLOPS")
			})
		}
		restore()
	}
}

func BenchmarkElementwise(b *testing.B) {
	const n = 4096
	r := rand.New(rand.NewPCG(1, 1))
	start := random(r, n, 2)
	x := make([]float32, n)
	sums := make([]float32, 8)
	for _, variant := range Variants() {
		restore, err := Use(variant)
		if err != nil {
			b.Fatal(err)
		}
		for name, call := range map[string]func(){
			"clock":      func() {}, // what measuring costs
			"exp":        func() { Exp(x) },
			"gelu":       func() { GELU(x) },
			"geluTanh":   func() { GELUTanh(x) },
			"expWeights": func() { ExpWeights(x, 512, 8, 512, 0.1, sums) },
			"norm": func() {
				for i := 0; i+384 <= n; i += 384 {
					AddLayerNorm(x[i:i+384], x[i:i+384], start[i:i+384], start[:384], start[:384], 1e-12)
				}
			},
		} {
			b.Run(variant+"/"+name, func(b *testing.B) {
				best := time.Hour
				for b.Loop() {
					copy(x, start)
					before := time.Now()
					call()
					best = min(best, time.Since(before))
				}
				b.ReportMetric(float64(best.Nanoseconds())/n, "best-ns/element")
				b.ReportMetric(0, "ns/op")
			})
		}
		restore()
	}
}
