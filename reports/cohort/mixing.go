package cohort

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"misroute/pipeline/result"
)

// Value is one value of a dimension with the number of rows that have it.
type Value struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Mixture is a dimension in which the rows of one group differ, although the group is not made by
// it: a difference between groups may be a difference of mixtures.
type Mixture struct {
	Dimension string  `json:"dimension"`
	Values    []Value `json:"values"` // most rows first, then by name
}

// String says the mixture in words: "languages: de 40, en 12".
func (m Mixture) String() string {
	var b strings.Builder
	b.WriteString(m.Dimension)
	const most = 5 // a warning is one line
	for i, v := range m.Values {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(m.Values)-most)
			break
		}
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s %d", v.Name, v.N)
	}
	return b.String()
}

// mixKey is what rows of one cell should have in common.
type mixKey struct {
	run                *result.Run
	language, strategy string
	limit              int32
}

// dimensions read a key. Languages that the reader of the mail was unsure of count for none.
var dimensions = []struct {
	name string
	of   func(mixKey) string
}{
	{"languages", func(k mixKey) string { return k.language }},
	{"models", func(k mixKey) string {
		m := &k.run.Model
		return digested(cmp.Or(m.Name, m.Family), m.SHA256)
	}},
	{"tokenizers", func(k mixKey) string {
		m := &k.run.Model
		return digested(m.Tokenizer, m.TokenizerSHA256)
	}},
	{"caps", func(k mixKey) string {
		if k.limit == 0 {
			return "none"
		}
		return strconv.Itoa(int(k.limit))
	}},
	{"strategies", func(k mixKey) string { return k.strategy }},
	{"precisions", func(k mixKey) string { return k.run.Precision }},
	{"treatments of quotes", func(k mixKey) string { return k.run.Quotes }},
}

// digested is a name with the first digits of what it names.
func digested(name, sha256 string) string {
	if len(sha256) > 8 {
		return name + " " + sha256[:8]
	}
	return name
}

// Mixing finds out in what the rows of a group differ. The zero value is an empty group.
type Mixing struct {
	seen map[mixKey]int
}

// Add takes a row of a run into the group.
func (m *Mixing) Add(run *result.Run, row *result.Row) {
	if m.seen == nil {
		m.seen = map[mixKey]int{}
	}
	m.seen[mixKey{run, row.Language, row.Strategy, row.Cap}]++
}

// Mixed lists the dimensions with more than one value.
func (m *Mixing) Mixed() []Mixture {
	var out []Mixture
	for _, d := range dimensions {
		values := map[string]int{}
		for k, n := range m.seen {
			if v := d.of(k); v != "" {
				values[v] += n
			}
		}
		if len(values) < 2 {
			continue
		}
		x := Mixture{Dimension: d.name}
		for name, n := range values {
			x.Values = append(x.Values, Value{name, n})
		}
		slices.SortFunc(x.Values, func(a, b Value) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
		})
		out = append(out, x)
	}
	return out
}
