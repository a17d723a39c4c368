package attention

import "misroute/attention/kernel"

// matrix is a packed linear layer in the precision of its model: float32, or 8-bit whole numbers that
// round its input row by row as well.
type matrix struct {
	float *kernel.Packed
	int8  *kernel.PackedInt8
}

// layout says how the matrices of a model are stored. The zero value is float32, each by itself.
type layout struct {
	arena  *kernel.Arena
	int8   bool
	joined []float32 // where sideBySide joins the next weights
}

// pack lays a linear layer out and clears its weight.
func (y *layout) pack(l *Linear) (m matrix) {
	switch {
	case y.int8:
		m.int8 = kernel.PackInt8(l.Weight, l.Bias, l.Out, l.In)
	case y.arena != nil:
		m.float = y.arena.Pack(l.Weight, l.Bias, l.Out, l.In)
	default:
		m.float = kernel.Pack(l.Weight, l.Bias, l.Out, l.In)
	}
	l.Weight = nil
	return m
}

// packFloat lays out a layer that is float32 in every model: the small ones behind the encoder.
func (y *layout) packFloat(l *Linear) *kernel.Packed {
	float := layout{arena: y.arena}
	return float.pack(l).float
}

// product computes C = A B + bias: a is rows x K with lda between rows, c is rows x N with ldc.
func (m matrix) product(c []float32, ldc int, a []float32, lda, rows int, ws *Workspace) {
	_, to := m.size()
	m.columns(c, ldc, a, lda, rows, 0, to, ws)
}

// columns is product for the columns from one on, a panelStart, to another.
func (m matrix) columns(c []float32, ldc int, a []float32, lda, rows, from, to int, ws *Workspace) {
	k, _ := m.size()
	if m.float != nil {
		kernel.MatMulPart(c, ldc, a, lda, rows, m.float, from, to, 0, k)
		return
	}
	bytes, floats := ws.bytes.mark(), ws.floats.mark()
	defer ws.bytes.release(bytes)
	defer ws.floats.release(floats)
	q, scales := ws.bytes.take(rows*kernel.QuantizedLen(k)), ws.floats.take(rows)
	kernel.Quantize(q, scales, a, lda, rows, k)
	kernel.MatMulInt8(c, ldc, q, scales, rows, m.int8, from, to)
}

// addRows is product in parts, for rows from one on to another of the matrix and as many columns of a: the
// first part sets c, the others add to it. In parts or in one, the sum has the same bits. Only a float32
// matrix has parts: int8 rounds the whole row of a by one scale.
func (m matrix) addRows(c []float32, ldc int, a []float32, lda, rows, from, to int, ws *Workspace) {
	k, n := m.size()
	switch {
	case from == 0 && to == k:
		m.product(c, ldc, a, lda, rows, ws)
	case from == 0:
		kernel.MatMulPart(c, ldc, a, lda, rows, m.float, 0, n, from, to)
	default:
		kernel.AddMatMulPart(c, ldc, a, lda, rows, m.float, 0, n, from, to)
	}
}

// size is the number of inputs and of outputs.
func (m matrix) size() (k, n int) {
	if m.float != nil {
		return m.float.K, m.float.N
	}
	return m.int8.K, m.int8.N
}

// panelStart is the nearest column at or before j that columns can start from.
func (m matrix) panelStart(j int) int {
	if m.float != nil {
		return m.float.PanelStart(j)
	}
	return m.int8.PanelStart(j)
}

// quantizedBytes is the scratch of int8 products for rows rows of up to k numbers.
func quantizedBytes(rows, k int) int { return rows*kernel.QuantizedLen(k) + cacheLine }
