package tokenize

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"
)

// Tokenizer turns text into token ids as the Hugging Face library of the same file format does: same
// ids, same offsets. It is immutable and safe for goroutines.
type Tokenizer struct {
	normalize []normalizer
	split     []preTokenizer
	model     model
	added     *addedTokens
	template  template
	trim      *trimOffsets // nil: offsets keep their white space

	literal    bool // special tokens in the text are text
	maxLength  int  // of tokenizer_config.json; 0 when unset
	warnings   []string
	sha        string
	padID      int32
	hasPad     bool
	pool       *scratchPool
	serialized []byte // what WriteFile writes
}

// model turns a piece into tokens.
type model interface {
	// tokenize appends the tokens of the scratch's text bytes p to s.tokens, offsets relative to p.
	tokenize(s *scratch, p []byte)
	// cached says whether the tokens of a piece may be remembered.
	cached() bool
	id(token string) (int32, bool)
	token(id int32) (string, bool)
	size() int    // number of tokens
	maxID() int32 // greatest id
	name() string
}

// MaxTextBytes is how much of one text Encode reads; offsets are 32 bits wide. Readers of mail refuse
// messages long before this size.
const MaxTextBytes = 1 << 30

// Encode replaces dst by the tokens of text, specials of the single-sequence template included. Any
// bytes are text: an invalid UTF-8 part counts as one U+FFFD. It keeps no reference to text and
// allocates nothing once dst and the tokenizer's own buffers have grown.
func (t *Tokenizer) Encode(dst *Encoding, text []byte) {
	s := t.pool.get()
	t.encode(dst, s, text)
	t.pool.put(s)
}

func (t *Tokenizer) encode(dst *Encoding, s *scratch, text []byte) {
	if len(text) > MaxTextBytes {
		text = text[:MaxTextBytes]
	}
	dst.reset()
	for _, sp := range t.template.before {
		dst.addSpecial(sp)
	}
	first := len(dst.IDs)
	broken := !utf8.Valid(text)
	if broken {
		s.valid, s.marks = repair(s.valid, s.marks, text)
		text = s.valid
	}
	t.added.raw.split(text, t.literal, func(start, end int, id int32) {
		if id >= 0 {
			dst.addText(id, span{int32(start), int32(end)})
			if s.record {
				s.texts = append(s.texts, string(text[start:end]))
			}
			return
		}
		t.encodeStretch(dst, s, text[start:end], start)
	})
	dst.fill(t.template.typeID)
	if t.trim != nil {
		t.trim.apply(dst, first, text, t)
	}
	if broken {
		unrepair(s.marks, dst.Start[first:])
		unrepair(s.marks, dst.End[first:])
	}
	for _, sp := range t.template.after {
		dst.addSpecial(sp)
	}
}

// encodeStretch encodes what lies between two added tokens that are matched before normalization.
func (t *Tokenizer) encodeStretch(dst *Encoding, s *scratch, stretch []byte, base int) {
	s.load(stretch, base)
	for _, n := range t.normalize {
		n.normalize(s)
	}
	s.pieces = s.pieces[:0]
	t.added.normalized.split(s.text.b, t.literal, func(start, end int, id int32) {
		s.pieces = append(s.pieces, piece{int32(start), int32(end), id})
	})
	for _, p := range t.split {
		p.split(s)
	}
	for _, p := range s.pieces {
		if p.id >= 0 {
			dst.addText(p.id, s.text.spanOf(int(p.start), int(p.end)))
			if s.record {
				s.texts = append(s.texts, string(s.text.b[p.start:p.end]))
			}
		} else if p.start < p.end {
			t.encodePiece(dst, s, p)
		}
	}
}

// encodePiece appends the model's tokens for a piece.
func (t *Tokenizer) encodePiece(dst *Encoding, s *scratch, p piece) {
	b := s.text.b[p.start:p.end]
	s.tokens = s.tokens[:0]
	if len(b) > maxCachedKey || s.record || !t.model.cached() {
		t.model.tokenize(s, b)
		t.appendTokens(dst, s, p)
		return
	}
	key := keyOf(b)
	e := s.cache.slot(&key, len(b))
	if !e.holds(&key, len(b)) {
		t.model.tokenize(s, b)
		e.store(&key, len(b), s.tokens)
		t.appendTokens(dst, s, p)
		return
	}
	start := int(p.start)
	for i := range int(e.n) {
		end := int(p.start) + int(e.ends[i])
		dst.addText(e.ids[i], s.text.spanOf(start, end))
		start = end
	}
}

