package train

import (
	"math"

	"misroute/attention"
	"misroute/attention/kernel"
)

// The layers, each a forward and a backward function. x is the input and y the output, dx and dy the
// derivatives of the loss in them; R is rows (tokens of all messages of the batch, one after the
// other, never padded). Backward functions add to dx and to the gradients of the parameters.

// linear computes y = x Wᵀ + b: x is R x In, y is R x Out.
func (t *tape) linear(x []float32, l attention.Linear) (y []float32) {
	rows := len(x) / l.In
	y = t.take(rows * l.Out)
	kernel.GemmBias(kernel.RowMajor(y, rows, l.Out), kernel.RowMajor(x, rows, l.In),
		kernel.RowMajor(l.Weight, l.Out, l.In).T(), l.Bias, &t.gemm)
	return y
}

// linearBack adds dy W to dx, dyᵀ x to the weight's gradient and the column sums of dy to the bias's.
func (t *tape) linearBack(dx, dy, x []float32, l, g attention.Linear) {
	t.linearBackInput(dx, dy, l, true)
	t.linearBackWeight(dy, x, l, g)
}

// linearBackTo is linearBack for the only use of x: dx starts here.
func (t *tape) linearBackTo(dy, x []float32, l, g attention.Linear) (dx []float32) {
	dx = t.take(len(x))
	t.linearBackInput(dx, dy, l, false)
	t.linearBackWeight(dy, x, l, g)
	return dx
}

func (t *tape) linearBackInput(dx, dy []float32, l attention.Linear, accumulate bool) {
	rows := len(dx) / l.In
	kernel.Gemm(kernel.RowMajor(dx, rows, l.In), kernel.RowMajor(dy, rows, l.Out), kernel.RowMajor(l.Weight, l.Out, l.In), accumulate, &t.gemm)
}

func (t *tape) linearBackWeight(dy, x []float32, l, g attention.Linear) {
	rows := len(x) / l.In
	d := kernel.RowMajor(dy, rows, l.Out)
	kernel.Gemm(kernel.RowMajor(g.Weight, l.Out, l.In), d.T(), kernel.RowMajor(x, rows, l.In), true, &t.gemm)
	for i := range rows {
		kernel.Add(g.Bias, dy[i*l.Out:][:l.Out])
	}
}

// normed is what the backward pass of a layer norm needs.
type normed struct {
	hat     []float32 // (x - mean) / deviation, R x C
	inverse []float32 // 1 / deviation, R
}

// layerNorm computes y = gain * hat + bias per row; see kernel.LayerNorm.
func (t *tape) layerNorm(x []float32, n attention.Norm, eps float32) (y []float32, s normed) {
	c := len(n.Gain)
	rows := len(x) / c
	y, s.hat, s.inverse = t.take(len(x)), t.take(len(x)), t.take(rows)
	for i := range rows {
		s.inverse[i] = kernel.LayerNormKept(y[i*c:][:c], s.hat[i*c:][:c], x[i*c:][:c], n.Gain, n.Bias, eps)
	}
	return y, s
}

// layerNormBack adds to dx: with u = gain * dy, inverse * (u - mean u - hat * mean(u hat)).
func (t *tape) layerNormBack(dx, dy []float32, s normed, n, g attention.Norm) {
	c := len(n.Gain)
	for i, inverse := range s.inverse {
		kernel.LayerNormBack(dx[i*c:], dy[i*c:][:c], s.hat[i*c:], n.Gain, g.Gain, g.Bias, inverse)
	}
}

// activation is a function of single numbers with its derivative. The derivative may be told the value,
// which saves computing it again.
type activation struct {
	forward func(x []float32)
	// backward multiplies dy by the derivative at x, in place; y is the value there. scratch is as long.
	backward func(dy, x, y, scratch []float32)
}

// activations by their names in config.json.
var activations = map[string]activation{
	"gelu":              {kernel.GELU, geluBack},
	"gelu_python":       {kernel.GELU, geluBack},
	"gelu_new":          {kernel.GELUTanh, geluTanhBack},
	"gelu_pytorch_tanh": {kernel.GELUTanh, geluTanhBack},
	"gelu_fast":         {kernel.GELUTanh, geluTanhBack},
	"relu":              {kernel.ReLU, reluBack},
	"tanh":              {kernel.Tanh, tanhBack},
}

func geluBack(dy, x, _, _ []float32) { kernel.GELUBack(dy, x) }

// geluTanhBack: y = x (1 + t)/2, t = tanh(u), u = k (x + a x^3); y' = (1+t)/2 + x (1 - t^2) u'/2.
func geluTanhBack(dy, x, _, scratch []float32) {
	const k, a = 0.7978845608028654, 0.044715
	for i, v := range x {
		scratch[i] = k * (v + a*v*v*v)
	}
	kernel.Tanh(scratch)
	for i, v := range x {
		h := scratch[i]
		dy[i] *= 0.5*(1+h) + 0.5*v*(1-h*h)*k*(1+3*a*v*v)
	}
}

func reluBack(dy, x, _, _ []float32) {
	for i, v := range x {
		if v <= 0 {
			dy[i] = 0
		}
	}
}

func tanhBack(dy, _, y, _ []float32) {
	for i, v := range y {
		dy[i] *= 1 - v*v
	}
}

// dropped is which numbers a dropout kept; nil when all.
type dropped struct {
	kept  []uint8
	scale float32
}

// drop sets a share of x to zero and scales the others up, so that the expected value stays (Srivastava
// et al. 2014). The share is a whole number of 256ths.
func (t *tape) drop(x []float32) (d dropped) {
	if t.dropout <= 0 {
		return d
	}
	limit := uint8(min(255, max(1, math.Round(t.dropout*256))))
	d.kept = t.bytes.take(len(x))
	d.scale = 256 / (256 - float32(limit))
	var bits uint64
	for i := range x {
		if i%8 == 0 {
			bits = t.random.Uint64()
		}
		if uint8(bits) < limit {
			d.kept[i], x[i] = 0, 0
		} else {
			d.kept[i] = 1
			x[i] *= d.scale
		}
		bits >>= 8
	}
	return d
}

// back applies the same dropout to a derivative, in place.
func (d dropped) back(dy []float32) {
	for i, k := range d.kept {
		if k == 0 {
			dy[i] = 0
		} else {
			dy[i] *= d.scale
		}
	}
}
