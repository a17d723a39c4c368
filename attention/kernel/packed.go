package kernel

// Packed is the right-hand matrix of a product, K x N, laid out in panels of neighbouring columns so
// that the kernel reads memory in order. It carries the bias row, which the sums start from.
//
// Panels stand one after the other; each is K x width, row after row. All have the variant's full
// width but the last, which is narrowed to the next multiple of its vector length and padded with
// zeros.
type Packed struct {
	K, N int
	data []float32
	bias []float32 // N, padded with zeros like the panels
	v    *variant
}

// Pack lays out a linear layer: weight is N x K (a row for each output, as Hugging Face and torch
// store it), bias has N entries or is nil for zeros.
func Pack(weight, bias []float32, n, k int) *Packed {
	b := &Packed{}
	b.Grow(make([]float32, PackedLen(n, k)), n, k)
	b.SetTransposed(weight, k)
	b.SetBias(bias)
	return b
}

// PackedLen is how many elements Grow needs for a K x N matrix and its bias, on the active variant.
func PackedLen(n, k int) int {
	padded := roundUp(n, active.Load().lanes)
	return padded*k + padded
}

// Grow makes b a K x N matrix over memory of PackedLen(n, k) elements, for matrices that change with
// every message. The content is undefined until SetTransposed or SetRows and SetBias are called.
func (b *Packed) Grow(memory []float32, n, k int) {
	v := active.Load()
	padded := roundUp(n, v.lanes)
	b.K, b.N, b.v = k, n, v
	b.data = memory[:padded*k]
	b.bias = memory[padded*k:][:padded]
}

// SetTransposed fills b from a matrix of N rows of K columns, ld elements apart.
func (b *Packed) SetTransposed(w []float32, ld int) {
	if b.K == 0 {
		return
	}
	for j := 0; j < b.N; {
		panel, width := b.panelAt(j)
		for c := 0; c < width; c += b.v.lanes {
			b.v.fillColumns(panel[c:], width, b.K, w[min((j+c)*ld, len(w)):], ld, min(b.v.lanes, b.N-j-c))
		}
		j += width
	}
}

// fillColumns fills one vector of a panel's k rows with n columns that are rows of w: square blocks at
// full width, the rest number by number. Columns from n on become 0.
func (v *variant) fillColumns(panel []float32, width, k int, w []float32, ld, n int) {
	p, lanes := 0, v.lanes
	if n == lanes {
		for ; p+lanes <= k; p += lanes {
			v.transpose(panel[p*width:], width, w[p:], ld)
		}
	}
	for ; p < k; p++ {
		row := panel[p*width:][:lanes]
		for c := range row {
			if c < n {
				row[c] = w[c*ld+p]
			} else {
				row[c] = 0
			}
		}
	}
}

// SetRows fills b from a matrix of K rows of N columns, ld elements apart.
func (b *Packed) SetRows(w []float32, ld int) {
	for j := 0; j < b.N; {
		panel, width := b.panelAt(j)
		columns := min(width, b.N-j)
		for p := range b.K {
			row := panel[p*width:][:width]
			copy(row, w[p*ld+j:][:columns])
			if columns < width {
				clear(row[columns:])
			}
		}
		j += width
	}
}

// SetBias sets the row that sums start from; nil means zeros.
func (b *Packed) SetBias(bias []float32) {
	copied := 0
	if bias != nil {
		copied = copy(b.bias, bias[:b.N])
	}
	clear(b.bias[copied:])
}

// Bias is the row that sums start from, N long, to be changed in place.
func (b *Packed) Bias() []float32 { return b.bias[:b.N] }

// Variant names the kernel that b is laid out for.
func (b *Packed) Variant() string { return b.v.name }

// Bytes is the memory of the matrix.
func (b *Packed) Bytes() int64 { return int64(len(b.data)+len(b.bias)) * 4 }

// panelAt is the panel that starts at column j.
func (b *Packed) panelAt(j int) (panel []float32, width int) {
	width = b.v.panelWidth(b.N - j)
	return b.data[j*b.K:][:width*b.K], width
}

// panelWidth is the width of the next panel when that many columns are left. One vector more than fits
// is cut in two halves, not in three and one: a tile of one vector cannot keep the processor busy.
func (v *variant) panelWidth(left int) int {
	vectors := (left + v.lanes - 1) / v.lanes
	if vectors == v.vectors+1 {
		vectors = (vectors + 1) / 2
	}
	return min(vectors, v.vectors) * v.lanes
}

// panelStart is the first column of the panel that column j is in, of n columns.
func (v *variant) panelStart(n, j int) int {
	start := 0
	if full := v.lanes * v.vectors; j > full {
		start = max(0, min(j, n-2*full)) / full * full // all panels but the last two are full
	}
	for {
		width := v.panelWidth(n - start)
		if j < start+width {
			return start
		}
		start += width
	}
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// blockBytes is how much of A meets a panel before the next panel's turn: those rows stay in the
// second-level cache while all panels pass by.
const blockBytes = 800 << 10

// rowBlock is how many rows of K numbers that is, a multiple of every tile's rows.
func rowBlock(k int) int { return max(24, blockBytes/(4*max(k, 1))/24*24) }

// MatMul computes C = A B + bias for rows rows: a is rows x b.K with lda elements between rows, c is
// rows x b.N with ldc. c must not overlap a.
func MatMul(c []float32, ldc int, a []float32, lda, rows int, b *Packed) {
	MatMulPart(c, ldc, a, lda, rows, b, 0, b.N, 0, b.K)
}

// MatMulPart is MatMul with a part of B: its columns from n0 to n1 and its rows from k0 to k1, with
// the bias of those columns. Column n0 of B gives column 0 of C, row k0 meets column 0 of A. n0 must
// be the start of a panel; see PanelStart.
func MatMulPart(c []float32, ldc int, a []float32, lda, rows int, b *Packed, n0, n1, k0, k1 int) {
	b.multiply(c, ldc, a, lda, rows, n0, n1, k0, k1, false)
}

// AddMatMulPart is MatMulPart without the bias, added to C: the rest of a sum over k that MatMulPart
// began. In parts or in one, the sum has the same bits.
func AddMatMulPart(c []float32, ldc int, a []float32, lda, rows int, b *Packed, n0, n1, k0, k1 int) {
	b.multiply(c, ldc, a, lda, rows, n0, n1, k0, k1, true)
}

func (b *Packed) multiply(c []float32, ldc int, a []float32, lda, rows, n0, n1, k0, k1 int, accumulate bool) {
	if rows <= 0 || n1 <= n0 {
		return
	}
	k := k1 - k0
	_, _ = c[(rows-1)*ldc+n1-n0-1], b.bias[n1-1]
	if k > 0 {
		_, _ = a[(rows-1)*lda+k-1], b.data[k1-1]
	}
	step := rowBlock(k)
	for r := 0; r < rows; r += step {
		block := min(step, rows-r)
		for j := n0; j < n1; {
			panel, width := b.panelAt(j)
			init := b.bias[j:]
			if accumulate {
				init = nil
			}
			b.v.panel(c[r*ldc+j-n0:], ldc, min(width, n1-j), a[min(r*lda, len(a)):], lda, block, k,
				panel[k0*width:k1*width], width, init, b.K*width)
			j += width
		}
	}
}

// PanelWidth is the most columns a panel has.
func (b *Packed) PanelWidth() int { return b.v.lanes * b.v.vectors }

// PanelStart is the first column of the panel that column j is in.
func (b *Packed) PanelStart(j int) int { return b.v.panelStart(b.N, j) }
