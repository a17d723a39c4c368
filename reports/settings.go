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
	t    *tally
	run  setting
	list []setting // all, by rising cap (none last), then strategy in the order of the run
}

func (t *tally) settings() *settings {
	if t.others == nil {
		t.others = t.findSettings()
	}
	return t.others
}

func (t *tally) findSettings() *settings {
	s := &settings{run: setting{t.run.Cap, t.run.Strategy}, t: t}
	seen := map[setting]bool{}
	if !t.allWhole() {
		seen[s.run] = true
	}
	for i := range t.readings {
		if at, ok := t.settingOf(&t.readings[i]); ok {
			seen[at] = true
		}
	}
	// A sweep over mail that is short throughout has no readings to learn its settings from.
	for _, c := range t.run.Caps {
		for _, strategy := range t.run.Strategies {
			at := setting{c, strategy}
			if c == 0 {
				at = setting{}
			}
			seen[at] = true
		}
	}
	order := map[string]int{}
	for i, name := range append([]string{t.run.Strategy}, t.run.Strategies...) {
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
func (t *tally) allWhole() bool { return t.run.Cap == 0 }

// settingOf a reading; false for one that is no setting's.
func (t *tally) settingOf(x *otherReading) (setting, bool) {
	switch x.kind {
	case kindWhole:
		return setting{}, true
	case kindSetting:
		return setting{int(x.cap), t.name(x.strategy)}, true
	}
	return setting{}, false
}

// reading of a row at a setting; nil: none.
func (s *settings) reading(r *line, at setting) *otherReading {
	list := s.t.readingsOf(r)
	for i := len(list) - 1; i >= 0; i-- {
		if x, ok := s.t.settingOf(&list[i]); ok && x == at {
			return &list[i]
		}
	}
	return nil
}

// answer is how a message fared under a setting.
type answer struct {
	prediction   shared
	kept         int
	cells, flops int64
	cut          bool
}

// at answers for a row under a setting; false when it was not read that way.
func (s *settings) at(r *line, at setting) (answer, bool) {
	own := answer{r.prediction, int(r.kept), r.cells, r.flops, r.cut()}
	if at == s.run {
		return own, true
	}
	if x := s.reading(r, at); x != nil {
		return answer{x.prediction, int(x.kept), x.cells, x.flops, x.kept < r.total}, true
	}
	if at.cap > 0 && at.cap < int(r.total) {
		return answer{}, false
	}
	// The setting does not cut this message: any reading that did not either is the same.
	if !r.cut() && r.windows <= 1 {
		return own, true
	}
	if x := s.reading(r, setting{}); x != nil {
		return answer{x.prediction, int(x.kept), x.cells, x.flops, false}, true
	}
	for _, x := range s.list { // a larger cap of the sweep that reads it whole in one pass
		if y := s.reading(r, x); y != nil && y.windows <= 1 && y.kept >= r.total {
			return answer{y.prediction, int(y.kept), y.cells, y.flops, false}, true
		}
	}
	if !r.cut() {
		return own, true
	}
	return answer{}, false
}
