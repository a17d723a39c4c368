package tokenize

import "unicode/utf8"

// Mail holds any bytes. Invalid UTF-8 is read the way browsers read it (WHATWG Encoding, "maximal
// subpart" of the Unicode standard, section 3.9): each longest start of a well-formed sequence that
// breaks off becomes one U+FFFD. Go's range would make one per byte, strings.ToValidUTF8 one per run.

// subpart returns the length of the maximal subpart at the start of b, whose first sequence is
// invalid.
func subpart(b []byte) int {
	need := 0
	lo, hi := byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c == 0xE0:
		need, lo = 2, 0xA0
	case c == 0xED:
		need, hi = 2, 0x9F
	case c >= 0xE1 && c <= 0xEF:
		need = 2
	case c == 0xF0:
		need, lo = 3, 0x90
	case c == 0xF4:
		need, hi = 3, 0x8F
	case c >= 0xF1 && c <= 0xF3:
		need = 3
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= lo && b[n] <= hi {
		lo, hi = 0x80, 0xBF
		n++
	}
	return n
}

// mark says where the message and its repaired copy drift apart: from byte at of the copy on, the
// message is ahead by ahead bytes (U+FFFD has three bytes, a subpart one to three).
type mark struct{ at, ahead int32 }

// repair returns b with every invalid part replaced, using buf and marks as memory.
func repair(buf []byte, marks []mark, b []byte) ([]byte, []mark) {
	buf, marks = buf[:0], marks[:0]
	ahead := int32(0)
	kept := 0
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		if r, n := utf8.DecodeRune(b[i:]); r != utf8.RuneError || n > 1 {
			i += n
			continue
		}
		n := subpart(b[i:])
		buf = append(buf, b[kept:i]...)
		buf = append(buf, "\uFFFD"...)
		i += n
		kept = i
		if d := int32(n - len("\uFFFD")); d != 0 {
			ahead += d
			marks = append(marks, mark{int32(len(buf)), ahead})
		}
	}
	return append(buf, b[kept:]...), marks
}

// unrepair turns the offsets of the repaired copy into offsets of the message, in place. Offsets mostly
// grow from token to token, so the mark of the last one is near; else it is found by bisection.
func unrepair(marks []mark, offsets []int32) {
	k := 0 // marks[:k] lie at or before the offset
	for i, o := range offsets {
		for near := 0; k < len(marks) && marks[k].at <= o && near < 8; near++ {
			k++
		}
		if k < len(marks) && marks[k].at <= o || k > 0 && marks[k-1].at > o {
			k = bisect(marks, o)
		}
		if k > 0 {
			offsets[i] = o + marks[k-1].ahead
		}
	}
}

// bisect returns how many marks lie at or before o.
func bisect(marks []mark, o int32) int {
	lo, hi := 0, len(marks)
	for lo < hi {
		if mid := (lo + hi) / 2; marks[mid].at <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
