package tokenize

import (
	"math/bits"
	"unicode/utf8"
)

// regex is a compiled pattern. Matching backtracks, as the semantics of Oniguruma ask, with three
// measures that keep it linear on what patterns and mail hold: loops over one set of characters are
// scanned, not stepped; where such a loop failed to go on is remembered for the whole text; and a
// search that takes unusually many steps notes every state it has failed in.
type regex struct {
	code  []instr
	loops int // numbered loops

	// Alternatives of the pattern's top level by the first byte: bit i stands for entry[i]. Bytes outside
	// ASCII share one mask.
	entry []int32
	first [utf8.RuneSelf + 1]uint64
	any   uint64 // alternatives that may match the empty string
}

type op uint8

const (
	opMatch  op = iota
	opSet       // a character of set
	opLoop      // min to max characters of set
	opSplit     // x, then y
	opJump      // x
	opLook      // the code from pc+1 up to its opMatch must (not) match; then x
	opAtomic    // the same, consuming; then x
	opAnchor    // a place
	opCheck     // fail unless something was consumed since the mark of loop n
	opMark      // set the mark of loop n
)

type instr struct {
	op       op
	greedy   bool // possessive: gives nothing back
	negated  bool
	anchor   byte
	x, y     int32
	min, max int32
	back     int32 // characters a look-behind steps back
	loop     int32
	set      *fastSet
}

// fastSet is a set with its ASCII part tabulated.
type fastSet struct {
	ascii [2]uint64
	set   *charSet
}

