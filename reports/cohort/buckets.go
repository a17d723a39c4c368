// Package cohort assigns rows of a run to groups: buckets of length, queues, weeks. It finds out
// what else differs between the rows of a group, so that a report can warn of a hidden mixture.
package cohort

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// SmallBucket is the n below which a cell is greyed and neither tested nor ranked.
const SmallBucket = 30

// DefaultEdges are the upper edges of the length buckets, at the usual caps; a last bucket takes
// whatever is longer.
var DefaultEdges = []int{64, 128, 256, 384, 512, 1024}

// Buckets cuts lengths, in tokens with specials, into left-open, right-closed ranges: a message of
// exactly 256 tokens is in (128,256], since a cap of 256 does not cut it.
type Buckets struct {
	edges []int // rising upper edges; the last bucket is open
}

// NewBuckets makes buckets (0,e0] (e0,e1] ... (en,inf) of rising positive edges. Without edges
// there is one bucket for everything.
func NewBuckets(edges []int) (Buckets, error) {
	for i, e := range edges {
		if e <= 0 {
			return Buckets{}, fmt.Errorf("length bucket edge %d is not positive", e)
		}
		if i > 0 && e <= edges[i-1] {
			return Buckets{}, fmt.Errorf("length bucket edges must rise: %d does not come after %d", e, edges[i-1])
		}
	}
	return Buckets{slices.Clone(edges)}, nil
}

// DefaultBuckets are the buckets of [DefaultEdges].
func DefaultBuckets() Buckets { return Buckets{slices.Clone(DefaultEdges)} }

// ParseBuckets reads the --buckets flag: empty for the default edges, "64,256,1024" for edges of
// one's own, "equal:4" for four buckets with about the same number of the given lengths.
func ParseBuckets(spec string, lengths []int) (Buckets, error) {
	spec = strings.TrimSpace(spec)
	if spec == "" {
		return DefaultBuckets(), nil
	}
	if rest, ok := strings.CutPrefix(spec, "equal:"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil || n < 1 || n > 1000 {
			return Buckets{}, fmt.Errorf("buckets %q: write equal:N with N from 1 to 1000, such as equal:4", spec)
		}
		return EqualBuckets(lengths, n), nil
	}
	var edges []int
	for part := range strings.SplitSeq(spec, ",") {
		e, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || e > math.MaxInt32 {
			return Buckets{}, fmt.Errorf("buckets %q: %q is not a number of tokens; write rising edges such as 64,256,1024, or equal:4", spec, strings.TrimSpace(part))
		}
		edges = append(edges, e)
	}
	b, err := NewBuckets(edges)
	if err != nil {
		return Buckets{}, fmt.Errorf("buckets %q: %w", spec, err)
	}
	return b, nil
}

// EqualBuckets makes n buckets that hold about the same number of the given lengths. Equal lengths
// stay together, so that there may be fewer buckets, and their counts may differ.
func EqualBuckets(lengths []int, n int) Buckets {
	sorted := slices.Clone(lengths)
	slices.Sort(sorted)
	var edges []int
	for i := 1; i < n && len(sorted) > 0; i++ {
		// The edge closes the bucket over the length at its end: ceil(i*N/n) lengths at most.
		at := (i*len(sorted)+n-1)/n - 1
		e := sorted[at]
		if e < 1 || e >= sorted[len(sorted)-1] || len(edges) > 0 && e <= edges[len(edges)-1] {
			continue
		}
		edges = append(edges, e)
	}
	return Buckets{edges}
}

// Len is the number of buckets.
func (b Buckets) Len() int { return len(b.edges) + 1 }

// Edges returns the upper edges, without the open one.
func (b Buckets) Edges() []int { return slices.Clone(b.edges) }

// Of returns the bucket of a length. Every length has one: a length below 1, which no tokenizer
// gives, goes to the first.
func (b Buckets) Of(tokens int) int {
	i, _ := slices.BinarySearch(b.edges, tokens)
	return i
}

// Range returns the lengths of a bucket as (low, high]; high is 0 for the open one.
func (b Buckets) Range(i int) (low, high int) {
	if i > 0 {
		low = b.edges[i-1]
	}
	if i < len(b.edges) {
		high = b.edges[i]
	}
	return low, high
}

// Label names a bucket by its first and last length: "65-128", ">1024", "all".
func (b Buckets) Label(i int) string {
	low, high := b.Range(i)
	switch {
	case len(b.edges) == 0:
		return "all"
	case high == 0:
		return ">" + strconv.Itoa(low)
	case low+1 == high:
		return strconv.Itoa(high)
	}
	return strconv.Itoa(low+1) + "-" + strconv.Itoa(high)
}

// ShareLost is the share of a message's tokens past the cap: max(0, tokens-limit)/tokens, and 0
// without a cap (limit 0).
func ShareLost(tokens, limit int) float64 {
	if limit <= 0 || tokens <= limit {
		return 0
	}
	return float64(tokens-limit) / float64(tokens)
}
