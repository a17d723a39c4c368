package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Polynomials, fitted by the Remez exchange to the least largest relative error.
var (
	// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2: 3e-9 of exp(r)
	expPoly = []float64{0.4999999345151495, 0.16666520689432224, 0.04166838739480841, 0.008368709861007928, 0.001381461184221357}
	// (2^f - 1) / f for |f| <= 1/2: 9e-8 of 2^f
	exp2Poly = []float64{0.6931469759957603, 0.24022242032262528, 0.055507351783182966, 0.00967151913308115, 0.0013264438841595156}
	// exp(u*u/2) erfc(u/sqrt 2) / 2 / t for t = 1/(1 + tailSlope*u), 0 <= u <= 14: 1.1e-7
	tailPoly = []float64{0.09380922075278209, 0.09261762003906314, 0.0979524089196413, 0.03557698167059358,
		0.17966325958162563, -0.14553630846929577, 0.2100251153279904, -0.06410835476501282}
)

const tailSlope = 0.235

// poly sets sum to the polynomial of x by Horner's rule.
func (s isa) poly(coefficients []Op, x Register) (sum VecVirtual) {
	sum = s.vec()
	last := len(coefficients) - 1
	VMOVUPS(coefficients[last], sum)
	for i := last - 1; i >= 0; i-- {
		VFMADD213PS(coefficients[i], x, sum)
	}
	return sum
}

// power multiplies p by 2^n for whole n, with the right overflow and underflow.
func (s isa) power(n, p Register) {
	if s.wide {
		VSCALEFPS(n, p, p)
		return
	}
	// in two halves, since 2^n alone may not be a float32
	half, whole := s.vec(), s.vec()
	VCVTPS2DQ(n, whole)
	VPSRAD(Imm(1), whole, half)
	VPSUBD(half, whole, whole)
	for _, part := range []VecVirtual{half, whole} {
		VPSLLD(Imm(23), part, part)
		VPADDD(s.oneBits, part, part)
		VMULPS(part, p, p)
	}
}

// exp2 holds the constants of a power of two.
type exp2 struct {
	s      isa
	poly   []Op
	one    Op
	lowest VecVirtual
}

func (s isa) exp2(c *constants) exp2 {
	return exp2{s: s, poly: c.floats(exp2Poly), one: c.float(1), lowest: c.register(-200)}
}

// of returns 2^y; y is clobbered. Below -200 it is 0; NaN stays NaN.
func (e exp2) of(y VecVirtual) VecVirtual {
	n := e.s.vec()
	VMAXPS(y, e.lowest, y) // NaN in the first operand is kept
	e.s.nearest(y, n)
	VSUBPS(n, y, y)
	p := e.s.poly(e.poly, y)
	VFMADD213PS(e.one, y, p)
	e.s.power(n, p)
	return p
}

// exp writes x[i] = exp(x[i]).
func (s isa) exp() {
	TEXT("exp"+s.name, NOSPLIT, "func(n int, x *float32)")
	Doc("exp" + s.name + " sets x[i] = exp(x[i]).")
	Pragma("noescape")
	c := s.constants("exp")
	s.oneBits = c.float(1)
	n, x := Load(Param("n"), GP64()), Load(Param("x"), GP64())
	log2e, high, low := c.float(math.Log2E), c.float(-0.693359375), c.float(0.693359375-math.Ln2)
	lowest, top := c.register(-104), c.register(89)
	one, poly := c.float(1), c.floats(expPoly)
	s.each("loop", n, func(p span) {
		v, k, square := p.load(x), s.vec(), s.vec()
		VMAXPS(v, lowest, v)
		VMINPS(v, top, v)
		VMULPS(log2e, v, k)
		s.nearest(k, k)
		VFMADD231PS(high, k, v) // v = x - k ln 2, in two parts
		VFMADD231PS(low, k, v)
		sum := s.poly(poly, v)
		VMULPS(v, v, square)
		VADDPS(one, v, v)
		VFMADD213PS(v, square, sum) // 1 + v + v^2 poly
		s.power(k, sum)
		p.store(sum, x)
	})
	done()
}

