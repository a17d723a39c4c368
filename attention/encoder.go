package attention

import (
	"fmt"
	"math"

	"misroute/attention/kernel"
)

// EncoderParams are the learned numbers of a BERT, DistilBERT or RoBERTa classifier, in torch layout.
type EncoderParams struct {
	Words     []float32 // V x C
	Positions []float32 // rows x C; RoBERTa's first PadID+1 rows are not positions of tokens
	Types     []float32 // Config.TypeVocab x C; nil = the family has none
	EmbedNorm Norm
	Layers    []LayerParams
	// Layer gives layer i when Layers is empty: it is asked for one layer after the other, and the
	// matrices of one may share the memory of the one before. So a loader never holds all of them twice.
	Layer    func(i int) (LayerParams, error)
	Pool     Linear // C x C: BERT pooler.dense, DistilBERT pre_classifier, RoBERTa classifier.dense
	Classify Linear // labels x C
}

// LayerParams are the learned numbers of one encoder layer.
type LayerParams struct {
	Query, Key, Value, Output Linear // C x C
	AttentionNorm             Norm   // after the attention's residual
	Up, Down                  Linear // F x C and C x F
	OutputNorm                Norm   // after the feed-forward part's residual
}

// Linear is y = Weight x + Bias. Weight has Out rows of In numbers; Bias may be nil for zeros.
type Linear struct {
	In, Out      int
	Weight, Bias []float32
}

// Norm is the gain and bias of a layer norm; Bias may be nil for zeros.
type Norm struct{ Gain, Bias []float32 }

// Encoder is a post-norm transformer encoder with a classification head on its first token: BERT
// (Devlin et al. 2018), DistilBERT (Sanh et al. 2019), RoBERTa and XLM-RoBERTa (Liu et al. 2019).
type Encoder struct {
	cfg        Config
	parameters int64
	variant    string

	words, positions, types []float32
	embedNorm               Norm
	layers                  []encoderLayer
	pool, classify          *kernel.Packed
	int8                    bool
	poolActivation          func([]float32)
	activation              func([]float32)
	keyBack                 *kernel.Packed // the last layer's key projection, turned round; see lastAttention
	padPositions            bool           // RoBERTa: positions count the tokens that are not padding
}

// encoderLayer has its matrices packed, the three projections side by side in one.
type encoderLayer struct {
	qkv           matrix // C x 3C
	output        matrix // C x C
	attentionNorm Norm
	up, down      matrix // C x F, F x C
	outputNorm    Norm
}

// NewEncoder builds the classifier that cfg.ModelType names ("bert", "distilbert", "roberta",
// "xlm-roberta") and checks every shape. It takes the parameters over: each matrix is packed and its
// field cleared, so that a loader that keeps no other reference never holds two copies of all of
// them.
func NewEncoder(cfg Config, p *EncoderParams) (*Encoder, error) { return newEncoder(cfg, p, false) }

// NewEncoderInt8 is NewEncoder with the matrices of the layers in 8-bit whole numbers: a quarter of
// the memory and more than twice the speed where the processor has VNNI, for logits that differ in the
// second digit. Norms, softmax and the classifier stay float32. Judge it by the predictions
// that change on a trained model.
func NewEncoderInt8(cfg Config, p *EncoderParams) (*Encoder, error) { return newEncoder(cfg, p, true) }

func newEncoder(cfg Config, p *EncoderParams, int8 bool) (*Encoder, error) {
	m := &Encoder{cfg: cfg, variant: kernel.Variant(), int8: int8}
	if err := m.family(); err != nil {
		return nil, err
	}
	if err := p.check(&m.cfg); err != nil {
		return nil, err
	}
	if m.activation = activation(cfg.Activation); m.activation == nil {
		return nil, fmt.Errorf("activation %q is not known", cfg.Activation)
	}
	m.parameters = p.count()
	m.words, m.positions, m.types, m.embedNorm = p.Words, p.Positions, p.Types, p.EmbedNorm
	rows := len(p.Positions) / cfg.Hidden
	if m.padPositions {
		rows -= int(cfg.PadID) + 1
	}
	if m.cfg.Positions == 0 || m.cfg.Positions > rows {
		m.cfg.Positions = rows
	}
	arena := kernel.NewArena(p.packedLen(&m.cfg, int8))
	y := layout{arena: arena, int8: int8}
	for i := range cfg.Layers {
		l, err := p.layer(i, &m.cfg)
		if err != nil {
			return nil, err
		}
		m.parameters += l.count()
		if i == cfg.Layers-1 {
			m.keyBack = arena.PackRows(l.Key.Weight, l.Key.In, l.Key.Out)
		}
		m.layers = append(m.layers, packLayer(l, &y))
	}
	m.pool, m.classify = y.packFloat(&p.Pool), y.packFloat(&p.Classify)
	return m, nil
}

