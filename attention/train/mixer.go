package train

import (
	"context"

	"misroute/attention"
	"misroute/attention/kernel"
)

// Mixer trains one rung of the ladder; see attention.Mixer for what it computes.
type Mixer struct {
	Config attention.Config
	Mix    string
	all    Parameters
	p      attention.MixerParams // views of all.Values
	rows   int                   // of the position table
}

// NewMixer makes a rung with drawn parameters. c.Positions matters to attention+positions alone.
func NewMixer(c attention.Config, mix string, seed uint64) (*Mixer, error) {
	m := &Mixer{Config: c, Mix: mix}
	if mix == attention.MixPositions {
		m.rows = c.Positions
	}
	size := layout{}
	m.view(&size)
	values := layout{vector: make([]float32, size.used)}
	m.p = m.view(&values)
	m.all = Parameters{Values: values.vector, Parts: values.parts}
	m.all.initialise(0, seed)
	if _, err := m.Model(); err != nil { // the router checks the shapes
		return nil, err
	}
	return m, nil
}

func (m *Mixer) view(l *layout) (p attention.MixerParams) {
	c := &m.Config
	p.Words = l.take("words", c.VocabSize, c.Hidden, true)
	switch m.Mix {
	case attention.MixPositions, attention.MixAttention:
		if m.rows > 0 {
			p.Positions = l.take("positions", m.rows, c.Hidden, true)
		}
		qkv := l.sideBySide(c.Hidden, c.Hidden, "query", "key", "value")
		p.Query, p.Key, p.Value = qkv[0], qkv[1], qkv[2]
		p.Output = l.linear("output", c.Hidden, c.Hidden)
	case attention.MixRecurrent:
		p.Input = l.linear("input", 3*c.Hidden, c.Hidden)
		p.Hidden = l.linear("hidden", 3*c.Hidden, c.Hidden)
	}
	l.depth = 1
	p.Norm = l.norm("norm", c.Hidden)
	p.Up = l.linear("up", c.Intermediate, c.Hidden)
	l.depth = 2
	p.Classify = l.linear("classify", len(c.Labels), c.Intermediate)
	return p
}

// Params are the present parameters; a copy, since attention.NewMixer takes them over.
func (m *Mixer) Params() *attention.MixerParams {
	copied := layout{vector: append([]float32(nil), m.all.Values...)}
	p := m.view(&copied)
	return &p
}

// Fit trains the rung; see Options.
func (m *Mixer) Fit(ctx context.Context, training, held []Example, o Options, from *State) (Judgement, error) {
	return fit(ctx, m, training, held, o, from)
}

// Model is the router with the present parameters.
func (m *Mixer) Model() (attention.Model, error) {
	return attention.NewMixer(m.Config, m.Mix, m.Params())
}

func (m *Mixer) parameters() *Parameters         { return &m.all }
func (m *Mixer) longest() int                    { return m.rows }
func (m *Mixer) shape() (labels, vocabulary int) { return len(m.Config.Labels), m.Config.VocabSize }

// mixerPass is one batch on its way through a rung.
type mixerPass struct {
	at       []int
	ids      []int32
	x        []float32 // T x C
	attended []attended
	q, kv    []float32 // T x C, T x 2C
	context  []float32
	in       []float32   // T x 3C: what tokens say to the gates
	notes    []mixerNote // of each message
	norm     normed
	z        []float32 // T x C
	up, said []float32 // T x F
	drop     dropped
	pooled   []float32 // B x F
	poolDrop dropped
	logits   []float32
}

// mixerNote is the life of one message's note.
type mixerNote struct {
	h     []float32 // (n+1) x C: before each token, and at the end
	from  []float32 // n x 3C: what the note says to the gates
	gates []float32 // n x 3C: their values
}

func (m *Mixer) gradients(gradient []float32, examples []Example, loss *Loss, total float64, t *tape) (sum float64) {
	s := m.forward(t, examples)
	labels := len(m.Config.Labels)
	for b, x := range examples {
		sum += loss.row(s.logits[b*labels:][:labels], x.Label, total)
	}
	m.backward(t, s, m.view(&layout{vector: gradient}))
	return sum
}

