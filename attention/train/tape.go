package train

import (
	"math/rand/v2"

	"misroute/attention/kernel"
)

// tape is the memory of one goroutine's forward and backward pass: what forward computed stays until
// backward has used it. All of it is reused by the next batch.
type tape struct {
	floats  slab[float32]
	bytes   slab[uint8]
	gemm    kernel.Scratch
	random  *rand.PCG
	dropout float64 // share of numbers dropped; 0 when not training
}

func newTape() *tape { return &tape{random: rand.NewPCG(0, 0)} }

// start forgets the last batch. seed makes the dropout of the next one.
func (t *tape) start(dropout float64, seed, stream uint64) {
	t.floats.reset()
	t.bytes.reset()
	t.dropout = dropout
	t.random.Seed(seed, stream)
}

// take is n numbers of unknown content, zero is n zeros.
func (t *tape) take(n int) []float32 { return t.floats.take(n) }

func (t *tape) zero(n int) []float32 {
	x := t.floats.take(n)
	clear(x)
	return x
}

// slab hands out pieces of large blocks.
type slab[E float32 | uint8] struct {
	blocks [][]E
	block  int // the one in use
	used   int // of it
}

const slabBlock = 1 << 20

func (s *slab[E]) reset() { s.block, s.used = 0, 0 }

func (s *slab[E]) take(n int) []E {
	for ; s.block < len(s.blocks); s.block, s.used = s.block+1, 0 {
		if b := s.blocks[s.block]; s.used+n <= len(b) {
			s.used += n
			return b[s.used-n : s.used : s.used]
		}
	}
	s.blocks = append(s.blocks, make([]E, max(n, slabBlock)))
	s.used = n
	return s.blocks[s.block][:n:n]
}
