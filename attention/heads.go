package attention

import (
	"math"

	"misroute/attention/kernel"
)

// heads computes scaled dot-product attention for one head after the other in O(T) memory: a block of
// queries at a time, its scores against every key, softmax, times the values. The T x T map is never
// whole unless somebody asks for it.
type heads struct {
	tokens int // T
	size   int // HS
	ld     int // distance of two tokens in q, k and v
	scale  float32
	mask   []uint8 // of keys; nil = all visible
	window int     // > 0: a query sees the keys at most this far away; 0 = all

	// adjust, if not nil, changes the scores of one query before softmax: scores[j] belongs to key
	// first+j and is not yet scaled.
	adjust func(scores []float32, query, first int)

	ws *Workspace
}

// queryBlock is how many queries share a pass over the keys: the rows of one kernel tile.
const queryBlock = 8

// headFloats is the scratch that attend takes: packed keys and values, and the scores of a block.
func headFloats(tokens, size int) int {
	return kernel.PackedLen(tokens, size) + kernel.PackedLen(size, tokens) + queryBlock*(tokens+16) + 3*16
}

// attend computes rows queries of one head: q, k, v start at that head's part of the first token;
// out has its part of the first row, ldo between rows. keep, if not nil, gets the T x T weights.
func (h *heads) attend(out []float32, ldo, rows int, q, k, v []float32, keep []float32) {
	mark := h.ws.floats.mark()
	defer h.ws.floats.release(mark)
	t := h.tokens
	var keys, values kernel.Packed
	keys.Grow(h.ws.floats.take(kernel.PackedLen(t, h.size)), t, h.size)
	keys.SetTransposed(k, h.ld)
	keys.SetBias(nil)
	scale := h.hide(keys.Bias())
	values.Grow(h.ws.floats.take(kernel.PackedLen(h.size, t)), h.size, t)
	values.SetRows(v, h.ld)
	values.SetBias(nil)
	scores := h.ws.floats.take(queryBlock * t)

	for i := 0; i < rows; i += queryBlock {
		n := min(queryBlock, rows-i)
		first, last := h.visible(i, n, keys.PanelWidth())
		kernel.MatMulPart(scores, t, q[i*h.ld:], h.ld, n, &keys, first, last, 0, h.size)
		for r := range n {
			row := scores[r*t:][:last-first]
			h.hideWindow(row, i+r, first)
			if h.adjust != nil {
				h.adjust(row, i+r, first)
			}
			kernel.Softmax(row, scale)
			if keep != nil {
				copy(keep[(i+r)*t+first:], row)
			}
		}
		kernel.MatMulPart(out[i*ldo:], ldo, scores, t, n, &values, 0, h.size, first, last)
	}
}

// hide makes the scores of hidden keys start from -Inf and returns the scale. When every key is hidden
// all of them count the same: their scores are scaled by 0.
func (h *heads) hide(bias []float32) (scale float32) {
	if h.mask == nil {
		return h.scale
	}
	seen := false
	for _, m := range h.mask {
		seen = seen || m != 0
	}
	if !seen {
		return 0
	}
	for j, m := range h.mask {
		if m == 0 {
			bias[j] = float32(math.Inf(-1))
		}
	}
	return h.scale
}

// visible is the range of keys that any of n queries from i on may see, its start on a panel.
func (h *heads) visible(i, n, panel int) (first, last int) {
	if h.window <= 0 {
		return 0, h.tokens
	}
	first = max(0, i-h.window) / panel * panel
	return first, min(h.tokens, i+n+h.window)
}

// hideWindow hides the keys that are too far from the query.
func (h *heads) hideWindow(row []float32, query, first int) {
	if h.window <= 0 {
		return
	}
	for j := range row {
		if d := first + j - query; d > h.window || -d > h.window {
			row[j] = float32(math.Inf(-1))
		}
	}
}
