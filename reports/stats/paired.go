package stats

import "math"

// McNemarResult is the test of two runs over the same messages. Only messages whose correctness
// changed carry information.
type McNemarResult struct {
	B     int     `json:"b"` // baseline right, candidate wrong
	C     int     `json:"c"` // baseline wrong, candidate right
	Exact float64 `json:"exact_p"`
	MidP  float64 `json:"mid_p"`
}

// Changed is the number of messages whose correctness changed.
func (m McNemarResult) Changed() int { return m.B + m.C }

// FewestChanged returns the number of changed messages below which mid-p stays at or above alpha
// even if all of them changed the same way, where mid-p is 2^-N: 5 at alpha 0.05.
func FewestChanged(alpha float64) int {
	n := 1
	for math.Ldexp(1, -n) >= alpha && n < 1074 {
		n++
	}
	return n
}

// McNemar tests whether b and c differ by more than chance: under the hypothesis each changed
// message is a fair coin. It returns the exact conditional p and the mid-p, which is closer to the
// nominal level (Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91). With
// nothing changed both are 1.
func McNemar(b, c int) McNemarResult {
	r := McNemarResult{B: b, C: c, Exact: 1, MidP: 1}
	n, m := b+c, min(b, c)
	if n == 0 {
		return r
	}
	point := math.Exp(logChoose(n, m) - float64(n)*math.Ln2)
	// Terms fall by i/(n-i+1) from m downwards; below 1e-18 of the sum they no longer count.
	sum, term := point, point
	for i := m; i > 0; i-- {
		term *= float64(i) / float64(n-i+1)
		sum += term
		if term < sum*1e-18 {
			break
		}
	}
	r.Exact = math.Min(1, 2*sum)
	r.MidP = math.Min(1, 2*sum-point)
	return r
}

// logChoose returns the logarithm of the binomial coefficient n over k, 0 <= k <= n.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// BonettPrice returns the difference of the misroute rates of two runs over the same n messages,
// candidate minus baseline, with the 95 % adjusted Wald interval of Bonett and Price (2012,
// Statistical Methods in Medical Research 21:479). The point is the raw (b-c)/n; the interval
// stands around the adjusted one. With n = 0 the interval is [-1, 1].
func BonettPrice(b, c, n int) (point float64, ci Interval) {
	return BonettPriceAt(b, c, n, 1, Z95)
}

// BonettPriceAt is [BonettPrice] for any z and a design effect of at least 1, by which all three
// counts are divided before the interval is taken.
func BonettPriceAt(b, c, n int, deff, z float64) (point float64, ci Interval) {
	if n <= 0 {
		return 0, Interval{-1, 1}
	}
	d, se := bonettPrice(float64(b)/deff, float64(c)/deff, float64(n)/deff)
	return float64(b-c) / float64(n), Interval{math.Max(-1, d-z*se), math.Min(1, d+z*se)}
}

// bonettPrice returns the adjusted difference and its standard error.
func bonettPrice(b, c, n float64) (d, se float64) {
	p12, p21 := (b+1)/(n+2), (c+1)/(n+2)
	d = p12 - p21
	return d, math.Sqrt((p12 + p21 - d*d) / (n + 2))
}
