package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every test here runs on every variant the processor has, against plain loops in float64.

func eachVariant(t *testing.T, test func(t *testing.T)) {
	for _, name := range Variants() {
		t.Run(name, func(t *testing.T) {
			restore, err := Use(name)
			if err != nil {
				t.Fatal(err)
			}
			defer restore()
			test(t)
		})
	}
}

// Lengths up to 99 cover every remainder of 1, 2 and 4 registers, and what may follow four; starts of 0 to 3 words are aligned
// and misaligned.
const (
	longest = 99
	starts  = 4
)

// guarded is a slice between words that no kernel may touch.
type guarded struct {
	memory []float32
	x      []float32
}

const (
	guardWords = 32
	guard      = 0x7FA5A5A5 // a NaN that no arithmetic makes
)

func newGuarded(n, start int) guarded {
	memory := make([]float32, start+n+2*guardWords)
	for i := range memory {
		memory[i] = math.Float32frombits(guard)
	}
	from := guardWords + start
	return guarded{memory, memory[from : from+n : from+n]}
}

func (g guarded) check(t *testing.T) {
	t.Helper()
	start := len(g.memory) - len(g.x) - guardWords
	for i, v := range g.memory {
		if (i < start || i >= start+len(g.x)) && math.Float32bits(v) != guard {
			t.Fatalf("word %d beside a slice of %d was written", i-start, len(g.x))
		}
	}
}

func random(r *rand.Rand, n int, spread float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(spread * r.NormFloat64())
	}
	return x
}

// close fails unless got is want within tolerance times 1 + |want|; NaN matches NaN.
func closeTo(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	for i, g := range got {
		w := want[i]
		if math.IsNaN(float64(g)) != math.IsNaN(w) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, g, w)
		}
		if float64(g) == w || math.IsNaN(w) {
			continue
		}
		if !(math.Abs(float64(g)-w) <= tolerance*(1+math.Abs(w))) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, g, w)
		}
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// special numbers that every elementwise kernel must get through.
var special = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-8, -1e-8, 1e-40, 20, -20, 87, 88.5, 89.5, -87.3, -104, 3e38, -3e38,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}

// elementwise runs an in-place function over every length and start, with special numbers mixed in.
func elementwise(t *testing.T, f func([]float32), want func(float64) float64, tolerance float64) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := range longest + 1 {
			for start := range starts {
				g := newGuarded(n, start)
				copy(g.x, random(r, n, 4))
				for i := range g.x {
					if r.IntN(4) == 0 {
						g.x[i] = special[r.IntN(len(special))]
					}
				}
				before := widen(g.x)
				f(g.x)
				g.check(t)
				for i, x := range before {
					before[i] = float64(float32(want(x)))
				}
				closeTo(t, fmt.Sprintf("n=%d start=%d", n, start), g.x, before, tolerance)
			}
		}
	})
}

func TestExp(t *testing.T) { elementwise(t, Exp, math.Exp, 2.5e-7) }

func gelu(x float64) float64 {
	if math.IsInf(x, -1) {
		return 0
	}
	return 0.5 * x * math.Erfc(-x/math.Sqrt2)
}

func TestGELU(t *testing.T) { elementwise(t, GELU, gelu, 3e-7) }

func TestReLU(t *testing.T) {
	elementwise(t, ReLU, func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	}, 0)
}

func TestTanh(t *testing.T) { elementwise(t, Tanh, math.Tanh, 1e-7) }

func TestScale(t *testing.T) {
	elementwise(t, func(x []float32) { Scale(x, 1.5) }, func(x float64) float64 { return 1.5 * x }, 1e-7)
}

// Over the whole range where GELU is neither 0 nor x, against float64.
func TestGELUIsExact(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		x := make([]float32, 0, 40000)
		for v := -14.0; v < 6; v += 0.0005 {
			x = append(x, float32(v))
		}
		exact, approx := slices.Clone(x), slices.Clone(x)
		GELU(exact)
		GELUTanh(approx)
		for i, v := range widen(x) {
			want := gelu(v)
			if e := math.Abs(float64(exact[i]) - want); e > 2e-7*math.Abs(v) && e > 1e-6*math.Abs(want) {
				t.Fatalf("GELU(%v) = %v, want %v", v, exact[i], want)
			}
			if e := math.Abs(float64(exact[i]) - want); math.Abs(want) > 1e-30 && e > 1e-5*math.Abs(want) {
				t.Fatalf("GELU(%v) = %v, want %v: relative error %v", v, exact[i], want, e/math.Abs(want))
			}
			tanh := 0.5 * v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
			if math.Abs(float64(approx[i])-tanh) > 3e-7*(1+math.Abs(tanh)) {
				t.Fatalf("GELUTanh(%v) = %v, want %v", v, approx[i], tanh)
			}
		}
	})
}

