package train

import (
	"math"

	"misroute/attention/kernel"
)

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2; the constants
// as in PyTorch: the decay is Rate * Decay a step).
type AdamW struct {
	Beta1, Beta2 float64
	Epsilon      float64
	Decay        float64
	DecayAll     bool // also biases and norms
	Step         int  // steps done
	// First and Second are the running means of the gradient and of its square, one entry a parameter.
	First, Second []float32
}

// NewAdamW makes an optimiser of n parameters with the usual constants.
func NewAdamW(n int, decay float64) *AdamW {
	return &AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: decay, First: make([]float32, n), Second: make([]float32, n)}
}

// update takes one step along gradient, which is multiplied by factor first. rate is the learning rate
// of a part.
func (a *AdamW) update(p *Parameters, gradient []float32, factor float64, rate func(*Part) float64) {
	a.Step++
	b1, b2 := float32(a.Beta1), float32(a.Beta2)
	k := kernel.AdamW{
		Factor: float32(factor), Beta1: b1, Left1: 1 - b1, Beta2: b2, Left2: 1 - b2, Epsilon: float32(a.Epsilon),
		Scale: float32(1 / math.Sqrt(1-math.Pow(a.Beta2, float64(a.Step)))),
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		r := rate(part)
		if part.Frozen || r == 0 {
			continue
		}
		k.Shrink = 1
		if part.Decay || a.DecayAll {
			k.Shrink = float32(1 - r*a.Decay)
		}
		k.Step = float32(r / (1 - math.Pow(a.Beta1, float64(a.Step))))
		for from := part.From; from < part.To; from += updateBlock {
			to := min(from+updateBlock, part.To)
			k.Update(p.Values[from:to], gradient[from:to], a.First[from:to], a.Second[from:to])
		}
	}
}

// updateBlock is how many parameters take their step, or sum their squares, in one go: assembly runs to
// its end.
const updateBlock = 1 << 14

// norm is the Euclidean length of the gradient of what is trained.
func (p *Parameters) norm(gradient []float32) float64 {
	sum := 0.0
	for i := range p.Parts {
		if p.Parts[i].Frozen {
			continue
		}
		part := gradient[p.Parts[i].From:p.Parts[i].To]
		for from := 0; from < len(part); from += updateBlock {
			block := part[from:min(from+updateBlock, len(part))]
			sum += float64(kernel.Dot(block, block))
		}
	}
	return math.Sqrt(sum)
}

// clip is the factor that makes a gradient of that length at most limit long (Pascanu et al. 2013);
// 1 without a limit.
func clip(length, limit float64) float64 {
	if limit <= 0 || length <= limit {
		return 1
	}
	return limit / (length + 1e-6)
}

// Schedule is the learning rate over time: a linear warm-up, then a linear decay to zero, as BERT was
// trained (Devlin et al. 2018, appendix A.2).
type Schedule struct {
	Peak   float64
	WarmUp int // steps
	Total  int // steps
}

// At is the rate of a step, from 1.
func (s Schedule) At(step int) float64 {
	if step <= s.WarmUp {
		return s.Peak * float64(step) / float64(s.WarmUp)
	}
	left := float64(s.Total+1-step) / float64(s.Total+1-s.WarmUp)
	return s.Peak * max(left, 0)
}
