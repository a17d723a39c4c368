package stats

import (
	"math"
	"testing"
)

// near fails unless got and want agree to within tolerance.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %.10g, want %.10g", what, got, want)
	}
}

// The table of the specification, to its four decimals. It was computed from the formula in
// double precision.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 10, 0, .2775}, {10, 10, .7225, 1}, {19, 20, .7639, .9911},
		{3, 25, .0417, .2996}, {30, 1000, .0211, .0425},
	} {
		i := Wilson(c.k, c.n)
		near(t, "low", i.Low, c.low, 5e-5)
		near(t, "high", i.High, c.high, 5e-5)
	}
}

func TestWilsonEdges(t *testing.T) {
	if got := Wilson(0, 0); got != (Interval{0, 1}) {
		t.Errorf("no observations: %v, want [0, 1]", got)
	}
	for _, n := range []int{1, 2, 7, 30, 1000, 1e6, 123456789} {
		if i := Wilson(0, n); i.Low != 0 || i.High <= 0 || i.High >= 1 {
			t.Errorf("0 of %d: %v", n, i)
		}
		if i := Wilson(n, n); i.High != 1 || i.Low <= 0 || i.Low >= 1 {
			t.Errorf("%d of %d: %v", n, n, i)
		}
		a, b := Wilson(n/3, n), Wilson(n-n/3, n)
		near(t, "mirror low", a.Low, 1-b.High, 1e-12)
		near(t, "mirror high", a.High, 1-b.Low, 1e-12)
	}
}

func TestQuantile(t *testing.T) {
	// scipy.stats.norm.ppf
	near(t, "z of .975", Quantile(.975), 1.959963984540054, 1e-12)
	near(t, "z of .8", Quantile(.8), 0.8416212335729143, 1e-12)
	near(t, "z of alpha .01", ZOf(.01), 2.5758293035489004, 1e-12)
	if ZOf(.05) != Z95 {
		t.Error("alpha .05 must give Z95")
	}
}

// Exact and mid-p of the specification's table, to its five decimals.
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		b, c        int
		exact, midP float64
	}{
		{5, 0, .06250, .03125}, {6, 0, .03125, .01562}, {10, 3, .09229, .05737},
		{12, 4, .07681, .04904}, {30, 15, .03570, .02590}, {7, 7, 1, 1}, {0, 0, 1, 1},
	} {
		for _, r := range []McNemarResult{McNemar(c.b, c.c), McNemar(c.c, c.b)} {
			near(t, "exact", r.Exact, c.exact, 5.1e-6)
			near(t, "mid-p", r.MidP, c.midP, 5.1e-6)
		}
	}
}

func TestFewestChanged(t *testing.T) {
	if got := FewestChanged(.05); got != 5 {
		t.Errorf("alpha .05 needs %d, want 5", got)
	}
	if got := FewestChanged(.01); got != 7 {
		t.Errorf("alpha .01 needs %d, want 7", got)
	}
	for _, alpha := range []float64{.2, .1, .05, .01, .001} {
		n := FewestChanged(alpha)
		if McNemar(n, 0).MidP >= alpha || n > 1 && McNemar(n-1, 0).MidP < alpha {
			t.Errorf("alpha %v: %d is not the fewest", alpha, n)
		}
	}
}

func TestBonettPrice(t *testing.T) {
	for _, c := range []struct {
		b, c, n          int
		adjusted         float64
		low, high, digit float64
	}{
		{10, 3, 500, .01394, -.00113, .02902, 6e-6},
		{0, 0, 50, 0, -.0533, .0533, 6e-5},
		{26, 4, 40, 22.0 / 42, .3126, .7350, 6e-5},
	} {
		point, ci := BonettPrice(c.b, c.c, c.n)
		near(t, "point", point, float64(c.b-c.c)/float64(c.n), 0)
		near(t, "centre", (ci.Low+ci.High)/2, c.adjusted, 6e-6)
		near(t, "low", ci.Low, c.low, c.digit)
		near(t, "high", ci.High, c.high, c.digit)
		swapped, other := BonettPrice(c.c, c.b, c.n)
		near(t, "swapped point", swapped, -point, 0)
		near(t, "swapped low", other.Low, -ci.High, 1e-15)
	}
	if _, ci := BonettPrice(0, 0, 0); ci != (Interval{-1, 1}) {
		t.Errorf("no pairs: %v", ci)
	}
	if _, ci := BonettPrice(3, 0, 3); ci.High > 1 {
		t.Errorf("not clipped: %v", ci)
	}
}

