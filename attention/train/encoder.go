package train

import (
	"fmt"

	"misroute/attention"
	"misroute/attention/kernel"
)

// network is a differentiable router: what the loop trains.
type network interface {
	parameters() *Parameters
	// gradients adds the derivative of the batch's loss to gradient (as long as the parameters) and
	// returns the loss. total is Loss.total of the whole batch, of which examples may be a part.
	gradients(gradient []float32, examples []Example, loss *Loss, total float64, t *tape) float64
	// Model is the router with the present parameters; it shares nothing with them.
	Model() (attention.Model, error)
	shape() (labels, vocabulary int)
	longest() int // most tokens a message may have; 0: no limit
}

// Encoder trains the post-norm encoders: BERT, DistilBERT, RoBERTa. The forward pass is
// attention.Encoder's; a test holds the two against each other.
//
// Only the first token's last state is classified, so the last layer computes that row alone, forward
// and backward: the skipped rows have a derivative of exactly zero.
type Encoder struct {
	Config attention.Config
	all    Parameters
	p      attention.EncoderParams // views of all.Values
	rows   int                     // of the position table
	act    activation
}

// NewEncoder makes an encoder with drawn parameters. deviation is the standard deviation of the
// drawing; 0 fits it to each matrix.
func NewEncoder(c attention.Config, deviation float64, seed uint64) (*Encoder, error) {
	e, err := newEncoder(c, c.Positions)
	if err != nil {
		return nil, err
	}
	e.all.initialise(deviation, seed)
	if deviation == 0 {
		e.orderPrior(seed)
	}
	return e, nil
}

// FromEncoder makes an encoder that goes on from p, with a new head for c.Labels.
func FromEncoder(c attention.Config, p *attention.EncoderParams, seed uint64) (*Encoder, error) {
	if c.Hidden <= 0 || len(p.Positions)%c.Hidden != 0 {
		return nil, fmt.Errorf("%d numbers of positions for a hidden size of %d", len(p.Positions), c.Hidden)
	}
	e, err := newEncoder(c, len(p.Positions)/c.Hidden)
	if err != nil {
		return nil, err
	}
	e.all.initialise(0.02, seed)
	copyParams(&e.p, p)
	return e, nil
}

// copyParams copies everything but the classifier, whose queues may differ.
func copyParams(to, from *attention.EncoderParams) {
	linear := func(a, b attention.Linear) {
		copy(a.Weight, b.Weight)
		copy(a.Bias, b.Bias)
	}
	norm := func(a, b attention.Norm) {
		copy(a.Gain, b.Gain)
		copy(a.Bias, b.Bias)
	}
	copy(to.Words, from.Words)
	copy(to.Positions, from.Positions)
	copy(to.Types, from.Types)
	norm(to.EmbedNorm, from.EmbedNorm)
	for i := range to.Layers {
		a, b := &to.Layers[i], &from.Layers[i]
		linear(a.Query, b.Query)
		linear(a.Key, b.Key)
		linear(a.Value, b.Value)
		linear(a.Output, b.Output)
		norm(a.AttentionNorm, b.AttentionNorm)
		linear(a.Up, b.Up)
		linear(a.Down, b.Down)
		norm(a.OutputNorm, b.OutputNorm)
	}
	linear(to.Pool, from.Pool)
}

func newEncoder(c attention.Config, rows int) (*Encoder, error) {
	act, ok := activations[c.Activation]
	switch {
	case !ok:
		return nil, fmt.Errorf("activation %q has no derivative here", c.Activation)
	case c.ModelType != "bert" && c.ModelType != "distilbert" && c.ModelType != "roberta" && c.ModelType != "xlm-roberta":
		return nil, fmt.Errorf("model type %q cannot be trained here", c.ModelType)
	case c.Hidden <= 0 || c.Heads <= 0 || c.Hidden%c.Heads != 0 || c.Layers <= 0 || c.Intermediate <= 0 || c.VocabSize <= 0 || rows <= 0:
		return nil, fmt.Errorf("shape of %d layers, %d heads, hidden %d, %d: every number must be positive and the heads divide the hidden size", c.Layers, c.Heads, c.Hidden, c.Intermediate)
	case len(c.Labels) < 2:
		return nil, fmt.Errorf("%d queues; a router needs at least two", len(c.Labels))
	}
	e := &Encoder{Config: c, rows: rows, act: act}
	size := layout{}
	e.view(&size)
	values := layout{vector: make([]float32, size.used)}
	e.p = e.view(&values)
	e.all = Parameters{Values: values.vector, Parts: values.parts}
	return e, nil
}

