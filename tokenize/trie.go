package tokenize

// trie holds a set of byte strings, each with a number, so that all strings that start at a place of
// a text are found in one walk. It is a double array: the child of node n by byte c stands at
// base[n]^c and names n as its parent, so a step is one load and one comparison.
type trie struct {
	nodes []trieNode
}

type trieNode struct {
	base   int32 // children stand at base ^ byte
	parent int32 // -1: free
	value  int32 // -1: no string ends here
}

const noValue = -1

// trieEntry is one string of a trie under construction.
type trieEntry struct {
	key   string
	value int32
}

// newTrie builds the trie of the entries, which must be sorted by key and free of duplicates.
func newTrie(entries []trieEntry) *trie {
	b := trieBuilder{t: &trie{}, entries: entries}
	b.grow(256)
	b.t.nodes[0].parent = -2 // nobody's child, and not free
	b.firstFree = 1
	type job struct{ node, lo, hi, depth int }
	jobs := []job{{0, 0, len(entries), 0}} // a stack of its own: keys may be long
	for len(jobs) > 0 {
		j := jobs[len(jobs)-1]
		jobs = jobs[:len(jobs)-1]
		lo := j.lo
		if lo < j.hi && len(entries[lo].key) == j.depth {
			b.t.nodes[j.node].value = entries[lo].value
			lo++
		}
		if lo == j.hi {
			continue
		}
		b.bytes, b.starts = b.bytes[:0], b.starts[:0]
		for i := lo; i < j.hi; i++ {
			c := entries[i].key[j.depth]
			if len(b.bytes) == 0 || b.bytes[len(b.bytes)-1] != c {
				b.bytes = append(b.bytes, c)
				b.starts = append(b.starts, i)
			}
		}
		base := b.place()
		b.t.nodes[j.node].base = int32(base)
		for k, c := range b.bytes {
			child := base ^ int(c)
			b.t.nodes[child].parent = int32(j.node)
			end := j.hi
			if k+1 < len(b.starts) {
				end = b.starts[k+1]
			}
			jobs = append(jobs, job{child, b.starts[k], end, j.depth + 1})
		}
	}
	return b.t
}

type trieBuilder struct {
	t         *trie
	entries   []trieEntry
	bytes     []byte
	starts    []int
	firstFree int
}

func (b *trieBuilder) grow(n int) {
	for len(b.t.nodes) < n {
		b.t.nodes = append(b.t.nodes, trieNode{parent: -1, value: noValue})
	}
}

// place finds a base at which all of b.bytes are free.
func (b *trieBuilder) place() int {
	for b.firstFree < len(b.t.nodes) && b.t.nodes[b.firstFree].parent != -1 {
		b.firstFree++
	}
	tries := 0
	for at := b.firstFree; ; at++ {
		if at >= len(b.t.nodes) {
			b.grow(len(b.t.nodes) + 256)
		}
		if b.t.nodes[at].parent != -1 {
			continue
		}
		base := at ^ int(b.bytes[0])
		b.grow(base | 255 + 1)
		free := true
		for _, c := range b.bytes[1:] {
			if b.t.nodes[base^int(c)].parent != -1 {
				free = false
				break
			}
		}
		if free {
			return base
		}
		// A crowded stretch is given up after a while, so that building stays near linear.
		if tries++; tries > 512 {
			b.firstFree = at
			tries = 0
		}
	}
}

// child returns the node reached from node by c, or -1.
func (t *trie) child(node int32, c byte) int32 {
	n := t.nodes[node].base ^ int32(c)
	if t.nodes[n].parent != node {
		return -1
	}
	return n
}

// longest returns the length and number of the longest string of the trie that starts s, walking
// from node; ok is false when there is none.
func (t *trie) longest(node int32, s []byte) (length int, val int32, ok bool) {
	for i, c := range s {
		n := t.nodes[node].base ^ int32(c)
		nd := &t.nodes[n]
		if nd.parent != node {
			break
		}
		node = n
		if nd.value != noValue {
			length, val, ok = i+1, nd.value, true
		}
	}
	return length, val, ok
}

// walk follows s from node to its end; -1 when the trie has no such string.
func (t *trie) walk(node int32, s []byte) int32 {
	for i := 0; i < len(s) && node >= 0; i++ {
		node = t.child(node, s[i])
	}
	return node
}
