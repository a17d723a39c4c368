package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transpose writes the transposition of a square block, one register wide.
func (s isa) transpose() {
	n := s.lanes()
	TEXT("transpose"+s.name, NOSPLIT, "func(dst *float32, ldd int, src *float32, lds int)")
	Doc(fmt.Sprintf("transpose%s sets dst[j][i] = src[i][j] for %d x %d numbers.", s.name, n, n))
	Pragma("noescape")
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	src, lds := Load(Param("src"), GP64()), Load(Param("lds"), GP64())
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), lds)
	rows := make([]VecVirtual, n)
	for i := range rows {
		rows[i] = s.vec()
		VMOVUPS(Mem{Base: src}, rows[i])
		ADDQ(lds, src)
	}
	for _, row := range s.transposed(rows) {
		VMOVUPS(row, Mem{Base: dst})
		ADDQ(ldd, dst)
	}
	done()
}

// transposed shuffles rows into columns: pairs, then fours within each 128-bit part, then the parts.
func (s isa) transposed(rows []VecVirtual) []VecVirtual {
	n := len(rows)
	fours := make([]VecVirtual, n) // fours[i+c] holds column c of rows i..i+3, in each 128-bit part
	for i := 0; i < n; i += 4 {
		a, b, c, d := s.vec(), s.vec(), s.vec(), s.vec()
		VUNPCKLPS(rows[i+1], rows[i], a)
		VUNPCKHPS(rows[i+1], rows[i], b)
		VUNPCKLPS(rows[i+3], rows[i+2], c)
		VUNPCKHPS(rows[i+3], rows[i+2], d)
		for k, pair := range [][2]VecVirtual{{a, c}, {b, d}} {
			low, high := s.vec(), s.vec()
			VUNPCKLPD(pair[1], pair[0], low)
			VUNPCKHPD(pair[1], pair[0], high)
			fours[i+2*k], fours[i+2*k+1] = low, high
		}
	}
	columns := make([]VecVirtual, n)
	for c := range 4 {
		if s.wide {
			s.parts4(fours[c], fours[4+c], fours[8+c], fours[12+c], columns, c)
			continue
		}
		columns[c], columns[4+c] = s.vec(), s.vec()
		VPERM2F128(Imm(0x20), fours[4+c], fours[c], columns[c])
		VPERM2F128(Imm(0x31), fours[4+c], fours[c], columns[4+c])
	}
	return columns
}

// parts4 transposes four registers as 4 x 4 matrices of 128-bit parts.
func (s isa) parts4(r0, r1, r2, r3 VecVirtual, columns []VecVirtual, c int) {
	even01, odd01, even23, odd23 := s.vec(), s.vec(), s.vec(), s.vec()
	VSHUFF32X4(Imm(0x88), r1, r0, even01) // parts 0, 2 of r0 and of r1
	VSHUFF32X4(Imm(0xDD), r1, r0, odd01)  // parts 1, 3
	VSHUFF32X4(Imm(0x88), r3, r2, even23)
	VSHUFF32X4(Imm(0xDD), r3, r2, odd23)
	for i, pair := range [][2]VecVirtual{{even01, even23}, {odd01, odd23}} {
		columns[4*i+c], columns[8+4*i+c] = s.vec(), s.vec()
		VSHUFF32X4(Imm(0x88), pair[1], pair[0], columns[4*i+c])
		VSHUFF32X4(Imm(0xDD), pair[1], pair[0], columns[8+4*i+c])
	}
}
