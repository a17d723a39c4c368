package window

import (
	"fmt"
	"slices"
	"strings"
)

// Aggregation makes one vector of logits of those of several windows.
type Aggregation int

const (
	AggregateMean   Aggregation = iota // the mean over windows
	AggregateMax                       // the greatest logit of each queue
	AggregateFirst                     // the first window's
	AggregateLength                    // the mean weighted by the windows' tokens
)

var aggregationNames = [...]string{"mean", "max", "first", "length"}

func (a Aggregation) String() string {
	if a < 0 || int(a) >= len(aggregationNames) {
		return fmt.Sprintf("aggregation(%d)", int(a))
	}
	return aggregationNames[a]
}

// ParseAggregation reads the name of an aggregation.
func ParseAggregation(name string) (Aggregation, error) {
	if i := slices.Index(aggregationNames[:], name); i >= 0 {
		return Aggregation(i), nil
	}
	return 0, fmt.Errorf("unknown aggregation %q; known: %s", name, strings.Join(aggregationNames[:], ", "))
}

// Aggregate fills dst, of length queues, with the aggregate of logits [windows][queues]. lengths
// [windows] are the windows' tokens, used by AggregateLength alone.
func Aggregate(dst []float32, how Aggregation, logits [][]float32, lengths []int) {
	if len(logits) == 0 {
		clear(dst)
		return
	}
	if how == AggregateFirst || len(logits) == 1 {
		copy(dst, logits[0])
		return
	}
	if how == AggregateMax {
		copy(dst, logits[0])
		for _, row := range logits[1:] {
			for q, x := range row {
				dst[q] = max(dst[q], x)
			}
		}
		return
	}
	total := 0.0
	weight := func(w int) float64 {
		if how == AggregateLength {
			return float64(lengths[w])
		}
		return 1
	}
	for w := range logits {
		total += weight(w)
	}
	for q := range dst {
		sum := 0.0 // in double: the sum must not depend on the size of one window
		for w, row := range logits {
			sum += weight(w) * float64(row[q])
		}
		dst[q] = float32(sum / max(total, 1e-300))
	}
}
