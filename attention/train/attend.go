package train

import (
	"math"

	"misroute/attention/kernel"
)

// attended is one message's attention as the backward pass needs it. Queries stand in q, keys and
// values side by side in kv; heads lie side by side within each.
type attended struct {
	queries, keys int
	heads, size   int       // NH, HS; C = NH*HS
	q, kv         []float32 // queries x C, keys x 2C
	mask          []uint8   // of keys, nil: all visible
	raw           bool      // no scale: raw dot products
	weights       []float32 // NH x queries x keys: after softmax, before dropout
	blended       []float32 // the same after dropout; the very slice without
	drop          dropped
}

// head views of one matrix: columns of head h.
func headOf(data []float32, rows, width, offset, h, size int) kernel.View {
	return kernel.View{Data: data[offset+h*size:], Rows: rows, Cols: size, RowStride: width, ColStride: 1}
}

func (a *attended) c() int { return a.heads * a.size }

func (a *attended) scale() float32 {
	if a.raw {
		return 1
	}
	return float32(1 / math.Sqrt(float64(a.size)))
}

func (a *attended) query(data []float32, h int) kernel.View {
	return headOf(data, a.queries, a.c(), 0, h, a.size)
}
func (a *attended) key(data []float32, h int) kernel.View {
	return headOf(data, a.keys, 2*a.c(), 0, h, a.size)
}
func (a *attended) value(data []float32, h int) kernel.View {
	return headOf(data, a.keys, 2*a.c(), a.c(), h, a.size)
}

// attend computes softmax(q kᵀ / sqrt(HS)) v per head into context (queries x C). A hidden key has
// weight 0; when all are hidden, all count the same.
func (t *tape) attend(context []float32, a *attended) {
	cells := a.queries * a.keys
	a.weights = t.take(a.heads * cells)
	scale := a.scale()
	visible := a.mask == nil
	for _, m := range a.mask {
		visible = visible || m != 0
	}
	for h := range a.heads {
		scores := a.weights[h*cells:][:cells]
		kernel.Gemm(kernel.RowMajor(scores, a.queries, a.keys), a.query(a.q, h), a.key(a.kv, h).T(), false, &t.gemm)
		for i := range a.queries {
			row := scores[i*a.keys:][:a.keys]
			switch {
			case !visible:
				clear(row)
			case a.mask != nil:
				for j, m := range a.mask {
					if m == 0 {
						row[j] = float32(math.Inf(-1))
					}
				}
			}
			kernel.Softmax(row, scale)
		}
	}
	a.blended = a.weights
	if t.dropout > 0 {
		a.blended = t.take(len(a.weights))
		copy(a.blended, a.weights)
		a.drop = t.drop(a.blended)
	}
	for h := range a.heads {
		kernel.Gemm(a.query(context, h), kernel.RowMajor(a.blended[h*cells:][:cells], a.queries, a.keys), a.value(a.kv, h), false, &t.gemm)
	}
}

// attendBack sets dq and dkv, which are laid out like q and kv. With P the weights and dP the
// derivative in them, the scores' derivative is P * (dP - row sum of dP*P), times the scale.
func (t *tape) attendBack(dq, dkv, dcontext []float32, a *attended) {
	cells := a.queries * a.keys
	scale := a.scale()
	if a.mask != nil && !anyOf(a.mask) {
		scale = 0 // the scores were not looked at
	}
	d := t.take(a.heads * cells)
	for h := range a.heads {
		kernel.Gemm(kernel.RowMajor(d[h*cells:][:cells], a.queries, a.keys), a.query(dcontext, h), a.value(a.kv, h).T(), false, &t.gemm)
		kernel.Gemm(a.value(dkv, h), kernel.RowMajor(a.blended[h*cells:][:cells], a.queries, a.keys).T(), a.query(dcontext, h), false, &t.gemm)
	}
	a.drop.back(d)
	for h := range a.heads {
		for i := range a.queries {
			p, row := a.weights[h*cells+i*a.keys:][:a.keys], d[h*cells+i*a.keys:][:a.keys]
			kernel.SoftmaxBack(row, p, scale)
		}
		scores := kernel.RowMajor(d[h*cells:][:cells], a.queries, a.keys)
		kernel.Gemm(a.query(dq, h), scores, a.key(a.kv, h), false, &t.gemm)
		kernel.Gemm(a.key(dkv, h), scores.T(), a.query(a.q, h), false, &t.gemm)
	}
}

func anyOf(mask []uint8) bool {
	for _, m := range mask {
		if m != 0 {
			return true
		}
	}
	return false
}
