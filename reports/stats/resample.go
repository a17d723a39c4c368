package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
)

// Draws that the reports use unless asked otherwise.
const (
	SignFlipDraws  = 10_000 // p of .05 is then known to about .004 (two standard errors)
	BootstrapDraws = 2_000  // 50 replicates lie beyond each end of a 95 % interval
)

// DefaultSeed is the documented seed of every resampling, so that a report can be made again.
const DefaultSeed = 20_260_105

// Resampling says how something random is computed. Zero values mean the defaults. Every replicate
// has a random stream of its own, PCG(Seed, number of the replicate), so Workers changes the time
// and never the result.
type Resampling struct {
	Draws   int
	Seed    uint64
	Workers int // goroutines; 1 by default
}

// filled returns o with the defaults in place.
func (o Resampling) filled(draws int) Resampling {
	if o.Draws <= 0 {
		o.Draws = draws
	}
	if o.Seed == 0 {
		o.Seed = DefaultSeed
	}
	o.Workers = min(max(o.Workers, 1), o.Draws)
	return o
}

// replicates calls one function a worker, made by newWorker, for every replicate. Which worker
// takes which replicate must not matter to the results.
func (o Resampling) replicates(newWorker func() func(replicate int, random *rand.PCG)) {
	var wg sync.WaitGroup
	for w := range o.Workers {
		work := newWorker()
		wg.Go(func() {
			var random rand.PCG
			for r := w; r < o.Draws; r += o.Workers {
				random.Seed(o.Seed, uint64(r))
				work(r, &random)
			}
		})
	}
	wg.Wait()
}

// SignFlipResult is a permutation test by cluster.
type SignFlipResult struct {
	Observed float64 `json:"observed"` // the sum of all differences
	Changed  int     `json:"changed"`  // clusters whose difference is not zero
	Draws    int     `json:"draws"`
	Seed     uint64  `json:"seed"`
	P        float64 `json:"p"`
}

// ClusterSignFlip tests whether the sum of the clusters' differences is further from zero than chance
// makes it, when swapping the two runs within any whole cluster would be as likely: the sign of
// each difference is then a fair coin, and messages of a cluster keep their dependence. Two-sided,
// p = (1 + draws at least as far)/(1 + draws), which is never 0 (Phipson and Smyth 2010). Without
// any change p is 1.
func ClusterSignFlip(differences []float64, o Resampling) SignFlipResult {
	o = o.filled(SignFlipDraws)
	result := SignFlipResult{Draws: o.Draws, Seed: o.Seed, P: 1}
	// Only sizes matter, and equal sizes are exchangeable: a draw needs the number of heads among
	// each size, which is the bit count of random words.
	sizes := map[float64]int{}
	reach := 0.0
	for _, d := range differences {
		result.Observed += d
		if d != 0 {
			sizes[math.Abs(d)]++
			result.Changed++
			reach += math.Abs(d)
		}
	}
	if result.Changed == 0 {
		return result
	}
	size := make([]float64, 0, len(sizes))
	for s := range sizes {
		size = append(size, s)
	}
	slices.Sort(size)
	count := make([]int, len(size))
	for i, s := range size {
		count[i] = sizes[s]
	}
	// Sums of costs are not exact: what is equal up to rounding counts as equal.
	threshold := math.Abs(result.Observed) - 1e-9*reach
	further := make([]bool, o.Draws)
	o.replicates(func() func(int, *rand.PCG) {
		return func(r int, random *rand.PCG) {
			sum := 0.0
			for i, s := range size {
				sum += s * float64(2*heads(count[i], random)-count[i])
			}
			further[r] = math.Abs(sum) >= threshold
		}
	})
	at := 1
	for _, f := range further {
		if f {
			at++
		}
	}
	result.P = float64(at) / float64(1+o.Draws)
	return result
}

// heads returns the number of heads among n fair coins.
func heads(n int, random *rand.PCG) int {
	h := 0
	for ; n >= 64; n -= 64 {
		h += bits.OnesCount64(random.Uint64())
	}
	if n > 0 {
		h += bits.OnesCount64(random.Uint64() >> (64 - n))
	}
	return h
}

// Replicates are the values of one or more statistics over bootstrap resamples.
type Replicates struct {
	Draws  int
	Seed   uint64
	values [][]float64 // [statistic], sorted, without those undefined (NaN)
}

// Interval returns the percentile interval of confidence 1-alpha of a statistic, and false when it
// was undefined in more than alpha/2 of the replicates, so that an end of the interval is unknown.
func (r *Replicates) Interval(statistic int, alpha float64) (Interval, bool) {
	v := r.values[statistic]
	if len(v) == 0 || float64(r.Draws-len(v)) > alpha/2*float64(r.Draws) {
		return Interval{math.Inf(-1), math.Inf(1)}, false
	}
	return Interval{sortedQuantile(v, alpha/2), sortedQuantile(v, 1-alpha/2)}, true
}

