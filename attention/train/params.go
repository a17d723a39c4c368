package train

import (
	"math"
	"math/rand/v2"

	"misroute/attention"
)

// Parameters are all learned numbers of a network in one vector, so that the optimiser is one loop and
// a checkpoint one array. A gradient is a vector of the same length.
type Parameters struct {
	Values []float32
	Parts  []Part
}

// Part is one tensor among the parameters.
type Part struct {
	Name     string
	From, To int  // range in the vector
	Rows     int  // 1 for a vector
	Decay    bool // weight decay applies: to matrices, not to biases and norms
	Depth    int  // 0: embeddings, l+1: layer l, then the head; for layer-wise rates
	Frozen   bool // not trained
}

// layout hands out consecutive pieces of a vector. Run over the values and over a gradient in the same
// order, it gives two structures of the same shape.
type layout struct {
	vector []float32 // nil: only count
	parts  []Part
	used   int
	depth  int
}

func (l *layout) take(name string, rows, columns int, decay bool) []float32 {
	n := rows * columns
	l.parts = append(l.parts, Part{Name: name, From: l.used, To: l.used + n, Rows: rows, Decay: decay, Depth: l.depth})
	l.used += n
	if l.vector == nil {
		return nil
	}
	return l.vector[l.used-n : l.used] // with its capacity, see keysValues
}

func (l *layout) linear(name string, out, in int) attention.Linear {
	return attention.Linear{In: in, Out: out,
		Weight: l.take(name+".weight", out, in, true),
		Bias:   l.take(name+".bias", 1, out, false)}
}

func (l *layout) norm(name string, size int) attention.Norm {
	return attention.Norm{Gain: l.take(name+".gain", 1, size, false), Bias: l.take(name+".bias", 1, size, false)}
}

// sideBySide lays linear layers that read the same input next to each other, weights first, so that
// together they are one matrix too.
func (l *layout) sideBySide(out, in int, names ...string) []attention.Linear {
	list := make([]attention.Linear, len(names))
	for i, name := range names {
		list[i] = attention.Linear{In: in, Out: out, Weight: l.take(name+".weight", out, in, true)}
	}
	for i, name := range names {
		list[i].Bias = l.take(name+".bias", 1, out, false)
	}
	return list
}

// initialise draws every matrix from a normal distribution and sets gains to 1, as BERT does (Devlin
// et al. 2018: standard deviation 0.02). A deviation of 0 asks for 1/sqrt(columns) in its place, which
// small networks that are trained from nothing learn faster with.
func (p *Parameters) initialise(deviation float64, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x1417))
	for _, part := range p.Parts {
		values := p.Values[part.From:part.To]
		switch {
		case part.Decay:
			d := deviation
			if d == 0 {
				d = 1 / math.Sqrt(float64(len(values)/part.Rows))
			}
			for i := range values {
				values[i] = float32(rng.NormFloat64() * d)
			}
		case isGain(part.Name):
			for i := range values {
				values[i] = 1
			}
		default:
			clear(values)
		}
	}
}

func isGain(name string) bool { return len(name) > 5 && name[len(name)-5:] == ".gain" }
