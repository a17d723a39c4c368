// Package stats holds the statistics of the reports: intervals, paired tests, corrections for
// several tests, resampling by cluster, calibration and the verdict of a comparison.
//
// Everything here takes and returns plain numbers. The package knows neither rows nor queues by
// name, and prints nothing; package cohort counts, package reports draws.
//
// Two rules run through it. A number that the data do not define is reported as undefined, never
// as zero. And everything random takes a seed and gives each replicate a stream of its own, so
// that a result has the same bits for any number of workers.
package stats

import "math"

// Z95 is the standard normal quantile of 0.975, for two-sided 95 % intervals.
const Z95 = 1.959963984540054

// DefaultAlpha is the level of tests and one minus the confidence of intervals, unless a caller
// asks for another.
const DefaultAlpha = 0.05

// Quantile returns the standard normal z with a share p of the distribution below it, 0 < p < 1.
func Quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// ZOf returns the z of a two-sided interval of confidence 1-alpha; Z95 at alpha 0.05.
func ZOf(alpha float64) float64 {
	if alpha == DefaultAlpha {
		return Z95
	}
	return Quantile(1 - alpha/2)
}

// Interval is a confidence interval, in the unit of what it encloses.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Contains says whether x lies in the closed interval.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// Width is High - Low.
func (i Interval) Width() float64 { return i.High - i.Low }

// Ratio is a share of counts that may be undefined: precision of a queue nothing was sent to has
// Den 0 and no value.
type Ratio struct {
	Num, Den int
}

// Value returns Num/Den, and false when Den is 0.
func (r Ratio) Value() (float64, bool) {
	if r.Den == 0 {
		return 0, false
	}
	return float64(r.Num) / float64(r.Den), true
}

// Wilson returns the 95 % score interval of a share of k in n (Wilson 1927; Brown, Cai and
// DasGupta 2001 recommend it over Wald's, which has no width at 0 and at n). The lower bound is
// exactly 0 at k = 0 and the upper exactly 1 at k = n. Without observations it is [0, 1].
func Wilson(k, n int) Interval { return WilsonAt(float64(k), float64(n), Z95) }

// WilsonAt is [Wilson] for counts that need not be whole, such as effective ones (n divided by
// the design effect, k in proportion), and for any z.
func WilsonAt(k, n, z float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	p := k / n
	zz := z * z
	denominator := 1 + zz/n
	centre := (p + zz/(2*n)) / denominator
	half := z / denominator * math.Sqrt(p*(1-p)/n+zz/(4*n*n))
	i := Interval{math.Max(0, centre-half), math.Min(1, centre+half)}
	if k <= 0 {
		i.Low = 0
	}
	if k >= n {
		i.High = 1
	}
	return i
}
