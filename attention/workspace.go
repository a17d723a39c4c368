package attention

import (
	"sync"
	"unsafe"

	"misroute/attention/kernel"
)

// Workspace is the scratch memory of one goroutine. The zero value is ready; it fits every model and
// grows to what the longest message needs.
type Workspace struct {
	// Width is how many goroutines may share one message: worth it when messages come one by one and
	// cores are idle. 0 and 1 both mean the caller's own. It changes the time, never the bits.
	Width int

	parts  []Workspace // scratch of the other goroutines
	floats arena[float32]
	bytes  arena[uint8]
	bag    BagFeatures
	sum    []float32 // of WideDeep: what the wide part says
	ids    []int32   // of WideDeep: the window
}

// share cuts n rows into up to Width parts of a multiple of step rows and works on them at the same
// time. Each part has scratch of its own.
func (ws *Workspace) share(n, step int, work func(from, to int, ws *Workspace)) {
	steps := (n + step - 1) / step
	width := min(ws.Width, steps)
	if len(ws.parts) < width {
		ws.parts = append(ws.parts, make([]Workspace, width-len(ws.parts))...)
	}
	var wait sync.WaitGroup
	from := 0
	for p := range width - 1 {
		to := steps * (p + 1) / width * step
		part, start := &ws.parts[p], from
		wait.Go(func() {
			part.floats.reset()
			part.bytes.reset()
			work(start, to, part)
		})
		from = to
	}
	work(from, n, ws)
	wait.Wait()
}

// arena hands out pieces of one block and takes them all back at once. Pieces start on a cache line,
// so that vector loads never cross one, and hold whatever was there before.
type arena[E float32 | uint8] struct {
	block []E
	used  int // elements handed out, or asked for beyond the block
	peak  int // most that were in use at a time since the last reset
}

const cacheLine = 64

// reset takes every piece back. When the last round outgrew the block, the next block is large enough
// for a round like it.
func (a *arena[E]) reset() {
	if a.peak > len(a.block) {
		a.reserve(a.peak)
	}
	a.used, a.peak = 0, 0
}

// reserve makes room for n elements. Call it between reset and take, so that growth costs one block.
func (a *arena[E]) reserve(n int) {
	if n <= len(a.block) {
		return
	}
	var e E
	a.block = nil // let go of the old block before asking for the new one
	words := kernel.Memory((n*int(unsafe.Sizeof(e)) + 3) / 4)
	a.block = unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// take returns a piece of n elements, from the heap when the block is used up.
func (a *arena[E]) take(n int) []E {
	var e E
	line := cacheLine / int(unsafe.Sizeof(e))
	padded := (n + line - 1) / line * line
	from := a.used
	a.used += padded
	a.peak = max(a.peak, a.used)
	if a.used > len(a.block) {
		return make([]E, n)
	}
	return a.block[from : from+n : from+n]
}

// mark and release give back what was taken in between, for buffers of one part of the forward pass.
func (a *arena[E]) mark() int { return a.used }

func (a *arena[E]) release(mark int) { a.used = mark }
