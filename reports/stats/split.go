package stats

import "math"

// Group is one stratum of a population in one week: N messages, K of them misrouted.
type Group struct {
	K, N int
}

// KitagawaSplit is the change of a rate between two populations, taken apart exactly:
// Total = Mix + Within.
type KitagawaSplit struct {
	Total  float64 `json:"total"`
	Mix    float64 `json:"mix"`    // the populations are made of other shares of the groups
	Within float64 `json:"within"` // the groups themselves got better or worse
	// By group, in the order given; each adds up to its total.
	GroupMix    []float64 `json:"group_mix"`
	GroupWithin []float64 `json:"group_within"`
}

// Kitagawa splits the change of the misroute rate from before to after over the same groups
// (Kitagawa 1955, JASA 50:1168): each share's change is weighted with the mean rate, each rate's
// change with the mean share, so nothing is left over. A group that is empty on one side has no
// rate there; it takes the other side's, and its whole contribution counts as mix. The result is
// false when either population is empty or the lengths differ.
func Kitagawa(before, after []Group) (KitagawaSplit, bool) {
	var n0, n1 int
	for _, g := range before {
		n0 += g.N
	}
	for _, g := range after {
		n1 += g.N
	}
	if n0 == 0 || n1 == 0 || len(before) != len(after) {
		return KitagawaSplit{}, false
	}
	s := KitagawaSplit{GroupMix: make([]float64, len(before)), GroupWithin: make([]float64, len(before))}
	for i := range before {
		r0, ok0 := Ratio{before[i].K, before[i].N}.Value()
		r1, ok1 := Ratio{after[i].K, after[i].N}.Value()
		if !ok0 {
			r0 = r1
		}
		if !ok1 {
			r1 = r0
		}
		w0, w1 := float64(before[i].N)/float64(n0), float64(after[i].N)/float64(n1)
		s.GroupMix[i] = (w1 - w0) * (r0 + r1) / 2
		s.GroupWithin[i] = (r1 - r0) * (w0 + w1) / 2
		s.Mix += s.GroupMix[i]
		s.Within += s.GroupWithin[i]
	}
	s.Total = s.Mix + s.Within
	return s, true
}

// GapSplit takes the gap between the misroute rates of long and short mail apart:
// Gap = Harder + Cut.
type GapSplit struct {
	Short, LongAtCap, LongWhole float64
	Gap                         float64 // LongAtCap - Short
	Harder                      float64 // LongWhole - Short: long mail is harder even when read whole
	Cut                         float64 // LongAtCap - LongWhole: what the cut added
}

// SplitGap computes [GapSplit] from the misroutes among short messages, and among long ones at
// the cap and read whole. It is false when there is no short or no long message.
func SplitGap(short, longAtCap, longWhole Group) (GapSplit, bool) {
	s, ok0 := Ratio{short.K, short.N}.Value()
	c, ok1 := Ratio{longAtCap.K, longAtCap.N}.Value()
	w, ok2 := Ratio{longWhole.K, longWhole.N}.Value()
	if !ok0 || !ok1 || !ok2 {
		return GapSplit{}, false
	}
	return GapSplit{Short: s, LongAtCap: c, LongWhole: w, Gap: c - s, Harder: w - s, Cut: c - w}, true
}

// PChart is a control chart of a share over periods of different sizes.
type PChart struct {
	Centre float64    // the pooled share
	Limits []Interval // of each period, three standard errors around the centre
	Out    []bool     // outside of its own limits
}

// PChartLimits returns the control chart of K of N misroutes a period (Shewhart's p-chart):
// centre plus and minus 3 sqrt(p(1-p)/n) with each period's own n, inside of [0, 1]. A period
// without messages has limits [0, 1]. The design effect, of at least 1, widens them.
func PChartLimits(periods []Group, deff float64) PChart {
	k, n := 0, 0
	for _, g := range periods {
		k += g.K
		n += g.N
	}
	c := PChart{Limits: make([]Interval, len(periods)), Out: make([]bool, len(periods))}
	if n > 0 {
		c.Centre = float64(k) / float64(n)
	}
	for i, g := range periods {
		if g.N == 0 {
			c.Limits[i] = Interval{0, 1}
			continue
		}
		half := 3 * math.Sqrt(c.Centre*(1-c.Centre)*math.Max(1, deff)/float64(g.N))
		c.Limits[i] = Interval{math.Max(0, c.Centre-half), math.Min(1, c.Centre+half)}
		c.Out[i] = !c.Limits[i].Contains(float64(g.K) / float64(g.N))
	}
	return c
}
