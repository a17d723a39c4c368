package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// geluBack writes dy[i] *= GELU'(x[i]) = P + x p, with the distribution P and the density p of N(0,1).
// The tail beyond |x| is computed as gelu does; P is it, or what it leaves of 1.
func (s isa) geluBack() {
	TEXT("geluBack"+s.name, NOSPLIT, "func(n int, dy, x *float32)")
	Doc("geluBack" + s.name + " sets dy[i] *= the derivative of GELU at x[i].")
	Pragma("noescape")
	c := s.constants("geluBack")
	s.oneBits = c.float(1)
	n, dy, x := Load(Param("n"), GP64()), Load(Param("dy"), GP64()), Load(Param("x"), GP64())
	noSign, far := c.bits(0x7FFFFFFF), c.register(20)
	slope, power, density := c.float(tailSlope), c.float(-math.Log2E/2), c.float(1/math.Sqrt(2*math.Pi))
	one, half, tail := c.register(1), c.float(0.5), c.floats(tailPoly)
	e := s.exp2(c)
	s.each("loop", n, func(p span) {
		v, u, t, y := p.load(x), s.vec(), s.vec(), s.vec()
		VANDPS(noSign, v, u)
		VMINPS(u, far, u)
		VMOVAPS(one, t)
		VFMADD231PS(slope, u, t)
		VDIVPS(t, one, t)
		VMULPS(u, u, y)
		VMULPS(power, y, y)
		w := e.of(y) // exp(-u^2 / 2)
		q := s.poly(tail, t)
		VMULPS(w, t, t)
		VMULPS(t, q, q) // P(N > u)
		// P(N <= x) = 1/2 + sign(x) (1/2 - q)
		VMOVUPS(half, t)
		VSUBPS(q, t, t)
		VANDNPS(v, s.noSignRegister(noSign), u)
		VORPS(u, t, t)
		VADDPS(half, t, t)
		VMULPS(density, w, w)
		VFMADD231PS(w, v, t)
		VMULPS(p.load(dy), t, t)
		p.store(t, dy)
	})
	done()
}

// noSignRegister is the mask in a register, which AVX2 keeps in memory.
func (s isa) noSignRegister(mask Op) Op {
	if s.wide {
		return mask
	}
	v := s.vec()
	VMOVUPS(mask, v)
	return v
}

// normKept writes a layer norm that keeps what its derivative needs.
func (s isa) normKept() {
	TEXT("normKept"+s.name, NOSPLIT, "func(n int, y, hat, x, gain, bias *float32, eps float32) float32")
	Doc("normKept" + s.name + " sets hat to (x - mean) / deviation and y to gain*hat + bias, and returns 1 / deviation.")
	Pragma("noescape")
	const turn = 4
	c := s.constants("normKept")
	n, x, hat := Load(Param("n"), GP64()), Load(Param("x"), GP64()), Load(Param("hat"), GP64())
	count, means, variances := s.vec(), s.zeros(turn), s.zeros(turn)
	countX := XMM()
	VCVTSI2SSQ(n, means[0].AsX(), countX)
	VBROADCASTSS(countX, count)
	s.eachBy(turn, "sum", n, func(p span, part int) { VADDPS(p.load(x), means[part], means[part]) })
	mean := s.total(means, add)
	VDIVPS(count, mean, mean)
	s.eachBy(turn, "square", n, func(p span, part int) {
		v := p.load(x)
		VSUBPS(mean, v, v)
		p.clip(v)
		p.store(v, hat)
		VFMADD231PS(v, v, variances[part])
	})
	variance := s.total(variances, add)
	VDIVPS(count, variance, variance)
	VADDPS(s.broadcast("eps"), variance, variance)
	inverse := s.vec()
	VSQRTPS(variance, variance)
	VDIVPS(variance, c.register(1), inverse)
	y, gain, bias := Load(Param("y"), GP64()), Load(Param("gain"), GP64()), Load(Param("bias"), GP64())
	s.each("scale", n, func(p span) {
		h := p.load(hat)
		VMULPS(inverse, h, h)
		p.store(h, hat)
		VMULPS(p.load(gain), h, h)
		VADDPS(p.load(bias), h, h)
		p.store(h, y)
	})
	Store(inverse.AsX(), ReturnIndex(0))
	done()
}

