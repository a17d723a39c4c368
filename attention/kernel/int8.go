package kernel

import (
	"math"
	"math/bits"
	"unsafe"
)

// PackedInt8 is the right-hand matrix of a product in 8-bit whole numbers, K x N, with a scale for
// each column: a quarter of the memory of Packed. Panels are those of Packed, but four rows stand
// together: panel[p/4][column][p%4]. Rows up to a multiple of four are 0.
//
// A product quantizes each row of A by itself as well (see Quantize), sums exactly in whole numbers
// and scales at the end:
//
//	C[i][j] = rowScale[i] columnScale[j] (sum over p of a[i][p] b[p][j]) + bias[j]
//
// so a row has the same bits whatever stands beside it.
type PackedInt8 struct {
	K, N  int
	data  []int8
	start []int32   // -128 times the column's sum: what the bytes around 128 add too much; 0 after SetRows
	scale []float32 // of columns
	bias  []float32
	v     *variant
}

// PackInt8 quantizes a linear layer: weight is N x K, bias has N entries or is nil. Each output's
// weights are scaled so that the largest becomes 127.
func PackInt8(weight, bias []float32, n, k int) *PackedInt8 {
	v := active.Load()
	padded, deep := roundUp(n, v.lanes), roundUp(k, 4)
	b := &PackedInt8{K: k, N: n, v: v,
		data:  newBytes(padded * deep),
		start: make([]int32, padded), scale: make([]float32, padded), bias: make([]float32, padded),
	}
	copy(b.bias, bias)
	for j := 0; j < n && k > 0; {
		panel, width := b.panelAt(j)
		for c := 0; c < min(width, n-j); c++ {
			b.setColumn(panel[4*c:], 4*width, j+c, weight[(j+c)*k:][:k])
		}
		j += width
	}
	return b
}

// PackedInt8Len is how many float32 of memory Grow needs for a K x N matrix.
func PackedInt8Len(n, k int) int {
	padded := roundUp(n, active.Load().lanes)
	return padded*QuantizedLen(k)/4 + 3*padded
}

// Grow makes b a K x N matrix over memory of PackedInt8Len(n, k) elements, for matrices that change
// with every message. SetTransposed fills it; the bias is 0.
func (b *PackedInt8) Grow(memory []float32, n, k int) {
	v := active.Load()
	padded, deep := roundUp(n, v.lanes), QuantizedLen(k)
	b.K, b.N, b.v = k, n, v
	b.scale, b.bias = memory[:padded], memory[padded:2*padded]
	clear(b.bias)
	start := memory[2*padded : 3*padded]
	b.start = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(start))), padded)
	data := memory[3*padded:][:padded*deep/4]
	b.data = unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(data))), padded*deep)
}

// SetTransposed quantizes a matrix of N rows of K columns, ld elements apart, each row with its own
// scale. scratch is N*QuantizedLen(K) bytes at a multiple of four.
func (b *PackedInt8) SetTransposed(w []float32, ld int, scratch []uint8) {
	b.fill(w, ld, scratch)
	for j := range b.start {
		b.start[j] *= -128
	}
}

// SetRows quantizes a matrix of K rows of N columns, ld elements apart, each column with its own scale, to be
// multiplied by what ExpBytes makes: bytes that stand for themselves. columns is N*RowsLen(K) elements of
// scratch, scratch is N*QuantizedLen(K) bytes at a multiple of four.
func (b *PackedInt8) SetRows(w []float32, ld int, columns []float32, scratch []uint8) {
	wide := RowsLen(b.K)
	for p := 0; p < b.K; p += b.v.lanes {
		b.v.fillColumns(columns[p:], wide, b.N, w[p*ld:], ld, min(b.v.lanes, b.K-p))
	}
	b.fill(columns, wide, scratch)
	clear(b.start) // no byte is 128 too large
}

// RowsLen is the distance of two columns of k numbers in the scratch of SetRows.
func RowsLen(k int) int { return roundUp(k, active.Load().lanes) }

