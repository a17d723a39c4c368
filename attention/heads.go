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
	pairs  bool    // the mask hides queries as well: one whose mask is 0 sees nothing
	local  bool    // a query sees only the keys at most window away
	window int

	int8     bool            // scores and blends are computed in 8-bit whole numbers
	relative *relativeScores // what is added to the scores of a pair for its distance; nil = nothing

	ws *Workspace
}

// queryBlock is how many queries at least share a pass over the keys: the rows of one kernel tile. Where
// all see the same keys more of them do, so that a panel of keys is read for several tiles.
const (
	queryBlock  = 8
	mostQueries = 32

	// From manyKeys on keys and values outgrow the second-level cache: then the values are taken keyBlock
	// at a time.
	manyKeys = 1024
	keyBlock = 512

	// So many products of a weight up to 255 and a value up to 127 fit a 32-bit sum.
	mostByteKeys = 1 << 16
)

// block is how many queries to take together.
func (h *heads) block() int {
	if h.local {
		return queryBlock
	}
	return mostQueries
}

// scoresStride is the distance of two rows of scores for that many keys: whole cache lines, and an odd
// number of them, since rows a power of two apart would push each other out of the cache.
func scoresStride(keys int) int {
	const line = cacheLine / 4
	return line * ((keys+line-1)/line | 1)
}

// headFloats is the scratch that attend takes.
func headFloats(tokens, size int) int {
	scores := mostQueries * scoresStride(tokens)
	keys := max(kernel.PackedLen(tokens, size), kernel.PackedInt8Len(tokens, size))
	values := max(kernel.PackedLen(size, tokens), kernel.PackedInt8Len(size, tokens)+size*kernel.RowsLen(tokens))
	return keys + values + scores + 3*mostQueries + size + 8*16
}

// headBytes is the scratch for int8 that attend takes.
func headBytes(tokens, size int) int {
	return quantizedBytes(max(tokens, mostQueries), size) + quantizedBytes(mostQueries+size, tokens)
}

// attend computes rows queries of one head: q, k, v start at that head's part of the first token;
// out has its part of the first row, ldo between rows. keep, if not nil, gets the T x T weights.
func (h *heads) attend(out []float32, ldo, rows int, q, k, v []float32, keep []float32) {
	floats, bytes := h.ws.floats.mark(), h.ws.bytes.mark()
	defer h.ws.floats.release(floats)
	defer h.ws.bytes.release(bytes)
	t := h.tokens
	var keys keyMatrix
	scale := keys.set(h, k)
	var values valueMatrix
	values.set(h, v)
	wide := scoresStride(h.mostVisible(keys.panelWidth()))
	block := h.block()
	scores := h.ws.floats.take(block * wide)
	sums := h.ws.floats.take(block)
	var average []float32 // of the values, once a query needs it

	for i := 0; i < rows; i += block {
		n := min(block, rows-i)
		first, last := h.visible(i, n, &keys)
		keys.scores(scores, wide, q[i*h.ld:], h.ld, n, first, last)
		if h.relative != nil {
			h.relative.add(scores, wide, q[i*h.ld:], h.ld, i, n)
		}
		for r := 0; h.local && r < n; r++ {
			h.hideWindow(scores[r*wide:][:last-first], i+r, first)
		}
		values.blend(out[i*ldo:], ldo, n, scores, wide, scale, sums, first, last)
		if keep != nil {
			values.weights(scores, wide, n, last-first, sums)
			for r := range n {
				copy(keep[(i+r)*t+first:], scores[r*wide:][:last-first])
			}
		}
		for r := range n {
			if h.blind(i + r) {
				average = h.average(average, v)
				copy(out[(i+r)*ldo:][:h.size], average)
				if keep != nil {
					fill(keep[(i+r)*t:][:t], 1/float32(t))
				}
			}
		}
	}
}

// keyMatrix is the keys of one head, HS x T, in the precision of the scores.
type keyMatrix struct {
	matrix kernel.Packed
	bytes  kernel.PackedInt8 // in place of matrix, when the scores are int8
	int8   bool
	q      []uint8 // a block of queries
	scales []float32
}

// set packs the keys, with the mask as the bias, and returns the scale of the scores.
func (m *keyMatrix) set(h *heads, k []float32) (scale float32) {
	t := h.tokens
	if !h.int8 {
		m.matrix.Grow(h.ws.floats.take(kernel.PackedLen(t, h.size)), t, h.size)
		m.matrix.SetTransposed(k, h.ld)
		m.matrix.SetBias(nil)
		return h.hide(m.matrix.Bias())
	}
	deep := kernel.QuantizedLen(h.size)
	m.int8 = true
	m.bytes.Grow(h.ws.floats.take(kernel.PackedInt8Len(t, h.size)), t, h.size)
	mark := h.ws.bytes.mark()
	m.bytes.SetTransposed(k, h.ld, h.ws.bytes.take(t*deep))
	h.ws.bytes.release(mark)
	m.q, m.scales = h.ws.bytes.take(mostQueries*deep), h.ws.floats.take(mostQueries)
	return h.hide(m.bytes.Bias())
}

// scores computes those of n queries (n x HS, ldq between rows) against the keys from first to last.
func (m *keyMatrix) scores(scores []float32, ld int, q []float32, ldq, n, first, last int) {
	if !m.int8 {
		kernel.MatMulPart(scores, ld, q, ldq, n, &m.matrix, first, last, 0, m.matrix.K)
		return
	}
	kernel.Quantize(m.q, m.scales, q, ldq, n, m.bytes.K)
	kernel.MatMulInt8(scores, ld, m.q, m.scales, n, &m.bytes, first, last)
}