// normBack writes the derivative of a layer norm.
func (s isa) normBack() {
	TEXT("normBack"+s.name, NOSPLIT, "func(n int, dx, dy, hat, gain, dgain, dbias *float32, inverse float32)")
	Doc("normBack" + s.name + " adds to dx, dgain and dbias the derivatives of a row that normKept made.")
	Pragma("noescape")
	const turn = 2
	n, dy, hat := Load(Param("n"), GP64()), Load(Param("dy"), GP64()), Load(Param("hat"), GP64())
	gain, dgain, dbias := Load(Param("gain"), GP64()), Load(Param("dgain"), GP64()), Load(Param("dbias"), GP64())
	sums, alongs := s.zeros(turn), s.zeros(turn)
	s.eachBy(turn, "sum", n, func(p span, part int) {
		d, h := p.load(dy), p.load(hat)
		g := p.load(dbias)
		VADDPS(d, g, g)
		p.store(g, dbias)
		g = p.load(dgain)
		VFMADD231PS(d, h, g)
		p.store(g, dgain)
		VMULPS(p.load(gain), d, d)
		VADDPS(d, sums[part], sums[part])
		VFMADD231PS(d, h, alongs[part])
	})
	sum, along := s.total(sums, add), s.total(alongs, add)
	count, countX := s.vec(), XMM()
	VXORPS(countX, countX, countX)
	VCVTSI2SSQ(n, countX, countX)
	VBROADCASTSS(countX, count)
	VDIVPS(count, sum, sum)
	VDIVPS(count, along, along)
	inverse := s.broadcast("inverse")
	dx := Load(Param("dx"), GP64())
	s.each("add", n, func(p span) {
		d, to := p.load(dy), p.load(dx)
		VMULPS(p.load(gain), d, d)
		VSUBPS(sum, d, d)
		VFNMADD231PS(p.load(hat), along, d)
		VFMADD231PS(inverse, d, to)
		p.store(to, dx)
	})
	done()
}

// softmaxBack writes the derivative of a softmax.
func (s isa) softmaxBack() {
	TEXT("softmaxBack"+s.name, NOSPLIT, "func(n int, d, p *float32, scale float32)")
	Doc("softmaxBack" + s.name + " sets d[i] = p[i] * (d[i] - sum of d*p) * scale.")
	Pragma("noescape")
	n, d, w := Load(Param("n"), GP64()), Load(Param("d"), GP64()), Load(Param("p"), GP64())
	sums := s.zeros(4)
	s.eachBy(len(sums), "sum", n, func(p span, part int) { VFMADD231PS(p.load(d), p.load(w), sums[part]) })
	along, scale := s.total(sums, add), s.broadcast("scale")
	s.each("loop", n, func(p span) {
		v := p.load(d)
		VSUBPS(along, v, v)
		VMULPS(p.load(w), v, v)
		VMULPS(scale, v, v)
		p.store(v, d)
	})
	done()
}

// adamW writes a step of the optimiser. Products and sums are rounded one by one, as in Go: memory, not
// arithmetic, is what it waits for, and so every variant takes the same step.
func (s isa) adamW() {
	TEXT("adamW"+s.name, NOSPLIT, "func(n int, w, gradient, first, second, numbers *float32)")
	Doc("adamW" + s.name + " takes one step of AdamW; see AdamW.Update.")
	Pragma("noescape")
	n, w, g := Load(Param("n"), GP64()), Load(Param("w"), GP64()), Load(Param("gradient"), GP64())
	m, v, k := Load(Param("first"), GP64()), Load(Param("second"), GP64()), Load(Param("numbers"), GP64())
	field := func(i int) VecVirtual {
		x := s.vec()
		VBROADCASTSS(Mem{Base: k, Disp: 4 * i}, x)
		return x
	}
	var f [9]VecVirtual
	for i := range f {
		f[i] = field(i)
	}
	factor, b1, c1, b2, c2, shrink, step, scale, eps := f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]
	s.each("loop", n, func(p span) {
		d, a := p.load(g), p.load(m)
		VMULPS(factor, d, d)
		VMULPS(b1, a, a)
		t := s.vec()
		VMULPS(c1, d, t)
		VADDPS(t, a, a)
		p.store(a, m)
		VMULPS(c2, d, t)
		VMULPS(d, t, t)
		b := p.load(v)
		VMULPS(b2, b, b)
		VADDPS(t, b, b)
		p.store(b, v)
		VSQRTPS(b, b)
		VMULPS(scale, b, b)
		VADDPS(eps, b, b)
		VMULPS(step, a, a)
		VDIVPS(b, a, a)
		x := p.load(w)
		VMULPS(shrink, x, x)
		VSUBPS(a, x, x)
		p.store(x, w)
	})
	done()
}
