package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"misroute/pipeline/result"
	"misroute/reports/cohort"
)

// messageKey tells messages apart across runs: never by row number, which another export, another
// order or one more record shifts.
type messageKey struct {
	id, hash string
}

// scoredRow is a scored row with the run it comes from.
type scoredRow struct {
	*result.Row
	run *result.Run
}

// runSide is one side of a comparison: one run, or several weekly ones.
type runSide struct {
	folders []*result.Folder
	rows    map[messageKey]scoredRow
	repeats int // scored rows that a run before, or an earlier row, already had
}

// newRunSide indexes the scored rows of the runs. When weekly exports overlap, a message is taken
// from the earliest; rows are taken in an order of their own, so that shuffled files change nothing.
func newRunSide(folders []*result.Folder) *runSide {
	s := &runSide{folders: slices.Clone(folders), rows: map[messageKey]scoredRow{}}
	slices.SortStableFunc(s.folders, func(a, b *result.Folder) int {
		return cmp.Or(cmp.Compare(firstWeek(a), firstWeek(b)), cmp.Compare(a.Run.RunID, b.Run.RunID))
	})
	for _, f := range s.folders {
		order := make([]*result.Row, 0, len(f.Rows))
		for i := range f.Rows {
			if f.Rows[i].Scored() {
				order = append(order, &f.Rows[i])
			}
		}
		slices.SortFunc(order, func(a, b *result.Row) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Member, b.Member), cmp.Compare(a.RecordNo, b.RecordNo))
		})
		for _, r := range order {
			k := messageKey{r.MessageID, r.ContentSHA256}
			if _, twice := s.rows[k]; twice {
				s.repeats++
				continue
			}
			s.rows[k] = scoredRow{r, &f.Run}
		}
	}
	return s
}

// firstWeek is the earliest week of a run, empty without dates.
func firstWeek(f *result.Folder) string {
	first := ""
	for i := range f.Rows {
		if w := f.Rows[i].Week; w != "" && (first == "" || w < first) {
			first = w
		}
	}
	return first
}

// Unpaired is a message that only one of two runs can speak for.
type Unpaired struct {
	Side      string `json:"side"` // "baseline", "candidate": the run that has it; "both" where labels differ
	MessageID string `json:"message_id"`
	Source    string `json:"source"`
	RecordNo  int64  `json:"record_no"`
	Why       string `json:"why"`
}

// SetsDifferError says that two runs are not over the same messages, and lists those that are not
// in both, ordered by id.
type SetsDifferError struct {
	Baseline, Candidate int // scored messages of each
	Common              int // messages in both, with the same label
	Unpaired            []Unpaired
}

func (e *SetsDifferError) Error() string {
	counts := map[string]int{}
	for _, u := range e.Unpaired {
		counts[u.Side]++
	}
	var parts []string
	for _, p := range []struct{ side, words string }{
		{"baseline", "only in the baseline"}, {"candidate", "only in the candidate"}, {"both", "with another label"},
	} {
		if n := counts[p.side]; n > 0 {
			parts = append(parts, count(n)+" "+p.words)
		}
	}
	return fmt.Sprintf("the runs are not over the same messages: %s, %s in common: evaluate both over the same export, or compare what they share with --intersect",
		strings.Join(parts, ", "), count(e.Common))
}

// pairedMessage is one message of both runs.
type pairedMessage struct {
	key              messageKey
	base, cand       scoredRow
	label, to, from  int // queues by number: label, candidate's prediction, baseline's; label -1: unlabelled
	cluster          int32
	length, bucket   int
	baseMargin       float64 // logit of the label minus the best other one; of the prediction without a label
	candMargin       float64
	baseCost, toCost float64 // with costs: of the misroute in each run
}

func (p *pairedMessage) baseWrong() bool { return p.label >= 0 && p.from != p.label }
func (p *pairedMessage) candWrong() bool { return p.label >= 0 && p.to != p.label }
func (p *pairedMessage) change() float64 { return p.candMargin - p.baseMargin }

