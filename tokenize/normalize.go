package tokenize

import (
	"bytes"
	"unicode/utf8"
)

// normalizer rewrites the scratch's text. One that finds nothing to change leaves the text as it is,
// so that plain mail is looked over but not copied.
type normalizer interface {
	normalize(s *scratch)
}

// firstNonASCII returns the index of the first byte of b from i on that is not ASCII, or len(b).
func firstNonASCII(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := b[i : i+8 : i+8]
		if (w[0]|w[1]|w[2]|w[3]|w[4]|w[5]|w[6]|w[7])&0x80 != 0 {
			break
		}
	}
	for i < len(b) && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// bertNormalizer is the normalizer of BERT: it cleans control characters, sets CJK characters apart,
// strips accents and lowercases, each if asked to.
type bertNormalizer struct {
	clean, chinese, strip, lower bool

	ascii [utf8.RuneSelf]int8 // what an ASCII byte becomes; -1 when it goes
	steps []normalizer        // the same as it is defined, one step over the whole text after the other
}

func newBertNormalizer(clean, chinese, strip, lower bool) *bertNormalizer {
	n := &bertNormalizer{clean: clean, chinese: chinese, strip: strip, lower: lower}
	for i := range n.ascii {
		c := byte(i)
		switch {
		case clean && (c == '\t' || c == '\n' || c == '\r'):
			c = ' '
		case clean && (c < ' ' || c == 0x7F):
			n.ascii[i] = -1
			continue
		case lower && c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		n.ascii[i] = int8(c)
	}
	if strip {
		n.steps = []normalizer{newBertNormalizer(clean, chinese, false, false), decompose{},
			filter{func(r rune) bool { return uni.word(r)&bertMark == 0 }}}
		if lower {
			n.steps = append(n.steps, lowercase{})
		}
	}
	return n
}

func (n *bertNormalizer) normalize(s *scratch) {
	b := s.text.b
	i := 0
	for i < len(b) && b[i] < utf8.RuneSelf && n.ascii[b[i]] == int8(b[i]) {
		i++
	}
	if i == len(b) {
		return
	}
	if n.strip && n.marksStay(b[i:]) {
		for _, step := range n.steps {
			step.normalize(s)
		}
		return
	}
	w := s.rewrite()
	w.keep(i)
	var buf [32]rune
	for w.off < len(b) {
		if c := b[w.off]; c < utf8.RuneSelf {
			n.asciiRun(w)
			continue
		}
		r, size := utf8.DecodeRune(b[w.off:])
		to := n.expand(buf[:0], r)
		if len(to) == 0 {
			w.drop(w.off + size)
			continue
		}
		w.replace(to[0])
		for _, r := range to[1:] {
			w.insert(r)
		}
	}
	s.done()
}

// asciiRun rewrites ASCII bytes up to the next other one.
func (n *bertNormalizer) asciiRun(w *rewriter) {
	b := w.src.b
	if w.dst.direct && len(w.dst.b) == w.off { // nothing moved yet: bytes are all there is
		out := w.dst.b
		for w.off < len(b) && b[w.off] < utf8.RuneSelf {
			to := n.ascii[b[w.off]]
			if to < 0 {
				break
			}
			out = append(out, byte(to))
			w.off++
		}
		w.dst.b = out
	}
	for w.off < len(b) && b[w.off] < utf8.RuneSelf {
		if to := n.ascii[b[w.off]]; to < 0 {
			w.drop(w.off + 1)
		} else {
			w.replaceByte(byte(to))
		}
	}
}

// expand appends what r becomes.
func (n *bertNormalizer) expand(dst []rune, r rune) []rune {
	word := uni.word(r)
	if n.clean {
		if word&bertControl != 0 {
			return dst
		}
		if isSpace(r) {
			r, word = ' ', 0
		}
	}
	padded := n.chinese && isChinese(r)
	if padded {
		dst = append(dst, ' ')
	}
	from := len(dst)
	switch {
	case !n.strip:
		dst = append(dst, r)
	case word&hasNFD == 0:
		if word&bertMark == 0 {
			dst = append(dst, r)
		}
	default:
		dst = uni.appendCanonical(dst, r)
		kept := dst[:from]
		for _, d := range dst[from:] {
			if uni.word(d)&bertMark == 0 {
				kept = append(kept, d)
			}
		}
		dst = kept
	}
	if n.lower {
		for i := from; i < len(dst); i++ {
			if uni.word(dst[i])&hasLower != 0 {
				to := uni.lower[dst[i]]
				dst[i] = to[0]
				dst = append(dst, to[1:]...) // U+0130 alone has two, and nothing follows it here
			}
		}
	}
	if padded {
		dst = append(dst, ' ')
	}
	return dst
}

// marksStay says whether b holds a combining mark that stripping does not take (its crate knows an
// older Unicode than the decomposition's): then the order of marks shows, and each step has to be
// done over the whole text.
func (n *bertNormalizer) marksStay(b []byte) bool {
	for i := firstNonASCII(b, 0); i < len(b); i = firstNonASCII(b, i) {
		r, size := utf8.DecodeRune(b[i:])
		if uni.word(r)&(combining|bertMark) == combining {
			return true
		}
		i += size
	}
	return false
}

// lowercase lowers every character by the standard's full mapping without context.
type lowercase struct{}

func (lowercase) normalize(s *scratch) {
	b := s.text.b
	i := 0
	for i < len(b) && !(b[i] >= 'A' && b[i] <= 'Z') && b[i] < utf8.RuneSelf {
		i++
	}
	if i == len(b) {
		return
	}
	w := s.rewrite()
	w.keep(i)
	for w.off < len(b) {
		if c := b[w.off]; c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				w.replaceByte(c | 0x20)
				continue
			}
			end := w.off + 1
			for end < len(b) && b[end] < utf8.RuneSelf && !(b[end] >= 'A' && b[end] <= 'Z') {
				end++
			}
			w.keep(end)
			continue
		}
		r, size := utf8.DecodeRune(b[w.off:])
		if uni.word(r)&hasLower == 0 {
			w.keep(w.off + size)
			continue
		}
		to := uni.lower[r]
		w.replace(to[0])
		for _, r := range to[1:] {
			w.insert(r)
		}
	}
	s.done()
}

