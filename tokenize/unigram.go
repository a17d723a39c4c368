package tokenize

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"unicode/utf8"
)

// unigram splits a piece into the tokens whose scores (log probabilities) add up to the most (Kudo
// 2018), found by the Viterbi recurrence over the bytes of the piece.
type unigram struct {
	vocab        *vocab
	scores       []float64
	trie         *trie
	unk          int32 // noID: the file names none
	unkScore     float64
	byteFallback bool
	fallen       [256]int32
}

// unkPenalty is how much less than the rarest token an unknown character scores (SentencePiece,
// unigram_model.cc).
const unkPenalty = 10.0

func (m *unigram) cached() bool                  { return true }
func (m *unigram) id(token string) (int32, bool) { return m.vocab.id(token) }
func (m *unigram) token(id int32) (string, bool) { return m.vocab.token(id) }
func (m *unigram) size() int                     { return len(m.scores) }
func (m *unigram) maxID() int32                  { return int32(len(m.scores) - 1) }
func (m *unigram) name() string                  { return "Unigram" }

// readUnigram reads $.model of that type.
func readUnigram(v value) (model, error) {
	m := &unigram{vocab: newVocab(0), unk: noID}
	vocabValue := v.get("vocab")
	if vocabValue.isNull() {
		return nil, vocabValue.errorf("the vocabulary is missing")
	}
	least := math.Inf(1)
	err := vocabValue.array(func(i int, e value) error {
		parts, err := e.elements()
		if err != nil {
			return err
		}
		if len(parts) != 2 {
			return e.errorf("want [token, score], got %d elements", len(parts))
		}
		token, err := parts[0].str()
		if err != nil {
			return err
		}
		score, err := parts[1].float()
		if err != nil {
			return err
		}
		if i > maxID {
			return e.errorf("more than %d tokens", maxID)
		}
		m.vocab.set(token, int32(i)) // of equal tokens the last one counts, as in the reference
		m.scores = append(m.scores, score)
		least = min(least, score)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.scores) == 0 {
		return nil, vocabValue.errorf("the vocabulary is empty")
	}
	m.unkScore = least - unkPenalty
	if unkValue := v.get("unk_id"); !unkValue.isNull() {
		if m.unk, err = unkValue.id(); err != nil {
			return nil, err
		}
		if int(m.unk) >= len(m.scores) {
			return nil, unkValue.errorf("id %d is outside the vocabulary of %d", m.unk, len(m.scores))
		}
	}
	fallback := v.get("byte_fallback")
	if m.byteFallback, err = fallback.boolOr(false); err != nil {
		return nil, err
	}
	for b := range m.fallen {
		id, ok := m.vocab.id(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			id = noID
		}
		m.fallen[b] = id
	}
	m.build()
	return m, nil
}

func (m *unigram) build() {
	entries := make([]trieEntry, 0, m.vocab.len())
	for token, id := range m.vocab.ids {
		if token != "" {
			entries = append(entries, trieEntry{token, id})
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].key < entries[j].key })
	m.trie = newTrie(entries)
}

// bestPath is the best way to split what ends at a byte of the piece.
type bestPath struct {
	score float64
	start int32 // of its last token; -1: no way ends here
	id    int32
}

func (m *unigram) tokenize(s *scratch, p []byte) {
	best := slices.Grow(s.model.best[:0], len(p)+1)[:len(p)+1]
	s.model.best = best
	for i := range best {
		best[i] = bestPath{start: -1}
	}
	nodes := m.trie.nodes
	for at := 0; at < len(p); {
		here := best[at].score
		size := 1
		if p[at] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(p[at:])
		}
		single := false
		node := int32(0)
		for i := at; i < len(p); i++ {
			n := nodes[node].base ^ int32(p[i])
			nd := &nodes[n]
			if nd.parent != node {
				break
			}
			node = n
			if nd.value == noValue {
				continue
			}
			to := &best[i+1]
			if score := m.scores[nd.value] + here; to.start < 0 || score > to.score {
				*to = bestPath{score, int32(at), nd.value}
			}
			single = single || i+1-at == size
		}
		if !single {
			to := &best[at+size]
			if score := m.unkScore + here; to.start < 0 || score > to.score {
				*to = bestPath{score, int32(at), m.unk}
			}
		}
		at += size
	}
	m.follow(s, p, best)
}

// follow appends the tokens of the best path, which is read from its end. Neighbouring unknowns are
// one.
func (m *unigram) follow(s *scratch, p []byte, best []bestPath) {
	first := len(s.tokens)
	for end := int32(len(p)); end > 0; {
		x := best[end]
		start := x.start
		for x.id == m.unk && start > 0 && best[start].id == m.unk {
			start = best[start].start
		}
		switch {
		case x.id != m.unk:
			s.tokens = append(s.tokens, token{x.id, start, end})
		default:
			m.unknown(s, p, start, end)
		}
		end = start
	}
	for i, j := first, len(s.tokens)-1; i < j; i, j = i+1, j-1 {
		s.tokens[i], s.tokens[j] = s.tokens[j], s.tokens[i]
	}
}

// unknown appends bytes [start, end) of p, last byte first, as byte tokens or as the unknown token.
// Together the unknown characters may make up a token that lost as such.
func (m *unigram) unknown(s *scratch, p []byte, start, end int32) {
	b := p[start:end]
	if node := m.trie.walk(0, b); node >= 0 && m.trie.nodes[node].value != noValue {
		s.tokens = append(s.tokens, token{m.trie.nodes[node].value, start, end})
		return
	}
	if m.byteFallback {
		whole := true
		for _, c := range b {
			whole = whole && m.fallen[c] != noID
		}
		if whole {
			for i := len(b) - 1; i >= 0; i-- {
				s.tokens = append(s.tokens, token{m.fallen[b[i]], start, end})
			}
			return
		}
	}
	if m.unk == noID { // the reference fails here; there is no id to give
		return
	}
	if s.record {
		s.unknowns = append(s.unknowns, span{start, end})
	}
	s.tokens = append(s.tokens, token{m.unk, start, end})
}
