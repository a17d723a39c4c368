package main

import (
	"bytes"
	"unicode/utf8"
)

// typoRate is the chance that a word of five letters or more is mistyped.
var typoRate = [voices]float64{plain: .006, polite: .002, terse: .01, angry: .012, rambling: .008, nonNative: .015, phone: .035}

// voiceSentence appends the tidied sentence to the body as this writer would type it.
// No voice changes which words the meaning hangs on: articles may go and letters may
// swap, but negations and nouns stay.
func (c *composer) voiceSentence() {
	s := c.sentence
	if c.voice != phone {
		upperFirst(s)
	}
	for len(s) > 0 {
		word := s
		if end := bytes.IndexByte(s, ' '); end >= 0 {
			word, s = s[:end], s[end+1:]
		} else {
			s = nil
		}
		at := len(c.body)
		c.voiceWord(word)
		if len(c.body) > at && len(s) > 0 {
			c.body = append(c.body, ' ')
		}
	}
	c.endSentence()
}

func (c *composer) voiceWord(word []byte) {
	switch c.voice {
	case nonNative:
		if w := string(word); (w == "the" || w == "a" || w == "an") && c.chance(.35) {
			return
		}
	case phone:
		if c.phoneWord(word) {
			return
		}
	}
	at := len(c.body)
	for _, x := range word {
		switch {
		case x == '\'' && c.voice == phone:
			continue
		case x == '\'' && c.smart:
			c.body = append(c.body, "’"...)
			continue
		case c.voice == phone && 'A' <= x && x <= 'Z':
			x += 'a' - 'A'
		}
		c.body = append(c.body, x)
	}
	if len(word) >= 5 && c.chance(typoRate[c.voice]) {
		c.mistype(at)
	}
}

// phoneWord writes the short forms of thumbs.
func (c *composer) phoneWord(word []byte) bool {
	var short string
	switch string(word) {
	case "you":
		short = "u"
	case "your":
		short = "ur"
	case "please":
		short = "pls"
	case "because":
		short = "cos"
	case "and":
		short = "&"
	case "I":
		short = "i"
	default:
		return false
	}
	if short != "i" && !c.chance(.45) {
		return false
	}
	c.body = append(c.body, short...)
	return true
}

// mistype swaps, drops or doubles a letter inside the word that starts at.
func (c *composer) mistype(at int) {
	w := c.body[at:]
	for _, x := range w {
		if x >= utf8.RuneSelf || x|0x20 < 'a' || x|0x20 > 'z' {
			return
		}
	}
	i := 1 + c.below(len(w)-3)
	switch c.below(3) {
	case 0:
		w[i], w[i+1] = w[i+1], w[i]
	case 1:
		c.body = append(c.body[:at+i], c.body[at+i+1:]...)
	default:
		c.body = append(c.body, 0)
		copy(c.body[at+i+1:], c.body[at+i:])
	}
}

// endSentence adds the mark the writer would.
func (c *composer) endSentence() {
	switch last := c.body[len(c.body)-1]; last {
	case '?':
		if c.voice == angry && c.chance(.3) {
			c.body = append(c.body, "??"...)
		}
	case '.', '!', ':':
	default:
		switch {
		case c.voice == angry && c.chance(.35):
			c.body = append(c.body, '!')
		case c.voice == phone && c.chance(.4):
			c.body = append(c.body, ".."...)
		default:
			c.body = append(c.body, '.')
		}
	}
}

// appendFolded appends a name as the ASCII of a mail address.
func appendFolded(dst, name []byte) []byte {
	for _, r := range string(name) {
		switch {
		case r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z'):
			dst = append(dst, byte(r|0x20))
		case r == 'é' || r == 'ë':
			dst = append(dst, 'e')
		case r == 'ö':
			dst = append(dst, "oe"...)
		case r == 'ü':
			dst = append(dst, "ue"...)
		}
	}
	return dst
}
