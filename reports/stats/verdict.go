package stats

import (
	"fmt"
	"math"
)

// DefaultMargin is the non-inferiority margin of the gate: half a percentage point of misroutes.
const DefaultMargin = 0.005

// Power is the chance with which a difference called detectable is in fact detected.
const Power = 0.8

// Verdict is the outcome of the gate.
type Verdict int

// The three outcomes. Inconclusive means that the data cannot tell, not that the runs are equal.
const (
	Inconclusive Verdict = iota
	Pass
	Regression
)

func (v Verdict) String() string {
	switch v {
	case Pass:
		return "PASS"
	case Regression:
		return "REGRESSION"
	}
	return "INCONCLUSIVE"
}

// MarshalText writes the verdict as its word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Judgement is a verdict with what it rests on.
type Judgement struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // a clause for a sentence, without the word of the verdict
	Margin  float64 `json:"margin"`
	// Detectable is the smallest difference of rates that this many messages, of which this share
	// changes, would show with [Power].
	Detectable float64 `json:"smallest_detectable_difference"`
	// Needed is the number of messages that would decide it with [Power] if the observed shares
	// stayed as they are; 0 when it is decided, or when no number would.
	Needed int `json:"messages_needed"`
}

// Judge applies the gate to the difference candidate minus baseline: the upper bound below the
// margin passes, a lower bound above zero that the test by cluster confirms is a regression, and
// everything else is inconclusive. A difference that is real but surely smaller than the margin
// passes. identical says that the runs gave the same answer and score to every message: then
// there is nothing to tell apart, and it passes however few they are.
func Judge(p *Paired, margin float64, identical bool) Judgement {
	j := Judgement{Margin: margin}
	z := ZOf(p.Alpha)
	zPower := z + Quantile(Power)
	n := float64(p.N) / p.Effect
	changed := float64(p.B+p.C) / p.Effect
	j.Detectable = math.Min(1, zPower*math.Sqrt((changed+2)/(n+2)/math.Max(n, 1)))
	switch {
	case p.N == 0:
		j.Reason = "there is no labelled message to compare"
		return j
	case identical:
		j.Verdict = Pass
		j.Reason = "every message got the same answer with the same score"
		return j
	case p.Interval.High < margin:
		j.Verdict = Pass
		j.Reason = "the interval of the difference ends below the margin"
		if p.Interval.Low > 0 && p.Decided() {
			j.Reason = "the candidate is worse, but surely by less than the margin"
		}
		return j
	case p.Interval.Low > 0 && p.Decided():
		j.Verdict = Regression
		j.Reason = "the interval of the difference lies above zero"
		return j
	case p.Interval.Low > 0:
		j.Reason = "the interval lies above zero, but the test by thread does not confirm it"
	default:
		j.Reason = "the interval of the difference reaches from zero or below to the margin or above"
	}
	j.Needed = messagesNeeded(p, margin, zPower)
	return j
}

// messagesNeeded searches the smallest number of messages at which shares as observed are decided,
// with an interval widened to keep the power.
func messagesNeeded(p *Paired, margin, z float64) int {
	decides := func(n int) bool {
		scale := float64(n) / float64(p.N) / p.Effect
		d, se := bonettPrice(float64(p.B)*scale, float64(p.C)*scale, float64(p.N)*scale)
		return d+z*se < margin || d-z*se > 0
	}
	const most = 1 << 40
	high := p.N
	for !decides(high) {
		if high *= 2; high > most {
			return 0
		}
	}
	low := high / 2
	for low+1 < high {
		if mid := low + (high-low)/2; decides(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return max(high, p.N+1)
}

// UnmarshalText reads the word of a verdict.
func (v *Verdict) UnmarshalText(text []byte) error {
	for _, known := range []Verdict{Inconclusive, Pass, Regression} {
		if known.String() == string(text) {
			*v = known
			return nil
		}
	}
	return fmt.Errorf("%q is not a verdict: PASS, REGRESSION or INCONCLUSIVE", text)
}