// filter drops characters outside ASCII.
type filter struct{ keep func(rune) bool }

func (f filter) normalize(s *scratch) {
	b := s.text.b
	var w *rewriter
	for i := firstNonASCII(b, 0); i < len(b); i = firstNonASCII(b, i) {
		r, size := utf8.DecodeRune(b[i:])
		if !f.keep(r) {
			if w == nil {
				w = s.rewrite()
			}
			w.keep(i)
			w.drop(i + size)
		}
		i += size
	}
	if w != nil {
		w.keep(len(b))
		s.done()
	}
}

// stripAccents drops combining marks; it does not decompose.
func stripAccents() normalizer {
	return filter{func(r rune) bool { return uni.word(r)&anyMark == 0 }}
}

// strip drops white space at the ends.
type strip struct{ left, right bool }

func (n strip) normalize(s *scratch) {
	b := s.text.b
	lead, trail := 0, 0
	if n.left {
		lead = leadingSpace(b)
	}
	if n.right {
		trail = trailingSpace(b[lead:])
	}
	if lead == 0 && trail == 0 {
		return
	}
	w := s.rewrite()
	w.drop(lead)
	w.keep(len(b) - trail)
	s.done()
}

// prepend puts a string before a text that is not empty.
type prepend struct{ content []rune }

func (n prepend) normalize(s *scratch) {
	if len(s.text.b) == 0 || len(n.content) == 0 {
		return
	}
	w := s.rewrite()
	w.prefix(n.content, len(s.text.b))
	w.keep(len(s.text.b))
	s.done()
}

// replace puts a string in the place of every match of a pattern.
type replace struct {
	pattern finder
	content []rune
}

func (n replace) normalize(s *scratch) {
	b := s.text.b
	s.matches = n.pattern.find(s, s.matches[:0], b)
	if len(s.matches) == 0 {
		return
	}
	w := s.rewrite()
	for _, m := range s.matches {
		w.keep(int(m.start))
		w.drop(int(m.end))
		for _, r := range n.content {
			w.insert(r) // stands for the last character replaced
		}
	}
	w.keep(len(b))
	s.done()
}

// nmt is the character cleaning of the NMT normalizer of SentencePiece.
type nmt struct{}

func nmtClass(r rune) (drop, space bool) {
	switch {
	case r >= 0x01 && r <= 0x08, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return true, false
	case r == 0x09, r == 0x0A, r == 0x0C, r == 0x0D, r == 0x1680, r >= 0x200B && r <= 0x200F,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return false, true
	}
	return false, false
}

func (nmt) normalize(s *scratch) {
	b := s.text.b
	w := s.rewrite()
	changed := false
	for i := 0; i < len(b); {
		r, size := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[i:])
		}
		drop, space := nmtClass(r)
		if drop || space {
			changed = true
			w.keep(i)
			if drop {
				w.drop(i + size)
			} else {
				w.replace(' ')
			}
		}
		i += size
	}
	if changed {
		w.keep(len(b))
		s.done()
	}
}

// byteLevelNormalizer writes every byte as the character that stands for it in byte-level vocabularies.
type byteLevelNormalizer struct{}

func (byteLevelNormalizer) normalize(s *scratch) {
	b := s.text.b
	if len(b) == 0 {
		return
	}
	w := s.rewrite()
	w.byteLevel(len(b))
	s.done()
}

// literal finds a fixed string.
type literal []byte

func (p literal) find(_ *scratch, dst []span, b []byte) []span {
	if len(p) == 0 {
		return dst
	}
	for i := 0; ; {
		j := bytes.Index(b[i:], p)
		if j < 0 {
			return dst
		}
		i += j
		dst = append(dst, span{int32(i), int32(i + len(p))})
		i += len(p)
	}
}
