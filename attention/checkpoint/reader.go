package checkpoint

import "misroute/attention"

// reader asks for one tensor after the other and keeps the first problem, so that a family reads like
// the list of its parameters. After a problem it returns empty parameters and reads nothing more.
type reader struct {
	t   Tensors
	err error
}

func (r *reader) tensor(name string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	var data []float32
	data, r.err = r.t.Float32(name, shape...)
	return data
}

// linear reads name.weight (out x in) and name.bias (out).
func (r *reader) linear(name string, out, in int) attention.Linear {
	return r.linearBias(name, out, in, true)
}

// linearBias is linear for layers that may have been made without a bias.
func (r *reader) linearBias(name string, out, in int, bias bool) attention.Linear {
	l := attention.Linear{Out: out, In: in, Weight: r.tensor(name+".weight", out, in)}
	if bias {
		l.Bias = r.tensor(name+".bias", out)
	}
	return l
}

// norm reads name.weight and name.bias of a layer norm.
func (r *reader) norm(name string, size int) attention.Norm { return r.normBias(name, size, true) }

func (r *reader) normBias(name string, size int, bias bool) attention.Norm {
	n := attention.Norm{Gain: r.tensor(name+".weight", size)}
	if bias {
		n.Bias = r.tensor(name+".bias", size)
	}
	return n
}
