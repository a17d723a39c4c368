package tokenize

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// finder finds what a text is split at, or what is replaced in it: it appends the ranges of b that
// match, in order and without overlap.
type finder interface {
	find(s *scratch, dst []span, b []byte) []span
}

// behavior says what becomes of a match when a text is split.
type behavior uint8

const (
	removed            behavior = iota // it goes
	isolated                           // it is a piece
	mergedWithPrevious                 // it ends the piece before it
	mergedWithNext                     // it starts the piece after it
	contiguous                         // neighbouring matches are one piece
)

var behaviorNames = [...]string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}

func parseBehavior(name string) (behavior, error) {
	if i := slices.Index(behaviorNames[:], name); i >= 0 {
		return behavior(i), nil
	}
	return 0, fmt.Errorf("unknown behavior %q; known: %v", name, behaviorNames)
}

// splitter splits pieces at the matches of a pattern, or, inverted, at what lies between them.
type splitter struct {
	pattern  finder
	behavior behavior
	invert   bool
}

func (p splitter) split(s *scratch) {
	s.eachPiece(func(x piece) {
		s.matches = p.pattern.find(s, s.matches[:0], s.text.b[x.start:x.end])
		s.cut(x, p.behavior, p.invert)
	})
}

// eachPiece replaces the pieces: those of text by what fn appends to s.next, added tokens by themselves.
func (s *scratch) eachPiece(fn func(piece)) {
	s.next = s.next[:0]
	for _, x := range s.pieces {
		if x.id >= 0 {
			s.next = append(s.next, x)
		} else {
			fn(x)
		}
	}
	s.pieces, s.next = s.next, s.pieces
}

// cut appends the parts of piece x, split at s.matches, to s.next.
func (s *scratch) cut(x piece, how behavior, invert bool) {
	c := cutter{s: s, how: how, base: x.start}
	at := int32(0)
	for _, m := range s.matches {
		if at < m.start {
			c.part(at, m.start, invert)
		}
		c.part(m.start, m.end, !invert)
		at = m.end
	}
	if n := x.end - x.start; at < n {
		c.part(at, n, invert)
	}
	c.flush()
}

// cutter puts pieces together from matches and what lies between. The merging behaviors look at the
// part before (the part after, for mergedWithNext, which the reference does from the right).
type cutter struct {
	s        *scratch
	how      behavior
	base     int32
	last     span // the piece in the making
	open     bool
	wasMatch bool
}

// add closes the piece in the making and starts the next.
func (c *cutter) add(start, end int32) {
	c.flush()
	c.last, c.open = span{start, end}, true
}

// extend lets the piece in the making run on to end.
func (c *cutter) extend(start, end int32) {
	if c.open {
		c.last.end = end
	} else {
		c.add(start, end)
	}
}

func (c *cutter) flush() {
	if c.open && c.last.start < c.last.end {
		c.s.next = append(c.s.next, piece{c.base + c.last.start, c.base + c.last.end, noID})
	}
	c.open = false
}

func (c *cutter) part(start, end int32, match bool) {
	switch c.how {
	case removed:
		if !match {
			c.add(start, end)
		}
	case isolated:
		c.add(start, end)
	case contiguous:
		if match == c.wasMatch {
			c.extend(start, end)
		} else {
			c.add(start, end)
		}
	case mergedWithPrevious:
		if match && !c.wasMatch {
			c.extend(start, end)
		} else {
			c.add(start, end)
		}
	case mergedWithNext:
		if !match && c.wasMatch {
			c.extend(start, end)
		} else {
			c.add(start, end)
		}
	}
	c.wasMatch = match
}

// runes finds every character of a set, each for itself.
type runes struct{ has func(rune) bool }

func (p runes) find(_ *scratch, dst []span, b []byte) []span {
	for i := 0; i < len(b); {
		r, n := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(b[i:])
		}
		if p.has(r) {
			dst = append(dst, span{int32(i), int32(i + n)})
		}
		i += n
	}
	return dst
}

// whitespaceWords finds words (\w+) and runs of what is neither word nor white space ([^\w\s]+): the
// Whitespace pre-tokenizer keeps these.
type whitespaceWords struct{}

func (whitespaceWords) find(_ *scratch, dst []span, b []byte) []span {
	start, kind := 0, classSpace
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		k := classPunct
		switch {
		case isWord(r):
			k = classWord
		case isSpace(r):
			k = classSpace
		}
		if k != kind {
			if kind != classSpace {
				dst = append(dst, span{int32(start), int32(i)})
			}
			start, kind = i, k
		}
		i += n
	}
	if kind != classSpace {
		dst = append(dst, span{int32(start), int32(len(b))})
	}
	return dst
}

// fixedLength cuts pieces of so many characters.
type fixedLength int

func (p fixedLength) split(s *scratch) {
	s.eachPiece(func(x piece) {
		start, count := x.start, 0
		for i := x.start; i < x.end; {
			_, n := utf8.DecodeRune(s.text.b[i:x.end])
			i += int32(n)
			if count++; count == int(p) || i == x.end {
				s.next = append(s.next, piece{start, i, noID})
				start, count = i, 0
			}
		}
	})
}
