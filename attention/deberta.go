package attention

import (
	"fmt"
	"math"

	"misroute/attention/kernel"
)

// DeBERTaParams are the settings and learned numbers of a DeBERTa-v2 or v3 classifier beyond Config,
// in torch layout.
type DeBERTaParams struct {
	Words     []float32 // V x E; E is C unless Project is there
	Positions []float32 // rows x E, added to the words; nil = positions come in as distances only
	Types     []float32 // Config.TypeVocab x E; nil = none
	Project   Linear    // C x E, without bias; Weight nil = none, and E = C
	EmbedNorm Norm
	Layers    []DeBERTaLayer
	Layer     func(i int) (DeBERTaLayer, error) // see EncoderParams

	Distances    Distances
	Relative     []float32 // Distances.Rows() x C: the table of distances; nil = attention by content alone
	RelativeNorm Norm      // of the table; Gain nil = none
	ContentToPos bool      // c2p: a query looks for distances
	PosToContent bool      // p2c: a key answers to distances
	// ScaleTerms is how many terms the scores' variance was divided by in training: 1, and 1 for each
	// of c2p and p2c that the configuration lists, whether they are computed or not.
	ScaleTerms int

	Pool           Linear // C x C
	PoolActivation string
	Classify       Linear // labels x C
}

// DeBERTaLayer is one layer. PosKey and PosQuery project the table of distances; a model that shares
// those projections with the content leaves them empty.
type DeBERTaLayer struct {
	LayerParams
	PosKey, PosQuery Linear // C x C
}

// DeBERTa is a post-norm encoder with disentangled attention (He et al. 2020; v3: He et al. 2021): the
// score of a pair is the sum of content to content, content to position and position to content, where
// position means the distance from key to query. Beyond that it is an Encoder.
type DeBERTa struct {
	encoder   Encoder // without embeddings; its layers, pooler and classifier
	inputs    Config  // the configuration with the positions that end, if any do
	embedding int     // E
	project   *kernel.Packed
	scale     float32

	distances *distanceTable // nil = attention by content alone
	posKeys   [][]*kernel.Packed
	posQuery  [][]*kernel.Packed
}

// NewDeBERTa builds the classifier and checks every shape. Like NewEncoder it takes the parameters
// over: matrices are packed and their fields cleared.
func NewDeBERTa(cfg Config, p *DeBERTaParams) (*DeBERTa, error) { return newDeBERTa(cfg, p, false) }

// NewDeBERTaInt8 is NewDeBERTa with the matrices of the layers in 8-bit whole numbers; see
// NewEncoderInt8. The tables of distances stay float32.
func NewDeBERTaInt8(cfg Config, p *DeBERTaParams) (*DeBERTa, error) { return newDeBERTa(cfg, p, true) }

func newDeBERTa(cfg Config, p *DeBERTaParams, int8 bool) (*DeBERTa, error) {
	if err := p.check(&cfg); err != nil {
		return nil, err
	}
	m := &DeBERTa{
		encoder: Encoder{
			cfg: cfg, variant: kernel.Variant(), int8: int8, parameters: p.count(),
			words: p.Words, positions: p.Positions, types: p.Types, embedNorm: p.EmbedNorm,
			activation: activation(cfg.Activation), poolActivation: activation(p.PoolActivation),
		},
		inputs:    cfg,
		embedding: len(p.Words) / cfg.VocabSize,
		scale:     float32(1 / math.Sqrt(float64(cfg.Hidden/cfg.Heads*p.ScaleTerms))),
	}
	if m.encoder.activation == nil || m.encoder.poolActivation == nil {
		return nil, fmt.Errorf("activation %q or %q is not known", cfg.Activation, p.PoolActivation)
	}
	m.inputs.Positions = len(p.Positions) / m.embedding
	if p.Project.Weight != nil {
		m.project = p.Project.pack()
	}
	var table []float32
	if p.Relative != nil && (p.ContentToPos || p.PosToContent) {
		m.distances = &distanceTable{Distances: p.Distances}
		if most := p.Distances.most(); most > 0 && (m.inputs.Positions == 0 || m.inputs.Positions > most) {
			m.inputs.Positions = most
		}
		table = p.normedTable(&cfg)
	}
	y := layout{arena: kernel.NewArena(p.packedLen(&cfg, int8)), int8: int8}
	for i := range cfg.Layers {
		l, err := p.layer(i, &cfg)
		if err != nil {
			return nil, err
		}
		m.encoder.parameters += l.count() + int64(l.PosKey.count()+l.PosQuery.count())
		m.addLayer(l, p, table, &y)
	}
	m.encoder.pool, m.encoder.classify = y.packFloat(&p.Pool), y.packFloat(&p.Classify)
	return m, nil
}

