package mail

import "bytes"

// base64Value maps a byte to its six bits; 0xff for bytes outside the alphabet. The two letters of
// the URL alphabet are read too.
var base64Value = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// DecodeBase64 appends the decoded bytes of src to dst. It skips foreign bytes and goes on past
// "=", as concatenated encodings need. clean is false when anything but the alphabet, padding and
// white space was met, or a lone sextet was left over. When under three quarters of the bytes are
// legal, or the text has words with spaces, src is not base64 at all: it is returned as it stands.
func DecodeBase64(dst, src []byte) (out []byte, clean bool) {
	if !looksBase64(src) {
		return append(dst, src...), false
	}
	clean = true
	var acc uint32
	n := 0
	flush := func() {
		switch n {
		case 1:
			clean = false
		case 2:
			dst = append(dst, byte(acc>>4))
		case 3:
			dst = append(dst, byte(acc>>10), byte(acc>>2))
		}
		acc, n = 0, 0
	}
	for _, c := range src {
		v := base64Value[c]
		if v == 0xff {
			switch c {
			case '=':
				flush()
			case '\r', '\n', ' ', '\t':
			default:
				clean = false
			}
			continue
		}
		acc = acc<<6 | uint32(v)
		if n++; n == 4 {
			dst = append(dst, byte(acc>>16), byte(acc>>8), byte(acc))
			acc, n = 0, 0
		}
	}
	flush()
	return dst, clean
}

// looksBase64 says whether src can be meant as base64.
func looksBase64(src []byte) bool {
	legal, foreign, spaces := 0, 0, 0
	for _, c := range src {
		switch {
		case base64Value[c] != 0xff || c == '=':
			legal++
		case c == ' ':
			spaces++
		case c != '\r' && c != '\n' && c != '\t':
			foreign++
		}
	}
	n := legal + foreign
	return n == 0 || legal*4 >= n*3 && (spaces*20 <= n || spaces <= bytes.Count(src, []byte("\n"))*2)
}

// DecodeQuotedPrintable appends the decoded bytes of src to dst; lines may have any length. Illegal
// escapes stay as they are, and clean is then false.
func DecodeQuotedPrintable(dst, src []byte) (out []byte, clean bool) {
	clean = true
	for {
		i := bytes.IndexByte(src, '=')
		if i < 0 {
			return append(dst, src...), clean
		}
		dst = append(dst, src[:i]...)
		src = src[i+1:]
		if len(src) >= 2 {
			if hi, lo := unhex(src[0]), unhex(src[1]); hi >= 0 && lo >= 0 {
				dst = append(dst, byte(hi<<4|lo))
				src = src[2:]
				continue
			}
		}
		// A soft line break, perhaps with white space that a relay added.
		j := 0
		for j < len(src) && (src[j] == ' ' || src[j] == '\t' || src[j] == '\r') {
			j++
		}
		switch {
		case j < len(src) && src[j] == '\n':
			src = src[j+1:]
		case j == len(src):
			return dst, clean
		default:
			clean = false
			dst = append(dst, '=')
		}
	}
}
