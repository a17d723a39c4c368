package kernel

// Exp sets x[i] = exp(x[i]), within 2 units in the last place; NaN stays NaN.
func Exp(x []float32) { active.Load().exp(x) }

// ExpWeights sets x[i] = exp(scale * (x[i] - max x)) and returns the sum: a softmax that is not yet
// divided. Dividing the blended values instead of the weights saves a pass over the scores. scale
// must be positive or 0. For x empty the sum is 0. NaN, +Inf or nothing but -Inf in x make the sum
// NaN.
func ExpWeights(x []float32, scale float32) (sum float32) {
	if len(x) == 0 {
		return 0
	}
	return active.Load().expWeights(x, scale)
}

// Softmax sets x to the softmax of scale * x. -Inf gets weight 0; a row with a NaN or +Inf, or with
// nothing but -Inf, becomes NaN altogether.
func Softmax(x []float32, scale float32) {
	if len(x) == 0 {
		return
	}
	v := active.Load()
	v.scale(x, 1/v.expWeights(x, scale))
}

// Scale sets x[i] *= factor.
func Scale(x []float32, factor float32) { active.Load().scale(x, factor) }

// GELU sets x[i] = x[i] * P(N(0,1) <= x[i]), the exact form with erf (Hendrycks and Gimpel 2016).
// GELU(-Inf) is -0 or NaN.
func GELU(x []float32) { active.Load().gelu(x) }

// GELUTanh is the tanh approximation of GELU, which some models were trained with:
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
func GELUTanh(x []float32) { active.Load().geluTanh(x) }

// Tanh sets x[i] = tanh(x[i]).
func Tanh(x []float32) { active.Load().tanh(x) }

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
	n := len(x)
	if n == 0 {
		return
	}
	if bias != nil {
		bias = bias[:n]
	}
	active.Load().norm(dst[:n], x, gain[:n], bias, eps)
}

// Add sets dst[i] += x[i].
func Add(dst, x []float32) { active.Load().add(dst[:len(x)], x) }

// Axpy sets dst[i] += factor * x[i].
func Axpy(dst []float32, factor float32, x []float32) {
	active.Load().axpy(dst[:len(x)], factor, x)
}

// Dot is the sum of x[i] * y[i].
func Dot(x, y []float32) float32 { return active.Load().dot(x, y[:len(x)]) }
