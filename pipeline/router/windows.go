package router

import (
	"misroute/tokenize/window"
)

// windows reads a message window by window: cut, score each, make one vector of logits of them all.
// What is local or remote about a router is only how it scores a window. One goroutine at a time.
type windows struct {
	queues   int
	specials int // tokens that every window has beside the message's own
	// planner makes the plan for a setting, whose Seed is 0; one is kept for each setting.
	planner  func(Setting) (*window.Planner, error)
	planners map[Setting]*window.Planner

	plan    window.Plan
	logits  [][]float32 // of each window
	lengths []int
}

// read fills dst; score writes a window's logits into its first argument.
func (r *windows) read(e *Encoded, set Setting, dst *Reading, score func(logits []float32, w *window.Window) error) error {
	if err := r.cut(e, set); err != nil {
		return err
	}
	n := len(r.plan.Windows)
	dst.Kept = append(dst.Kept[:0], r.plan.Kept...)
	dst.TokensKept = r.plan.KeptTokens() + r.specials
	dst.Windows, dst.Cells, dst.FLOPs = n, 0, 0
	r.lengths = r.lengths[:0]
	for len(r.logits) < n {
		r.logits = append(r.logits, make([]float32, r.queues))
	}
	for i := range r.plan.Windows {
		w := &r.plan.Windows[i]
		if err := score(r.logits[i], w); err != nil {
			return err
		}
		r.lengths = append(r.lengths, len(w.IDs))
	}
	dst.Logits = append(dst.Logits[:0], r.logits[0]...)
	if n > 1 {
		window.Aggregate(dst.Logits, set.Aggregate, r.logits[:n], r.lengths)
	}
	return nil
}

// cut plans the windows. A message shorter than the cap is one window whatever the strategy.
func (r *windows) cut(e *Encoded, set Setting) error {
	seed := set.Seed
	set.Seed = 0
	p := r.planners[set]
	if p == nil {
		var err error
		if p, err = r.planner(set); err != nil {
			return err
		}
		if r.planners == nil {
			r.planners = map[Setting]*window.Planner{}
		}
		r.planners[set] = p
	}
	if set.Placebo {
		window.Placebo(&r.plan, &e.Encoding, set.MaxTokens, placeboRand(seed, e.IDs))
		return nil
	}
	return p.Plan(&r.plan, &e.Encoding)
}
