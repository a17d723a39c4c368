package mail

import (
	"unicode/utf8"
)

// enoughToDetect is the number of bytes from which pair statistics are worth more than a guess.
const enoughToDetect = 200

// detect guesses the charset of bytes that are not UTF-8 and carry no usable label; empty when
// nothing stands out. Multi-byte charsets show themselves by their grammar: nearly every high byte
// starts a legal pair, and the pairs fall where that language's common characters are. Cyrillic
// shows itself even in short texts by words made of high bytes only, and its two charsets by which
// half of the upper rows is used: small letters are many.
func detect(b []byte) string {
	high, runs, longest, run := 0, 0, 0, 0
	for _, c := range b {
		if c >= 0x80 {
			if high++; run == 0 {
				runs++
			}
			if run++; run > longest {
				longest = run
			}
		} else {
			run = 0
		}
	}
	if high == 0 {
		return ""
	}
	if name := detectMultiByte(b, high); name != "" {
		return name
	}
	// Latin text has accents one at a time; whole words of high bytes are another alphabet.
	if high < 4 || high < 3*runs && longest < 5 {
		return ""
	}
	return detectCyrillic(b, high)
}

func detectCyrillic(b []byte, high int) string {
	var lower1251, upper1251, other int // KOI8-R has small letters where windows-1251 has capitals
	for _, c := range b {
		switch {
		case c >= 0xe0 || c == 0xb8:
			lower1251++
		case c >= 0xc0 || c == 0xa8:
			upper1251++
		case c >= 0x80:
			other++
		}
	}
	switch {
	case other*5 > high: // not letters of either
		return detect866(b, high)
	case lower1251 >= upper1251:
		return "windows-1251"
	}
	return "koi8-r"
}

// detect866 recognises the DOS code page: letters at 0x80-0xaf and 0xe0-0xef.
func detect866(b []byte, high int) string {
	letters := 0
	for _, c := range b {
		if c >= 0x80 && c <= 0xaf || c >= 0xe0 && c <= 0xef {
			letters++
		}
	}
	if letters*10 >= high*9 {
		return "ibm866"
	}
	return ""
}

// detectMultiByte scores the East Asian charsets over the pairs they would read.
func detectMultiByte(b []byte, high int) string {
	if high < 4 || len(b) < enoughToDetect && high < 8 {
		return ""
	}
	best, bestScore := "", 0
	for _, p := range [...]struct {
		name  string
		score func([]byte) (common, pairs, bad int)
	}{{"shift_jis", scoreShiftJIS}, {"euc-jp", scoreEUCJP}, {"euc-kr", scoreEUCKR}, {"gb18030", scoreGB}, {"big5", scoreBig5}} {
		common, pairs, bad := p.score(b)
		if pairs == 0 || bad*50 > pairs || common*2 < pairs {
			continue
		}
		d := decodeWith(lookup(p.name), b, p.name, ReasonDetected)
		if d.Replaced*50 > utf8.RuneCount(d.Text) {
			continue
		}
		if score := common * 1000 / pairs; score > bestScore {
			best, bestScore = p.name, score
		}
	}
	return best
}

// scorePairs walks b as a two-byte charset.
func scorePairs(b []byte, lead, trail func(byte) bool, usual func(hi, lo byte) bool) (common, pairs, bad int) {
	for i := 0; i < len(b); i++ {
		if b[i] < 0x80 {
			continue
		}
		if i+1 < len(b) && lead(b[i]) && trail(b[i+1]) {
			pairs++
			if usual(b[i], b[i+1]) {
				common++
			}
			i++
			continue
		}
		bad++
	}
	return common, pairs, bad
}

func eucByte(c byte) bool { return c >= 0xa1 && c <= 0xfe }

// scoreEUCJP: kana rows 0xa4 and 0xa5, punctuation 0xa1, first-level kanji to 0xcf.
func scoreEUCJP(b []byte) (int, int, int) {
	kana := 0
	common, pairs, bad := scorePairs(b, eucByte, eucByte, func(hi, _ byte) bool {
		if hi == 0xa4 || hi == 0xa5 {
			kana++
		}
		return hi == 0xa4 || hi == 0xa5 || hi == 0xa1 || hi >= 0xb0 && hi <= 0xcf
	})
	if kana*5 < pairs { // running Japanese is never without kana
		return 0, pairs, bad
	}
	return common, pairs, bad
}

// scoreEUCKR: the Hangul rows 0xb0 to 0xc8 and punctuation.
func scoreEUCKR(b []byte) (int, int, int) {
	return scorePairs(b, eucByte, eucByte, func(hi, _ byte) bool {
		return hi >= 0xb0 && hi <= 0xc8 || hi == 0xa1
	})
}

// scoreGB: first-level hanzi 0xb0 to 0xd7, full-width forms 0xa3, punctuation 0xa1. Korean falls
// inside; its narrower range wins a tie because Chinese uses rows above 0xc8 too.
func scoreGB(b []byte) (int, int, int) {
	beyond := 0
	common, pairs, bad := scorePairs(b, eucByte, eucByte, func(hi, _ byte) bool {
		if hi > 0xc8 && hi <= 0xd7 || hi == 0xa3 {
			beyond++
		}
		return hi >= 0xb0 && hi <= 0xd7 || hi == 0xa1 || hi == 0xa3
	})
	if beyond*8 < pairs {
		common = common * 3 / 4
	}
	return common, pairs, bad
}

// scoreBig5: frequent hanzi 0xa4 to 0xc6, punctuation 0xa1, trail bytes below 0x7f among them.
func scoreBig5(b []byte) (int, int, int) {
	low := 0
	common, pairs, bad := scorePairs(b, func(c byte) bool { return c >= 0xa1 && c <= 0xf9 },
		func(c byte) bool { return c >= 0x40 && c <= 0x7e || eucByte(c) },
		func(hi, lo byte) bool {
			if lo <= 0x7e {
				low++
			}
			return hi >= 0xa4 && hi <= 0xc6 || hi == 0xa1
		})
	if low*6 < pairs { // two in five of its trail bytes are ASCII; EUC has none
		return 0, pairs, bad
	}
	return common, pairs, bad
}

// scoreShiftJIS: kana 0x82 and 0x83, punctuation 0x81, first-level kanji 0x88 to 0x97.
func scoreShiftJIS(b []byte) (int, int, int) {
	kana := 0
	common, pairs, bad := scorePairs(b,
		func(c byte) bool { return c >= 0x81 && c <= 0x9f || c >= 0xe0 && c <= 0xfc },
		func(c byte) bool { return c >= 0x40 && c <= 0xfc && c != 0x7f },
		func(hi, lo byte) bool {
			if hi == 0x82 && lo >= 0x9f || hi == 0x83 {
				kana++
			}
			return hi == 0x82 && lo >= 0x9f || hi == 0x83 || hi == 0x81 || hi >= 0x88 && hi <= 0x97
		})
	if kana*5 < pairs {
		return 0, pairs, bad
	}
	return common, pairs, bad
}
