package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"misroute/attention"
)

// Options say how a network is trained. Zero fields mean defaults, but for switches that 0 turns off.
type Options struct {
	Epochs    int     // 0: 10
	Batch     int     // messages a step; 0: 16
	Rate      float64 // peak learning rate; 0: 5e-4, fit for small networks from nothing (2e-5 to 5e-5 for fine-tuning)
	WarmUp    float64 // share of the steps; 0: 0.1
	Decay     float64 // weight decay; 0: 0.01
	Clip      float64 // longest gradient; 0: 1
	Dropout   float64 // share of activations; 0: none
	WordDrop  float64 // share of tokens replaced by UnknownID while training; 0: none
	UnknownID int32
	Smoothing float64 // of the labels
	Balance   bool    // class weights, so that every queue counts the same
	Average   float64 // judge and keep a running mean of the parameters with this decay a step; 0: the last ones
	LayerRate float64 // rate of a layer as a share of the one above; 0: 1
	Patience  int     // epochs without a better held-out result before stopping; 0: never
	MaxTokens int     // what is read of a training message, from the head; 0: as much as the network can
	Workers   int     // goroutines that share a batch; 0: 1. Sums differ in the last bits between numbers
	Seed      uint64
	Report    func(Event)        // after every step and every epoch
	Save      func(*State) error // after every epoch; the state must not be kept
}

// Event is what a training run says about itself.
type Event struct {
	Epoch, Epochs   int // from 1
	Step, Steps     int // of the whole run
	Tokens, Total   int64
	Loss            float64 // of the step, or the mean of the epoch
	Rate            float64
	EpochDone       bool
	HeldOut         Judgement // of an epoch that is done
	Best            bool      // better than every epoch before
	StoppedEarly    bool
	GradientClipped bool
}

// Judgement is how a router does on held-out messages.
type Judgement struct {
	Messages, Right int
	Loss            float64 // mean cross-entropy, without smoothing or weights
}

// Accuracy is the share of right predictions, NaN without messages.
func (j Judgement) Accuracy() float64 { return float64(j.Right) / float64(j.Messages) }

func (j Judgement) better(than Judgement) bool {
	if j.Right != than.Right {
		return j.Right > than.Right
	}
	return j.Loss < than.Loss
}

// State is all that a training run needs to go on after an epoch.
type State struct {
	Epoch, Step   int // done
	Tokens        int64
	Values        []float32 // parameters
	First, Second []float32 // of AdamW
	Mean          []float32 // running mean; nil without Average
	Best          []float32 // parameters of the best epoch
	BestHeld      Judgement
	SinceBest     int
	Masked        bool // of the training on hidden words, see FitMasked; set by who saves it
}

// ErrNotANumber says that the loss stopped being a number. The network has the last good parameters.
var ErrNotANumber = errors.New("the loss is not a number")

func (o Options) filled() Options {
	integer := func(v *int, missing int) {
		if *v == 0 {
			*v = missing
		}
	}
	number := func(v *float64, missing float64) {
		if *v == 0 {
			*v = missing
		}
	}
	integer(&o.Epochs, 10)
	integer(&o.Batch, 16)
	integer(&o.Workers, 1)
	number(&o.Rate, 5e-4)
	number(&o.WarmUp, 0.1)
	number(&o.Decay, 0.01)
	number(&o.Clip, 1)
	number(&o.LayerRate, 1)
	if o.Report == nil {
		o.Report = func(Event) {}
	}
	if o.Save == nil {
		o.Save = func(*State) error { return nil }
	}
	return o
}

// run is one training run.
type run struct {
	o         Options
	net       network
	p         *Parameters
	optimizer *AdamW
	schedule  Schedule
	loss      Loss
	training  []Example
	held      []Example
	tapes     []*tape
	gradients [][]float32 // one a worker
	depth     int
	state     State
	total     int64 // tokens of all epochs
}

// fit trains net on training and keeps the parameters that do best on held (the last ones when held is
// empty). from, if not nil, is a state to go on from. The order of the examples, the dropout and so
// the result depend on the options and the number of workers alone.
func fit(ctx context.Context, net network, training, held []Example, o Options, from *State) (Judgement, error) {
	o = o.filled()
	labels, vocabulary := net.shape()
	if err := checkExamples(training, labels, vocabulary); err != nil {
		return Judgement{}, err
	}
	if longest := net.longest(); longest > 0 && o.MaxTokens > longest {
		return Judgement{}, fmt.Errorf("training on %d tokens, but the network has positions for %d", o.MaxTokens, longest)
	} else if o.MaxTokens == 0 {
		o.MaxTokens = longest
	}
	r := &run{o: o, net: net, p: net.parameters()}
	r.training, r.held = Cut(training, o.MaxTokens), Cut(held, o.MaxTokens)
	for _, e := range r.training {
		r.total += int64(len(e.IDs)) * int64(o.Epochs)
	}
	steps := (len(training) + o.Batch - 1) / o.Batch * o.Epochs
	r.schedule = Schedule{Peak: o.Rate, WarmUp: max(1, int(o.WarmUp*float64(steps))), Total: steps}
	r.loss.Smoothing = o.Smoothing
	if o.Balance {
		r.loss.Weights = BalancedWeights(training, labels)
	}
	n := len(r.p.Values)
	r.optimizer = NewAdamW(n, o.Decay)
	for range o.Workers {
		r.tapes = append(r.tapes, newTape())
		r.gradients = append(r.gradients, make([]float32, n))
	}
	for _, part := range r.p.Parts {
		r.depth = max(r.depth, part.Depth)
	}
	if err := r.begin(from); err != nil {
		return Judgement{}, err
	}
	return r.epochs(ctx)
}

