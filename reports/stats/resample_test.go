package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// The exact p over all sign assignments, from scipy 1.10.1's
// permutation_test((d,), sum, permutation_type="samples", n_resamples=inf).
func TestSignFlipAgainstScipy(t *testing.T) {
	repeat := func(ups, downs int) []float64 {
		return append(slices.Repeat([]float64{1}, ups), slices.Repeat([]float64{-1}, downs)...)
	}
	for _, c := range []struct {
		d []float64
		p float64
	}{
		{repeat(10, 3), 0.09228515625}, // the exact McNemar p of 10, 3
		{repeat(5, 0), 0.0625},
		{[]float64{2, 1, 1, -1, 3, 1, -2, 1, 1, 1}, 0.158203125},
		{[]float64{3, -1, -1}, 1},
		{[]float64{.5, 1.5, 2, -.25, 1, 1, 3}, 0.03125},
		{[]float64{4, 1, 1, 1, 1, -1, 2, 2, -3, 1, 1, 1, -1, 2}, 0.1051025390625},
	} {
		got := ClusterSignFlip(c.d, Resampling{Draws: 200_000})
		// Four standard errors of 200,000 draws.
		near(t, "p", got.P, c.p, 4*math.Sqrt(c.p*(1-c.p)/200_000)+1e-5)
	}
}

func TestSignFlipRules(t *testing.T) {
	if r := ClusterSignFlip(nil, Resampling{}); r.P != 1 || r.Draws != SignFlipDraws {
		t.Errorf("nothing changed: %+v", r)
	}
	if r := ClusterSignFlip([]float64{0, 0}, Resampling{}); r.P != 1 || r.Changed != 0 {
		t.Errorf("no difference: %+v", r)
	}
	d := []float64{3, 1, -1, 1, 1, 2, 1, .1, .2, -.3}
	turned := slices.Clone(d)
	slices.Reverse(turned)
	for i := range turned {
		turned[i] = -turned[i]
	}
	for _, workers := range []int{0, 1, 3, 16, 20_000} {
		a, b := ClusterSignFlip(d, Resampling{Workers: workers}), ClusterSignFlip(turned, Resampling{Workers: workers})
		if a.P != ClusterSignFlip(d, Resampling{}).P {
			t.Errorf("%d workers: p %v", workers, a.P)
		}
		if a.P != b.P || math.Abs(a.Observed+b.Observed) > 1e-12 {
			t.Errorf("turned around and negated: %+v and %+v", a, b)
		}
	}
	if ClusterSignFlip(d, Resampling{}).P == ClusterSignFlip(d, Resampling{Seed: 7}).P {
		t.Error("another seed should draw something else")
	}
	// One cluster of 40 messages proves nothing however large: its sign is one coin.
	if r := ClusterSignFlip([]float64{40}, Resampling{}); r.P != 1 {
		t.Errorf("one cluster: p %v", r.P)
	}
	if r := ClusterSignFlip(slices.Repeat([]float64{1}, 200), Resampling{}); r.P != 1.0/10_001 {
		t.Errorf("200 to nothing: p %v, want 1/(1+draws), never 0", r.P)
	}
}

// Frequencies of the sampler against the distribution itself, both below and above the mean at
// which the method changes. 20,000 draws. The statistic is chi-square over the cells that
// expect 5 or more; limits are scipy.stats.chi2.ppf(.9999, cells-1).
func TestBinomial(t *testing.T) {
	for _, c := range []struct {
		n     int
		p     float64
		limit float64
	}{
		{5, .3, 25.7}, {40, .05, 31.8}, {40, .7, 50.8}, {1000, .5, 156.3}, {200_000, .0001, 66.2}, {30, .9, 35.6},
	} {
		random := rand.NewPCG(1, 2)
		const draws = 20_000
		seen := map[int]int{}
		for range draws {
			k := binomial(c.n, c.p, random)
			if k < 0 || k > c.n {
				t.Fatalf("binomial(%d, %v) = %d", c.n, c.p, k)
			}
			seen[k]++
		}
		chi, used, cells := 0.0, 0.0, 0
		for k := range min(c.n, 2000) + 1 {
			expected := draws * math.Exp(logChoose(c.n, k)+float64(k)*math.Log(c.p)+float64(c.n-k)*math.Log1p(-c.p))
			if expected < 5 {
				continue
			}
			chi += (float64(seen[k]) - expected) * (float64(seen[k]) - expected) / expected
			used += expected
			cells++
		}
		if chi > c.limit || used < .99*draws {
			t.Errorf("binomial(%d, %v): chi-square %.1f in %d cells that hold %.0f of %d", c.n, c.p, chi, cells, used, draws)
		}
	}
}

