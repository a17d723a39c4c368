package attention

import (
	"fmt"
	"math"

	"misroute/attention/kernel"
)

// MixerModelType is the model_type of a [Mixer] in config.json.
const MixerModelType = "misroute-ladder"

// The rungs of the ladder: how a token hears of the others. Each shows what the one before it lacks.
const (
	MixNone       = "words"               // not at all
	MixAverage    = "average"             // the mean of all, everyone with an equal say
	MixSimilarity = "similarity"          // those that resemble it: softmax of raw dot products, nothing learned
	MixRecurrent  = "recurrent"           // a note handed down the line (a GRU), as it arrives at the end
	MixAttention  = "attention"           // learned query, key and value, one head, blind for order
	MixPositions  = "attention+positions" // the same, and every token knows where it stands
)

// Mixes lists the rungs from the lowest.
func Mixes() []string {
	return []string{MixNone, MixAverage, MixSimilarity, MixRecurrent, MixAttention, MixPositions}
}

// MixerParams are the learned numbers of a [Mixer], in torch layout. Parts that the mixer does not have
// are empty.
type MixerParams struct {
	Words                     []float32 // V x C
	Positions                 []float32 // rows x C; attention+positions
	Query, Key, Value, Output Linear    // C x C; attention
	Input, Hidden             Linear    // 3C x C: reset, update and new gate; recurrent
	Norm                      Norm      // C
	Up                        Linear    // F x C
	Classify                  Linear    // labels x F
}

// Mixer is a router of one layer in which only the mixing of tokens differs from rung to rung:
//
//	x[i] = words[id[i]] (+ positions[i])
//	m    = mix(x)                              T x C
//	u[i] = GELU(Up norm(x[i] + m[i]))          what token i says, knowing m[i]
//	logits = Classify mean(u)
//
// Without mixing u[i] is one fixed vector a word: the router of words.
type Mixer struct {
	cfg        Config
	mix        string
	parameters int64
	variant    string

	words, positions []float32
	qkv, output      *kernel.Packed
	input            *kernel.Packed
	hidden           Linear
	norm             Norm
	up, classify     *kernel.Packed
}

// NewMixer builds the rung mix and checks every shape. It takes the parameters over. Of c it reads
// Labels, Hidden, Intermediate, VocabSize, NormEps and TrainedCap.
func NewMixer(c Config, mix string, p *MixerParams) (*Mixer, error) {
	if err := p.check(&c, mix); err != nil {
		return nil, err
	}
	c.ModelType, c.Layers, c.Heads, c.Activation = MixerModelType, 1, 1, "gelu"
	c.Positions = len(p.Positions) / c.Hidden
	m := &Mixer{cfg: c, mix: mix, parameters: p.count(), variant: kernel.Variant(),
		words: p.Words, positions: p.Positions, hidden: p.Hidden, norm: p.Norm}
	if p.Query.Weight != nil {
		var y layout
		qkv := y.sideBySide(&p.Query, &p.Key, &p.Value)
		m.qkv, m.output = qkv.pack(), p.Output.pack()
	}
	if mix == MixRecurrent {
		m.input = p.Input.pack()
	}
	m.up, m.classify = p.Up.pack(), p.Classify.pack()
	return m, nil
}

