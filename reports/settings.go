package reports

import (
	"cmp"
	"fmt"
	"slices"

	"misroute/pipeline/result"
)

// setting is a cap with a strategy; cap 0 is the whole message.
type setting struct {
	cap      int
	strategy string
}

func (s setting) String() string {
	if s.cap == 0 {
		return "whole"
	}
	return fmt.Sprintf("%s %d", s.strategy, s.cap)
}

// timing is the name of the setting's readings in timings.json.
func (s setting) timing() string {
	return fmt.Sprintf("%s %d %s", result.ReadSetting, s.cap, s.strategy)
}

// settings finds how else messages were read. It answers for every message, whether or not the
// setting would have cut it: a result at a cap holds for every cap of at least the message's length.
type settings struct {
	run  setting
	list []setting // all, by rising cap (none last), then strategy in the order of the run
	of   map[rowKey]map[setting]*result.Reading
}

func (t *tally) settings() *settings {
	if t.others == nil {
		t.others = t.findSettings()
	}
	return t.others
}

func (t *tally) findSettings() *settings {
	s := &settings{run: setting{t.f.Run.Cap, t.f.Run.Strategy}, of: map[rowKey]map[setting]*result.Reading{}}
	seen := map[setting]bool{}
	if !t.allWhole() {
		seen[s.run] = true
	}
	for i := range t.f.Readings {
		r := &t.f.Readings[i]
		at := setting{int(r.Cap), r.Strategy}
		switch r.Kind {
		case result.ReadSetting:
		case result.ReadWhole:
			at = setting{}
		default:
			continue
		}
		k := rowKey{r.Source, r.Member, r.RecordNo}
		if s.of[k] == nil {
			s.of[k] = map[setting]*result.Reading{}
		}
		s.of[k][at] = r
		seen[at] = true
	}
	// A sweep over mail that is short throughout has no readings to learn its settings from.
	for _, c := range t.f.Run.Caps {
		for _, strategy := range t.f.Run.Strategies {
			at := setting{c, strategy}
			if c == 0 {
				at = setting{}
			}
			seen[at] = true
		}
	}
	order := map[string]int{}
	for i, name := range append([]string{t.f.Run.Strategy}, t.f.Run.Strategies...) {
		if _, ok := order[name]; !ok {
			order[name] = i
		}
	}
	for at := range seen {
		s.list = append(s.list, at)
	}
	rank := func(x setting) int {
		if x.cap == 0 {
			return int(^uint32(0) >> 1)
		}
		return x.cap
	}
	slices.SortFunc(s.list, func(a, b setting) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(order[a.strategy], order[b.strategy]), cmp.Compare(a.strategy, b.strategy))
	})
	return s
}

// allWhole says whether the run itself read every message whole, so that its own setting is the
// reference.
func (t *tally) allWhole() bool { return t.f.Run.Cap == 0 }

// answer is how a message fared under a setting.
type answer struct {
	prediction   string
	kept         int
	cells, flops int64
	cut          bool
}

// at answers for a row under a setting; false when it was not read that way.
func (s *settings) at(r *result.Row, at setting) (answer, bool) {
	own := answer{r.Prediction, int(r.TokensKept), r.Cells, r.FLOPs, r.Cut()}
	if at == s.run {
		return own, true
	}
	readings := s.of[key(r)]
	if x := readings[at]; x != nil {
		return answer{x.Prediction, int(x.TokensKept), x.Cells, x.FLOPs, x.TokensKept < r.TokensTotal}, true
	}
	if at.cap > 0 && at.cap < int(r.TokensTotal) {
		return answer{}, false
	}
	// The setting does not cut this message: any reading that did not either is the same.
	if !r.Cut() && r.Windows <= 1 {
		return own, true
	}
	if x := readings[setting{}]; x != nil {
		return answer{x.Prediction, int(x.TokensKept), x.Cells, x.FLOPs, false}, true
	}
	for _, x := range s.list { // a larger cap of the sweep that reads it whole in one pass
		if y := readings[x]; y != nil && y.Windows <= 1 && y.TokensKept >= r.TokensTotal {
			return answer{y.Prediction, int(y.TokensKept), y.Cells, y.FLOPs, false}, true
		}
	}
	if !r.Cut() {
		return own, true
	}
	return answer{}, false
}
