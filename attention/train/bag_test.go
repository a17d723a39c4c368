package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"misroute/attention"
)

// mail of two queues: words 0..9 belong to the first, 10..19 to the second, 20..39 to both. A pair
// (40 then 41, or 41 then 40) decides alone in every fifth message.
func letters(n int, seed uint64) []Example {
	rng := rand.New(rand.NewPCG(seed, 1))
	list := make([]Example, n)
	for i := range list {
		label := int32(rng.IntN(2))
		var ids []int32
		for range 12 {
			ids = append(ids, 20+int32(rng.IntN(20)))
		}
		if i%5 == 0 {
			ids = append(ids, 40+label, 41-label)
		} else {
			ids = append(ids, 10*label+int32(rng.IntN(10)))
		}
		list[i] = Example{ids, label}
	}
	return list
}

func startKinds(n int) []uint8 { return slices.Repeat([]uint8{attention.BagStart}, n) }

func accuracy(t *testing.T, m attention.Model, examples []Example) float64 {
	t.Helper()
	ws, logits := m.NewWorkspace(), make([]float32, len(m.Config().Labels))
	right := 0
	for _, e := range examples {
		if err := m.Logits(logits, attention.Input{IDs: e.IDs}, ws); err != nil {
			t.Fatal(err)
		}
		if logits[e.Label] == slices.Max(logits) {
			right++
		}
	}
	return float64(right) / float64(len(examples))
}

func TestFitBagLearns(t *testing.T) {
	training, judged := letters(600, 1), letters(300, 2)
	for _, loss := range []string{LossHinge, LossSoftmax, LossBoth} {
		fit := func(o BagOptions) *attention.Bag {
			o.Loss, o.Seed = loss, 1
			b, err := FitBag(context.Background(), training, []string{"a", "b"}, startKinds(42), o)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		pairs, singles := fit(BagOptions{}), fit(BagOptions{Grams: 1})
		// One message in five is decided by the order of two words: pairs know it, single words guess.
		if a := accuracy(t, pairs, judged); a < 0.97 {
			t.Errorf("%s: accuracy %.3f with pairs, want nearly all", loss, a)
		}
		if a := accuracy(t, singles, judged); a > 0.95 || a < 0.8 {
			t.Errorf("%s: accuracy %.3f without pairs, want about 0.9: half of every fifth is lost", loss, a)
		}
		again := fit(BagOptions{Workers: 2})
		if !slices.Equal(again.Tensors().Vectors, pairs.Tensors().Vectors) {
			t.Errorf("%s: two workers made other vectors than one", loss)
		}
	}
}

// The optimum of a problem small enough to solve by hand: one feature, one message a side, x = y = 1
// and -1. By symmetry both multipliers are the same a and the bias is 0; w = 2a, and the gradient
// w - 1 + a/(2C) of either is zero at a = 1/(2 + 1/(2C)).
func TestFitHingeOptimum(t *testing.T) {
	x := &sparse{at: []int{0, 1, 2}, column: []int32{0, 0}, value: []float32{1, -1}}
	for _, c := range []float64{0.25, 1, 10} {
		w, b := fitHinge(context.Background(), x, []int8{1, -1}, []float64{c, c}, 1, 10000, 1)
		want := 2 / (2 + 1/(2*c))
		if math.Abs(float64(w[0])-want) > 0.05 || math.Abs(float64(b)) > 0.05 {
			t.Errorf("cost %g: w = %.4f, b = %.4f, want %.4f and 0 within the tolerance of the dual gradient", c, w[0], b, want)
		}
	}
}

func TestFitBagRefuses(t *testing.T) {
	two := []string{"a", "b"}
	for _, c := range []struct {
		name     string
		examples []Example
		want     string
	}{
		{"none", nil, "no examples"},
		{"one queue", []Example{{[]int32{1}, 0}, {[]int32{1}, 0}}, "one queue"},
		{"label", []Example{{[]int32{1}, 2}}, "label 2 of 2"},
		{"id", []Example{{[]int32{9}, 1}}, "token id 9"},
		{"nothing twice", []Example{{[]int32{0}, 0}, {[]int32{1}, 1}}, "too few messages"},
	} {
		if _, err := FitBag(context.Background(), c.examples, two, startKinds(3), BagOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := FitBag(stopped, letters(10, 1), two, startKinds(42), BagOptions{}); err != context.Canceled {
		t.Errorf("cancelled: error %v", err)
	}
}

// Two messages with logit differences +d and -d/3, the second wrong: the derivative of the loss in the
// factor f is zero where d/(1+e^(fd)) = (d/3)/(1+e^(-fd/3)).
func TestCalibrate(t *testing.T) {
	got := float64(Calibrate([][]float32{{3, 0}, {1, 0}}, []int32{0, 1}))
	if slope := -3/(1+math.Exp(3*got)) + 1/(1+math.Exp(-got)); math.Abs(slope) > 1e-4 {
		t.Errorf("factor %g leaves a slope of %g", got, slope)
	}
	if got := Calibrate(nil, nil); got != 1 {
		t.Errorf("factor %g without examples, want 1", got)
	}
}

func TestHeldOutKeepsThreadsWhole(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	var list []Origin
	for d := 1; d <= 20; d++ {
		list = append(list, Origin{Thread: string(rune('a' + d)), Date: day(d), Label: int32(d % 2)})
	}
	list = append(list,
		Origin{Thread: "b", Date: day(25), Label: 1}, // a late reply to the oldest thread
		Origin{Label: 2, Date: day(28)},              // the only message of its queue
	)
	held, err := HeldOut(list, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	count, sides := 0, map[string]bool{}
	for i, h := range held {
		if h {
			count++
		}
		if was, ok := sides[list[i].Thread]; ok && list[i].Thread != "" && was != h {
			t.Errorf("thread %q is on both sides", list[i].Thread)
		}
		sides[list[i].Thread] = h
	}
	if count != 4 && count != 5 {
		t.Errorf("%d of 22 held out, want a fifth", count)
	}
	if !held[20] || !held[19] || held[5] {
		t.Error("the newest threads are not the ones held out")
	}
	if held[21] {
		t.Error("a queue's only message is held out")
	}
	if _, err := HeldOut(list[21:], 0.2); err == nil {
		t.Error("one message was split")
	}
}
