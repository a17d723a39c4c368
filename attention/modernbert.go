package attention

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"misroute/attention/kernel"
)

// ModernBERTParams are the settings and learned numbers of a ModernBERT classifier beyond Config, in
// torch layout.
type ModernBERTParams struct {
	Tokens         []float32 // V x C
	EmbedNorm      Norm
	Layers         []ModernBERTLayer
	Layer          func(i int) (ModernBERTLayer, error) // see EncoderParams
	FinalNorm      Norm
	Pooling        string // "cls": the first token's state; "mean": the mean of the states the mask shows
	Head           Linear // C x C
	HeadActivation string
	HeadNorm       Norm
	Classify       Linear // labels x C
}

// ModernBERTLayer is one layer.
type ModernBERTLayer struct {
	AttentionNorm Norm   // Gain nil in the first layer, which reads the embeddings as they are
	QKV           Linear // 3C x C: queries, keys, values
	Output        Linear // C x C
	FeedNorm      Norm
	GateUp        Linear // 2F x C: the first F are activated and multiply the other F
	Down          Linear // C x F
	Local         bool   // a token sees only the tokens at most Window away
	Window        int
	Theta         float64 // base of the rotary positions
}

// ModernBERT is a pre-norm encoder with rotary positions, gated feed-forward parts, and mostly local
// attention (Warner et al. 2024, "Smarter, Better, Faster, Longer"). A local layer costs T * Window
// instead of T * T, which is what makes thousands of tokens affordable.
type ModernBERT struct {
	cfg        Config
	inputs     Config // cfg without a limit of positions: rotary positions have no table that ends
	parameters int64
	variant    string
	int8       bool

	tokens         []float32
	embedNorm      Norm
	layers         []modernLayer
	finalNorm      Norm
	mean           bool
	head, classify *kernel.Packed
	headNorm       Norm
	headActivation func([]float32)
	activation     func([]float32)
}

type modernLayer struct {
	attentionNorm, feedNorm Norm
	qkv                     matrix // C x 3C
	output                  matrix // C x C
	gateUp                  matrix // C x 2F
	down                    matrix // F x C
	local                   bool
	window                  int
	rotary                  *rotary
}

// NewModernBERT builds the classifier and checks every shape. Like NewEncoder it takes the parameters
// over: matrices are packed and their fields cleared.
func NewModernBERT(cfg Config, p *ModernBERTParams) (*ModernBERT, error) {
	return newModernBERT(cfg, p, false)
}

// NewModernBERTInt8 is NewModernBERT with the matrices of the layers in 8-bit whole numbers; see
// NewEncoderInt8.
func NewModernBERTInt8(cfg Config, p *ModernBERTParams) (*ModernBERT, error) {
	return newModernBERT(cfg, p, true)
}

func newModernBERT(cfg Config, p *ModernBERTParams, int8 bool) (*ModernBERT, error) {
	if err := p.check(&cfg); err != nil {
		return nil, err
	}
	m := &ModernBERT{
		cfg: cfg, inputs: cfg, variant: kernel.Variant(), int8: int8, parameters: p.count(),
		tokens: p.Tokens, embedNorm: p.EmbedNorm, finalNorm: p.FinalNorm, headNorm: p.HeadNorm,
		mean: p.Pooling == "mean", activation: activation(cfg.Activation), headActivation: activation(p.HeadActivation),
	}
	m.inputs.Positions = 0
	if m.activation == nil || m.headActivation == nil {
		return nil, fmt.Errorf("activation %q or %q is not known", cfg.Activation, p.HeadActivation)
	}
	y := layout{arena: kernel.NewArena(p.packedLen(&cfg, int8)), int8: int8}
	rotaries := map[float64]*rotary{}
	for i := range cfg.Layers {
		l, err := p.layer(i, &cfg)
		if err != nil {
			return nil, err
		}
		m.parameters += l.count()
		if rotaries[l.Theta] == nil {
			rotaries[l.Theta] = &rotary{theta: l.Theta, half: cfg.Hidden / cfg.Heads / 2}
		}
		m.layers = append(m.layers, modernLayer{
			attentionNorm: l.AttentionNorm, feedNorm: l.FeedNorm,
			qkv: y.pack(&l.QKV), output: y.pack(&l.Output), gateUp: y.pack(&l.GateUp), down: y.pack(&l.Down),
			local: l.Local, window: l.Window, rotary: rotaries[l.Theta],
		})
	}
	m.head, m.classify = y.packFloat(&p.Head), y.packFloat(&p.Classify)
	return m, nil
}