// begin sets the state of a new run, or takes up an old one.
func (r *run) begin(from *State) error {
	s := &r.state
	if from != nil {
		if len(from.Values) != len(r.p.Values) || len(from.First) != len(r.p.Values) || len(from.Second) != len(r.p.Values) {
			return fmt.Errorf("the checkpoint has %d parameters, the network %d: it is of another run", len(from.Values), len(r.p.Values))
		}
		*s = *from
		copy(r.p.Values, from.Values)
		r.optimizer.First, r.optimizer.Second, r.optimizer.Step = slices.Clone(from.First), slices.Clone(from.Second), from.Step
		s.Mean, s.Best = slices.Clone(from.Mean), slices.Clone(from.Best)
	}
	if r.o.Average > 0 && s.Mean == nil {
		s.Mean = slices.Clone(r.p.Values)
	}
	return nil
}

// Cut is the examples with no more than most tokens each (0: all): the head and the closing special.
func Cut(examples []Example, most int) []Example {
	list := slices.Clone(examples)
	for i := range list {
		if ids := list[i].IDs; most > 0 && len(ids) > most {
			// The last token of an encoding is its closing special, which every message has.
			list[i].IDs = append(slices.Clone(ids[:most-1]), ids[len(ids)-1])
		}
	}
	return list
}

func (r *run) epochs(ctx context.Context) (Judgement, error) {
	s := &r.state
	for s.Epoch < r.o.Epochs {
		loss, err := r.epoch(ctx)
		if err != nil {
			// The last good parameters are better than broken ones.
			if s.Best != nil {
				copy(r.p.Values, s.Best)
			}
			return s.BestHeld, err
		}
		s.Epoch++
		held, err := r.judge()
		if err != nil {
			return s.BestHeld, err
		}
		best := s.Best == nil || len(r.held) == 0 || held.better(s.BestHeld)
		if s.SinceBest++; best {
			s.Best, s.BestHeld, s.SinceBest = append(s.Best[:0], r.present()...), held, 0
		}
		s.Values, s.First, s.Second, s.Step = r.p.Values, r.optimizer.First, r.optimizer.Second, r.optimizer.Step
		if err := r.o.Save(s); err != nil {
			return s.BestHeld, fmt.Errorf("checkpoint of epoch %d: %w", s.Epoch, err)
		}
		stop := r.o.Patience > 0 && s.SinceBest >= r.o.Patience
		r.o.Report(Event{Epoch: s.Epoch, Epochs: r.o.Epochs, Step: s.Step, Steps: r.schedule.Total, Tokens: s.Tokens, Total: r.total,
			Loss: loss, EpochDone: true, HeldOut: held, Best: best, StoppedEarly: stop && s.Epoch < r.o.Epochs})
		if stop {
			break
		}
	}
	if s.Best != nil {
		copy(r.p.Values, s.Best)
	}
	return s.BestHeld, nil
}

// present are the parameters that would be kept now.
func (r *run) present() []float32 {
	if r.o.Average > 0 {
		return r.state.Mean
	}
	return r.p.Values
}

// judge scores the held-out messages with the present parameters.
func (r *run) judge() (Judgement, error) {
	if len(r.held) == 0 {
		return Judgement{}, nil
	}
	if r.o.Average > 0 {
		last := slices.Clone(r.p.Values)
		copy(r.p.Values, r.state.Mean)
		defer copy(r.p.Values, last)
	}
	m, err := r.net.Model()
	if err != nil {
		return Judgement{}, err
	}
	return Judge(m, r.held, r.o.Workers)
}

// epoch passes once over the training messages and returns the mean loss.
func (r *run) epoch(ctx context.Context) (float64, error) {
	s, o := &r.state, &r.o
	random := rand.New(rand.NewPCG(o.Seed, uint64(s.Epoch)+1))
	order := random.Perm(len(r.training))
	sum, seen := 0.0, 0
	for from := 0; from < len(order); from += o.Batch {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var batch []Example
		for _, i := range order[from:min(from+o.Batch, len(order))] {
			batch = append(batch, r.worn(r.training[i], random))
		}
		loss, clipped := r.step(batch)
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return 0, fmt.Errorf("step %d of %d (epoch %d): %w; a smaller --rate helps", r.optimizer.Step, r.schedule.Total, s.Epoch+1, ErrNotANumber)
		}
		for _, e := range batch {
			s.Tokens += int64(len(e.IDs))
		}
		sum, seen = sum+loss*float64(len(batch)), seen+len(batch)
		o.Report(Event{Epoch: s.Epoch + 1, Epochs: o.Epochs, Step: r.optimizer.Step, Steps: r.schedule.Total, Tokens: s.Tokens,
			Total: r.total, Loss: loss, Rate: r.schedule.At(r.optimizer.Step), GradientClipped: clipped})
	}
	return sum / float64(seen), nil
}

