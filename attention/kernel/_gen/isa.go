package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set and the tile that fits its registers.
type isa struct {
	name    string
	wide    bool // 512-bit registers and masks
	rows    int  // of the tallest tile
	vectors int  // columns of the widest tile, in registers

	oneBits Op // AVX2: 1.0 in every lane, which powers of two are built from
}

func (s isa) vec() VecVirtual {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

// lanes is how many float32 a register holds.
func (s isa) lanes() int {
	if s.wide {
		return 16
	}
	return 8
}

// sums is how many registers of sums fit beside a row of B and a number of A.
func (s isa) sums() int {
	if s.wide {
		return 24
	}
	return 12
}

func (s isa) bytes() int { return 4 * s.lanes() }

// constants is a table of float32 in read-only memory.
type constants struct {
	isa
	table  Mem
	length int
	at     map[uint32]int
}

func (s isa) constants(name string) *constants {
	return &constants{isa: s, table: GLOBL(name+"Constants"+s.name, RODATA|NOPTR), at: map[uint32]int{}}
}

// mem is the place of a number, which is added on first use. AVX2 has too few registers to keep many
// numbers in, so its table holds whole vectors that instructions read in place.
func (c *constants) mem(bits uint32) Mem {
	i, ok := c.at[bits]
	if !ok {
		i = c.length
		c.at[bits] = i
		copies := 1
		if !c.wide {
			copies = c.lanes()
		}
		for range copies {
			DATA(4*c.length, U32(bits))
			c.length++
		}
	}
	return c.table.Offset(4 * i)
}

// float is a number in every lane, as the first operand of an instruction.
func (c *constants) float(x float64) Op { return c.bits(math.Float32bits(float32(x))) }

func (c *constants) bits(bits uint32) Op {
	if c.wide {
		v := c.vec()
		VBROADCASTSS(c.mem(bits), v)
		return v
	}
	return c.mem(bits)
}

// register is a number in every lane of a register.
func (c *constants) register(x float64) VecVirtual {
	v := c.vec()
	VBROADCASTSS(c.mem(math.Float32bits(float32(x))), v)
	return v
}

func (c *constants) floats(numbers []float64) []Op {
	ops := make([]Op, len(numbers))
	for i, x := range numbers {
		ops[i] = c.float(x)
	}
	return ops
}

// vector is a register of different numbers, one a lane.
func (c *constants) vector(numbers []float64) VecVirtual {
	from := c.length
	for _, x := range numbers {
		DATA(4*c.length, U32(math.Float32bits(float32(x))))
		c.length++
	}
	v := c.vec()
	VMOVUPS(c.table.Offset(4*from), v)
	return v
}

// broadcast copies a float32 parameter to all lanes of a new register.
func (s isa) broadcast(param string) VecVirtual {
	x := Load(Param(param), XMM()).(VecVirtual)
	v := s.vec()
	VBROADCASTSS(x, v)
	return v
}

// span is a loop over n float32 of several slices, a register at a time and then the rest under a
// mask. Every slice is addressed by its base and the shared byte offset.
type span struct {
	isa
	offset GPVirtual
	ahead  int      // registers past the offset
	lanes  Register // mask of the lanes in use; nil in the full-width loop
}

// maskTable is what the AVX2 tail mask is loaded from: n words of ones start 4*n bytes before its
// middle.
var maskTable Mem

// each writes a loop over n elements. body is written twice: for full registers and for the rest.
// label makes the loop's labels unique within the function. n is kept.
func (s isa) each(label string, n Register, body func(span)) {
	offset, left := GP64(), GP64()
	XORQ(offset, offset)
	MOVQ(n, left)
	SUBQ(Imm(uint64(s.lanes())), left)
	JL(LabelRef(label + "_rest"))
	Label(label + "_full")
	body(span{isa: s, offset: offset})
	ADDQ(Imm(uint64(s.bytes())), offset)
	SUBQ(Imm(uint64(s.lanes())), left)
	JGE(LabelRef(label + "_full"))
	Label(label + "_rest")
	ADDQ(Imm(uint64(s.lanes())), left)
	JZ(LabelRef(label + "_done"))
	body(span{isa: s, offset: offset, lanes: s.firstLanes(left)})
	Label(label + "_done")
}

// eachBy is each with several registers a turn, so that sums kept apart need not wait for each other:
// body is told which of them it works on. What fills no turn goes to the first.
func (s isa) eachBy(turn int, label string, n Register, body func(p span, part int)) {
	offset, left := GP64(), GP64()
	XORQ(offset, offset)
	MOVQ(n, left)
	SUBQ(U32(uint32(turn*s.lanes())), left)
	JL(LabelRef(label + "_few"))
	Label(label + "_turn")
	for part := range turn {
		body(span{isa: s, offset: offset, ahead: part}, part)
	}
	ADDQ(U32(uint32(turn*s.bytes())), offset)
	SUBQ(U32(uint32(turn*s.lanes())), left)
	JGE(LabelRef(label + "_turn"))
	Label(label + "_few")
	ADDQ(U32(uint32((turn-1)*s.lanes())), left)
	JL(LabelRef(label + "_rest"))
	Label(label + "_full")
	body(span{isa: s, offset: offset}, 0)
	ADDQ(Imm(uint64(s.bytes())), offset)
	SUBQ(Imm(uint64(s.lanes())), left)
	JGE(LabelRef(label + "_full"))
	Label(label + "_rest")
	ADDQ(Imm(uint64(s.lanes())), left)
	JZ(LabelRef(label + "_done"))
	body(span{isa: s, offset: offset, lanes: s.firstLanes(left)}, 0)
	Label(label + "_done")
}

// total adds parts into the first, always in the same order, and sums its lanes.
func (s isa) total(parts []VecVirtual, op func(...Op)) VecVirtual {
	for n := len(parts); n > 1; n = (n + 1) / 2 {
		for i := range n / 2 {
			j := (n+1)/2 + i
			op(parts[j], parts[i], parts[i])
		}
	}
	s.across(parts[0], op)
	return parts[0]
}

// firstLanes is a mask of the first n lanes, 0 < n < lanes. It may clobber n.
func (s isa) firstLanes(n GPVirtual) Register {
	if s.wide {
		ones := GP32()
		MOVL(U32(0xFFFF), ones)
		BZHIL(n.As32(), ones, ones)
		k := K()
		KMOVW(ones, k)
		return k
	}
	if maskTable.Base == nil && maskTable.Symbol.Name == "" {
		maskTable = GLOBL("lanesAVX2", RODATA|NOPTR)
		for i := range 16 {
			word := U32(0xFFFFFFFF)
			if i >= 8 {
				word = 0
			}
			DATA(4*i, word)
		}
	}
	base := GP64()
	LEAQ(maskTable, base)
	SHLQ(Imm(2), n)
	SUBQ(n, base)
	m := YMM()
	VMOVUPS(Mem{Base: base, Disp: 32}, m)
	return m
}

func (p span) at(base Register) Mem {
	return Mem{Base: base, Index: p.offset, Scale: 1, Disp: p.ahead * p.bytes()}
}

// load reads the lanes in use; the others are 0.
func (p span) load(base Register) VecVirtual {
	v := p.vec()
	switch {
	case p.lanes == nil:
		VMOVUPS(p.at(base), v)
	case p.wide:
		VMOVUPS_Z(p.at(base), p.lanes, v)
	default:
		VMASKMOVPS(p.at(base), p.lanes, v)
	}
	return v
}

// loadOr reads the lanes in use; the others are those of rest.
func (p span) loadOr(base, rest Register) VecVirtual {
	v := p.load(base)
	if p.lanes == nil {
		return v
	}
	if p.wide {
		w := p.vec()
		VMOVAPS(rest, w)
		VMOVUPS(p.at(base), p.lanes, w)
		return w
	}
	VBLENDVPS(p.lanes, v, rest, v)
	return v
}

func (p span) store(v Register, base Register) {
	switch {
	case p.lanes == nil:
		VMOVUPS(v, p.at(base))
	case p.wide:
		VMOVUPS(v, p.lanes, p.at(base))
	default:
		VMASKMOVPS(v, p.lanes, p.at(base))
	}
}

// clip sets the lanes that are not in use to 0.
func (p span) clip(v Register) {
	switch {
	case p.lanes == nil:
	case p.wide:
		VMOVAPS_Z(v, p.lanes, v)
	default:
		VANDPS(p.lanes, v, v)
	}
}

// across combines all lanes with op, always in the same order; the result is in every lane.
func (s isa) across(v VecVirtual, op func(...Op)) {
	t := s.vec()
	if s.wide {
		VSHUFF32X4(Imm(0x4E), v, v, t)
		op(t, v, v)
		VSHUFF32X4(Imm(0xB1), v, v, t)
		op(t, v, v)
	} else {
		VPERM2F128(Imm(0x01), v, v, t)
		op(t, v, v)
	}
	VPERMILPS(Imm(0x4E), v, t)
	op(t, v, v)
	VPERMILPS(Imm(0xB1), v, t)
	op(t, v, v)
}

func add(ops ...Op)  { VADDPS(ops[0], ops[1], ops[2]) }
func most(ops ...Op) { VMAXPS(ops[0], ops[1], ops[2]) }

// zeros are n registers of zeros.
func (s isa) zeros(n int) []VecVirtual {
	parts := make([]VecVirtual, n)
	for i := range parts {
		parts[i] = s.zero()
	}
	return parts
}

func (s isa) zero() VecVirtual {
	v := s.vec()
	VXORPS(v, v, v)
	return v
}

// nearest rounds to the nearest integer, ties to even.
func (s isa) nearest(x, to Register) {
	if s.wide {
		VRNDSCALEPS(Imm(0), x, to)
	} else {
		VROUNDPS(Imm(0), x, to)
	}
}

func done() {
	VZEROUPPER()
	RET()
}
