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

// Weights in bytes are those of softmax within a step of the largest, sum to what is said, and leave the
// scores' neighbours alone.
func TestExpBytes(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 8))
		for n := 1; n <= 2*longest; n++ {
			rows, ld, ldq := 1+r.IntN(9), n+r.IntN(5), n+r.IntN(5)
			x := newGuarded(rows*ld, r.IntN(3))
			copy(x.x, random(r, rows*ld, 3))
			before := slices.Clone(x.x)
			q, sums := slices.Repeat([]uint8{77}, rows*ldq+64), newGuarded(rows, 0)
			ExpBytes(q[:rows*ldq], ldq, x.x, ld, rows, n, 0.5, sums.x)
			x.check(t)
			sums.check(t)
			for i := range rows {
				row, sum := before[i*ld:][:n], 0
				highest := float64(slices.Max(row))
				for j, v := range row {
					got := int(q[i*ldq+j])
					sum += got
					// a threshold between 1/32 and 31/32, and float32 between
					if want := 255 * math.Exp(0.5*(float64(v)-highest)); math.Abs(float64(got)-want) > 31./32+1e-3 {
						t.Fatalf("%d numbers: weight %d is %d, want %.2f", n, j, got, want)
					}
				}
				if float64(sums.x[i]) != float64(sum) {
					t.Fatalf("%d numbers: sum %v, want %d", n, sums.x[i], sum)
				}
				for _, v := range q[i*ldq+n : (i+1)*ldq] {
					if v != 77 {
						t.Fatalf("%d numbers: what lies between rows was written", n)
					}
				}
			}
			if slices.ContainsFunc(q[rows*ldq:], func(v uint8) bool { return v != 77 }) {
				t.Fatalf("%d numbers: written past the end", n)
			}
		}
	})
}

// One key with weight 1 and 512 with a thousandth each: to the nearest step of 1/255 all of those would be 0, and a
// third of the row lost. By hand: a thousandth is 0.255 steps, which the four largest of the sixteen shares
// (25/32 to 31/32) lift to 1, so 128 of the 512 become 1; exact would be 130.56.
func TestExpBytesKeepsATail(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		x := make([]float32, 528)
		for i := range x[:512] {
			x[i] = float32(math.Log(0.001))
		}
		for i := range x[513:] {
			x[513+i] = float32(math.Inf(-1))
		}
		q, sums := make([]uint8, len(x)), make([]float32, 1)
		ExpBytes(q, len(x), x, len(x), 1, len(x), 1, sums)
		if q[512] != 255 || sums[0] != 255+128 {
			t.Errorf("the largest became %d, all %v; want 255 and 383", q[512], sums[0])
		}
		if slices.Max(q[513:]) != 0 {
			t.Errorf("-Inf became %v, want 0", q[513:])
		}
	})
}

func TestExpBytesEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	eachVariant(t, func(t *testing.T) {
		for n := 1; n <= longest; n++ {
			for j := range n {
				for _, bad := range []float32{float32(math.NaN()), inf} {
					x, q, sums := make([]float32, n), make([]uint8, n), make([]float32, 1)
					x[j] = bad
					ExpBytes(q, n, x, n, 1, n, 1, sums)
					if sums[0] == sums[0] {
						t.Fatalf("%v at %d of %d: the sum is %v, want NaN", bad, j, n, sums[0])
					}
				}
			}
			x, q, sums := slices.Repeat([]float32{-inf}, n), make([]uint8, n), make([]float32, 1)
			ExpBytes(q, n, x, n, 1, n, 1, sums)
			if sums[0] == sums[0] {
				t.Fatalf("%d times -Inf: the sum is %v, want NaN", n, sums[0])
			}
			x = random(rand.New(rand.NewPCG(1, 1)), n, 5)
			ExpBytes(q, n, x, n, 1, n, 0, sums)
			if sums[0] != float32(255*n) {
				t.Fatalf("scale 0 over %d: the sum is %v, want %d", n, sums[0], 255*n)
			}
		}
	})
}

// Weights in bytes times values in bytes: sums of whole numbers are exact, so what differs from the product of
// the same weights is half a step of each value.
func TestInt8Rows(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 8))
		for k := 1; k <= 2*longest; k++ {
			m, n := 1+r.IntN(18), 1+r.IntN(100)
			ld := n + r.IntN(4)
			v := random(r, k*ld, 1)
			deep := QuantizedLen(k)
			q, inverses := make([]uint8, m*deep), make([]float32, m)
			for i := range q {
				q[i] = uint8(r.IntN(256))
			}
			for i := range inverses {
				inverses[i] = 1 / float32(1+r.IntN(1000))
			}
			var b PackedInt8
			b.Grow(random(r, PackedInt8Len(n, k), 1), n, k)
			b.SetRows(v, ld, random(r, n*RowsLen(k), 1), make([]uint8, n*deep+4))
			c := newGuarded(m*n, 0)
			MatMulInt8(c.x, n, q, inverses, m, &b, 0, n)
			c.check(t)
			for i := range m {
				for j := range n {
					want, weight, most := 0.0, 0.0, 0.0
					for p := range k {
						want += float64(q[i*deep+p]) * float64(v[p*ld+j])
						weight += float64(q[i*deep+p])
						most = max(most, math.Abs(float64(v[p*ld+j])))
					}
					bound := (weight*most/254*1.001 + 1e-4) * float64(inverses[i])
					if got := float64(c.x[i*n+j]); math.Abs(got-want*float64(inverses[i])) > bound {
						t.Fatalf("%d keys: row %d, column %d is %v, want %v within %v", k, i, j, got, want*float64(inverses[i]), bound)
					}
				}
			}
		}
	})
}