// view lays the encoder's parameters, or their gradients, over a vector.
func (e *Encoder) view(l *layout) (p attention.EncoderParams) {
	c := &e.Config
	p.Words = l.take("words", c.VocabSize, c.Hidden, true)
	p.Positions = l.take("positions", e.rows, c.Hidden, true)
	if c.TypeVocab > 0 {
		p.Types = l.take("types", c.TypeVocab, c.Hidden, true)
	}
	p.EmbedNorm = l.norm("embed norm", c.Hidden)
	for i := range c.Layers {
		l.depth = i + 1
		name := fmt.Sprintf("layer %d ", i)
		qkv := l.sideBySide(c.Hidden, c.Hidden, name+"query", name+"key", name+"value")
		p.Layers = append(p.Layers, attention.LayerParams{
			Query: qkv[0], Key: qkv[1], Value: qkv[2],
			Output:        l.linear(name+"output", c.Hidden, c.Hidden),
			AttentionNorm: l.norm(name+"attention norm", c.Hidden),
			Up:            l.linear(name+"up", c.Intermediate, c.Hidden),
			Down:          l.linear(name+"down", c.Hidden, c.Intermediate),
			OutputNorm:    l.norm(name+"output norm", c.Hidden),
		})
	}
	l.depth = c.Layers + 1
	p.Pool = l.linear("pool", c.Hidden, c.Hidden)
	p.Classify = l.linear("classify", len(c.Labels), c.Hidden)
	return p
}

// keysValues is the key and value layer as one: sideBySide laid them next to each other.
func keysValues(l *attention.LayerParams) attention.Linear {
	n := len(l.Key.Weight) + len(l.Value.Weight)
	b := len(l.Key.Bias) + len(l.Value.Bias)
	return attention.Linear{In: l.Key.In, Out: l.Key.Out + l.Value.Out, Weight: l.Key.Weight[:n:n], Bias: l.Key.Bias[:b:b]}
}

// Params are the present parameters, in attention's form; a copy, since attention.NewEncoder takes
// them over.
func (e *Encoder) Params() *attention.EncoderParams {
	copied := layout{vector: append([]float32(nil), e.all.Values...)}
	p := e.view(&copied)
	return &p
}

func (e *Encoder) parameters() *Parameters { return &e.all }

// Model is the router with the present parameters; it shares nothing with them.
func (e *Encoder) Model() (attention.Model, error) { return attention.NewEncoder(e.Config, e.Params()) }

func (e *Encoder) padPositions() bool {
	return e.Config.ModelType == "roberta" || e.Config.ModelType == "xlm-roberta"
}

func (e *Encoder) longest() int {
	if e.padPositions() {
		return e.rows - int(e.Config.PadID) - 1
	}
	return e.rows
}

// messages are the examples of a batch as rows: message b is rows at[b] to at[b+1].
type messages struct {
	at  []int
	ids []int32
	// positions are rows of the position table; types of the table of token types, nil for all 0.
	positions, types []int32
}

// kind is the token type of row i.
func (m *messages) kind(i int) int {
	if m.types == nil {
		return 0
	}
	return int(m.types[i])
}

func (e *Encoder) messages(examples []Example) messages {
	m := messages{at: []int{0}}
	for _, x := range examples {
		seen := int32(0)
		for i, id := range x.IDs {
			position := int32(i)
			if e.padPositions() {
				if position = e.Config.PadID; id != e.Config.PadID {
					seen++
					position += seen
				}
			}
			m.ids = append(m.ids, id)
			m.positions = append(m.positions, position)
		}
		m.at = append(m.at, len(m.ids))
	}
	return m
}

// encoderPass is one batch on its way through the encoder.
type encoderPass struct {
	messages
	summed    []float32 // embeddings before their norm
	embedNorm normed
	embedDrop dropped
	layers    []layerPass
	asked     []float32 // the states of the rows asked for: B x C, the first of each message, to classify
	firstDrop dropped   // RoBERTa only
	dense     []float32 // B x C: the pooler, before its activation
	pooled    []float32 // after it
	poolDrop  dropped
	logits    []float32
}

// layerPass is what one layer keeps. Its output rows are all rows, or the first of each message.
type layerPass struct {
	x        []float32 // T x C input
	xq       []float32 // R x C: the rows of x that ask
	q, kv    []float32
	attended []attended
	context  []float32
	outDrop  dropped
	norm1    normed
	middle   []float32 // R x C after the first norm
	up, wide []float32 // R x F before and after the activation
	downDrop dropped
	norm2    normed
	y        []float32
	asks     *asks // nil: every row
}

