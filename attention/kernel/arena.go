package kernel

import "unsafe"

// Arena is one block of memory for the packed matrices of a model. The weights of a model are read
// from end to end for every message; in one block, on large pages where the system has them, that
// costs few address translations.
type Arena struct{ free []float32 }

const (
	largePage = 2 << 20
	cacheLine = 64
)

// NewArena makes room for n elements: the sum of ArenaLen over the matrices.
func NewArena(n int) *Arena { return &Arena{Memory(n)} }

// Memory is n zeros that start on a cache line, so that vector loads do not cross one, and stand on
// large pages when they fill one.
func Memory(n int) []float32 {
	if 4*n < largePage {
		return aligned(make([]float32, n+cacheLine/4), cacheLine)[:n:n]
	}
	block := aligned(make([]float32, n+largePage/4), largePage)
	useLargePages(block)
	return block[:n:n]
}

// ArenaLen is how much of an Arena a K x N matrix takes.
func ArenaLen(n, k int) int { return roundUp(PackedLen(n, k), cacheLine/4) }

// Pack is Pack into the arena, or beside it when it is full.
func (a *Arena) Pack(weight, bias []float32, n, k int) *Packed {
	b := a.matrix(n, k)
	b.SetTransposed(weight, k)
	b.SetBias(bias)
	return b
}

// PackRows lays out a matrix of k rows of n numbers, without a bias.
func (a *Arena) PackRows(rows []float32, n, k int) *Packed {
	b := a.matrix(n, k)
	b.SetRows(rows, n)
	b.SetBias(nil)
	return b
}

// matrix takes the memory of a matrix.
func (a *Arena) matrix(n, k int) *Packed {
	b, size := &Packed{}, ArenaLen(n, k)
	if size > len(a.free) {
		b.Grow(make([]float32, size), n, k)
		return b
	}
	b.Grow(a.free[:size], n, k)
	a.free = a.free[size:]
	return b
}

// aligned is x from its first element at a multiple of boundary bytes.
func aligned(x []float32, boundary uintptr) []float32 {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(x))) & (boundary - 1)
	return x[skip/4:]
}
