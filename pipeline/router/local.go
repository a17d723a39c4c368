package router

import (
	"context"
	"fmt"
	"path/filepath"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/tokenize"
	"misroute/tokenize/window"
)

// wholeOverlap is what neighbouring windows of the reference reading share: a sentence or two, so
// that none is torn apart in every window.
const wholeOverlap = 64

// Local is a model folder on this machine.
type Local struct {
	facts     Facts
	model     attention.Model
	tokenizer *tokenize.Tokenizer
	before    []int32 // specials around one message
	after     []int32
	folder    *checkpoint.Folder
	ends      func(id, next int32, gap bool) bool // where sentences end, for the smart strategy
}

// Options of Open.
type Options struct {
	Int8 bool // 8-bit weights; see attention
	// LiteralSpecials reads "[SEP]" in a message as text. By default it becomes the special token, as
	// in the library that most routers run on: mail is written by strangers, and they can do that.
	LiteralSpecials bool
}

// Open loads a model folder: config.json, model.safetensors and tokenizer.json (or vocab.txt).
func Open(dir string, o Options) (*Local, error) {
	folder, err := checkpoint.Load(dir, checkpoint.Options{Int8: o.Int8})
	if err != nil {
		return nil, err
	}
	if folder.Tokenizer == "" {
		return nil, fmt.Errorf("model %s: no tokenizer.json and no vocab.txt: put the tokenizer's file into the folder", dir)
	}
	t, err := tokenize.Load(folder.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", dir, err)
	}
	if o.LiteralSpecials {
		t = t.Literal()
	}
	c := folder.Model.Config()
	if int(t.MaxID()) >= c.VocabSize {
		return nil, fmt.Errorf("model %s: the tokenizer's ids go up to %d, the model has %d tokens: they do not belong together", dir, t.MaxID(), c.VocabSize)
	}
	if len(c.Labels) == 0 {
		return nil, fmt.Errorf("model %s: config.json has no id2label: the model routes to no queue", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	l := &Local{model: folder.Model, tokenizer: t, folder: folder, facts: Facts{
		Name: filepath.Base(abs), Family: c.ModelType, SHA256: folder.SHA256,
		TokenizerSHA256: t.SHA256(), Tokenizer: t.Describe(), Parameters: folder.Model.Parameters(),
		Layers: c.Layers, Heads: c.Heads, Hidden: c.Hidden, Positions: c.Positions, TrainedCap: c.TrainedCap,
		Kernel: folder.Model.Kernel(), Precision: folder.Model.Precision(),
		Warnings: append(append([]string(nil), folder.Warnings...), t.Warnings()...),
	}}
	for _, x := range folder.TrainedOn {
		l.facts.TrainedOn = append(l.facts.TrainedOn, x.SHA256)
	}
	l.before, l.after = t.Specials()
	l.ends = window.SentenceEnds(t)
	return l, nil
}

// Model gives the model for what looks inside (attention maps).
func (l *Local) Model() attention.Model { return l.model }

// Tokenizer gives the tokenizer for what shows pieces.
func (l *Local) Tokenizer() *tokenize.Tokenizer { return l.tokenizer }

// Unchanged says whether the model's files are still those that were loaded.
func (l *Local) Unchanged() error { return l.folder.Unchanged() }

// Facts implements Router.
func (l *Local) Facts() Facts { return l.facts }

// Queues implements Router.
func (l *Local) Queues() []string { return l.model.Config().Labels }

// Encode implements Router.
func (l *Local) Encode(dst *Encoded, text []byte) {
	dst.Text = text
	l.tokenizer.Encode(&dst.Encoding, text)
}

// Whole implements Router: one pass where the model reads any length, else windows over all of the
// message as long as the positions allow.
func (l *Local) Whole() (Setting, string) {
	p := l.facts.Positions
	if p == 0 {
		return Setting{Strategy: window.KeepHead}, "one pass"
	}
	overlap := min(wholeOverlap, (p-len(l.before)-len(l.after))/4)
	return Setting{Strategy: window.KeepWindows, WindowTokens: p, Overlap: overlap, Aggregate: window.AggregateMean},
		fmt.Sprintf("one pass up to %d tokens, beyond that windows of %d (overlap %d, mean)", p, p, overlap)
}

// Check implements Router.
func (l *Local) Check(s Setting) error {
	_, err := l.planner(s)
	return err
}

// planner for a setting. Where there is no cap, one window may still be no longer than the positions.
func (l *Local) planner(s Setting) (*window.Planner, error) {
	p := l.facts.Positions
	limit := s.MaxTokens
	if limit == 0 {
		limit = s.WindowTokens
	}
	if p > 0 {
		if limit > p {
			return nil, fmt.Errorf("cap %d: the model %s has positions for %d tokens; use --cap %d or less, or a model with more positions", limit, l.facts.Name, p, p)
		}
		if limit == 0 {
			if s.Strategy != window.KeepWindows {
				return nil, fmt.Errorf("no cap: the model %s has positions for %d tokens only; use --strategy windows to read all of a message", l.facts.Name, p)
			}
			limit = p
		}
	}
	return window.NewPlanner(l.before, l.after, window.Options{
		MaxTokens: limit, Strategy: s.Strategy, HeadTokens: s.HeadTokens, Overlap: s.Overlap, Aggregate: s.Aggregate,
		SentenceEnd: l.ends,
	})
}

// NewSession implements Router.
func (l *Local) NewSession() Session {
	return &localSession{l, l.model.NewWorkspace(), windows{queues: len(l.Queues()), specials: len(l.before) + len(l.after), planner: l.planner}}
}

type localSession struct {
	l  *Local
	ws *attention.Workspace
	windows
}

// Read implements Session: each window is one forward pass.
func (s *localSession) Read(_ context.Context, e *Encoded, set Setting, dst *Reading) error {
	return s.read(e, set, dst, func(logits []float32, w *window.Window) error {
		cells, flops := s.l.model.Cost(len(w.IDs))
		dst.Cells += cells
		dst.FLOPs += flops
		return s.l.model.Logits(logits, attention.Input{IDs: w.IDs, TypeIDs: w.TypeIDs}, s.ws)
	})
}
