package kernel

import "math"

// generic is the definition of every primitive. Sums run in index order.
var generic = variant{
	name:  "generic",
	lanes: 4, vectors: 4,
	panel:      panelGeneric,
	exp:        expGeneric,
	expWeights: expWeightsGeneric,
	scale:      scaleGeneric,
	gelu:       geluGeneric,
	geluTanh:   geluTanhGeneric,
	tanh:       tanhGeneric,
	norm:       normGeneric,
	add:        addGeneric,
	axpy:       axpyGeneric,
	dot:        dotGeneric,
}

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

func expWeightsGeneric(x []float32, scale float32) (sum float32) {
	highest := float32(math.Inf(-1))
	for _, v := range x {
		highest = max(highest, v)
	}
	for i, v := range x {
		x[i] = float32(math.Exp(float64((v - highest) * scale)))
		sum += x[i]
	}
	return sum
}

func scaleGeneric(x []float32, factor float32) {
	for i := range x {
		x[i] *= factor
	}
}

func geluGeneric(x []float32) {
	for i, v := range x {
		x[i] = float32(0.5 * float64(v) * math.Erfc(-float64(v)/math.Sqrt2))
	}
}

func geluTanhGeneric(x []float32) {
	for i, v := range x {
		u := float64(v)
		x[i] = float32(0.5 * u * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(u+0.044715*u*u*u))))
	}
}

func tanhGeneric(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Tanh(float64(v)))
	}
}

func normGeneric(dst, x, gain, bias []float32, eps float32) {
	mean := 0.0
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	variance := 0.0
	for _, v := range x {
		d := float64(v) - mean
		variance += d * d
	}
	variance /= float64(len(x))
	inverse := 1 / math.Sqrt(variance+float64(eps))
	for i, v := range x {
		y := float32((float64(v)-mean)*inverse) * gain[i]
		if bias != nil {
			y += bias[i]
		}
		dst[i] = y
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