// packedLen is the memory of all float32 matrices.
func (p *ModernBERTParams) packedLen(c *Config, int8 bool) int {
	layer := kernel.ArenaLen(3*c.Hidden, c.Hidden) + kernel.ArenaLen(c.Hidden, c.Hidden) +
		kernel.ArenaLen(2*c.Intermediate, c.Hidden) + kernel.ArenaLen(c.Hidden, c.Intermediate)
	if int8 {
		layer = 0
	}
	return c.Layers*layer + kernel.ArenaLen(c.Hidden, c.Hidden) + kernel.ArenaLen(len(c.Labels), c.Hidden)
}

// check compares every shape with the configuration.
func (p *ModernBERTParams) check(c *Config) error {
	switch {
	case c.Hidden <= 0 || c.Heads <= 0 || c.Hidden%c.Heads != 0:
		return fmt.Errorf("hidden size %d cannot be cut into %d heads", c.Hidden, c.Heads)
	case c.Hidden/c.Heads%2 != 0:
		return fmt.Errorf("head size %d is odd: rotary positions turn pairs of channels", c.Hidden/c.Heads)
	case c.Intermediate <= 0 || c.VocabSize <= 0 || len(c.Labels) == 0:
		return fmt.Errorf("intermediate size %d, vocabulary %d and %d labels must be positive", c.Intermediate, c.VocabSize, len(c.Labels))
	case !layersFit(p.Layers, p.Layer, c):
		return fmt.Errorf("parameters for %d layers, the configuration says %d", len(p.Layers), c.Layers)
	case p.Pooling != "cls" && p.Pooling != "mean":
		return fmt.Errorf("pooling %q is neither cls nor mean", p.Pooling)
	}
	var s shapes
	s.want("token embeddings", p.Tokens, c.VocabSize, c.Hidden)
	s.norm("embedding norm", &p.EmbedNorm, c.Hidden)
	s.norm("final norm", &p.FinalNorm, c.Hidden)
	s.linear("head", &p.Head, c.Hidden, c.Hidden)
	s.norm("head norm", &p.HeadNorm, c.Hidden)
	s.linear("classifier", &p.Classify, len(c.Labels), c.Hidden)
	return s.err
}

// layer gives layer i with its shapes checked.
func (p *ModernBERTParams) layer(i int, c *Config) (*ModernBERTLayer, error) {
	l, err := layerOf(p.Layers, p.Layer, i)
	if err != nil {
		return nil, err
	}
	var s shapes
	name := fmt.Sprintf("layer %d ", i)
	if l.AttentionNorm.Gain != nil {
		s.norm(name+"attention norm", &l.AttentionNorm, c.Hidden)
	}
	s.linear(name+"query, key and value", &l.QKV, 3*c.Hidden, c.Hidden)
	s.linear(name+"attention output", &l.Output, c.Hidden, c.Hidden)
	s.norm(name+"feed-forward norm", &l.FeedNorm, c.Hidden)
	s.linear(name+"gate and up", &l.GateUp, 2*c.Intermediate, c.Hidden)
	s.linear(name+"down", &l.Down, c.Hidden, c.Intermediate)
	return l, s.err
}

// count is how many numbers were learned, without the layers.
func (p *ModernBERTParams) count() int64 {
	return int64(len(p.Tokens) + p.EmbedNorm.count() + p.FinalNorm.count() + p.Head.count() + p.HeadNorm.count() + p.Classify.count())
}

// count is how many numbers were learned.
func (l *ModernBERTLayer) count() int64 {
	return int64(l.AttentionNorm.count() + l.QKV.count() + l.Output.count() + l.FeedNorm.count() + l.GateUp.count() + l.Down.count())
}

// Config returns what the model says about itself. Its Positions are those the model was made for;
// more are computed as well.
func (m *ModernBERT) Config() *Config { return &m.cfg }

// Parameters is how many numbers were learned.
func (m *ModernBERT) Parameters() int64 { return m.parameters }

// Kernel names the kernel variant that the weights are laid out for.
func (m *ModernBERT) Kernel() string { return m.variant }

// Precision is "float32" or "int8".
func (m *ModernBERT) Precision() string {
	if m.int8 {
		return "int8"
	}
	return "float32"
}

