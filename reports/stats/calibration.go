package stats

import (
	"cmp"
	"math"
	"slices"
)

// CalibrationBin is one bar of a reliability plot: messages whose score lies in (Low, High].
type CalibrationBin struct {
	Low, High float64
	N, Right  int
	MeanScore float64 // 0 when N is 0
}

// Accuracy is the share of right predictions, undefined in an empty bin.
func (b CalibrationBin) Accuracy() Ratio { return Ratio{b.Right, b.N} }

// DefaultBins is the number of score bins of the reliability plot, the one most papers use
// (Guo et al. 2017).
const DefaultBins = 15

// Reliability sorts predictions into equally wide score bins, left-open and right-closed; a score
// of 0 belongs to the first. score and right run in parallel, scores in [0, 1].
func Reliability(score []float64, right []bool, bins int) []CalibrationBin {
	out := make([]CalibrationBin, bins)
	for i := range out {
		out[i].Low, out[i].High = float64(i)/float64(bins), float64(i+1)/float64(bins)
	}
	for i, s := range score {
		j := min(max(int(math.Ceil(s*float64(bins)))-1, 0), bins-1)
		out[j].N++
		out[j].MeanScore += s
		if right[i] {
			out[j].Right++
		}
	}
	for i := range out {
		if out[i].N > 0 {
			out[i].MeanScore /= float64(out[i].N)
		}
	}
	return out
}

// ECE is the expected calibration error (Naeini et al. 2015): the mean distance of accuracy and
// mean score over bins, weighted with their n. False without messages.
func ECE(bins []CalibrationBin) (float64, bool) {
	sum, n := 0.0, 0
	for _, b := range bins {
		if b.N == 0 {
			continue
		}
		sum += math.Abs(float64(b.Right) - b.MeanScore*float64(b.N))
		n += b.N
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// CoveragePoint is what a router does that abstains below a threshold.
type CoveragePoint struct {
	Threshold float64 // the lowest score still routed
	Routed    int     // messages at or above it
	Wrong     int     // misroutes among them
}

// Risk is the misroute rate among routed messages, undefined when none is.
func (p CoveragePoint) Risk() Ratio { return Ratio{p.Wrong, p.Routed} }

// CoverageRisk returns one point for every distinct score, from the highest down: the curve of
// coverage (Routed over the last point's Routed) against risk. Messages of equal score are routed
// or held back together.
func CoverageRisk(score []float64, wrong []bool) []CoveragePoint {
	if len(score) == 0 {
		return nil
	}
	order := make([]int32, len(score))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(score[b], score[a]) })
	distinct := 0
	for at, i := range order {
		if at+1 == len(order) || score[order[at+1]] != score[i] {
			distinct++
		}
	}
	out := make([]CoveragePoint, 0, distinct)
	p := CoveragePoint{}
	for at, i := range order {
		p.Threshold = score[i]
		p.Routed++
		if wrong[i] {
			p.Wrong++
		}
		if at+1 == len(order) || score[order[at+1]] != score[i] {
			out = append(out, p)
		}
	}
	return out
}

// AtThreshold returns what [CoverageRisk]'s curve says of a threshold.
func AtThreshold(curve []CoveragePoint, threshold float64) CoveragePoint {
	i, _ := slices.BinarySearchFunc(curve, threshold, func(p CoveragePoint, t float64) int {
		if p.Threshold >= t {
			return -1
		}
		return 1
	})
	if i == 0 {
		return CoveragePoint{Threshold: threshold}
	}
	return CoveragePoint{threshold, curve[i-1].Routed, curve[i-1].Wrong}
}

// TemperatureFit is the temperature that makes scores most likely.
type TemperatureFit struct {
	T             float64 // scores become softmax(log(score)/T); above 1 they were too sure
	Before, After float64 // mean negative log likelihood of the labels, in nats
	Bounded       bool    // the best T lies at the edge of what was searched: no real optimum
}

// temperatureRange bounds the search: beyond it the data do not determine a temperature, as when
// every prediction is right and sharper is always better.
var temperatureRange = Interval{0.05, 20}

// Temperature fits the temperature of a softmax (Guo et al. 2017) by maximum likelihood. logScore
// has queues values a message, one after the other (logarithms of the scores, or logits: a
// constant a message does not matter); label is the index of the true queue. False without
// messages.
func Temperature(logScore []float64, queues int, label []int) (TemperatureFit, bool) {
	if len(label) == 0 || queues < 2 {
		return TemperatureFit{}, false
	}
	loss := func(t float64) float64 {
		sum := 0.0
		for i, y := range label {
			row := logScore[i*queues : (i+1)*queues]
			top := slices.Max(row)
			z := 0.0
			for _, v := range row {
				z += math.Exp((v - top) / t)
			}
			sum += math.Log(z) - (row[y]-top)/t
		}
		return sum / float64(len(label))
	}
	// The loss is convex in 1/T, hence has one minimum along log T: golden section finds it.
	low, high := math.Log(temperatureRange.Low), math.Log(temperatureRange.High)
	const golden = 0.6180339887498949
	a, b := high-golden*(high-low), low+golden*(high-low)
	fa, fb := loss(math.Exp(a)), loss(math.Exp(b))
	for high-low > 1e-4 {
		if fa <= fb {
			high, b, fb = b, a, fa
			a = high - golden*(high-low)
			fa = loss(math.Exp(a))
		} else {
			low, a, fa = a, b, fb
			b = low + golden*(high-low)
			fb = loss(math.Exp(b))
		}
	}
	t := math.Exp((low + high) / 2)
	edge := t < temperatureRange.Low*1.01 || t > temperatureRange.High/1.01
	return TemperatureFit{T: t, Before: loss(1), After: loss(t), Bounded: edge}, true
}