// asEncoder is what the parameters share with an Encoder's, without the layers.
func (p *DeBERTaParams) asEncoder() EncoderParams {
	return EncoderParams{Words: p.Words, Positions: p.Positions, Types: p.Types, EmbedNorm: p.EmbedNorm, Pool: p.Pool, Classify: p.Classify}
}

// layer gives layer i with its shapes checked.
func (p *DeBERTaParams) layer(i int, c *Config) (*DeBERTaLayer, error) {
	l, err := layerOf(p.Layers, p.Layer, i)
	if err != nil {
		return nil, err
	}
	var s shapes
	name := fmt.Sprintf("layer %d ", i)
	s.layer(name, &l.LayerParams, c)
	if l.PosKey.Weight != nil {
		s.linear(name+"key of distances", &l.PosKey, c.Hidden, c.Hidden)
	}
	if l.PosQuery.Weight != nil {
		s.linear(name+"query of distances", &l.PosQuery, c.Hidden, c.Hidden)
	}
	return l, s.err
}

// packedLen is the memory of all float32 matrices, those of the projected tables included.
func (p *DeBERTaParams) packedLen(c *Config, int8 bool) int {
	e := p.asEncoder()
	total := e.packedLen(c, int8)
	table := c.Layers * c.Heads * kernel.ArenaLen(p.Distances.Rows(), c.Hidden/c.Heads)
	if p.ContentToPos {
		total += table
	}
	if p.PosToContent {
		total += table
	}
	return total
}

// normedTable is the table of distances as the layers read it, last row first: the farther right a
// key is from its query, the higher its row, so that rows ascend with the key.
func (p *DeBERTaParams) normedTable(cfg *Config) []float32 {
	c := cfg.Hidden
	rows := p.Distances.Rows()
	table := make([]float32, len(p.Relative))
	for i := range rows {
		row := table[(rows-1-i)*c:][:c]
		copy(row, p.Relative[i*c:])
		if p.RelativeNorm.Gain != nil {
			p.RelativeNorm.apply(row, cfg.NormEps)
		}
	}
	return table
}

// addLayer packs one layer. What it makes of the table of distances depends on nothing but learned
// numbers, so it is computed here, once.
func (m *DeBERTa) addLayer(l *DeBERTaLayer, p *DeBERTaParams, table []float32, y *layout) {
	if table != nil {
		posKey, posQuery := &l.PosKey, &l.PosQuery
		if posKey.Weight == nil {
			posKey = &l.Key
		}
		if posQuery.Weight == nil {
			posQuery = &l.Query
		}
		if p.ContentToPos {
			m.posKeys = append(m.posKeys, m.projectTable(table, posKey, y.arena))
		}
		if p.PosToContent {
			m.posQuery = append(m.posQuery, m.projectTable(table, posQuery, y.arena))
		}
	}
	m.encoder.layers = append(m.encoder.layers, packLayer(&l.LayerParams, y))
}

// projectTable projects the table (rows x C) and cuts it into heads: HS x rows each, to be multiplied
// from the left by queries or keys.
func (m *DeBERTa) projectTable(table []float32, l *Linear, arena *kernel.Arena) []*kernel.Packed {
	c := m.encoder.cfg.Hidden
	size, rows := c/m.encoder.cfg.Heads, len(table)/c
	projected := make([]float32, rows*c)
	kernel.MatMul(projected, c, table, c, rows, kernel.Pack(l.Weight, l.Bias, c, c))
	heads := make([]*kernel.Packed, m.encoder.cfg.Heads)
	part := make([]float32, rows*size)
	for h := range heads {
		for i := range rows {
			copy(part[i*size:][:size], projected[i*c+h*size:])
		}
		heads[h] = arena.Pack(part, nil, rows, size)
	}
	return heads
}

