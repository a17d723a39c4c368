package main

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// writeBody writes greeting, rambling, the decisive sentence in its place, more
// rambling, and the end.
func (c *composer) writeBody(want int) {
	voiced := voiceNames[c.voice]
	if c.voice != terse && !c.chance(.1) || c.chance(.3) {
		c.body = c.render(c.body, c.any("hello/"+voiced))
		c.body = append(c.body, '\n')
		if c.voice != phone || c.chance(.3) {
			c.body = append(c.body, '\n')
		}
	}
	before, after := c.place(want)
	c.written = countWords(c.body)
	start := c.written
	if before > 12 && c.voice != terse {
		c.opening()
	}
	hints := c.hints(want)
	hintsBefore := c.below(hints + 1)
	c.ramble(start+before, hintsBefore)
	if c.isLong && c.chance(.5) || c.chance(.25) {
		c.newBlock = true
	}
	c.writeDecisive()
	if c.mayExplain() && want > 16 {
		c.say(c.any("more/"+queueNames[c.queue]), false)
	}
	c.ramble(c.written+after, hints-hintsBefore)
	if c.voice != terse && after > 6 || c.chance(.1) {
		if name := "closing/" + voiced; c.grammar.sections[name] != nil {
			c.say(c.any(name), true)
		} else {
			c.say(c.any("closing"), true)
		}
	}
	end := len(c.body)
	c.signOff(voiced)
	c.words = c.written + countWords(c.body[end:])
}

// place splits the words that are left over between before and after the decisive
// sentence. Long messages say what they want early more often, one in five late.
func (c *composer) place(want int) (before, after int) {
	filler := max(want-22, 0)
	if want < 14 {
		return 0, 0
	}
	early, middle := .36, .34
	if c.isLong {
		early, middle = .58, .20
	}
	var share float64
	switch x := c.unit(); {
	case x < early:
		share = .22 * c.unit()
	case x < early+middle:
		share = .38 + .24*c.unit()
	default:
		share = .85 + .15*c.unit()
	}
	before = int(share * float64(filler))
	return before, filler - before
}

// mayExplain says whether a second sentence about the matter follows the decisive one.
// Not where a contrast is the point, because it would give the answer to a counter of
// words.
func (c *composer) mayExplain() bool {
	switch {
	case c.isContrast():
		return false
	case c.confounder == none:
		return c.chance(.8)
	}
	return c.chance(.35)
}

// isContrast says whether the decisive sentence names two matters, one of them wanted.
func (c *composer) isContrast() bool {
	switch c.confounder {
	case pair, negation, swap, it:
		return true
	}
	return false
}

// hints is how many remarks of a confounder's kind the message carries.
func (c *composer) hints(want int) int {
	switch c.confounder {
	case eggless, nutFree, passing, history:
		return 1 + c.below(2)
	}
	return 0
}

// hint returns a remark of the confounder's kind, another one than the last.
func (c *composer) hint() *line {
	var l *line
	for range 4 {
		switch c.confounder {
		case eggless, nutFree:
			l = c.anyLine("with/" + confounderNames[c.confounder])
		case history:
			l = c.remark("history")
		default:
			l = c.remark("passing")
		}
		if l != c.lastHint {
			break
		}
	}
	c.lastHint = l
	return l
}

func (c *composer) opening() {
	if name := "opening/" + voiceNames[c.voice]; c.grammar.sections[name] != nil && c.chance(.7) {
		c.say(c.any(name), false)
	} else if c.chance(.5) {
		c.say(c.any("opening"), false)
	}
}

// ramble adds neutral sentences until the body has that many words, and the hints
// among them.
func (c *composer) ramble(until, hints int) {
	for {
		words := c.written
		if hints > 0 && (words >= until-12 || c.chance(.3)) {
			c.say(c.hint().template, false)
			hints--
			continue
		}
		if words >= until-4 {
			return
		}
		if until-words < 24 && c.story == nil || c.chance(.08) {
			if t, ok := c.detail(); ok {
				c.say(t, false)
				continue
			}
		}
		if !c.tell() {
			return
		}
	}
}

// detail returns a plain fact the message has not yet given.
func (c *composer) detail() (template, bool) {
	s := c.grammar.sections["detail"]
	of := s.pools[c.pool]
	for range 4 {
		i := of[c.below(len(of))]
		if c.given>>i&1 == 0 {
			c.given |= 1 << i
			return s.lines[i].template, true
		}
	}
	return nil, false
}

// tell says the next line of the story, or starts another one; false when all have
// been told.
func (c *composer) tell() bool {
	for {
		if c.story == nil {
			if !c.nextStory() {
				return false
			}
		}
		of := c.story.pools[c.pool]
		for c.storyLine < len(of) && c.chance(.25) {
			c.storyLine++
		}
		if c.storyLine < len(of) {
			t := c.story.lines[of[c.storyLine]].template
			c.storyLine++
			c.say(t, false)
			return true
		}
		c.story = nil
	}
}

func (c *composer) nextStory() bool {
	n := len(c.grammar.stories)
	at := c.below(n)
	for i := range n {
		k := (at + i) % n
		if !c.told[k] {
			c.told[k] = true
			c.story, c.storyLine = c.grammar.stories[k], 0
			c.newBlock = c.chance(.7)
			return true
		}
	}
	return false
}

// say adds one sentence in the message's voice.
func (c *composer) say(t template, closing bool) {
	c.sentence = c.render(c.sentence[:0], t)
	c.add(closing)
}

