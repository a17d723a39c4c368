package tokenize

import "unicode/utf8"

// gpt2Splitter is gpt2Pattern written out: most byte-level tokenizers split by it, and this is several
// times as fast as the engine for patterns, which a test holds it against.
type gpt2Splitter struct{ ascii [utf8.RuneSelf]uint8 }

const (
	gptOther = iota
	gptLetter
	gptNumber
	gptSpace
)

func newGPT2Splitter() *gpt2Splitter {
	p := &gpt2Splitter{}
	for r := range p.ascii {
		p.ascii[r] = gptClass(rune(r))
	}
	return p
}

func gptClass(r rune) uint8 {
	switch c := category(r); {
	case c >= catLu && c <= catLo:
		return gptLetter
	case c >= catNd && c <= catNo:
		return gptNumber
	case isSpace(r):
		return gptSpace
	}
	return gptOther
}

// class returns the class and length of the character at b[i].
func (p *gpt2Splitter) class(b []byte, i int) (uint8, int) {
	if c := b[i]; c < utf8.RuneSelf {
		return p.ascii[c], 1
	}
	r, n := utf8.DecodeRune(b[i:])
	return gptClass(r), n
}

// find appends all of b in parts: the pattern leaves nothing out.
func (p *gpt2Splitter) find(_ *scratch, dst []span, b []byte) []span {
	for i := 0; i < len(b); {
		end := p.next(b, i)
		dst = append(dst, span{int32(i), int32(end)})
		i = end
	}
	return dst
}

// next returns the end of the part that starts at i.
func (p *gpt2Splitter) next(b []byte, i int) int {
	if b[i] == '\'' {
		if n := contraction(b[i+1:]); n > 0 {
			return i + 1 + n
		}
	}
	class, n := p.class(b, i)
	if class == gptSpace {
		if b[i] != ' ' || i+1 == len(b) {
			return p.spaces(b, i, n)
		}
		if class, n = p.class(b, i+1); class == gptSpace {
			return p.spaces(b, i, 1)
		}
		i++
	}
	end := i + n
	for end < len(b) {
		if c := b[end]; c < utf8.RuneSelf {
			if p.ascii[c] != class {
				break
			}
			end++
			continue
		}
		c, n := p.class(b, end)
		if c != class {
			break
		}
		end += n
	}
	return end
}

// spaces returns the end of a run of white space, less its last character when something follows: that
// one may belong to it.
func (p *gpt2Splitter) spaces(b []byte, i, n int) int {
	end, last := i+n, n
	for end < len(b) {
		class, n := p.class(b, end)
		if class != gptSpace {
			if end-last > i {
				return end - last
			}
			return end
		}
		end += n
		last = n
	}
	return end
}

// contraction returns the length of s, t, m, d, re, ve or ll at the start of b.
func contraction(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if len(b) > 1 && b[1] == 'e' {
			return 2
		}
	case 'l':
		if len(b) > 1 && b[1] == 'l' {
			return 2
		}
	}
	return 0
}
