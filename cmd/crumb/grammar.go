package main

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// pool names the wording a message may use. Frames of a split section belong to one
// pool each, so a router cannot gain by remembering sentences.
type pool uint8

const (
	train pool = iota
	validation
	judged
	pools = 3
)

var poolNames = [pools]string{"train", "validation", "judged"}

// poolOfLine deals the lines of a split section out, twenty at a time: fourteen to
// training because it must cover the language, three each to the others. Where the
// twenty begin differs by section, so that first lines (the plainest) go to every pool.
// A line with a word that training would hardly know stays in training; see dealAll.
var poolOfLine = [20]pool{
	train, judged, train, train, validation, train, train, train, judged, train,
	validation, train, train, train, judged, train, train, validation, train, train,
}

// A template is text with choices: "{a|b}" is one of its parts, "$cake" a line of the
// section "cake" (the same all through a message; "$+cake" picks anew), "#" a digit,
// "%x", "%y" and "@" what the caller hands in.
type template []node

type node struct {
	kind    byte // one of the node kinds below
	text    string
	choices []template
	section *section
}

const (
	literal byte = iota
	choice
	slot      // the message's own line of a section
	freshSlot // any line of a section
	digit
	argX
	argY
	argCore
)

// section is one named list of lines.
type section struct {
	name   string
	split  bool // each line belongs to one pool
	partly bool // every second line does
	lines  []line
	pools  [pools][]int // for a pool, the indices of the lines it may use
	slot   int          // position of the message's own choice among composer.bound
}

type line struct {
	template
	suggests string // the queue a passing remark wrongly suggests, else empty
	usesCake bool
}

// grammar is the whole wording, by section name.
type grammar struct {
	sections map[string]*section
	stories  []*section
	slots    int
}

//go:embed wording/*.txt
var wordingFiles embed.FS

// loadGrammar parses the embedded wording. An error is a mistake in those files.
func loadGrammar() (*grammar, error) {
	g := &grammar{sections: make(map[string]*section)}
	entries, err := wordingFiles.ReadDir("wording")
	if err != nil {
		return nil, err
	}
	type pending struct {
		s    *section
		text string
		at   string
	}
	var lines []pending
	for _, e := range entries {
		text, err := wordingFiles.ReadFile("wording/" + e.Name())
		if err != nil {
			return nil, err
		}
		var s *section
		for i, l := range strings.Split(string(text), "\n") {
			at := fmt.Sprintf("%s:%d", e.Name(), i+1)
			switch {
			case l == "" || l[0] == '#' && strings.HasPrefix(l, "# "):
			case l[0] == '[':
				if s, err = g.open(l); err != nil {
					return nil, fmt.Errorf("%s: %w", at, err)
				}
			case s == nil:
				return nil, fmt.Errorf("%s: a line before the first section", at)
			default:
				lines = append(lines, pending{s, l, at})
			}
		}
	}
	// Only now are all sections known that a "$slot" may name.
	for _, p := range lines {
		if err := g.addLine(p.s, p.text); err != nil {
			return nil, fmt.Errorf("%s: %w", p.at, err)
		}
	}
	if err := g.dealAll(); err != nil {
		return nil, err
	}
	return g, g.check()
}

// open starts the section a header such as "[ask split]" names.
func (g *grammar) open(header string) (*section, error) {
	name, ok := strings.CutSuffix(header[1:], "]")
	if !ok {
		return nil, fmt.Errorf("section header %q has no closing bracket", header)
	}
	name, split := strings.CutSuffix(name, " split")
	name, partly := strings.CutSuffix(name, " partly")
	if g.sections[name] != nil {
		return nil, fmt.Errorf("section %q is there twice", name)
	}
	s := &section{name: name, split: split, partly: partly, slot: g.slots}
	g.slots++
	g.sections[name] = s
	if strings.HasPrefix(name, "story/") {
		g.stories = append(g.stories, s)
	}
	return s, nil
}

func (g *grammar) addLine(s *section, text string) error {
	var l line
	if tag, rest, ok := strings.Cut(text, "> "); ok {
		if queueNumber(tag) < 0 {
			return fmt.Errorf("%q is no queue", tag)
		}
		l.suggests, text = tag, rest
	}
	t, rest, err := g.parse(text)
	if err != nil {
		return err
	}
	if rest != "" {
		return fmt.Errorf("unexpected %q", rest)
	}
	l.template = t
	l.usesCake = strings.Contains(text, "$cake")
	s.lines = append(s.lines, l)
	return nil
}