// family sets what differs between the families beyond their numbers.
func (m *Encoder) family() error {
	switch m.cfg.ModelType {
	case "bert":
		m.poolActivation = kernel.Tanh
	case "distilbert":
		m.poolActivation = kernel.ReLU
	case "roberta", "xlm-roberta":
		m.poolActivation = kernel.Tanh
		m.padPositions = true
	default:
		return fmt.Errorf("model type %q is not an encoder this package knows", m.cfg.ModelType)
	}
	return nil
}

// packedLen is the memory of all float32 matrices.
func (p *EncoderParams) packedLen(c *Config, int8 bool) int {
	layer := kernel.ArenaLen(3*c.Hidden, c.Hidden) + kernel.ArenaLen(c.Hidden, c.Hidden) +
		kernel.ArenaLen(c.Intermediate, c.Hidden) + kernel.ArenaLen(c.Hidden, c.Intermediate)
	if int8 {
		layer = 0
	}
	return c.Layers*layer + 2*kernel.ArenaLen(c.Hidden, c.Hidden) + kernel.ArenaLen(len(c.Labels), c.Hidden)
}

// packLayer packs a layer as the model wants it.
func packLayer(p *LayerParams, y *layout) encoderLayer {
	qkv := y.sideBySide(&p.Query, &p.Key, &p.Value)
	return encoderLayer{
		qkv:           y.pack(&qkv),
		output:        y.pack(&p.Output),
		attentionNorm: p.AttentionNorm,
		up:            y.pack(&p.Up),
		down:          y.pack(&p.Down),
		outputNorm:    p.OutputNorm,
	}
}

// sideBySide joins linear layers that read the same input into one with all their outputs, and clears
// them. Its weight is good until the next call.
func (y *layout) sideBySide(parts ...*Linear) Linear {
	joined := Linear{In: parts[0].In}
	for _, p := range parts {
		joined.Out += p.Out
	}
	if n := joined.Out * joined.In; cap(y.joined) < n {
		y.joined = make([]float32, 0, n)
	}
	joined.Weight = y.joined[:0]
	joined.Bias = make([]float32, 0, joined.Out)
	for _, p := range parts {
		joined.Weight = append(joined.Weight, p.Weight...)
		bias := p.Bias
		if bias == nil {
			bias = make([]float32, p.Out)
		}
		joined.Bias = append(joined.Bias, bias...)
		p.Weight = nil
	}
	return joined
}

// pack lays the layer out for the kernel and clears the weight.
func (l *Linear) pack() *kernel.Packed {
	packed := kernel.Pack(l.Weight, l.Bias, l.Out, l.In)
	l.Weight = nil
	return packed
}

// Config returns what the model says about itself.
func (m *Encoder) Config() *Config { return &m.cfg }

// Parameters is how many numbers were learned.
func (m *Encoder) Parameters() int64 { return m.parameters }

// Kernel names the kernel variant that the weights are laid out for.
func (m *Encoder) Kernel() string { return m.variant }

// Precision is "float32" or "int8".
func (m *Encoder) Precision() string {
	if m.int8 {
		return "int8"
	}
	return "float32"
}

// NewWorkspace returns scratch memory for one goroutine.
func (m *Encoder) NewWorkspace() *Workspace { return &Workspace{} }

// Cost counts what Logits computes: in the last layer one query, and no keys or values.
func (m *Encoder) Cost(tokens int) (cells, flops int64) {
	cells, flops = m.costProjected(tokens)
	t, c, heads := int64(tokens), int64(m.cfg.Hidden), int64(m.cfg.Heads)
	projected, moved := 2*t*c*c+2*t*c, 2*c*c+2*heads*t*c // see lastAttention
	return cells, flops + 2*(moved-projected)
}

// costProjected is the cost when the last layer projects the keys and values of every token.
func (m *Encoder) costProjected(tokens int) (cells, flops int64) {
	t, c, f := int64(tokens), int64(m.cfg.Hidden), int64(m.cfg.Intermediate)
	whole := int64(len(m.layers) - 1)
	cells = int64(m.cfg.Heads) * (whole*t*t + t)
	flops = 2 * (whole*t*(4*c*c+2*c*f+2*t*c) + // whole layers
		2*t*c*c + 2*t*c + 2*c*c + 2*c*f + // one query
		c*c + c*int64(len(m.cfg.Labels)))
	return cells, flops
}

// Logits runs the encoder on one message.
func (m *Encoder) Logits(dst []float32, in Input, ws *Workspace) error {
	return m.forward(dst, in, ws, nil)
}

