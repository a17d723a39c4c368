package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachLength runs a test for every length and alignment, on every variant.
func eachLength(t *testing.T, test func(t *testing.T, r *rand.Rand, n, start int)) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		for n := 1; n <= longest; n++ {
			for start := range starts {
				test(t, r, n, start)
			}
		}
	})
}

func guardedCopy(x []float32, start int) guarded {
	g := newGuarded(len(x), start)
	copy(g.x, x)
	return g
}

// The derivative of x P(x) is P + x p, in float64; also far out, where it is 1 or 0.
func TestGELUBack(t *testing.T) {
	eachLength(t, func(t *testing.T, r *rand.Rand, n, start int) {
		x, dy := random(r, n, 2), random(r, n, 1)
		for i, far := range []float32{0, 1e-20, 30, -30, 1e30, -1e30} {
			if n > 10 {
				x[i] = far
			}
		}
		want := make([]float64, n)
		for i, v := range x {
			v := float64(v)
			want[i] = float64(dy[i]) * (0.5*math.Erfc(-v/math.Sqrt2) + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi))
		}
		got := guardedCopy(dy, start)
		GELUBack(got.x, x)
		got.check(t)
		closeTo(t, fmt.Sprintf("n=%d start=%d", n, start), got.x, want, 5e-7)
	})
}

// The layer norm's derivative against the formula of its doc comment, in float64.
func TestLayerNormKept(t *testing.T) {
	const eps = 1e-5
	eachLength(t, func(t *testing.T, r *rand.Rand, n, start int) {
		x, gain, bias, dy, dx := random(r, n, 1), random(r, n, 1), random(r, n, 1), random(r, n, 1), random(r, n, 1)
		var mean, square float64
		for _, v := range x {
			mean += float64(v) / float64(n)
		}
		for _, v := range x {
			square += (float64(v) - mean) * (float64(v) - mean) / float64(n)
		}
		inverse := 1 / math.Sqrt(square+eps)
		hat, y := make([]float64, n), make([]float64, n)
		var sum, along float64
		for i, v := range x {
			hat[i] = (float64(v) - mean) * inverse
			y[i] = hat[i]*float64(gain[i]) + float64(bias[i])
			u := float64(dy[i]) * float64(gain[i])
			sum += u / float64(n)
			along += u * hat[i] / float64(n)
		}
		wantDX, wantGain := make([]float64, n), make([]float64, n)
		for i := range x {
			wantDX[i] = float64(dx[i]) + inverse*(float64(dy[i])*float64(gain[i])-sum-hat[i]*along)
			wantGain[i] = 1 + float64(dy[i])*hat[i]
		}
		what := fmt.Sprintf("n=%d start=%d", n, start)
		gotY, gotHat := newGuarded(n, start), newGuarded(n, start)
		got := LayerNormKept(gotY.x, gotHat.x, x, gain, bias, eps)
		gotY.check(t)
		gotHat.check(t)
		// with one number, or two alike, rounding is all there is
		if n > 3 {
			closeTo(t, what+": 1/deviation", []float32{got}, []float64{inverse}, 2e-6)
			closeTo(t, what+": hat", gotHat.x, hat, 1e-5)
			closeTo(t, what+": y", gotY.x, y, 1e-5)
		}
		gotDX, dgain, dbias := guardedCopy(dx, start), newGuarded(n, start), newGuarded(n, start)
		fill := func(x []float32) {
			for i := range x {
				x[i] = 1
			}
		}
		fill(dgain.x)
		fill(dbias.x)
		LayerNormBack(gotDX.x, dy, gotHat.x, gain, dgain.x, dbias.x, got)
		for _, g := range []guarded{gotDX, dgain, dbias} {
			g.check(t)
		}
		for i, v := range dbias.x {
			if v != 1+dy[i] {
				t.Fatalf("%s: dbias %d is %v", what, i, v)
			}
		}
		if n > 3 {
			closeTo(t, what+": dgain", dgain.x, wantGain, 1e-5)
			closeTo(t, what+": dx", gotDX.x, wantDX, 5e-5)
		}
	})
}

func TestSoftmaxBack(t *testing.T) {
	eachLength(t, func(t *testing.T, r *rand.Rand, n, start int) {
		d, p := random(r, n, 1), random(r, n, 1)
		Softmax(p, 1)
		along := 0.0
		for i, v := range d {
			along += float64(v) * float64(p[i])
		}
		want := make([]float64, n)
		for i, v := range d {
			want[i] = float64(p[i]) * (float64(v) - along) * 0.3
		}
		got := guardedCopy(d, start)
		SoftmaxBack(got.x, p, 0.3)
		got.check(t)
		closeTo(t, fmt.Sprintf("n=%d start=%d", n, start), got.x, want, 1e-6)
	})
}

// Every variant takes the step of plain Go, to the last bit.
func TestAdamW(t *testing.T) {
	eachLength(t, func(t *testing.T, r *rand.Rand, n, start int) {
		k := AdamW{0.7, 0.9, 1 - 0.9, 0.999, 1 - 0.999, 1 - 1e-4, 3e-3, 1.7, 1e-8}
		w, g, m, v := random(r, n, 1), random(r, n, 0.1), random(r, n, 0.1), random(r, n, 0.1)
		for i := range v {
			v[i] *= v[i]
		}
		gotW, gotM, gotV := guardedCopy(w, start), guardedCopy(m, start), guardedCopy(v, start)
		k.Update(gotW.x, g, gotM.x, gotV.x)
		adamWGeneric(w, g, m, v, &k)
		for name, pair := range map[string]struct {
			got  guarded
			want []float32
		}{"parameter": {gotW, w}, "first moment": {gotM, m}, "second moment": {gotV, v}} {
			pair.got.check(t)
			for i, want := range pair.want {
				if pair.got.x[i] != want {
					t.Fatalf("n=%d start=%d: %s %d is %v, want %v", n, start, name, i, pair.got.x[i], want)
				}
			}
		}
	})
}
