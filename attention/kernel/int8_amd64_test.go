//go:build amd64 && !purego

package kernel

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkMatMulInt8 times byte products beside the most that registers alone can do.
func BenchmarkMatMulInt8(b *testing.B) {
	if Variant() != "avx512" || !haveVNNI {
		b.Skip("no VNNI")
	}
	r := rand.New(rand.NewPCG(1, 1))
	const m, k, n = 128, 384, 1536
	a, c, p := random(r, m*k, 1), make([]float32, m*n), PackInt8(random(r, n*k, 1), nil, n, k)
	q, scales := make([]uint8, m*QuantizedLen(k)), make([]float32, m)
	Quantize(q, scales, a, k, m, k)
	peak, best := time.Hour, time.Hour
	const loops = 2000
	for b.Loop() {
		start := time.Now()
		peakInt8VNNI(loops)
		peak = min(peak, time.Since(start))
		start = time.Now()
		MatMulInt8(c, n, q, scales, m, p, 0, n)
		best = min(best, time.Since(start))
	}
	most := loops * 24 * 64 * 2 / peak.Seconds()
	done := 2 * m * k * n / best.Seconds()
	b.ReportMetric(done/1e9, "best-GOPS")
	b.ReportMetric(100*done/most, "%peak")
	b.ReportMetric(0, "ns/op")
}
