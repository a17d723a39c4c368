package stats

import (
	"math"
	"testing"
)

// Numbers recorded from scipy 1.10.1 and scikit-learn 1.2.1 (Debian 12's python3-scipy and
// python3-sklearn), which share no code with this package. The call that made each table stands
// above it.

// scipy.stats.binomtest(k, n).proportion_ci(method="wilson")
func TestWilsonAgainstScipy(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 10, 0, 0.27753279986288926},
		{10, 10, 0.7224672001371109, 1},
		{19, 20, 0.763868806553258, 0.9911185511992047},
		{3, 25, 0.041668171504403606, 0.29955793920927326},
		{30, 1000, 0.021093738828834696, 0.042503414147587126},
		{1, 7, 0.02567962434474358, 0.5131278292743189},
		{77, 1234, 0.0502139788624584, 0.07729949040772707},
		{1, 1, 0.20654931437723745, 1},
		{250000, 1000000, 0.24915227214719246, 0.2508496485748395},
	} {
		i := Wilson(c.k, c.n)
		near(t, "low", i.Low, c.low, 1e-13)
		near(t, "high", i.High, c.high, 1e-13)
	}
}

// exact = binomtest(min(b, c), b+c, .5).pvalue; mid-p = exact - binom.pmf(min(b, c), b+c, .5)
func TestMcNemarAgainstScipy(t *testing.T) {
	for _, c := range []struct {
		b, c        int
		exact, midP float64
	}{
		{1, 0, 1, 0.5},
		{4, 0, 0.125, 0.0625},
		{3, 2, 1, 0.6875},
		{25, 9, 0.00904118549078703, 0.005988120567053555},
		{120, 80, 0.005685155996750306, 0.00466005197464012},
		{1000, 900, 0.0231088451089012, 0.02179149925371356},
		{60000, 59000, 0.0037798696367767853, 0.003745244394539698},
		{199000, 1000, 0, 0},
	} {
		r := McNemar(c.b, c.c)
		near(t, "exact", r.Exact, c.exact, 1e-9*c.exact)
		near(t, "mid-p", r.MidP, c.midP, 1e-9*c.midP)
	}
}

// Rational arithmetic (Python's fractions), the square root and z in 30 decimals.
func TestBonettPriceAgainstFractions(t *testing.T) {
	for _, c := range []struct {
		b, c, n   int
		low, high float64
	}{
		{1, 0, 1, -0.733535928078957717, 1},
		{0, 7, 7, -1, -0.367139607600095473},
		{5, 0, 100, -0.000921416314404468, 0.0989606320006789779},
		{120, 80, 4000, 0.00304129392105736013, 0.0169487110764438892},
		{3, 3, 31, -0.167988342345415488, 0.167988342345415488},
	} {
		_, ci := BonettPrice(c.b, c.c, c.n)
		near(t, "low", ci.Low, c.low, 1e-14)
		near(t, "high", ci.High, c.high, 1e-14)
	}
}

// numpy 1.24.2, from the definitions over all pairs of tests instead of sorted ones: Holm is
// max over q <= p of (number of p >= q in sorted order) q, Benjamini-Hochberg min over q >= p of
// m q / #(p <= q).
func TestAdjustmentsAgainstNumpy(t *testing.T) {
	p := []float64{.0011, .04, .2, .013, .013, .9, .0499, .003, .3, .07}
	for i, want := range []float64{0.011, 0.24, 0.6, 0.104, 0.104, 0.9, 0.2495, 0.027, 0.6, 0.28} {
		near(t, "Holm", Holm(p)[i], want, 1e-12)
	}
	for i, want := range []float64{0.011, 0.08, 0.25, 0.0325, 0.0325, 0.9, 0.083166666667, 0.015, 0.333333333333, 0.1} {
		near(t, "Benjamini-Hochberg", BenjaminiHochberg(p)[i], want, 1e-11)
	}
}

// 500 made scores; numpy for the calibration error in 15 bins and the counts at thresholds.
func TestScoresAgainstNumpy(t *testing.T) {
	score, right, wrong := make([]float64, 500), make([]bool, 500), make([]bool, 500)
	for i := range score {
		score[i] = float64(i*37%101) / 101
		right[i] = float64(i*53%97) < score[i]*97
		wrong[i] = !right[i]
	}
	ece, _ := ECE(Reliability(score, right, DefaultBins))
	near(t, "ECE", ece, 0.03984158415841585, 1e-13)
	curve := CoverageRisk(score, wrong)
	for _, c := range []struct {
		threshold     float64
		routed, wrong int
	}{{.2, 396, 159}, {.5, 247, 62}, {.77, 114, 16}, {.9, 49, 3}} {
		if p := AtThreshold(curve, c.threshold); p.Routed != c.routed || p.Wrong != c.wrong {
			t.Errorf("at %v: %+v, want %d and %d", c.threshold, p, c.routed, c.wrong)
		}
	}
}

// scipy.optimize.minimize_scalar(method="bounded", xatol=1e-10) over scipy.special.log_softmax.
func TestTemperatureAgainstScipy(t *testing.T) {
	var logits []float64
	var label []int
	for i := range 500 {
		x := float64(i)
		row := []float64{3 * math.Sin(1.3*x), 3 * math.Cos(.7*x), 3 * math.Sin(.31*x+1)}
		best := 0
		for j := range row {
			if row[j] > row[best] {
				best = j
			}
		}
		if i%5 == 0 {
			best = (best + 1) % 3
		}
		logits, label = append(logits, row...), append(label, best)
	}
	fit, _ := Temperature(logits, 3, label)
	near(t, "T", fit.T, 1.6950466678216338, 2e-4)
	near(t, "before", fit.Before, 0.8444577064748462, 1e-12)
	near(t, "after", fit.After, 0.7755664944205414, 1e-8)
}

// numpy by standardisation, another way to the same split: the mean over both weeks' rates of what
// swapping the shares does, and over both weeks' shares of what swapping the rates does.
func TestKitagawaAgainstStandardisation(t *testing.T) {
	s, _ := Kitagawa([]Group{{3, 200}, {10, 150}, {20, 90}}, []Group{{9, 180}, {8, 60}, {45, 160}})
	near(t, "mix", s.Mix, 0.029964330808080815, 1e-15)
	near(t, "within", s.Within, 0.05003566919191919, 1e-15)
	near(t, "total", s.Total, 0.08, 1e-15)
}