// fill quantizes N columns of w, ld elements apart, and lays them out; start becomes their sums.
func (b *PackedInt8) fill(w []float32, ld int, scratch []uint8) {
	clear(b.start)
	clear(b.scale)
	deep := QuantizedLen(b.K)
	if deep == 0 {
		return
	}
	q := unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(scratch))), b.N*deep)
	for j := range b.N {
		row := q[j*deep:][:deep]
		clear(row[b.K:])
		b.scale[j] = b.v.quantizeSigned(row[:b.K], w[j*ld:][:b.K], &b.start[j])
	}
	// Four bytes that stand together move like one number.
	words := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(scratch))), b.N*deep/4)
	for j := 0; j < b.N; {
		bytes, width := b.panelAt(j)
		panel := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/4)
		for c := 0; c < width; c += b.v.lanes {
			b.v.fillColumns(panel[c:], width, deep/4, words[min((j+c)*deep/4, len(words)):], deep/4, min(b.v.lanes, b.N-j-c))
		}
		j += width
	}
}

// Bias is the row that products end with, N long, to be changed in place.
func (b *PackedInt8) Bias() []float32 { return b.bias[:b.N] }

// newBytes is memory for a matrix, on large pages when it is large.
func newBytes(n int) []int8 {
	words := NewArena((n + 3) / 4).free
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))[:n]
}

// setColumn quantizes the weights of output j; ld is the distance of two groups of four.
func (b *PackedInt8) setColumn(panel []int8, ld, j int, weights []float32) {
	most := 0.0
	for _, w := range weights {
		most = max(most, math.Abs(float64(w)))
	}
	scale := float32(most / 127)
	if most == 0 {
		scale = 1
	}
	sum := int32(0)
	for p, w := range weights {
		q := int8(math.RoundToEven(float64(w / scale)))
		sum += int32(q)
		panel[p/4*ld+p%4] = q
	}
	b.start[j], b.scale[j] = -128*sum, scale
}

// panelAt is the panel that starts at column j.
func (b *PackedInt8) panelAt(j int) (panel []int8, width int) {
	width = b.v.panelWidth(b.N - j)
	deep := roundUp(b.K, 4)
	return b.data[j*deep:][:width*deep], width
}

// PanelWidth is the most columns a panel has.
func (b *PackedInt8) PanelWidth() int { return b.v.lanes * b.v.vectors }

// PanelStart is the first column of the panel that column j is in.
func (b *PackedInt8) PanelStart(j int) int { return b.v.panelStart(b.N, j) }

// Bytes is the memory of the matrix.
func (b *PackedInt8) Bytes() int64 {
	return int64(len(b.data)) + 4*int64(len(b.start)+len(b.scale)+len(b.bias))
}

// QuantizedLen is the bytes of a quantized row of k numbers.
func QuantizedLen(k int) int { return roundUp(k, 4) }

// Quantize turns rows of k numbers, lda apart, into bytes: q = 128 + round(x / scale) with the row's
// largest |x| / 127 as scale. Rows of q are QuantizedLen(k) long. A row with NaN or Inf gets NaN or
// Inf as its scale, so it stays visible in the product.
func Quantize(q []uint8, scales []float32, a []float32, lda, rows, k int) {
	v, ld := active.Load(), QuantizedLen(k)
	for i := range rows {
		row := q[i*ld:][:ld]
		for p := k; p < ld; p++ {
			row[p] = 0 // meets weights that are 0
		}
		scales[i] = v.quantize(row[:k], a[i*lda:][:k])
	}
}

// ExpBytes is ExpWeights for a product of bytes (see SetRows): q[i][j] is 255 exp(scale * (x - max of the
// row)) rounded to a whole number, and sums[i] their sum, so that q[i][j]/sums[i] are weights that sum to 1.
// Rows of q stand ldq bytes apart; x is scratch afterwards.
//
// Rounding is by a threshold that differs between neighbours (ordered dither, Bayer 1973), not by one half:
// where one key takes most of the weight, five hundred others with a thousandth each would all become 0, and
// half of what the query saw would be gone. So about as many of them become 1 as it takes to keep their sum.
func ExpBytes(q []uint8, ldq int, x []float32, ld, rows, n int, scale float32, sums []float32) {
	if rows > 0 {
		_, _, _ = q[(rows-1)*ldq+n-1], x[(rows-1)*ld+n-1], sums[rows-1]
		active.Load().expBytes(q, ldq, x, ld, rows, n, scale, sums)
	}
}

