//go:build ignore

// Command gentables writes unicode.tab: what the Rust tokenizers think of every code point.
//
// It reads two records. The first is a dump of the BERT normalizer and pre-tokenizer over all code
// points, which lies outside the project (MISROUTE_SHARED names the folder, relative to the module's
// root). The second, testdata/unicode-recorded.tsv, was made by peers/unicode.js.
//
//	MISROUTE_SHARED=../shared go generate ./tokenize
package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func main() {
	out := flag.String("o", "unicode.tab", "file to write")
	recorded := flag.String("recorded", "testdata/unicode-recorded.tsv", "record of peers/unicode.js")
	flag.Parse()
	if err := run(*out, *recorded); err != nil {
		fmt.Fprintln(os.Stderr, "gentables:", err)
		os.Exit(1)
	}
}

func run(out, recorded string) error {
	dump, err := dumpPath()
	if err != nil {
		return err
	}
	table, err := generate(dump, recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(out, table, 0o644)
}

// dumpPath finds the dump of the BERT components.
func dumpPath() (string, error) {
	shared := os.Getenv("MISROUTE_SHARED")
	if shared == "" {
		return "", errors.New("MISROUTE_SHARED does not say where the recorded dump is")
	}
	if !filepath.IsAbs(shared) {
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			if dir == filepath.Dir(dir) {
				return "", errors.New("no go.mod above the working directory")
			}
			dir = filepath.Dir(dir)
		}
		shared = filepath.Join(dir, shared)
	}
	return filepath.Join(shared, "data", "tokenizer-oracle", "unicode-tables", "bert_normalizer_pretok_by_codepoint.tsv.gz"), nil
}

const codePoints = 0x110000

// records is everything that is known of the code points.
type records struct {
	words [codePoints]uint32 // general category and flags, as package tokenize reads them
	lower map[rune][]rune
	nfd   map[rune][]rune
	nfkd  map[rune][]rune // in generate: only where it differs from nfd
	nfc   map[rune][]rune
	bert  map[rune]string // BertNormalizer with everything on, where it changes the code point
}

// categories are the numbers of the general categories; 0 is Cn.
var categories = strings.Fields("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cs")

// flags are the bits above the five of the category, in order.
var flags = []string{
	"regex.word", "regex.alpha", "regex.upper", "regex.lower", "rust.word", "rust.numeric", "bert.punctuation", "bert.control", "bert.mark", "mark", "combining",
	"cluster.extends", "cluster.prepends", "cluster.pictograph", "cluster.consonant", "cluster.linker",
	"lower", "nfd", "nfkd", "nfc", "joins",
}

// scripts are the numbers of the scripts, in the bits above the flags; 0 is any other.
var scripts = strings.Fields("- Han Hiragana Katakana Hangul Thai Latin Cyrillic Greek Arabic Hebrew Devanagari Lao Myanmar Khmer Tibetan")

const flagShift = 5

var scriptShift = flagShift + len(flags)

func flagBit(name string) uint32 {
	i := slices.Index(flags, name)
	if i < 0 {
		panic("no flag " + name)
	}
	return 1 << (flagShift + i)
}

