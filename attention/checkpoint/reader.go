package checkpoint

import "misroute/attention"

// reader asks for one tensor after the other and keeps the first problem, so that a family reads like
// the list of its parameters. After a problem it returns empty parameters and reads nothing more.
type reader struct {
	t   Tensors
	err error

	only bool // check that tensors are there and have their shapes, and read nothing
	keep bool // the matrices outlive their layer; otherwise layers share the memory of

	scratch []float32
	used    int
}

// layers checks that all layers are complete, reading nothing, and returns how to read one of them.
// A configuration may claim any number: nothing is allocated before they are all known to be there.
// The weights that read returns are good until the next layer is asked for.
func layers[L any](r *reader, n int, read func(i int) L) func(i int) (L, error) {
	r.only = true
	most := 0 // that a layer takes
	for i := 0; i < n && r.err == nil; i++ {
		r.used = 0
		read(i)
		most = max(most, r.used)
	}
	r.only = false
	return func(i int) (L, error) {
		if r.scratch == nil {
			r.scratch = make([]float32, most)
		}
		r.used = 0
		l := read(i)
		return l, r.err
	}
}

func (r *reader) tensor(name string, shape ...int) (data []float32) {
	switch {
	case r.err != nil:
	case r.only:
		r.err = r.check(name, shape)
	default:
		data, r.err = r.t.Float32(name, shape...)
	}
	return data
}

// weight is tensor into the memory that layers share.
func (r *reader) weight(name string, out, in int) []float32 {
	if r.err != nil || r.keep {
		return r.tensor(name, out, in)
	}
	if r.err = r.check(name, []int{out, in}); r.err != nil {
		return nil
	}
	n := out * in // as in the file, so it does not overflow
	r.used += n
	if r.only {
		return nil
	}
	if r.used > len(r.scratch) {
		return r.tensor(name, out, in)
	}
	data := r.scratch[r.used-n : r.used : r.used]
	r.err = r.t.ReadFloat32(data, name, out, in)
	return data
}

// check says what is wrong with a tensor's name or shape.
func (r *reader) check(name string, shape []int) error {
	have, ok := r.t.Shape(name)
	if !ok {
		return missingTensor(name)
	}
	return checkShape(name, have, shape)
}

// linear reads name.weight (out x in) and name.bias (out).
func (r *reader) linear(name string, out, in int) attention.Linear {
	return r.linearBias(name, out, in, true)
}

// linearBias is linear for layers that may have been made without a bias.
func (r *reader) linearBias(name string, out, in int, bias bool) attention.Linear {
	l := attention.Linear{Out: out, In: in, Weight: r.weight(name+".weight", out, in)}
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
