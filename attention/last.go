package attention

import (
	"math"

	"misroute/attention/kernel"
)

// lastAttention is the attention of the last layer for its first token, which is all the classifier
// reads. With one query nobody needs the keys and values of all tokens. The projections move to the
// other side of the sums, where there is one row a head instead of one a token:
//
//	q·(Wk x[j] + bk)          = (Wkᵀ q)·x[j] + q·bk     the same q·bk for every key, lost in softmax
//	sum over j of w[j] (Wv x[j] + bv) = Wv (sum of w[j] x[j]) + bv     since the weights sum to 1
//
// In exact arithmetic that is the same number, for 1/T of the work. keyBack is Wk as a matrix that
// takes queries back: row i belongs to channel i of the keys. x is T x C, context gets 1 x C.
func (m *Encoder) lastAttention(context, x []float32, t int, l *encoderLayer, mask []uint8, ws *Workspace) {
	c, nh := m.cfg.Hidden, m.cfg.Heads
	size := c / nh
	mark := ws.floats.mark()
	defer ws.floats.release(mark)

	q := ws.floats.take(c)
	l.qkv.columns(q, c, x, c, 1, 0, c, ws)
	asked := ws.floats.take(nh * c) // NH x C: what each head looks for, among the states
	for h := range nh {
		kernel.MatMulPart(asked[h*c:], c, q[h*size:], size, 1, m.keyBack, 0, c, h*size, (h+1)*size)
	}

	var lookup kernel.Packed
	lookup.Grow(ws.floats.take(kernel.PackedLen(nh, c)), nh, c)
	lookup.SetTransposed(asked, c)
	lookup.SetBias(nil)
	byToken := ws.floats.take(t * nh)
	kernel.MatMul(byToken, nh, x, c, t, &lookup)
	scores, sums := ws.floats.take(nh*t), ws.floats.take(nh)
	for j := range t {
		for h, s := range byToken[j*nh:][:nh] {
			scores[h*t+j] = s
		}
	}
	scale := hideKeys(scores, t, nh, mask, float32(1/math.Sqrt(float64(size))))
	kernel.ExpWeights(scores, t, nh, t, scale, sums)

	var states kernel.Packed
	states.Grow(ws.floats.take(kernel.PackedLen(c, t)), c, t)
	states.SetRows(x, c)
	states.SetBias(nil)
	blend := ws.floats.take(nh * c) // NH x C: each head's mean of the states
	kernel.MatMul(blend, c, scores, t, nh, &states)
	kernel.DivideRows(blend, c, nh, c, sums)

	// Each head reads its own channels of the values; the product has all of them for every head, which
	// is still nothing beside T rows.
	from := l.qkv.panelStart(2 * c)
	wide := 3*c - from
	values := ws.floats.take(nh * wide)
	l.qkv.columns(values, wide, blend, c, nh, from, 3*c, ws)
	for h := range nh {
		copy(context[h*size:][:size], values[h*wide+2*c-from+h*size:])
	}
}

// hideKeys sets the scores (rows x T) of hidden keys to -Inf and returns the scale, which is 0 when
// every key is hidden: all count the same then.
func hideKeys(scores []float32, t, rows int, mask []uint8, scale float32) float32 {
	if mask == nil {
		return scale
	}
	if shown(mask, t) == 0 {
		return 0
	}
	for j, m := range mask {
		if m != 0 {
			continue
		}
		for h := range rows {
			scores[h*t+j] = float32(math.Inf(-1))
		}
	}
	return scale
}

// lastFloats is the scratch that lastAttention takes.
func (m *Encoder) lastFloats(t int) int {
	c, nh := m.cfg.Hidden, m.cfg.Heads
	return c + 2*nh*c + kernel.PackedLen(nh, c) + 2*t*nh + nh + kernel.PackedLen(c, t) + nh*(c+64) + 10*16
}
