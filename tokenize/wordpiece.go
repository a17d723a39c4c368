package tokenize

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// wordPiece splits a word greedily into the longest pieces its vocabulary has; all pieces but the
// first are written with a prefix ("##"). A word that cannot be split whole is one unknown token.
type wordPiece struct {
	vocab    *vocab
	unk      int32
	maxChars int // longer words are unknown

	trie *trie
	next int32 // node of the trie after the prefix; -1 when no token has it
}

func newWordPiece(v *vocab, unk int32, prefix string, maxChars int) *wordPiece {
	m := &wordPiece{vocab: v, unk: unk, maxChars: maxChars}
	entries := make([]trieEntry, 0, v.len())
	for token, id := range v.ids {
		if token != "" {
			entries = append(entries, trieEntry{token, id})
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].key < entries[j].key })
	m.trie = newTrie(entries)
	m.next = m.trie.walk(0, []byte(prefix))
	return m
}

func (m *wordPiece) tokenize(s *scratch, p []byte) {
	mark := len(s.tokens)
	if len(p) > m.maxChars && utf8.RuneCount(p) > m.maxChars {
		s.tokens = append(s.tokens, token{m.unk, 0, int32(len(p))})
		return
	}
	node := int32(0)
	for at := 0; at < len(p); {
		n, id, ok := 0, int32(0), false
		if node >= 0 {
			n, id, ok = m.trie.longest(node, p[at:])
		}
		if !ok {
			s.tokens = append(s.tokens[:mark], token{m.unk, 0, int32(len(p))})
			return
		}
		s.tokens = append(s.tokens, token{id, int32(at), int32(at + n)})
		at += n
		node = m.next
	}
}

func (m *wordPiece) cached() bool                  { return true }
func (m *wordPiece) id(token string) (int32, bool) { return m.vocab.id(token) }
func (m *wordPiece) token(id int32) (string, bool) { return m.vocab.token(id) }
func (m *wordPiece) size() int                     { return m.vocab.len() }
func (m *wordPiece) maxID() int32                  { return int32(len(m.vocab.tokens) - 1) }
func (m *wordPiece) name() string                  { return "WordPiece" }

// readWordPiece reads $.model of that type.
func readWordPiece(v value) (model, error) {
	voc, err := readVocabObject(v.get("vocab"))
	if err != nil {
		return nil, err
	}
	unkValue := v.get("unk_token")
	unkToken, err := unkValue.strOr("[UNK]")
	if err != nil {
		return nil, err
	}
	unk, ok := voc.id(unkToken)
	if !ok {
		return nil, unkValue.errorf("the vocabulary has no %q", unkToken)
	}
	prefixValue := v.get("continuing_subword_prefix")
	prefix, err := prefixValue.strOr("##")
	if err != nil {
		return nil, err
	}
	maxValue := v.get("max_input_chars_per_word")
	maxChars, err := maxValue.intOr(100)
	if err != nil {
		return nil, err
	}
	if maxChars < 1 {
		return nil, maxValue.errorf("must be at least 1, got %d", maxChars)
	}
	return newWordPiece(voc, unk, prefix, maxChars), nil
}

// readVocabObject reads a vocabulary written as {"token": id}.
func readVocabObject(v value) (*vocab, error) {
	if v.isNull() {
		return nil, v.errorf("the vocabulary is missing")
	}
	voc := newVocab(strings.Count(string(v.raw), ":"))
	err := v.object(func(token string, e value) error {
		id, err := e.id()
		if err != nil {
			return err
		}
		if old, ok := voc.id(token); ok {
			return e.errorf("token given twice, with ids %d and %d", old, id)
		}
		if !voc.set(token, id) {
			return e.errorf("id %d belongs to %q already", id, voc.tokens[id])
		}
		return nil
	})
	if err == nil && voc.len() == 0 {
		err = v.errorf("the vocabulary is empty")
	}
	return voc, err
}