func (m *keyMatrix) panelWidth() int {
	if !m.int8 {
		return m.matrix.PanelWidth()
	}
	return m.bytes.PanelWidth()
}

func (m *keyMatrix) panelStart(j int) int {
	if !m.int8 {
		return m.matrix.PanelStart(j)
	}
	return m.bytes.PanelStart(j)
}

// valueMatrix is the values of one head, T x HS, in the precision of the blend.
type valueMatrix struct {
	matrix   kernel.Packed
	bytes    kernel.PackedInt8 // in place of matrix, when the blend is int8
	int8     bool
	q        []uint8 // weights of a block of queries, T each
	inverses []float32
}

// set packs the values.
func (m *valueMatrix) set(h *heads, v []float32) {
	t := h.tokens
	if m.int8 = h.int8 && !h.local && t <= mostByteKeys; !m.int8 {
		m.matrix.Grow(h.ws.floats.take(kernel.PackedLen(h.size, t)), h.size, t)
		m.matrix.SetRows(v, h.ld)
		m.matrix.SetBias(nil)
		return
	}
	deep := kernel.QuantizedLen(t)
	m.bytes.Grow(h.ws.floats.take(kernel.PackedInt8Len(h.size, t)), h.size, t)
	floats, bytes := h.ws.floats.mark(), h.ws.bytes.mark()
	m.bytes.SetRows(v, h.ld, h.ws.floats.take(h.size*kernel.RowsLen(t)), h.ws.bytes.take(h.size*deep))
	h.ws.floats.release(floats)
	h.ws.bytes.release(bytes)
	m.q, m.inverses = h.ws.bytes.take(mostQueries*deep), h.ws.floats.take(mostQueries)
}

// blend sets out (n x HS) to softmax(scale * scores) V over the keys from first to last. The division comes at
// the end: a head has fewer channels than the message has keys. Of the scores it leaves what weights needs.
func (m *valueMatrix) blend(out []float32, ldo, n int, scores []float32, wide int, scale float32, sums []float32, first, last int) {
	keys := last - first
	for r := 0; r < n; r += queryBlock { // assembly runs to its end: short calls let others in
		rows := min(queryBlock, n-r)
		if m.int8 {
			deep := kernel.QuantizedLen(keys)
			kernel.ExpBytes(m.q[r*deep:], deep, scores[r*wide:], wide, rows, keys, scale, sums[r:])
		} else {
			kernel.ExpWeights(scores[r*wide:], wide, rows, keys, scale, sums[r:])
		}
	}
	if m.int8 {
		for r, sum := range sums[:n] {
			m.inverses[r] = 1 / sum
		}
		kernel.MatMulInt8(out, ldo, m.q, m.inverses, n, &m.bytes, 0, m.bytes.N)
		return
	}
	step := keys
	if step > manyKeys {
		step = keyBlock
	}
	for key := first; key < last; key += step {
		end := min(key+step, last)
		if key == first {
			kernel.MatMulPart(out, ldo, scores, wide, n, &m.matrix, 0, m.matrix.N, key, end)
		} else {
			kernel.AddMatMulPart(out, ldo, scores[key-first:], wide, n, &m.matrix, 0, m.matrix.N, key, end)
		}
	}
	kernel.DivideRows(out, ldo, n, m.matrix.N, sums)
}

// weights turns what blend left into the weights that it used, n rows of keys numbers.
func (m *valueMatrix) weights(scores []float32, wide, n, keys int, sums []float32) {
	for r := 0; m.int8 && r < n; r++ {
		for j, w := range m.q[r*kernel.QuantizedLen(keys):][:keys] {
			scores[r*wide+j] = float32(w)
		}
	}
	kernel.DivideRows(scores, wide, n, keys, sums)
}

// blind says whether the query sees nothing while others do. Encoders mask by adding a large negative
// number to the scores; where it is added to all of them, the weights come out equal.
func (h *heads) blind(query int) bool {
	switch {
	case h.mask == nil:
		return false
	case h.pairs && h.mask[query] == 0:
		return true
	case !h.local:
		return false
	}
	for _, m := range h.mask[max(0, query-h.window):min(h.tokens, query+h.window+1)] {
		if m != 0 {
			return false
		}
	}
	return true
}

// average is the plain mean of all values (size long), computed once.
func (h *heads) average(known, v []float32) []float32 {
	if known != nil {
		return known
	}
	known = h.ws.floats.take(h.size)
	clear(known)
	for j := range h.tokens {
		kernel.Add(known, v[j*h.ld:][:h.size])
	}
	kernel.Scale(known, 1/float32(h.tokens))
	return known
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
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
func (h *heads) visible(i, n int, keys *keyMatrix) (first, last int) {
	if !h.local {
		return 0, h.tokens
	}
	return keys.panelStart(max(0, i-h.window)), min(h.tokens, i+n+h.window)
}

// mostVisible is the widest range that visible gives.
func (h *heads) mostVisible(panel int) int {
	if !h.local {
		return h.tokens
	}
	return min(h.tokens, panel-1+queryBlock+2*h.window)
}

// hideWindow hides the keys that are too far from the query.
func (h *heads) hideWindow(row []float32, query, first int) {
	if !h.local {
		return
	}
	hidden := float32(math.Inf(-1))
	near := min(max(0, query-h.window-first), len(row))
	far := min(max(0, query+h.window+1-first), len(row))
	fill(row[:near], hidden)
	fill(row[far:], hidden)
}
