package main

import (
	"time"
)

// A letter is one composed message, before it becomes mail.
type letter struct {
	week       isoWeek
	number     int
	sent       time.Time
	offset     time.Duration // the sender's zone
	pool       pool
	queue      int
	confounder confounder
	voice      voice

	from    person
	id      []byte // Message-ID without its brackets
	thread  *root  // the message this one follows up, or nil
	subject []byte
	body    []byte // the customer's own words: greeting to signature, UTF-8, "\n"
	quote   []byte // what the shop had written, without ">" marks; empty if none

	decisive span // in body
	words    int  // of body
	wordAt   int  // words of body before the decisive sentence
	isLong   bool
}

// span is a byte range.
type span struct{ at, length int }

// person is who writes: names as written, and the address they fold to.
type person struct{ given, family, address []byte }

// root is a message that a later one may follow up.
type root struct {
	id, answer, subject []byte // answer: the id of the shop's own mail in between
	from                person
	queue               int
	sent                time.Time
}

// threadsKept is how many of the latest messages can still be followed up. A few
// days' worth in a shop's week, and constant memory in a million.
const threadsKept = 64

// composer writes letters. Its buffers are reused: a letter is valid until the next.
type composer struct {
	grammar *grammar
	random
	seed uint64
	recipe
	letter

	bound     [][]byte // the message's own choice for each slot; empty: not made yet
	x, y      []byte
	core      []byte
	sentence  []byte
	tidied    []byte
	lastHint  *line  // so that no remark is made twice in a row
	told      []bool // stories already begun in this message
	story     *section
	storyLine int
	smart     bool   // the mail program turns ' into ’
	newBlock  bool   // the next sentence starts a paragraph
	written   int    // words in the body so far
	given     uint64 // details said, by line number

	roots    [threadsKept]root
	rootsSet int
}

func newComposer(g *grammar, seed uint64, r recipe) *composer {
	return &composer{grammar: g, seed: seed, recipe: r, bound: make([][]byte, g.slots), told: make([]bool, len(g.stories))}
}

// compose writes message number n of a week.
func (c *composer) compose(w isoWeek, n int, p pool, weights []float64, ck *clock) *letter {
	c.random = newRandom(c.seed, w.year, w.week, n)
	for i := range c.bound {
		c.bound[i] = c.bound[i][:0]
	}
	clear(c.told)
	c.story, c.lastHint, c.newBlock, c.written, c.given = nil, nil, true, 0, 0
	l := &c.letter
	l.week, l.number, l.pool = w, n, p
	l.sent = ck.moment(n, c.unit())
	l.body, l.quote, l.subject, l.thread = l.body[:0], l.quote[:0], l.subject[:0], nil

	c.chooseZone()
	l.queue = c.weighted(weights)
	if c.rootsSet > 0 && c.chance(.16) {
		c.followUp()
	}
	if l.thread == nil {
		c.choosePerson()
	}
	c.newID(&l.id, "example.com")
	want := wordsWanted(&c.random, w, c.medianWords)
	l.isLong = want >= 190
	l.confounder = c.chooseConfounder()
	c.chooseVoice(want)
	c.smart = c.chance(.25)
	c.bindCake()
	c.writeBody(want)
	c.writeSubject()
	if l.thread != nil {
		c.writeQuote()
	}
	if c.chance(.3) {
		c.remember()
	}
	return l
}

func (c *composer) chooseZone() {
	c.offset = britishOffset(c.sent)
	if c.chance(.1) {
		c.offset = [...]time.Duration{-5 * time.Hour, time.Hour, 2 * time.Hour}[c.below(3)]
	}
}

// followUp makes the message a later one of a thread; people keep their matter more
// often than not.
func (c *composer) followUp() {
	r := &c.roots[c.below(min(c.rootsSet, threadsKept))]
	if c.sent.Sub(r.sent) < time.Hour || c.sent.Sub(r.sent) > 12*24*time.Hour {
		return
	}
	c.thread = r
	c.from.set(r.from)
	if c.chance(.6) {
		c.queue = r.queue
	}
}

// remember keeps the message so that a later one may follow it up.
func (c *composer) remember() {
	r := &c.roots[c.rootsSet%threadsKept]
	if c.thread == r {
		return // its bytes are still being read
	}
	c.rootsSet++
	r.id = append(r.id[:0], c.id...)
	c.newID(&r.answer, "crumb.example")
	r.subject = append(r.subject[:0], c.subject...)
	r.from.set(c.from)
	r.queue, r.sent = c.queue, c.sent
}

func (p *person) set(o person) {
	p.given = append(p.given[:0], o.given...)
	p.family = append(p.family[:0], o.family...)
	p.address = append(p.address[:0], o.address...)
}

// newID writes a new message id.
func (c *composer) newID(dst *[]byte, host string) {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	b := (*dst)[:0]
	for x, i := c.uint64(), 0; i < 12; i++ {
		b = append(b, digits[x%36])
		x /= 36
	}
	b = append(b, '.')
	b = c.sent.AppendFormat(b, "20060102150405")
	b = append(b, '@')
	*dst = append(b, host...)
}

