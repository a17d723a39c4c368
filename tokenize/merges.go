package tokenize

// mergeTable maps pairs of symbols to merges: a hash table with open addressing, as the pair of every
// two neighbours of every new word is looked up.
type mergeTable struct {
	keys   []uint64 // pair+1; 0: free
	merges []merge
	shift  int
	n      int
}

// merge is what a pair becomes, and how early it was learned.
type merge struct{ rank, id int32 }

func newMergeTable() *mergeTable {
	const size = 12
	return &mergeTable{keys: make([]uint64, 1<<size), merges: make([]merge, 1<<size), shift: 64 - size}
}

func pairKey(a, b int32) uint64 { return (uint64(uint32(a))<<32 | uint64(uint32(b))) + 1 }

func (t *mergeTable) slot(key uint64) int {
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.keys[i] != 0 && t.keys[i] != key {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

func (t *mergeTable) get(a, b int32) (merge, bool) {
	i := t.slot(pairKey(a, b))
	return t.merges[i], t.keys[i] != 0
}

// set stores a merge, in the place of an older one of the same pair.
func (t *mergeTable) set(a, b int32, m merge) {
	if 2*t.n >= len(t.keys) {
		t.grow()
	}
	key := pairKey(a, b)
	i := t.slot(key)
	if t.keys[i] == 0 {
		t.n++
	}
	t.keys[i], t.merges[i] = key, m
}

func (t *mergeTable) grow() {
	old := *t
	*t = mergeTable{keys: make([]uint64, 2*len(old.keys)), merges: make([]merge, 2*len(old.keys)), shift: old.shift - 1, n: old.n}
	for i, key := range old.keys {
		if key != 0 {
			j := t.slot(key)
			t.keys[j], t.merges[j] = key, old.merges[i]
		}
	}
}