// expWeights writes the softmax of several rows but for the division. The maxima of all rows come first,
// and sums are kept in parts: else every step would wait for the one before.
func (s isa) expWeights() {
	TEXT("expWeights"+s.name, NOSPLIT, "func(rows, n int, x *float32, ld int, scale float32, sums *float32)")
	Doc("expWeights" + s.name + " sets each of rows rows of n numbers to exp(scale*(x - max of the row)) and sums[i] to the sum of row i.")
	Pragma("noescape")
	c := s.constants("expWeights")
	s.oneBits = c.float(1)
	n := Load(Param("n"), GP64())
	ld := Load(Param("ld"), GP64())
	SHLQ(Imm(2), ld)

	s.weightRows(c, n, ld, nil, func(p span, x Register, w VecVirtual) {
		p.store(w, x)
		p.clip(w)
	}, nil)
	done()
}

// weightRows writes a loop over the rows of x, ld bytes apart, in which each sees exp(scale*(x - max of the row)):
// it may do with w what it likes, and leaves in it what is summed into sums. begin and end, if not nil, are
// written before and after each row.
func (s isa) weightRows(c *constants, n, ld Register, begin func(), each func(p span, x Register, w VecVirtual), end func()) {
	s.maxima(c, n, ld)
	rows, x, sums := Load(Param("rows"), GP64()), Load(Param("x"), GP64()), Load(Param("sums"), GP64())
	scale := s.broadcast("scale")
	VMULPS(c.float(math.Log2E), scale, scale)
	e := s.exp2(c)
	Label("row")
	if begin != nil {
		begin()
	}
	top, sum := s.vec(), s.zeros(2)
	VBROADCASTSS(Mem{Base: sums}, top)
	s.eachBy(len(sum), "exp", n, func(p span, part int) {
		v := p.load(x)
		VSUBPS(top, v, v)
		VMULPS(scale, v, v)
		w := e.of(v)
		each(p, x, w)
		VADDPS(w, sum[part], sum[part])
	})
	VMOVSS(s.total(sum, add).AsX(), Mem{Base: sums})
	ADDQ(Imm(4), sums)
	ADDQ(ld, x)
	if end != nil {
		end()
	}
	DECQ(rows)
	JNZ(LabelRef("row"))
}

// maxima writes the highest number of each of the parameter rows' rows of x, ld bytes apart, into sums.
func (s isa) maxima(c *constants, n, ld Register) {
	rows, x, sums := Load(Param("rows"), GP64()), Load(Param("x"), GP64()), Load(Param("sums"), GP64())
	minusInf := c.register(math.Inf(-1))
	Label("rowmax")
	highest := make([]VecVirtual, 4)
	for i := range highest {
		highest[i] = s.vec()
		VMOVAPS(minusInf, highest[i])
	}
	s.eachBy(len(highest), "max", n, func(p span, part int) { VMAXPS(p.loadOr(x, minusInf), highest[part], highest[part]) })
	VMOVSS(s.total(highest, most).AsX(), Mem{Base: sums})
	ADDQ(Imm(4), sums)
	ADDQ(ld, x)
	DECQ(rows)
	JNZ(LabelRef("rowmax"))
}

// scale writes x[i] *= factor.
func (s isa) scale() {
	TEXT("scale"+s.name, NOSPLIT, "func(n int, x *float32, factor float32)")
	Doc("scale" + s.name + " sets x[i] *= factor.")
	Pragma("noescape")
	n, x := Load(Param("n"), GP64()), Load(Param("x"), GP64())
	factor := s.broadcast("factor")
	s.each("loop", n, func(p span) {
		v := p.load(x)
		VMULPS(factor, v, v)
		p.store(v, x)
	})
	done()
}

