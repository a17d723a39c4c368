package tokenize

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The patterns of tokenizer.json files are written for Oniguruma (Ruby syntax). Go's regexp lacks their
// look-around and knows another Unicode, so this package has a small engine of its own: regex_parse.go
// reads a pattern into a tree, regex.go compiles and runs it. What it does not know is an error.

type nodeKind uint8

const (
	nodeEmpty  nodeKind = iota
	nodeSet             // one character of a set
	nodeConcat          // all of kids
	nodeAlt             // the first of kids that leads to a match
	nodeRepeat          // kids[0] min to max times
	nodeLook            // kids[0] matches here (or, negated, does not) and is not consumed
	nodeAtomic          // the first match of kids[0], for good
	nodeAnchor          // a place between characters
)

const unlimited = -1

type node struct {
	kind       nodeKind
	set        *charSet
	kids       []*node
	min, max   int
	lazy       bool
	possessive bool
	negated    bool
	behind     bool // look-behind
	anchor     byte // ^ $ A z Z b B
}

type regexParser struct {
	src   string
	pos   int
	fold  bool // (?i)
	dot   bool // (?m): . matches a line end too
	depth int

	inClass int // brackets open
}

// maxRegexDepth and maxRepeat bound what a hostile file can ask for.
const (
	maxRegexDepth = 100
	maxRepeat     = 1000
)

func (p *regexParser) errorf(format string, args ...any) error {
	return fmt.Errorf("pattern %q at byte %d: "+format, append([]any{p.src, p.pos}, args...)...)
}

func (p *regexParser) more() bool { return p.pos < len(p.src) }

