package stats

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// Coverage and level are checked in two ways. Where the sample space is small enough they are
// summed over all of it, with no chance involved. Where threads come in they are simulated, seeded,
// in the long part: MISROUTE_LONG=1.

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("MISROUTE_LONG") != "1" {
		t.Skip("simulations run under MISROUTE_LONG=1")
	}
}

// mass is the binomial probability of k in n.
func mass(n, k int, p float64) float64 {
	return math.Exp(logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// within fails unless low <= got <= high.
func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("%s: %.4f", what, got)
	if !(got >= low && got <= high) {
		t.Errorf("%s = %.4f, want %.4f to %.4f", what, got, low, high)
	}
}

// The mean coverage of Wilson's interval is the nominal one even for small n, and its dips, near 0
// and 1, do not go below .83 (Brown, Cai and DasGupta 2001, section 4). Wald's mean at n = 10 is .77.
func TestWilsonCoverage(t *testing.T) {
	for _, n := range []int{10, 30, 100, 400} {
		mean, lowest := 0.0, 1.0
		const grid = 2000
		for i := range grid {
			p := (float64(i) + 0.5) / grid
			covered := 0.0
			for k := range n + 1 {
				if Wilson(k, n).Contains(p) {
					covered += mass(n, k, p)
				}
			}
			mean += covered / grid
			lowest = math.Min(lowest, covered)
		}
		within(t, "mean coverage", mean, .945, .96)
		within(t, "lowest coverage", lowest, .83, .95)
	}
}

// Given N changed messages under the hypothesis, the exact test never rejects more often than alpha.
// Mid-p may at some small N (.077 at the most), and is nearer to alpha on average; over what N will
// be in a run of n messages it keeps alpha (Fagerland et al. 2013 find the same). The last three
// numbers are those of scipy's binom over the same sums.
func TestMcNemarLevel(t *testing.T) {
	mean, highest, exactMean, exactHighest := 0.0, 0.0, 0.0, 0.0
	const most = 200
	for n := 6; n <= most; n++ {
		level, exact := 0.0, 0.0
		for b := range n + 1 {
			r := McNemar(b, n-b)
			if r.MidP < .05 {
				level += mass(n, b, .5)
			}
			if r.Exact < .05 {
				exact += mass(n, b, .5)
			}
		}
		mean += level / (most - 5)
		exactMean += exact / (most - 5)
		highest, exactHighest = math.Max(highest, level), math.Max(exactHighest, exact)
	}
	within(t, "mean level of mid-p", mean, .043, .051)
	within(t, "highest level of mid-p", highest, .05, .078)
	within(t, "mean level of exact p", exactMean, .03, .042)
	within(t, "highest level of exact p", exactHighest, .03, .05)
	for _, c := range []struct {
		n      int
		change float64
		level  float64
	}{{50, .2, 0.04130762347750772}, {200, .05, 0.04113104587418218}, {1000, .02, 0.04571900418412019}} {
		level := 0.0
		for changed := range 200 {
			if changed > c.n {
				break
			}
			for b := range changed + 1 {
				if McNemar(b, changed-b).MidP < .05 {
					level += mass(c.n, changed, c.change) * mass(changed, b, .5)
				}
			}
		}
		near(t, "level over all messages", level, c.level, 1e-9)
	}
}

// Coverage of Bonett and Price's interval over the whole trinomial sample space.
func TestBonettPriceCoverage(t *testing.T) {
	for _, n := range []int{30, 80} {
		mean, lowest, cases := 0.0, 1.0, 0.0
		for _, p12 := range []float64{.01, .02, .05, .1, .2, .3} {
			for _, p21 := range []float64{.01, .02, .05, .1, .2, .3} {
				covered := 0.0
				for b := range n + 1 {
					for c := range n + 1 - b {
						if _, ci := BonettPrice(b, c, n); ci.Contains(p12 - p21) {
							// b of n, then c of the rest.
							covered += mass(n, b, p12) * mass(n-b, c, p21/(1-p12))
						}
					}
				}
				mean += covered
				lowest = math.Min(lowest, covered)
				cases++
			}
		}
		within(t, "mean coverage", mean/cases, .95, .975)
		within(t, "lowest coverage", lowest, .93, .96)
	}
}

// Coverage of Newcombe's interval for independent rates.
func TestNewcombeCoverage(t *testing.T) {
	const n, m = 30, 50
	mean, cases := 0.0, 0.0
	for _, p := range []float64{.02, .05, .1, .3, .5} {
		for _, q := range []float64{.02, .05, .1, .3, .5} {
			for k := range n + 1 {
				for j := range m + 1 {
					a, b := Design{K: k, N: n, Clusters: n, Effect: 1}, Design{K: j, N: m, Clusters: m, Effect: 1}
					if _, ci, _ := Newcombe(a, b, Z95); ci.Contains(q - p) {
						mean += mass(n, k, p) * mass(m, j, q)
					}
				}
			}
			cases++
		}
	}
	within(t, "mean coverage", mean/cases, .945, .97)
}

// thread draws how many messages a thread has: most have one, some have many.
func thread(random *rand.Rand) int {
	n := 1
	for n < 12 && random.Float64() < .4 {
		n++
	}
	return n
}

// Rates of threads whose messages share their luck: the interval at the effective n keeps its
// coverage, the one that takes messages for independent does not.
func TestClusteredRateCoverage(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(11, 1))
	const runs, p = 4000, .1
	covered, naive := 0.0, 0.0
	for range runs {
		var clusters []Group
		for range 250 {
			// A thread is bad with probability .2; its messages then go wrong half of the time.
			rate := 0.0
			if random.Float64() < .2 {
				rate = p / .2
			}
			g := Group{N: thread(random)}
			for range g.N {
				if random.Float64() < rate {
					g.K++
				}
			}
			clusters = append(clusters, g)
		}
		d := DesignEffect(clusters)
		if d.Interval(Z95).Contains(p) {
			covered += 1.0 / runs
		}
		if Wilson(d.K, d.N).Contains(p) {
			naive += 1.0 / runs
		}
	}
	within(t, "coverage at the effective n", covered, .935, .965)
	within(t, "coverage of independent messages", naive, .5, .93)
}

