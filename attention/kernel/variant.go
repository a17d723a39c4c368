package kernel

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// variant is one implementation of every primitive. Its methods, in dispatch_*.go, call the
// implementation directly and not through function values, so that the compiler sees that nothing
// escapes.
type variant struct {
	name string
	kind kind

	// A packed matrix is cut into panels of lanes*vectors columns, the last ones narrower in steps of
	// lanes; see Packed. lanes is also the side of the blocks that transpose moves.
	lanes, vectors int
}

type kind uint8

const (
	isGeneric kind = iota
	isAVX2
	isAVX512
)

var (
	generic = variant{name: "generic", kind: isGeneric, lanes: 4, vectors: 4}
	active  atomic.Pointer[variant]

	// variants lists what this processor can run, the fastest first.
	variants = append(processorVariants(), &generic)
)

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