func (m *Mixer) forward(t *tape, examples []Example) *mixerPass {
	c, f := m.Config.Hidden, m.Config.Intermediate
	s := &mixerPass{at: []int{0}}
	for _, e := range examples {
		s.ids = append(s.ids, e.IDs...)
		s.at = append(s.at, len(s.ids))
	}
	s.x = t.take(len(s.ids) * c)
	for b := range examples {
		for i := s.at[b]; i < s.at[b+1]; i++ {
			row := s.x[i*c:][:c]
			copy(row, m.p.Words[int(s.ids[i])*c:])
			if m.rows > 0 {
				kernel.Add(row, m.p.Positions[(i-s.at[b])*c:][:c])
			}
		}
	}
	sum := m.mixed(t, s)
	kernel.Add(sum, s.x)
	s.z, s.norm = t.layerNorm(sum, m.p.Norm, m.Config.NormEps)
	s.drop = t.drop(s.z)
	s.up = t.linear(s.z, m.p.Up)
	s.said = t.take(len(s.up))
	copy(s.said, s.up)
	kernel.GELU(s.said)
	s.pooled = t.zero(len(examples) * f)
	for b := range examples {
		pooled := s.pooled[b*f:][:f]
		for i := s.at[b]; i < s.at[b+1]; i++ {
			kernel.Add(pooled, s.said[i*f:][:f])
		}
		kernel.Scale(pooled, 1/float32(s.at[b+1]-s.at[b]))
	}
	s.poolDrop = t.drop(s.pooled)
	s.logits = t.linear(s.pooled, m.p.Classify)
	return s
}

// mixed is what every token hears of the others, T x C.
func (m *Mixer) mixed(t *tape, s *mixerPass) []float32 {
	c := m.Config.Hidden
	switch m.Mix {
	case attention.MixAverage, attention.MixRecurrent:
		out := t.zero(len(s.x))
		if m.Mix == attention.MixRecurrent {
			s.in = t.linear(s.x, m.p.Input)
		}
		for b := range len(s.at) - 1 {
			from, to := s.at[b], s.at[b+1]
			note := out[from*c:][:c]
			if m.Mix == attention.MixAverage {
				for i := from; i < to; i++ {
					kernel.Add(note, s.x[i*c:][:c])
				}
				kernel.Scale(note, 1/float32(to-from))
			} else {
				copy(note, m.recur(t, s, from, to))
			}
			for i := from + 1; i < to; i++ {
				copy(out[i*c:][:c], note)
			}
		}
		return out
	case attention.MixSimilarity:
		s.q = s.x
		s.kv = t.take(2 * len(s.x))
		for i := range len(s.ids) {
			copy(s.kv[i*2*c:][:c], s.x[i*c:])
			copy(s.kv[i*2*c+c:][:c], s.x[i*c:])
		}
		return m.attend(t, s)
	case attention.MixAttention, attention.MixPositions:
		s.q, s.kv = t.linear(s.x, m.p.Query), t.linear(s.x, m.keysValues(&m.p))
		return t.linear(m.attend(t, s), m.p.Output)
	}
	return t.zero(len(s.x))
}

func (m *Mixer) keysValues(p *attention.MixerParams) attention.Linear {
	return keysValues(&attention.LayerParams{Key: p.Key, Value: p.Value})
}

func (m *Mixer) attend(t *tape, s *mixerPass) []float32 {
	c := m.Config.Hidden
	s.context = t.take(len(s.x))
	s.attended = make([]attended, len(s.at)-1)
	for b := range s.attended {
		from, n := s.at[b], s.at[b+1]-s.at[b]
		s.attended[b] = attended{queries: n, keys: n, heads: 1, size: c, q: s.q[from*c:], kv: s.kv[from*2*c:], raw: m.Mix == attention.MixSimilarity}
		t.attend(s.context[from*c:], &s.attended[b])
	}
	return s.context
}

// recur hands the note down one message and returns it as it arrives.
func (m *Mixer) recur(t *tape, s *mixerPass, from, to int) []float32 {
	c, n := m.Config.Hidden, to-from
	note := mixerNote{h: t.take((n + 1) * c), from: t.take(n * 3 * c), gates: t.take(n * 3 * c)}
	clear(note.h[:c])
	for i := range n {
		h := note.h[i*c:][:c]
		said := note.from[i*3*c:][:3*c]
		for j := range said {
			said[j] = m.p.Hidden.Bias[j] + kernel.Dot(m.p.Hidden.Weight[j*c:][:c], h)
		}
		next := note.h[(i+1)*c:][:c]
		copy(next, h)
		attention.GRUStep(next, s.in[(from+i)*3*c:][:3*c], said, note.gates[i*3*c:][:3*c])
	}
	s.notes = append(s.notes, note)
	return note.h[n*c:]
}

