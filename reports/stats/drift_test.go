package stats

import "testing"

// Newcombe's own example (1998, table II, contrast a): 56 of 70 against 48 of 80, method 10.
func TestNewcombe(t *testing.T) {
	single := func(k, n int) Design { return Design{K: k, N: n, Clusters: n, Effect: 1} }
	d, ci, ok := Newcombe(single(48, 80), single(56, 70), Z95)
	if !ok {
		t.Fatal("undefined")
	}
	near(t, "difference", d, .2, 1e-12)
	near(t, "low", ci.Low, .0524, 5e-5)
	near(t, "high", ci.High, .3339, 5e-5)
	_, other, _ := Newcombe(single(56, 70), single(48, 80), Z95)
	near(t, "mirror", other.Low, -ci.High, 1e-12)
	if _, _, ok := Newcombe(single(0, 0), single(1, 2), Z95); ok {
		t.Error("no messages, no difference")
	}
}

// scipy.stats.chi2_contingency(rows, correction=False) of scipy 1.10.1
func TestChiSquareAgainstScipy(t *testing.T) {
	for _, c := range []struct {
		rows         [][]int
		statistic, p float64
		df           int
	}{
		{[][]int{{104, 71, 66}, {90, 95, 40}}, 10.320357485723136, 0.005740673489537471, 2},
		{[][]int{{10, 20, 0, 30}, {6, 9, 0, 17}, {1, 5, 0, 30}}, 11.977081741787625, 0.017522507498383192, 4},
	} {
		r := ChiSquare(c.rows, 1)
		if r.DF != c.df {
			t.Errorf("%d degrees of freedom, want %d", r.DF, c.df)
		}
		near(t, "statistic", r.Statistic, c.statistic, 1e-9)
		near(t, "p", r.P, c.p, 1e-9)
	}
}

func TestChiSquareRules(t *testing.T) {
	r := ChiSquare([][]int{{50, 50}, {80, 20}}, 1)
	near(t, "distance", r.Distance, .3, 1e-12)
	if ChiSquare([][]int{{50, 50}, {80, 20}}, 4).Statistic != r.Statistic/4 {
		t.Error("the design effect divides the statistic")
	}
	for _, rows := range [][][]int{nil, {{1, 2}}, {{5, 0}, {7, 0}}, {{0, 0}, {3, 4}}, {{}, {}}} {
		if r := ChiSquare(rows, 1); r.P != 1 || r.DF != 0 {
			t.Errorf("%v: %+v", rows, r)
		}
	}
	if !ChiSquare([][]int{{1, 2}, {3, 1}}, 1).Sparse {
		t.Error("seven messages are sparse")
	}
}

func TestRunOfOneSide(t *testing.T) {
	weeks := []Group{{10, 100}, {1, 100}, {9, 100}, {8, 100}, {9, 100}}
	c := PChart{Centre: .074}
	if got := c.RunOfOneSide(weeks); got != 3 {
		t.Errorf("run of %d, want 3", got)
	}
	if got := c.RunOfOneSide(append(weeks, Group{})); got != 0 {
		t.Errorf("a week without mail is on no side: %d", got)
	}
}

// numpy: the square of the statistic is n times the squared correlation of time and outcome over
// single messages (an identity of the Cochran-Armitage test), its p scipy.stats.chi2.sf(x, 1); the
// slope is numpy.polyfit's over single messages.
func TestLinearTrendAgainstNumpy(t *testing.T) {
	periods := []Group{{80, 310}, {95, 310}, {90, 300}, {0, 0}, {119, 310}, {121, 280}}
	times := []float64{0, 1, 2, 3, 4, 5}
	trend, ok := CochranArmitage(periods, times, 1, Z95)
	if !ok {
		t.Fatal("undefined")
	}
	near(t, "slope", trend.Slope, 0.03293310241431019, 1e-12)
	near(t, "p", trend.P, 5.831608902745858e-07, 1e-12)
	if !trend.Interval.Contains(trend.Slope) || trend.Interval.Low <= 0 {
		t.Errorf("%+v", trend)
	}
	wide, _ := CochranArmitage(periods, times, 4, Z95)
	near(t, "width at a design effect of 4", wide.Interval.Width(), 2*trend.Interval.Width(), 1e-12)
	for _, g := range [][]Group{{{1, 10}, {2, 10}}, {{0, 10}, {0, 10}, {0, 10}}, {{5, 5}, {5, 5}, {5, 5}}, {{1, 9}, {}, {}}} {
		if _, ok := CochranArmitage(g, times, 1, Z95); ok {
			t.Errorf("%v has no trend to tell", g)
		}
	}
}
