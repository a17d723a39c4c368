package tokenize

import (
	"unicode/utf8"
)

// preTokenizer splits the text pieces of the scratch further. It may rewrite the text.
type preTokenizer interface {
	split(s *scratch)
}

// bertPreTokenizer drops white space and sets punctuation apart.
type bertPreTokenizer struct {
	ascii [utf8.RuneSelf]uint8 // classes
}

func newBertPreTokenizer() *bertPreTokenizer {
	p := &bertPreTokenizer{}
	for r := range p.ascii {
		p.ascii[r] = bertClass(rune(r))
	}
	return p
}

const (
	classWord = iota + 1
	classSpace
	classPunct
)

func bertClass(r rune) uint8 {
	switch {
	case isSpace(r):
		return classSpace
	case isBertPunctuation(r):
		return classPunct
	}
	return classWord
}

func (p *bertPreTokenizer) split(s *scratch) {
	out := s.next[:0]
	for _, x := range s.pieces {
		if x.id >= 0 {
			out = append(out, x)
			continue
		}
		b := s.text.b[:x.end]
		start := x.start
		for i := int(x.start); i < len(b); {
			class, n := uint8(0), 1
			if c := b[i]; c < utf8.RuneSelf {
				class = p.ascii[c]
			} else {
				var r rune
				r, n = utf8.DecodeRune(b[i:])
				class = bertClass(r)
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
		if start < x.end {
			out = append(out, piece{start, x.end, noID})
		}
	}
	s.pieces, s.next = out, s.pieces
}

// rewritePieces replaces the text by what fn writes for each piece of it; fn gets the end of the piece
// and the rewriter at its start, and appends the new pieces. What lies between pieces goes.
func (s *scratch) rewritePieces(fn func(w *rewriter, end int)) {
	w := s.rewrite()
	s.next = s.next[:0]
	for _, x := range s.pieces {
		w.drop(int(x.start))
		if x.id < 0 {
			fn(w, int(x.end))
			continue
		}
		start := int32(len(w.dst.b))
		w.keep(int(x.end))
		s.next = append(s.next, piece{start, int32(len(w.dst.b)), x.id})
	}
	s.pieces, s.next = s.next, s.pieces
	s.done()
}

// metaspace writes spaces as a visible character, puts one before a piece that has none, and splits
// before each.
type metaspace struct {
	replacement rune
	scheme      prependScheme
	splits      bool
}

type prependScheme uint8

const (
	prependAlways prependScheme = iota
	prependNever
	prependFirst // only at the very start of the message
)

func (p metaspace) split(s *scratch) {
	var mark [utf8.UTFMax]byte
	n := utf8.EncodeRune(mark[:], p.replacement)
	s.rewritePieces(func(w *rewriter, end int) {
		b := w.src.b
		if w.off == end {
			return
		}
		start := len(w.dst.b)
		r, size := utf8.DecodeRune(b[w.off:end])
		marked := r == ' ' || r == p.replacement
		if !marked && (p.scheme == prependAlways || p.scheme == prependFirst && w.src.spanAt(w.off).start == 0) {
			if w.dst.direct {
				w.dst.materialize()
			}
			w.put(p.replacement, w.off)
			w.keep(w.off + size)
		}
		last := start
		for w.off < end {
			next := w.off
			for next < end && b[next] != ' ' && b[next] != mark[0] {
				next++
			}
			w.keep(next)
			if next == end {
				break
			}
			isMark := b[next] != ' '
			if isMark && string(b[next:min(next+n, end)]) != string(mark[:n]) {
				_, size := utf8.DecodeRune(b[next:end])
				w.keep(next + size)
				continue
			}
			if p.splits && len(w.dst.b) > last {
				s.next = append(s.next, piece{int32(last), int32(len(w.dst.b)), noID})
				last = len(w.dst.b)
			}
			if isMark {
				w.keep(next + n)
			} else {
				w.replace(p.replacement)
			}
		}
		if len(w.dst.b) > last {
			s.next = append(s.next, piece{int32(last), int32(len(w.dst.b)), noID})
		}
	})
}

// byteLevel is the pre-tokenizer of GPT-2: it splits by a pattern and writes every byte as a character.
// When the byte-level model follows directly, raw is set: the model takes the bytes themselves.
type byteLevel struct {
	prefixSpace bool
	pattern     finder // nil: no split
	raw         bool
}

// gpt2Pattern is the split of GPT-2 (Radford et al. 2019, encoder.py).
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func (p *byteLevel) split(s *scratch) {
	if p.prefixSpace {
		p.prefix(s)
	}
	if p.pattern != nil {
		splitter{p.pattern, isolated, false}.split(s)
	}
	if p.raw {
		return
	}
	s.rewritePieces(func(w *rewriter, end int) {
		start := int32(len(w.dst.b))
		w.byteLevel(end)
		s.next = append(s.next, piece{start, int32(len(w.dst.b)), noID})
	})
}

var oneSpace = []rune{' '}

// prefix puts a space before every piece of text that does not start with one.
func (p *byteLevel) prefix(s *scratch) {
	missing := false
	for _, x := range s.pieces {
		missing = missing || x.id < 0 && x.start < x.end && s.text.b[x.start] != ' '
	}
	if !missing {
		return
	}
	s.rewritePieces(func(w *rewriter, end int) {
		if w.off == end {
			return
		}
		start := int32(len(w.dst.b))
		if w.src.b[w.off] != ' ' {
			w.prefix(oneSpace, end)
		}
		w.keep(end)
		s.next = append(s.next, piece{start, int32(len(w.dst.b)), noID})
	})
}

// byteRunes are the characters that stand for bytes in byte-level vocabularies: printable Latin-1 for
// itself, the others from U+0100 on in their order (GPT-2, bytes_to_unicode).
var byteRunes, runeBytes = func() (to [256]rune, from map[rune]byte) {
	from = make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= 0xA1 && r <= 0xAC || r >= 0xAE && r <= 0xFF) {
			r = next
			next++
		}
		to[b] = r
		from[r] = byte(b)
	}
	return to, from
}()