// parse reads a template up to the end of the text, or to the "|" or "}" that ends a
// choice's part, and returns what follows.
func (g *grammar) parse(text string) (template, string, error) {
	var t template
	for text != "" {
		switch text[0] {
		case '|', '}':
			return t, text, nil
		case '{':
			n := node{kind: choice}
			for text[0] != '}' {
				part, rest, err := g.parse(text[1:])
				if err != nil {
					return nil, "", err
				}
				if rest == "" {
					return nil, "", fmt.Errorf("a { is never closed")
				}
				n.choices = append(n.choices, part)
				text = rest
			}
			t, text = append(t, n), text[1:]
		case '#':
			t, text = append(t, node{kind: digit}), text[1:]
		case '@':
			t, text = append(t, node{kind: argCore}), text[1:]
		case '%':
			kind := argX
			if strings.HasPrefix(text, "%y") {
				kind = argY
			}
			t, text = append(t, node{kind: kind}), text[2:]
		case '$':
			kind, rest := slot, text[1:]
			if strings.HasPrefix(rest, "+") {
				kind, rest = freshSlot, rest[1:]
			}
			end := strings.IndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })
			if end < 0 {
				end = len(rest)
			}
			s := g.sections[rest[:end]]
			if s == nil {
				return nil, "", fmt.Errorf("$%s names no section", rest[:end])
			}
			t, text = append(t, node{kind: kind, section: s}), rest[end:]
		default:
			end := strings.IndexAny(text, "{|}#@%$")
			if end < 0 {
				end = len(text)
			}
			t, text = append(t, node{kind: literal, text: text[:end]}), text[end:]
		}
	}
	return t, "", nil
}

// check makes sure that every section is there that composing asks for by name.
func (g *grammar) check() error {
	names := []string{
		"ask", "say", "not-this", "about-this", "swap", "it", "passing", "history",
		"thing/cake", "thing/delivery", "cake", "cake/eggless", "cake/nut-free", "with/eggless", "with/nut-free",
		"detail", "opening", "closing", "signature", "phone signature", "given name", "family name",
		"subject", "subject/phone", "subject/angry", "topic-subject", "shop", "shop more",
	}
	for _, v := range voiceNames {
		names = append(names, "hello/"+v, "bye/"+v)
	}
	for _, q := range queueNames {
		names = append(names, "do/"+q, "say/"+q, "more/"+q, "topic/"+q, "wish/"+q)
	}
	for _, name := range names {
		if g.sections[name] == nil {
			return fmt.Errorf("the wording has no section %q", name)
		}
	}
	return nil
}

// knownLines is how many training lines a word of the other pools stands in at least.
const knownLines = 4

// dealAll gives the lines of all sections to the pools. The validation and the judged
// pool get new sentences, not new words, as a router in use meets them: a line goes to
// them only if each of its words stays in knownLines lines of training. That looks at
// words alone, never at what a router makes of them.
func (g *grammar) dealAll() error {
	names := slices.Sorted(maps.Keys(g.sections))
	lines := make(map[string]int) // by word, the lines that training has it in
	for _, name := range names {
		for i := range g.sections[name].lines {
			for word := range g.sections[name].lines[i].words() {
				lines[word]++
			}
		}
	}
	for _, name := range names {
		if err := g.sections[name].deal(lines); err != nil {
			return err
		}
	}
	return nil
}

// deal gives the section's lines to the pools; lines counts what training has by word.
func (s *section) deal(lines map[string]int) error {
	phase := 0
	for _, b := range []byte(s.name) {
		phase = (phase*31 + int(b)) % len(poolOfLine)
	}
	var owed []pool // what earlier lines should have gone to
	dealt := 0
	for i := range s.lines {
		if !s.split && !(s.partly && i%2 == 1) {
			for p := range s.pools {
				s.pools[p] = append(s.pools[p], i)
			}
			continue
		}
		if p := poolOfLine[(dealt+phase)%len(poolOfLine)]; p != train {
			owed = append(owed, p)
		}
		dealt++
		p := train
		if len(owed) > 0 && s.lines[i].leave(lines) {
			p, owed = owed[0], owed[1:]
		}
		s.pools[p] = append(s.pools[p], i)
	}
	for p, lines := range s.pools {
		if len(lines) == 0 {
			return fmt.Errorf("section %q has no line for pool %s", s.name, poolNames[p])
		}
	}
	return nil
}

// leave takes a line's words from training's count, unless one of them would stand in too
// few of its lines then.
func (t template) leave(lines map[string]int) bool {
	words := t.words()
	for word := range words {
		if lines[word] <= knownLines {
			return false
		}
	}
	for word := range words {
		lines[word]--
	}
	return true
}

// words are the words of all that a line can say, slots aside, in lower case.
func (t template) words() map[string]bool {
	set := make(map[string]bool)
	t.addWords(set)
	return set
}

func (t template) addWords(set map[string]bool) {
	for _, n := range t {
		for _, word := range strings.FieldsFunc(strings.ToLower(n.text), func(r rune) bool { return !unicode.IsLetter(r) }) {
			set[word] = true
		}
		for _, c := range n.choices {
			c.addWords(set)
		}
	}
}
