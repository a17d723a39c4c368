package stats

import (
	"cmp"
	"math"
	"slices"
)

// Counterfactual counts the cut messages by how they fared at the cap and read whole.
type Counterfactual struct {
	Cost       int `json:"cut_cost_it"` // wrong at the cap, right read whole
	Helped     int `json:"cut_helped"`  // right at the cap, wrong read whole
	BothRight  int `json:"right_in_both"`
	BothWrong  int `json:"wrong_in_both"`
	UncutFlips int `json:"uncut_flips"` // messages under the cap whose prediction differs: must be 0
}

// Add counts one cut message.
func (c *Counterfactual) Add(rightAtCap, rightWhole bool) {
	switch {
	case rightAtCap && rightWhole:
		c.BothRight++
	case rightAtCap:
		c.Helped++
	case rightWhole:
		c.Cost++
	default:
		c.BothWrong++
	}
}

// N is the number of cut messages.
func (c *Counterfactual) N() int { return c.Cost + c.Helped + c.BothRight + c.BothWrong }

// Net is the number of misroutes the cut added. Cost alone would overstate it: whichever way a
// message is read again, some change by chance.
func (c *Counterfactual) Net() int { return c.Cost - c.Helped }

// Test compares the reading at the cap (as candidate) with the whole reading (as baseline) as if
// messages were independent: a positive difference is what the cut cost, in rate of misroutes
// among cut messages.
func (c *Counterfactual) Test() (test McNemarResult, difference float64, ci Interval) {
	difference, ci = BonettPrice(c.Cost, c.Helped, c.N())
	return McNemar(c.Cost, c.Helped), difference, ci
}

// DecisionDepth says from which of the settings on, in rising order of cap, the prediction is
// right and stays right: its index, and false when the last is wrong. backAndForth says that the
// message was right at some cap and wrong at a larger one.
func DecisionDepth(right []bool) (at int, found, backAndForth bool) {
	at = len(right)
	for at > 0 && right[at-1] {
		at--
	}
	return at, at < len(right), slices.Contains(right[:at], true)
}

// Option is one setting of a trade: what it costs and what it loses, both better when smaller.
type Option struct {
	Cost, Loss float64
}

// Dominated says of each option whether another is no worse in both respects and better in one.
func Dominated(options []Option) []bool {
	order := make([]int, len(options))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(options[a].Cost, options[b].Cost), cmp.Compare(options[a].Loss, options[b].Loss))
	})
	out := make([]bool, len(options))
	best := Option{Loss: math.Inf(1)} // the smallest loss so far, at its smallest cost
	for _, i := range order {
		o := options[i]
		if o.Loss < best.Loss {
			best = o
		} else if o != best {
			out[i] = true
		}
	}
	return out
}

// SavedCost is what a misroute saved costs: extra cost over misroutes saved.
type SavedCost struct {
	Saved         int      `json:"saved"`
	SavedInterval Interval `json:"saved_interval"`
	Extra         float64  `json:"extra"`
	PerSaved      float64  `json:"per_saved"`
	Interval      Interval `json:"per_saved_interval"`
	// Defined is false where the interval of Saved includes 0: the ratio has no meaning then.
	Defined bool `json:"defined"`
}

// PerMisrouteSaved returns the extra cost (milliseconds, FLOPs) of one reading over another for
// each misroute it saves, with cluster bootstrap intervals. saved and extra run over the clusters:
// misroutes of the cheaper reading minus those of the dearer, and the sum of the extra costs.
func PerMisrouteSaved(saved []int, extra []float64, alpha float64, o Resampling) SavedCost {
	type content struct {
		saved, level int
	}
	// Clusters of equal saving and nearly equal extra cost (1/200 of the largest) are one content
	// of the bootstrap, with their mean cost: the spread inside is far below that of the saving.
	const levels = 200
	largest := 0.0
	for _, e := range extra {
		largest = math.Max(largest, math.Abs(e))
	}
	index := map[content]int{}
	var contents []content
	var count []int
	var cost []float64
	var r SavedCost
	for i, s := range saved {
		c := content{saved: s}
		if largest > 0 {
			c.level = int(math.Round(extra[i] / largest * levels))
		}
		at, ok := index[c]
		if !ok {
			at = len(contents)
			index[c] = at
			contents, count, cost = append(contents, c), append(count, 0), append(cost, 0)
		}
		count[at]++
		cost[at] += extra[i]
		r.Saved += s
		r.Extra += extra[i]
	}
	if len(contents) == 0 {
		return r
	}
	for i := range cost {
		cost[i] /= float64(count[i])
	}
	replicates := ClusterBootstrap(count, o, 2, func() func([]int, []float64) {
		return func(drawn []int, out []float64) {
			s, e := 0, 0.0
			for i, k := range drawn {
				s += k * contents[i].saved
				e += float64(k) * cost[i]
			}
			out[0], out[1] = float64(s), math.NaN()
			if s != 0 {
				out[1] = e / float64(s)
			}
		}
	})
	r.SavedInterval, _ = replicates.Interval(0, alpha)
	if r.Saved == 0 || r.SavedInterval.Contains(0) {
		return r
	}
	i, ok := replicates.Interval(1, alpha)
	if !ok {
		return r
	}
	r.PerSaved, r.Interval, r.Defined = r.Extra/float64(r.Saved), i, true
	return r
}
