package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Newcombe returns the difference of two independent rates, after minus before, with the interval
// that follows from the two rates' own score intervals (Newcombe 1998, Statistics in Medicine
// 17:873, method 10). It is false when either has no messages.
func Newcombe(before, after Design, z float64) (difference float64, ci Interval, ok bool) {
	p0, ok0 := before.Rate().Value()
	p1, ok1 := after.Rate().Value()
	if !ok0 || !ok1 {
		return 0, Interval{-1, 1}, false
	}
	i0, i1 := before.Interval(z), after.Interval(z)
	d := p1 - p0
	return d, Interval{d - math.Hypot(p1-i1.Low, i0.High-p0), d + math.Hypot(i1.High-p1, p0-i0.Low)}, true
}

// ChiSquareResult is Pearson's test of homogeneity.
type ChiSquareResult struct {
	Statistic float64 `json:"chi_square"`
	DF        int     `json:"df"`
	P         float64 `json:"p"`
	// Distance is the total variation: the share of messages that would have to change their
	// category to make the last row like the others together.
	Distance float64 `json:"distance"`
	// Sparse says that a category expects fewer than 5 messages, where p is only a rough guide.
	Sparse bool `json:"sparse"`
}

// ChiSquare tests whether rows of counts come from the same distribution over categories, with the
// statistic divided by a design effect of at least 1 (the first-order correction of Rao and Scott
// 1984). Empty rows and categories do not take part; with fewer than two of either p is 1.
func ChiSquare(rows [][]int, deff float64) ChiSquareResult {
	r := ChiSquareResult{P: 1}
	if len(rows) == 0 {
		return r
	}
	categories := len(rows[0])
	byRow, byCategory := make([]float64, len(rows)), make([]float64, categories)
	total := 0.0
	for i, row := range rows {
		for j, k := range row {
			byRow[i] += float64(k)
			byCategory[j] += float64(k)
			total += float64(k)
		}
	}
	filled := func(sums []float64) (n int) {
		for _, s := range sums {
			if s > 0 {
				n++
			}
		}
		return n
	}
	last := len(rows) - 1
	if before := total - byRow[last]; before > 0 && byRow[last] > 0 {
		for j, k := range rows[last] {
			r.Distance += math.Abs(float64(k)/byRow[last]-(byCategory[j]-float64(k))/before) / 2
		}
	}
	m, c := filled(byRow), filled(byCategory)
	if m < 2 || c < 2 {
		return r
	}
	for i, row := range rows {
		for j, k := range row {
			expected := byRow[i] * byCategory[j] / total
			if expected == 0 {
				continue
			}
			r.Statistic += (float64(k) - expected) * (float64(k) - expected) / expected
			r.Sparse = r.Sparse || expected < 5
		}
	}
	r.Statistic /= math.Max(1, deff)
	r.DF = (m - 1) * (c - 1)
	r.P = distuv.ChiSquared{K: float64(r.DF)}.Survival(r.Statistic)
	return r
}

// RunOfOneSide returns how many of the last periods lie on the same side of the centre as the last
// one. Eight in a row are a signal although none is outside of its limits (Western Electric 1956).
func (c PChart) RunOfOneSide(periods []Group) int {
	side := func(g Group) int {
		p, ok := Ratio{g.K, g.N}.Value()
		switch {
		case ok && p > c.Centre:
			return 1
		case ok && p < c.Centre:
			return -1
		}
		return 0
	}
	n := 0
	for i := len(periods) - 1; i >= 0; i-- {
		if s := side(periods[i]); s == 0 || s != side(periods[len(periods)-1]) {
			break
		}
		n++
	}
	return n
}

// SignalRun is the length of a run on one side that counts as a signal.
const SignalRun = 8

// LinearTrend is a steady rise or fall of a rate over time.
type LinearTrend struct {
	Slope    float64  `json:"slope"` // of the rate, a unit of time
	Interval Interval `json:"interval"`
	P        float64  `json:"p"`
}

// CochranArmitage is the test for a linear trend in proportions of Cochran (1954) and Armitage (1955): K
// of N at each time, with the variance multiplied by a design effect of at least 1. It sees a
// steady change that leaves every single period inside of its limits. False where no trend can be
// told: fewer than three periods with messages, or a rate of 0 or 1 throughout.
func CochranArmitage(periods []Group, times []float64, deff, z float64) (LinearTrend, bool) {
	n, k, at, filled := 0.0, 0.0, 0.0, 0
	for i, g := range periods {
		n += float64(g.N)
		k += float64(g.K)
		at += float64(g.N) * times[i]
		if g.N > 0 {
			filled++
		}
	}
	if filled < 3 || k == 0 || k == n {
		return LinearTrend{}, false
	}
	p, mean := k/n, at/n
	covariance, spread := 0.0, 0.0
	for i, g := range periods {
		d := times[i] - mean
		covariance += d * (float64(g.K) - float64(g.N)*p)
		spread += float64(g.N) * d * d
	}
	if spread == 0 {
		return LinearTrend{}, false
	}
	slope := covariance / spread
	se := math.Sqrt(p * (1 - p) * math.Max(1, deff) / spread)
	return LinearTrend{slope, Interval{slope - z*se, slope + z*se}, math.Erfc(math.Abs(slope) / se / math.Sqrt2)}, true
}
