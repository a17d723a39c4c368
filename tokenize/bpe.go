package tokenize

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// bpe merges neighbouring symbols, again and again the pair that was learned first (Sennrich et al.
// 2016). It starts from characters, or, raw, from bytes.
type bpe struct {
	vocab        *vocab
	merges       *mergeTable
	unk          int32 // noID: unknown characters are dropped
	prefix       string
	suffix       string
	fuseUnk      bool
	byteFallback bool
	ignoreMerges bool

	// raw: the pre-tokenizer before writes bytes as characters (byteLevel); pieces come as bytes and are
	// looked up by these.
	raw     bool
	bytes   [256]int32
	words   map[string]int32 // raw and ignoreMerges: tokens by their bytes
	fallen  [256]int32       // tokens "<0x00>" to "<0xFF>", noID where missing
	allFall bool             // no byte is missing
}

func (m *bpe) cached() bool                  { return true }
func (m *bpe) id(token string) (int32, bool) { return m.vocab.id(token) }
func (m *bpe) token(id int32) (string, bool) { return m.vocab.token(id) }
func (m *bpe) size() int                     { return m.vocab.len() }
func (m *bpe) maxID() int32                  { return int32(len(m.vocab.tokens) - 1) }
func (m *bpe) name() string                  { return "BPE" }

// readBPE reads $.model of that type.
func readBPE(v value) (model, error) {
	voc, err := readVocabObject(v.get("vocab"))
	if err != nil {
		return nil, err
	}
	m := &bpe{vocab: voc, unk: noID}
	text := func(name string) (s string) {
		if err == nil {
			member := v.get(name)
			s, err = member.strOr("")
		}
		return s
	}
	flag := func(name string) (b bool) {
		if err == nil {
			member := v.get(name)
			b, err = member.boolOr(false)
		}
		return b
	}
	unkToken := text("unk_token")
	m.prefix, m.suffix = text("continuing_subword_prefix"), text("end_of_word_suffix")
	m.fuseUnk, m.byteFallback, m.ignoreMerges = flag("fuse_unk"), flag("byte_fallback"), flag("ignore_merges")
	if err != nil {
		return nil, err
	}
	if unkValue := v.get("unk_token"); !unkValue.isNull() {
		id, ok := voc.id(unkToken)
		if ok {
			m.unk = id
		} else if unkToken != "" {
			return nil, unkValue.errorf("the vocabulary has no %q", unkToken)
		}
	}
	if dropout := v.get("dropout"); !dropout.isNull() {
		if p, err := dropout.float(); err != nil {
			return nil, err
		} else if p != 0 {
			return nil, dropout.errorf("a dropout of %g makes ids random; only null or 0 can be evaluated", p)
		}
	}
	m.readFallback()
	return m, m.readMerges(v.get("merges"))
}

func (m *bpe) readFallback() {
	m.allFall = true
	for b := range m.fallen {
		id, ok := m.vocab.id(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			id, m.allFall = noID, false
		}
		m.fallen[b] = id
	}
}

// readMerges reads the list of pairs, each ["a", "b"] or "a b". The result of every pair must be a token.
func (m *bpe) readMerges(v value) error {
	if v.isNull() {
		return v.errorf("the merges are missing")
	}
	m.merges = newMergeTable()
	cut := utf8.RuneCountInString(m.prefix)
	rank := int32(0)
	return v.array(func(_ int, e value) error {
		a, b, err := readMerge(e)
		if err != nil || a == "" && b == "" {
			return err
		}
		ida, ok := m.vocab.id(a)
		if !ok {
			return e.errorf("the vocabulary has no %q", a)
		}
		idb, ok := m.vocab.id(b)
		if !ok {
			return e.errorf("the vocabulary has no %q", b)
		}
		if len(b) < cut {
			return e.errorf("%q is shorter than the prefix %q", b, m.prefix)
		}
		to, ok := m.vocab.id(a + b[cut:])
		if !ok {
			return e.errorf("the vocabulary has no %q", a+b[cut:])
		}
		m.merges.set(ida, idb, merge{rank, to})
		rank++
		return nil
	})
}

