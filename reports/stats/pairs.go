package stats

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Pair is one message of two runs, its queues numbered.
type Pair struct {
	Cluster           int32
	Label, Base, Cand int32
}

// pairContent is what a cluster holds, regardless of which cluster it is; clusters of equal content
// are exchangeable in a bootstrap.
type pairContent struct {
	key      string // the pairs, in order
	clusters int    // that hold exactly this
	pairs    []Pair
}

// pairContents groups messages by cluster, and clusters by content, in the order of the content:
// the draws must depend neither on the order of the messages nor on how clusters are numbered.
// pairs is sorted in place.
func pairContents(pairs []Pair) []pairContent {
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Label, b.Label),
			cmp.Compare(a.Base, b.Base), cmp.Compare(a.Cand, b.Cand))
	})
	index := map[string]int{}
	var contents []pairContent
	var key []byte
	for from := 0; from < len(pairs); {
		to := from
		key = key[:0]
		for ; to < len(pairs) && pairs[to].Cluster == pairs[from].Cluster; to++ {
			key = binary.BigEndian.AppendUint32(key, uint32(pairs[to].Label))
			key = binary.BigEndian.AppendUint32(key, uint32(pairs[to].Base))
			key = binary.BigEndian.AppendUint32(key, uint32(pairs[to].Cand))
		}
		at, ok := index[string(key)]
		if !ok {
			at = len(contents)
			contents = append(contents, pairContent{key: string(key), pairs: pairs[from:to]})
			index[contents[at].key] = at
		}
		contents[at].clusters++
		from = to
	}
	slices.SortFunc(contents, func(a, b pairContent) int { return cmp.Compare(a.key, b.key) })
	return contents
}

// MacroF1Difference is the macro-F1 of two runs over the same messages.
type MacroF1Difference struct {
	Base               float64  `json:"baseline"`
	BaseInterval       Interval `json:"baseline_interval"`
	Cand               float64  `json:"candidate"`
	CandInterval       Interval `json:"candidate_interval"`
	Difference         float64  `json:"difference"` // candidate minus baseline
	DifferenceInterval Interval `json:"difference_interval"`
	Draws              int      `json:"draws"`
	Seed               uint64   `json:"seed"`
}

// CompareMacroF1 returns the macro-F1 of both runs and of their difference with paired cluster
// bootstrap intervals. It is false without messages. Swapping the runs swaps and negates the
// result exactly: the resamples are drawn for whichever order of the two comes first by content.
func CompareMacroF1(pairs []Pair, queues int, alpha float64, o Resampling) (MacroF1Difference, bool) {
	if len(pairs) == 0 {
		return MacroF1Difference{}, false
	}
	swapped := slices.Clone(pairs)
	for i, p := range swapped {
		swapped[i].Base, swapped[i].Cand = p.Cand, p.Base
	}
	contents, other := pairContents(slices.Clone(pairs)), pairContents(swapped)
	turned := slices.CompareFunc(other, contents, func(a, b pairContent) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.clusters, b.clusters))
	}) < 0
	if turned {
		contents = other
	}
	d := compareMacroF1(contents, queues, alpha, o)
	if turned {
		d.Base, d.Cand = d.Cand, d.Base
		d.BaseInterval, d.CandInterval = d.CandInterval, d.BaseInterval
		d.Difference = -d.Difference
		d.DifferenceInterval = Interval{-d.DifferenceInterval.High, -d.DifferenceInterval.Low}
	}
	return d, true
}

func compareMacroF1(contents []pairContent, queues int, alpha float64, o Resampling) MacroF1Difference {
	multiplicity := make([]int, len(contents))
	for i, c := range contents {
		multiplicity[i] = c.clusters
	}
	evaluator := func() func([]int, []float64) {
		base, cand := NewConfusion(queues), NewConfusion(queues)
		return func(drawn []int, out []float64) {
			base.Reset()
			cand.Reset()
			for i, k := range drawn {
				if k == 0 {
					continue
				}
				for _, p := range contents[i].pairs {
					base.Add(int(p.Label), int(p.Base), k)
					cand.Add(int(p.Label), int(p.Cand), k)
				}
			}
			// Every resample holds a message, so that some queue has a label: both are defined.
			out[0], _ = base.MacroF1()
			out[1], _ = cand.MacroF1()
			out[2] = out[1] - out[0]
		}
	}
	var at [3]float64
	evaluator()(multiplicity, at[:])
	r := ClusterBootstrap(multiplicity, o, 3, evaluator)
	d := MacroF1Difference{Base: at[0], Cand: at[1], Difference: at[2], Draws: r.Draws, Seed: r.Seed}
	d.BaseInterval, _ = r.Interval(0, alpha)
	d.CandInterval, _ = r.Interval(1, alpha)
	d.DifferenceInterval, _ = r.Interval(2, alpha)
	return d
}

// CostCluster holds the severity-weighted cost of the misroutes of one cluster in two runs.
type CostCluster struct {
	Base, Cand float64
	N          int // messages
}

// CostDifference compares the mean severity-weighted cost of a message in two runs.
type CostDifference struct {
	Base       float64        `json:"baseline"` // total
	Cand       float64        `json:"candidate"`
	N          int            `json:"n"`
	Difference float64        `json:"difference"` // a message, candidate minus baseline
	Interval   Interval       `json:"interval"`
	Cluster    SignFlipResult `json:"cluster"`
}

// CompareCost tests the difference of costs by cluster and gives it a paired cluster bootstrap
// interval; swapping the runs negates it exactly. False without messages.
func CompareCost(clusters []CostCluster, alpha float64, o Resampling) (CostDifference, bool) {
	d := CostDifference{}
	count := map[CostCluster]int{} // by size and difference, which is all that is resampled
	differences := make([]float64, 0, len(clusters))
	for _, c := range clusters {
		d.Base += c.Base
		d.Cand += c.Cand
		d.N += c.N
		differences = append(differences, c.Cand-c.Base)
		count[CostCluster{Cand: c.Cand - c.Base, N: c.N}]++
	}
	if d.N == 0 {
		return d, false
	}
	d.Difference = (d.Cand - d.Base) / float64(d.N)
	d.Cluster = ClusterSignFlip(differences, o)

	sign := 1.0
	if d.Difference < 0 {
		sign = -1
	}
	contents := make([]CostCluster, 0, len(count))
	for c := range count {
		contents = append(contents, c)
	}
	slices.SortFunc(contents, func(a, b CostCluster) int {
		return cmp.Or(cmp.Compare(sign*a.Cand, sign*b.Cand), cmp.Compare(a.N, b.N))
	})
	multiplicity := make([]int, len(contents))
	for i, c := range contents {
		multiplicity[i] = count[c]
	}
	r := ClusterBootstrap(multiplicity, o, 1, func() func([]int, []float64) {
		return func(drawn []int, out []float64) {
			sum, n := 0.0, 0
			for i, k := range drawn {
				sum += float64(k) * sign * contents[i].Cand
				n += k * contents[i].N
			}
			out[0] = sum / float64(n)
		}
	})
	d.Interval, _ = r.Interval(0, alpha)
	if sign < 0 {
		d.Interval = Interval{-d.Interval.High, -d.Interval.Low}
	}
	return d, true
}
