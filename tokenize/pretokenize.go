package tokenize

import "unicode/utf8"

// preTokenizer splits the text pieces of the scratch further. It may rewrite the text.
type preTokenizer interface {
	split(s *scratch)
}

// bertPreTokenizer drops white space and sets punctuation apart.
type bertPreTokenizer struct{}

// bertClass is the class of each ASCII byte under bertPreTokenizer.
var bertClass = func() (t [utf8.RuneSelf]uint8) {
	for r := range t {
		t[r] = classWord
		if isSpace(rune(r)) {
			t[r] = classSpace
		} else if isBertPunctuation(rune(r)) {
			t[r] = classPunct
		}
	}
	return t
}()

const (
	classWord = iota + 1
	classSpace
	classPunct
)

func (bertPreTokenizer) split(s *scratch) {
	out := s.next[:0]
	for _, p := range s.pieces {
		if p.id >= 0 {
			out = append(out, p)
			continue
		}
		b := s.text.b[:p.end]
		start := p.start
		for i := int(p.start); i < len(b); {
			class, n := uint8(0), 1
			if c := b[i]; c < utf8.RuneSelf {
				class = bertClass[c]
			} else {
				var r rune
				r, n = utf8.DecodeRune(b[i:])
				switch {
				case isSpace(r):
					class = classSpace
				case isBertPunctuation(r):
					class = classPunct
				default:
					class = classWord
				}
			}
			if class == classWord {
				i += n
				continue
			}
			if int(start) < i {
				out = append(out, piece{start, int32(i), noID})
			}
			start = int32(i + n)
			if class == classPunct {
				out = append(out, piece{int32(i), start, noID})
			}
			i += n
		}
		if start < p.end {
			out = append(out, piece{start, p.end, noID})
		}
	}
	s.pieces, s.next = out, s.pieces
}
