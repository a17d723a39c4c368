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

// dimensions are what rows of one cell should have in common. Languages that the reader of the
// mail was unsure of count for none.
var dimensions = []struct {
	name string
	of   func(*result.Run, *result.Row) string
}{
	{"languages", func(_ *result.Run, r *result.Row) string { return r.Language }},
	{"models", func(f *result.Run, _ *result.Row) string {
		if len(f.Model.SHA256) > 8 {
			return f.Model.Name + " " + f.Model.SHA256[:8]
		}
		return cmp.Or(f.Model.Name, f.Model.Family)
	}},
	{"tokenizers", func(f *result.Run, _ *result.Row) string {
		if len(f.Model.TokenizerSHA256) > 8 {
			return f.Model.Tokenizer + " " + f.Model.TokenizerSHA256[:8]
		}
		return f.Model.Tokenizer
	}},
	{"caps", func(_ *result.Run, r *result.Row) string {
		if r.Cap == 0 {
			return "none"
		}
		return strconv.Itoa(int(r.Cap))
	}},
	{"strategies", func(_ *result.Run, r *result.Row) string { return r.Strategy }},
	{"precisions", func(f *result.Run, _ *result.Row) string { return f.Precision }},
	{"treatments of quotes", func(f *result.Run, _ *result.Row) string { return f.Quotes }},
}

// Mixing finds out in what the rows of a group differ. The zero value is an empty group.
type Mixing struct {
	seen []map[string]int // by dimension
}

// Add takes a row of a run into the group.
func (m *Mixing) Add(run *result.Run, row *result.Row) {
	if m.seen == nil {
		m.seen = make([]map[string]int, len(dimensions))
		for i := range m.seen {
			m.seen[i] = map[string]int{}
		}
	}
	for i, d := range dimensions {
		if v := d.of(run, row); v != "" {
			m.seen[i][v]++
		}
	}
}

// Mixed lists the dimensions with more than one value.
func (m *Mixing) Mixed() []Mixture {
	var out []Mixture
	for i, values := range m.seen {
		if len(values) < 2 {
			continue
		}
		x := Mixture{Dimension: dimensions[i].name}
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
