package train

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"misroute/attention"
)

func smallConfig(modelType string) attention.Config {
	c := attention.Config{ModelType: modelType, Labels: []string{"a", "b"}, Layers: 2, Heads: 2, Hidden: 16, Intermediate: 32,
		VocabSize: 42, Positions: 24, TypeVocab: 2, Activation: "gelu", NormEps: 1e-12}
	switch modelType {
	case "distilbert":
		c.TypeVocab = 0
	case "roberta":
		c.TypeVocab, c.PadID, c.NormEps = 1, 1, 1e-5
	}
	return c
}

func smallEncoder(t *testing.T, modelType string, seed uint64) *Encoder {
	t.Helper()
	e, err := NewEncoder(smallConfig(modelType), 0, seed)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The network that is trained and the one that routes mail are two programs for one formula.
func TestForwardIsTheRouters(t *testing.T) {
	for _, modelType := range []string{"bert", "distilbert", "roberta"} {
		e := smallEncoder(t, modelType, 3)
		m, err := e.Model()
		if err != nil {
			t.Fatal(err)
		}
		examples := letters(6, 5)
		got := e.forward(newTape(), e.messages(examples)).logits
		want, err := Logits(m, examples, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range slices.Concat(want...) {
			if math.Abs(float64(got[i]-w)) > 1e-5 {
				t.Errorf("%s: logits %v, the router's %v", modelType, got, want)
				break
			}
		}
	}
}

// checkDirection compares the gradient along a random direction with the difference of two losses:
// (L(p + h v) - L(p - h v)) / 2h. In float32 that is good for three digits.
func checkDirection(t *testing.T, name string, net network, examples []Example, loss *Loss, dropout float64) {
	t.Helper()
	p := net.parameters()
	total := loss.total(examples)
	tp := newTape()
	lossNow := func() (float64, []float32) {
		tp.start(dropout, 7, 7) // the same dropout every time
		gradient := make([]float32, len(p.Values))
		return net.gradients(gradient, examples, loss, total, tp), gradient
	}
	_, gradient := lossNow()
	start := slices.Clone(p.Values)
	for _, part := range p.Parts {
		random := rand.New(rand.NewPCG(11, uint64(part.From)))
		direction := make([]float64, part.To-part.From)
		length := 0.0
		for i := range direction {
			direction[i] = random.NormFloat64()
			length += direction[i] * direction[i]
		}
		along, h := 0.0, 1e-2
		at := func(sign float64) float64 {
			for i, d := range direction {
				p.Values[part.From+i] = start[part.From+i] + float32(sign*h*d/math.Sqrt(length))
			}
			l, _ := lossNow()
			copy(p.Values, start)
			return l
		}
		for i, d := range direction {
			along += d / math.Sqrt(length) * float64(gradient[part.From+i])
		}
		difference := (at(1) - at(-1)) / (2 * h)
		if math.Abs(difference-along) > 2e-3*math.Abs(along)+2e-4 {
			t.Errorf("%s: %s: the loss changes by %.6g along a direction, its gradient says %.6g", name, part.Name, difference, along)
		}
	}
}

func TestEncoderGradientByDifferences(t *testing.T) {
	for _, modelType := range []string{"bert", "distilbert", "roberta"} {
		for _, activation := range []string{"gelu", "gelu_new", "tanh"} { // ReLU has a kink, where differences say nothing
			c := smallConfig(modelType)
			c.Activation = activation
			loss := &Loss{Smoothing: .1, Weights: []float64{1, 2}}
			checkDirection(t, modelType+" "+activation, drawnEncoder(t, c), letters(4, 5), loss, 0)
		}
		checkDirection(t, modelType+" dropout", drawnEncoder(t, smallConfig(modelType)), letters(4, 5), &Loss{}, .2)
	}
}

// drawnEncoder has no prior, whose larger numbers bend the loss too much for differences of it.
func drawnEncoder(t *testing.T, c attention.Config) *Encoder {
	t.Helper()
	e, err := NewEncoder(c, 0.25, 5)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestFitLearnsOrder(t *testing.T) {
	e := smallEncoder(t, "bert", 1)
	training, held := letters(400, 1), letters(200, 2)
	o := Options{Epochs: 14, Rate: 3e-3, Seed: 1, Workers: 2}
	judged, err := e.Fit(context.Background(), training, held, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Every fifth message is decided by the order of two words, which no bag of words can see (0.9).
	if judged.Accuracy() < 0.96 {
		t.Errorf("held-out accuracy %.3f, want the order learned", judged.Accuracy())
	}
	again := smallEncoder(t, "bert", 1)
	if _, err := again.Fit(context.Background(), training, held, o, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.all.Values, e.all.Values) {
		t.Error("the same seed and number of workers gave other parameters")
	}
}

func TestFitResumes(t *testing.T) {
	training, held := letters(60, 1), letters(30, 2)
	o := Options{Epochs: 4, Rate: 1e-3, Seed: 1, Dropout: .1, WordDrop: .1, Average: .9}
	whole := smallEncoder(t, "bert", 1)
	if _, err := whole.Fit(context.Background(), training, held, o, nil); err != nil {
		t.Fatal(err)
	}
	// The same run, stopped after two epochs and taken up again.
	var kept *State
	stop := errors.New("stop")
	o.Save = func(s *State) error {
		if s.Epoch < 2 {
			return nil
		}
		c := *s
		for _, v := range []*[]float32{&c.Values, &c.First, &c.Second, &c.Mean, &c.Best} {
			*v = slices.Clone(*v)
		}
		kept = &c
		return stop
	}
	first := smallEncoder(t, "bert", 1)
	if _, err := first.Fit(context.Background(), training, held, o, nil); !errors.Is(err, stop) {
		t.Fatalf("error %v, want the one of Save", err)
	}
	o.Save = nil
	second := smallEncoder(t, "bert", 99)
	if _, err := second.Fit(context.Background(), training, held, o, kept); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(second.all.Values, whole.all.Values) {
		t.Error("a resumed run gave other parameters than one in one go")
	}
	kept.Values = kept.Values[1:]
	if _, err := second.Fit(context.Background(), training, held, o, kept); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a checkpoint of another shape: error %v", err)
	}
}

func TestFitStopsAtNaN(t *testing.T) {
	e := smallEncoder(t, "bert", 1)
	saves := 0
	o := Options{Epochs: 3, Seed: 1, Save: func(*State) error {
		saves++
		e.all.Values[0] = float32(math.NaN()) // as if an update had broken it
		for i := range e.p.Words {
			e.p.Words[i] = float32(math.NaN())
		}
		return nil
	}}
	_, err := e.Fit(context.Background(), letters(40, 1), letters(20, 2), o, nil)
	if !errors.Is(err, ErrNotANumber) || !strings.Contains(err.Error(), "step 4 of 9 (epoch 2)") {
		t.Errorf("error %v, want the step named", err)
	}
	if saves != 1 || math.IsNaN(float64(e.all.Values[0])) {
		t.Error("the last good parameters were not kept")
	}
}

func TestFitRefuses(t *testing.T) {
	e := smallEncoder(t, "bert", 1)
	if _, err := e.Fit(context.Background(), letters(10, 1), nil, Options{MaxTokens: 25}, nil); err == nil || !strings.Contains(err.Error(), "positions for 24") {
		t.Errorf("more tokens than positions: error %v", err)
	}
	long := []Example{{IDs: slices.Repeat([]int32{1}, 40), Label: 0}, {IDs: []int32{1, 2}, Label: 1}}
	if _, err := e.Fit(context.Background(), long, nil, Options{Epochs: 1}, nil); err != nil {
		t.Errorf("a long message must be cut to the positions there are: %v", err)
	}
	c := smallConfig("bert")
	c.Activation = "swish"
	if _, err := NewEncoder(c, 0, 1); err == nil {
		t.Error("an activation without derivative was taken")
	}
}

func TestFreeze(t *testing.T) {
	e := smallEncoder(t, "bert", 1)
	e.Freeze(1)
	before := slices.Clone(e.all.Values)
	if _, err := e.Fit(context.Background(), letters(40, 1), nil, Options{Epochs: 1}, nil); err != nil {
		t.Fatal(err)
	}
	for _, p := range e.all.Parts {
		changed := !slices.Equal(before[p.From:p.To], e.all.Values[p.From:p.To])
		if want := p.Depth >= 2; changed != want {
			t.Errorf("%s: changed %v, want %v with only the top layer trained", p.Name, changed, want)
		}
	}
}

func TestSchedule(t *testing.T) {
	s := Schedule{Peak: 1, WarmUp: 10, Total: 110}
	for step, want := range map[int]float64{1: .1, 10: 1, 11: 100. / 101, 110: 1. / 101} {
		if got := s.At(step); math.Abs(got-want) > 1e-12 {
			t.Errorf("step %d: rate %g, want %g", step, got, want)
		}
	}
}

func TestShareKeepsEveryMessage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		batch := make([]Example, 1+random.IntN(9))
		for i := range batch {
			batch[i] = Example{IDs: make([]int32, 1+random.IntN(50)), Label: int32(i)}
		}
		parts := share(batch, 1+random.IntN(5))
		next := int32(0)
		for _, part := range parts {
			if len(part) == 0 {
				t.Fatal("an empty part")
			}
			for _, e := range part {
				if e.Label != next {
					t.Fatalf("message %d where %d was due", e.Label, next)
				}
				next++
			}
		}
		if int(next) != len(batch) {
			t.Fatalf("%d of %d messages", next, len(batch))
		}
	}
}