func softmax64(x []float32, scale float64) []float64 {
	highest, sum := math.Inf(-1), 0.0
	for _, v := range x {
		highest = max(highest, float64(v))
	}
	w := make([]float64, len(x))
	for i, v := range x {
		w[i] = math.Exp((float64(v) - highest) * scale)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

func TestSoftmax(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 2))
		for n := range longest + 1 {
			for start := range starts {
				g := newGuarded(n, start)
				copy(g.x, random(r, n, 10))
				if n > 2 && start == 1 {
					g.x[r.IntN(n)] = float32(math.Inf(-1))
				}
				scale := float32(0.1 + r.Float64())
				want := softmax64(g.x, float64(scale))
				Softmax(g.x, scale)
				g.check(t)
				closeTo(t, fmt.Sprintf("n=%d start=%d", n, start), g.x, want, 1e-6)
			}
		}
	})
}

// The rule of Softmax's doc comment, at every position and beside every register boundary.
func TestSoftmaxEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachVariant(t, func(t *testing.T) {
		for n := 1; n <= longest; n++ {
			for _, bad := range []float32{inf, nan} {
				for i := range n {
					x := make([]float32, n)
					x[i] = bad
					Softmax(x, 1)
					for j, v := range x {
						if v == v {
							t.Fatalf("n=%d, %v at %d: weight %d is %v, want NaN", n, bad, i, j, v)
						}
					}
				}
			}
			all := slices.Repeat([]float32{-inf}, n)
			Softmax(all, 1)
			huge := slices.Repeat([]float32{1e30}, n)
			Softmax(huge, 0.3)
			zero := random(rand.New(rand.NewPCG(1, uint64(n))), n, 50)
			Softmax(zero, 0)
			for j := range n {
				if all[j] == all[j] {
					t.Fatalf("n=%d: nothing but -Inf gave %v", n, all[j])
				}
				closeTo(t, "equal huge scores", huge[j:j+1], []float64{1 / float64(n)}, 1e-7)
				closeTo(t, "scale 0", zero[j:j+1], []float64{1 / float64(n)}, 1e-7)
			}
		}
		x := []float32{3.4e38, 3.3e38, -3.4e38}
		Softmax(x, 1)
		closeTo(t, "huge spread", x, []float64{1, 0, 0}, 0)
	})
}

func TestExpWeightsOfRows(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 3))
		for rows := range 9 {
			const n, ld = 37, 41
			g := newGuarded(rows*ld, 1)
			copy(g.x, random(r, rows*ld, 3))
			before := slices.Clone(g.x)
			sums := newGuarded(rows, 0)
			ExpWeights(g.x, ld, rows, n, 0.5, sums.x)
			DivideRows(g.x, ld, rows, n, sums.x)
			g.check(t)
			sums.check(t)
			for i := range rows {
				closeTo(t, "row", g.x[i*ld:][:n], softmax64(before[i*ld:][:n], 0.5), 1e-6)
				if !slices.Equal(g.x[i*ld+n:][:ld-n], before[i*ld+n:][:ld-n]) {
					t.Fatalf("what lies between rows was written")
				}
			}
		}
	})
}

func norm64(x, residual, gain, bias []float32, eps float64) []float64 {
	y := widen(x)
	mean, variance := 0.0, 0.0
	for i := range y {
		if residual != nil {
			y[i] = float64(x[i] + residual[i])
		}
		mean += y[i] / float64(len(y))
	}
	for _, v := range y {
		variance += (v - mean) * (v - mean) / float64(len(y))
	}
	for i, v := range y {
		y[i] = (v - mean) / math.Sqrt(variance+eps) * float64(gain[i])
		if bias != nil {
			y[i] += float64(bias[i])
		}
	}
	return y
}

func TestLayerNorm(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 4))
		for n := 0; n <= longest; n++ {
			for start := range starts {
				x, gain, dst := newGuarded(n, start), random(r, n, 1), newGuarded(n, (start+1)%starts)
				copy(x.x, random(r, n, 3))
				var residual, bias []float32
				if start%2 == 1 {
					residual = random(r, n, 3)
				}
				if start >= 2 {
					bias = random(r, n, 1)
				}
				want := norm64(x.x, residual, gain, bias, 1e-5)
				AddLayerNorm(dst.x, x.x, residual, gain, bias, 1e-5)
				x.check(t)
				dst.check(t)
				// one or two numbers that are nearly equal have hardly any digits left after the mean
				closeTo(t, fmt.Sprintf("n=%d start=%d", n, start), dst.x, want, 2e-5)
				AddLayerNorm(x.x, x.x, residual, gain, bias, 1e-5)
				if !slices.Equal(x.x, dst.x) {
					t.Fatalf("n=%d: in place differs", n)
				}
			}
		}
	})
}