func (p *regexParser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *regexParser) accept(s string) bool {
	if strings.HasPrefix(p.src[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *regexParser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	return r
}

// alternation reads branches up to a closing parenthesis or the end. Flags set inside hold to its end.
func (p *regexParser) alternation() (*node, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return nil, p.errorf("groups nested more than %d deep", maxRegexDepth)
	}
	fold, dot := p.fold, p.dot
	defer func() { p.depth, p.fold, p.dot = p.depth-1, fold, dot }()
	alt := &node{kind: nodeAlt}
	for {
		branch, err := p.concat()
		if err != nil {
			return nil, err
		}
		alt.kids = append(alt.kids, branch)
		if !p.accept("|") {
			break
		}
	}
	if len(alt.kids) == 1 {
		return alt.kids[0], nil
	}
	return alt, nil
}

func (p *regexParser) concat() (*node, error) {
	seq := &node{kind: nodeConcat}
	for p.more() && p.peek() != '|' && p.peek() != ')' {
		item, err := p.atom()
		if err != nil {
			return nil, err
		}
		if item == nil { // flags for the rest of the group
			rest, err := p.alternation()
			if err != nil {
				return nil, err
			}
			seq.kids = append(seq.kids, rest)
			break
		}
		if item, err = p.quantified(item); err != nil {
			return nil, err
		}
		seq.kids = append(seq.kids, item)
	}
	if len(seq.kids) == 1 {
		return seq.kids[0], nil
	}
	return seq, nil
}

// quantified reads the quantifiers after item.
func (p *regexParser) quantified(item *node) (*node, error) {
	for p.more() {
		lo, hi, interval := 0, 0, false
		switch c := p.peek(); {
		case c == '*':
			lo, hi = 0, unlimited
			p.pos++
		case c == '+':
			lo, hi = 1, unlimited
			p.pos++
		case c == '?':
			lo, hi = 0, 1
			p.pos++
		case c == '{':
			var ok bool
			if lo, hi, ok = p.interval(); !ok {
				return item, nil // a literal brace
			}
			interval = true
		default:
			return item, nil
		}
		if lo > maxRepeat || hi > maxRepeat || hi != unlimited && hi < lo {
			return nil, p.errorf("repetition {%d,%d} outside 0..%d", lo, hi, maxRepeat)
		}
		item = &node{kind: nodeRepeat, kids: []*node{item}, min: lo, max: hi}
		if p.accept("?") {
			item.lazy = true
		} else if !interval && p.accept("+") { // {n,m}+ repeats the repetition in Ruby's syntax
			item.possessive = true
		}
	}
	return item, nil
}

// interval reads {n}, {n,}, {,m} or {n,m}.
func (p *regexParser) interval() (lo, hi int, ok bool) {
	end := strings.IndexByte(p.src[p.pos:], '}')
	if end < 0 {
		return 0, 0, false
	}
	body := p.src[p.pos+1 : p.pos+end]
	from, to, comma := strings.Cut(body, ",")
	number := func(s string, absent int) (int, bool) {
		if s == "" {
			return absent, true
		}
		n, err := strconv.ParseUint(s, 10, 31)
		return int(n), err == nil
	}
	lo, okLo := number(from, 0)
	hi, okHi := number(to, unlimited)
	if !comma {
		hi = lo
	}
	if !okLo || !okHi || from == "" && to == "" {
		return 0, 0, false
	}
	p.pos += end + 1
	return lo, hi, true
}

// atom reads one item without its quantifiers; nil stands for flags that hold from here on.
func (p *regexParser) atom() (*node, error) {
	switch c := p.peek(); c {
	case '(':
		p.pos++
		return p.group()
	case '[':
		p.pos++
		set, err := p.class()
		if err != nil {
			return nil, err
		}
		return &node{kind: nodeSet, set: set.folded(p.fold)}, nil
	case '.':
		p.pos++
		set := &charSet{negated: true}
		if !p.dot {
			set.addRange('\n', '\n')
		}
		return &node{kind: nodeSet, set: set}, nil
	case '^', '$':
		p.pos++
		return &node{kind: nodeAnchor, anchor: c}, nil
	case '*', '+', '?':
		return nil, p.errorf("%q repeats nothing", c)
	case '\\':
		p.pos++
		return p.escape()
	}
	return p.single(p.rune()), nil
}

func (p *regexParser) single(r rune) *node {
	set := &charSet{}
	set.addRange(r, r)
	return &node{kind: nodeSet, set: set.folded(p.fold)}
}

// group reads what follows an opening parenthesis.
func (p *regexParser) group() (*node, error) {
	wrap := &node{kind: nodeConcat}
	if p.accept("?") {
		switch {
		case p.accept(":"):
		case p.accept("="):
			wrap.kind = nodeLook
		case p.accept("!"):
			wrap.kind, wrap.negated = nodeLook, true
		case p.accept("<="):
			wrap.kind, wrap.behind = nodeLook, true
		case p.accept("<!"):
			wrap.kind, wrap.behind, wrap.negated = nodeLook, true, true
		case p.accept(">"):
			wrap.kind = nodeAtomic
		case p.accept("#"):
			end := strings.IndexByte(p.src[p.pos:], ')')
			if end < 0 {
				return nil, p.errorf("a comment without end")
			}
			p.pos += end + 1
			return &node{kind: nodeEmpty}, nil
		case p.accept("<") || p.accept("'") || p.accept("P<"): // a named group
			end := strings.IndexAny(p.src[p.pos:], ">'")
			if end < 0 {
				return nil, p.errorf("a group's name without end")
			}
			p.pos += end + 1
		default:
			return p.flags()
		}
	}
	inner, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, p.errorf("a group without end")
	}
	wrap.kids = []*node{inner}
	if wrap.behind {
		if lo, hi := inner.width(); lo != hi || hi == unlimited {
			return nil, p.errorf("a look-behind of variable length is not supported")
		}
	}
	return wrap, nil
}

// flags reads (?i), (?i:...), (?-i) and so on.
func (p *regexParser) flags() (*node, error) {
	fold, dot, on := p.fold, p.dot, true
	for p.more() {
		switch c := p.peek(); c {
		case '-':
			on = false
		case 'i':
			fold = on
		case 'm':
			dot = on
		case 's', 'u', 'x':
			if c == 'x' && on {
				return nil, p.errorf("flag %q is not supported", c)
			}
		case ')':
			p.pos++
			p.fold, p.dot = fold, dot
			return nil, nil
		case ':':
			p.pos++
			oldFold, oldDot := p.fold, p.dot
			p.fold, p.dot = fold, dot
			inner, err := p.alternation()
			p.fold, p.dot = oldFold, oldDot
			if err != nil {
				return nil, err
			}
			if !p.accept(")") {
				return nil, p.errorf("a group without end")
			}
			return &node{kind: nodeConcat, kids: []*node{inner}}, nil
		default:
			return nil, p.errorf("unknown group (?%c", c)
		}
		p.pos++
	}
	return nil, p.errorf("a group without end")
}

