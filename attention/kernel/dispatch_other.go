//go:build !amd64 || purego

package kernel

func processorVariants() []*variant { return nil }

func (v *variant) panel(c []float32, ldc, columns int, a []float32, lda, rows, k int, b []float32, width int, init []float32, _ int) {
	panelGeneric(c, ldc, columns, a, lda, rows, k, b, width, init)
}

func (v *variant) transpose(dst []float32, ldd int, src []float32, lds int) {
	transposeGeneric(dst, ldd, src, lds, v.lanes)
}

func (v *variant) exp(x []float32) { expGeneric(x) }

func (v *variant) expWeights(x []float32, ld, rows, n int, scale float32, sums []float32) {
	expWeightsGeneric(x, ld, rows, n, scale, sums)
}

func (v *variant) divideRows(x []float32, ld, rows, n int, by []float32) {
	divideRowsGeneric(x, ld, rows, n, by)
}

func (v *variant) scale(x []float32, factor float32) { scaleGeneric(x, factor) }

func (v *variant) gelu(x []float32) { geluGeneric(x) }

func (v *variant) geluTanh(x []float32) { geluTanhGeneric(x) }

func (v *variant) norm(dst, x, residual, gain, bias []float32, eps float32) {
	normGeneric(dst, x, residual, gain, bias, eps)
}

func (v *variant) add(dst, x []float32) { addGeneric(dst, x) }

func (v *variant) axpy(dst []float32, factor float32, x []float32) { axpyGeneric(dst, factor, x) }

func (v *variant) dot(x, y []float32) float32 { return dotGeneric(x, y) }

func (v *variant) peak(n int) float64 { return peakGeneric(n) }

func (v *variant) panelInt8(c []float32, ldc, columns int, q []uint8, scales []float32, rows, deep int, b []int8, width int, start []int32, scale, bias []float32) {
	panelInt8Generic(c, ldc, columns, q, scales, rows, deep, b, width, start, scale, bias)
}

func (v *variant) quantize(q []uint8, x []float32) (scale float32) { return quantizeGeneric(q, x) }

func (v *variant) quantizeSigned(q []int8, x []float32, sum *int32) (scale float32) {
	return quantizeSignedGeneric(q, x, sum)
}

func (v *variant) expBytes(q []uint8, ldq int, x []float32, ld, rows, n int, scale float32, sums []float32) {
	expWeightsGeneric(x, ld, rows, n, scale, sums)
	expBytesGeneric(q, ldq, x, ld, rows, n, sums)
}

func (v *variant) geluBack(dy, x []float32) { geluBackGeneric(dy, x) }

func (v *variant) normKept(y, hat, x, gain, bias []float32, eps float32) (inverse float32) {
	return normKeptGeneric(y, hat, x, gain, bias, eps)
}

func (v *variant) normBack(dx, dy, hat, gain, dgain, dbias []float32, inverse float32) {
	normBackGeneric(dx, dy, hat, gain, dgain, dbias, inverse)
}

func (v *variant) softmaxBack(d, p []float32, scale float32) { softmaxBackGeneric(d, p, scale) }

func (v *variant) adamW(w, g, m, second []float32, k *AdamW) { adamWGeneric(w, g, m, second, k) }
