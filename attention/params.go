package attention

import "fmt"

// ShapeError names a parameter whose shape does not fit the configuration.
type ShapeError struct {
	Name      string
	Have      int // numbers
	Rows, Col int // wanted
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("parameter %s has %d numbers, want %d x %d", e.Name, e.Have, e.Rows, e.Col)
}

// check compares every shape with the configuration.
func (p *EncoderParams) check(c *Config) error {
	switch {
	case c.Hidden <= 0 || c.Heads <= 0 || c.Hidden%c.Heads != 0:
		return fmt.Errorf("hidden size %d cannot be cut into %d heads", c.Hidden, c.Heads)
	case c.Intermediate <= 0 || c.VocabSize <= 0 || len(c.Labels) == 0:
		return fmt.Errorf("intermediate size %d, vocabulary %d and %d labels must be positive", c.Intermediate, c.VocabSize, len(c.Labels))
	case !layersFit(p.Layers, p.Layer, c):
		return fmt.Errorf("parameters for %d layers, the configuration says %d", len(p.Layers), c.Layers)
	case len(p.Positions) == 0 || len(p.Positions)%c.Hidden != 0:
		return &ShapeError{"position embeddings", len(p.Positions), 1, c.Hidden}
	case c.PadID < 0:
		return fmt.Errorf("padding id %d is negative", c.PadID)
	}
	var s shapes
	s.want("word embeddings", p.Words, c.VocabSize, c.Hidden)
	if c.TypeVocab > 0 || p.Types != nil {
		s.want("token type embeddings", p.Types, c.TypeVocab, c.Hidden)
	}
	s.norm("embedding norm", &p.EmbedNorm, c.Hidden)
	s.linear("pooler", &p.Pool, c.Hidden, c.Hidden)
	s.linear("classifier", &p.Classify, len(c.Labels), c.Hidden)
	return s.err
}

// shapes collects the first shape that is wrong.
type shapes struct{ err error }

func (s *shapes) want(name string, data []float32, rows, columns int) {
	if s.err == nil && len(data) != rows*columns {
		s.err = &ShapeError{name, len(data), rows, columns}
	}
}

func (s *shapes) linear(name string, l *Linear, out, in int) {
	l.Out, l.In = out, in
	s.want(name+" weight", l.Weight, out, in)
	if l.Bias != nil {
		s.want(name+" bias", l.Bias, 1, out)
	}
}

func (s *shapes) layer(name string, l *LayerParams, c *Config) {
	s.linear(name+"query", &l.Query, c.Hidden, c.Hidden)
	s.linear(name+"key", &l.Key, c.Hidden, c.Hidden)
	s.linear(name+"value", &l.Value, c.Hidden, c.Hidden)
	s.linear(name+"attention output", &l.Output, c.Hidden, c.Hidden)
	s.norm(name+"attention norm", &l.AttentionNorm, c.Hidden)
	s.linear(name+"up", &l.Up, c.Intermediate, c.Hidden)
	s.linear(name+"down", &l.Down, c.Hidden, c.Intermediate)
	s.norm(name+"output norm", &l.OutputNorm, c.Hidden)
}

func (s *shapes) norm(name string, n *Norm, size int) {
	s.want(name+" gain", n.Gain, 1, size)
	if n.Bias != nil {
		s.want(name+" bias", n.Bias, 1, size)
	}
}

// layersFit says whether there are as many layers as the configuration says, in a slice or to be asked
// for one by one.
func layersFit[L any](layers []L, ask func(int) (L, error), c *Config) bool {
	return c.Layers > 0 && (len(layers) == c.Layers || len(layers) == 0 && ask != nil)
}

// layerOf gives layer i of either.
func layerOf[L any](layers []L, ask func(int) (L, error), i int) (*L, error) {
	if len(layers) > 0 {
		return &layers[i], nil
	}
	l, err := ask(i)
	return &l, err
}

// layer gives layer i with its shapes checked.
func (p *EncoderParams) layer(i int, c *Config) (*LayerParams, error) {
	l, err := layerOf(p.Layers, p.Layer, i)
	if err != nil {
		return nil, err
	}
	var s shapes
	s.layer(fmt.Sprintf("layer %d ", i), l, c)
	return l, s.err
}

// count is how many numbers were learned, without the layers.
func (p *EncoderParams) count() int64 {
	return int64(len(p.Words) + len(p.Positions) + len(p.Types) + p.EmbedNorm.count() + p.Pool.count() + p.Classify.count())
}

// count is how many numbers were learned.
func (l *LayerParams) count() (total int64) {
	for _, part := range []*Linear{&l.Query, &l.Key, &l.Value, &l.Output, &l.Up, &l.Down} {
		total += int64(part.count())
	}
	return total + int64(l.AttentionNorm.count()+l.OutputNorm.count())
}

func (l *Linear) count() int { return len(l.Weight) + len(l.Bias) }
func (n *Norm) count() int   { return len(n.Gain) + len(n.Bias) }