func TestVectors(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 5))
		for n := range longest + 1 {
			for start := range starts {
				x, y := random(r, n+start, 1)[start:], newGuarded(n, start)
				copy(y.x, random(r, n, 1))
				sum, axpy, dot := make([]float64, n), make([]float64, n), 0.0
				for i := range n {
					sum[i] = float64(x[i]) + float64(y.x[i])
					axpy[i] = sum[i] + 0.7*float64(x[i])
					dot += float64(x[i]) * float64(y.x[i])
				}
				closeTo(t, "dot", []float32{Dot(x, y.x)}, []float64{dot}, 1e-5)
				Add(y.x, x)
				closeTo(t, "add", y.x, sum, 1e-6)
				Axpy(y.x, 0.7, x)
				closeTo(t, "axpy", y.x, axpy, 1e-6)
				y.check(t)
			}
		}
	})
}

// product64 is A B + bias.
func product64(a []float32, lda int, b []float32, bias []float32, m, n, k int) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := 0.0
			if bias != nil {
				sum = float64(bias[j])
			}
			for p := range k {
				sum += float64(a[i*lda+p]) * float64(b[j*k+p])
			}
			c[i*n+j] = sum
		}
	}
	return c
}

func TestMatMul(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 6))
		shapes := [][3]int{{1, 1, 1}, {129, 5, 3}, {8, 48, 32}, {0, 5, 5}, {5, 0, 5}}
		for m := range 20 {
			shapes = append(shapes, [3]int{m, 1 + r.IntN(longest*2), r.IntN(longest)})
		}
		for n := range longest + 1 {
			shapes = append(shapes, [3]int{1 + r.IntN(18), n, 1 + r.IntN(40)}, [3]int{1 + r.IntN(18), 1 + r.IntN(200), n})
		}
		for _, s := range shapes {
			m, n, k := s[0], s[1], s[2]
			lda, ldc := k+r.IntN(3), n+r.IntN(3)
			a, w, bias := random(r, m*lda, 1), random(r, n*k, 1), random(r, n, 1)
			if k > 1 && n > 1 && m > 1 {
				a[lda] = float32(math.NaN()) // row 1 is NaN, the others are not
			}
			c := newGuarded(max(0, (m-1)*ldc+n), r.IntN(starts))
			b := Pack(w, bias, n, k)
			MatMul(c.x, ldc, a, lda, m, b)
			c.check(t)
			want := product64(a, lda, w, bias, m, n, k)
			for i := range m {
				closeTo(t, fmt.Sprintf("%d x %d x %d row %d", m, n, k, i), c.x[i*ldc:][:n], want[i*n:][:n], 1e-5)
				for _, between := range c.x[min(len(c.x), i*ldc+n):min(len(c.x), (i+1)*ldc)] {
					if math.Float32bits(between) != guard {
						t.Fatalf("%d x %d x %d: what lies between rows was written", m, n, k)
					}
				}
			}
		}
	})
}

// One row of a product has the same bits whatever stands beside it.
func TestMatMulRowsDoNotMatter(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		const m, n, k = 150, 61, 70
		a, b := random(r, m*k, 1), Pack(random(r, n*k, 1), nil, n, k)
		all, one := make([]float32, m*n), make([]float32, m*n)
		MatMul(all, n, a, k, m, b)
		for i := 0; i < m; {
			rows := min(1+r.IntN(9), m-i)
			MatMul(one[i*n:], n, a[i*k:], k, rows, b)
			i += rows
		}
		if !slices.Equal(all, one) {
			t.Error("the bits of a row depend on the rows beside it")
		}
	})
}

func TestMatMulPart(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 8))
		const m, n, k = 9, 210, 50
		a, w, bias := random(r, m*k, 1), random(r, n*k, 1), random(r, n, 1)
		b := &Packed{}
		b.Grow(make([]float32, PackedLen(n, k)), n, k)
		rows := make([]float32, n*k) // the same matrix, K x N
		for j := range n {
			for p := range k {
				rows[p*n+j] = w[j*k+p]
			}
		}
		b.SetRows(rows, n)
		b.SetBias(bias)
		for _, part := range [][4]int{{0, n, 0, k}, {0, 5, 3, 20}, {b.PanelStart(60), n, 0, k}, {b.PanelStart(50), 100, 49, 50}, {0, n, 7, 7}} {
			n0, n1, k0, k1 := part[0], part[1], part[2], part[3]
			width := n1 - n0
			c := newGuarded(m*width, 1)
			MatMulPart(c.x, width, a[k0:], k, m, b, n0, n1, k0, k1)
			c.check(t)
			for i := range m {
				for j := range width {
					want := float64(bias[n0+j])
					for p := k0; p < k1; p++ {
						want += float64(a[i*k+p]) * float64(w[(n0+j)*k+p])
					}
					closeTo(t, fmt.Sprint(part), c.x[i*width+j:][:1], []float64{want}, 1e-5)
				}
			}
		}
	})
}

