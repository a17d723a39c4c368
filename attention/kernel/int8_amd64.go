//go:build amd64 && !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// haveVNNI says whether the avx512 variant may multiply bytes. The others use the generic form: the
// same numbers, many times slower.
var haveVNNI = cpu.X86.HasAVX512VNNI

func (v *variant) panelInt8(c []float32, ldc, columns int, q []uint8, scales []float32, rows, deep int, b []int8, width int, start []int32, scale, bias []float32) {
	if v.kind != isAVX512 || !haveVNNI || deep == 0 {
		panelInt8Generic(c, ldc, columns, q, scales, rows, deep, b, width, start, scale, bias)
		return
	}
	ahead := uintptr(unsafe.Pointer(&b[0])) + uintptr(deep*width)
	var tile [8 * 48]float32
	for i := 0; i < rows; {
		n := v.tileRows(rows-i, width/v.lanes)
		to, ld := &tile[0], width
		if columns == width {
			to, ld = &c[i*ldc], ldc
		}
		tileInt8(n, width/v.lanes, deep/4, &q[i*deep], deep, &b[0], &start[0], &scales[i], &scale[0], &bias[0], to, ld, ahead)
		for r := 0; columns < width && r < n; r++ {
			copy(c[(i+r)*ldc:][:columns], tile[r*width:])
		}
		ahead += uintptr(deep * n)
		i += n
	}
}

func tileInt8(rows, vectors, fours int, a *uint8, lda int, b *int8, init *int32, rowScale, columnScale, bias, c *float32, ldc int, ahead uintptr) {
	switch rows {
	case 1:
		tileInt8x1VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 2:
		tileInt8x2VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 3:
		tileInt8x3VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 4:
		tileInt8x4VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 5:
		tileInt8x5VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 6:
		tileInt8x6VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 7:
		tileInt8x7VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	case 8:
		tileInt8x8VNNI(vectors, fours, a, lda, b, init, rowScale, columnScale, bias, c, ldc, ahead)
	}
}

func (v *variant) quantize(q []uint8, x []float32) (scale float32) {
	if v.kind != isAVX512 || !haveVNNI || len(x) == 0 {
		return quantizeGeneric(q, x)
	}
	return quantizeVNNI(len(x), &x[0], &q[0])
}

func (v *variant) quantizeSigned(q []int8, x []float32, sum *int32) (scale float32) {
	if v.kind != isAVX512 || !haveVNNI || len(x) == 0 {
		return quantizeSignedGeneric(q, x, sum)
	}
	return quantizeSignedVNNI(len(x), &x[0], &q[0], sum)
}

func (v *variant) expBytes(q []uint8, ldq int, x []float32, ld, rows, n int, scale float32, sums []float32) {
	if v.kind != isAVX512 || !haveVNNI {
		v.expWeights(x, ld, rows, n, scale, sums)
		expBytesGeneric(q, ldq, x, ld, rows, n, sums)
		return
	}
	expBytesVNNI(rows, n, &x[0], ld, scale, &q[0], ldq, &sums[0])
}