// drawPairs makes threads of paired outcomes: a message changes with probability change, and a
// changed one gets worse with a probability that its thread shares.
func drawPairs(random *rand.Rand, threads int, change, worse, sharing float64) []PairCluster {
	out := make([]PairCluster, threads)
	for i := range out {
		shared := random.Float64() < worse
		changes := random.Float64() < change // of the thread, for those who share
		for range thread(random) {
			out[i].N++
			down, changed := shared, changes
			if random.Float64() >= sharing {
				down, changed = random.Float64() < worse, random.Float64() < change
			}
			switch {
			case !changed:
			case down:
				out[i].B++
			default:
				out[i].C++
			}
		}
	}
	return out
}

// With no difference between two runs, the test by thread rejects about as often as it says, mid-p
// far more often: it takes the messages of a thread for independent.
func TestSignFlipLevel(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(12, 1))
	const runs = 3000
	flip, midP, covered := 0.0, 0.0, 0.0
	for r := range runs {
		p := ComparePaired(drawPairs(random, 300, .1, .5, .9), .05, Resampling{Draws: 999, Seed: uint64(r + 1)})
		if p.Decided() {
			flip += 1.0 / runs
		}
		if p.MidP < .05 {
			midP += 1.0 / runs
		}
		if p.Interval.Contains(0) {
			covered += 1.0 / runs
		}
	}
	within(t, "level by thread", flip, .035, .06)
	within(t, "level of mid-p", midP, .08, .5)
	within(t, "coverage of the interval", covered, .94, .98)
}

// The gate: a candidate that is worse by exactly the margin passes in at most about alpha/2 of all
// cases, and one that is as good as the baseline is called a regression as rarely.
func TestGateErrors(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(13, 1))
	const runs, threads, change, margin = 2500, 600, .06, .02
	wrongPass, wrongRegression := 0.0, 0.0
	for r := range runs {
		// Difference = change*(2*worse-1): the margin at worse = (1+margin/change)/2.
		p := ComparePaired(drawPairs(random, threads, change, (1+margin/change)/2, .8), .05, Resampling{Draws: 199, Seed: uint64(r + 1)})
		if Judge(&p, margin, false).Verdict == Pass {
			wrongPass += 1.0 / runs
		}
		p = ComparePaired(drawPairs(random, threads, change, .5, .8), .05, Resampling{Draws: 199, Seed: uint64(r + 1)})
		if Judge(&p, margin, false).Verdict == Regression {
			wrongRegression += 1.0 / runs
		}
	}
	within(t, "PASS although worse by the margin", wrongPass, 0, .035)
	within(t, "REGRESSION although equal", wrongRegression, 0, .035)
}

