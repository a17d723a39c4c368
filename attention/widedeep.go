package attention

import "fmt"

// WideDeepModelType is the model_type of a [WideDeep] in config.json.
const WideDeepModelType = "misroute-wide-deep"

// WideDeep is two routers whose logits add (Cheng et al. 2016, "Wide & Deep Learning"): a [Bag] that
// reads the whole message at linear cost, and a model with attention that reads its first tokens. What
// the window cuts off is still heard, though only word by word.
//
// To the outside it has no limit on positions: it cuts for its deep part itself.
type WideDeep struct {
	config Config
	wide   *Bag
	deep   Model
	window int // tokens the deep part reads
}

// NewWideDeep joins two routers of the same queues and vocabulary. window is how many tokens the deep
// part reads, specials included.
func NewWideDeep(wide *Bag, deep Model, window int) (*WideDeep, error) {
	w, d := wide.Config(), deep.Config()
	switch {
	case len(w.Labels) != len(d.Labels):
		return nil, fmt.Errorf("the wide part has %d queues, the deep part %d", len(w.Labels), len(d.Labels))
	case w.VocabSize != d.VocabSize:
		return nil, fmt.Errorf("the wide part has %d tokens, the deep part %d", w.VocabSize, d.VocabSize)
	case window < 2 || d.Positions > 0 && window > d.Positions:
		return nil, fmt.Errorf("a window of %d tokens; the deep part has positions for %d", window, d.Positions)
	}
	for i, label := range w.Labels {
		if label != d.Labels[i] {
			return nil, fmt.Errorf("queue %d is %q to the wide part and %q to the deep part", i, label, d.Labels[i])
		}
	}
	c := *d
	c.ModelType, c.Positions, c.TrainedCap = WideDeepModelType, 0, 0
	return &WideDeep{config: c, wide: wide, deep: deep, window: window}, nil
}

// Config returns what the model says about itself: the sizes of its deep part, and no limit on
// positions.
func (m *WideDeep) Config() *Config { return &m.config }

// Wide is the part that reads words.
func (m *WideDeep) Wide() *Bag { return m.wide }

// Deep is the part that reads the window.
func (m *WideDeep) Deep() Model { return m.deep }

// Window is how many tokens the deep part reads.
func (m *WideDeep) Window() int { return m.window }

// Parameters of both parts.
func (m *WideDeep) Parameters() int64 { return m.wide.Parameters() + m.deep.Parameters() }

// Kernel of the deep part.
func (m *WideDeep) Kernel() string { return m.deep.Kernel() }

// Precision of the deep part.
func (m *WideDeep) Precision() string { return m.deep.Precision() }

// NewWorkspace returns scratch memory for one goroutine.
func (m *WideDeep) NewWorkspace() *Workspace { return &Workspace{} }

// Cost of the wide part over all tokens and of the deep part over its window.
func (m *WideDeep) Cost(tokens int) (cells, flops int64) {
	cells, flops = m.deep.Cost(min(tokens, m.window))
	_, wide := m.wide.Cost(tokens)
	return cells, flops + wide
}

// Logits adds up what both parts say.
func (m *WideDeep) Logits(dst []float32, in Input, ws *Workspace) error {
	if err := m.config.check(dst, in); err != nil {
		return err
	}
	if len(ws.sum) < len(dst) {
		ws.sum = make([]float32, len(dst))
	}
	wide := ws.sum[:len(dst)]
	if err := m.wide.Logits(wide, in, ws); err != nil {
		return err
	}
	if err := m.deep.Logits(dst, m.head(in, ws), ws); err != nil {
		return err
	}
	for i, v := range wide {
		dst[i] += v
	}
	return nil
}

// head is the window: the first tokens and the closing special, which is the last of every message.
func (m *WideDeep) head(in Input, ws *Workspace) Input {
	n := len(in.IDs)
	if n <= m.window {
		return in
	}
	ws.ids = append(append(ws.ids[:0], in.IDs[:m.window-1]...), in.IDs[n-1])
	out := Input{IDs: ws.ids}
	if in.TypeIDs != nil {
		out.TypeIDs = in.TypeIDs[:m.window]
	}
	if in.Mask != nil {
		out.Mask = in.Mask[:m.window]
	}
	return out
}