func readMerge(e value) (a, b string, err error) {
	if e.kind() == "an array" {
		parts, err := e.elements()
		if err != nil {
			return "", "", err
		}
		if len(parts) != 2 {
			return "", "", e.errorf("a merge of %d tokens, want 2", len(parts))
		}
		if a, err = parts[0].str(); err != nil {
			return "", "", err
		}
		b, err = parts[1].str()
		return a, b, err
	}
	line, err := e.str()
	if err != nil || strings.HasPrefix(line, "#version") {
		return "", "", err
	}
	a, b, ok := strings.Cut(line, " ")
	if !ok || strings.Contains(b, " ") {
		return "", "", e.errorf("want two tokens with a space between, got %q", line)
	}
	return a, b, nil
}

// useBytes makes the model take pieces as bytes instead of the characters that stand for them; it is
// false when the vocabulary does not allow it.
func (m *bpe) useBytes() bool {
	if m.prefix != "" || m.suffix != "" {
		return false
	}
	for b := range m.bytes {
		id, ok := m.vocab.id(string(byteRunes[b]))
		if !ok {
			return false
		}
		m.bytes[b] = id
	}
	if m.ignoreMerges {
		m.words = make(map[string]int32, m.vocab.len())
		for token, id := range m.vocab.ids {
			if raw, ok := rawToken(token); ok {
				m.words[raw] = id
			}
		}
	}
	m.raw = true
	return true
}

// rawToken returns the bytes a byte-level token stands for.
func rawToken(token string) (string, bool) {
	raw := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		raw = append(raw, b)
	}
	return string(raw), true
}

// bpeScratch is memory of bpe.
type bpeScratch struct {
	symbols []symbol
	queue   mergeQueue
	key     []byte
}

func (b *bpeScratch) size() int { return 16*cap(b.symbols) + 12*cap(b.queue) + cap(b.key) }

// symbol is a part of a word in a linked list; length 0 marks one that was merged away.
type symbol struct{ id, length, prev, next int32 }

func (m *bpe) tokenize(s *scratch, p []byte) {
	if m.ignoreMerges {
		words := m.vocab.ids
		if m.raw {
			words = m.words
		}
		if id, ok := words[string(p)]; ok {
			s.tokens = append(s.tokens, token{id, 0, int32(len(p))})
			return
		}
	}
	b := &s.model.bpe
	b.symbols = b.symbols[:0]
	if m.raw {
		for i, c := range p {
			b.symbols = append(b.symbols, symbol{m.bytes[c], 1, int32(i - 1), int32(i + 1)})
		}
	} else {
		m.symbols(b, p)
	}
	if n := len(b.symbols); n > 0 {
		b.symbols[n-1].next = -1
		if n <= shortWord {
			m.mergeShort(b)
		} else {
			m.mergeLong(b)
		}
	}
	at := int32(0)
	for i := range b.symbols {
		if x := &b.symbols[i]; x.length > 0 {
			s.tokens = append(s.tokens, token{x.id, at, at + x.length})
			at += x.length
		}
	}
}

func (b *bpeScratch) add(id, length int32) {
	i := int32(len(b.symbols))
	b.symbols = append(b.symbols, symbol{id, length, i - 1, i + 1})
}