func TestSumsInParts(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(12, 12))
		const m, n, k = 11, 70, 90
		a, b := random(r, m*k, 1), Pack(random(r, n*k, 1), random(r, n, 1), n, k)
		whole, parts := make([]float32, m*n), make([]float32, m*n)
		MatMul(whole, n, a, k, m, b)
		MatMulPart(parts, n, a, k, m, b, 0, n, 0, 37)
		AddMatMulPart(parts, n, a[37:], k, m, b, 0, n, 37, 38)
		AddMatMulPart(parts, n, a[38:], k, m, b, 0, n, 38, k)
		if !slices.Equal(whole, parts) {
			t.Error("the bits of a sum depend on its parts")
		}
	})
}

func TestGemm(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		var s Scratch
		for _, shape := range [][3]int{{3, 5, 7}, {1, 1, 1}, {33, 20, 0}, {130, 50, 20}, {17, 500, 30}, {20, 70, 600}} {
			m, n, k := shape[0], shape[1], shape[2]
			a, b, start := random(r, m*k, 1), random(r, n*k, 1), random(r, m*n, 1)
			want := product64(a, k, b, nil, m, n, k)
			at, bt := transposed(a, m, k), transposed(b, n, k)
			for _, accumulate := range []bool{false, true} {
				if accumulate {
					for i, v := range start {
						want[i] += float64(v)
					}
				}
				for name, views := range map[string][2]View{
					"AB":   {RowMajor(a, m, k), RowMajor(bt, k, n)},
					"ABt":  {RowMajor(a, m, k), RowMajor(b, n, k).T()},
					"AtB":  {RowMajor(at, k, m).T(), RowMajor(bt, k, n)},
					"AtBt": {RowMajor(at, k, m).T(), RowMajor(b, n, k).T()},
				} {
					c := newGuarded(m*n, 0)
					copy(c.x, start)
					Gemm(RowMajor(c.x, m, n), views[0], views[1], accumulate, &s)
					c.check(t)
					closeTo(t, fmt.Sprintf("%s %v accumulate %v", name, shape, accumulate), c.x, want, 2e-5)
				}
			}
		}
	})
}

// transposed is the columns x rows transpose of rows x columns numbers.
func transposed(x []float32, rows, columns int) []float32 {
	y := make([]float32, len(x))
	for i := range rows {
		for j := range columns {
			y[j*rows+i] = x[i*columns+j]
		}
	}
	return y
}

func TestUseRefusesUnknownVariants(t *testing.T) {
	if _, err := Use("neon2"); err == nil {
		t.Error("no error")
	}
	restore, err := Use("generic")
	if err != nil || Variant() != "generic" {
		t.Fatalf("Use(generic): %v, active %s", err, Variant())
	}
	restore()
	if Variant() != Variants()[0] {
		t.Errorf("restored to %s", Variant())
	}
}

func TestNothingAllocates(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(10, 10))
		const m, n, k = 20, 50, 30
		a, w, c := random(r, m*k, 1), random(r, n*k, 1), make([]float32, m*n)
		b := Pack(w, nil, n, k)
		var packed Packed
		memory := make([]float32, PackedLen(n, k))
		allocations := testing.AllocsPerRun(10, func() {
			MatMul(c, n, a, k, m, b)
			packed.Grow(memory, n, k)
			packed.SetTransposed(w, k)
			packed.SetBias(nil)
			GELU(c)
			Softmax(c[:n], 1)
			LayerNorm(c[:n], c[:n], w[:n], nil, 1e-5)
		})
		if allocations != 0 {
			t.Errorf("%v allocations", allocations)
		}
	})
}

// FuzzElementwise holds every variant against the generic definition on arbitrary bit patterns.
func FuzzElementwise(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x7F, 0, 0, 0xC0, 0x7F, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		x := make([]float32, len(data)/4)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		for name, call := range map[string]func([]float32){"exp": Exp, "softmax": func(x []float32) { Softmax(x, 0.25) }} {
			restore, _ := Use("generic")
			want := slices.Clone(x)
			call(want)
			restore()
			for _, v := range Variants() {
				restore, _ := Use(v)
				got := slices.Clone(x)
				call(got)
				restore()
				closeTo(t, name+" on "+v, got, widen(want), 2e-6)
			}
		}
	})
}