// A message count said to be needed decides in about the promised share of cases.
func TestNeededDecides(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(14, 1))
	single := func(n int) []PairCluster {
		out := make([]PairCluster, n)
		for i := range out {
			out[i].N = 1
			switch u := random.Float64(); {
			case u < .03:
				out[i].B = 1
			case u < .04:
				out[i].C = 1
			}
		}
		return out
	}
	// Shares as observed: 3 % worse, 1 % better.
	p := ComparePaired(pairsOf(9, 3, 300), .05, Resampling{})
	j := Judge(&p, .005, false)
	if j.Verdict != Inconclusive {
		t.Fatal(j.Verdict)
	}
	const runs = 600
	decided := 0.0
	for r := range runs {
		p := ComparePaired(single(j.Needed), .05, Resampling{Draws: 499, Seed: uint64(r + 1)})
		if Judge(&p, .005, false).Verdict == Regression {
			decided += 1.0 / runs
		}
	}
	t.Logf("%d messages", j.Needed)
	within(t, "decided", decided, Power-.06, Power+.08)
}

// Placebo with nothing planted: the cut and the placebo drop text of the same worth, three placebo
// draws a message, so that the pairs of one message depend on each other.
func TestPlaceboCoversZero(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(15, 1))
	const runs = 3000
	covered := 0.0
	for r := range runs {
		var clusters []PairCluster
		for range 120 {
			var c PairCluster
			for range thread(random) {
				hard := .05 + .5*random.Float64() // the chance to go wrong, whatever is dropped
				cut := random.Float64() < hard
				for range 3 {
					c.N++
					switch placebo := random.Float64() < hard; {
					case cut && !placebo:
						c.B++
					case placebo && !cut:
						c.C++
					}
				}
			}
			clusters = append(clusters, c)
		}
		p := ComparePaired(clusters, .05, Resampling{Draws: 99, Seed: uint64(r + 1)})
		if p.Interval.Contains(0) {
			covered += 1.0 / runs
		}
	}
	within(t, "interval covers 0", covered, .935, .97)
}

// Bootstrap interval of the difference of macro-F1 over threads of one label.
func TestMacroF1Coverage(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(16, 1))
	const queues = 4
	draw := func(threads int) []Pair {
		var pairs []Pair
		for i := range threads {
			label := int32(min(int(random.ExpFloat64()), queues-1))
			base, cand := label, label
			if random.Float64() < .15 {
				base = int32(random.IntN(queues))
			}
			if random.Float64() < .25 {
				cand = int32(random.IntN(queues))
			}
			for range thread(random) {
				pairs = append(pairs, Pair{int32(i), label, base, cand})
			}
		}
		return pairs
	}
	truth, _ := CompareMacroF1(draw(400_000), queues, .05, Resampling{Draws: 1})
	const runs = 800
	covered := 0.0
	for r := range runs {
		d, _ := CompareMacroF1(draw(300), queues, .05, Resampling{Draws: 400, Seed: uint64(r + 1)})
		if d.DifferenceInterval.Contains(truth.Difference) {
			covered += 1.0 / runs
		}
	}
	within(t, "coverage", covered, .915, .975)
}

// A stable router leaves the limits of its p-chart in about three of a thousand weeks, whatever
// their sizes.
func TestPChartFalseAlarms(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(17, 1))
	alarms, weeks := 0.0, 0.0
	for range 2000 {
		var periods []Group
		for range 20 {
			g := Group{N: 150 + random.IntN(600)}
			for range g.N {
				if random.Float64() < .08 {
					g.K++
				}
			}
			periods = append(periods, g)
		}
		for _, out := range PChartLimits(periods, 1).Out {
			if out {
				alarms++
			}
			weeks++
		}
	}
	within(t, "false alarms", alarms/weeks, .001, .006)
}