// check compares every shape with the configuration.
func (p *DeBERTaParams) check(c *Config) error {
	switch {
	case c.Hidden <= 0 || c.Heads <= 0 || c.Hidden%c.Heads != 0:
		return fmt.Errorf("hidden size %d cannot be cut into %d heads", c.Hidden, c.Heads)
	case c.Intermediate <= 0 || c.VocabSize <= 0 || len(c.Labels) == 0:
		return fmt.Errorf("intermediate size %d, vocabulary %d and %d labels must be positive", c.Intermediate, c.VocabSize, len(c.Labels))
	case !layersFit(p.Layers, p.Layer, c):
		return fmt.Errorf("parameters for %d layers, the configuration says %d", len(p.Layers), c.Layers)
	case p.ScaleTerms < 1:
		return fmt.Errorf("scores of %d terms", p.ScaleTerms)
	case p.Relative != nil && p.Distances.Span < 1:
		return fmt.Errorf("a table of distances that spans %d", p.Distances.Span)
	}
	embedding := c.Hidden
	var s shapes
	if p.Project.Weight != nil {
		embedding = len(p.Words) / c.VocabSize
		s.linear("embedding projection", &p.Project, c.Hidden, embedding)
	}
	s.want("word embeddings", p.Words, c.VocabSize, embedding)
	if p.Positions != nil {
		s.want("position embeddings", p.Positions, len(p.Positions)/max(1, embedding), embedding)
	}
	if c.TypeVocab > 0 || p.Types != nil {
		s.want("token type embeddings", p.Types, c.TypeVocab, embedding)
	}
	s.norm("embedding norm", &p.EmbedNorm, c.Hidden)
	if p.Relative != nil {
		s.want("table of distances", p.Relative, p.Distances.Rows(), c.Hidden)
	}
	if p.RelativeNorm.Gain != nil {
		s.norm("norm of the table of distances", &p.RelativeNorm, c.Hidden)
	}
	s.linear("pooler", &p.Pool, c.Hidden, c.Hidden)
	s.linear("classifier", &p.Classify, len(c.Labels), c.Hidden)
	return s.err
}

// count is how many numbers were learned, without the layers.
func (p *DeBERTaParams) count() int64 {
	rest := p.asEncoder()
	return rest.count() + int64(len(p.Relative)+p.RelativeNorm.count()+p.Project.count())
}

// Config returns what the model says about itself. Its Positions are those the model was made for;
// where positions come in as distances only, more are computed as well.
func (m *DeBERTa) Config() *Config { return &m.encoder.cfg }

// Parameters is how many numbers were learned.
func (m *DeBERTa) Parameters() int64 { return m.encoder.parameters }

// Kernel names the kernel variant that the weights are laid out for.
func (m *DeBERTa) Kernel() string { return m.encoder.variant }

// Precision is "float32" or "int8".
func (m *DeBERTa) Precision() string { return m.encoder.Precision() }

// NewWorkspace returns scratch memory for one goroutine.
func (m *DeBERTa) NewWorkspace() *Workspace { return &Workspace{} }

// Cost is the encoder's, and the products of queries and keys with the table of distances.
func (m *DeBERTa) Cost(tokens int) (cells, flops int64) {
	cells, flops = m.encoder.costProjected(tokens)
	if m.distances == nil {
		return cells, flops
	}
	rows, c := int64(m.distances.Rows()), int64(m.encoder.cfg.Hidden)
	t, layers := int64(tokens), int64(len(m.encoder.layers))
	used := min(rows, 2*t-1)
	if m.posKeys != nil {
		flops += 2 * ((layers-1)*t + 1) * used * c
	}
	if m.posQuery != nil {
		flops += 2 * layers * t * used * c
	}
	return cells, flops
}

// Logits runs the model on one message.
func (m *DeBERTa) Logits(dst []float32, in Input, ws *Workspace) error {
	return m.forward(dst, in, ws, nil)
}

// Trace runs the model and keeps its attention weights and hidden states.
func (m *DeBERTa) Trace(in Input) (*Trace, error) {
	t := &Trace{Tokens: len(in.IDs), Logits: make([]float32, len(m.encoder.cfg.Labels))}
	if err := m.forward(t.Logits, in, m.NewWorkspace(), t); err != nil {
		return nil, err
	}
	return t, nil
}