func TestConfusion(t *testing.T) {
	// Four queues: the third has labels but nothing sent, the fourth is mentioned by nobody.
	c := NewConfusion(4)
	c.Add(0, 0, 5)
	c.Add(0, 1, 2)
	c.Add(1, 1, 3)
	c.Add(2, 0, 1)
	if n, right := c.Total(); n != 11 || right != 8 {
		t.Errorf("total %d right %d, want 11 and 8", n, right)
	}
	for q, want := range [][3]Ratio{
		{{5, 6}, {5, 7}, {10, 13}},
		{{3, 5}, {3, 3}, {6, 8}},
		{{0, 0}, {0, 1}, {0, 1}},
		{{0, 0}, {0, 0}, {0, 0}},
	} {
		got := [3]Ratio{c.Precision(q), c.Recall(q), c.F1(q)}
		if got != want {
			t.Errorf("queue %d: %v, want %v", q, got, want)
		}
	}
	macro, ok := c.MacroF1()
	if !ok {
		t.Fatal("macro-F1 undefined")
	}
	// sklearn.metrics.f1_score(y, p, average="macro", zero_division=0) of these eleven messages
	near(t, "macro-F1", macro, 0.5064102564102564, 1e-15)
	if _, ok := NewConfusion(3).MacroF1(); ok {
		t.Error("macro-F1 of nothing must be undefined")
	}
}

func TestKitagawa(t *testing.T) {
	// Worked by hand: shares (.8, .2) to (.5, .5), rates (.1, .4) to (.1, .5).
	// Mix: -.3*.1 + .3*.45 = .105; within: 0 + .1*.35 = .035; total .30-.16 = .14.
	s, ok := Kitagawa([]Group{{8, 80}, {8, 20}}, []Group{{10, 100}, {50, 100}})
	if !ok {
		t.Fatal("undefined")
	}
	near(t, "mix", s.Mix, .105, 1e-12)
	near(t, "within", s.Within, .035, 1e-12)
	near(t, "total", s.Total, .14, 1e-12)

	// A group that is new has no earlier rate: it counts as mix alone.
	s, _ = Kitagawa([]Group{{10, 100}, {0, 0}}, []Group{{10, 100}, {90, 100}})
	near(t, "new group, mix", s.Mix, .4, 1e-12)
	near(t, "new group, within", s.Within, 0, 1e-12)
	near(t, "new group, total", s.Total, .4, 1e-12)

	if _, ok := Kitagawa([]Group{{0, 0}}, []Group{{1, 2}}); ok {
		t.Error("an empty week has no rate to change from")
	}
	if _, ok := Kitagawa([]Group{{0, 1}}, []Group{{1, 2}, {1, 2}}); ok {
		t.Error("groups that differ cannot be compared")
	}
}

func TestSplitGap(t *testing.T) {
	s, ok := SplitGap(Group{3, 100}, Group{12, 40}, Group{6, 40})
	if !ok {
		t.Fatal("undefined")
	}
	near(t, "gap", s.Gap, .27, 1e-12)
	near(t, "harder", s.Harder, .12, 1e-12)
	near(t, "cut", s.Cut, .15, 1e-12)
	if _, ok := SplitGap(Group{3, 100}, Group{}, Group{}); ok {
		t.Error("without long mail there is no gap")
	}
}

func TestPChart(t *testing.T) {
	// Pooled 30/500 = .06; three standard errors at n = 100: .071246, at n = 400: .035623.
	c := PChartLimits([]Group{{14, 100}, {16, 400}, {0, 0}}, 1)
	near(t, "centre", c.Centre, .06, 1e-15)
	near(t, "high of 100", c.Limits[0].High, .1312460, 1e-6)
	near(t, "low of 100", c.Limits[0].Low, 0, 0)
	near(t, "low of 400", c.Limits[1].Low, .0243770, 1e-6)
	if c.Limits[2] != (Interval{0, 1}) || c.Out[2] {
		t.Errorf("a week without mail: %v out %v", c.Limits[2], c.Out[2])
	}
	if !c.Out[0] || c.Out[1] {
		t.Errorf("out = %v, want the first alone", c.Out)
	}
	if PChartLimits([]Group{{14, 100}, {16, 400}}, 4).Out[0] {
		t.Error("a design effect of 4 doubles the limits: .14 is inside of .2025")
	}
}

