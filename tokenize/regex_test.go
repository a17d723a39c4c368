package tokenize

import (
	"slices"
	"strings"
	"testing"
)

// The written-out splitter is the pattern: the engine for patterns is its definition.
func TestGPT2SplitterIsThePattern(t *testing.T) {
	re, err := newRegex(gpt2Pattern)
	if err != nil {
		t.Fatal(err)
	}
	p := newGPT2Splitter()
	s := &scratch{}
	for _, text := range difficultTexts(3, 5000) {
		if got, want := p.find(s, nil, []byte(text)), re.find(s, nil, []byte(text)); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, the pattern gives %v", text, got, want)
		}
	}
}

// TestRegex holds the engine against Oniguruma's rules (doc/RE of Oniguruma 6.9).
func TestRegex(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []string
	}{
		{`a|ab`, "abab", []string{"a", "a"}}, // the first alternative, not the longest
		{`a{2,3}`, "aaaaa", []string{"aaa", "aa"}},
		{`a{,2}b`, "aaab", []string{"aab"}},
		{`a{,}`, "a{,}", []string{"a{,}"}}, // no interval: literal braces
		{`a+?b`, "aab", []string{"aab"}},
		{`a++ab`, "aab", nil}, // possessive
		{`(?>a+)ab`, "aab", nil},
		{`\s+(?!\S)`, "a   b  ", []string{"  ", "  "}},
		{`(?<=a)b`, "ab bb", []string{"b"}},
		{`(?<!a)b`, "ab bb", []string{"b", "b"}},
		{`(?i:'S|'T)`, "'s 't 'ſ", []string{"'s", "'t", "'ſ"}},
		{`(?i)a(?-i)b`, "Ab AB", []string{"Ab"}},
		{`[^(\s|[.,])]+`, "ab.c|d e(f)", []string{"ab", "c", "d", "e", "f"}}, // a class in a class
		{`[a-z&&[^aeiou]]+`, "hello", []string{"h", "ll"}},
		{`[\p{L}\d-]+`, "a-1_é", []string{"a-1", "é"}},
		{`\p{^L}`, "a1", []string{"1"}},
		{`\P{L}`, "a1", []string{"1"}},
		{`[[:punct:]]`, "a.$", []string{".", "$"}},
		{`\p{Punct}`, "a.$", []string{"."}},
		{`\x{1F600}|\u00e9|\x41`, "\U0001f600éA", []string{"\U0001f600", "é", "A"}},
		{`^b`, "a\nb", []string{"b"}}, // a line's start, in Ruby's syntax
		{`a$`, "a\nb", []string{"a"}},
		{`\Aa|z\z`, "aaz", []string{"a", "z"}},
		{`\bfoo\b`, "foo food", []string{"foo"}},
		{`.`, "a\n", []string{"a"}},
		{`(?m:.)`, "a\n", []string{"a", "\n"}},
		{`x*`, "axb", []string{"", "x", ""}}, // nothing directly after a match does not count
		{`(a|b)*c`, "ababc", []string{"ababc"}},
		{`(?:a*)*b`, "aab", []string{"aab"}},
		{`(?:(?:\d{3})+)(?!\d)`, "1234567", []string{"234567"}},
		{`\p{Han}+`, "a漢字b", []string{"漢字"}},
		{`½|\w`, "½", []string{"½"}},
		{`[\w]`, "½", nil}, // a word character outside brackets only
		{`(?<name>a)\.`, "a.", []string{"a."}},
	} {
		re, err := newRegex(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		var got []string
		for _, m := range re.find(&scratch{}, nil, []byte(c.text)) {
			got = append(got, c.text[m.start:m.end])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s on %q: %q, want %q", c.pattern, c.text, got, c.want)
		}
	}
}

func TestRegexRefuses(t *testing.T) {
	for pattern, want := range map[string]string{
		`a(`:          "group without end",
		`a)`:          "closing parenthesis",
		`[a`:          "class without end",
		`*a`:          "repeats nothing",
		`(a)\1`:       `\1 is not supported`,
		`\p{Klingon}`: "unknown property",
		`a{1001}`:     "outside 0..1000",
		`(?<=a+)b`:    "look-behind of variable length",
		`(?x)a`:       "not supported",
		`[z-a]`:       "range from",
		`\`:           "backslash at the end",
		strings.Repeat("(", 200) + strings.Repeat(")", 200): "nested",
		`(((a{1000}){1000}){1000})b`:                        "too large",
	} {
		if _, err := newRegex(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: error %v, want %q", pattern, err, want)
		}
	}
}

// Patterns that a plain backtracker takes quadratic or exponential time for. At a quadratic 2^16 bytes
// this would not end.
func TestRegexIsLinear(t *testing.T) {
	const n = 1 << 16
	for pattern, text := range map[string]string{
		`\s+(?!\S)|x\s+y`:         strings.Repeat(" ", n) + "a",
		`a+b`:                     strings.Repeat("a", n),
		`(?:a|b)+c`:               strings.Repeat("ab", n/2),
		`(?:a+)+c`:                strings.Repeat("a", n),
		`(?:a*)*c`:                strings.Repeat("a", n),
		`[a-z]*[a-m]+\d`:          strings.Repeat("az", n/2),
		`(?:x?){20}x{20}y`:        strings.Repeat("x", 2000),
		`(?=(?:a|a|b)+c)a`:        strings.Repeat("ab", 50),
		`(?>(?:a?){30}a{30})b`:    strings.Repeat("a", 29),
		`.*?z`:                    strings.Repeat("a", 4000),
		`\d{1,3}(?=(?:\d{3})*\b)`: strings.Repeat("1", 3000),
	} {
		t.Run(pattern, func(t *testing.T) {
			re, err := newRegex(pattern)
			if err != nil {
				t.Fatal(err)
			}
			re.find(&scratch{}, nil, []byte(text))
		})
	}
}
