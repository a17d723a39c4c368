package main

import (
	"fmt"
	"math"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// int8s writes the kernels of int8 products.
func (s isa) int8s() {
	for rows := 1; rows <= s.rows; rows++ {
		s.tileInt8(rows)
	}
	s.peakInt8()
	s.quantize(false)
	s.quantize(true)
	s.expBytes()
}

// tileInt8 is tile for bytes: four products of an unsigned and a signed byte are added to each 32-bit
// sum at a time. Sums are whole numbers, hence exact; they become float32 at the end.
func (s isa) tileInt8(rows int) {
	TEXT(fmt.Sprintf("tileInt8x%d%s", rows, s.name), NOSPLIT,
		"func(vectors, fours int, a *uint8, lda int, b *int8, init *int32, rowScale, columnScale, bias, c *float32, ldc int, ahead uintptr)")
	Doc(fmt.Sprintf("tileInt8x%d%s computes C[i][j] = (init[j] + sum over p of A[i][p] B[p][j]) rowScale[i] columnScale[j] + bias[j]", rows, s.name),
		fmt.Sprintf("for %d rows and vectors*%d columns. p runs to 4*fours; B holds four p of a column together.", rows, s.lanes()))
	Pragma("noescape")
	n := Load(Param("vectors"), GP64())
	for vectors := s.vectors; vectors >= 1; vectors-- {
		if vectors > 1 {
			CMPQ(n, Imm(uint64(vectors)))
			JNE(LabelRef(fmt.Sprintf("narrower%d", vectors)))
		}
		t := tileBody{isa: s, rows: rows, vectors: vectors}
		t.writeInt8()
		if vectors > 1 {
			Label(fmt.Sprintf("narrower%d", vectors))
		}
	}
}

func (t *tileBody) writeInt8() {
	fours := Load(Param("fours"), GP64())
	a := Load(Param("a"), GP64())
	t.lda = Load(Param("lda"), GP64())
	t.bp = Load(Param("b"), GP64())
	ahead := Load(Param("ahead"), GP64())
	init := Load(Param("init"), GP64())
	t.sums = make([][]VecVirtual, t.rows)
	for i := range t.sums {
		for j := range t.vectors {
			t.sums[i] = append(t.sums[i], t.vec())
			if i == 0 {
				VMOVUPS(Mem{Base: init, Disp: j * t.bytes()}, t.sums[0][j])
			} else {
				VMOVAPS(t.sums[0][j], t.sums[i][j])
			}
		}
	}
	t.rowPointers(a.(GPVirtual))
	t.b, t.x = make([]VecVirtual, t.vectors), t.vec()
	for j := range t.b {
		t.b[j] = t.vec()
	}

	const unroll = 2
	loops := GP64()
	MOVQ(fours, loops)
	SHRQ(Imm(1), loops)
	JZ(LabelRef(t.label("last")))
	Label(t.label("loop"))
	PREFETCHT1(Mem{Base: ahead})
	ADDQ(Imm(64), ahead)
	for u := range unroll {
		t.stepInt8(u)
	}
	t.advance(unroll)
	DECQ(loops)
	JNZ(LabelRef(t.label("loop")))
	Label(t.label("last"))
	ANDQ(Imm(unroll-1), fours)
	JZ(LabelRef(t.label("store")))
	t.stepInt8(0)
	Label(t.label("store"))
	t.storeInt8()
	done()
}

func (t *tileBody) stepInt8(u int) {
	width := t.vectors * t.bytes()
	for j, b := range t.b {
		VMOVUPS(Mem{Base: t.bp, Disp: u*width + j*t.bytes()}, b)
	}
	for i, row := range t.sums {
		place := Mem{Base: t.a[i/3], Disp: 4 * u}
		if i%3 > 0 {
			place.Index, place.Scale = t.lda, uint8(i%3)
		}
		VPBROADCASTD(place, t.x)
		for j, b := range t.b {
			VPDPBUSD(b, t.x, row[j])
		}
	}
}

// storeInt8 scales the sums and adds the bias.
func (t *tileBody) storeInt8() {
	rowScale, columnScale := Load(Param("rowScale"), GP64()), Load(Param("columnScale"), GP64())
	bias := Load(Param("bias"), GP64())
	for j, b := range t.b {
		VMOVUPS(Mem{Base: columnScale, Disp: j * t.bytes()}, b)
	}
	row := -1
	column := 0
	t.eachSum(func(sum VecVirtual, place Mem) {
		if column == 0 {
			row++
			VBROADCASTSS(Mem{Base: rowScale, Disp: 4 * row}, t.x)
		}
		VCVTDQ2PS(sum, sum)
		VMULPS(t.b[column], sum, sum)
		VFMADD213PS(Mem{Base: bias, Disp: column * t.bytes()}, t.x, sum)
		VMOVUPS(sum, place)
		column = (column + 1) % t.vectors
	})
}

func (s isa) peakInt8() {
	TEXT("peakInt8"+s.name, NOSPLIT, "func(n int)")
	Doc(fmt.Sprintf("peakInt8%s runs n times 24 VPDPBUSD of %d bytes in registers alone.", s.name, s.bytes()))
	n := Load(Param("n"), GP64())
	x := s.zero()
	sums := make([]VecVirtual, 24)
	for i := range sums {
		sums[i] = s.zero()
	}
	Label("loop")
	for _, sum := range sums {
		VPDPBUSD(x, x, sum)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	done()
}

// quantize writes rows of float32 as bytes: unsigned ones around 128 for the left side of a product,
// or signed ones with their sum for the right side.
func (s isa) quantize(signed bool) {
	if signed {
		TEXT("quantizeSigned"+s.name, NOSPLIT, "func(n int, x *float32, q *int8, sum *int32) float32")
		Doc("quantizeSigned"+s.name+" sets q[i] = round(x[i] / scale), scale being the largest |x| / 127, and sum to their sum, and returns the scale.",
			"NaN or Inf in x make the scale NaN or Inf.")
	} else {
		TEXT("quantize"+s.name, NOSPLIT, "func(n int, x *float32, q *uint8) float32")
		Doc("quantize"+s.name+" sets q[i] = 128 + round(x[i] / scale), scale being the largest |x| / 127, and returns the scale.",
			"NaN or Inf in x make the scale NaN or Inf.")
	}
	Pragma("noescape")
	c := s.constants(map[bool]string{false: "quantize", true: "quantizeSigned"}[signed])
	n, x, q := Load(Param("n"), GP64()), Load(Param("x"), GP64()), Load(Param("q"), GP64())
	noSign, middle := s.vec(), s.vec()
	VPBROADCASTD(c.mem(0x7FFFFFFF), noSign)
	if !signed {
		VPBROADCASTD(c.mem(128), middle)
	}
	most := s.vec()
	VPBROADCASTD(c.mem(math.Float32bits(1e-30)), most) // so that a row of zeros has a scale
	s.each("most", n, func(p span) {
		v := p.load(x)
		VPANDD(noSign, v, v)
		VPMAXUD(v, most, most) // as bits: they order like the numbers, and NaN above Inf
	})
	s.across(most, func(ops ...Op) { VPMAXUD(ops[0], ops[1], ops[2]) })
	top, inverse, sum := c.register(127), s.vec(), s.zero()
	VDIVPS(most, top, inverse)
	VDIVPS(top, most, most)
	Store(most.AsX(), ReturnIndex(0))
	s.each("round", n, func(p span) {
		v := p.load(x)
		VMULPS(inverse, v, v)
		VCVTPS2DQ(v, v)
		if signed {
			VPADDD(v, sum, sum)
		} else {
			VPADDD(middle, v, v)
		}
		s.storeBytes(p, v, q, signed)
	})
	if signed {
		s.across(sum, func(ops ...Op) { VPADDD(ops[0], ops[1], ops[2]) })
		VMOVD(sum.AsX(), Mem{Base: Load(Param("sum"), GP64())})
	}
	done()
}

// expBytes is expWeights with bytes to the end, which stay beside the scores.
func (s isa) expBytes() {
	TEXT("expBytes"+s.name, NOSPLIT, "func(rows, n int, x *float32, ld int, scale float32, q *uint8, ldq int, sums *float32)")
	Doc("expBytes"+s.name+" sets q[i][j] to the whole number below 255 exp(scale*(x[i][j] - max of row i)) plus a share that differs between",
		"neighbours, for rows rows of n numbers, and sums[i] to the sum of row i of q, or to NaN.")
	Pragma("noescape")
	c := s.constants("expBytes")
	n := Load(Param("n"), GP64())
	ld := Load(Param("ld"), GP64())
	SHLQ(Imm(2), ld)
	row, ldq, q := Load(Param("q"), GP64()), Load(Param("ldq"), GP64()), GP64()
	most := c.register(255)
	shares := make([]float64, s.lanes())
	for i := range shares {
		shares[i] = (float64(bits.Reverse8(uint8(i))>>4) + 0.5) / float64(s.lanes())
	}
	share := c.vector(shares)
	s.weightRows(c, n, ld, func() { MOVQ(row, q) }, func(p span, _ Register, w VecVirtual) {
		whole := s.vec()
		VFMADD213PS(share, most, w)
		VRNDSCALEPS(Imm(1), w, w) // down
		p.clip(w)
		VCVTPS2DQ(w, whole)
		s.storeBytes(p, whole, q, false)
	}, func() { ADDQ(ldq, row) })
	done()
}

// storeBytes narrows 32-bit numbers to bytes with saturation and moves q on.
func (s isa) storeBytes(p span, v VecVirtual, q Register, signed bool) {
	at := Mem{Base: q}
	switch {
	case p.lanes != nil && signed:
		VPMOVSDB(v, p.lanes, at)
	case p.lanes != nil:
		VPMOVUSDB(v, p.lanes, at)
	case signed:
		VPMOVSDB(v, at)
		ADDQ(Imm(uint64(s.lanes())), q)
	default:
		VPMOVUSDB(v, at)
		ADDQ(Imm(uint64(s.lanes())), q)
	}
}
