// Command gen writes the assembly of package kernel, one instruction set a run:
//
//	go run . -set avx512 -out ../avx512_amd64.s -stubs ../avx512_amd64.go -pkg kernel
//
// check_generated.sh beside the package runs it for every set and compares.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	set := flag.String("set", "", "instruction set: avx512, avx2 or vnni")
	flag.Parse()
	ConstraintExpr("amd64,!purego")
	switch *set {
	case "avx512":
		floats(isa{name: "AVX512", wide: true, rows: 8, vectors: 3})
	case "avx2":
		floats(isa{name: "AVX2", rows: 6, vectors: 3})
	case "vnni":
		isa{name: "VNNI", wide: true, rows: 8, vectors: 3}.int8s()
	default:
		log.Fatalf("-set %q is not an instruction set", *set)
	}
	Generate()
}

// floats writes every float32 kernel.
func floats(s isa) {
	for rows := 1; rows <= s.rows; rows++ {
		s.tile(rows)
	}
	s.peak()
	s.exp()
	s.expWeights()
	s.divideRows()
	s.scale()
	s.gelu()
	s.geluTanh()
	s.norm()
	s.add()
	s.axpy()
	s.dot()
	s.transpose()
	s.geluBack()
	s.normKept()
	s.normBack()
	s.softmaxBack()
	s.adamW()
}
