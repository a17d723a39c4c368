package train

import (
	"context"
	"math"
	"math/rand/v2"

	"misroute/attention/kernel"
)

// sparse is a matrix of few non-zero numbers a row: example i holds rows[at[i]:at[i+1]].
type sparse struct {
	at     []int
	column []int32
	value  []float32
}

func (s *sparse) row(i int) ([]int32, []float32) {
	return s.column[s.at[i]:s.at[i+1]], s.value[s.at[i]:s.at[i+1]]
}

func (s *sparse) rows() int { return len(s.at) - 1 }

// fitHinge finds the weights of one queue against all others:
//
//	min over w, b of |w|^2/2 + b^2/2 + sum over i of cost[i] * max(0, 1 - y[i] (w x[i] + b))^2
//
// by dual coordinate descent with shrinking (Hsieh et al. 2008, "A Dual Coordinate Descent Method for
// Large-scale Linear SVM", algorithm 3, L2 loss). y is +1 or -1. The result depends on the seed alone.
// A cancelled context ends it early, with what it has.
func fitHinge(ctx context.Context, x *sparse, y []int8, cost []float64, columns, rounds int, seed uint64) (w []float32, bias float32) {
	const tolerance = 0.1 // of the dual gradient: LIBLINEAR's default, past which accuracy does not move
	n := x.rows()
	rng := rand.New(rand.NewPCG(seed, 0x5ce4))
	w = make([]float32, columns)
	alpha := make([]float64, n)
	square := make([]float64, n) // |x|^2 + 1 (the bias) + 1/(2 cost)
	order := make([]int, n)
	for i := range n {
		order[i] = i
		_, v := x.row(i)
		s := 1 + 0.5/cost[i]
		for _, f := range v {
			s += float64(f) * float64(f)
		}
		square[i] = s
	}
	b := 0.0
	active := n
	highest := math.Inf(1) // projected gradients above it are shrunk
	for range rounds {
		if ctx.Err() != nil {
			break
		}
		rng.Shuffle(active, func(i, j int) { order[i], order[j] = order[j], order[i] })
		most, least := math.Inf(-1), math.Inf(1)
		for at := 0; at < active; at++ {
			i := order[at]
			column, value := x.row(i)
			dot := float32(0)
			for k, c := range column {
				dot += value[k] * w[c]
			}
			yi := float64(y[i])
			gradient := yi*(b+float64(dot)) - 1 + alpha[i]*0.5/cost[i]
			projected := gradient
			if alpha[i] == 0 {
				if gradient > highest {
					active--
					order[at], order[active] = order[active], order[at]
					at--
					continue
				}
				projected = min(gradient, 0)
			}
			most, least = max(most, projected), min(least, projected)
			if math.Abs(projected) < 1e-12 {
				continue
			}
			old := alpha[i]
			alpha[i] = max(old-gradient/square[i], 0)
			step := (alpha[i] - old) * yi
			b += step
			for k, c := range column {
				w[c] += float32(step) * value[k]
			}
		}
		if most-least <= tolerance {
			if active == n {
				break
			}
			active, highest = n, math.Inf(1)
			continue
		}
		if highest = most; highest <= 0 {
			highest = math.Inf(1)
		}
	}
	return w, float32(b)
}

// Passes over the examples. The hinge stops earlier when it has converged; the softmax's accuracy does
// not move after its last ones.
const (
	hingeRounds   = 60
	softmaxRounds = 20
)

// softmaxCost is the cost of an error at Cost 1: a little decay is best for cross-entropy, whose
// derivative fades where an example is right.
const softmaxCost = 100

// fitSoftmax finds the vectors of all queues together:
//
//	min over W, b of 1/n sum over i of weights[i] * -log softmax(W x[i] + b)[label[i]] + |W|^2 lambda/2
//
// by stochastic gradient descent with the step 1 / (1 + lambda t), lambda = 1/(n cost) (Bottou 2012,
// "Stochastic Gradient Descent Tricks", section 5.1). The decay of W is kept as one factor, so that a
// step touches only the features of its message.
func fitSoftmax(ctx context.Context, x *sparse, examples []Example, weights []float64, labels, columns int, o BagOptions) (w, bias []float32, err error) {
	n := x.rows()
	rng := rand.New(rand.NewPCG(o.Seed, 0x50f7))
	lambda := 1 / (softmaxCost * o.Cost * float64(n))
	w, bias = make([]float32, columns*labels), make([]float32, labels)
	p := make([]float32, labels)
	order := rng.Perm(n)
	factor, steps := 1.0, 0 // W = factor * w
	const biasRate = 0.01   // the bias is in every message and moves as often: with the full step it would swing
	for round := range softmaxRounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			rate := 1 / (1 + lambda*float64(steps))
			steps++
			column, value := x.row(i)
			copy(p, bias)
			for k, c := range column {
				kernel.Axpy(p, value[k]*float32(factor), w[int(c)*labels:][:labels])
			}
			kernel.Softmax(p, 1)
			p[examples[i].Label]--
			factor *= 1 - rate*lambda
			step := rate * weights[i]
			for k, c := range column {
				kernel.Axpy(w[int(c)*labels:][:labels], -value[k]*float32(step/factor), p)
			}
			kernel.Axpy(bias, float32(-biasRate*step), p)
		}
		o.Progress("fitting vectors", round+1, softmaxRounds)
	}
	for k := range w {
		w[k] *= float32(factor)
	}
	return w, bias, nil
}
