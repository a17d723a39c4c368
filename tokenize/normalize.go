package tokenize

import "unicode/utf8"

// normalizer rewrites the scratch's text. One that finds nothing to change leaves the text as it is,
// so that plain mail is looked over but not copied.
type normalizer interface {
	normalize(s *scratch)
}

// bertNormalizer is the normalizer of BERT: it cleans control characters, sets CJK characters apart,
// strips accents and lowercases, each if asked to.
type bertNormalizer struct {
	clean, chinese, strip, lower bool
}

func (n bertNormalizer) normalize(s *scratch) {
	b := s.text.b
	i := 0
	for i < len(b) && b[i] < utf8.RuneSelf && n.ascii(b[i]) == int16(b[i]) {
		i++
	}
	if i == len(b) {
		return
	}
	w := s.rewrite()
	w.keep(i)
	var buf [32]rune
	for w.off < len(b) {
		if c := b[w.off]; c < utf8.RuneSelf {
			if to := n.ascii(c); to < 0 {
				w.drop(w.off + 1)
			} else if w.dst.direct && len(w.dst.b) == w.off {
				w.dst.b = append(w.dst.b, byte(to))
				w.off++
			} else {
				w.replace(rune(to))
			}
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

// ascii is what an ASCII byte becomes; -1 when it goes.
func (n bertNormalizer) ascii(c byte) int16 {
	if n.clean {
		switch {
		case c == '\t' || c == '\n' || c == '\r':
			return ' '
		case c < ' ' || c == 0x7F:
			return -1
		}
	}
	if n.lower && c >= 'A' && c <= 'Z' {
		return int16(c | 0x20)
	}
	return int16(c)
}

// expand appends what r becomes.
func (n bertNormalizer) expand(dst []rune, r rune) []rune {
	if n.clean {
		if r == utf8.RuneError || isControl(r) {
			return dst
		}
		if isSpace(r) {
			r = ' '
		}
	}
	padded := n.chinese && isChinese(r)
	if padded {
		dst = append(dst, ' ')
	}
	from := len(dst)
	if n.strip {
		dst = appendNFD(dst, r)
		kept := dst[:from]
		for _, d := range dst[from:] {
			if !isNonspacingMark(d) {
				kept = append(kept, d)
			}
		}
		dst = kept
	} else {
		dst = append(dst, r)
	}
	if n.lower {
		for i := from; i < len(dst); i++ {
			dst[i] = toLower(dst[i])
		}
	}
	if padded {
		dst = append(dst, ' ')
	}
	return dst
}