// NewWorkspace returns scratch memory for one goroutine.
func (m *ModernBERT) NewWorkspace() *Workspace { return &Workspace{} }

// Cost counts what Logits computes: a local layer's grid is a band along the diagonal, and under
// "cls" pooling the last layers need few rows.
func (m *ModernBERT) Cost(tokens int) (cells, flops int64) {
	t, c, f := int64(tokens), int64(m.cfg.Hidden), int64(m.cfg.Intermediate)
	for l := range m.layers {
		rows, keys := m.reach(l, tokens)
		pairs := int64(rows) * t
		if layer := &m.layers[l]; layer.local {
			pairs = band(rows, tokens, layer.window)
		}
		cells += int64(m.cfg.Heads) * pairs
		flops += 2 * (int64(keys)*3*c*c + int64(rows)*(c*c+3*c*f) + 2*pairs*c)
	}
	flops += 2 * (c*c + c*int64(len(m.cfg.Labels)))
	return cells, flops
}

// band counts the pairs of the first rows queries with keys at most window away, of t tokens.
func band(rows, t, window int) (pairs int64) {
	for i := range rows {
		pairs += int64(min(t, i+window+1) - max(0, i-window))
	}
	return pairs
}

// reach is how many rows of layer l anybody reads, from the first on, and how many keys those rows
// can see. The classifier reads one row or all; a row of a local layer asks for its neighbours in the
// layer below, a row of a global layer for every token.
func (m *ModernBERT) reach(l, t int) (rows, keys int) {
	rows = t
	if !m.mean {
		rows = 1
	}
	for i := len(m.layers) - 1; ; i-- {
		keys = t
		if m.layers[i].local {
			keys = min(t, rows+m.layers[i].window)
		}
		if i == l {
			return rows, keys
		}
		rows = keys
	}
}

// Logits runs the model on one message.
func (m *ModernBERT) Logits(dst []float32, in Input, ws *Workspace) error {
	return m.forward(dst, in, ws, nil)
}

// Trace runs the model and keeps its attention weights and hidden states.
func (m *ModernBERT) Trace(in Input) (*Trace, error) {
	t := &Trace{Tokens: len(in.IDs), Logits: make([]float32, len(m.cfg.Labels))}
	if err := m.forward(t.Logits, in, m.NewWorkspace(), t); err != nil {
		return nil, err
	}
	return t, nil
}

// forward is the whole model: x += attention(norm(x)), x += feed(norm(x)), layer after layer.
func (m *ModernBERT) forward(dst []float32, in Input, ws *Workspace, trace *Trace) error {
	if err := m.inputs.check(dst, in); err != nil {
		return err
	}
	visible := shown(in.Mask, len(in.IDs))
	if m.mean && visible == 0 {
		return &InputError{"the mask hides every token, there is no mean to classify"}
	}
	whole := trace != nil
	if in.Mask != nil && in.Mask[0] == 0 {
		// A hidden first token may see nothing, and then reads the mean of everything.
		whole = true
	}
	if !whole {
		in = in.first(visible)
	}
	t, c := len(in.IDs), m.cfg.Hidden
	ws.floats.reset()
	ws.floats.reserve(m.workspaceFloats(t))
	if m.int8 {
		ws.bytes.reset()
		ws.bytes.reserve(max(quantizedBytes(t, c), quantizedBytes(min(t, feedBlock), max(c, m.cfg.Intermediate))))
	}
	x := ws.floats.take(t * c)
	normed := ws.floats.take(t * c) // the attention's context too, once the projections have read it
	qkv := ws.floats.take(t * 3 * c)

	m.embed(x, in.IDs)
	trace.hidden(x)
	for i := range m.layers {
		l, rows, keys := &m.layers[i], t, t
		if !whole {
			rows, keys = m.reach(i, t)
		}
		input := x
		if l.attentionNorm.Gain != nil {
			normRows(normed, x, keys, c, &l.attentionNorm, m.cfg.NormEps)
			input = normed
		}
		maps := trace.layer(m.cfg.Heads, t)
		if ws.Width > 1 {
			m.layerShared(x, input, qkv[:keys*3*c], normed, rows, l, in.Mask, ws, maps)
		} else {
			l.qkv.product(qkv, 3*c, input, c, keys, ws)
			l.rotary.rotate(qkv[:keys*3*c], c, rows)
			m.attend(normed, qkv[:keys*3*c], rows, 0, m.cfg.Heads, l, in.Mask, ws, maps)
			m.feedForward(x, normed, rows, l, ws)
		}
		trace.hidden(x)
	}
	m.classifyPooled(dst, x, in.Mask, visible, ws, trace)
	return nil
}

