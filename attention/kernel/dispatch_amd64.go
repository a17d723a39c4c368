//go:build amd64 && !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	avx512 = variant{name: "avx512", kind: isAVX512, lanes: 16, vectors: 3}
	avx2   = variant{name: "avx2", kind: isAVX2, lanes: 8, vectors: 3}
)

// processorVariants asks the processor, and through it the operating system, what may be used.
func processorVariants() (found []*variant) {
	x := &cpu.X86
	haveAVX2 := x.HasAVX2 && x.HasFMA && x.HasBMI2
	if haveAVX2 && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512BW {
		found = append(found, &avx512)
	}
	if haveAVX2 {
		found = append(found, &avx2)
	}
	return found
}

func (v *variant) panel(c []float32, ldc, columns int, a []float32, lda, rows, k int, b []float32, width int, init []float32, stride int) {
	if v.kind == isGeneric {
		panelGeneric(c, ldc, columns, a, lda, rows, k, b, width, init)
		return
	}
	if k == 0 {
		a, lda, b = zeros[:], 0, zeros[:] // never read, but they must have an address
	}
	if columns < width {
		v.edgePanel(c, ldc, columns, a, lda, rows, k, b, width, init)
		return
	}
	// What the tiles prefetch is the next panel, which follows this one in memory. The address may be
	// past the end; prefetching never faults.
	ahead := uintptr(unsafe.Pointer(&b[0])) + uintptr(4*stride)
	vectors := width / v.lanes
	for i := 0; i < rows; {
		n := v.tileRows(rows-i, vectors)
		count := min(max(1, v.fullTiles(rows-i, vectors)), max(1, longestCall/max(1, k)))
		v.tile(n, count, vectors, k, &a[i*lda], lda, &b[0], first(init), &c[i*ldc], ldc, ahead)
		ahead += uintptr(4 * k * n * count)
		i += n * count
	}
}

// longestCall bounds the steps of one call of assembly, during which nothing else can have the
// goroutine's thread: some ten microseconds.
const longestCall = 3072

var zeros [1]float32

// first is the address of a slice's first element, nil for a nil slice.
func first(x []float32) *float32 {
	if x == nil {
		return nil
	}
	return &x[0]
}

// tileRows is how many of the rows left the next tile takes: as many as fit, but never leaving one or
// two behind, whose few sums would wait for each other.
func (v *variant) tileRows(left, vectors int) int {
	most := v.mostRows(vectors)
	if rest := left % most; (rest == 1 || rest == 2) && left > most && left <= 2*most+1 {
		tiles := (left + most - 1) / most
		return (left + tiles - 1) / tiles
	}
	return min(left, most)
}

// mostRows is how many rows the tallest tile of that many vectors has.
func (v *variant) mostRows(vectors int) int {
	switch {
	case v.kind == isAVX512:
		return 8
	case vectors == 3:
		return 4
	}
	return 6
}

// fullTiles is how many of the tallest tiles come next when that many rows are left.
func (v *variant) fullTiles(left, vectors int) (count int) {
	most := v.mostRows(vectors)
	for ; v.tileRows(left, vectors) == most; left -= most {
		count++
	}
	return count
}

// edgePanel computes a panel that is wider than what is left of C, by way of a small tile.
func (v *variant) edgePanel(c []float32, ldc, columns int, a []float32, lda, rows, k int, b []float32, width int, init []float32) {
	var tile [8 * 48]float32 // of any variant
	for i := 0; i < rows; {
		n := v.tileRows(rows-i, width/v.lanes)
		if init == nil {
			for r := range n {
				copy(tile[r*width:][:columns], c[(i+r)*ldc:])
			}
		}
		v.tile(n, 1, width/v.lanes, k, &a[i*lda], lda, &b[0], first(init), &tile[0], width, uintptr(unsafe.Pointer(&b[0])))
		for r := range n {
			copy(c[(i+r)*ldc:][:columns], tile[r*width:])
		}
		i += n
	}
}

func (v *variant) tile(rows, count, vectors, k int, a *float32, lda int, b, init, c *float32, ldc int, ahead uintptr) {
	if v.kind == isAVX512 {
		switch rows {
		case 1:
			tile1AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 2:
			tile2AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 3:
			tile3AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 4:
			tile4AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 5:
			tile5AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 6:
			tile6AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 7:
			tile7AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		case 8:
			tile8AVX512(count, vectors, k, a, lda, b, init, c, ldc, ahead)
		}
		return
	}
	switch rows {
	case 1:
		tile1AVX2(count, vectors, k, a, lda, b, init, c, ldc, ahead)
	case 2:
		tile2AVX2(count, vectors, k, a, lda, b, init, c, ldc, ahead)
	case 3:
		tile3AVX2(count, vectors, k, a, lda, b, init, c, ldc, ahead)
	case 4:
		tile4AVX2(count, vectors, k, a, lda, b, init, c, ldc, ahead)
	case 5:
		tile5AVX2(count, vectors, k, a, lda, b, init, c, ldc, ahead)
	case 6:
		tile6AVX2(count, vectors, k, a, lda, b, init, c, ldc, ahead)
	}
}

func (v *variant) transpose(dst []float32, ldd int, src []float32, lds int) {
	switch v.kind {
	case isAVX512:
		_, _ = dst[15*ldd+15], src[15*lds+15]
		transposeAVX512(&dst[0], ldd, &src[0], lds)
	case isAVX2:
		_, _ = dst[7*ldd+7], src[7*lds+7]
		transposeAVX2(&dst[0], ldd, &src[0], lds)
	default:
		transposeGeneric(dst, ldd, src, lds, v.lanes)
	}
}

