package tokenize

import (
	"sort"
	"unicode/utf8"
)

// addedToken is a token matched before the model sees the text.
type addedToken struct {
	content    string
	id         int32
	singleWord bool // only between characters that are no word characters
	lstrip     bool // takes the white space before it
	rstrip     bool // takes the white space after it
	normalized bool // matched after normalization, itself normalized
	special    bool
}

// addedTokens holds a tokenizer's added tokens: those matched in the raw text and those matched in
// the normalized one.
type addedTokens struct {
	ids        map[string]int32
	byID       map[int32]addedToken
	raw        matcher
	normalized matcher
}

// matcher finds the leftmost longest of a set of strings.
type matcher struct {
	tokens []addedToken
	trie   *trie
	first  [256]bool // bytes a token starts with
}

// newMatcher takes the tokens with the strings they are matched by. The earlier of two tokens with one
// string wins.
func newMatcher(tokens []addedToken, patterns []string) matcher {
	m := matcher{tokens: tokens}
	var entries []trieEntry
	seen := map[string]bool{}
	for i, p := range patterns {
		if p == "" || seen[p] {
			continue
		}
		seen[p] = true
		m.first[p[0]] = true
		entries = append(entries, trieEntry{p, int32(i)})
	}
	if len(entries) > 0 {
		sort.Slice(entries, func(i, j int) bool { return entries[i].key < entries[j].key })
		m.trie = newTrie(entries)
	}
	return m
}

// split calls fn for every part of b in order: the tokens found, with their id, and the text between
// them, with noID. When literal is set, special tokens are text.
func (m *matcher) split(b []byte, literal bool, fn func(start, end int, id int32)) {
	if m.trie == nil {
		if len(b) > 0 {
			fn(0, len(b), noID)
		}
		return
	}
	done := 0
	spaceEnd := 0 // where the white space last looked over ends: a run is looked over once
	for i := 0; i < len(b); {
		if !m.first[b[i]] {
			i++
			continue
		}
		n, at, ok := m.trie.longest(0, b[i:])
		if !ok {
			i++
			continue
		}
		start, end := i, i+n
		i = end
		tok := &m.tokens[at]
		if literal && tok.special {
			continue
		}
		if tok.singleWord && (start > 0 && endsWithWord(b[:start]) || end < len(b) && startsWithWord(b[end:])) {
			continue
		}
		if tok.lstrip {
			if done < start {
				start -= trailingSpace(b[done:start])
			} else {
				start = done
			}
		}
		if tok.rstrip {
			if end > spaceEnd || spaceEnd == len(b) && end == len(b) {
				spaceEnd = end + leadingSpace(b[end:])
			}
			end = max(end, spaceEnd)
		}
		if done < start {
			fn(done, start, noID)
		}
		if start < end { // else the token before took all of it
			fn(start, end, tok.id)
		}
		done = end
	}
	if done < len(b) {
		fn(done, len(b), noID)
	}
}

func startsWithWord(b []byte) bool {
	r, _ := utf8.DecodeRune(b)
	return isWord(r)
}

func endsWithWord(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return isWord(r)
}

// leadingSpace is the number of bytes of white space that b starts with.
func leadingSpace(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if !isSpace(r) {
			break
		}
		n += size
	}
	return n
}

// trailingSpace is the number of bytes of white space that b ends with.
func trailingSpace(b []byte) int {
	n := len(b)
	for n > 0 {
		r, size := utf8.DecodeLastRune(b[:n])
		if !isSpace(r) {
			break
		}
		n -= size
	}
	return len(b) - n
}