// expBytesGeneric takes what ExpWeights leaves.
func expBytesGeneric(q []uint8, ldq int, weights []float32, ld, rows, n int, sums []float32) {
	for i := range rows {
		sum := sums[i] - sums[i] // 0, or NaN
		for j, w := range weights[i*ld:][:n] {
			whole := math.Floor(float64(float32(255*float64(w) + float64(ditherShares[j%len(ditherShares)]))))
			q[i*ldq+j] = uint8(min(max(whole, 0), 255))
			sum += float32(whole)
		}
		sums[i] = sum
	}
}

// ditherShares are added before numbers are cut to whole ones: sixteen steps, neighbours far apart.
var ditherShares = func() (shares [16]float32) {
	for i := range shares {
		shares[i] = (float32(bits.Reverse8(uint8(i))>>4) + 0.5) / 16
	}
	return shares
}()

// MatMulInt8 computes columns n0 to n1 of C = A B + bias for rows rows that Quantize made. n0 must be
// a PanelStart; column n0 of B gives column 0 of C.
func MatMulInt8(c []float32, ldc int, q []uint8, scales []float32, rows int, b *PackedInt8, n0, n1 int) {
	if rows <= 0 || n1 <= n0 {
		return
	}
	deep := roundUp(b.K, 4)
	_, _, _ = c[(rows-1)*ldc+n1-n0-1], q[:rows*deep], scales[rows-1]
	step := rowBlock(deep / 4)
	for r := 0; r < rows; r += step {
		block := min(step, rows-r)
		for j := n0; j < n1; {
			panel, width := b.panelAt(j)
			b.v.panelInt8(c[r*ldc+j-n0:], ldc, min(width, n1-j), q[r*deep:], scales[r:], block, deep,
				panel, width, b.start[j:], b.scale[j:], b.bias[j:])
			j += width
		}
	}
}

func panelInt8Generic(c []float32, ldc, columns int, q []uint8, scales []float32, rows, deep int, b []int8, width int, start []int32, scale, bias []float32) {
	for i := range rows {
		row := q[i*deep:][:deep]
		for j := range columns {
			sum := start[j]
			for p := 0; p < deep; p += 4 {
				x, w := row[p:][:4], b[p*width+4*j:][:4]
				sum += int32(x[0])*int32(w[0]) + int32(x[1])*int32(w[1]) + int32(x[2])*int32(w[2]) + int32(x[3])*int32(w[3])
			}
			// one rounding for the last product and sum, as the assembly has
			scaled := float64(float32(sum)*scale[j]) * float64(scales[i])
			c[i*ldc+j] = float32(scaled + float64(bias[j]))
		}
	}
}

func quantizeGeneric(q []uint8, x []float32) (scale float32) {
	most := math.Float32bits(1e-30) // so that a row of zeros has a scale
	for _, v := range x {
		most = max(most, math.Float32bits(v)&0x7FFFFFFF) // bits order like the numbers, NaN above Inf
	}
	inverse := 127 / math.Float32frombits(most)
	for i, v := range x {
		q[i] = uint8(128 + int32(math.RoundToEven(float64(v*inverse))))
	}
	return math.Float32frombits(most) / 127
}

func quantizeSignedGeneric(q []int8, x []float32, sum *int32) (scale float32) {
	most := math.Float32bits(1e-30)
	for _, v := range x {
		most = max(most, math.Float32bits(v)&0x7FFFFFFF)
	}
	inverse := 127 / math.Float32frombits(most)
	*sum = 0
	for i, v := range x {
		q[i] = int8(math.RoundToEven(float64(v * inverse)))
		*sum += int32(q[i])
	}
	return math.Float32frombits(most) / 127
}