// sortedQuantile interpolates between order statistics (definition 7 of Hyndman and Fan 1996).
func sortedQuantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ClusterBootstrap resamples whole clusters with replacement, as many as there are, and evaluates
// statistics of each resample. Clusters of equal content are given once, with their multiplicity:
// a resample then is the number of times each content was drawn, a multinomial vector, which costs
// a few operations a content instead of one a message. newStatistic makes one function a worker;
// it gets the counts of a resample and writes width values, NaN for one that is undefined.
func ClusterBootstrap(multiplicity []int, o Resampling, width int, newStatistic func() func(counts []int, out []float64)) *Replicates {
	o = o.filled(BootstrapDraws)
	clusters := 0
	for _, m := range multiplicity {
		clusters += m
	}
	flat := make([]float64, o.Draws*width)
	o.replicates(func() func(int, *rand.PCG) {
		counts := make([]int, len(multiplicity))
		statistic := newStatistic()
		return func(r int, random *rand.PCG) {
			multinomial(counts, multiplicity, clusters, random)
			statistic(counts, flat[r*width:(r+1)*width])
		}
	})
	out := &Replicates{Draws: o.Draws, Seed: o.Seed, values: make([][]float64, width)}
	for s := range width {
		for r := range o.Draws {
			if v := flat[r*width+s]; !math.IsNaN(v) {
				out.values[s] = append(out.values[s], v)
			}
		}
		slices.Sort(out.values[s])
	}
	return out
}

// multinomial draws total balls into cells of the given weights, which sum to total, as a chain of
// binomials over what is left.
func multinomial(counts, weights []int, total int, random *rand.PCG) {
	balls, left := total, total
	for i, w := range weights {
		switch {
		case balls == 0 || w == 0:
			counts[i] = 0
		case w == left:
			counts[i] = balls
		default:
			counts[i] = binomial(balls, float64(w)/float64(left), random)
		}
		balls -= counts[i]
		left -= w
	}
}

// uniform returns a number in [0, 1) with 53 random bits.
func uniform(random *rand.PCG) float64 { return float64(random.Uint64()>>11) * 0x1p-53 }

// binomial draws the number of successes among n trials of probability p, 0 < p < 1.
func binomial(n int, p float64, random *rand.PCG) int {
	if p > 0.5 {
		return n - binomial(n, 1-p, random)
	}
	if float64(n)*p < 10 {
		return binomialByInversion(n, p, random)
	}
	return binomialByRejection(n, p, random)
}

// binomialByInversion walks up the distribution function, for small means.
func binomialByInversion(n int, p float64, random *rand.PCG) int {
	odds := p / (1 - p)
	probability := math.Exp(float64(n) * math.Log1p(-p))
	u := uniform(random)
	for k := 0; k < n; k++ {
		if u < probability {
			return k
		}
		u -= probability
		probability *= odds * float64(n-k) / float64(k+1)
		if probability < 1e-300 { // the rest of the distribution is rounding
			return k
		}
	}
	return n
}

// binomialByRejection is the transformed rejection BTRS of Hörmann (1993, Journal of Statistical
// Computation and Simulation 46:101), for n p >= 10 and p <= 1/2.
func binomialByRejection(n int, p float64, random *rand.PCG) int {
	spread := math.Sqrt(float64(n) * p * (1 - p))
	b := 1.15 + 2.53*spread
	a := -0.0873 + 0.0248*b + 0.01*p
	c := float64(n)*p + 0.5
	inner := 0.92 - 4.2/b
	alpha := (2.83 + 5.1/b) * spread
	logOdds := math.Log(p / (1 - p))
	mode := int(float64(n+1) * p)
	top := logFactorial(mode) + logFactorial(n-mode)
	for {
		u := uniform(random) - 0.5
		v := uniform(random)
		us := 0.5 - math.Abs(u)
		at := math.Floor((2*a/us+b)*u + c)
		if at < 0 || at > float64(n) {
			continue
		}
		k := int(at)
		if us >= 0.07 && v <= inner {
			return k
		}
		v = math.Log(v * alpha / (a/(us*us) + b))
		if v <= top-logFactorial(k)-logFactorial(n-k)+float64(k-mode)*logOdds {
			return k
		}
	}
}

// logFactorial returns ln n!.
func logFactorial(n int) float64 {
	l, _ := math.Lgamma(float64(n + 1))
	return l
}
