package tokenize

import "unicode/utf8"

// span is a range of bytes of the message, [start, end).
type span struct{ start, end int32 }

// text is a stretch of a message on its way through normalizers and pre-tokenizers: its bytes now
// (always valid UTF-8) and, for each of them, the characters of the message it stands for.
//
// Most mail needs no table for that: while every character so far kept its length, byte i stands for
// the character at base+i. Such a text is direct, and al is empty. The first change of length fills
// al (one span a byte, len(al) == len(b)).
type text struct {
	b      []byte
	al     []span
	direct bool
	base   int32 // where b[0] stands in the message, when direct
}

// spanAt returns the span of the character that byte i is part of.
func (t *text) spanAt(i int) span {
	if !t.direct {
		return t.al[i]
	}
	start := i
	for start > 0 && !utf8.RuneStart(t.b[start]) {
		start--
	}
	end := i + 1
	for end < len(t.b) && !utf8.RuneStart(t.b[end]) {
		end++
	}
	return span{t.base + int32(start), t.base + int32(end)}
}

// spanOf returns the message range of bytes [i, j), i < j: from the start of the first byte's
// character to the end of the last byte's.
func (t *text) spanOf(i, j int) span {
	if !t.direct {
		return span{t.al[i].start, t.al[j-1].end}
	}
	for i > 0 && !utf8.RuneStart(t.b[i]) {
		i--
	}
	for j < len(t.b) && !utf8.RuneStart(t.b[j]) {
		j++
	}
	return span{t.base + int32(i), t.base + int32(j)}
}

// materialize gives a direct text its table.
func (t *text) materialize() {
	t.al = t.al[:0]
	for i := 0; i < len(t.b); {
		_, n := utf8.DecodeRune(t.b[i:])
		t.al = appendSpan(t.al, span{t.base + int32(i), t.base + int32(i+n)}, n)
		i += n
	}
	t.direct = false
}

func appendSpan(al []span, s span, n int) []span {
	for ; n > 0; n-- {
		al = append(al, s)
	}
	return al
}

// rewriter makes the next version of a text from the current one, character by character, and says
// for each new character which old one it stands for. off is the next old byte. The four verbs are
// those of the reference implementation's transform (its NormalizedString), whose offsets this
// package reproduces:
//
//	keep      old characters as they are
//	replace   one new character for one old
//	insert    one more new character; it stands for the old character before off
//	drop      old characters with no successor
type rewriter struct {
	src, dst *text
	off      int
	origin   span // what an insertion before the first character stands for
}

// rewrite starts a rewriter from the scratch's text into its spare one.
func (s *scratch) rewrite() *rewriter {
	w := &s.rewriter // in the scratch, so that it costs no allocation
	*w = rewriter{src: &s.text, dst: &s.spare, origin: span{s.origin, s.origin}}
	w.dst.b, w.dst.al = w.dst.b[:0], w.dst.al[:0]
	w.dst.direct, w.dst.base = w.src.direct, w.src.base
	return w
}

// done makes what was written the scratch's text.
func (s *scratch) done() {
	if s.borrowed { // the old bytes are the caller's: they must not become the spare buffer
		s.borrowed = false
		s.text.b = s.parked
	}
	s.text, s.spare = s.spare, s.text
}

// load makes valid bytes of the message, which start at base, the scratch's text without copying.
func (s *scratch) load(b []byte, base int) {
	if !s.borrowed {
		s.parked = s.text.b
	}
	s.borrowed = true
	s.text.b, s.text.al = b, s.text.al[:0]
	s.text.direct, s.text.base = true, int32(base)
	s.origin = int32(base)
}

// keep copies old bytes up to, not including, byte `to`.
func (w *rewriter) keep(to int) {
	if w.dst.direct && len(w.dst.b) != w.off {
		w.dst.materialize()
	}
	w.dst.b = append(w.dst.b, w.src.b[w.off:to]...)
	if !w.dst.direct {
		if w.src.direct {
			for i := w.off; i < to; {
				n := 1
				if w.src.b[i] >= utf8.RuneSelf {
					_, n = utf8.DecodeRune(w.src.b[i:])
				}
				w.dst.al = appendSpan(w.dst.al, span{w.src.base + int32(i), w.src.base + int32(i+n)}, n)
				i += n
			}
		} else {
			w.dst.al = append(w.dst.al, w.src.al[w.off:to]...)
		}
	}
	w.off = to
}

// replace writes r for the old character at off.
func (w *rewriter) replace(r rune) {
	n := 1
	if w.src.b[w.off] >= utf8.RuneSelf {
		_, n = utf8.DecodeRune(w.src.b[w.off:])
	}
	if w.dst.direct {
		if m := utf8.RuneLen(r); m != n || len(w.dst.b) != w.off {
			w.dst.materialize()
		}
	}
	w.put(r, w.off)
	w.off += n
}

// insert writes r as a new character.
func (w *rewriter) insert(r rune) {
	if w.dst.direct {
		w.dst.materialize()
	}
	w.put(r, w.off-1)
}

// drop leaves out the old bytes up to, not including, byte `to`.
func (w *rewriter) drop(to int) { w.off = to }

// dropRunes leaves out the next n old characters.
func (w *rewriter) dropRunes(n int) {
	for ; n > 0 && w.off < len(w.src.b); n-- {
		_, size := utf8.DecodeRune(w.src.b[w.off:])
		w.off += size
	}
}

// put writes r with the span of old byte at.
func (w *rewriter) put(r rune, at int) {
	before := len(w.dst.b)
	if r < utf8.RuneSelf {
		w.dst.b = append(w.dst.b, byte(r))
	} else {
		w.dst.b = utf8.AppendRune(w.dst.b, r)
	}
	if w.dst.direct {
		return
	}
	sp := w.origin
	if at >= 0 && at < len(w.src.b) {
		sp = w.src.spanAt(at)
	}
	w.dst.al = appendSpan(w.dst.al, sp, len(w.dst.b)-before)
}

// replaceByte is replace for an ASCII character in the place of another.
func (w *rewriter) replaceByte(c byte) {
	if w.dst.direct {
		if len(w.dst.b) != w.off {
			w.dst.materialize()
		} else {
			w.dst.b = append(w.dst.b, c)
			w.off++
			return
		}
	}
	w.dst.b = append(w.dst.b, c)
	if w.src.direct {
		at := w.src.base + int32(w.off)
		w.dst.al = append(w.dst.al, span{at, at + 1})
	} else {
		w.dst.al = append(w.dst.al, w.src.al[w.off])
	}
	w.off++
}

// emit writes r with the reference's count of changes: 0 replaces the character at off, more is a new
// character, less replaces the one at off and drops as many after it.
func (w *rewriter) emit(r rune, change int) {
	if change > 0 || w.off >= len(w.src.b) {
		w.insert(r)
		return
	}
	w.replace(r)
	w.dropRunes(-change)
}

// prefix writes content before the text from off to end. The first new character takes the place of
// the text's first one, which becomes an insertion: all stand for that first character.
func (w *rewriter) prefix(content []rune, end int) {
	if w.dst.direct {
		w.dst.materialize()
	}
	first := w.off
	_, size := utf8.DecodeRune(w.src.b[first:end])
	for _, r := range content {
		w.put(r, first)
	}
	w.keep(first + size)
}

// byteLevel writes the old bytes up to `to` as the characters of byte-level vocabularies.
func (w *rewriter) byteLevel(to int) {
	if w.dst.direct {
		w.dst.materialize()
	}
	for ; w.off < to; w.off++ {
		w.put(byteRunes[w.src.b[w.off]], w.off)
	}
}
