package kernel

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// variant is one implementation of every primitive.
type variant struct {
	name string

	// A packed matrix is cut into panels of lanes*vectors columns, the last one narrower in steps of
	// lanes; see Packed.
	lanes, vectors int

	// panel computes the first columns of rows of C: C[i][j] = init[j] + sum over p of A[i][p] B[p][j].
	// b is k x width, width a multiple of lanes and at least columns. With init nil the sum is added
	// to C instead.
	panel func(c []float32, ldc, columns int, a []float32, lda, rows, k int, b []float32, width int, init []float32)

	exp        func(x []float32)
	expWeights func(x []float32, scale float32) (sum float32)
	scale      func(x []float32, factor float32)
	gelu       func(x []float32)
	geluTanh   func(x []float32)
	tanh       func(x []float32)
	norm       func(dst, x, gain, bias []float32, eps float32)
	add        func(dst, x []float32)
	axpy       func(dst []float32, factor float32, x []float32)
	dot        func(x, y []float32) float32
}

var active atomic.Pointer[variant]

// variants lists what this processor can run, the fastest first.
var variants = append(processorVariants(), &generic)

func init() { active.Store(variants[0]) }

// Variant names the active implementation: "avx512", "avx2" or "generic".
func Variant() string { return active.Load().name }

// Variants names what this processor can run, the fastest first.
func Variants() []string {
	names := make([]string, len(variants))
	for i, v := range variants {
		names[i] = v.name
	}
	return names
}

// Use makes a variant the active one until restore is called. Matrices packed before keep the layout
// and the kernel they were packed for. It is for tests and benchmarks.
func Use(name string) (restore func(), err error) {
	for _, v := range variants {
		if v.name == name {
			before := active.Swap(v)
			return func() { active.Store(before) }, nil
		}
	}
	return nil, fmt.Errorf("kernel variant %q cannot run here; have %s", name, strings.Join(Variants(), ", "))
}