func (t *Tokenizer) appendTokens(dst *Encoding, s *scratch, p piece) {
	if s.record {
		t.recordTexts(s, s.text.b[p.start:p.end])
	}
	for _, k := range s.tokens {
		dst.addText(k.id, s.text.spanOf(int(p.start+k.start), int(p.start+k.end)))
	}
}

// recordTexts appends the strings of the piece's tokens to s.texts.
func (t *Tokenizer) recordTexts(s *scratch, p []byte) {
	for _, k := range s.tokens {
		text, _ := t.model.token(k.id)
		if slices.Contains(s.unknowns, span{k.start, k.end}) {
			text = string(p[k.start:k.end])
		}
		s.texts = append(s.texts, text)
	}
	s.unknowns = s.unknowns[:0]
}

// EncodePieces is Encode that also returns the string of every token as the reference gives it: that of
// the vocabulary, for added tokens the text they matched, for unknown tokens of a Unigram model the
// text itself. It is for showing to a person; it allocates.
func (t *Tokenizer) EncodePieces(dst *Encoding, text []byte) []string {
	s := &scratch{record: true} // without a cache: strings are made anew
	t.encode(dst, s, text)
	var all []string
	for _, sp := range t.template.before {
		all = append(all, t.Token(sp.id))
	}
	all = append(all, s.texts...)
	for _, sp := range t.template.after {
		all = append(all, t.Token(sp.id))
	}
	return all
}

// Specials returns the ids the template puts before and after one sequence.
func (t *Tokenizer) Specials() (before, after []int32) {
	for _, sp := range t.template.before {
		before = append(before, sp.id)
	}
	for _, sp := range t.template.after {
		after = append(after, sp.id)
	}
	return before, after
}

// Token returns the token of an id, and "" for an id without one.
func (t *Tokenizer) Token(id int32) string {
	if a, ok := t.added.byID[id]; ok {
		return a.content
	}
	s, _ := t.model.token(id)
	return s
}

// ID returns the id of a token.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	return t.model.id(token)
}

// VocabSize is the number of tokens, added ones included.
func (t *Tokenizer) VocabSize() int {
	n := t.model.size()
	for token := range t.added.ids {
		if _, ok := t.model.id(token); !ok {
			n++
		}
	}
	return n
}

// MaxID is the greatest id: a model's embedding needs MaxID()+1 rows.
func (t *Tokenizer) MaxID() int32 {
	top := t.model.maxID()
	for id := range t.added.byID {
		top = max(top, id)
	}
	return top
}

// PadID returns the id of the padding token, if the tokenizer has one.
func (t *Tokenizer) PadID() (int32, bool) { return t.padID, t.hasPad }

// MaxLength is the cap tokenizer_config.json asks for, specials included; 0 when there is none.
func (t *Tokenizer) MaxLength() int { return t.maxLength }

// Describe names the tokenizer for a person: "WordPiece 30,522".
func (t *Tokenizer) Describe() string {
	return t.model.name() + " " + group(t.VocabSize())
}

// SHA256 is the checksum of the file, in hexadecimal.
func (t *Tokenizer) SHA256() string { return t.sha }

// Warnings lists what the file asks for and this package does not do by itself.
func (t *Tokenizer) Warnings() []string { return t.warnings }

// Literal returns a tokenizer that reads special tokens written out in a text as text. Mail is written
// by strangers: "[SEP]" in a message ends a sequence for the model unless this is used.
func (t *Tokenizer) Literal() *Tokenizer {
	c := *t
	c.literal = true
	c.pool = &scratchPool{}
	return &c
}

// SpecialTokens lists the special tokens of the file by id.
func (t *Tokenizer) SpecialTokens() []string {
	var all []addedToken
	for _, a := range t.added.byID {
		if a.special {
			all = append(all, a)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].id < all[j].id })
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.content
	}
	return names
}

// group writes n with commas.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (t *Tokenizer) String() string { return fmt.Sprintf("tokenizer %s", t.Describe()) }
