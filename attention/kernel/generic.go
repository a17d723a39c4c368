package kernel

import (
	"math"
	"slices"
)

// The definition of every primitive. Sums run in index order.

// panelGeneric walks four columns at a time, whose sums stay in registers.
func panelGeneric(c []float32, ldc, columns int, a []float32, lda, rows, k int, b []float32, width int, init []float32) {
	for i := range rows {
		row, out := a[min(i*lda, len(a)):][:k], c[i*ldc:][:columns]
		if init != nil {
			copy(out, init)
		}
		j := 0
		for ; j+4 <= columns; j += 4 {
			s0, s1, s2, s3 := out[j], out[j+1], out[j+2], out[j+3]
			for p, x := range row {
				w := b[p*width+j:][:4]
				s0 += x * w[0]
				s1 += x * w[1]
				s2 += x * w[2]
				s3 += x * w[3]
			}
			out[j], out[j+1], out[j+2], out[j+3] = s0, s1, s2, s3
		}
		for ; j < columns; j++ {
			for p, x := range row {
				out[j] += x * b[p*width+j]
			}
		}
	}
}

func expGeneric(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v)))
	}
}

func expWeightsGeneric(x []float32, ld, rows, n int, scale float32, sums []float32) {
	for i := range rows {
		row, sum := x[i*ld:][:n], float32(0)
		highest := slices.Max(row)
		for j, v := range row {
			row[j] = float32(math.Exp(float64((v - highest) * scale)))
			sum += row[j]
		}
		sums[i] = sum
	}
}

func divideRowsGeneric(x []float32, ld, rows, n int, by []float32) {
	for i := range rows {
		scaleGeneric(x[i*ld:][:n], 1/by[i])
	}
}

func transposeGeneric(dst []float32, ldd int, src []float32, lds, n int) {
	for i := range n {
		for j, v := range src[i*lds:][:n] {
			dst[j*ldd+i] = v
		}
	}
}

func scaleGeneric(x []float32, factor float32) {
	for i := range x {
		x[i] *= factor
	}
}

func geluGeneric(x []float32) {
	for i, v := range x {
		if math.IsInf(float64(v), -1) {
			x[i] = 0 // not -Inf times 0
			continue
		}
		x[i] = float32(0.5 * float64(v) * math.Erfc(-float64(v)/math.Sqrt2))
	}
}

func geluTanhGeneric(x []float32) {
	for i, v := range x {
		u := float64(v)
		x[i] = float32(0.5 * u * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(u+0.044715*u*u*u))))
	}
}

func normGeneric(dst, x, residual, gain, bias []float32, eps float32) {
	mean := 0.0
	for i, v := range x {
		if residual != nil {
			v += residual[i]
		}
		dst[i] = v
		mean += float64(v)
	}
	mean /= float64(len(x))
	variance := 0.0
	for _, v := range dst {
		d := float64(v) - mean
		variance += d * d
	}
	variance /= float64(len(x))
	inverse := 1 / math.Sqrt(variance+float64(eps))
	for i, v := range dst {
		dst[i] = float32((float64(v)-mean)*inverse) * gain[i]
		if bias != nil {
			dst[i] += bias[i]
		}
	}
}

func addGeneric(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

func axpyGeneric(dst []float32, factor float32, x []float32) {
	for i, v := range x {
		dst[i] += factor * v
	}
}

func dotGeneric(x, y []float32) (sum float32) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// peakGeneric does n times eight multiplications and additions that do not wait for each other.
func peakGeneric(n int) (flops float64) {
	var s [8]float32
	x := float32(n)
	for range n {
		s[0] += x * x
		s[1] += x * x
		s[2] += x * x
		s[3] += x * x
		s[4] += x * x
		s[5] += x * x
		s[6] += x * x
		s[7] += x * x
	}
	if s[0] < 0 {
		return 0 // keeps the sums alive
	}
	return 16 * float64(n)
}

func geluBackGeneric(dy, x []float32) {
	for i, v := range x {
		v := float64(v)
		dy[i] *= float32(0.5*math.Erfc(-v/math.Sqrt2) + v*math.Exp(-0.5*v*v)/math.Sqrt(2*math.Pi))
	}
}

func normKeptGeneric(y, hat, x, gain, bias []float32, eps float32) (inverse float32) {
	n := float64(len(x))
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	mean := float32(sum / n)
	sum = 0
	for j, v := range x {
		d := v - mean
		hat[j] = d
		sum += float64(d * d)
	}
	inverse = float32(1 / math.Sqrt(sum/n+float64(eps)))
	for j, d := range hat {
		hat[j] = d * inverse
		y[j] = hat[j]*gain[j] + bias[j]
	}
	return inverse
}

func normBackGeneric(dx, dy, hat, gain, dgain, dbias []float32, inverse float32) {
	var sum, along float32
	for j, v := range dy {
		dgain[j] += v * hat[j]
		dbias[j] += v
		u := v * gain[j]
		sum += u
		along += u * hat[j]
	}
	sum /= float32(len(dy))
	along /= float32(len(dy))
	for j, v := range dy {
		dx[j] += inverse * (v*gain[j] - sum - hat[j]*along)
	}
}

func softmaxBackGeneric(d, p []float32, scale float32) {
	along := dotGeneric(d, p)
	for i, v := range d {
		d[i] = p[i] * (v - along) * scale
	}
}

// adamWGeneric rounds every product: the conversions keep a compiler from fusing it with a sum.
func adamWGeneric(w, g, m, v []float32, k *AdamW) {
	for i, d := range g {
		d *= k.Factor
		m[i] = float32(k.Beta1*m[i]) + float32(k.Left1*d)
		v[i] = float32(k.Beta2*v[i]) + float32(k.Left2*d*d)
		root := float32(math.Sqrt(float64(v[i])))
		w[i] = float32(w[i]*k.Shrink) - k.Step*m[i]/(float32(root*k.Scale)+k.Epsilon)
	}
}
