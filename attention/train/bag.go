package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"misroute/attention"
	"misroute/attention/kernel"
)

// Losses of [FitBag].
const (
	LossHinge   = "hinge"   // one queue against the rest, squared hinge: a linear support vector machine
	LossSoftmax = "softmax" // softmax cross-entropy over all queues: multinomial logistic regression
	LossBoth    = "both"    // the sum of the two routers, which is a router of the same size
)

// hingeShare is the factor of the hinge's margins, which are around 1, in the sum with the softmax's
// logits, which are around 10. The hinge is the better one on mail like that it learned from, the
// softmax when the mail drifts; the sum keeps most of both.
const hingeShare = 5

// openingShare is how much the words of the opening count beside the whole message.
const openingShare = 0.5

// BagOptions say how the words router is learned. Zero fields mean defaults.
type BagOptions struct {
	Grams       int     // longest run of words that is a feature; 0: 2
	MinMessages int     // a feature must be in so many messages; 0: 2, since what was seen once cannot generalise
	MaxFeatures int     // keep the most frequent ones; 0: 1,000,000
	StopShare   float64 // words in more than this share of the messages are passed over by runs; 0: 0.2
	Opening     int     // so many words at the beginning have features of their own too; 0: none
	Mean        bool    // the plain mean of the vectors: no tf-idf, no unit length
	Loss        string  // "": LossBoth
	Cost        float64 // factor of the cost of an error against the size of the vectors; 0: 1
	Balance     bool    // every queue has the same total cost, however rare
	Workers     int     // goroutines; 0: 1. The result does not depend on it
	Seed        uint64
	Progress    Progress
}