// asks are the rows of a batch whose states somebody wants to know: of the last layer, only those are
// computed. Message b's are rows[at[b]:at[b+1]], which are rows of the whole batch.
type asks struct{ rows, at []int }

// queries is where each message's queries begin, given where its rows do.
func (s *layerPass) queries(at []int) []int {
	if s.asks != nil {
		return s.asks.at
	}
	return at
}

// firsts asks for the first row of each message.
func (m *messages) firsts() *asks {
	a := &asks{rows: m.at[:len(m.at)-1]}
	for b := range m.at {
		a.at = append(a.at, b)
	}
	return a
}

func (e *Encoder) forward(t *tape, m messages) *encoderPass {
	s := e.encode(t, m, m.firsts())
	if e.padPositions() {
		s.firstDrop = t.drop(s.asked)
	}
	s.dense = t.linear(s.asked, e.p.Pool)
	s.pooled = t.take(len(s.dense))
	copy(s.pooled, s.dense)
	e.poolActivation().forward(s.pooled)
	s.poolDrop = t.drop(s.pooled)
	s.logits = t.linear(s.pooled, e.p.Classify)
	return s
}

// encode runs the layers and leaves the last states of the rows asked for.
func (e *Encoder) encode(t *tape, m messages, of *asks) *encoderPass {
	c := e.Config.Hidden
	s := &encoderPass{messages: m, layers: make([]layerPass, e.Config.Layers)}
	s.summed = t.take(len(m.ids) * c)
	for i, id := range m.ids {
		row := s.summed[i*c:][:c]
		copy(row, e.p.Words[int(id)*c:])
		kernel.Add(row, e.p.Positions[int(m.positions[i])*c:][:c])
		if e.p.Types != nil {
			kernel.Add(row, e.p.Types[m.kind(i)*c:][:c])
		}
	}
	x, norm := t.layerNorm(s.summed, e.p.EmbedNorm, e.Config.NormEps)
	s.embedNorm, s.embedDrop = norm, t.drop(x)
	for i := range s.layers {
		l := &s.layers[i]
		if i == len(s.layers)-1 {
			l.asks = of
		}
		x = e.layer(t, l, &e.p.Layers[i], x, m.at, nil)
	}
	s.asked = x
	return s
}

func (e *Encoder) poolActivation() activation {
	if e.Config.ModelType == "distilbert" {
		return activations["relu"]
	}
	return activations["tanh"]
}

// layer is one encoder layer over the rows of x. mask, if not nil, hides keys.
func (e *Encoder) layer(t *tape, s *layerPass, p *attention.LayerParams, x []float32, at []int, mask []uint8) []float32 {
	c := e.Config.Hidden
	s.x, s.xq = x, x
	queries := s.queries(at)
	if s.asks != nil {
		s.xq = t.take(len(s.asks.rows) * c)
		for i, row := range s.asks.rows {
			copy(s.xq[i*c:][:c], x[row*c:])
		}
	}
	s.q, s.kv = t.linear(s.xq, p.Query), t.linear(x, keysValues(p))
	s.context = t.take(len(s.xq))
	s.attended = make([]attended, len(at)-1)
	for b := range s.attended {
		from, n := at[b], at[b+1]-at[b]
		q := queries[b]
		if queries[b+1] == q {
			continue // nobody asks
		}
		a := &s.attended[b]
		*a = attended{queries: queries[b+1] - q, keys: n, heads: e.Config.Heads, size: c / e.Config.Heads,
			q: s.q[q*c:], kv: s.kv[from*2*c:]}
		if mask != nil {
			a.mask = mask[from:][:n]
		}
		t.attend(s.context[q*c:], a)
	}
	out := t.linear(s.context, p.Output)
	s.outDrop = t.drop(out)
	kernel.Add(out, s.xq)
	s.middle, s.norm1 = t.layerNorm(out, p.AttentionNorm, e.Config.NormEps)
	s.up = t.linear(s.middle, p.Up)
	s.wide = t.take(len(s.up))
	copy(s.wide, s.up)
	e.act.forward(s.wide)
	down := t.linear(s.wide, p.Down)
	s.downDrop = t.drop(down)
	kernel.Add(down, s.middle)
	s.y, s.norm2 = t.layerNorm(down, p.OutputNorm, e.Config.NormEps)
	return s.y
}