// worn is the example with some of its words made unknown, so that the network learns not to hang on
// any single one.
func (r *run) worn(e Example, random *rand.Rand) Example {
	if r.o.WordDrop <= 0 {
		return e
	}
	e.IDs = slices.Clone(e.IDs)
	for i := 1; i < len(e.IDs)-1; i++ { // the specials stay
		if random.Float64() < r.o.WordDrop {
			e.IDs[i] = r.o.UnknownID
		}
	}
	return e
}

// step is one update of the parameters. Workers take consecutive parts of the batch, and their
// gradients are added in order.
func (r *run) step(batch []Example) (loss float64, clipped bool) {
	total := r.loss.total(batch)
	parts := share(batch, len(r.tapes))
	losses := make([]float64, len(parts))
	var workers sync.WaitGroup
	for w := range parts {
		work := func() {
			clear(r.gradients[w])
			r.tapes[w].start(r.o.Dropout, r.o.Seed+uint64(r.optimizer.Step)<<20, uint64(w))
			losses[w] = r.net.gradients(r.gradients[w], parts[w], &r.loss, total, r.tapes[w])
		}
		if len(parts) == 1 {
			work()
		} else {
			workers.Go(work)
		}
	}
	workers.Wait()
	gradient := r.gradients[0]
	for w := range parts {
		loss += losses[w]
		if w > 0 {
			addTo(gradient, r.gradients[w])
		}
	}
	length := r.p.norm(gradient)
	if math.IsNaN(length) || math.IsNaN(loss) {
		r.optimizer.Step++ // the step that failed
		return math.NaN(), false
	}
	factor := clip(length, r.o.Clip)
	rate := r.schedule.At(r.optimizer.Step + 1)
	r.optimizer.update(r.p, gradient, factor, func(p *Part) float64 {
		return rate * math.Pow(r.o.LayerRate, float64(r.depth-p.Depth))
	})
	if a := float32(r.o.Average); a > 0 {
		// Early on the mean follows quickly: the drawn parameters should not linger in it.
		a = min(a, float32(r.optimizer.Step)/float32(r.optimizer.Step+10))
		for i, v := range r.p.Values {
			r.state.Mean[i] += (1 - a) * (v - r.state.Mean[i])
		}
	}
	return loss, factor < 1
}

func addTo(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

// share cuts a batch into at most n consecutive parts of about as many tokens each.
func share(batch []Example, n int) (parts [][]Example) {
	total := 0
	for _, e := range batch {
		total += len(e.IDs)
	}
	from, tokens := 0, 0
	for i, e := range batch {
		tokens += len(e.IDs)
		if left := n - len(parts); left > 1 && tokens*n >= total*(len(parts)+1) && len(batch)-i-1 >= 1 {
			parts = append(parts, batch[from:i+1])
			from = i + 1
		}
	}
	return append(parts, batch[from:])
}

// Judge scores labelled messages with a router, whole as they are.
func Judge(m attention.Model, examples []Example, workers int) (Judgement, error) {
	logits, err := Logits(m, examples, workers)
	if err != nil {
		return Judgement{}, err
	}
	j := Judgement{Messages: len(examples)}
	plain := Loss{}
	for i, row := range logits {
		if best := slices.Max(row); slices.Index(row, best) == int(examples[i].Label) {
			j.Right++
		}
		j.Loss += plain.row(row, examples[i].Label, float64(len(examples)))
	}
	return j, nil
}

// Logits runs a router over messages.
func Logits(m attention.Model, examples []Example, workers int) ([][]float32, error) {
	logits := make([][]float32, len(examples))
	errs := make([]error, max(1, workers))
	var group sync.WaitGroup
	for w := range errs {
		group.Go(func() {
			ws := m.NewWorkspace()
			for i := w; i < len(examples); i += len(errs) {
				logits[i] = make([]float32, len(m.Config().Labels))
				if err := m.Logits(logits[i], attention.Input{IDs: examples[i].IDs}, ws); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	group.Wait()
	return logits, errors.Join(errs...)
}

// Fit trains the encoder; see the package's fit.
func (e *Encoder) Fit(ctx context.Context, training, held []Example, o Options, from *State) (Judgement, error) {
	return fit(ctx, e, training, held, o, from)
}

// Freeze leaves everything below the top n layers as it is; the head is always trained.
func (e *Encoder) Freeze(top int) {
	for i := range e.all.Parts {
		p := &e.all.Parts[i]
		p.Frozen = p.Depth <= e.Config.Layers-top
	}
}

func (e *Encoder) shape() (labels, vocabulary int) { return len(e.Config.Labels), e.Config.VocabSize }
