package tokenize

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// precompiled is the character map of a SentencePiece model: a double array (Darts-clone) of keys and
// the strings they are replaced by. The reference tries whole grapheme clusters of less than six bytes
// first and takes the shortest key that starts one, then single characters.
type precompiled struct {
	units  []uint32
	values []byte              // replacements, each ended by a zero byte
	ascii  [utf8.RuneSelf]bool // a key starts with the byte
}

func newPrecompiled(encoded string) (*precompiled, error) {
	blob, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("not base64: %v", err)
	}
	if len(blob) < 4 {
		return nil, fmt.Errorf("a map of %d bytes is too short", len(blob))
	}
	size := int(binary.LittleEndian.Uint32(blob))
	if size%4 != 0 || size > len(blob)-4 {
		return nil, fmt.Errorf("a trie of %d bytes does not fit a map of %d bytes", size, len(blob))
	}
	p := &precompiled{units: make([]uint32, size/4), values: blob[4+size:]}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	if !utf8.Valid(p.values) {
		return nil, fmt.Errorf("replacements are not valid UTF-8")
	}
	for c := range p.ascii {
		_, p.ascii[c] = p.lookup([]byte{byte(c)})
	}
	return p, nil
}

// lookup returns the replacement of the shortest key that starts b.
func (p *precompiled) lookup(b []byte) ([]byte, bool) {
	if len(p.units) == 0 {
		return nil, false
	}
	at := unitOffset(p.units[0])
	for _, c := range b {
		if c == 0 {
			return nil, false
		}
		at ^= uint32(c)
		if at >= uint32(len(p.units)) {
			return nil, false
		}
		unit := p.units[at]
		if unit&(1<<31|0xFF) != uint32(c) {
			return nil, false
		}
		at ^= unitOffset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(p.units)) {
			return nil, false
		}
		start := p.units[at] &^ (1 << 31)
		if start > uint32(len(p.values)) {
			return nil, false
		}
		value := p.values[start:]
		if end := bytes.IndexByte(value, 0); end >= 0 {
			value = value[:end]
		}
		return value, true
	}
	return nil, false
}

// unitOffset is the distance from a unit to its children.
func unitOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// maxCluster is the length from which on the reference does not look a grapheme cluster up.
const maxCluster = 6

func (p *precompiled) normalize(s *scratch) {
	b := s.text.b
	var w mapWriter
	for i := 0; i < len(b); {
		// A lone ASCII character is a cluster of its own unless something joins it, and no map changes most.
		if c := b[i]; c < utf8.RuneSelf && !p.ascii[c] && c != '\r' && (i+1 == len(b) || b[i+1] < utf8.RuneSelf) {
			i++
			continue
		}
		end := i + clusterLength(b[i:])
		if end-i < maxCluster {
			if to, ok := p.lookup(b[i:end]); ok {
				w.replace(s, i, end, to)
				i = end
				continue
			}
		}
		for i < end {
			_, size := utf8.DecodeRune(b[i:])
			if to, ok := p.lookup(b[i : i+size]); ok {
				w.replace(s, i, i+size, to)
			}
			i += size
		}
	}
	if w.rewriter != nil {
		w.copy(len(b))
		w.flush()
		s.done()
	}
}

// mapWriter rewrites a text with the reference's counts of changes for a character map: of a
// replacement longer than what it replaces, the last characters are insertions; what a shorter one
// lacks is dropped after its last character. A replacement by nothing adds to the character before,
// or, at the very start, is not counted at all: everything after it is then aligned too early. Offsets
// are to be the reference's, so the last character is held back until it is known what it drops, and
// reading and aligning have places of their own.
type mapWriter struct {
	*rewriter
	read    int // next old byte to copy; off is the next to align with
	held    unit
	holding bool
}

// replace puts a string in the place of old bytes [from, end).
func (w *mapWriter) replace(s *scratch, from, end int, to []byte) {
	if w.rewriter == nil {
		w.rewriter = s.rewrite()
	}
	w.copy(from)
	w.read = end
	more := utf8.RuneCount(to) - utf8.RuneCount(w.src.b[from:end])
	plain := utf8.RuneCount(to) - max(more, 0)
	for len(to) > 0 {
		r, size := utf8.DecodeRune(to)
		to = to[size:]
		if plain > 0 {
			w.hold(unit{r: r})
		} else {
			w.hold(unit{r: r, change: 1})
		}
		plain--
	}
	if more < 0 && w.holding {
		w.held.change += int32(more)
	}
}

// copy copies the old characters up to `to`.
func (w *mapWriter) copy(to int) {
	if w.read >= to {
		return
	}
	_, last := utf8.DecodeLastRune(w.src.b[w.read:to])
	w.flush()
	if w.read == w.off {
		w.keep(to - last)
		w.read = to - last
	}
	for w.read < to {
		r, size := utf8.DecodeRune(w.src.b[w.read:])
		w.read += size
		w.hold(unit{r: r})
	}
}

func (w *mapWriter) hold(u unit) {
	w.flush()
	w.held, w.holding = u, true
}

func (w *mapWriter) flush() {
	if w.holding {
		w.emit(w.held.r, int(w.held.change))
	}
	w.holding = false
}