// shown is how many tokens there are up to the last one that the mask shows.
func shown(mask []uint8, tokens int) int {
	if mask == nil {
		return tokens
	}
	for tokens > 0 && mask[tokens-1] == 0 {
		tokens--
	}
	return tokens
}

// first is the input without what follows its first n tokens.
func (in Input) first(n int) Input {
	in.IDs = in.IDs[:n]
	if in.TypeIDs != nil {
		in.TypeIDs = in.TypeIDs[:n]
	}
	if in.Mask != nil {
		in.Mask = in.Mask[:n]
	}
	return in
}

// workspaceFloats is the scratch one message needs; its largest parts grow with T, none with T x T.
func (m *ModernBERT) workspaceFloats(t int) int {
	c := m.cfg.Hidden
	return 5*t*c + min(t, feedBlock)*(2*c+2*m.cfg.Intermediate) + t + headFloats(t, c/m.cfg.Heads) + 3*c + 16*16
}

// embed sets x (T x C) to the normed token vectors. Positions come in with the rotation of queries
// and keys.
func (m *ModernBERT) embed(x []float32, ids []int32) {
	c := m.cfg.Hidden
	for i, id := range ids {
		row := x[i*c:][:c]
		copy(row, m.tokens[int(id)*c:])
		m.embedNorm.apply(row, m.cfg.NormEps)
	}
}

// normRows sets dst = norm(x) for rows rows of C channels.
func normRows(dst, x []float32, rows, c int, n *Norm, eps float32) {
	for i := range rows {
		kernel.LayerNorm(dst[i*c:][:c], x[i*c:][:c], n.Gain, n.Bias, eps)
	}
}

// layerShared is what follows the first norm of a layer, with its rows and heads shared by ws.Width
// goroutines. qkv is keys x 3C; context may be input's memory.
func (m *ModernBERT) layerShared(x, input, qkv, context []float32, rows int, l *modernLayer, mask []uint8, ws *Workspace, maps [][]float32) {
	const tile = 8 // rows
	c := m.cfg.Hidden
	ws.share(len(qkv)/(3*c), tile, func(from, to int, ws *Workspace) {
		l.qkv.product(qkv[from*3*c:], 3*c, input[from*c:], c, to-from, ws)
	})
	l.rotary.rotate(qkv, c, rows)
	ws.share(m.cfg.Heads, 1, func(from, to int, ws *Workspace) {
		m.attend(context, qkv, rows, from, to, l, mask, ws, maps)
	})
	ws.share(rows, tile, func(from, to int, ws *Workspace) {
		m.feedForward(x[from*c:], context[from*c:], to-from, l, ws)
	})
}

// attend is self-attention of the heads from one to another; see Encoder.attend for the shapes. Only
// the first rows queries are computed.
func (m *ModernBERT) attend(context, qkv []float32, rows, from, to int, l *modernLayer, mask []uint8, ws *Workspace, maps [][]float32) {
	c := m.cfg.Hidden
	size := c / m.cfg.Heads
	h := heads{
		tokens: len(qkv) / (3 * c), size: size, ld: 3 * c,
		scale: float32(1 / math.Sqrt(float64(size))),
		local: l.local, window: l.window, ws: ws,
	}
	if mask != nil {
		h.mask = mask[:h.tokens]
	}
	for i := from; i < to; i++ {
		var keep []float32
		if maps != nil {
			keep = maps[i]
		}
		h.attend(context[i*size:], c, rows, qkv[i*size:], qkv[c+i*size:], qkv[2*c+i*size:], keep)
	}
}