// forward is the whole model; as in Encoder, the last layer computes the first row alone.
func (m *DeBERTa) forward(dst []float32, in Input, ws *Workspace, trace *Trace) error {
	if err := m.inputs.check(dst, in); err != nil {
		return err
	}
	if trace == nil && in.Mask != nil && in.Mask[0] != 0 {
		// What is hidden at the end is seen by nobody; only a hidden first token, which sees the mean
		// of everything, would need it.
		in = in.first(shown(in.Mask, len(in.IDs)))
	}
	t, c := len(in.IDs), m.encoder.cfg.Hidden
	ws.floats.reset()
	ws.floats.reserve(m.encoder.workspaceFloats(t) + m.relativeFloats(t))
	m.encoder.reserveBytes(t, ws)
	x := ws.floats.take(t * c)
	qkv := ws.floats.take(t * 3 * c)
	context := ws.floats.take(t * c)

	m.embed(x, in, ws)
	trace.hidden(x)
	for i := range m.encoder.layers {
		rows, maps := t, trace.layer(m.encoder.cfg.Heads, t)
		if i == len(m.encoder.layers)-1 && trace == nil {
			rows = 1
		}
		if ws.Width > 1 {
			m.layerShared(x, qkv, context, rows, i, in.Mask, ws, maps)
		} else {
			l := &m.encoder.layers[i]
			l.qkv.product(qkv, 3*c, x, c, t, ws)
			m.attend(context, qkv, rows, 0, m.encoder.cfg.Heads, i, in.Mask, ws, maps)
			m.encoder.feedForward(x, context, rows, l, ws)
		}
		trace.hidden(x)
	}
	m.encoder.classifyFirst(dst, x, ws, trace)
	return nil
}

// embed sets x (T x C) to the normed sum of word, position and token-type vectors, projected from E
// to C channels where the model has smaller embeddings. Rows of hidden tokens are zero.
func (m *DeBERTa) embed(x []float32, in Input, ws *Workspace) {
	c, e := m.encoder.cfg.Hidden, m.embedding
	mark := ws.floats.mark()
	defer ws.floats.release(mark)
	sum := ws.floats.take(e)
	for i, id := range in.IDs {
		row := x[i*c:][:c]
		if in.Mask != nil && in.Mask[i] == 0 {
			clear(row)
			continue
		}
		copy(sum, m.encoder.words[int(id)*e:])
		if m.encoder.positions != nil {
			kernel.Add(sum, m.encoder.positions[i*e:][:e])
		}
		if m.encoder.types != nil {
			kind := 0
			if in.TypeIDs != nil {
				kind = int(in.TypeIDs[i])
			}
			kernel.Add(sum, m.encoder.types[kind*e:][:e])
		}
		if m.project != nil {
			kernel.MatMul(row, c, sum, e, 1, m.project)
		} else {
			copy(row, sum)
		}
		m.encoder.embedNorm.apply(row, m.encoder.cfg.NormEps)
	}
}

// layerShared is a whole layer with its rows and heads shared by ws.Width goroutines.
func (m *DeBERTa) layerShared(x, qkv, context []float32, rows, layer int, mask []uint8, ws *Workspace, maps [][]float32) {
	const tile = 8 // rows
	c, l := m.encoder.cfg.Hidden, &m.encoder.layers[layer]
	ws.share(len(x)/c, tile, func(from, to int, ws *Workspace) {
		l.qkv.product(qkv[from*3*c:], 3*c, x[from*c:], c, to-from, ws)
	})
	ws.share(m.encoder.cfg.Heads, 1, func(from, to int, ws *Workspace) {
		m.attend(context, qkv, rows, from, to, layer, mask, ws, maps)
	})
	ws.share(rows, tile, func(from, to int, ws *Workspace) {
		m.encoder.feedForward(x[from*c:], context[from*c:], to-from, l, ws)
	})
}

// attend is self-attention of the heads from one to another of one layer; see Encoder.attend for the
// shapes. Only the first rows queries are computed.
func (m *DeBERTa) attend(context, qkv []float32, rows, from, to, layer int, mask []uint8, ws *Workspace, maps [][]float32) {
	c := m.encoder.cfg.Hidden
	size := c / m.encoder.cfg.Heads
	mark := ws.floats.mark()
	defer ws.floats.release(mark)
	h := heads{
		tokens: len(qkv) / (3 * c), size: size, ld: 3 * c,
		scale: m.scale, mask: mask, pairs: true, ws: ws,
	}
	var relative relativeScores
	if m.distances != nil {
		relative = m.distances.scores(h.tokens, rows, m.posQuery != nil, ws)
		h.relative = &relative
	}
	for i := from; i < to; i++ {
		var keep []float32
		if maps != nil {
			keep = maps[i]
		}
		keys := qkv[c+i*size:]
		if m.posKeys != nil {
			relative.posKeys = m.posKeys[layer][i]
		}
		if m.posQuery != nil {
			relative.answer(keys, 3*c, m.posQuery[layer][i])
		}
		h.attend(context[i*size:], c, rows, qkv[i*size:], keys, qkv[2*c+i*size:], keep)
	}
}

func (m *DeBERTa) relativeFloats(t int) int {
	if m.distances == nil {
		return m.embedding
	}
	return relativeFloats(t, m.distances.Rows()) + m.embedding
}
