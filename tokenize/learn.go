package tokenize

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// LearnOptions say what vocabulary to learn.
type LearnOptions struct {
	Model        string // "wordpiece" (default) or "bpe" (byte-level)
	VocabSize    int    // at most this many tokens, specials included; default 8,000: a few weeks of mail fill no more
	MinFrequency int    // a joined pair occurs at least this often; default 2: what occurs once teaches nothing
	Lowercase    bool
}

const (
	defaultVocabSize = 8000
	// maxAlphabet is how many different characters a WordPiece vocabulary starts from. Rarer ones are
	// unknown: a mailbox with one Chinese newsletter would spend the vocabulary on them.
	maxAlphabet = 1000
	// maxWordBytes skips what is no word (base64, separators of 200 dashes).
	maxWordBytes = 100
	// maxWords bounds the memory of Add: at this many different words the rarest are forgotten.
	maxWords = 2 << 20
)

// Learner learns a vocabulary from text. Add every message, then Learn. The same texts in the same
// order give the same vocabulary. It is not safe for goroutines.
type Learner struct {
	opts    LearnOptions
	front   *Tokenizer // normalizer and pre-tokenizer only
	scratch scratch
	words   map[string]int32
	counts  []int64
	names   []string

	maxWords int
}

// NewLearner starts a vocabulary.
func NewLearner(o LearnOptions) *Learner {
	loadUnicode()
	if o.Model == "" {
		o.Model = "wordpiece"
	}
	if o.VocabSize == 0 {
		o.VocabSize = defaultVocabSize
	}
	if o.MinFrequency == 0 {
		o.MinFrequency = 2
	}
	l := &Learner{opts: o, front: &Tokenizer{}, words: map[string]int32{}, maxWords: maxWords}
	switch o.Model {
	case "wordpiece":
		l.front.normalize = []normalizer{newBertNormalizer(true, true, o.Lowercase, o.Lowercase)}
		l.front.split = []preTokenizer{newBertPreTokenizer()}
	case "bpe":
		if o.Lowercase {
			l.front.normalize = []normalizer{lowercase{}}
		}
		l.front.split = []preTokenizer{&byteLevel{pattern: newGPT2Splitter(), raw: true}}
	}
	return l
}

// Add counts the words of one message.
func (l *Learner) Add(text []byte) {
	s := &l.scratch
	if len(text) > MaxTextBytes {
		text = text[:MaxTextBytes]
	}
	if !utf8.Valid(text) {
		s.valid, s.marks = repair(s.valid, s.marks, text)
		text = s.valid
	}
	s.load(text, 0)
	for _, n := range l.front.normalize {
		n.normalize(s)
	}
	s.pieces = append(s.pieces[:0], piece{0, int32(len(s.text.b)), noID})
	for _, p := range l.front.split {
		p.split(s)
	}
	for _, p := range s.pieces {
		w := s.text.b[p.start:p.end]
		if len(w) == 0 || len(w) > maxWordBytes {
			continue
		}
		i, ok := l.words[string(w)]
		if !ok {
			i = int32(len(l.names))
			name := string(w)
			l.words[name] = i
			l.names = append(l.names, name)
			l.counts = append(l.counts, 0)
			if len(l.names) > l.maxWords {
				l.counts[i] = 1
				l.forget()
				continue
			}
		}
		l.counts[i]++
	}
	if s.borrowed {
		s.text.b, s.borrowed = s.parked, false
	}
}

// forget drops the rarest words until half of the room is free.
func (l *Learner) forget() {
	for floor := int64(1); len(l.names) > l.maxWords/2; floor *= 2 {
		kept := 0
		for i, name := range l.names {
			if l.counts[i] <= floor {
				delete(l.words, name)
				continue
			}
			l.names[kept], l.counts[kept] = name, l.counts[i]
			l.words[name] = int32(kept)
			kept++
		}
		l.names, l.counts = l.names[:kept], l.counts[:kept]
	}
}

// Learn makes the tokenizer. It fails when no text was added or the vocabulary is too small to hold
// the specials and the alphabet.
func (l *Learner) Learn() (*Tokenizer, error) {
	if len(l.names) == 0 {
		return nil, errors.New("learn a vocabulary: no text was added")
	}
	if l.opts.VocabSize < 0 || l.opts.VocabSize > maxID {
		return nil, fmt.Errorf("learn a vocabulary: size %d outside 1..%d", l.opts.VocabSize, maxID)
	}
	switch l.opts.Model {
	case "wordpiece":
		return l.learnWordPiece()
	case "bpe":
		return l.learnBPE()
	}
	return nil, fmt.Errorf("learn a vocabulary: unknown model %q; known: wordpiece, bpe", l.opts.Model)
}