// joinSides pairs the messages of two sides, ordered by id, and lists those without a partner.
func joinSides(base, cand *runSide) ([]pairedMessage, []Unpaired) {
	var pairs []pairedMessage
	var unpaired []Unpaired
	for k, b := range base.rows {
		c, ok := cand.rows[k]
		switch {
		case !ok:
			unpaired = append(unpaired, Unpaired{Side: "baseline", MessageID: k.id, Source: b.Source, RecordNo: b.RecordNo})
		case b.Label != c.Label:
			unpaired = append(unpaired, Unpaired{
				Side: "both", MessageID: k.id, Source: b.Source, RecordNo: b.RecordNo,
				Why: fmt.Sprintf("label %q in the baseline, %q in the candidate", b.Label, c.Label),
			})
		default:
			pairs = append(pairs, pairedMessage{key: k, base: b, cand: c})
		}
	}
	for k, c := range cand.rows {
		if _, ok := base.rows[k]; !ok {
			unpaired = append(unpaired, Unpaired{Side: "candidate", MessageID: k.id, Source: c.Source, RecordNo: c.RecordNo})
		}
	}
	slices.SortFunc(pairs, func(a, b pairedMessage) int {
		return cmp.Or(cmp.Compare(a.key.id, b.key.id), cmp.Compare(a.key.hash, b.key.hash))
	})
	slices.SortFunc(unpaired, func(a, b Unpaired) int {
		return cmp.Or(cmp.Compare(a.MessageID, b.MessageID), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Source, b.Source), cmp.Compare(a.RecordNo, b.RecordNo))
	})
	explainUnpaired(unpaired, base, cand)
	return pairs, unpaired
}

// explainUnpaired fills in why the other run does not have a message, where its records say so.
func explainUnpaired(unpaired []Unpaired, base, cand *runSide) {
	missing := map[string]bool{}
	for _, u := range unpaired {
		missing[u.MessageID] = u.MessageID != ""
	}
	reasons := func(s *runSide) map[string]string {
		why := map[string]string{}
		for _, f := range s.folders {
			for i := range f.Rejects {
				if r := &f.Rejects[i]; missing[r.MessageID] {
					why[r.MessageID] = "rejected there: " + r.Code
				}
			}
			for i := range f.Rows {
				r := &f.Rows[i]
				switch {
				case !missing[r.MessageID]:
				case r.Scored():
					why[r.MessageID] = "there with other content"
				case why[r.MessageID] == "":
					why[r.MessageID] = r.Status + " there"
				}
			}
		}
		return why
	}
	inBase, inCand := reasons(base), reasons(cand)
	for i := range unpaired {
		u := &unpaired[i]
		other := inCand
		if u.Side == "candidate" {
			other = inBase
		}
		if u.Why == "" {
			u.Why = cmp.Or(other[u.MessageID], "not there")
		}
	}
}

// numberPairs fills in what depends on the other messages: queues, threads, buckets, margins, costs.
func numberPairs(pairs []pairedMessage, queues *cohort.Queues, buckets cohort.Buckets, costs *Costs) {
	var clusters cohort.Clusters
	for i := range pairs {
		p := &pairs[i]
		p.label = -1
		if p.base.Label != "" {
			p.label, _ = queues.Of(p.base.Label)
		}
		p.from, _ = queues.Of(p.base.Prediction)
		p.to, _ = queues.Of(p.cand.Prediction)
		// The thread comes from the mail and is the same in both runs; should two treatments of
		// the body have given two keys, the choice must not depend on which run is the baseline.
		p.cluster = clusters.Of(min(cmp.Or(p.base.ThreadKey, p.cand.ThreadKey), cmp.Or(p.cand.ThreadKey, p.base.ThreadKey)))
		p.bucket = buckets.Of(p.length)
		p.baseMargin, p.candMargin = flipMargin(p.base.Row), flipMargin(p.cand.Row)
		if p.label >= 0 {
			p.baseCost = costs.Of(p.base.Label, p.base.Prediction)
			p.toCost = costs.Of(p.base.Label, p.cand.Prediction)
		}
	}
}

// flipMargin is the margin of the label; where that is unknown (no label, no scores) the margin of
// the prediction, negative for a misroute.
func flipMargin(r *result.Row) float64 {
	if m := labelMargin(r); r.Label != "" && !math.IsNaN(m) {
		return m
	}
	if r.Wrong() {
		return -float64(r.Margin)
	}
	return float64(r.Margin)
}