// escape reads what follows a backslash outside a class.
func (p *regexParser) escape() (*node, error) {
	switch c := p.peek(); c {
	case 'A', 'z', 'Z', 'b', 'B':
		p.pos++
		return &node{kind: nodeAnchor, anchor: c}, nil
	case '1', '2', '3', '4', '5', '6', '7', '8', '9', 'k', 'g', 'G', 'K', 'X', 'R', 'N', 'O', 'y', 'Y':
		return nil, p.errorf("\\%c is not supported", c)
	}
	set := &charSet{}
	if err := p.escapeInto(set); err != nil {
		return nil, err
	}
	return &node{kind: nodeSet, set: set.folded(p.fold)}, nil
}

// escapeInto adds what an escape stands for, in a class or outside one, to set.
func (p *regexParser) escapeInto(set *charSet) error {
	r, isSet, err := p.escaped(set)
	if err == nil && !isSet {
		set.addRange(r, r)
	}
	return err
}

// escaped reads an escape: a character, or a set that it adds to set.
func (p *regexParser) escaped(set *charSet) (r rune, isSet bool, err error) {
	if !p.more() {
		return 0, false, p.errorf("a backslash at the end")
	}
	switch c := p.rune(); c {
	case 'n':
		return '\n', false, nil
	case 'r':
		return '\r', false, nil
	case 't':
		return '\t', false, nil
	case 'f':
		return '\f', false, nil
	case 'v':
		return '\v', false, nil
	case 'a':
		return '\a', false, nil
	case 'e':
		return 0x1B, false, nil
	case '0':
		return 0, false, nil
	case 'x', 'u':
		r, err = p.hex(c)
		return r, false, err
	case 'p', 'P':
		item, err := p.property(c == 'P')
		if err == nil {
			set.items = append(set.items, item)
		}
		return 0, true, err
	case 's', 'S', 'w', 'W', 'd', 'D', 'h', 'H':
		name := "\\" + string(unicode.ToLower(c))
		if p.inClass > 0 && name == `\w` {
			name = "[word"
		}
		class := classes[name]
		set.items = append(set.items, setItem{class: class, negated: unicode.IsUpper(c)})
		return 0, true, nil
	default:
		if c < utf8.RuneSelf && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '1' && c <= '9') {
			return 0, false, p.errorf("\\%c is not supported", c)
		}
		return c, false, nil
	}
}

// hex reads the digits of \xHH, \x{H...} or \uHHHH.
func (p *regexParser) hex(kind rune) (rune, error) {
	digits, rest := "", p.src[p.pos:]
	switch {
	case kind == 'x' && strings.HasPrefix(rest, "{"):
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return 0, p.errorf("\\x{ without end")
		}
		digits = rest[1:end]
		p.pos += end + 1
	case kind == 'x':
		n := 0
		for n < 2 && n < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[n]) >= 0 {
			n++
		}
		digits = rest[:n]
		p.pos += n
	default:
		digits = rest[:min(4, len(rest))]
		p.pos += len(digits)
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || v > unicode.MaxRune {
		return 0, p.errorf("%q is no code point", digits)
	}
	return rune(v), nil
}

// property reads {L}, {^Lu}, {Han} after \p or \P.
func (p *regexParser) property(negated bool) (setItem, error) {
	rest := p.src[p.pos:]
	end := strings.IndexByte(rest, '}')
	if !strings.HasPrefix(rest, "{") || end < 0 {
		return setItem{}, p.errorf("a property without braces is not supported")
	}
	name := rest[1:end]
	if strings.HasPrefix(name, "^") {
		name, negated = name[1:], !negated
	}
	key := strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(name))
	if p.inClass > 0 && key == "word" {
		key = "[word"
	}
	class, ok := classes[key]
	if !ok {
		return setItem{}, p.errorf("unknown property %q", name)
	}
	p.pos += end + 1
	return setItem{class: class, negated: negated}, nil
}

// class reads what follows an opening bracket.
func (p *regexParser) class() (*charSet, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return nil, p.errorf("classes nested more than %d deep", maxRegexDepth)
	}
	p.inClass++
	defer func() { p.depth--; p.inClass-- }()
	set := &charSet{negated: p.accept("^")}
	first := true
	for {
		if !p.more() {
			return nil, p.errorf("a class without end")
		}
		switch {
		case p.peek() == ']' && !first:
			p.pos++
			return set, nil
		case p.accept("&&"):
			right, err := p.classRest()
			if err != nil {
				return nil, err
			}
			left := *set
			left.negated = false
			return &charSet{negated: set.negated, items: []setItem{{both: []*charSet{&left, right}}}}, nil
		case strings.HasPrefix(p.src[p.pos:], "[:"):
			item, ok, err := p.posix()
			if err != nil {
				return nil, err
			}
			if ok {
				set.items = append(set.items, item)
				break
			}
			fallthrough
		case p.peek() == '[':
			p.pos++
			inner, err := p.class()
			if err != nil {
				return nil, err
			}
			set.items = append(set.items, setItem{both: []*charSet{inner}})
		default:
			if err := p.classRange(set); err != nil {
				return nil, err
			}
		}
		first = false
	}
}

