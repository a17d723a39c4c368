package tokenize

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// TestTableIsCurrent generates the table anew and compares. It also holds its size: under 60 KB.
func TestTableIsCurrent(t *testing.T) {
	if len(packedTable) >= 60_000 {
		t.Errorf("unicode.tab has %d bytes", len(packedTable))
	}
	sharedPath(t, "data", "tokenizer-oracle", "unicode-tables")
	out := filepath.Join(t.TempDir(), "unicode.tab")
	if msg, err := exec.Command("go", "run", "gentables.go", "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	fresh, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fresh, packedTable) {
		t.Error("unicode.tab is not current: run go generate ./tokenize")
	}
}

// TestBertOfEveryCodePoint holds the BERT normalizer and pre-tokenizer against the recorded dump of all
// 1,112,064 code points.
func TestBertOfEveryCodePoint(t *testing.T) {
	f, err := os.Open(sharedPath(t, "data", "tokenizer-oracle", "unicode-tables", "bert_normalizer_pretok_by_codepoint.tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	loadUnicode()
	n := newBertNormalizer(true, true, true, true)
	s := &scratch{}
	count, bad := 0, 0
	for sc := bufio.NewScanner(z); sc.Scan(); count++ {
		p := strings.Split(sc.Text(), "\t")
		c, err := strconv.ParseUint(p[0], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(p[1])
		if err != nil {
			t.Fatal(err)
		}
		s.load([]byte(string(rune(c))), 0)
		n.normalize(s)
		if !bytes.Equal(s.text.b, want) || bertClass(rune(c)) != p[2][0]-'0' {
			if bad++; bad <= 10 {
				t.Errorf("U+%04X: %q class %d, want %q class %s", c, s.text.b, bertClass(rune(c)), want, p[2])
			}
		}
	}
	if count != 1_112_064 || bad > 0 {
		t.Errorf("%d of %d code points differ", bad, count)
	}
}

// form runs a normalizer over a text.
func form(n normalizer, text string) string {
	loadUnicode()
	s := &scratch{}
	s.load([]byte(text), 0)
	n.normalize(s)
	return string(s.text.b)
}

// The normalization forms agree with golang.org/x/text on difficult texts made of characters that both
// know (the table is that of the reference, Unicode 13).
func TestFormsAgreeWithTheStandard(t *testing.T) {
	known := func(text string) bool {
		for _, r := range text {
			if !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Han, unicode.Devanagari, unicode.Inherited, unicode.Common) || r > 0x2FA1F || r == 0x32FF {
				return false
			}
		}
		return true
	}
	checked := 0
	for _, text := range difficultTexts(6, 5000) {
		if !known(text) {
			continue
		}
		checked++
		for name, pair := range map[string]struct {
			ours normalizer
			std  norm.Form
		}{"NFC": {compose{}, norm.NFC}, "NFD": {decompose{}, norm.NFD}, "NFKC": {compose{compatible: true}, norm.NFKC}, "NFKD": {decompose{compatible: true}, norm.NFKD}} {
			if got, want := form(pair.ours, text), pair.std.String(text); got != want {
				t.Fatalf("%s of %+q: %+q, want %+q", name, text, got, want)
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d texts", checked)
	}
}

// Boundaries of grapheme clusters: examples of UAX 29, table 1, and its rules by number.
func TestClusterLength(t *testing.T) {
	loadUnicode()
	for _, c := range []struct{ text, first string }{
		{"g\u0308x", "g\u0308"},                                              // GB9
		{"\r\nx", "\r\n"},                                                    // GB3
		{"\nx", "\n"},                                                        // GB4
		{"\uac01x", "\uac01"},                                                // one syllable
		{"\u1112\u1161\u11abx", "\u1112\u1161\u11ab"},                        // GB6 to GB8
		{"\u0937\u093fx", "\u0937\u093f"},                                    // GB9a
		{"\u0915\u094d\u0937x", "\u0915\u094d\u0937"},                        // GB9c
		{"\u0600x\u0301y", "\u0600x\u0301"},                                  // GB9b
		{"\U0001f468\u200d\U0001f469x", "\U0001f468\u200d\U0001f469"},        // GB11
		{"\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\U0001f1e9\U0001f1ea"}, // GB12
		{"ab", "a"},
	} {
		if got := c.text[:clusterLength([]byte(c.text))]; got != c.first {
			t.Errorf("%+q: %+q, want %+q", c.text, got, c.first)
		}
	}
}