func (v *variant) exp(x []float32) {
	switch v.kind {
	case isAVX512:
		expAVX512(len(x), &x[0])
	case isAVX2:
		expAVX2(len(x), &x[0])
	default:
		expGeneric(x)
	}
}

func (v *variant) expWeights(x []float32, ld, rows, n int, scale float32, sums []float32) {
	switch v.kind {
	case isAVX512:
		expWeightsAVX512(rows, n, &x[0], ld, scale, &sums[0])
	case isAVX2:
		expWeightsAVX2(rows, n, &x[0], ld, scale, &sums[0])
	default:
		expWeightsGeneric(x, ld, rows, n, scale, sums)
	}
}

func (v *variant) divideRows(x []float32, ld, rows, n int, by []float32) {
	switch v.kind {
	case isAVX512:
		divideRowsAVX512(rows, n, &x[0], ld, &by[0])
	case isAVX2:
		divideRowsAVX2(rows, n, &x[0], ld, &by[0])
	default:
		divideRowsGeneric(x, ld, rows, n, by)
	}
}

func (v *variant) scale(x []float32, factor float32) {
	switch v.kind {
	case isAVX512:
		scaleAVX512(len(x), &x[0], factor)
	case isAVX2:
		scaleAVX2(len(x), &x[0], factor)
	default:
		scaleGeneric(x, factor)
	}
}

func (v *variant) gelu(x []float32) {
	switch v.kind {
	case isAVX512:
		geluAVX512(len(x), &x[0])
	case isAVX2:
		geluAVX2(len(x), &x[0])
	default:
		geluGeneric(x)
	}
}

func (v *variant) geluTanh(x []float32) {
	switch v.kind {
	case isAVX512:
		geluTanhAVX512(len(x), &x[0])
	case isAVX2:
		geluTanhAVX2(len(x), &x[0])
	default:
		geluTanhGeneric(x)
	}
}

func (v *variant) norm(dst, x, residual, gain, bias []float32, eps float32) {
	switch v.kind {
	case isAVX512:
		normAVX512(len(x), &dst[0], &x[0], first(residual), &gain[0], first(bias), eps)
	case isAVX2:
		normAVX2(len(x), &dst[0], &x[0], first(residual), &gain[0], first(bias), eps)
	default:
		normGeneric(dst, x, residual, gain, bias, eps)
	}
}

func (v *variant) add(dst, x []float32) {
	switch v.kind {
	case isAVX512:
		addAVX512(len(x), &dst[0], &x[0])
	case isAVX2:
		addAVX2(len(x), &dst[0], &x[0])
	default:
		addGeneric(dst, x)
	}
}

func (v *variant) axpy(dst []float32, factor float32, x []float32) {
	switch v.kind {
	case isAVX512:
		axpyAVX512(len(x), &dst[0], factor, &x[0])
	case isAVX2:
		axpyAVX2(len(x), &dst[0], factor, &x[0])
	default:
		axpyGeneric(dst, factor, x)
	}
}

func (v *variant) dot(x, y []float32) float32 {
	switch v.kind {
	case isAVX512:
		return dotAVX512(len(x), &x[0], &y[0])
	case isAVX2:
		return dotAVX2(len(x), &x[0], &y[0])
	default:
		return dotGeneric(x, y)
	}
}

func (v *variant) peak(n int) float64 {
	switch v.kind {
	case isAVX512:
		peakAVX512(n)
		return 24 * 16 * 2 * float64(n)
	case isAVX2:
		peakAVX2(n)
		return 24 * 8 * 2 * float64(n)
	default:
		return peakGeneric(n)
	}
}

func (v *variant) geluBack(dy, x []float32) {
	switch v.kind {
	case isAVX512:
		geluBackAVX512(len(x), &dy[0], &x[0])
	case isAVX2:
		geluBackAVX2(len(x), &dy[0], &x[0])
	default:
		geluBackGeneric(dy, x)
	}
}

func (v *variant) normKept(y, hat, x, gain, bias []float32, eps float32) (inverse float32) {
	switch v.kind {
	case isAVX512:
		return normKeptAVX512(len(x), &y[0], &hat[0], &x[0], &gain[0], &bias[0], eps)
	case isAVX2:
		return normKeptAVX2(len(x), &y[0], &hat[0], &x[0], &gain[0], &bias[0], eps)
	default:
		return normKeptGeneric(y, hat, x, gain, bias, eps)
	}
}

func (v *variant) normBack(dx, dy, hat, gain, dgain, dbias []float32, inverse float32) {
	switch v.kind {
	case isAVX512:
		normBackAVX512(len(dy), &dx[0], &dy[0], &hat[0], &gain[0], &dgain[0], &dbias[0], inverse)
	case isAVX2:
		normBackAVX2(len(dy), &dx[0], &dy[0], &hat[0], &gain[0], &dgain[0], &dbias[0], inverse)
	default:
		normBackGeneric(dx, dy, hat, gain, dgain, dbias, inverse)
	}
}

func (v *variant) softmaxBack(d, p []float32, scale float32) {
	switch v.kind {
	case isAVX512:
		softmaxBackAVX512(len(d), &d[0], &p[0], scale)
	case isAVX2:
		softmaxBackAVX2(len(d), &d[0], &p[0], scale)
	default:
		softmaxBackGeneric(d, p, scale)
	}
}

func (v *variant) adamW(w, g, m, second []float32, k *AdamW) {
	switch v.kind {
	case isAVX512:
		adamWAVX512(len(w), &w[0], &g[0], &m[0], &second[0], &k.Factor)
	case isAVX2:
		adamWAVX2(len(w), &w[0], &g[0], &m[0], &second[0], &k.Factor)
	default:
		adamWGeneric(w, g, m, second, k)
	}
}