func (p *MixerParams) check(c *Config, mix string) error {
	switch {
	case c.Hidden <= 0 || c.Intermediate <= 0 || c.VocabSize <= 0:
		return fmt.Errorf("hidden size %d, intermediate size %d and vocabulary %d must be positive", c.Hidden, c.Intermediate, c.VocabSize)
	case len(c.Labels) < 2:
		return fmt.Errorf("%d queues; a router needs at least two", len(c.Labels))
	}
	var s shapes
	s.want("words", p.Words, c.VocabSize, c.Hidden)
	positions, heads, gates := 0, 0, 0
	switch mix {
	case MixNone, MixAverage, MixSimilarity:
	case MixRecurrent:
		gates = 3 * c.Hidden
	case MixPositions:
		if positions = len(p.Positions) / c.Hidden; positions == 0 {
			return &ShapeError{"positions", len(p.Positions), 1, c.Hidden}
		}
		heads = c.Hidden
	case MixAttention:
		heads = c.Hidden
	default:
		return fmt.Errorf("no mixer %q; known are %v", mix, Mixes())
	}
	s.want("positions", p.Positions, positions, c.Hidden)
	s.linear("query", &p.Query, heads, c.Hidden)
	s.linear("key", &p.Key, heads, c.Hidden)
	s.linear("value", &p.Value, heads, c.Hidden)
	s.linear("output", &p.Output, heads, c.Hidden)
	s.linear("input", &p.Input, gates, c.Hidden)
	s.linear("hidden", &p.Hidden, gates, c.Hidden)
	s.norm("norm", &p.Norm, c.Hidden)
	s.linear("up", &p.Up, c.Intermediate, c.Hidden)
	s.linear("classifier", &p.Classify, len(c.Labels), c.Intermediate)
	return s.err
}

func (p *MixerParams) count() int64 {
	total := len(p.Words) + len(p.Positions) + p.Norm.count()
	for _, l := range []*Linear{&p.Query, &p.Key, &p.Value, &p.Output, &p.Input, &p.Hidden, &p.Up, &p.Classify} {
		total += l.count()
	}
	return int64(total)
}

// Config returns what the model says about itself.
func (m *Mixer) Config() *Config { return &m.cfg }

// Mix names the rung.
func (m *Mixer) Mix() string { return m.mix }

// Parameters is how many numbers were learned.
func (m *Mixer) Parameters() int64 { return m.parameters }

// Kernel names the kernel variant that the weights are laid out for.
func (m *Mixer) Kernel() string { return m.variant }

// Precision is "float32".
func (m *Mixer) Precision() string { return "float32" }

// NewWorkspace returns scratch memory for one goroutine.
func (m *Mixer) NewWorkspace() *Workspace { return &Workspace{} }

// Cost of the mixer, the layer behind it and the classifier.
func (m *Mixer) Cost(tokens int) (cells, flops int64) {
	t, c, f := int64(tokens), int64(m.cfg.Hidden), int64(m.cfg.Intermediate)
	flops = 2*t*c*f + 2*f*int64(len(m.cfg.Labels))
	switch m.mix {
	case MixAverage:
		flops += t * c
	case MixSimilarity:
		cells = t * t
		flops += 4 * t * t * c
	case MixRecurrent:
		flops += 2 * t * 6 * c * c
	case MixAttention, MixPositions:
		cells = t * t
		flops += 4*t*t*c + 2*t*4*c*c
	}
	return cells, flops
}

// Logits runs the router on one message.
func (m *Mixer) Logits(dst []float32, in Input, ws *Workspace) error {
	return m.forward(dst, in, ws, nil)
}

// Trace runs the router and keeps its weights: one map of one head, all zeros but where the rung looks
// at tokens.
func (m *Mixer) Trace(in Input) (*Trace, error) {
	t := &Trace{Tokens: len(in.IDs), Logits: make([]float32, len(m.cfg.Labels))}
	if err := m.forward(t.Logits, in, m.NewWorkspace(), t); err != nil {
		return nil, err
	}
	return t, nil
}

func (m *Mixer) forward(dst []float32, in Input, ws *Workspace, trace *Trace) error {
	if err := m.cfg.check(dst, in); err != nil {
		return err
	}
	t, c, f := len(in.IDs), m.cfg.Hidden, m.cfg.Intermediate
	ws.floats.reset()
	ws.floats.reserve(t*(6*c+f) + 16*c + f + headFloats(t, c) + 16*16)
	x := ws.floats.take(t * c)
	for i, id := range in.IDs {
		row := x[i*c:][:c]
		copy(row, m.words[int(id)*c:])
		if m.positions != nil {
			kernel.Add(row, m.positions[i*c:][:c])
		}
	}
	trace.hidden(x)
	var keep []float32
	if maps := trace.layer(1, t); maps != nil {
		keep = maps[0]
	}
	mixed := m.mixed(x, t, in.Mask, ws, keep)
	read := 0
	said := ws.floats.take(t * f)
	for i := range t {
		row := x[i*c:][:c]
		kernel.Add(row, mixed[i*c:][:c])
		m.norm.apply(row, m.cfg.NormEps)
	}
	kernel.MatMul(said, f, x, c, t, m.up)
	kernel.GELU(said)
	pooled := ws.floats.take(f)
	clear(pooled)
	for i := range t {
		if in.Mask == nil || in.Mask[i] != 0 {
			kernel.Add(pooled, said[i*f:][:f])
			read++
		}
	}
	if read > 0 {
		kernel.Scale(pooled, 1/float32(read))
	}
	kernel.MatMul(dst, len(dst), pooled, f, 1, m.classify)
	trace.hidden(x)
	if trace != nil {
		trace.Pooled = append([]float32(nil), pooled...)
	}
	return nil
}

