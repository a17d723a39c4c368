package stats

import "testing"

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