// layerBack turns dy into dx, all rows of the layer's input.
func (e *Encoder) layerBack(t *tape, s *layerPass, p, g *attention.LayerParams, dy []float32, at []int) (dx []float32) {
	c := e.Config.Hidden
	dsum := t.zero(len(s.middle)) // in the sum that the second norm reads
	t.layerNormBack(dsum, dy, s.norm2, p.OutputNorm, g.OutputNorm)
	dmiddle, ddown := t.take(len(dsum)), dsum
	copy(dmiddle, dsum) // the residual
	s.downDrop.back(ddown)
	dwide := t.linearBackTo(ddown, s.wide, p.Down, g.Down)
	e.act.backward(dwide, s.up, s.wide, t.take(len(s.up)))
	t.linearBack(dmiddle, dwide, s.middle, p.Up, g.Up)

	dout := t.zero(len(s.middle))
	t.layerNormBack(dout, dmiddle, s.norm1, p.AttentionNorm, g.AttentionNorm)
	dxq := t.take(len(dout))
	copy(dxq, dout)
	s.outDrop.back(dout)
	dcontext := t.linearBackTo(dout, s.context, p.Output, g.Output)
	dq, dkv := t.take(len(s.q)), t.take(len(s.kv))
	queries := s.queries(at)
	for b := range s.attended {
		q := queries[b]
		if queries[b+1] == q {
			clear(dkv[at[b]*2*c : at[b+1]*2*c])
			continue
		}
		t.attendBack(dq[q*c:], dkv[at[b]*2*c:], dcontext[q*c:], &s.attended[b])
	}
	t.linearBack(dxq, dq, s.xq, p.Query, g.Query)
	if s.asks == nil {
		dx = dxq
	} else {
		dx = t.zero(len(s.x))
		for i, row := range s.asks.rows {
			copy(dx[row*c:][:c], dxq[i*c:])
		}
	}
	t.linearBack(dx, dkv, s.x, keysValues(p), keysValues(g))
	return dx
}

func (e *Encoder) gradients(gradient []float32, examples []Example, loss *Loss, total float64, t *tape) (sum float64) {
	return e.backward(gradient, e.forward(t, e.messages(examples)), examples, loss, total, t)
}

func (e *Encoder) backward(gradient []float32, s *encoderPass, examples []Example, loss *Loss, total float64, t *tape) (sum float64) {
	labels := len(e.Config.Labels)
	for b, x := range examples {
		sum += loss.row(s.logits[b*labels:][:labels], x.Label, total)
	}
	g := e.view(&layout{vector: gradient})
	dpooled := t.linearBackTo(s.logits, s.pooled, e.p.Classify, g.Classify)
	s.poolDrop.back(dpooled)
	// Dropout is behind the activation: its own value is the dropped one only where it was kept, and
	// elsewhere the derivative is zero already, but the scale has to come off.
	if s.poolDrop.kept != nil {
		kernel.Scale(s.pooled, 1/s.poolDrop.scale)
	}
	e.poolActivation().backward(dpooled, s.dense, s.pooled, nil)
	dx := t.linearBackTo(dpooled, s.asked, e.p.Pool, g.Pool)
	s.firstDrop.back(dx)
	e.encodeBack(t, s, &g, dx)
	return sum
}

// encodeBack adds the gradients of the layers and embeddings, given dx, the derivative in the states
// asked for.
func (e *Encoder) encodeBack(t *tape, s *encoderPass, g *attention.EncoderParams, dx []float32) {
	for i := len(s.layers) - 1; i >= 0; i-- {
		dx = e.layerBack(t, &s.layers[i], &e.p.Layers[i], &g.Layers[i], dx, s.at)
	}
	s.embedDrop.back(dx)
	dsum := t.zero(len(dx))
	t.layerNormBack(dsum, dx, s.embedNorm, e.p.EmbedNorm, g.EmbedNorm)
	c := e.Config.Hidden
	for i, id := range s.ids {
		row := dsum[i*c:][:c]
		kernel.Add(g.Words[int(id)*c:][:c], row)
		kernel.Add(g.Positions[int(s.positions[i])*c:][:c], row)
		if g.Types != nil {
			kernel.Add(g.Types[s.kind(i)*c:][:c], row)
		}
	}
}

// ScaleHead multiplies every logit by factor.
func (e *Encoder) ScaleHead(factor float32) {
	kernel.Scale(e.p.Classify.Weight, factor)
	kernel.Scale(e.p.Classify.Bias, factor)
}
