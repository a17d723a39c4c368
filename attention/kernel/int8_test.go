package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whole-number sums are exact, so every variant has the same bits.
func TestInt8IsTheSameOnEveryVariant(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	shapes := [][3]int{{1, 1, 1}, {3, 64, 384}, {130, 50, 33}, {9, 7, 0}}
	for n := 1; n <= longest; n++ {
		shapes = append(shapes, [3]int{1 + r.IntN(18), n, 1 + r.IntN(70)}, [3]int{1 + r.IntN(10), 1 + r.IntN(150), n})
	}
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		lda, ldc := k+r.IntN(3), n+r.IntN(3)
		a, w, bias := random(r, m*lda, 2), random(r, n*k, 1), random(r, n, 1)
		exact := product64(a, lda, w, bias, m, n, k)
		var first []float32
		eachVariant(t, func(t *testing.T) {
			b := PackInt8(w, bias, n, k)
			q, scales := make([]uint8, m*QuantizedLen(k)), make([]float32, m)
			Quantize(q, scales, a, lda, m, k)
			c := newGuarded((m-1)*ldc+n, 1)
			MatMulInt8(c.x, ldc, q, scales, m, b, 0, n)
			c.check(t)
			got := make([]float32, 0, m*n)
			for i := range m {
				got = append(got, c.x[i*ldc:][:n]...)
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Errorf("%v: the bits differ from those of %s", s, Variants()[0])
			}
			for i, want := range exact {
				// half a step of both factors, over k products
				row, column := a[i/n*lda:][:k], w[i%n*k:][:k]
				bound, x, y := 1e-5, largest(row), largest(column)
				for p := range k {
					bound += (x*math.Abs(float64(column[p])) + y*math.Abs(float64(row[p]))) / 127
				}
				if math.Abs(float64(got[i])-want) > bound {
					t.Fatalf("%v: number %d is %v, want %v within %v", s, i, got[i], want, bound)
				}
			}
		})
	}
}

func largest(x []float32) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(float64(v)))
	}
	return most
}

// A matrix that is quantized for one message has the numbers of one that was packed at load.
func TestInt8Grow(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 8))
		for n := 1; n < 140; n += 1 + n/20 {
			k := 1 + r.IntN(80)
			const m = 5
			a, ld := random(r, m*k, 1), k+r.IntN(4)
			w := random(r, n*ld, 1)
			tight := make([]float32, 0, n*k)
			for j := range n {
				tight = append(tight, w[j*ld:][:k]...)
			}
			q, scales := make([]uint8, m*QuantizedLen(k)), make([]float32, m)
			Quantize(q, scales, a, k, m, k)
			want, got := make([]float32, m*n), make([]float32, m*n)
			MatMulInt8(want, n, q, scales, m, PackInt8(tight, nil, n, k), 0, n)
			var b PackedInt8
			b.Grow(random(r, PackedInt8Len(n, k), 1), n, k)
			b.SetTransposed(w, ld, make([]uint8, n*QuantizedLen(k)+4))
			MatMulInt8(got, n, q, scales, m, &b, 0, n)
			// a weight halfway between two numbers may go either way: division by the scale, or product
			// with its inverse
			closeTo(t, fmt.Sprintf("n=%d k=%d", n, k), got, widen(want), 0.05)
		}
	})
}

func TestInt8Columns(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 8))
		const m, n, k = 5, 210, 40
		a, b := random(r, m*k, 1), PackInt8(random(r, n*k, 1), random(r, n, 1), n, k)
		q, scales := make([]uint8, m*k), make([]float32, m)
		Quantize(q, scales, a, k, m, k)
		all := make([]float32, m*n)
		MatMulInt8(all, n, q, scales, m, b, 0, n)
		from := b.PanelStart(100)
		part := make([]float32, m*(n-from))
		MatMulInt8(part, n-from, q, scales, m, b, from, n)
		for i := range m {
			if !slices.Equal(part[i*(n-from):][:n-from], all[i*n+from:][:n-from]) {
				t.Fatalf("row %d of the columns from %d on differs", i, from)
			}
		}
	})
}

func TestQuantizeEdges(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		for k := 1; k <= longest; k++ {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				for i := range k {
					x := make([]float32, k)
					x[i] = float32(bad)
					b := PackInt8(slices.Repeat([]float32{1}, k), nil, 1, k)
					q, scales, c := make([]uint8, QuantizedLen(k)), make([]float32, 1), make([]float32, 1)
					Quantize(q, scales, x, k, 1, k)
					MatMulInt8(c, 1, q, scales, 1, b, 0, 1)
					if !(math.IsNaN(float64(c[0])) || math.IsInf(float64(c[0]), 0)) {
						t.Fatalf("k=%d, %v at %d: the product is %v", k, bad, i, c[0])
					}
				}
			}
			q, scales := make([]uint8, QuantizedLen(k)), make([]float32, 1)
			Quantize(q, scales, make([]float32, k), k, 1, k)
			for i, v := range q[:k] {
				if v != 128 {
					t.Fatalf("k=%d: 0 at %d became %d", k, i, v)
				}
			}
		}
	})
}