// sortedWords returns the indices of the words by name, so that nothing depends on the order of a map
// or of the mail.
func (l *Learner) sortedWords() []int32 {
	order := make([]int32, len(l.names))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(l.names[a], l.names[b]) })
	return order
}

// alphabet returns the characters of the words, the most frequent maxAlphabet of them, sorted.
func (l *Learner) alphabet() []rune {
	counts := map[rune]int64{}
	for i, name := range l.names {
		for _, r := range name {
			counts[r] += l.counts[i]
		}
	}
	runes := make([]rune, 0, len(counts))
	for r := range counts {
		runes = append(runes, r)
	}
	slices.SortFunc(runes, func(a, b rune) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	runes = runes[:min(len(runes), maxAlphabet)]
	slices.Sort(runes)
	return runes
}

// bertSpecials are the first ids of a learned WordPiece vocabulary.
var bertSpecials = []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}

const subwordPrefix = "##"

func (l *Learner) learnWordPiece() (*Tokenizer, error) {
	tokens := slices.Clone(bertSpecials)
	ids := map[string]int32{}
	put := func(token string) int32 {
		id, ok := ids[token]
		if !ok {
			id = int32(len(tokens))
			ids[token] = id
			tokens = append(tokens, token)
		}
		return id
	}
	type forms struct{ first, inner int32 }
	byRune := map[rune]forms{}
	for _, r := range l.alphabet() {
		byRune[r] = forms{put(string(r)), put(subwordPrefix + string(r))}
	}
	if len(tokens) > l.opts.VocabSize {
		return nil, fmt.Errorf("learn a vocabulary: %d tokens asked for, the alphabet and the specials alone are %d", l.opts.VocabSize, len(tokens))
	}
	m := mergeLearner{
		join: func(a, b int32) int32 {
			return put(tokens[a] + strings.TrimPrefix(tokens[b], subwordPrefix))
		},
		merged: func(_, _, _ int32) {},
	}
	var word []int32
	for _, w := range l.sortedWords() {
		word = word[:0]
		for _, r := range l.names[w] {
			f, ok := byRune[r]
			if !ok {
				word = word[:0]
				break
			}
			if len(word) == 0 {
				word = append(word, f.first)
			} else {
				word = append(word, f.inner)
			}
		}
		if len(word) > 0 {
			m.add(word, l.counts[w])
		}
	}
	m.run(int64(l.opts.MinFrequency), func() bool { return len(tokens) < l.opts.VocabSize })
	return Parse(bertFile(tokens, fileConfig{lower: l.opts.Lowercase, strip: l.opts.Lowercase, chinese: true}))
}

// robertaSpecials are the first ids of a learned byte-level vocabulary.
var robertaSpecials = []string{"<s>", "<pad>", "</s>", "<unk>", "<mask>"}

func (l *Learner) learnBPE() (*Tokenizer, error) {
	tokens := slices.Clone(robertaSpecials)
	ids := map[string]int32{}
	put := func(token string) int32 {
		id, ok := ids[token]
		if !ok {
			id = int32(len(tokens))
			ids[token] = id
			tokens = append(tokens, token)
		}
		return id
	}
	var byByte [256]int32 // all bytes, so that nothing is ever unknown
	for b, r := range byteRunes {
		byByte[b] = put(string(r))
	}
	if len(tokens) > l.opts.VocabSize {
		return nil, fmt.Errorf("learn a vocabulary: %d tokens asked for, the bytes and the specials alone are %d", l.opts.VocabSize, len(tokens))
	}
	var merges []pair
	known := map[pair]bool{}
	m := mergeLearner{
		join: func(a, b int32) int32 { return put(tokens[a] + tokens[b]) },
		merged: func(a, b, _ int32) {
			if p := (pair{a, b}); !known[p] { // a pair may come up again when two ways make one token
				known[p] = true
				merges = append(merges, p)
			}
		},
	}
	var word []int32
	for _, w := range l.sortedWords() {
		word = word[:0]
		for _, c := range []byte(l.names[w]) {
			word = append(word, byByte[c])
		}
		m.add(word, l.counts[w])
	}
	m.run(int64(l.opts.MinFrequency), func() bool { return len(tokens) < l.opts.VocabSize })
	return Parse(robertaFile(tokens, merges, l.opts.Lowercase))
}
