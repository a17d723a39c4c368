package kernel

// What training needs besides: derivatives, and the step of the optimiser.

// GELUBack sets dy[i] *= GELU'(x[i]) = P + x p, with the distribution P and the density p of N(0,1).
func GELUBack(dy, x []float32) {
	if len(dy) > 0 {
		active.Load().geluBack(dy, x[:len(dy)])
	}
}

// LayerNormKept is a layer norm of one row that keeps what its derivative needs: hat becomes
// (x - mean) / deviation, y becomes gain*hat + bias, and 1/deviation is returned. y, hat, gain and bias are
// as long as x; hat may be x.
func LayerNormKept(y, hat, x, gain, bias []float32, eps float32) (inverse float32) {
	n := len(x)
	if n == 0 {
		return 0
	}
	return active.Load().normKept(y[:n], hat[:n], x, gain[:n], bias[:n], eps)
}

// LayerNormBack adds the derivatives of a row that LayerNormKept made: with u = gain * dy,
//
//	dx += inverse * (u - mean u - hat * mean(u hat)),  dgain += dy * hat,  dbias += dy
func LayerNormBack(dx, dy, hat, gain, dgain, dbias []float32, inverse float32) {
	n := len(dy)
	if n == 0 {
		return
	}
	active.Load().normBack(dx[:n], dy, hat[:n], gain[:n], dgain[:n], dbias[:n], inverse)
}

// SoftmaxBack turns the derivative in the weights p = softmax(scale * x) into that in x, in place:
// d[i] = p[i] * (d[i] - sum of d*p) * scale.
func SoftmaxBack(d, p []float32, scale float32) {
	if len(d) > 0 {
		active.Load().softmaxBack(d, p[:len(d)], scale)
	}
}

// AdamW are the numbers of one step of Adam with decoupled weight decay (Loshchilov and Hutter 2019,
// algorithm 2). The assembly knows the order of the fields.
type AdamW struct {
	Factor         float32 // of the gradient
	Beta1, Left1   float32 // and 1 - Beta1
	Beta2, Left2   float32
	Shrink         float32 // of the parameters: 1 - rate * decay
	Step           float32 // rate / (1 - Beta1^t)
	Scale, Epsilon float32 // 1 / sqrt(1 - Beta2^t)
}

// Update takes the step: with d = Factor*g,
//
//	m = Beta1*m + Left1*d,  v = Beta2*v + Left2*d*d,  w = Shrink*w - Step*m / (Scale*sqrt(v) + Epsilon)
//
// All variants round alike. The slices are as long as w.
func (k *AdamW) Update(w, g, m, v []float32) {
	if n := len(w); n > 0 {
		active.Load().adamW(w, g[:n], m[:n], v[:n], k)
	}
}
