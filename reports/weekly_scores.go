package reports

import (
	"math"

	"misroute/pipeline/result"
	"misroute/reports/stats"
)

// Calibration says whether scores mean what they say.
type Calibration struct {
	N           int        `json:"n"`
	ECE         Number     `json:"ece"`
	Bins        []ScoreBin `json:"bins"`
	Temperature Number     `json:"temperature"` // divide the logits by it; undefined where the data do not say
	Before      Number     `json:"nll_before"`  // mean negative log likelihood, nats
	After       Number     `json:"nll_after"`
}

// ScoreBin is one point of the reliability plot.
type ScoreBin struct {
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	N     int     `json:"n"`
	Right int     `json:"right"`
	Score Number  `json:"mean_score"`
	Rate  Number  `json:"accuracy"`
	From  Number  `json:"accuracy_low"`
	To    Number  `json:"accuracy_high"`
	Few   bool    `json:"few,omitempty"`
}

// Abstain is what a router does that hands doubtful messages to a person.
type Abstain struct {
	Points []CoverageAt `json:"points"` // at round thresholds
	Asked  *CoverageAt  `json:"asked,omitempty"`
	Curve  []CoverageAt `json:"curve"` // at most 101 points, by coverage
}

// CoverageAt is one threshold.
type CoverageAt struct {
	Threshold float64 `json:"threshold"`
	Coverage  Number  `json:"coverage"` // share of messages routed
	Rate              // misroutes among them
}

// calibrate fills calibration and the coverage-risk curve, for routers that give scores.
func (t *tally) calibrate(w *Weekly) {
	if t.run.Model.Family == asRouted || len(t.judged) == 0 {
		return
	}
	scores, right, wrong := make([]float64, len(t.judged)), make([]bool, len(t.judged)), make([]bool, len(t.judged))
	for i, r := range t.judged {
		scores[i], right[i], wrong[i] = float64(r.score), !r.wrong(), r.wrong()
		if math.IsNaN(scores[i]) || scores[i] < 0 || scores[i] > 1 {
			w.Warnings = append(w.Warnings, "scores are not all between 0 and 1: calibration is left out")
			return
		}
	}
	bins := stats.Reliability(scores, right, stats.DefaultBins)
	c := &Calibration{N: len(scores), ECE: undefined, Temperature: undefined, Before: undefined, After: undefined, Bins: []ScoreBin{}}
	if e, ok := stats.ECE(bins); ok {
		c.ECE = Number(e)
	}
	for _, b := range bins {
		if b.N == 0 {
			continue
		}
		ci := stats.Wilson(b.Right, b.N)
		c.Bins = append(c.Bins, ScoreBin{
			Low: b.Low, High: b.High, N: b.N, Right: b.Right, Score: Number(b.MeanScore), Rate: ratio(b.Accuracy()),
			From: Number(ci.Low), To: Number(ci.High), Few: newRate(0, b.N, few).Few,
		})
	}
	t.temperature(c)
	w.Calibration = c
	curve := stats.CoverageRisk(scores, wrong)
	a := &Abstain{}
	at := func(p stats.CoveragePoint, threshold float64) CoverageAt {
		return CoverageAt{Threshold: threshold, Coverage: Number(float64(p.Routed) / float64(len(scores))), Rate: newRate(p.Wrong, p.Routed, few)}
	}
	for _, threshold := range []float64{0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99} {
		a.Points = append(a.Points, at(stats.AtThreshold(curve, threshold), threshold))
	}
	if t.o.Threshold > 0 {
		asked := at(stats.AtThreshold(curve, t.o.Threshold), t.o.Threshold)
		a.Asked = &asked
	}
	const most = 100
	next := 0.0
	for i, p := range curve {
		if share := float64(p.Routed) / float64(len(scores)); share >= next || i == len(curve)-1 {
			a.Curve = append(a.Curve, at(p, p.Threshold))
			next = share + 1.0/most
		}
	}
	w.Abstain = a
}

// temperature fits one number to the scores of messages whose label the router knows.
func (t *tally) temperature(c *Calibration) {
	queues := len(t.run.Queues)
	logs, labels := make([]float64, 0, queues*len(t.samples)), make([]int, 0, len(t.samples))
	for _, x := range t.samples {
		logs, labels = append(logs, x.logs...), append(labels, x.label)
	}
	fit, ok := stats.Temperature(logs, queues, labels)
	if !ok || fit.Bounded || len(labels) < few {
		return
	}
	c.Temperature, c.Before, c.After = Number(fit.T), Number(fit.Before), Number(fit.After)
}

// logScores writes the logarithms of a row's scores in the router's order.
func logScores(dst []float64, scores []result.QueueScore, index map[string]int) bool {
	for _, s := range scores {
		i, ok := index[s.Queue]
		if !ok {
			return false
		}
		dst[i] = math.Log(max(float64(s.Score), 1e-38)) // float32 softmax may round to zero
	}
	return true
}