// classRest reads the right side of an intersection, up to the closing bracket.
func (p *regexParser) classRest() (*charSet, error) {
	start := p.pos
	if p.peek() == ']' {
		return nil, p.errorf("an empty side of &&")
	}
	set, err := p.class() // a "^" here negates this side alone, as in Ruby's syntax
	if err != nil {
		p.pos = start
	}
	return set, err
}

// posix reads [:name:] inside a class.
func (p *regexParser) posix() (setItem, bool, error) {
	rest := p.src[p.pos+2:]
	end := strings.Index(rest, ":]")
	if end < 0 || strings.ContainsAny(rest[:end], "[]\\") {
		return setItem{}, false, nil
	}
	name := rest[:end]
	negated := strings.HasPrefix(name, "^")
	class, ok := classes["["+strings.TrimPrefix(name, "^")]
	if !ok {
		return setItem{}, false, p.errorf("unknown class [:%s:]", name)
	}
	p.pos += 2 + end + 2
	return setItem{class: class, negated: negated}, true, nil
}

// classRange reads one character, range or escape of a class.
func (p *regexParser) classRange(set *charSet) error {
	one := func() (rune, bool, error) {
		if p.accept("\\") {
			if p.accept("b") {
				return '\b', false, nil
			}
			return p.escaped(set)
		}
		return p.rune(), false, nil
	}
	lo, isSet, err := one()
	if err != nil || isSet {
		return err
	}
	rest := p.src[p.pos:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '[' {
		set.addRange(lo, lo)
		return nil
	}
	p.pos++
	hi, isSet, err := one()
	if err != nil {
		return err
	}
	if isSet { // [a-\d]: a, the dash and the digits
		set.addRange(lo, lo)
		set.addRange('-', '-')
		return nil
	}
	if hi < lo {
		return p.errorf("a range from %q to %q", lo, hi)
	}
	set.addRange(lo, hi)
	return nil
}

// width returns the least and greatest number of characters a node matches.
func (n *node) width() (lo, hi int) {
	switch n.kind {
	case nodeSet:
		return 1, 1
	case nodeConcat, nodeAtomic:
		for _, k := range n.kids {
			a, b := k.width()
			lo += a
			if hi == unlimited || b == unlimited {
				hi = unlimited
			} else {
				hi += b
			}
		}
	case nodeAlt:
		for i, k := range n.kids {
			a, b := k.width()
			if i == 0 {
				lo, hi = a, b
				continue
			}
			lo = min(lo, a)
			if hi == unlimited || b == unlimited {
				hi = unlimited
			} else {
				hi = max(hi, b)
			}
		}
	case nodeRepeat:
		a, b := n.kids[0].width()
		lo = a * n.min
		switch {
		case b == 0:
			hi = 0
		case b == unlimited || n.max == unlimited:
			hi = unlimited
		default:
			hi = b * n.max
		}
	}
	return lo, hi
}

// classes are the named sets of characters: general categories, some properties and scripts by their
// folded names, \s and its like by their letters, POSIX brackets behind a "[".
var classes = func() map[string]func(rune) bool {
	m := map[string]func(rune) bool{}
	groups := map[string][]uint32{
		"l": {catLu, catLl, catLt, catLm, catLo}, "m": {catMn, catMc, catMe}, "n": {catNd, catNl, catNo},
		"p": {catPc, catPd, catPs, catPe, catPi, catPf, catPo}, "s": {catSm, catSc, catSk, catSo},
		"z": {catZs, catZl, catZp}, "c": {catCc, catCf, catCo, catCn, catCs}, "lc": {catLu, catLl, catLt},
	}
	for i, name := range strings.Fields("cn lu ll lt lm lo mn mc me nd nl no pc pd ps pe pi pf po sm sc sk so zs zl zp cc cf co cs") {
		groups[name] = []uint32{uint32(i)}
	}
	for name, cats := range groups {
		var mask uint32
		for _, c := range cats {
			mask |= 1 << c
		}
		m[name] = func(r rune) bool { return mask>>category(r)&1 != 0 }
	}
	for long, short := range map[string]string{
		"letter": "l", "mark": "m", "number": "n", "punctuation": "p", "symbol": "s", "separator": "z", "other": "c",
		"uppercaseletter": "lu", "lowercaseletter": "ll", "titlecaseletter": "lt", "modifierletter": "lm", "otherletter": "lo",
		"nonspacingmark": "mn", "spacingmark": "mc", "enclosingmark": "me", "decimalnumber": "nd", "letternumber": "nl",
		"othernumber": "no", "connectorpunctuation": "pc", "dashpunctuation": "pd", "openpunctuation": "ps",
		"closepunctuation": "pe", "initialpunctuation": "pi", "finalpunctuation": "pf", "otherpunctuation": "po",
		"mathsymbol": "sm", "currencysymbol": "sc", "modifiersymbol": "sk", "othersymbol": "so", "spaceseparator": "zs",
		"lineseparator": "zl", "paragraphseparator": "zp", "control": "cc", "format": "cf", "privateuse": "co", "unassigned": "cn",
	} {
		m[long] = m[short]
	}
	for i, name := range strings.Fields("han hiragana katakana hangul thai latin cyrillic greek arabic hebrew devanagari lao myanmar khmer tibetan") {
		m[name] = func(r rune) bool { return uni.word(r)>>scriptShift == uint32(i+1) }
	}
	alpha := func(r rune) bool { return uni.word(r)&regexAlpha != 0 }
	space := func(r rune) bool { return isSpace(r) }
	digit := func(r rune) bool { return category(r) == catNd }
	upper := func(r rune) bool { return uni.word(r)&regexUpper != 0 }
	lower := func(r rune) bool { return uni.word(r)&regexLower != 0 }
	ascii := func(r rune) bool { return r < utf8.RuneSelf }
	m["word"] = func(r rune) bool { return uni.word(r)&regexWord != 0 }
	m["\\s"], m["\\w"], m["\\d"], m["\\h"] = space, m["word"], digit, isHexDigit
	m["alpha"], m["alphabetic"], m["digit"], m["space"], m["whitespace"] = alpha, alpha, digit, space, space
	m["alnum"] = func(r rune) bool { return alpha(r) || digit(r) }
	m["punct"] = m["p"]
	m["ascii"], m["any"] = ascii, func(rune) bool { return true }
	m["upper"], m["uppercase"] = upper, upper
	m["lower"], m["lowercase"] = lower, lower
	m["cntrl"] = m["cc"]
	m["xdigit"] = isHexDigit
	m["blank"] = func(r rune) bool { return r == '\t' || category(r) == catZs }
	// In brackets two classes are others than outside: symbols count as punctuation, and of the numbers
	// of Latin-1 (superscripts, fractions) none as a word character.
	for _, name := range strings.Fields("alpha digit space alnum ascii upper lower cntrl xdigit blank") {
		m["["+name] = m[name]
	}
	m["[punct"] = func(r rune) bool { c := category(r); return c >= catPc && c <= catSo }
	m["[word"] = func(r rune) bool { return uni.word(r)&regexWord != 0 && (r >= 0x100 || category(r) != catNo) }
	return m
}()

func isHexDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
}