// Trace runs the encoder and keeps its attention weights and hidden states.
func (m *Encoder) Trace(in Input) (*Trace, error) {
	t := &Trace{Tokens: len(in.IDs), Logits: make([]float32, len(m.cfg.Labels))}
	if err := m.forward(t.Logits, in, m.NewWorkspace(), t); err != nil {
		return nil, err
	}
	return t, nil
}

// forward is the whole model. Nobody but the classifier reads the last layer, and it reads one token:
// unless somebody traces, the last layer computes that row alone.
func (m *Encoder) forward(dst []float32, in Input, ws *Workspace, trace *Trace) error {
	if err := m.cfg.check(dst, in); err != nil {
		return err
	}
	if trace == nil {
		in = in.unpadded()
	}
	t, c := len(in.IDs), m.cfg.Hidden
	ws.floats.reset()
	ws.floats.reserve(m.workspaceFloats(t))
	m.reserveBytes(t, ws)
	x := ws.floats.take(t * c)
	states := ws.floats.mark()
	qkv := ws.floats.take(t * 3 * c)
	context := ws.floats.take(t * c)

	m.embed(x, in)
	trace.hidden(x)
	for l := range m.layers {
		layer := &m.layers[l]
		if l == len(m.layers)-1 && trace == nil {
			ws.floats.release(states) // it needs neither qkv nor all of context
			context = ws.floats.take(c)
			m.lastAttention(context, x, t, layer, in.Mask, ws)
			m.feedForward(x, context, 1, layer, ws)
			break
		}
		maps := trace.layer(m.cfg.Heads, t)
		if ws.Width > 1 {
			m.layerShared(x, qkv, context, t, layer, in.Mask, ws, maps)
		} else {
			layer.qkv.product(qkv, 3*c, x, c, t, ws)
			m.attend(context, qkv, 0, m.cfg.Heads, in.Mask, ws, maps)
			m.feedForward(x, context, t, layer, ws)
		}
		trace.hidden(x)
	}
	m.classifyFirst(dst, x, ws, trace)
	return nil
}

// unpadded is the input without hidden tokens at its end: no visible token looks at them, nor does the
// classifier. When every token is hidden all of them count, and stay.
func (in Input) unpadded() Input {
	if n := shown(in.Mask, len(in.IDs)); n > 0 {
		return in.first(n)
	}
	return in
}

// layerShared is a whole layer with its rows and heads shared by ws.Width goroutines.
func (m *Encoder) layerShared(x, qkv, context []float32, t int, l *encoderLayer, mask []uint8, ws *Workspace, maps [][]float32) {
	const tile = 8 // rows
	c := m.cfg.Hidden
	ws.share(t, tile, func(from, to int, ws *Workspace) {
		l.qkv.product(qkv[from*3*c:], 3*c, x[from*c:], c, to-from, ws)
	})
	ws.share(m.cfg.Heads, 1, func(from, to int, ws *Workspace) {
		m.attend(context, qkv, from, to, mask, ws, maps)
	})
	ws.share(t, tile, func(from, to int, ws *Workspace) {
		m.feedForward(x[from*c:], context[from*c:], to-from, l, ws)
	})
}

// feedBlock is how many rows go through the feed-forward part together, so that its F-wide
// intermediate stays in cache.
const feedBlock = 128

// feedColumns is how much of that intermediate is worked on at a time: computed, activated and summed into
// the output before the next part. A multiple of every panel's width.
const feedColumns = 384

// workspaceFloats is the scratch one message needs; its largest parts grow with T, none with T x T.
func (m *Encoder) workspaceFloats(t int) int {
	c := m.cfg.Hidden
	block := min(t, feedBlock)
	return t*c + max(4*t*c+m.attendFloats(t), c+m.lastFloats(t)) + block*(2*c+m.cfg.Intermediate) + t + 2*c + 16*16
}

// reserveBytes makes room for the largest rounded input of an int8 product.
func (m *Encoder) reserveBytes(t int, ws *Workspace) {
	if m.int8 {
		c := m.cfg.Hidden
		ws.bytes.reset()
		ws.bytes.reserve(max(quantizedBytes(t, c), quantizedBytes(m.cfg.Heads, c), quantizedBytes(min(t, feedBlock), m.cfg.Intermediate),
			headBytes(t, c/m.cfg.Heads)))
	}
}

