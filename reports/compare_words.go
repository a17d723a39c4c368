package reports

import (
	"fmt"
	"math"
	"strings"

	"misroute/reports/cohort"
	"misroute/reports/stats"
)

// warn says what could mislead in the numbers.
func (w *comparison) warn() {
	c := w.c
	add := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	if c.Sets.LeftOut > 0 {
		add("%s left out because they are not in both runs", plural(c.Sets.LeftOut, "message is", "messages are"))
	}
	if c.Sets.Repeats > 0 {
		add("%s repeat a message of an earlier run of the same side and are left out", plural(c.Sets.Repeats, "row", "rows"))
	}
	if n := c.Sets.Paired - c.Sets.Labelled; n > 0 {
		add("%s no label: no run can be right or wrong about them", plural(n, "message has", "messages have"))
	}
	p := &c.Overall.Pairs
	if changed, need := p.Changed(), stats.FewestChanged(p.Alpha); changed < need && !(c.Gate.Verdict == stats.Pass && c.Flips.Flipped() == 0) {
		words := plural(changed, "message changed", "messages changed")
		if changed == 0 {
			words = "no message changed"
		}
		add("%s between right and wrong: need at least %d changed messages before any p can fall below %s", words, need, trimFloat(p.Alpha))
	}
	if c.Control != nil && c.Control.Flips > 0 {
		add("%s of %s that neither run cut changed although both asked the same model: that is a fault of one of the runs, not a finding", count(c.Control.Flips), plural(c.Control.N, "message", "messages"))
	}
	if p.Disagree() {
		add("mid-p %s and the p by thread %s disagree at %s: the verdict follows the threads", pvalue(p.MidP), pvalue(p.P()), trimFloat(p.Alpha))
	}
	for _, m := range c.Overall.Mixed {
		add("the baseline mixes %s", m)
	}
	var candidate cohort.Mixing
	tokenizers, weeksDiffer := false, false
	for i := range w.judged {
		x := &w.judged[i]
		candidate.Add(x.cand.run, x.cand.Row)
		tokenizers = tokenizers || x.base.run.Model.TokenizerSHA256 != x.cand.run.Model.TokenizerSHA256
		weeksDiffer = weeksDiffer || x.base.Week != x.cand.Week
	}
	for _, m := range candidate.Mixed() {
		if m.Dimension != "languages" { // of the mail, so the same as the baseline's
			add("the candidate mixes %s", m)
		}
	}
	if tokenizers && c.Unit == unitTokens {
		add("the runs count tokens differently: lengths are the %s's", c.LengthsOf)
	}
	if weeksDiffer {
		add("some messages are dated to another week in the candidate: weeks are the baseline's")
	}
	if k, l := kernels(&c.Baseline), kernels(&c.Candidate); k != l && c.Baseline.Millis.Defined() && c.Candidate.Millis.Defined() {
		add("times were measured on different kernels: %s and %s", k, l)
	}
	for _, q := range w.o.Costs.Unknown(w.queues.Names()) {
		add("the costs file names the queue %q, which neither a router nor a label knows", q)
	}
	for _, r := range append(append([]RunFact{}, c.Baseline.Runs...), c.Candidate.Runs...) {
		if r.Version != c.Baseline.Runs[0].Version {
			add("the runs were made by different versions of misroute: %s and %s", c.Baseline.Runs[0].Version, r.Version)
			break
		}
	}
}

func kernels(s *Side) string {
	set := map[string]bool{}
	for _, r := range s.Runs {
		set[r.Kernel] = true
	}
	return strings.Join(sortedKeys(set), ", ")
}

// trimFloat prints a number without trailing zeros.
func trimFloat(x float64) string { return strings.TrimPrefix(fmt.Sprintf("%g", x), "") }

// words makes the headline and the doubts.
func (w *comparison) words() {
	c := w.c
	c.Headline = strings.TrimSpace(c.Gate.Verdict.String() + ": " + c.sentence())
	c.Doubt = c.doubts()
	if c.Warnings == nil {
		c.Warnings = []string{}
	}
}

// sentence is the answer a support lead needs.
func (c *Compare) sentence() string {
	o := &c.Overall
	counts := fmt.Sprintf("%s instead of %s of %s went to the wrong queue", count(o.Cand.Wrong), count(o.Base.Wrong), plural(o.Pairs.N, "message", "messages"))
	switch c.Gate.Verdict {
	case stats.Pass:
		switch {
		case c.Flips.Flipped() == 0:
			return fmt.Sprintf("no message changed: %s of %s went to the wrong queue in both runs", count(o.Base.Wrong), plural(o.Pairs.N, "message", "messages"))
		case o.Pairs.Interval.High < 0:
			return "the candidate is better: " + counts
		case o.Pairs.Interval.Low > 0 && o.Pairs.Decided():
			return fmt.Sprintf("the candidate is worse, but surely by less than %s points: %s", marginPoints(c.Gate.Margin), counts)
		}
		return fmt.Sprintf("the candidate is not worse by %s points or more: %s", marginPoints(c.Gate.Margin), counts)
	case stats.Regression:
		return "the candidate is worse: " + counts
	}
	return "these messages cannot tell whether the candidate is worse: " + counts
}

// marginPoints prints a share in points of a hundred without trailing zeros.
func marginPoints(x float64) string { return trimFloat(math.Round(x*1e6) / 1e4) }

// differenceWords is the difference with its interval.
func (c *Compare) differenceWords() string {
	p := &c.Overall.Pairs
	return fmt.Sprintf("Difference %s points (%s interval %s to %s), margin %s.",
		points(Number(p.Difference)), confidence(p.Alpha), points(Number(p.Interval.Low)), points(Number(p.Interval.High)), marginPoints(c.Gate.Margin))
}

// confidence prints the level of an interval: "95 %".
func confidence(alpha float64) string { return marginPoints(1-alpha) + " %" }

// doubts says what weakens the verdict, and what would settle it.
func (c *Compare) doubts() []string {
	doubts := []string{}
	if c.Gate.Verdict == stats.Inconclusive {
		s := capitalised(c.Gate.Reason) + ". "
		s += fmt.Sprintf("This many messages show a difference of %s points at the least", bare(Number(c.Gate.Detectable)))
		if c.Gate.Needed > 0 {
			s += fmt.Sprintf("; about %s would decide, if the shares stay as they are", plural(roundUp(c.Gate.Needed), "message", "messages"))
		}
		doubts = append(doubts, s+". Cannot tell is not the same as equal.")
	}
	return append(doubts, sentences(c.Warnings)...)
}

// roundUp keeps two digits: a forecast has no more.
func roundUp(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

func capitalised(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// sentences gives each line a capital and a stop.
func sentences(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = capitalised(l) + "."
	}
	return out
}
