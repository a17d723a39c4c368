package tokenize

import (
	"unicode"

	"golang.org/x/text/unicode/norm"
)

func isSpace(r rune) bool { return unicode.IsSpace(r) }

func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Pc, unicode.Nl) || r == 0x200C || r == 0x200D
}

func isControl(r rune) bool { return unicode.In(r, unicode.C) }

func isNonspacingMark(r rune) bool { return unicode.Is(unicode.Mn, r) }

func isBertPunctuation(r rune) bool {
	if r < 128 {
		return r > 32 && r < 127 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}
	return unicode.IsPunct(r)
}

func toLower(r rune) rune { return unicode.ToLower(r) }

// isChinese says whether BERT sets r apart: the CJK ideograph blocks.
func isChinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

// appendNFD appends the canonical decomposition of r.
func appendNFD(dst []rune, r rune) []rune {
	for _, d := range norm.NFD.String(string(r)) {
		dst = append(dst, d)
	}
	return dst
}
