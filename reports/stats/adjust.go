package stats

import (
	"cmp"
	"slices"
)

// Holm returns the adjusted p of each test of a family, in the order given (Holm 1979): rejecting
// those below alpha keeps the chance of any false rejection below alpha, whatever the dependence.
func Holm(p []float64) []float64 {
	order := ascending(p)
	adjusted := make([]float64, len(p))
	running := 0.0
	for rank, i := range order {
		running = max(running, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = running
	}
	return adjusted
}

// BenjaminiHochberg returns the q of each test, in the order given (Benjamini and Hochberg 1995):
// among those called at q, a share of about q is expected to be false. For tables to explore,
// where no decision hangs on a single row.
func BenjaminiHochberg(p []float64) []float64 {
	order := ascending(p)
	adjusted := make([]float64, len(p))
	running := 1.0
	for rank := len(order) - 1; rank >= 0; rank-- {
		i := order[rank]
		running = min(running, p[i]*float64(len(p))/float64(rank+1))
		adjusted[i] = running
	}
	return adjusted
}

// ascending returns the indices of p by rising value, ties in the order given.
func ascending(p []float64) []int {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order
}

// FixedSequence returns how many tests of an ordered family are passed when it is worked through
// from the front and stopped at the first failure. Each test may use the whole alpha, because a
// later one is only looked at after every earlier one succeeded (Maurer, Hothorn and Lehmacher
// 1995). For a sweep of caps the order is from the largest down.
func FixedSequence(passed []bool) int {
	for i, ok := range passed {
		if !ok {
			return i
		}
	}
	return len(passed)
}
