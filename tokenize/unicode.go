package tokenize

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"io"
	"sync"
	"unicode"
)

// The reference implementation is built from crates that carry different versions of Unicode, none of
// them Go's. Its opinion of every code point was recorded and is packed into unicode.tab.

//go:generate go run gentables.go -o unicode.tab

//go:embed unicode.tab
var packedTable []byte

// Flags of a code point above its general category; gentables.go writes them in this order.
const (
	regexWord       = 1 << (5 + iota) // \w of Oniguruma
	regexAlpha                        // \p{Alpha} of Oniguruma
	regexUpper                        // \p{Upper} of Oniguruma
	regexLower                        // \p{Lower} of Oniguruma
	rustWord                          // \w of the crate regex
	rustNumeric                       // char::is_numeric
	bertPunctuation                   // what BERT sets apart
	bertControl                       // what BERT cleans away
	bertMark                          // what BERT strips as an accent
	anyMark                           // what StripAccents takes
	combining                         // has a combining class (and 0x345)
	clusterExtends                    // joins the grapheme cluster before it
	clusterPrepends                   // joins the one after it
	clusterPictograph
	clusterConsonant
	clusterLinker
	hasLower
	hasNFD
	hasNFKD
	hasNFC      // does not survive NFC: excluded from composition
	joinsBefore // may be composed with the character before it

	categoryMask = 1<<5 - 1
	scriptShift  = 5 + 21
)

// General categories in the order of gentables.go.
const (
	catCn = iota
	catLu
	catLl
	catLt
	catLm
	catLo
	catMn
	catMc
	catMe
	catNd
	catNl
	catNo
	catPc
	catPd
	catPs
	catPe
	catPi
	catPf
	catPo
	catSm
	catSc
	catSk
	catSo
	catZs
	catZl
	catZp
	catCc
	catCf
	catCo
	catCs
)

// unicodeTable is unicode.tab unpacked.
type unicodeTable struct {
	words []uint32
	pages [unicode.MaxRune>>8 + 1]*[256]uint16 // index into words

	lower       map[rune][]rune
	canonical   map[rune][]rune // full decompositions
	compatible  map[rune][]rune // where they differ from the canonical
	class       map[rune]uint8
	composition map[[2]rune]rune
}

// uni is set by loadUnicode, which everything that makes a Tokenizer or a Learner calls first.
var (
	uni     *unicodeTable
	uniOnce sync.Once
)

func loadUnicode() {
	uniOnce.Do(func() {
		raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packedTable)))
		if err != nil {
			panic("tokenize: unicode.tab is damaged: " + err.Error()) // part of the binary; held by a test
		}
		uni = readUnicode(&tableReader{raw})
	})
}

type tableReader struct{ b []byte }

func (r *tableReader) uint() int {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return int(v)
}

func (r *tableReader) int() int {
	v, n := binary.Varint(r.b)
	r.b = r.b[n:]
	return int(v)
}

func (r *tableReader) byte() uint8 {
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *tableReader) runes() map[rune][]rune {
	m := map[rune][]rune{}
	c := 0
	for n := r.uint(); n > 0; n-- {
		c += r.uint()
		to := make([]rune, r.uint())
		for i := range to {
			to[i] = rune(c + r.int())
		}
		m[rune(c)] = to
	}
	return m
}

func readUnicode(r *tableReader) *unicodeTable {
	t := &unicodeTable{words: make([]uint32, r.uint()), class: map[rune]uint8{}, composition: map[[2]rune]rune{}}
	for i := range t.words {
		t.words[i] = uint32(r.uint())
	}
	uniform := map[uint16]*[256]uint16{} // pages of one word are shared
	for c := 0; c <= unicode.MaxRune; {
		n, w := r.uint(), uint16(r.uint())
		for ; n > 0; c++ {
			if c&255 == 0 && n >= 256 {
				if uniform[w] == nil {
					uniform[w] = new([256]uint16)
					for i := range uniform[w] {
						uniform[w][i] = w
					}
				}
				t.pages[c>>8] = uniform[w]
				c += 255
				n -= 256
				continue
			}
			if t.pages[c>>8] == nil {
				t.pages[c>>8] = new([256]uint16)
			}
			t.pages[c>>8][c&255] = w
			n--
		}
	}
	t.lower, t.canonical, t.compatible = r.runes(), r.runes(), r.runes()
	c := 0
	for n := r.uint(); n > 0; n-- {
		c += r.uint()
		k := r.uint()
		class := r.byte()
		for i := range k {
			t.class[rune(c+i)] = class
		}
	}
	t.composePairs()
	return t
}

// composePairs derives the compositions from the decompositions: a character that survives NFC is
// composed of the composition of all but the last character of its decomposition, and the last.
func (t *unicodeTable) composePairs() {
	whole := map[string]rune{}
	for c, to := range t.canonical {
		if t.word(c)&hasNFC == 0 {
			whole[string(to)] = c
		}
	}
	for c, to := range t.canonical {
		if t.word(c)&hasNFC != 0 || len(to) < 2 {
			continue
		}
		first := to[0]
		if len(to) > 2 {
			first = whole[string(to[:len(to)-1])]
		}
		t.composition[[2]rune{first, to[len(to)-1]}] = c
	}
}

func (t *unicodeTable) word(r rune) uint32 {
	if uint32(r) > unicode.MaxRune {
		return 0
	}
	return t.words[t.pages[r>>8][r&255]]
}

func category(r rune) uint32 { return uni.word(r) & categoryMask }

// isSpace is White_Space, on which Go and Rust agree; the list has not changed since Unicode 6.3.
func isSpace(r rune) bool { return unicode.IsSpace(r) }

func isWord(r rune) bool { return uni.word(r)&rustWord != 0 }

func isBertPunctuation(r rune) bool { return uni.word(r)&bertPunctuation != 0 }

// isChinese says whether BERT sets r apart: the CJK ideograph blocks.
func isChinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