// recurBack takes the derivative in the arriving note back to the first token: din (T x 3C) gets what
// goes to the tokens, g what goes to the parameters.
func (m *Mixer) recurBack(t *tape, note *mixerNote, dh, din []float32, g *attention.MixerParams) {
	c := m.Config.Hidden
	dfrom := t.take(3 * c)
	for i := len(note.gates)/(3*c) - 1; i >= 0; i-- {
		h, from, gates, d := note.h[i*c:][:c], note.from[i*3*c:], note.gates[i*3*c:], din[i*3*c:]
		for j, v := range dh {
			r, z, n := gates[j], gates[c+j], gates[2*c+j]
			dn := v * (1 - z) * (1 - n*n)
			dz := v * (h[j] - n) * z * (1 - z)
			dr := dn * from[2*c+j] * r * (1 - r)
			d[j], d[c+j], d[2*c+j] = dr, dz, dn
			dfrom[j], dfrom[c+j], dfrom[2*c+j] = dr, dz, dn*r
			dh[j] = v * z
		}
		for j, v := range dfrom {
			kernel.Axpy(dh, v, m.p.Hidden.Weight[j*c:][:c])
			kernel.Axpy(g.Hidden.Weight[j*c:][:c], v, h)
			g.Hidden.Bias[j] += v
		}
	}
}

func (m *Mixer) backward(t *tape, s *mixerPass, g attention.MixerParams) {
	c, f := m.Config.Hidden, m.Config.Intermediate
	dpooled := t.linearBackTo(s.logits, s.pooled, m.p.Classify, g.Classify)
	s.poolDrop.back(dpooled)
	dsaid := t.take(len(s.said))
	for b := range len(s.at) - 1 {
		share := dpooled[b*f:][:f]
		kernel.Scale(share, 1/float32(s.at[b+1]-s.at[b]))
		for i := s.at[b]; i < s.at[b+1]; i++ {
			copy(dsaid[i*f:][:f], share)
		}
	}
	geluBack(dsaid, s.up, s.said, t.take(len(s.up)))
	dz := t.linearBackTo(dsaid, s.z, m.p.Up, g.Up)
	s.drop.back(dz)
	dx := t.zero(len(s.x)) // of the sum x + mixed; the residual makes it x's too
	t.layerNormBack(dx, dz, s.norm, m.p.Norm, g.Norm)
	m.mixedBack(t, s, dx, &g)
	for b := range len(s.at) - 1 {
		for i := s.at[b]; i < s.at[b+1]; i++ {
			row := dx[i*c:][:c]
			kernel.Add(g.Words[int(s.ids[i])*c:][:c], row)
			if m.rows > 0 {
				kernel.Add(g.Positions[(i-s.at[b])*c:][:c], row)
			}
		}
	}
}

// mixedBack adds to dx what reaches the tokens through the mixer; dx starts as the derivative in both.
func (m *Mixer) mixedBack(t *tape, s *mixerPass, dx []float32, g *attention.MixerParams) {
	c := m.Config.Hidden
	switch m.Mix {
	case attention.MixAverage, attention.MixRecurrent:
		din := t.zero(len(s.in))
		for b := range len(s.at) - 1 {
			from, to := s.at[b], s.at[b+1]
			dnote := t.zero(c)
			for i := from; i < to; i++ {
				kernel.Add(dnote, dx[i*c:][:c])
			}
			if m.Mix == attention.MixRecurrent {
				m.recurBack(t, &s.notes[b], dnote, din[from*3*c:to*3*c], g)
				continue
			}
			kernel.Scale(dnote, 1/float32(to-from))
			for i := from; i < to; i++ {
				kernel.Add(dx[i*c:][:c], dnote)
			}
		}
		if m.Mix == attention.MixRecurrent {
			t.linearBack(dx, din, s.x, m.p.Input, g.Input)
		}
	case attention.MixSimilarity:
		dkv := t.take(len(s.kv))
		dq := t.take(len(s.q))
		m.attendBack(t, s, dq, dkv, dx)
		kernel.Add(dx, dq)
		for i := range len(s.ids) {
			kernel.Add(dx[i*c:][:c], dkv[i*2*c:][:c])
			kernel.Add(dx[i*c:][:c], dkv[i*2*c+c:][:c])
		}
	case attention.MixAttention, attention.MixPositions:
		dcontext := t.linearBackTo(dx, s.context, m.p.Output, g.Output)
		dq, dkv := t.take(len(s.q)), t.take(len(s.kv))
		m.attendBack(t, s, dq, dkv, dcontext)
		t.linearBack(dx, dq, s.x, m.p.Query, g.Query)
		t.linearBack(dx, dkv, s.x, m.keysValues(&m.p), m.keysValues(g))
	}
}

func (m *Mixer) attendBack(t *tape, s *mixerPass, dq, dkv, dcontext []float32) {
	c := m.Config.Hidden
	for b := range s.attended {
		from := s.at[b]
		t.attendBack(dq[from*c:], dkv[from*2*c:], dcontext[from*c:], &s.attended[b])
	}
}