func TestReliability(t *testing.T) {
	// Bins are right-closed: .2 falls in the first of five, .2000001 in the second.
	bins := Reliability([]float64{0, .2, .2000001, 1, .9}, []bool{false, true, true, true, false}, 5)
	for i, want := range []int{2, 1, 0, 0, 2} {
		if bins[i].N != want {
			t.Errorf("bin %d has %d, want %d", i, bins[i].N, want)
		}
	}
	// |1 - .2| + |1 - .2000001| + |1 - 1.9| over 5 messages.
	ece, ok := ECE(bins)
	if !ok {
		t.Fatal("undefined")
	}
	near(t, "ECE", ece, (.8+.7999999+.9)/5, 1e-12)
	if _, ok := ECE(Reliability(nil, nil, 5)); ok {
		t.Error("ECE of nothing must be undefined")
	}
}

func TestCoverageRisk(t *testing.T) {
	score := []float64{.9, .5, .7, .7, .99}
	wrong := []bool{false, true, true, false, false}
	curve := CoverageRisk(score, wrong)
	want := []CoveragePoint{{.99, 1, 0}, {.9, 2, 0}, {.7, 4, 1}, {.5, 5, 2}}
	if len(curve) != len(want) {
		t.Fatalf("curve %v, want %v", curve, want)
	}
	for i := range want {
		if curve[i] != want[i] {
			t.Errorf("point %d = %v, want %v", i, curve[i], want[i])
		}
	}
	for _, c := range []struct {
		threshold     float64
		routed, wrong int
	}{{0, 5, 2}, {.5, 5, 2}, {.6, 4, 1}, {.7, 4, 1}, {.8, 2, 0}, {1, 0, 0}} {
		if p := AtThreshold(curve, c.threshold); p.Routed != c.routed || p.Wrong != c.wrong {
			t.Errorf("at %v: %+v, want %d routed %d wrong", c.threshold, p, c.routed, c.wrong)
		}
	}
	if got := CoverageRisk(nil, nil); got != nil {
		t.Errorf("curve of nothing: %v", got)
	}
}

func TestTemperature(t *testing.T) {
	// Two queues with a logit difference of 4 that is right 3 times in 4: the likelihood is
	// greatest where sigmoid(4/T) = 3/4, so T = 4/ln 3.
	var logits []float64
	var label []int
	for i := range 400 {
		logits = append(logits, 4, 0)
		if i%4 == 0 {
			label = append(label, 1)
		} else {
			label = append(label, 0)
		}
	}
	fit, ok := Temperature(logits, 2, label)
	if !ok || fit.Bounded {
		t.Fatalf("fit %+v ok %v", fit, ok)
	}
	near(t, "T", fit.T, 4/math.Log(3), 1e-3)
	near(t, "after", fit.After, -.75*math.Log(.75)-.25*math.Log(.25), 1e-6)
	if fit.Before <= fit.After {
		t.Errorf("loss before %v after %v", fit.Before, fit.After)
	}
	if fit, _ := Temperature([]float64{1, 0, 1, 0}, 2, []int{0, 0}); !fit.Bounded {
		t.Errorf("all right: %+v has no temperature of its own", fit)
	}
	if _, ok := Temperature(nil, 2, nil); ok {
		t.Error("temperature of nothing must be undefined")
	}
}

func TestHolmAndBenjaminiHochberg(t *testing.T) {
	// Worked by hand from the definitions.
	p := []float64{.01, .04, .03, .005}
	for i, want := range []float64{.03, .06, .06, .02} {
		near(t, "Holm", Holm(p)[i], want, 1e-15)
	}
	for i, want := range []float64{.02, .04, .04, .02} {
		near(t, "BH", BenjaminiHochberg(p)[i], want, 1e-15)
	}
	if len(Holm(nil)) != 0 || len(BenjaminiHochberg(nil)) != 0 {
		t.Error("a family of none has no p")
	}
	if got := Holm([]float64{.6, .9}); got[0] != 1 || got[1] != 1 {
		t.Errorf("Holm is capped at 1: %v", got)
	}
}

func TestFixedSequence(t *testing.T) {
	if got := FixedSequence([]bool{true, true, false, true}); got != 2 {
		t.Errorf("passed %d, want 2: a later success after a failure does not count", got)
	}
	if got := FixedSequence(nil); got != 0 {
		t.Errorf("passed %d of none", got)
	}
}