// mixed is what every token hears of the others, T x C. keep, if not nil, gets the weights.
func (m *Mixer) mixed(x []float32, t int, mask []uint8, ws *Workspace, keep []float32) []float32 {
	c := m.cfg.Hidden
	out := ws.floats.take(t * c)
	clear(out)
	switch m.mix {
	case MixAverage, MixRecurrent:
		note := out[:c] // the same for everyone
		if m.mix == MixAverage {
			averageInto(note, x, t, mask)
		} else {
			m.recur(note, x, t, mask, ws)
		}
		for i := 1; i < t; i++ {
			copy(out[i*c:][:c], note)
		}
	case MixSimilarity:
		h := heads{tokens: t, size: c, ld: c, scale: 1, mask: mask, ws: ws}
		h.attend(out, c, t, x, x, x, keep)
	case MixAttention, MixPositions:
		qkv := ws.floats.take(t * 3 * c)
		context := ws.floats.take(t * c)
		kernel.MatMul(qkv, 3*c, x, c, t, m.qkv)
		h := heads{tokens: t, size: c, ld: 3 * c, scale: float32(1 / math.Sqrt(float64(c))), mask: mask, ws: ws}
		h.attend(context, c, t, qkv, qkv[c:], qkv[2*c:], keep)
		kernel.MatMul(out, c, context, c, t, m.output)
	}
	return out
}

// averageInto sets note to the mean of the rows that are not masked.
func averageInto(note, x []float32, t int, mask []uint8) {
	read := 0
	for i := range t {
		if mask == nil || mask[i] != 0 {
			kernel.Add(note, x[i*len(note):][:len(note)])
			read++
		}
	}
	if read > 0 {
		kernel.Scale(note, 1/float32(read))
	}
}

// recur is a gated recurrent unit (Cho et al. 2014, as PyTorch's GRU computes it), token after token:
//
//	r = sigmoid(Ir x + Hr h), z = sigmoid(Iz x + Hz h), n = tanh(In x + r * (Hn h))
//	h = (1 - z) n + z h
func (m *Mixer) recur(h, x []float32, t int, mask []uint8, ws *Workspace) {
	c := len(h)
	in := ws.floats.take(t * 3 * c)
	kernel.MatMul(in, 3*c, x, c, t, m.input)
	from := ws.floats.take(3 * c)
	for i := range t {
		if mask != nil && mask[i] == 0 {
			continue
		}
		for j := range from {
			from[j] = m.hidden.Bias[j] + kernel.Dot(m.hidden.Weight[j*c:][:c], h)
		}
		GRUStep(h, in[i*3*c:][:3*c], from, nil)
	}
}

// GRUStep moves the note h (C) one token on. in and from are 3C: what the token and the old note say to
// the reset, update and new gate. gates, if not nil (3C), gets the gates' values.
func GRUStep(h, in, from, gates []float32) {
	c := len(h)
	for j := range h {
		r := float32(sigmoid(float64(in[j] + from[j])))
		z := float32(sigmoid(float64(in[c+j] + from[c+j])))
		n := float32(math.Tanh(float64(in[2*c+j] + r*from[2*c+j])))
		h[j] = (1-z)*n + z*h[j]
		if gates != nil {
			gates[j], gates[c+j], gates[2*c+j] = r, z, n
		}
	}
}