func generate(dump, recorded string) ([]byte, error) {
	r := &records{lower: map[rune][]rune{}, nfd: map[rune][]rune{}, nfkd: map[rune][]rune{}, nfc: map[rune][]rune{}, bert: map[rune]string{}}
	if err := r.readRecorded(recorded); err != nil {
		return nil, fmt.Errorf("%s: %w", recorded, err)
	}
	if err := r.readDump(dump); err != nil {
		return nil, fmt.Errorf("%s: %w", dump, err)
	}
	for i := range r.words {
		r.words[i] ^= flagBit("rust.word")
	}
	for c, to := range r.nfkd {
		if slices.Equal(to, r.nfd[c]) {
			delete(r.nfkd, c)
		}
	}
	for name, m := range map[string]map[rune][]rune{"lower": r.lower, "nfd": r.nfd, "nfkd": r.nfkd, "nfc": r.nfc} {
		for c := range m {
			r.words[c] |= flagBit(name)
		}
	}
	for c := 0xAC00; c <= 0xD7A3; c++ { // syllables of Hangul decompose by rule
		r.words[c] |= flagBit("nfd")
	}
	for _, to := range r.nfd { // what may be composed with the character before it
		if n := len(to); n > 1 {
			r.words[to[n-1]] |= flagBit("joins")
		}
	}
	for c := 0x1161; c <= 0x11C2; c++ { // vowels and final consonants of Hangul
		r.words[c] |= flagBit("joins")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	raw, err := r.encode()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// readRecorded reads the lines of peers/unicode.js.
func (r *records) readRecorded(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for line := 1; sc.Scan(); line++ {
		p := strings.Split(sc.Text(), "\t")
		if len(p) != 3 {
			return fmt.Errorf("line %d: %d fields", line, len(p))
		}
		if err := r.record(p[0], p[1], p[2]); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return sc.Err()
}

func (r *records) record(property, first, second string) error {
	from, err := strconv.ParseUint(first, 16, 32)
	if err != nil || from >= codePoints {
		return fmt.Errorf("code point %q", first)
	}
	maps := map[string]map[rune][]rune{"lower": r.lower, "nfd": r.nfd, "nfkd": r.nfkd, "nfc": r.nfc}
	if m := maps[property]; m != nil {
		var to []rune
		for _, s := range strings.Fields(second) {
			n, err := strconv.ParseUint(s, 16, 32)
			if err != nil {
				return err
			}
			to = append(to, rune(n))
		}
		m[rune(from)] = to
		return nil
	}
	last, err := strconv.ParseUint(second, 16, 32)
	if err != nil || last >= codePoints {
		return fmt.Errorf("code point %q", second)
	}
	var bits uint32
	switch {
	case slices.Contains(categories, property):
		bits = uint32(slices.Index(categories, property))
	case strings.HasPrefix(property, "script."):
		i := slices.Index(scripts, strings.TrimPrefix(property, "script."))
		if i < 0 {
			return fmt.Errorf("unknown %s", property)
		}
		bits = uint32(i) << scriptShift
	case property == "rust.word.not" || property == "rust.space": // the complement of the word characters
		bits = flagBit("rust.word")
	case property == "bert.punctuation":
		return nil // it is in the dump
	case slices.Contains(flags, property):
		bits = flagBit(property)
	default:
		return fmt.Errorf("unknown property %q", property)
	}
	for c := from; c <= last; c++ {
		r.words[c] |= bits
	}
	return nil
}

// readDump reads the recorded BERT normalizer and pre-tokenizer: code point, result, class.
func (r *records) readDump(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	sc := bufio.NewScanner(z)
	for line := 1; sc.Scan(); line++ {
		p := strings.Split(sc.Text(), "\t")
		if len(p) != 3 {
			return fmt.Errorf("line %d: %d fields", line, len(p))
		}
		c, err := strconv.ParseUint(p[0], 16, 32)
		if err != nil || c >= codePoints {
			return fmt.Errorf("line %d: code point %q", line, p[0])
		}
		to, err := hex.DecodeString(p[1])
		if err != nil || !utf8.Valid(to) {
			return fmt.Errorf("line %d: result %q", line, p[1])
		}
		if string(to) != string(rune(c)) {
			r.bert[rune(c)] = string(to)
		}
		if p[2] == "3" {
			r.words[c] |= flagBit("bert.punctuation")
		}
	}
	return sc.Err()
}

// check holds the two records against each other: what goes under the BERT normalizer is a control
// character or a mark.
func (r *records) check() error {
	for c, to := range r.bert {
		gone := r.words[c]&(flagBit("bert.control")|flagBit("bert.mark")) != 0
		if gone != (to == "") {
			return fmt.Errorf("U+%04X: the dump has %q, the record says removed is %v", c, to, gone)
		}
	}
	return nil
}

// encode lays the records out: the distinct words and the runs of code points that share one, then the
// maps. Numbers are varints.
func (r *records) encode() ([]byte, error) {
	var b []byte
	var distinct []uint32
	index := map[uint32]int{}
	for _, w := range r.words {
		if _, ok := index[w]; !ok {
			index[w] = len(distinct)
			distinct = append(distinct, w)
		}
	}
	if len(distinct) > 1<<16 {
		return nil, fmt.Errorf("%d distinct words", len(distinct))
	}
	b = binary.AppendUvarint(b, uint64(len(distinct)))
	for _, w := range distinct {
		b = binary.AppendUvarint(b, uint64(w))
	}
	for i := 0; i < codePoints; {
		j := i
		for j < codePoints && r.words[j] == r.words[i] {
			j++
		}
		b = binary.AppendUvarint(b, uint64(j-i))
		b = binary.AppendUvarint(b, uint64(index[r.words[i]]))
		i = j
	}
	b = appendMap(b, r.lower)
	b = appendMap(b, r.nfd)
	b = appendMap(b, r.nfkd)
	return r.appendClasses(b)
}

// appendMap writes code points as distances and their results relative to them.
func appendMap(b []byte, m map[rune][]rune) []byte {
	keys := make([]rune, 0, len(m))
	for c := range m {
		keys = append(keys, c)
	}
	slices.Sort(keys)
	b = binary.AppendUvarint(b, uint64(len(keys)))
	last := rune(0)
	for _, c := range keys {
		b = binary.AppendUvarint(b, uint64(c-last))
		b = binary.AppendUvarint(b, uint64(len(m[c])))
		for _, r := range m[c] {
			b = binary.AppendVarint(b, int64(r-c))
		}
		last = c
	}
	return b
}

// appendClasses writes the canonical combining classes, as runs. Which characters have one is recorded;
// the value is the standard's, which never changes it.
func (r *records) appendClasses(b []byte) ([]byte, error) {
	type run struct {
		from, n rune
		class   uint8
	}
	var runs []run
	for c := rune(0); c < codePoints; c++ {
		if r.words[c]&flagBit("combining") == 0 {
			continue
		}
		class := norm.NFD.PropertiesString(string(c)).CCC()
		if to := r.nfd[c]; len(to) > 0 { // classes belong to decomposed characters
			continue
		}
		if class == 0 {
			return nil, fmt.Errorf("U+%04X combines in the record and has class 0", c)
		}
		if n := len(runs); n > 0 && runs[n-1].class == class && runs[n-1].from+runs[n-1].n == c {
			runs[n-1].n++
		} else {
			runs = append(runs, run{c, 1, class})
		}
	}
	runs = append(runs, run{0x345, 1, 240}) // what the others are measured by
	slices.SortFunc(runs, func(a, b run) int { return int(a.from - b.from) })
	b = binary.AppendUvarint(b, uint64(len(runs)))
	last := rune(0)
	for _, x := range runs {
		b = binary.AppendUvarint(b, uint64(x.from-last))
		b = binary.AppendUvarint(b, uint64(x.n))
		b = append(b, x.class)
		last = x.from
	}
	return b, nil
}
