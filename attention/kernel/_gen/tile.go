package main

import (
	"fmt"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tile writes the inner kernel of every product, for a number of rows and 1 to s.vectors registers of
// columns, as many as leave room for their sums. All sums of the tile stay in registers while k runs; each step loads one row of B and
// broadcasts one number of each row of A.
func (s isa) tile(rows int) {
	TEXT(fmt.Sprintf("tile%d%s", rows, s.name), NOSPLIT,
		"func(count, vectors, k int, a *float32, lda int, b, init, c *float32, ldc int, ahead uintptr)")
	Doc(fmt.Sprintf("tile%d%s computes C[i][j] = init[j] + sum over p of A[i][p] B[p][j] for %d rows and vectors*%d columns.",
		rows, s.name, rows, s.lanes()),
		"With init nil the sum is added to C. ahead is an address to prefetch from, for the next panel.",
		fmt.Sprintf("That is done count times, for the next %d rows each time.", rows))
	Pragma("noescape")
	n := Load(Param("vectors"), GP64())
	for vectors := min(s.vectors, s.sums()/rows); vectors >= 1; vectors-- {
		if vectors > 1 {
			CMPQ(n, Imm(uint64(vectors)))
			JNE(LabelRef(fmt.Sprintf("narrower%d", vectors)))
		}
		t := tileBody{isa: s, rows: rows, vectors: vectors}
		t.write()
		if vectors > 1 {
			Label(fmt.Sprintf("narrower%d", vectors))
		}
	}
}

type tileBody struct {
	isa
	rows, vectors int
	sums          [][]VecVirtual // [row][register of columns]
	b             []VecVirtual
	x             VecVirtual
	a             []GPVirtual // every third row of A
	lda           Register
	bp            Register
}

func (t *tileBody) label(name string) string { return fmt.Sprintf("%s%d", name, t.vectors) }

func (t *tileBody) write() {
	Label(t.label("tile"))
	k := Load(Param("k"), GP64())
	a := Load(Param("a"), GP64())
	t.lda = Load(Param("lda"), GP64())
	t.bp = Load(Param("b"), GP64())
	ahead := Load(Param("ahead"), GP64())
	SHLQ(Imm(2), t.lda)
	t.start()
	t.rowPointers(a.(GPVirtual))
	t.b, t.x = make([]VecVirtual, t.vectors), t.vec()
	for j := range t.b {
		t.b[j] = t.vec()
	}

	const unroll = 4
	fours := GP64()
	MOVQ(k, fours)
	SHRQ(Imm(2), fours)
	JZ(LabelRef(t.label("ones")))
	Label(t.label("loop"))
	PREFETCHT1(Mem{Base: ahead})
	PREFETCHT1(Mem{Base: ahead, Disp: 64})
	ADDQ(U32(128), ahead)
	for u := range unroll {
		t.step(u)
	}
	t.advance(unroll)
	DECQ(fours)
	JNZ(LabelRef(t.label("loop")))
	Label(t.label("ones"))
	ANDQ(Imm(unroll-1), k)
	JZ(LabelRef(t.label("store")))
	Label(t.label("one"))
	t.step(0)
	t.advance(1)
	DECQ(k)
	JNZ(LabelRef(t.label("one")))
	Label(t.label("store"))
	t.eachSum(func(sum VecVirtual, place Mem) { VMOVUPS(sum, place) })
	t.next(ahead)
	done()
}

// next goes on to the rows of the next tile, with the arguments moved in place.
func (t *tileBody) next(ahead Register) {
	argument := func(name string) Mem {
		b, err := Param(name).Resolve()
		if err != nil {
			log.Fatal(err)
		}
		return b.Addr
	}
	end := t.label("end")
	count := Load(Param("count"), GP64())
	DECQ(count)
	JZ(LabelRef(end))
	MOVQ(count, argument("count"))
	MOVQ(ahead, argument("ahead"))
	for _, matrix := range [][2]string{{"lda", "a"}, {"ldc", "c"}} {
		step := GP64()
		IMUL3Q(U32(uint32(4*t.rows)), Load(Param(matrix[0]), GP64()), step)
		ADDQ(step, argument(matrix[1]))
	}
	JMP(LabelRef(t.label("tile")))
	Label(end)
}

// start loads the sums from init or from C.
func (t *tileBody) start() {
	t.sums = make([][]VecVirtual, t.rows)
	for i := range t.sums {
		for range t.vectors {
			t.sums[i] = append(t.sums[i], t.vec())
		}
	}
	init := Load(Param("init"), GP64())
	TESTQ(init, init)
	JZ(LabelRef(t.label("accumulate")))
	for j, first := range t.sums[0] {
		VMOVUPS(Mem{Base: init, Disp: j * t.bytes()}, first)
		for _, row := range t.sums[1:] {
			VMOVAPS(first, row[j])
		}
	}
	JMP(LabelRef(t.label("started")))
	Label(t.label("accumulate"))
	t.eachSum(func(sum VecVirtual, place Mem) { VMOVUPS(place, sum) })
	Label(t.label("started"))
}

// eachSum visits the sums with their place in C, row after row.
func (t *tileBody) eachSum(visit func(sum VecVirtual, place Mem)) {
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	SHLQ(Imm(2), ldc)
	for i, row := range t.sums {
		if i > 0 {
			ADDQ(ldc, c)
		}
		for j, sum := range row {
			visit(sum, Mem{Base: c, Disp: j * t.bytes()})
		}
	}
}

// rowPointers points at every third row of A; the two after it are reached by the index.
func (t *tileBody) rowPointers(a GPVirtual) {
	t.a = []GPVirtual{a}
	for i := 3; i < t.rows; i += 3 {
		before, p := t.a[len(t.a)-1], GP64()
		LEAQ(Mem{Base: before, Index: t.lda, Scale: 2}, p)
		ADDQ(t.lda, p)
		t.a = append(t.a, p)
	}
}

// step does one p of the sum: B's row u steps ahead, A's column u steps ahead.
func (t *tileBody) step(u int) {
	width := t.vectors * t.bytes()
	for j, b := range t.b {
		VMOVUPS(Mem{Base: t.bp, Disp: u*width + j*t.bytes()}, b)
	}
	for i, row := range t.sums {
		place := Mem{Base: t.a[i/3], Disp: 4 * u}
		if i%3 > 0 {
			place.Index, place.Scale = t.lda, uint8(i%3)
		}
		VBROADCASTSS(place, t.x)
		for j, b := range t.b {
			VFMADD231PS(b, t.x, row[j])
		}
	}
}

func (t *tileBody) advance(steps int) {
	for _, p := range t.a {
		ADDQ(Imm(uint64(4*steps)), p)
	}
	ADDQ(U32(uint32(steps*t.vectors*t.bytes())), t.bp)
}

// peak writes a loop of multiply-adds that touches no memory: the most this core can do.
func (s isa) peak() {
	TEXT("peak"+s.name, NOSPLIT, "func(n int)")
	Doc(fmt.Sprintf("peak%s runs n times 24 multiply-adds of %d lanes in registers alone.", s.name, s.lanes()))
	Pragma("noescape")
	n := Load(Param("n"), GP64())
	x := s.zero()
	count := s.sums()
	sums := make([]VecVirtual, count)
	for i := range sums {
		sums[i] = s.zero()
	}
	Label("loop")
	for i := range 24 {
		VFMADD231PS(x, x, sums[i%count])
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	done()
}