// pairedSample is the small data set of the recorded bootstrap below.
func pairedSample() []Pair {
	var pairs []Pair
	for i := range int32(90) {
		p := Pair{Cluster: i, Label: i % 3, Base: i % 3, Cand: i % 3}
		if i%3 != 0 {
			p.Cluster = i/4 + 1000
		}
		if i*7%11 >= 8 {
			p.Base = (i + 1) % 3
		}
		if i*5%13 >= 11 {
			p.Cand = (i + 2) % 3
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// Recorded from numpy 1.24.2: 100,000 resamples of whole clusters by index, macro-F1 by counting,
// percentiles 2.5 and 97.5; the points from scikit-learn's f1_score.
func TestCompareMacroF1AgainstNumpy(t *testing.T) {
	d, ok := CompareMacroF1(pairedSample(), 3, .05, Resampling{Draws: 20_000})
	if !ok {
		t.Fatal("undefined")
	}
	near(t, "baseline", d.Base, 0.7329156223893065, 1e-14)
	near(t, "candidate", d.Cand, 0.8444166589484734, 1e-14)
	near(t, "baseline low", d.BaseInterval.Low, 0.64034445, .003)
	near(t, "baseline high", d.BaseInterval.High, 0.81442622, .003)
	near(t, "candidate low", d.CandInterval.Low, 0.77337193, .003)
	near(t, "candidate high", d.CandInterval.High, 0.90709617, .003)
	near(t, "difference low", d.DifferenceInterval.Low, 0.01182161, .004)
	near(t, "difference high", d.DifferenceInterval.High, 0.21307822, .004)
}

func TestCompareMacroF1Rules(t *testing.T) {
	pairs := pairedSample()
	want, _ := CompareMacroF1(pairs, 3, .05, Resampling{})
	shuffled := slices.Clone(pairs)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	for i := range shuffled {
		shuffled[i].Cluster = 5000 - shuffled[i].Cluster // other numbers, the same clusters
	}
	if got, _ := CompareMacroF1(shuffled, 3, .05, Resampling{Workers: 16}); !reflect.DeepEqual(got, want) {
		t.Errorf("shuffled, 16 workers: %+v, want %+v", got, want)
	}
	for i, p := range shuffled {
		shuffled[i].Base, shuffled[i].Cand = p.Cand, p.Base
	}
	got, _ := CompareMacroF1(shuffled, 3, .05, Resampling{})
	if got.Difference != -want.Difference || got.DifferenceInterval != (Interval{-want.DifferenceInterval.High, -want.DifferenceInterval.Low}) || got.BaseInterval != want.CandInterval {
		t.Errorf("swapped: %+v, want the mirror of %+v", got, want)
	}
	if _, ok := CompareMacroF1(nil, 3, .05, Resampling{}); ok {
		t.Error("macro-F1 of nothing must be undefined")
	}
}

func TestBootstrapUndefined(t *testing.T) {
	// A statistic that is undefined in half of the replicates has no interval.
	r := ClusterBootstrap([]int{5, 5}, Resampling{Draws: 500}, 2, func() func([]int, []float64) {
		return func(counts []int, out []float64) {
			out[0], out[1] = float64(counts[0]), math.NaN()
			if counts[0]%2 == 0 {
				out[1] = 1
			}
			if counts[0]+counts[1] != 10 {
				t.Errorf("a resample of %v: want as many clusters as there are", counts)
			}
		}
	})
	if _, ok := r.Interval(0, .05); !ok {
		t.Error("a defined statistic has an interval")
	}
	if i, ok := r.Interval(1, .05); ok || !math.IsInf(i.High, 1) {
		t.Errorf("undefined in half: %v %v", i, ok)
	}
}

// Recorded from numpy: Taylor-linearised variance of the ratio over that of independent messages.
func TestDesignEffectAgainstNumpy(t *testing.T) {
	var clusters []Group
	k := []int{3, 0, 1, 2, 0, 0, 1, 0, 4, 0}
	for i, n := range []int{4, 2, 3, 2, 1, 1, 5, 2, 4, 1} {
		clusters = append(clusters, Group{k[i], n})
	}
	d := DesignEffect(append(clusters, Group{}))
	if d.K != 11 || d.N != 25 || d.Clusters != 10 {
		t.Errorf("%+v", d)
	}
	near(t, "effect", d.Effect, 2.0709956709956705, 1e-12)
	near(t, "effective n", d.Effective(), 25/2.0709956709956705, 1e-12)
}

func TestDesignEffectRules(t *testing.T) {
	singles := func(k, n int) []Group {
		var g []Group
		for i := range n {
			g = append(g, Group{min(1, max(0, k-i)), 1})
		}
		return g
	}
	// Clusters of one: n/(n-1), the usual estimate of a variance from a sample.
	near(t, "singletons", DesignEffect(singles(30, 1000)).Effect, 1000.0/999, 1e-12)
	if d := DesignEffect(singles(0, 10)); d.Effect != 1 || d.Interval(Z95) != Wilson(0, 10) {
		t.Errorf("none wrong, singletons: %+v %v", d, d.Interval(Z95))
	}
	// Ten messages of one thread know as much as one message.
	if d := DesignEffect([]Group{{0, 10}}); d.Effective() != 1 || d.Interval(Z95) != Wilson(0, 1) {
		t.Errorf("one thread: %+v", d)
	}
	if d := DesignEffect([]Group{{10, 10}, {2, 2}}); d.Interval(Z95).High != 1 || d.Effect <= 1 {
		t.Errorf("all wrong: %+v %v", d, d.Interval(Z95))
	}
	if d := DesignEffect(nil); d.Effect != 1 || d.Interval(Z95) != (Interval{0, 1}) {
		t.Errorf("nothing: %+v", d)
	}
	// Threads of two that always agree count half.
	var twins []Group
	for i := range 500 {
		twins = append(twins, Group{2 * min(1, i%10), 2})
	}
	near(t, "twins", DesignEffect(twins).Effect, 2*500.0/499, 1e-9)
}

func TestComparePaired(t *testing.T) {
	var clusters []PairCluster
	for i := range 500 {
		c := PairCluster{N: 1}
		switch {
		case i < 10:
			c.B = 1
		case i < 13:
			c.C = 1
		}
		clusters = append(clusters, c)
	}
	p := ComparePaired(clusters, 0, Resampling{})
	// The specification's vector 10, 3 of 500.
	near(t, "mid-p", p.MidP, .05737, 5.1e-6)
	near(t, "difference", p.Difference, .014, 1e-12)
	near(t, "low", p.Interval.Low, -.00113, 6e-5)
	near(t, "high", p.Interval.High, .02902, 6e-5)
	near(t, "p by cluster", p.P(), .0923, .012)
	if p.Decided() || p.Disagree() || p.Clusters != 500 {
		t.Errorf("%+v", p)
	}
	// Thirty changed messages of one thread are one coin: mid-p says yes, the thread says no.
	p = ComparePaired([]PairCluster{{B: 30, N: 30}, {N: 70}}, .05, Resampling{})
	if p.MidP > 1e-6 || p.Decided() || !p.Disagree() {
		t.Errorf("one thread: mid-p %v p %v", p.MidP, p.P())
	}
	p = ComparePaired([]PairCluster{{N: 1}, {N: 1}, {}}, .05, Resampling{})
	if p.P() != 1 || p.MidP != 1 || p.N != 2 || p.Clusters != 2 {
		t.Errorf("nothing changed: %+v", p)
	}
	p = ComparePaired(nil, .05, Resampling{})
	if p.P() != 1 || p.Interval != (Interval{-1, 1}) {
		t.Errorf("nothing at all: %+v", p)
	}
}

// pairsOf makes b, c and n-b-c clusters of one message.
func pairsOf(b, c, n int) []PairCluster {
	out := make([]PairCluster, n)
	for i := range out {
		out[i].N = 1
		switch {
		case i < b:
			out[i].B = 1
		case i < b+c:
			out[i].C = 1
		}
	}
	return out
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		b, c, n   int
		margin    float64
		identical bool
		want      Verdict
	}{
		{0, 0, 20, .005, true, Pass},
		{0, 0, 20, .005, false, Inconclusive}, // nothing changed, but twenty messages cannot tell
		{0, 0, 2000, .005, false, Pass},
		{40, 10, 1000, .005, false, Regression},
		{10, 40, 1000, .005, false, Pass},
		{10, 3, 500, .005, false, Inconclusive},
		{10, 3, 500, .05, false, Pass},
		{60, 20, 20000, .005, false, Pass}, // worse by .2 points, and surely by less than .5
		{0, 0, 0, .005, true, Inconclusive},
	} {
		p := ComparePaired(pairsOf(c.b, c.c, c.n), .05, Resampling{})
		j := Judge(&p, c.margin, c.identical)
		if j.Verdict != c.want {
			t.Errorf("%+v: %v (%s), interval %v", c, j.Verdict, j.Reason, p.Interval)
		}
		if (j.Verdict == Inconclusive && c.n > 0) != (j.Needed > c.n) {
			t.Errorf("%+v: %v needs %d", c, j.Verdict, j.Needed)
		}
		var word Verdict
		err := word.UnmarshalText([]byte(j.Verdict.String()))
		if err != nil || word != j.Verdict || j.Reason == "" {
			t.Errorf("%v reads back as %v, %v", j.Verdict, word, err)
		}
	}
	if err := new(Verdict).UnmarshalText([]byte("pass")); err == nil {
		t.Error("verdicts are upper case")
	}
}

// A thread that went wrong as a whole is no regression of the model that others would see.
func TestJudgeGatesOnTheClusterTest(t *testing.T) {
	clusters := append(pairsOf(0, 0, 400), PairCluster{B: 12, N: 12})
	p := ComparePaired(clusters, .05, Resampling{})
	if j := Judge(&p, .005, false); j.Verdict != Inconclusive {
		t.Errorf("%v, interval %v, p %v", j.Verdict, p.Interval, p.P())
	}
}

// The number said to be needed decides, and one less does not, at an interval widened by the power.
func TestMessagesNeeded(t *testing.T) {
	p := ComparePaired(pairsOf(0, 0, 100), .05, Resampling{})
	j := Judge(&p, .005, false)
	// With nothing changed the interval ends at z sqrt(2)/(n+2): n = (1.95996+.84162)*1.41421/.005 - 2.
	if j.Needed != 791 {
		t.Errorf("needed %d, want 791", j.Needed)
	}
	p = ComparePaired(pairsOf(10, 3, 500), .05, Resampling{})
	need := Judge(&p, .005, false).Needed
	scaled := float64(need) / 500
	d, se := bonettPrice(10*scaled, 3*scaled, float64(need))
	if d-(Z95+Quantile(Power))*se <= 0 {
		t.Errorf("%d messages do not decide", need)
	}
	// Half a million messages that split evenly never show a difference of 0 against a margin of 0.
	p = ComparePaired(pairsOf(5, 5, 100), .05, Resampling{})
	if j := Judge(&p, 0, false); j.Verdict != Inconclusive || j.Needed != 0 {
		t.Errorf("a margin of 0 and no difference: %+v", j)
	}
}

func TestCounterfactual(t *testing.T) {
	var c Counterfactual
	for i := range 40 {
		c.Add(i >= 30, i < 26 || i >= 34)
	}
	// i < 26: wrong at cap, right whole; 26-29 wrong twice; 30-33 right at cap alone; 34-39 right twice.
	if c != (Counterfactual{Cost: 26, Helped: 4, BothRight: 6, BothWrong: 4}) {
		t.Fatalf("%+v", c)
	}
	test, difference, ci := c.Test()
	if c.Net() != 22 || test.B != 26 || test.C != 4 || difference != .55 {
		t.Errorf("net %d, %+v, %v", c.Net(), test, difference)
	}
	// The specification's vector 26, 4 of 40.
	near(t, "low", ci.Low, .3126, 6e-5)
	near(t, "high", ci.High, .7350, 6e-5)
}

func TestDecisionDepth(t *testing.T) {
	for _, c := range []struct {
		right        []bool
		at           int
		found, forth bool
	}{
		{[]bool{true, true, true}, 0, true, false},
		{[]bool{false, true, true}, 1, true, false},
		{[]bool{true, false, true}, 2, true, true},
		{[]bool{true, false, false}, 3, false, true},
		{[]bool{false, false}, 2, false, false},
		{nil, 0, false, false},
	} {
		at, found, forth := DecisionDepth(c.right)
		if at != c.at || found != c.found || forth != c.forth {
			t.Errorf("%v: %d %v %v", c.right, at, found, forth)
		}
	}
}

func TestDominated(t *testing.T) {
	got := Dominated([]Option{{1, 9}, {2, 5}, {2, 6}, {3, 5}, {4, 1}, {4, 1}, {5, 1}, {.5, 9}})
	want := []bool{true, false, true, true, false, false, true, false}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPerMisrouteSaved(t *testing.T) {
	// 200 cut threads, 40 of them saved, each at 3 ms more: 15 ms a misroute saved.
	saved, extra := make([]int, 200), make([]float64, 200)
	for i := range saved {
		extra[i] = 3
		if i%5 == 0 {
			saved[i] = 1
		}
	}
	r := PerMisrouteSaved(saved, extra, .05, Resampling{})
	if !r.Defined || r.Saved != 40 || r.PerSaved != 15 || !r.Interval.Contains(15) {
		t.Errorf("%+v", r)
	}
	for i := range saved {
		saved[i] = i%2*2 - 1
	}
	saved[0] = 1
	if r := PerMisrouteSaved(saved, extra, .05, Resampling{}); r.Defined {
		t.Errorf("as many lost as saved, and yet a price: %+v", r)
	}
	if r := PerMisrouteSaved(nil, nil, .05, Resampling{}); r.Defined {
		t.Errorf("%+v", r)
	}
}

func TestCompareCost(t *testing.T) {
	var clusters, swapped []CostCluster
	for i := range 300 {
		c := CostCluster{N: 1 + i%2}
		if i%10 == 0 {
			c.Base = 1
		}
		if i%6 == 0 {
			c.Cand = 2.5
		}
		clusters = append(clusters, c)
		swapped = append(swapped, CostCluster{c.Cand, c.Base, c.N})
	}
	d, ok := CompareCost(clusters, .05, Resampling{})
	// 30 clusters cost 1, 50 cost 2.5; 450 messages.
	if !ok || d.Base != 30 || d.Cand != 125 || d.N != 450 {
		t.Fatalf("%+v", d)
	}
	near(t, "difference", d.Difference, 95.0/450, 1e-12)
	if !d.Interval.Contains(d.Difference) || d.Interval.Low < 0 || d.Cluster.P > .001 {
		t.Errorf("%+v", d)
	}
	m, _ := CompareCost(swapped, .05, Resampling{Workers: 4})
	if m.Interval != (Interval{-d.Interval.High, -d.Interval.Low}) || m.Cluster.P != d.Cluster.P {
		t.Errorf("swapped %+v, want the mirror of %+v", m, d)
	}
}

func BenchmarkSignFlip(b *testing.B) {
	d := make([]float64, 10_000)
	for i := range d {
		d[i] = float64(i%3 - 1)
	}
	for b.Loop() {
		ClusterSignFlip(d, Resampling{})
	}
}

func BenchmarkCompareMacroF1(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	pairs := make([]Pair, 200_000)
	for i := range pairs {
		pairs[i] = Pair{Cluster: int32(random.IntN(150_000)), Label: int32(random.IntN(12))}
		pairs[i].Base, pairs[i].Cand = pairs[i].Label, pairs[i].Label
		if random.IntN(20) == 0 {
			pairs[i].Base = int32(random.IntN(12))
		}
		if random.IntN(20) == 0 {
			pairs[i].Cand = int32(random.IntN(12))
		}
	}
	for b.Loop() {
		CompareMacroF1(pairs, 12, .05, Resampling{Workers: 2})
	}
}
