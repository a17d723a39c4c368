package reports

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"misroute/reports/stats"
)

// Number is a value that the data may leave undefined: NaN, null in JSON, "-" in print.
type Number float64

// undefined is the Number without a value.
var undefined = Number(math.NaN())

// Defined says whether the number has a value.
func (x Number) Defined() bool { return !math.IsNaN(float64(x)) }

// MarshalJSON writes null for an undefined number.
func (x Number) MarshalJSON() ([]byte, error) {
	if !x.Defined() || math.IsInf(float64(x), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON reads null as undefined.
func (x *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*x = undefined
		return nil
	}
	return json.Unmarshal(b, (*float64)(x))
}

// ratio makes a Number of counts.
func ratio(r stats.Ratio) Number {
	if v, ok := r.Value(); ok {
		return Number(v)
	}
	return undefined
}

// Rate is a misroute rate with its 95 % Wilson interval.
type Rate struct {
	N     int    `json:"n"`
	Wrong int    `json:"wrong"`
	Rate  Number `json:"rate"`
	Low   Number `json:"low"`
	High  Number `json:"high"`
	// Few marks a cell too small for a test or a ranking.
	Few bool `json:"few,omitempty"`
}

func newRate(wrong, n, few int) Rate {
	ci := stats.Wilson(wrong, n)
	return Rate{N: n, Wrong: wrong, Rate: ratio(stats.Ratio{Num: wrong, Den: n}), Low: Number(ci.Low), High: Number(ci.High), Few: n < few}
}

// percent prints a share with one decimal, "13.2 %", and with more only where one would say zero
// of something that is not.
func percent(x Number) string {
	if !x.Defined() {
		return "-"
	}
	return bare(x) + " %"
}

// bare is percent without its sign, for the bounds of an interval.
func bare(x Number) string {
	if !x.Defined() {
		return "-"
	}
	v := float64(x) * 100
	decimals := 1
	for d := 2; decimals < 3 && v != 0 && math.Abs(v) < 0.5*math.Pow(10, -float64(decimals)); d++ {
		decimals = d
	}
	return minus(strconv.FormatFloat(v, 'f', decimals, 64))
}

// interval prints "9.9 to 17.5", in points of a hundred.
func interval(low, high Number) string {
	if !low.Defined() || !high.Defined() {
		return "-"
	}
	return bare(low) + " to " + bare(high)
}

func (r Rate) interval() string {
	if r.N == 0 {
		return "-"
	}
	return interval(r.Low, r.High)
}

// points prints a difference of rates with its sign, "+10.4".
func points(x Number) string {
	if !x.Defined() {
		return "-"
	}
	s := bare(x)
	if float64(x) > 0 && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	if strings.Trim(s, "0.−") == "" {
		return strings.TrimPrefix(s, "−")
	}
	return s
}

// decimals prints a plain number such as a precision or a score.
func decimals(x Number, places int) string {
	if !x.Defined() {
		return "-"
	}
	return minus(strconv.FormatFloat(float64(x), 'f', places, 64))
}

// pvalue prints a probability of a test.
func pvalue(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return strconv.FormatFloat(p, 'f', 3, 64)
}

// minus writes the sign as one, not as a hyphen.
func minus(s string) string { return strings.Replace(s, "-", "−", 1) }

// count prints a number of things with commas at the thousands.
func count[T ~int | ~int32 | ~int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// magnitude prints a large number with three digits and a prefix: "5.61 G".
func magnitude(x float64) string {
	for _, unit := range []struct {
		scale float64
		name  string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(x) >= unit.scale {
			return strconv.FormatFloat(x/unit.scale, 'g', 3, 64) + " " + unit.name
		}
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// plural chooses the word for n things.
func plural[T ~int | ~int64](n T, one, many string) string {
	if n == 1 {
		return count(n) + " " + one
	}
	return count(n) + " " + many
}

// sortedKeys lists a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
