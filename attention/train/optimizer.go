package train

import (
	"math"
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
	correct1 := 1 - math.Pow(a.Beta1, float64(a.Step))
	correct2 := math.Sqrt(1 - math.Pow(a.Beta2, float64(a.Step)))
	b1, b2 := float32(a.Beta1), float32(a.Beta2)
	for i := range p.Parts {
		part := &p.Parts[i]
		r := rate(part)
		if part.Frozen || r == 0 {
			continue
		}
		shrink := float32(1)
		if part.Decay || a.DecayAll {
			shrink = float32(1 - r*a.Decay)
		}
		w, g := p.Values[part.From:part.To], gradient[part.From:part.To]
		m, v := a.First[part.From:part.To], a.Second[part.From:part.To]
		step, scale, eps, f := float32(r/correct1), float32(1/correct2), float32(a.Epsilon), float32(factor)
		for j, d := range g {
			d *= f
			m[j] = b1*m[j] + (1-b1)*d
			v[j] = b2*v[j] + (1-b2)*d*d
			root := float32(math.Sqrt(float64(v[j])))
			w[j] = w[j]*shrink - step*m[j]/(root*scale+eps)
		}
	}
}

// norm is the Euclidean length of the gradient of what is trained.
func (p *Parameters) norm(gradient []float32) float64 {
	sum := 0.0
	for i := range p.Parts {
		if p.Parts[i].Frozen {
			continue
		}
		for _, g := range gradient[p.Parts[i].From:p.Parts[i].To] {
			sum += float64(g) * float64(g)
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