// gelu writes x[i] *= P(N(0,1) <= x[i]), as max(x, 0) - |x| P(N(0,1) > |x|): nothing cancels.
func (s isa) gelu() {
	TEXT("gelu"+s.name, NOSPLIT, "func(n int, x *float32)")
	Doc("gelu" + s.name + " sets x[i] to its exact GELU.")
	Pragma("noescape")
	c := s.constants("gelu")
	s.oneBits = c.float(1)
	n, x := Load(Param("n"), GP64()), Load(Param("x"), GP64())
	noSign, far := c.bits(0x7FFFFFFF), c.register(20)
	slope, power := c.float(tailSlope), c.float(-math.Log2E/2)
	one, tail := c.register(1), c.floats(tailPoly)
	e := s.exp2(c)
	s.each("loop", n, func(p span) {
		v, u, t, y, zero := p.load(x), s.vec(), s.vec(), s.vec(), s.vec()
		VANDPS(noSign, v, u)
		VMINPS(u, far, u) // beyond 20 the tail is 0 in float32
		VMOVAPS(one, t)
		VFMADD231PS(slope, u, t)
		VDIVPS(t, one, t) // t = 1 / (1 + slope u)
		VMULPS(u, u, y)
		VMULPS(power, y, y)
		w := e.of(y) // exp(-u^2 / 2)
		q := s.poly(tail, t)
		VMULPS(u, t, t)
		VMULPS(w, t, t)
		VXORPS(zero, zero, zero)
		VMAXPS(v, zero, v)
		VFNMADD231PS(q, t, v)
		p.store(v, x)
	})
	done()
}

// geluTanh writes the approximation 0.5 x (1 + tanh z) = x / (1 + exp(-2z)).
func (s isa) geluTanh() {
	TEXT("geluTanh"+s.name, NOSPLIT, "func(n int, x *float32)")
	Doc("geluTanh" + s.name + " sets x[i] to the tanh approximation of its GELU.")
	Pragma("noescape")
	c := s.constants("geluTanh")
	s.oneBits = c.float(1)
	n, x := Load(Param("n"), GP64()), Load(Param("x"), GP64())
	k := -2 * math.Sqrt(2/math.Pi) * math.Log2E
	linear, cubic, top := c.float(k), c.register(k*0.044715), c.register(200)
	e := s.exp2(c)
	s.each("loop", n, func(p span) {
		v, y := p.load(x), s.vec()
		VMULPS(v, v, y)
		VFMADD213PS(linear, cubic, y)
		VMULPS(v, y, y)
		VMINPS(y, top, y)
		w := e.of(y)
		VADDPS(e.one, w, w)
		VDIVPS(w, v, v)
		p.store(v, x)
	})
	done()
}

// norm writes a layer norm of x, or of x + residual.
func (s isa) norm() {
	TEXT("norm"+s.name, NOSPLIT, "func(n int, dst, x, residual, gain, bias *float32, eps float32)")
	Doc("norm"+s.name+" sets dst to the layer norm of x + residual, times gain, plus bias.", "residual and bias may be nil. dst may be x.")
	Pragma("noescape")
	c := s.constants("norm")
	n, dst, x := Load(Param("n"), GP64()), Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	residual := Load(Param("residual"), GP64())
	const turn = 4
	count, means, variances := s.vec(), s.zeros(turn), s.zeros(turn)
	countX := XMM()
	VCVTSI2SSQ(n, means[0].AsX(), countX)
	VBROADCASTSS(countX, count)

	TESTQ(residual, residual)
	JZ(LabelRef("plain"))
	s.eachBy(turn, "sum", n, func(p span, part int) {
		v := p.load(x)
		VADDPS(p.load(residual), v, v)
		p.store(v, dst)
		VADDPS(v, means[part], means[part])
	})
	MOVQ(dst, x)
	JMP(LabelRef("summed"))
	Label("plain")
	s.eachBy(turn, "plainsum", n, func(p span, part int) { VADDPS(p.load(x), means[part], means[part]) })
	Label("summed")
	mean := s.total(means, add)
	VDIVPS(count, mean, mean)

	s.eachBy(turn, "square", n, func(p span, part int) {
		v := p.load(x)
		VSUBPS(mean, v, v)
		p.clip(v)
		VFMADD231PS(v, v, variances[part])
	})
	variance := s.total(variances, add)
	VDIVPS(count, variance, variance)
	VADDPS(s.broadcast("eps"), variance, variance)
	inverse := s.vec()
	VSQRTPS(variance, variance)
	VDIVPS(variance, c.register(1), inverse)

	gain, bias := Load(Param("gain"), GP64()), Load(Param("bias"), GP64())
	TESTQ(bias, bias)
	JZ(LabelRef("unbiased"))
	s.each("scale", n, func(p span) {
		v := p.load(x)
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		VFMADD213PS(p.load(bias), p.load(gain), v)
		p.store(v, dst)
	})
	done()
	Label("unbiased")
	s.each("plainscale", n, func(p span) {
		v := p.load(x)
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		VMULPS(p.load(gain), v, v)
		p.store(v, dst)
	})
	done()
}