func newFastSet(s *charSet) *fastSet {
	f := &fastSet{set: s}
	for r := range rune(utf8.RuneSelf) {
		if s.has(r) {
			f.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return f
}

// at returns the length of the character at b[i] if the set has it, else 0.
func (f *fastSet) at(b []byte, i int) int {
	if i >= len(b) {
		return 0
	}
	if c := b[i]; c < utf8.RuneSelf {
		return int(f.ascii[c>>6] >> (c & 63) & 1)
	}
	r, n := utf8.DecodeRune(b[i:])
	if f.set.has(r) {
		return n
	}
	return 0
}

const (
	maxProgram      = 10000
	maxAlternatives = 64
)

// newRegex compiles a pattern of Oniguruma.
func newRegex(pattern string) (*regex, error) {
	loadUnicode()
	p := &regexParser{src: pattern}
	tree, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if p.more() {
		return nil, p.errorf("a closing parenthesis without its opening one")
	}
	re := &regex{}
	alts := []*node{tree}
	if tree.kind == nodeAlt && len(tree.kids) <= maxAlternatives {
		alts = tree.kids
	}
	for i, alt := range alts {
		re.entry = append(re.entry, int32(len(re.code)))
		re.compile(alt)
		re.code = append(re.code, instr{op: opMatch})
		if len(re.code) > maxProgram {
			return nil, p.errorf("the pattern is too large")
		}
		var f firstBytes
		if f.of(alt) {
			re.any |= 1 << i
		}
		for c := range re.first {
			if f.has[c] || re.any>>i&1 != 0 {
				re.first[c] |= 1 << i
			}
		}
	}
	return re, nil
}

// firstBytes collects what a match of a node may start with; the last element stands for every byte
// outside ASCII.
type firstBytes struct{ has [utf8.RuneSelf + 1]bool }

// of adds the first bytes of n and says whether n may match the empty string.
func (f *firstBytes) of(n *node) (empty bool) {
	switch n.kind {
	case nodeSet:
		fast := newFastSet(n.set)
		for c := range utf8.RuneSelf {
			f.has[c] = f.has[c] || fast.ascii[c>>6]>>(c&63)&1 != 0
		}
		f.has[utf8.RuneSelf] = true
		return false
	case nodeConcat, nodeAtomic:
		for _, k := range n.kids {
			if !f.of(k) {
				return false
			}
		}
		return true
	case nodeAlt:
		for _, k := range n.kids {
			empty = f.of(k) || empty
		}
		return empty
	case nodeRepeat:
		return f.of(n.kids[0]) || n.min == 0
	}
	return true
}

func (re *regex) add(in instr) int {
	re.code = append(re.code, in)
	return len(re.code) - 1
}

func (re *regex) here() int32 { return int32(len(re.code)) }

// compile appends the code of a node.
func (re *regex) compile(n *node) {
	if len(re.code) > maxProgram { // refused by the caller
		return
	}
	switch n.kind {
	case nodeSet:
		re.add(instr{op: opSet, set: newFastSet(n.set)})
	case nodeConcat:
		for _, k := range n.kids {
			re.compile(k)
		}
	case nodeAlt:
		var jumps []int
		for i, k := range n.kids {
			if i == len(n.kids)-1 {
				re.compile(k)
				break
			}
			split := re.add(instr{op: opSplit, x: re.here() + 1})
			re.compile(k)
			jumps = append(jumps, re.add(instr{op: opJump}))
			re.code[split].y = re.here()
		}
		for _, j := range jumps {
			re.code[j].x = re.here()
		}
	case nodeRepeat:
		re.repeat(n)
	case nodeLook, nodeAtomic:
		in := instr{op: opLook, negated: n.negated}
		if n.kind == nodeAtomic {
			in.op = opAtomic
		}
		if n.behind {
			width, _ := n.kids[0].width()
			in.back = int32(width)
		}
		at := re.add(in)
		re.compile(n.kids[0])
		re.add(instr{op: opMatch})
		re.code[at].x = re.here()
	case nodeAnchor:
		re.add(instr{op: opAnchor, anchor: n.anchor})
	}
}

func (re *regex) repeat(n *node) {
	kid := n.kids[0]
	for kid.kind == nodeConcat && len(kid.kids) == 1 {
		kid = kid.kids[0]
	}
	if kid.kind == nodeSet && !n.lazy {
		re.loops++
		re.add(instr{op: opLoop, set: newFastSet(kid.set), min: int32(n.min), max: int32(n.max), greedy: n.possessive, loop: int32(re.loops - 1)})
		return
	}
	if n.possessive {
		atomic := *n
		atomic.possessive = false
		re.compile(&node{kind: nodeAtomic, kids: []*node{&atomic}})
		return
	}
	for i := 0; i < n.min && len(re.code) <= maxProgram; i++ {
		re.compile(kid)
	}
	split := func() int {
		at := re.add(instr{op: opSplit, x: re.here() + 1, y: re.here() + 1})
		return at
	}
	patch := func(at int) { // the way out of a split
		if n.lazy {
			re.code[at].x = re.here()
		} else {
			re.code[at].y = re.here()
		}
	}
	if n.max == unlimited {
		re.loops++
		loop := int32(re.loops - 1)
		top := split()
		re.add(instr{op: opMark, loop: loop})
		re.compile(kid)
		re.add(instr{op: opCheck, loop: loop})
		re.add(instr{op: opJump, x: int32(top)})
		patch(top)
		return
	}
	var outs []int
	for i := n.min; i < n.max && len(re.code) <= maxProgram; i++ {
		outs = append(outs, split())
		re.compile(kid)
	}
	for _, at := range outs {
		patch(at)
	}
}

// regexScratch is the memory of matching.
type regexScratch struct {
	stack []frame
	loops []loopState
	notes []notes // of the match itself, and of look-arounds and atomic groups by how deep they nest
	depth int
}

// notes are the states a run has failed in. They are taken once it has used up its steps.
type notes struct {
	failed []uint64 // bit (pos-base)*len(code)+pc: that state leads nowhere
	base   int
	limit  int // positions from base on that failed covers; 0: not in use
	steps  int
	from   int // where the search for the match started
}

// frame is a state to go back to: pc at pos. Of a greedy loop it stands for every character from pos
// down to low.
type frame struct {
	pc       int32
	pos, low int32
	loop     int32 // number of the loop that gives back, or -1
}

// loopState is what is known of a loop over one set in this text.
type loopState struct {
	start, end int32 // a run of the set's characters that was scanned
	failLow    int32 // going on from any place in [failLow, end] of it fails
	mark       int32
}

func (m *regexScratch) reset(re *regex) {
	m.stack = m.stack[:0]
	if cap(m.loops) < re.loops {
		m.loops = make([]loopState, re.loops)
	}
	m.loops = m.loops[:re.loops]
	for i := range m.loops {
		m.loops[i] = loopState{start: -1, end: -1, failLow: 1<<31 - 1}
	}
	m.depth = 0
	m.start(0)
}

// start clears the notes for a run at a depth and returns them.
func (m *regexScratch) start(from int) *notes {
	if m.depth == len(m.notes) {
		m.notes = append(m.notes, notes{})
	}
	n := &m.notes[m.depth]
	n.limit, n.steps, n.from = 0, 0, from
	return n
}

// matched starts the search for the next match. The states of the match itself did not fail; those a
// later search can meet again stand at its end.
func (n *notes) matched(re *regex, end int) {
	n.steps, n.from = 0, end
	if at := end - n.base; n.limit > 0 && at >= 0 && at < n.limit {
		for bit := at * len(re.code); bit < (at+1)*len(re.code); bit++ {
			n.failed[bit>>6] &^= 1 << (bit & 63)
		}
	}
}

func (m *regexScratch) size() int {
	size := 16 * cap(m.stack)
	for i := range m.notes {
		size += 8 * cap(m.notes[i].failed)
	}
	return size
}

// find appends the matches in b, leftmost first, not overlapping. A match of nothing directly after a
// match does not count.
func (re *regex) find(s *scratch, dst []span, b []byte) []span {
	m := &s.model.regex
	m.reset(re)
	last := -1
	for at := 0; at <= len(b); {
		if re.any == 0 { // pass over what no match starts with
			for at < len(b) && re.first[min(b[at], utf8.RuneSelf)] == 0 {
				at++
			}
		}
		end := re.matchAt(m, b, at)
		if end < 0 || end == at && at == last {
			if at == len(b) {
				break
			}
			at++
			for at < len(b) && !utf8.RuneStart(b[at]) {
				at++
			}
			continue
		}
		dst = append(dst, span{int32(at), int32(end)})
		last = end
		at = end
		m.notes[0].matched(re, end)
	}
	return dst
}

// matchAt returns the end of the match that starts at `at`, or -1.
func (re *regex) matchAt(m *regexScratch, b []byte, at int) int {
	alts := re.any
	if at < len(b) {
		alts = re.first[min(b[at], utf8.RuneSelf)]
	}
	for ; alts != 0; alts &= alts - 1 {
		if end := re.run(m, b, re.entry[bits.TrailingZeros64(alts)], int32(at)); end >= 0 {
			return int(end)
		}
	}
	return -1
}

// stepsPerByte is how many steps a search may take for each byte before it starts to note its failures.
const stepsPerByte = 64

// run executes the code from pc at pos and returns the end of the match, or -1. A look-around or an
// atomic group is a run inside a run, with notes of its own: that it passed a state says nothing there.
func (re *regex) run(m *regexScratch, b []byte, pc, pos int32) int32 {
	floor := len(m.stack)
	depth := m.depth
	if depth > 0 {
		m.start(int(pos))
	}
	for {
		next := int32(-1) // -1: this way fails
		in := &re.code[pc]
		n := &m.notes[depth]
		if n.steps++; n.limit == 0 && n.steps > stepsPerByte*(int(pos)-n.from+64) {
			n.watch(re, b)
		}
		if n.limit > 0 && n.seen(re, pc, pos) {
			in = &failInstr
		}
		switch in.op {
		case opMatch:
			m.stack = m.stack[:floor]
			return pos
		case opSet:
			if n := in.set.at(b, int(pos)); n > 0 {
				next, pos = pc+1, pos+int32(n)
			}
		case opLoop:
			if end := re.loop(m, b, in, pc, pos); end >= 0 {
				next, pos = pc+1, end
			}
		case opSplit:
			m.stack = append(m.stack, frame{in.y, pos, pos, -1})
			next = in.x
		case opJump:
			next = in.x
		case opLook:
			if re.look(m, b, in, pc, pos) {
				next = in.x
			}
		case opAtomic:
			if end := re.inside(m, b, pc+1, pos); end >= 0 {
				next, pos = in.x, end
			}
		case opAnchor:
			if anchored(in.anchor, b, int(pos)) {
				next = pc + 1
			}
		case opMark:
			m.loops[in.loop].mark = pos
			next = pc + 1
		case opCheck:
			if m.loops[in.loop].mark != pos {
				next = pc + 1
			}
		}
		if next < 0 {
			if next, pos = m.back(b, floor); next < 0 {
				return -1
			}
		}
		pc = next
	}
}

// inside runs the code of a look-around or an atomic group.
func (re *regex) inside(m *regexScratch, b []byte, pc, pos int32) int32 {
	m.depth++
	end := re.run(m, b, pc, pos)
	m.depth--
	return end
}

// failInstr is a state that is known to fail.
var failInstr = instr{op: opCheck + 100}

// back takes the next state to try from the stack; pc is -1 when there is none above floor.
func (m *regexScratch) back(b []byte, floor int) (pc, pos int32) {
	for len(m.stack) > floor {
		f := &m.stack[len(m.stack)-1]
		pc, pos = f.pc, f.pos
		if f.loop < 0 {
			m.stack = m.stack[:len(m.stack)-1]
			return pc, pos
		}
		// A greedy loop gives back one character more: from all places behind this one it failed to go on,
		// for the whole text. Where another round of it found that out already, the places are passed over.
		if l := &m.loops[f.loop]; pos >= l.start && pos < l.end {
			if pos >= l.failLow {
				pos = stepBack(b, l.failLow)
			}
			if pos < f.low {
				m.stack = m.stack[:len(m.stack)-1]
				continue
			}
			l.failLow = min(l.failLow, pos+1)
		}
		if f.pos = stepBack(b, pos); f.pos < f.low {
			m.stack = m.stack[:len(m.stack)-1]
		}
		return pc, pos
	}
	return -1, 0
}

// stepBack returns the start of the character before pos, or -1.
func stepBack(b []byte, pos int32) int32 {
	for pos--; pos > 0 && !utf8.RuneStart(b[pos]); {
		pos--
	}
	return pos
}

// loop runs a loop over one set and returns where it stops, or -1.
func (re *regex) loop(m *regexScratch, b []byte, in *instr, pc, pos int32) int32 {
	l := &m.loops[in.loop]
	end, count := pos, int32(0)
	if in.max == unlimited {
		end = m.scan(b, in, l, pos)
	} else {
		l.start, l.end = -1, -1 // a bounded run says nothing of other rounds
		for ; count < in.max; count++ {
			n := in.set.at(b, int(end))
			if n == 0 {
				break
			}
			end += int32(n)
		}
	}
	low := pos
	for count = 0; count < in.min && low < end; count++ {
		low += int32(in.set.at(b, int(low)))
	}
	if count < in.min {
		return -1
	}
	if in.greedy || low == end {
		return end
	}
	if in.max == unlimited && low >= l.failLow {
		return -1 // everywhere it could go on has failed before
	}
	m.stack = append(m.stack, frame{pc + 1, stepBack(b, end), low, in.loop})
	return end
}

// scan returns the end of the run of the loop's characters from pos on, using what is known of a run
// that it meets.
func (m *regexScratch) scan(b []byte, in *instr, l *loopState, pos int32) int32 {
	end := pos
	for {
		if end >= l.start && end <= l.end && l.start >= 0 {
			l.start = min(l.start, pos)
			return l.end
		}
		n := in.set.at(b, int(end))
		if n == 0 {
			break
		}
		end += int32(n)
	}
	m.notes[m.depth].steps += int(end-pos) >> 3 // scanning is cheap, not free
	l.start, l.end, l.failLow = pos, end, 1<<31-1
	return end
}

// look says whether a look-around holds at pos.
func (re *regex) look(m *regexScratch, b []byte, in *instr, pc, pos int32) bool {
	from := pos
	for range in.back {
		if from == 0 {
			return in.negated
		}
		from--
		for from > 0 && !utf8.RuneStart(b[from]) {
			from--
		}
	}
	found := re.inside(m, b, pc+1, from) >= 0
	return found != in.negated
}

// anchored says whether an anchor holds at b[i]. As in Ruby's syntax ^ and $ are ends of lines.
func anchored(anchor byte, b []byte, i int) bool {
	switch anchor {
	case 'A':
		return i == 0
	case 'z':
		return i == len(b)
	case 'Z':
		return i == len(b) || i == len(b)-1 && b[i] == '\n'
	case '^':
		return i == 0 || b[i-1] == '\n' && i < len(b)
	case '$':
		return i == len(b) || b[i] == '\n'
	}
	before, after := false, false
	if i > 0 {
		r, _ := utf8.DecodeLastRune(b[:i])
		before = uni.word(r)&regexWord != 0
	}
	if i < len(b) {
		r, _ := utf8.DecodeRune(b[i:])
		after = uni.word(r)&regexWord != 0
	}
	return (before != after) == (anchor == 'b')
}

// maxNotes bounds the memory for noted failures, in 64-bit words (64 MiB). A longer text is noted as
// far as that reaches.
const maxNotes = 8 << 20

// watch starts to note failures, from where the search started.
func (n *notes) watch(re *regex, b []byte) {
	n.base = n.from
	n.limit = min(len(b)+1-n.base, maxNotes*64/len(re.code))
	words := (n.limit*len(re.code) + 63) / 64
	if cap(n.failed) < words {
		n.failed = make([]uint64, words)
	}
	n.failed = n.failed[:words]
	clear(n.failed)
}

// seen notes the state and says whether it was noted before.
func (n *notes) seen(re *regex, pc, pos int32) bool {
	at := int(pos) - n.base
	if at < 0 || at >= n.limit {
		return false
	}
	bit := at*len(re.code) + int(pc)
	w := &n.failed[bit>>6]
	old := *w>>(bit&63)&1 != 0
	*w |= 1 << (bit & 63)
	return old
}