// add puts the rendered sentence into the body and returns where it stands.
func (c *composer) add(closing bool) span {
	c.sentence = c.tidy(c.sentence)
	switch {
	case len(c.body) == 0 || c.body[len(c.body)-1] == '\n':
	case c.newBlock || closing && c.chance(.5):
		c.body = append(c.body, "\n\n"...)
	default:
		c.body = append(c.body, ' ')
	}
	c.newBlock = false
	at := len(c.body)
	c.voiceSentence()
	c.written += 1 + bytes.Count(c.body[at:], []byte{' '}) // tidy left single spaces
	return span{at, len(c.body) - at}
}

func (c *composer) writeDecisive() {
	c.sentence = c.decisiveSentence(c.sentence[:0])
	if c.voice == angry && c.chance(.1) {
		c.sentence = bytes.ToUpper(c.sentence)
	}
	c.wordAt = c.written
	c.decisive = c.add(false)
}

// signOff ends the body: a greeting, a name, perhaps a signature.
func (c *composer) signOff(voiced string) {
	if c.voice == terse && c.chance(.6) {
		return
	}
	c.body = append(c.body, "\n\n"...)
	c.body = c.render(c.body, c.any("bye/"+voiced))
	c.body = append(c.body, '\n')
	c.body = append(c.body, c.from.given...)
	if c.voice == polite || c.chance(.3) {
		c.body = append(c.body, ' ')
		c.body = append(c.body, c.from.family...)
	}
	if (c.voice == plain || c.voice == rambling) && c.chance(.06) {
		c.body = append(c.body, " 🎂"...)
	}
	switch {
	case c.voice == phone && c.chance(.7):
		c.body = append(c.body, "\n\n"...)
		c.body = c.render(c.body, c.any("phone signature"))
	case c.voice != phone && c.chance(.18):
		c.body = append(c.body, "\n\n-- \n"...)
		c.body = append(c.body, c.from.given...)
		c.body = append(c.body, ' ')
		c.body = append(c.body, c.from.family...)
		c.body = append(c.body, '\n')
		c.body = c.render(c.body, c.any("signature"))
	}
}

func (c *composer) writeSubject() {
	if c.thread != nil {
		c.subject = append(c.subject, "Re: "...)
		c.subject = append(c.subject, bytes.TrimPrefix(c.thread.subject, []byte("Re: "))...)
		return
	}
	// A subject that says it all would take the point out of a contrast, and the cost
	// out of a cut.
	truthful := .25
	if c.isLong || c.isContrast() {
		truthful = .04
	}
	switch {
	case c.chance(truthful):
		c.x = c.render(c.x[:0], c.any("topic/"+queueNames[c.queue]))
		c.subject = c.render(c.subject, c.any("topic-subject"))
	case c.voice == angry && c.chance(.7):
		c.subject = c.render(c.subject, c.any("subject/angry"))
	case c.voice == phone && c.chance(.7):
		c.subject = c.render(c.subject, c.any("subject/phone"))
	default:
		c.subject = c.render(c.subject, c.any("subject"))
	}
	c.subject = c.tidy(c.subject)
	if c.voice != phone {
		c.subject = upperFirst(c.subject)
	}
}

// writeQuote writes what the shop had answered, about the thread's first matter.
func (c *composer) writeQuote() {
	c.x = c.render(c.x[:0], c.any("topic/"+queueNames[c.thread.queue]))
	c.quote = append(c.quote, "Dear "...)
	c.quote = append(c.quote, c.from.given...)
	c.quote = append(c.quote, ",\n\n"...)
	at := len(c.quote)
	c.quote = c.render(c.quote, c.any("shop"))
	c.quote = append(c.quote[:at], c.tidy(c.quote[at:])...)
	for n := c.below(3); n > 0; n-- {
		c.quote = append(c.quote, ' ')
		c.quote = c.render(c.quote, c.any("shop more"))
	}
	c.quote = append(c.quote, "\n\nCrumb, the cake shop"...)
}

// tidy closes the gaps that empty choices leave, trims, and makes "a" before a vowel
// "an".
func (c *composer) tidy(b []byte) []byte {
	out := c.tidied[:0]
	for i, x := range b {
		if x == ' ' && (len(out) == 0 || out[len(out)-1] == ' ') {
			continue
		}
		if (x == ',' || x == '.' || x == '?' || x == '!' || x == ';' || x == ':') && len(out) > 0 && out[len(out)-1] == ' ' {
			out = out[:len(out)-1]
		}
		if (x == 'a' || x == 'e' || x == 'i' || x == 'o') && endsInArticle(out) && !bytes.HasPrefix(b[i:], []byte("one")) {
			out = append(out[:len(out)-1], 'n', ' ')
		}
		out = append(out, x)
	}
	c.tidied = out
	return append(b[:0], bytes.TrimRight(out, " ")...)
}

func endsInArticle(b []byte) bool {
	n := len(b)
	return n >= 2 && b[n-1] == ' ' && b[n-2] == 'a' && (n == 2 || b[n-3] == ' ')
}

// upperFirst makes the first letter a capital one.
func upperFirst(b []byte) []byte {
	r, n := utf8.DecodeRune(b)
	if u := unicode.ToUpper(r); u != r && utf8.RuneLen(u) == n {
		utf8.EncodeRune(b, u)
	}
	return b
}

// countWords counts what stands between white space.
func countWords(b []byte) int {
	n, inside := 0, false
	for _, x := range b {
		space := x == ' ' || x == '\n'
		if !space && !inside {
			n++
		}
		inside = !space
	}
	return n
}