func (o BagOptions) filled() BagOptions {
	set := func(v *int, missing int) {
		if *v == 0 {
			*v = missing
		}
	}
	if o.Loss == "" {
		o.Loss = LossBoth
	}
	if o.StopShare == 0 {
		o.StopShare = 0.2
	}
	set(&o.Grams, 2)
	set(&o.MinMessages, 2)
	set(&o.MaxFeatures, 1_000_000)
	set(&o.Workers, 1)
	if o.Cost == 0 {
		o.Cost = 1
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	return o
}

// FitBag learns the router of words. kinds says what each token id is (see [attention.BagStart]);
// labels are the queue names in the order of Example.Label.
func FitBag(ctx context.Context, examples []Example, labels []string, kinds []uint8, o BagOptions) (*attention.Bag, error) {
	o = o.filled()
	if err := checkExamples(examples, len(labels), len(kinds)); err != nil {
		return nil, err
	}
	if o.Loss != LossHinge && o.Loss != LossSoftmax && o.Loss != LossBoth {
		return nil, fmt.Errorf("no loss %q; it is %s, %s or %s", o.Loss, LossHinge, LossSoftmax, LossBoth)
	}
	config := attention.Config{Labels: labels, VocabSize: len(kinds)}
	rules := attention.BagRules{Grams: o.Grams, Sublinear: !o.Mean, Normalize: !o.Mean, Opening: o.Opening}
	if o.Opening > 0 {
		rules.OpeningShare = openingShare
	}
	t, err := chooseFeatures(ctx, examples, kinds, len(labels), o)
	if err != nil {
		return nil, err
	}
	reader, err := attention.NewBag(config, rules, t)
	if err != nil {
		return nil, err
	}
	x := readFeatures(reader, examples)
	weights := exampleWeights(examples, len(labels), o.Balance)
	if o.Loss != LossSoftmax {
		if t.Vectors, t.Bias, err = fitQueues(ctx, x, examples, weights, len(labels), len(t.Keys), o); err != nil {
			return nil, err
		}
	}
	if o.Loss != LossHinge {
		vectors, bias, err := fitSoftmax(ctx, x, examples, weights, len(labels), len(t.Keys), o)
		if err != nil {
			return nil, err
		}
		kernel.Axpy(vectors, hingeShare, t.Vectors) // zeros without the hinge
		kernel.Axpy(bias, hingeShare, t.Bias)
		t.Vectors, t.Bias = vectors, bias
	}
	return attention.NewBag(config, rules, t)
}

// checkExamples finds what no training can work with.
func checkExamples(examples []Example, labels, vocabulary int) error {
	if len(examples) == 0 {
		return errors.New("no examples")
	}
	seen := make([]bool, labels)
	for i, e := range examples {
		if e.Label < 0 || int(e.Label) >= labels {
			return fmt.Errorf("example %d has label %d of %d", i, e.Label, labels)
		}
		seen[e.Label] = true
		for _, id := range e.IDs {
			if id < 0 || int(id) >= vocabulary {
				return fmt.Errorf("example %d has token id %d, the vocabulary has %d", i, id, vocabulary)
			}
		}
	}
	queues := 0
	for _, s := range seen {
		if s {
			queues++
		}
	}
	if queues < 2 {
		return errors.New("all examples are of one queue: there is nothing to tell apart")
	}
	return nil
}

// chooseFeatures counts in how many messages each word and run of words stands, and keeps those worth
// a vector. Vectors and biases are zeros.
func chooseFeatures(ctx context.Context, examples []Example, kinds []uint8, labels int, o BagOptions) (t attention.BagTensors, err error) {
	var words, grams []uint64
	count := func(stops map[uint64]struct{}, longest int) (map[uint64]int32, error) {
		messages := map[uint64]int32{}
		for i, e := range examples {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			words = attention.BagWords(words[:0], e.IDs, nil, kinds)
			grams = grams[:0]
			add := func(h uint64) { grams = append(grams, h) }
			opening := slices.Clone(words[:min(o.Opening, len(words))])
			attention.BagGrams(words, longest, stops, add)
			if stops != nil {
				attention.BagOpening(opening, o.Opening, longest, stops, add)
			}
			slices.Sort(grams)
			for _, h := range slices.Compact(grams) {
				messages[h]++
			}
			o.Progress("counting words", i+1, len(examples))
		}
		return messages, nil
	}
	stops := map[uint64]struct{}{}
	if o.Grams > 1 {
		messages, err := count(nil, 1)
		if err != nil {
			return t, err
		}
		for h, n := range messages {
			if float64(n) > o.StopShare*float64(len(examples)) {
				stops[h] = struct{}{}
				t.Stops = append(t.Stops, h)
			}
		}
		slices.Sort(t.Stops)
	}
	messages, err := count(stops, o.Grams)
	if err != nil {
		return t, err
	}
	for h, n := range messages {
		if int(n) >= o.MinMessages {
			t.Keys = append(t.Keys, h)
		}
	}
	if len(t.Keys) == 0 {
		return t, fmt.Errorf("no word is in %d messages or more: too few messages to learn from", o.MinMessages)
	}
	if len(t.Keys) > o.MaxFeatures {
		slices.SortFunc(t.Keys, func(a, b uint64) int {
			if d := messages[b] - messages[a]; d != 0 {
				return int(d)
			}
			if a < b {
				return -1
			}
			return 1
		})
		t.Keys = t.Keys[:o.MaxFeatures]
	}
	slices.Sort(t.Keys)
	t.Kinds = kinds
	t.Scale = make([]float32, len(t.Keys))
	for i, h := range t.Keys {
		t.Scale[i] = 1
		if !o.Mean {
			t.Scale[i] = float32(1 + math.Log(float64(1+len(examples))/float64(1+messages[h])))
		}
	}
	t.Vectors, t.Bias = make([]float32, len(t.Keys)*labels), make([]float32, labels)
	return t, nil
}

func readFeatures(reader *attention.Bag, examples []Example) *sparse {
	x := &sparse{at: make([]int, 1, len(examples)+1)}
	var f attention.BagFeatures
	for _, e := range examples {
		reader.Features(&f, e.IDs, nil)
		x.column = append(x.column, f.Rows...)
		x.value = append(x.value, f.Values...)
		x.at = append(x.at, len(x.column))
	}
	return x
}

// exampleWeights is what an error on each example counts.
func exampleWeights(examples []Example, labels int, balance bool) []float64 {
	weights := make([]float64, len(examples))
	queues := BalancedWeights(examples, labels)
	for i, e := range examples {
		if weights[i] = 1; balance {
			weights[i] = queues[e.Label]
		}
	}
	return weights
}

// BalancedWeights gives every queue the same total weight, with a mean of 1 over the examples. A
// queue without examples weighs 0.
func BalancedWeights(examples []Example, labels int) []float64 {
	count, weights := make([]int, labels), make([]float64, labels)
	queues := 0
	for _, e := range examples {
		if count[e.Label]++; count[e.Label] == 1 {
			queues++
		}
	}
	for c, n := range count {
		if n > 0 {
			weights[c] = float64(len(examples)) / float64(queues*n)
		}
	}
	return weights
}

// fitQueues learns each queue against the rest. The problems are independent, so that goroutines
// share nothing but the table they write their own column of.
func fitQueues(ctx context.Context, x *sparse, examples []Example, weights []float64, labels, features int, o BagOptions) (vectors, bias []float32, err error) {
	vectors, bias = make([]float32, features*labels), make([]float32, labels)
	cost := make([]float64, len(weights))
	for i, w := range weights {
		cost[i] = w * o.Cost
	}
	queues := make(chan int)
	var done int
	var lock sync.Mutex
	var workers sync.WaitGroup
	for range min(o.Workers, labels) {
		workers.Go(func() {
			sign := make([]int8, len(examples))
			for queue := range queues {
				for i, e := range examples {
					sign[i] = -1
					if int(e.Label) == queue {
						sign[i] = 1
					}
				}
				w, b := fitHinge(ctx, x, sign, cost, features, hingeRounds, o.Seed)
				for f, v := range w {
					vectors[f*labels+queue] = v
				}
				bias[queue] = b
				lock.Lock()
				done++
				o.Progress("fitting queues", done, labels)
				lock.Unlock()
			}
		})
	}
	for queue := range labels {
		queues <- queue
	}
	close(queues)
	workers.Wait()
	return vectors, bias, ctx.Err()
}

// Calibrate returns the factor on all logits that makes the model's softmax scores honest on held-out
// examples: the minimum of their cross-entropy over one temperature (Guo et al. 2017, "On Calibration
// of Modern Neural Networks", section 4.2). logits is one row an example. Predictions stay the same.
func Calibrate(logits [][]float32, label []int32) float32 {
	if len(logits) == 0 {
		return 1
	}
	loss := func(logFactor float64) float64 {
		factor, sum := math.Exp(logFactor), 0.0
		for i, row := range logits {
			highest := float64(slices.Max(row)) * factor
			total := 0.0
			for _, v := range row {
				total += math.Exp(float64(v)*factor - highest)
			}
			sum += math.Log(total) + highest - float64(row[label[i]])*factor
		}
		return sum
	}
	// The loss is convex in the factor, so that it has one valley in its logarithm too: golden section.
	low, high := math.Log(0.01), math.Log(100)
	const golden = 0.6180339887498949
	a, b := high-golden*(high-low), low+golden*(high-low)
	la, lb := loss(a), loss(b)
	for range 60 {
		if la < lb {
			high, b, lb = b, a, la
			a = high - golden*(high-low)
			la = loss(a)
		} else {
			low, a, la = a, b, lb
			b = low + golden*(high-low)
			lb = loss(b)
		}
	}
	return float32(math.Exp((low + high) / 2))
}

// ScaleBag multiplies every logit of the router by factor.
func ScaleBag(b *attention.Bag, factor float32) (*attention.Bag, error) {
	t := b.Tensors()
	t.Vectors, t.Bias = slices.Clone(t.Vectors), slices.Clone(t.Bias)
	for i := range t.Vectors {
		t.Vectors[i] *= factor
	}
	for i := range t.Bias {
		t.Bias[i] *= factor
	}
	return attention.NewBag(*b.Config(), b.Rules(), t)
}
