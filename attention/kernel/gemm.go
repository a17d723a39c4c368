package kernel

// View is a matrix seen through strides: element (i, j) is Data[i*RowStride + j*ColStride]. One of
// the strides is 1 in what training needs, and both orders are fast.
type View struct {
	Data                 []float32
	Rows, Cols           int
	RowStride, ColStride int
}

// RowMajor views rows x cols numbers, row after row.
func RowMajor(data []float32, rows, cols int) View {
	return View{Data: data, Rows: rows, Cols: cols, RowStride: cols, ColStride: 1}
}

// T is the transpose, without copying.
func (m View) T() View {
	return View{Data: m.Data, Rows: m.Cols, Cols: m.Rows, RowStride: m.ColStride, ColStride: m.RowStride}
}

// Scratch is memory that Gemm reuses between calls; one per goroutine. The zero value is ready.
type Scratch struct {
	b Packed
	// memory of the packed right-hand block, and of a left-hand block whose rows are not contiguous
	right, left []float32
}

// Blocks of Gemm: a K x N block of B is packed at a time and stays in the second-level cache.
const (
	gemmK = 512
	gemmN = 480
)

// Gemm computes C = A B, or C += A B with accumulate, for any strides of A and B; C has ColStride 1
// and overlaps neither. Transposes are views: the backward pass of y = x Wᵀ is
//
//	Gemm(dX, dY, W, true, s)         // dX += dY W
//	Gemm(dW, dY.T(), X, true, s)     // dW += dYᵀ X
//
// A is m x k, B is k x n, C is m x n; m = 0 or n = 0 does nothing, k = 0 gives zeros.
func Gemm(c, a, b View, accumulate bool, s *Scratch) {
	gemm(c, a, b, nil, accumulate, s)
}

// GemmBias computes C = A B + bias, which has a number for each column of C or is nil for zeros.
func GemmBias(c, a, b View, bias []float32, s *Scratch) { gemm(c, a, b, bias, false, s) }

func gemm(c, a, b View, bias []float32, accumulate bool, s *Scratch) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows || c.ColStride != 1 || bias != nil && len(bias) != c.Cols {
		panic("kernel.Gemm: shapes do not fit")
	}
	for i := 0; a.Cols == 0 && !accumulate && i < c.Rows; i++ {
		row := c.Data[i*c.RowStride:][:c.Cols]
		clear(row[copy(row, bias):])
	}
	for k0 := 0; k0 < a.Cols; k0 += gemmK {
		k := min(gemmK, a.Cols-k0)
		left, lda := a.rowsOf(k0, k, s)
		for n0 := 0; n0 < b.Cols; n0 += gemmN {
			n := min(gemmN, b.Cols-n0)
			s.packRight(b, k0, k, n0, n)
			adds := accumulate || k0 > 0
			if bias != nil {
				s.b.SetBias(bias[n0:])
			} else {
				s.b.SetBias(nil)
			}
			for i := 0; i < a.Rows; i += rowBlock(k) {
				rows := min(rowBlock(k), a.Rows-i)
				s.b.multiply(c.Data[i*c.RowStride+n0:], c.RowStride, left[i*lda:], lda, rows, 0, n, 0, k, adds)
			}
		}
	}
}

// rowsOf is columns k0 to k0+k of m as rows of contiguous numbers: m's own memory when it has that
// form, else a copy in s.
func (m View) rowsOf(k0, k int, s *Scratch) (data []float32, ld int) {
	if m.ColStride == 1 {
		return m.Data[min(k0, len(m.Data)):], m.RowStride
	}
	// Rows a few cache lines longer than k: those of a power of two would push each other out of the cache.
	ld = k + cacheLine/4
	s.left = grow(s.left, m.Rows*ld)
	i, v := 0, active.Load()
	if m.RowStride == 1 {
		for ; i+v.lanes <= m.Rows; i += v.lanes {
			p := 0
			for ; p+v.lanes <= k; p += v.lanes {
				v.transpose(s.left[i*ld+p:], ld, m.Data[(k0+p)*m.ColStride+i:], m.ColStride)
			}
			m.copyRows(s.left, ld, i, i+v.lanes, k0, p, k)
		}
	}
	m.copyRows(s.left, ld, i, m.Rows, k0, 0, k)
	return s.left, ld
}

// copyRows copies columns k0+from to k0+to of rows i to n, number by number, to the same rows of dst.
func (m View) copyRows(dst []float32, ld, i, n, k0, from, to int) {
	for ; i < n; i++ {
		for p := from; p < to; p++ {
			dst[i*ld+p] = m.Data[i*m.RowStride+(k0+p)*m.ColStride]
		}
	}
}

// packRight packs a k x n block of b.
func (s *Scratch) packRight(b View, k0, k, n0, n int) {
	s.right = grow(s.right, PackedLen(n, k))
	s.b.Grow(s.right, n, k)
	block := b.Data[k0*b.RowStride+n0*b.ColStride:]
	switch {
	case b.ColStride == 1:
		s.b.SetRows(block, b.RowStride)
	case b.RowStride == 1:
		s.b.SetTransposed(block, b.ColStride)
	default:
		panic("kernel.Gemm: one stride of B must be 1")
	}
}

// grow returns a slice of n elements, reusing memory when it is large enough; the content is lost.
func grow(memory []float32, n int) []float32 {
	if cap(memory) < n {
		return make([]float32, n)
	}
	return memory[:n]
}