func (c *composer) choosePerson() {
	p := &c.from
	p.given = c.render(p.given[:0], c.any("given name"))
	p.family = c.render(p.family[:0], c.any("family name"))
	p.address = appendFolded(p.address[:0], p.given)
	p.address = append(p.address, "._-"[c.below(3)])
	p.address = appendFolded(p.address, p.family)
	for n := c.below(1000); n > 0; n /= 10 {
		p.address = append(p.address, byte('0'+n%10))
	}
	p.address = append(p.address, '@')
	p.address = append(p.address, [...]string{"example.com", "example.net", "example.org", "mail.example"}[c.below(4)]...)
}

// chooseConfounder draws what makes the message hard, among what its queue allows.
func (c *composer) chooseConfounder() confounder {
	k := none
	if c.chance(c.confounded) {
		k = confounder(c.weighted(confounderWeights[:]))
	}
	q := queueNames[c.queue]
	switch k {
	case none:
		// Long mail wanders, and some of where it wanders sounds like another queue.
		if c.isLong && c.chance(.75*c.confounded) {
			return [...]confounder{passing, history}[c.below(2)]
		}
	case swap, it:
		if c.queue != refunds && c.queue != lateDeliveries {
			return none
		}
	case cold, bank:
		if c.grammar.sections[confounderNames[k]+"/"+q] == nil {
			return passing
		}
	}
	return k
}

func (c *composer) chooseVoice(words int) {
	row := 0
	if words >= 40 {
		row = 1
	}
	if words >= 190 {
		row = 2
	}
	c.voice = voice(c.weighted(voiceWeights[row][:]))
	if c.voice == angry && !c.mayBeAngry() {
		c.voice = polite
	}
}

// mayBeAngry is false for matters nobody is angry about.
func (c *composer) mayBeAngry() bool {
	switch queueNames[c.queue] {
	case "refunds", "late deliveries", "order changes", "payment problems", "website and account":
		return true
	}
	return false
}

// bindCake chooses the cake all of the message is about.
func (c *composer) bindCake() {
	name := "cake"
	switch {
	case c.confounder == eggless, c.queue == queueNumber("allergy questions") && c.chance(.2):
		name = "cake/eggless"
	case c.confounder == nutFree:
		name = "cake/nut-free"
	}
	slot := c.grammar.sections["cake"].slot
	c.bound[slot] = c.render(c.bound[slot][:0], c.any(name))
}

// any returns a line of a section that the message's pool may use.
func (c *composer) any(name string) template {
	return c.anyLine(name).template
}

func (c *composer) anyLine(name string) *line {
	s := c.grammar.sections[name]
	of := s.pools[c.pool]
	return &s.lines[of[c.below(len(of))]]
}

// render appends a template's text.
func (c *composer) render(dst []byte, t template) []byte {
	for i := range t {
		n := &t[i]
		switch n.kind {
		case literal:
			dst = append(dst, n.text...)
		case choice:
			dst = c.render(dst, n.choices[c.below(len(n.choices))])
		case digit:
			dst = append(dst, byte('1'+c.below(9)))
		case slot:
			b := &c.bound[n.section.slot]
			if len(*b) == 0 {
				of := n.section.pools[c.pool]
				*b = c.render(*b, n.section.lines[of[c.below(len(of))]].template)
			}
			dst = append(dst, *b...)
		case freshSlot:
			of := n.section.pools[c.pool]
			dst = c.render(dst, n.section.lines[of[c.below(len(of))]].template)
		case argX:
			dst = append(dst, c.x...)
		case argY:
			dst = append(dst, c.y...)
		case argCore:
			dst = append(dst, c.core...)
		}
	}
	return dst
}

// decisiveSentence renders the sentence that alone says the queue.
func (c *composer) decisiveSentence(dst []byte) []byte {
	q := queueNames[c.queue]
	switch c.confounder {
	case pair, negation:
		part, frame := "topic/", "about-this"
		if c.confounder == negation {
			part, frame = "wish/", "not-this"
		}
		c.x = c.render(c.x[:0], c.any(part+q))
		c.y = c.render(c.y[:0], c.any(part+queueNames[c.otherQueue()]))
		return c.render(dst, c.any(frame))
	case swap, it:
		x, y := "thing/cake", "thing/delivery"
		if c.queue == lateDeliveries {
			x, y = y, x
		}
		c.x, c.y = c.render(c.x[:0], c.any(x)), c.render(c.y[:0], c.any(y))
		return c.render(dst, c.any(confounderNames[c.confounder]))
	case cold, bank:
		return c.render(dst, c.any(confounderNames[c.confounder]+"/"+q))
	}
	part, frame := "do/", "ask"
	if c.chance(.5) {
		part, frame = "say/", "say"
	}
	l := c.anyLine(part + q)
	if c.confounder == eggless || c.confounder == nutFree {
		for try := 0; try < 8 && !l.usesCake; try++ { // the product should be named, where it can be
			l = c.anyLine(part + q)
		}
	}
	c.core = c.render(c.core[:0], l.template)
	return c.render(dst, c.any(frame))
}

// otherQueue draws a queue that is not the message's, the frequent ones more often.
func (c *composer) otherQueue() int {
	s := shares(c.week)
	s[c.queue] = 0
	return c.weighted(s[:])
}

// remark returns a line of the section that does not suggest the message's own queue.
func (c *composer) remark(name string) *line {
	for {
		if l := c.anyLine(name); l.suggests != queueNames[c.queue] {
			return l
		}
	}
}