// feedForward adds the attention's output projection and the gated feed-forward part to rows of x.
func (m *ModernBERT) feedForward(x, context []float32, rows int, l *modernLayer, ws *Workspace) {
	c, f := m.cfg.Hidden, m.cfg.Intermediate
	mark := ws.floats.mark()
	defer ws.floats.release(mark)
	block := min(rows, feedBlock)
	y := ws.floats.take(block * c)
	z := ws.floats.take(block * c)
	wide := ws.floats.take(block * 2 * f)
	for r := 0; r < rows; r += block {
		n := min(block, rows-r)
		out := x[r*c:][:n*c]
		l.output.product(y, c, context[r*c:], c, n, ws)
		kernel.Add(out, y[:n*c])
		normRows(y, out, n, c, &l.feedNorm, m.cfg.NormEps)
		l.gateUp.product(wide, 2*f, y, c, n, ws)
		for i := range n {
			m.gate(wide[i*2*f:][:2*f])
		}
		l.down.product(z, c, wide, 2*f, n, ws)
		kernel.Add(out, z[:n*c])
	}
}

// gate sets the first half of row to activation(first half) * second half.
func (m *ModernBERT) gate(row []float32) {
	gate, up := row[:len(row)/2], row[len(row)/2:]
	m.activation(gate)
	for j := range gate {
		gate[j] *= up[j]
	}
}

// classifyPooled norms the states (T x C, of which "cls" pooling reads the first row), pools them and
// runs the head: dense, activation, norm, classifier.
func (m *ModernBERT) classifyPooled(dst, x []float32, mask []uint8, visible int, ws *Workspace, trace *Trace) {
	c := m.cfg.Hidden
	pooled, state := ws.floats.take(c), ws.floats.take(c)
	clear(pooled)
	count := 0
	for i := range visible {
		if m.mean && (mask == nil || mask[i] != 0) {
			kernel.LayerNorm(state, x[i*c:][:c], m.finalNorm.Gain, m.finalNorm.Bias, m.cfg.NormEps)
			kernel.Add(pooled, state)
			count++
		}
	}
	if m.mean {
		kernel.Scale(pooled, 1/float32(count))
	} else {
		kernel.LayerNorm(pooled, x[:c], m.finalNorm.Gain, m.finalNorm.Bias, m.cfg.NormEps)
	}
	kernel.MatMul(state, c, pooled, c, 1, m.head)
	m.headActivation(state)
	m.headNorm.apply(state, m.cfg.NormEps)
	kernel.MatMul(dst, len(dst), state, c, 1, m.classify)
	if trace != nil {
		trace.Pooled = append([]float32(nil), state...)
		last := trace.Hidden[len(trace.Hidden)-1]
		normRows(last, last, len(last)/c, c, &m.finalNorm, m.cfg.NormEps)
	}
}

// rotary holds the angles of rotary positions (Su et al. 2021): at position p, channels j and j + half
// of a head turn by p * theta^(-j/half). The table grows with the longest message seen and is shared
// by all goroutines.
type rotary struct {
	theta float64
	half  int
	grow  sync.Mutex
	table atomic.Pointer[[]float32] // a position's cosines, then its sines
}

// angles is the table for at least n positions.
func (r *rotary) angles(n int) []float32 {
	wide := 2 * r.half
	if t := r.table.Load(); t != nil && len(*t) >= n*wide {
		return *t
	}
	r.grow.Lock()
	defer r.grow.Unlock()
	var old []float32
	if t := r.table.Load(); t != nil {
		old = *t
	}
	if len(old) >= n*wide {
		return old
	}
	n = (n + 511) / 512 * 512
	table := append(make([]float32, 0, n*wide), old...)
	for p := len(old) / wide; p < n; p++ {
		row := table[p*wide : (p+1)*wide]
		for j := range r.half {
			sin, cos := math.Sincos(float64(p) * math.Pow(r.theta, -float64(j)/float64(r.half)))
			row[j], row[r.half+j] = float32(cos), float32(sin)
		}
	}
	table = table[:n*wide]
	r.table.Store(&table)
	return table
}

// rotate turns the keys of every token in qkv (T x 3C, heads side by side) and the first rows queries.
func (r *rotary) rotate(qkv []float32, c, rows int) {
	tokens := len(qkv) / (3 * c)
	table := r.angles(tokens)
	for p := range tokens {
		cos := table[p*2*r.half:][:r.half]
		sin := table[p*2*r.half+r.half:][:r.half]
		from := c // keys only
		if p < rows {
			from = 0
		}
		for at := from; at < 2*c; at += 2 * r.half {
			low := qkv[p*3*c+at:][:r.half]
			high := qkv[p*3*c+at+r.half:][:r.half]
			for j, a := range low {
				b := high[j]
				low[j] = a*cos[j] - b*sin[j]
				high[j] = b*cos[j] + a*sin[j]
			}
		}
	}
}