// charSet is a set of characters: its items, or all others.
type charSet struct {
	negated bool
	ranges  []rune // pairs, inclusive
	items   []setItem
	fold    bool
}

// setItem is a named set, or the intersection of sets.
type setItem struct {
	class   func(rune) bool
	both    []*charSet
	negated bool
}

func (s *charSet) addRange(lo, hi rune) { s.ranges = append(s.ranges, lo, hi) }

// folded makes the set match without regard to case.
func (s *charSet) folded(fold bool) *charSet {
	s.fold = s.fold || fold
	return s
}

// has is the definition of the set; the compiled form tabulates it.
func (s *charSet) has(r rune) bool {
	in := s.positive(r)
	if s.fold && !in {
		for f := unicode.SimpleFold(r); f != r && !in; f = unicode.SimpleFold(f) {
			in = s.positive(f)
		}
	}
	return in != s.negated
}

func (s *charSet) positive(r rune) bool {
	for i := 0; i < len(s.ranges); i += 2 {
		if r >= s.ranges[i] && r <= s.ranges[i+1] {
			return true
		}
	}
	for _, item := range s.items {
		if item.has(r) != item.negated {
			return true
		}
	}
	return false
}

func (i *setItem) has(r rune) bool {
	if i.class != nil {
		return i.class(r)
	}
	return !slices.ContainsFunc(i.both, func(s *charSet) bool { return !s.has(r) })
}