// symbols starts a word from its characters. An unknown one is written as bytes, or as the unknown
// token (one for a run of them when fused), or, with neither, dropped: what follows then moves
// forward in the offsets too, as in the reference.
func (m *bpe) symbols(b *bpeScratch, p []byte) {
	unk := int32(0) // bytes of unknown characters not yet added
	for i := 0; i < len(p); {
		_, n := utf8.DecodeRune(p[i:])
		key := p[i : i+n]
		if m.prefix != "" && i > 0 || m.suffix != "" && i+n == len(p) {
			b.key = b.key[:0]
			if i > 0 {
				b.key = append(b.key, m.prefix...)
			}
			b.key = append(b.key, p[i:i+n]...)
			if i+n == len(p) {
				b.key = append(b.key, m.suffix...)
			}
			key = b.key
		}
		i += n
		if id, ok := m.vocab.ids[string(key)]; ok {
			if unk > 0 {
				b.add(m.unk, unk)
				unk = 0
			}
			b.add(id, int32(n))
			continue
		}
		if m.byteFallback && m.fall(b, key) {
			continue
		}
		if m.unk == noID {
			continue
		}
		if unk > 0 && !m.fuseUnk {
			b.add(m.unk, unk)
			unk = 0
		}
		unk += int32(n)
	}
	if unk > 0 {
		b.add(m.unk, unk)
	}
}

// fall adds the bytes of an unknown character as tokens, if there is one for each.
func (m *bpe) fall(b *bpeScratch, key []byte) bool {
	for _, c := range key {
		if m.fallen[c] == noID {
			return false
		}
	}
	for _, c := range key {
		b.add(m.fallen[c], 1)
	}
	return true
}

// shortWord is up to how many symbols looking at every pair anew is faster than a queue.
const shortWord = 24

// mergeShort merges by looking for the best pair again and again.
func (m *bpe) mergeShort(b *bpeScratch) {
	var ranks [shortWord]merge // of the pair that starts at a symbol; rank -1 for none
	sym := b.symbols
	look := func(i int32) {
		ranks[i].rank = -1
		if j := sym[i].next; j >= 0 {
			if to, ok := m.merges.get(sym[i].id, sym[j].id); ok {
				ranks[i] = to
			}
		}
	}
	for i := range sym {
		look(int32(i))
	}
	for {
		best := int32(-1)
		for i := int32(0); i >= 0; i = sym[i].next {
			if r := ranks[i].rank; r >= 0 && (best < 0 || r < ranks[best].rank) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		m.join(sym, best, ranks[best].id)
		look(best)
		if p := sym[best].prev; p >= 0 {
			look(p)
		}
	}
}

// join merges symbol i with the next one.
func (m *bpe) join(sym []symbol, i, id int32) {
	j := sym[i].next
	sym[i].id = id
	sym[i].length += sym[j].length
	sym[i].next = sym[j].next
	sym[j].length = 0
	if k := sym[i].next; k >= 0 {
		sym[k].prev = i
	}
}

// candidate is a pair that may be merged.
type candidate struct{ rank, at, id int32 }

// mergeQueue gives the pair learned first, of equal ones the leftmost.
type mergeQueue []candidate

// The queue is a binary heap written out: container/heap would allocate for every candidate.

func (q mergeQueue) before(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}

func (q *mergeQueue) push(c candidate) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *mergeQueue) pop() candidate {
	h := *q
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		if l := 2*i + 1; l < last && h.before(l, least) {
			least = l
		}
		if r := 2*i + 2; r < last && h.before(r, least) {
			least = r
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return top
}

// mergeLong merges by a queue of candidates, in n log n.
func (m *bpe) mergeLong(b *bpeScratch) {
	sym := b.symbols
	b.queue = b.queue[:0]
	look := func(i int32) {
		if j := sym[i].next; j >= 0 {
			if to, ok := m.merges.get(sym[i].id, sym[j].id); ok {
				b.queue.push(candidate{to.rank, i, to.id})
			}
		}
	}
	for i := range sym {
		look(int32(i))
	}
	for len(b.queue) > 0 {
		c := b.queue.pop()
		x := &sym[c.at]
		if x.length == 0 || x.next < 0 {
			continue
		}
		// The symbols may have grown since: the pair has to make the same token still.
		to, ok := m.merges.get(x.id, sym[x.next].id)
		if !ok || to.id != c.id {
			continue
		}
		m.join(sym, c.at, c.id)
		look(c.at)
		if p := x.prev; p >= 0 {
			look(p)
		}
	}
}
