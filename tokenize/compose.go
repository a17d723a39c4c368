package tokenize

import (
	"slices"
	"unicode/utf8"
)

// Canonical and compatibility normalization (UAX 15) with the alignment of the reference: its
// decomposer marks every character as replacing an old one (0) or as inserted (+1), sorts marks with
// these changes, and the composer adds up: a composition of characters with changes x and y has
// change x+y-1.

// decompose is NFD, or NFKD when compatible.
type decompose struct{ compatible bool }

// compose is NFC, or NFKC when compatible.
type compose struct{ compatible bool }

// unit is a character on its way through normalization.
type unit struct {
	r      rune
	change int32
	class  uint8
}

func (n decompose) normalize(s *scratch) { normalizeForm(s, n.compatible, false) }
func (n compose) normalize(s *scratch)   { normalizeForm(s, n.compatible, true) }

const (
	hangulBase  = 0xAC00
	hangulLBase = 0x1100
	hangulVBase = 0x1161
	hangulTBase = 0x11A7
	hangulL     = 19
	hangulV     = 21
	hangulT     = 28
	hangulCount = hangulL * hangulV * hangulT
)

func isHangul(r rune) bool { return r >= hangulBase && r < hangulBase+hangulCount }

// appendCanonical appends the canonical decomposition of r.
func (t *unicodeTable) appendCanonical(dst []rune, r rune) []rune {
	if isHangul(r) {
		i := r - hangulBase
		dst = append(dst, hangulLBase+i/(hangulV*hangulT), hangulVBase+i%(hangulV*hangulT)/hangulT)
		if i%hangulT != 0 {
			dst = append(dst, hangulTBase+i%hangulT)
		}
		return dst
	}
	if to, ok := t.canonical[r]; ok {
		return append(dst, to...)
	}
	return append(dst, r)
}

// activeFlags are the flags of characters that change under a form, or change what stands before them.
func activeFlags(compatible, composing bool) uint32 {
	flags := uint32(combining | joinsBefore | hasNFC)
	if !composing {
		flags |= hasNFD
	}
	if compatible {
		flags |= hasNFKD
	}
	return flags
}

// inert says whether r neither changes nor is changed by what stands before it.
func inert(r rune, flags uint32) bool { return uni.word(r)&flags == 0 }

// normalizeForm rewrites the text stretch by stretch: one character that may start a change and those
// after it that are not inert. Everything else is copied.
func normalizeForm(s *scratch, compatible, composing bool) {
	b := s.text.b
	i := firstNonASCII(b, 0)
	if i == len(b) {
		return
	}
	var w *rewriter
	flags := activeFlags(compatible, composing)
	for i < len(b) {
		r, size := utf8.DecodeRune(b[i:])
		if inert(r, flags) {
			i = firstNonASCII(b, i+size)
			continue
		}
		start := i
		if start > 0 { // the character before may be composed with
			_, back := utf8.DecodeLastRune(b[:start])
			start -= back
		}
		if w != nil && start < w.off {
			start = w.off
		}
		end := i
		for end < len(b) {
			r, size := utf8.DecodeRune(b[end:])
			if inert(r, flags) {
				break
			}
			end += size
		}
		if w == nil {
			w = s.rewrite()
		}
		w.keep(start)
		s.units = appendUnits(s.units[:0], b[start:end], compatible)
		sortMarks(s)
		if composing {
			s.units = composeUnits(s, s.units)
		}
		for _, u := range s.units {
			w.emit(u.r, int(u.change))
		}
		w.off = end
		i = firstNonASCII(b, end)
	}
	if w != nil {
		w.keep(len(b))
		s.done()
	}
}

// appendUnits appends the decomposition of b.
func appendUnits(units []unit, b []byte, compatible bool) []unit {
	var buf [32]rune
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		i += size
		to := buf[:0]
		if full, ok := uni.compatible[r]; ok && compatible {
			to = append(to, full...)
		} else {
			to = uni.appendCanonical(to, r)
		}
		for k, d := range to {
			u := unit{r: d, change: 1}
			if k == 0 {
				u.change = 0
			}
			if uni.word(d)&combining != 0 {
				u.class = uni.class[d]
			}
			units = append(units, u)
		}
	}
	return units
}

// sortMarks sorts each run of marks by class, stably (UAX 15, canonical ordering). A long run is
// sorted by counting, so that a million marks take linear time.
func sortMarks(s *scratch) {
	units := s.units
	for i := 0; i < len(units); i++ {
		if units[i].class == 0 {
			continue
		}
		j := i + 1
		for j < len(units) && units[j].class != 0 {
			j++
		}
		run := units[i:j]
		i = j
		if len(run) < 64 {
			slices.SortStableFunc(run, func(a, b unit) int { return int(a.class) - int(b.class) })
			continue
		}
		var place [257]int
		for _, u := range run {
			place[int(u.class)+1]++
		}
		for c := 1; c < len(place); c++ {
			place[c] += place[c-1]
		}
		s.sorted = append(s.sorted[:0], run...)
		for _, u := range s.sorted {
			run[place[u.class]] = u
			place[u.class]++
		}
	}
}

// pairOf returns the composition of a and b.
func (t *unicodeTable) pairOf(a, b rune) (rune, bool) {
	if l, v := a-hangulLBase, b-hangulVBase; l >= 0 && l < hangulL && v >= 0 && v < hangulV {
		return hangulBase + (l*hangulV+v)*hangulT, true
	}
	if tail := b - hangulTBase; isHangul(a) && (a-hangulBase)%hangulT == 0 && tail > 0 && tail < hangulT {
		return a + tail, true
	}
	c, ok := t.composition[[2]rune{a, b}]
	return c, ok
}

// composeUnits composes in place. starter is the index of the character in out that later ones may be
// composed with; last is the class of the last mark since that stayed, 0 for none.
func composeUnits(s *scratch, units []unit) []unit {
	out := units[:0]
	starter, last := -1, uint8(0)
	for _, u := range units {
		if starter >= 0 && (last == 0 || last < u.class) {
			if c, ok := uni.pairOf(out[starter].r, u.r); ok {
				out[starter].r = c
				out[starter].change += u.change - 1
				continue
			}
		}
		if u.class == 0 {
			starter, last = len(out), 0
		} else if starter >= 0 {
			last = u.class
		}
		out = append(out, u)
	}
	return out
}
