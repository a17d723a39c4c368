package kernel

import "math"

// Exp sets x[i] = exp(x[i]), within 2 units in the last place; NaN stays NaN.
func Exp(x []float32) {
	if len(x) > 0 {
		active.Load().exp(x)
	}
}

// ExpWeights sets each of rows rows of n numbers, ld apart, to exp(scale * (x - max of the row)) and
// sums[i] to the sum of row i: a softmax that is not yet divided. Dividing the blended values instead
// of the weights saves a pass over the scores. n is positive, scale positive or 0. NaN, +Inf or
// nothing but -Inf in a row make its sum NaN.
func ExpWeights(x []float32, ld, rows, n int, scale float32, sums []float32) {
	if rows > 0 {
		_, _ = x[(rows-1)*ld+n-1], sums[rows-1]
		active.Load().expWeights(x, ld, rows, n, scale, sums)
	}
}

// DivideRows sets x[i][j] /= by[i] for rows rows of n numbers, ld apart: what ExpWeights leaves to do.
func DivideRows(x []float32, ld, rows, n int, by []float32) {
	if rows > 0 && n > 0 {
		_, _ = x[(rows-1)*ld+n-1], by[rows-1]
		active.Load().divideRows(x, ld, rows, n, by)
	}
}

// Softmax sets x to the softmax of scale * x. -Inf gets weight 0; a row with a NaN or +Inf, or with
// nothing but -Inf, becomes NaN altogether.
func Softmax(x []float32, scale float32) {
	if len(x) == 0 {
		return
	}
	var sum [1]float32
	v := active.Load()
	v.expWeights(x, len(x), 1, len(x), scale, sum[:])
	v.scale(x, 1/sum[0])
}

// Scale sets x[i] *= factor.
func Scale(x []float32, factor float32) {
	if len(x) > 0 {
		active.Load().scale(x, factor)
	}
}

// GELU sets x[i] = x[i] * P(N(0,1) <= x[i]), the exact form with erf (Hendrycks and Gimpel 2016),
// within 2e-7 |x| and, where the result is no denormal, within 1e-5 of its value. GELU(-Inf) is 0.
func GELU(x []float32) {
	if len(x) > 0 {
		active.Load().gelu(x)
	}
}

// GELUTanh is the tanh approximation of GELU, which some models were trained with:
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
func GELUTanh(x []float32) {
	if len(x) > 0 {
		active.Load().geluTanh(x)
	}
}

// Tanh sets x[i] = tanh(x[i]). It is not fast: encoders need it for one row a message.
func Tanh(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Tanh(float64(v)))
	}
}

// ReLU sets x[i] = max(x[i], 0); NaN stays NaN.
func ReLU(x []float32) {
	for i, v := range x {
		if v < 0 {
			x[i] = 0
		}
	}
}

// LayerNorm sets dst = gain * (x - mean) / sqrt(variance + eps) + bias over one row (Ba et al. 2016),
// the variance being the mean of squared deviations. bias may be nil. dst may be x.
func LayerNorm(dst, x, gain, bias []float32, eps float32) {
	AddLayerNorm(dst, x, nil, gain, bias, eps)
}

// AddLayerNorm is the layer norm of x + residual; residual may be nil. dst may be x.
func AddLayerNorm(dst, x, residual, gain, bias []float32, eps float32) {
	n := len(x)
	if n == 0 {
		return
	}
	if residual != nil {
		residual = residual[:n]
	}
	if bias != nil {
		bias = bias[:n]
	}
	active.Load().norm(dst[:n], x, residual, gain[:n], bias, eps)
}

// Add sets dst[i] += x[i].
func Add(dst, x []float32) {
	if len(x) > 0 {
		active.Load().add(dst[:len(x)], x)
	}
}

// Axpy sets dst[i] += factor * x[i].
func Axpy(dst []float32, factor float32, x []float32) {
	if len(x) > 0 {
		active.Load().axpy(dst[:len(x)], factor, x)
	}
}

// Dot is the sum of x[i] * y[i].
func Dot(x, y []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return active.Load().dot(x, y[:len(x)])
}

// PeakLoop keeps the core at multiply-adds in registers and returns how many floating point operations
// that was: n steps of a few dozen vector instructions. Timed, it is the speed nothing can exceed.
func PeakLoop(n int) (flops float64) { return active.Load().peak(n) }