// embed sets x (T x C) to the normed sum of word, position and token-type vectors.
func (m *Encoder) embed(x []float32, in Input) {
	c := m.cfg.Hidden
	seen := 0 // tokens so far that are not padding
	for i, id := range in.IDs {
		position := i
		if m.padPositions {
			position = int(m.cfg.PadID)
			if id != m.cfg.PadID {
				seen++
				position += seen
			}
		}
		row := x[i*c:][:c]
		copy(row, m.words[int(id)*c:])
		if m.types != nil {
			kind := 0
			if in.TypeIDs != nil {
				kind = int(in.TypeIDs[i])
			}
			kernel.Add(row, m.types[kind*c:][:c])
		}
		kernel.Add(row, m.positions[position*c:][:c])
		m.embedNorm.apply(row, m.cfg.NormEps)
	}
}

// apply norms one row in place.
func (n *Norm) apply(row []float32, eps float32) {
	kernel.LayerNorm(row, row, n.Gain, n.Bias, eps)
}

// feedForward takes rows of a layer from the attention's context (rows x C) to the layer's output,
// in place of its input x: output projection, residual and norm, then the two feed-forward products
// with the activation between, residual and norm.
func (m *Encoder) feedForward(x, context []float32, rows int, l *encoderLayer, ws *Workspace) {
	c, f := m.cfg.Hidden, m.cfg.Intermediate
	mark := ws.floats.mark()
	defer ws.floats.release(mark)
	block := min(rows, feedBlock)
	y := ws.floats.take(block * c)
	z := ws.floats.take(block * c)
	step := f
	if l.up.float != nil { // int8 rounds whole rows
		step = min(f, feedColumns)
	}
	wide := ws.floats.take(block * step)
	for r := 0; r < rows; r += block {
		n := min(block, rows-r)
		in := x[r*c:][:n*c]
		l.output.product(y, c, context[r*c:], c, n, ws)
		residualNorm(y, y, in, n, c, &l.attentionNorm, m.cfg.NormEps)
		for from := 0; from < f; {
			to := f
			if from+step < f {
				to = l.up.panelStart(from + step)
			}
			part := wide[:n*(to-from)]
			l.up.columns(part, to-from, y, c, n, from, to, ws)
			m.activation(part)
			l.down.addRows(z, c, part, to-from, n, from, to, ws)
			from = to
		}
		residualNorm(in, z, y, n, c, &l.outputNorm, m.cfg.NormEps)
	}
}

// residualNorm sets dst = norm(y + x), row by row; all are rows x C.
func residualNorm(dst, y, x []float32, rows, c int, n *Norm, eps float32) {
	for i := range rows {
		kernel.AddLayerNorm(dst[i*c:][:c], y[i*c:][:c], x[i*c:][:c], n.Gain, n.Bias, eps)
	}
}

// classifyFirst reads the first token's state: x is at least 1 x C, dst has one place a label.
func (m *Encoder) classifyFirst(dst, x []float32, ws *Workspace, trace *Trace) {
	pooled := ws.floats.take(m.cfg.Hidden)
	kernel.MatMul(pooled, len(pooled), x, m.cfg.Hidden, 1, m.pool)
	m.poolActivation(pooled)
	kernel.MatMul(dst, len(dst), pooled, len(pooled), 1, m.classify)
	if trace != nil {
		trace.Pooled = append([]float32(nil), pooled...)
	}
}

// hidden keeps a copy of the hidden states.
func (t *Trace) hidden(x []float32) {
	if t != nil {
		t.Hidden = append(t.Hidden, append([]float32(nil), x...))
	}
}

// layer makes room for the maps of the next layer: one T x T map a head, or nil without a trace.
func (t *Trace) layer(heads, tokens int) [][]float32 {
	if t == nil {
		return nil
	}
	maps := make([][]float32, heads)
	for h := range maps {
		maps[h] = make([]float32, tokens*tokens)
	}
	t.Attention = append(t.Attention, maps)
	return maps
}

// attend is self-attention of the heads from one to another: qkv is T x 3C with queries, keys and
// values side by side, context gets their channels of the T x C result. mask hides keys; a message
// whose keys are all hidden looks at all of them equally. maps, if not nil, gets the weights of each
// head.
func (m *Encoder) attend(context, qkv []float32, from, to int, mask []uint8, ws *Workspace, maps [][]float32) {
	c := m.cfg.Hidden
	size := c / m.cfg.Heads
	h := heads{
		tokens: len(qkv) / (3 * c), size: size, ld: 3 * c,
		scale: float32(1 / math.Sqrt(float64(size))),
		mask:  mask, int8: m.int8, ws: ws,
	}
	for i := from; i < to; i++ {
		var keep []float32
		if maps != nil {
			keep = maps[i]
		}
		h.attend(context[i*size:], c, h.tokens, qkv[i*size:], qkv[c+i*size:], qkv[2*c+i*size:], keep)
	}
}

func (m *Encoder) attendFloats(t int) int { return headFloats(t, m.cfg.Hidden/m.cfg.Heads) }