// add writes dst[i] += x[i].
func (s isa) add() {
	TEXT("add"+s.name, NOSPLIT, "func(n int, dst, x *float32)")
	Doc("add" + s.name + " sets dst[i] += x[i].")
	Pragma("noescape")
	n, dst, x := Load(Param("n"), GP64()), Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	s.each("loop", n, func(p span) {
		v := p.load(dst)
		VADDPS(p.load(x), v, v)
		p.store(v, dst)
	})
	done()
}

// axpy writes dst[i] += factor * x[i].
func (s isa) axpy() {
	TEXT("axpy"+s.name, NOSPLIT, "func(n int, dst *float32, factor float32, x *float32)")
	Doc("axpy" + s.name + " sets dst[i] += factor * x[i].")
	Pragma("noescape")
	n, dst, x := Load(Param("n"), GP64()), Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	factor := s.broadcast("factor")
	s.each("loop", n, func(p span) {
		v := p.load(dst)
		VFMADD231PS(p.load(x), factor, v)
		p.store(v, dst)
	})
	done()
}

// dot writes the sum of x[i] * y[i].
func (s isa) dot() {
	TEXT("dot"+s.name, NOSPLIT, "func(n int, x, y *float32) float32")
	Doc("dot" + s.name + " is the sum of x[i] * y[i].")
	Pragma("noescape")
	n, x, y := Load(Param("n"), GP64()), Load(Param("x"), GP64()), Load(Param("y"), GP64())
	sum := s.zero()
	s.each("loop", n, func(p span) { VFMADD231PS(p.load(x), p.load(y), sum) })
	s.across(sum, add)
	Store(sum.AsX(), ReturnIndex(0))
	done()
}

// divideRows writes the division that expWeights leaves out.
func (s isa) divideRows() {
	TEXT("divideRows"+s.name, NOSPLIT, "func(rows, n int, x *float32, ld int, by *float32)")
	Doc("divideRows" + s.name + " sets x[i][j] /= by[i] for rows rows of n numbers.")
	Pragma("noescape")
	c := s.constants("divideRows")
	rows, n := Load(Param("rows"), GP64()), Load(Param("n"), GP64())
	x, ld, by := Load(Param("x"), GP64()), Load(Param("ld"), GP64()), Load(Param("by"), GP64())
	SHLQ(Imm(2), ld)
	one := c.register(1)
	Label("row")
	inverse := s.vec()
	VBROADCASTSS(Mem{Base: by}, inverse)
	VDIVPS(inverse, one, inverse)
	s.each("loop", n, func(p span) {
		v := p.load(x)
		VMULPS(inverse, v, v)
		p.store(v, x)
	})
	ADDQ(Imm(4), by)
	ADDQ(ld, x)
	DECQ(rows)
	JNZ(LabelRef("row"))
	done()
}
