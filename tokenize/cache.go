package tokenize

import (
	"encoding/binary"
	"math/bits"
)

// pieceCache remembers what the model made of short pieces: mail repeats its words. It is a
// direct-mapped table of fixed size (1 MiB) that belongs to one scratch, so it needs no lock and no
// bound of its own; a newer piece takes the place of the older one.
type pieceCache struct {
	entries []cacheEntry
}

const (
	cacheBits    = 14
	maxCachedKey = 32
	maxCachedIDs = 6
)

// cacheEntry is one cache line.
type cacheEntry struct {
	n, length uint8 // tokens; bytes of the key. n == 0: empty
	ends      [maxCachedIDs]uint8
	ids       [maxCachedIDs]int32
	key       [maxCachedKey]byte
}

func newPieceCache() *pieceCache {
	return &pieceCache{entries: make([]cacheEntry, 1<<cacheBits)}
}

// slot returns the entry a piece of at most maxCachedKey bytes belongs to.
func (c *pieceCache) slot(p []byte) *cacheEntry {
	const k = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	h := uint64(len(p)) * k
	for len(p) >= 8 {
		h = (bits.RotateLeft64(h, 29) ^ binary.LittleEndian.Uint64(p)) * k
		p = p[8:]
	}
	var tail uint64
	if len(p) >= 4 {
		tail = uint64(binary.LittleEndian.Uint32(p))
		p = p[4:]
	}
	for _, b := range p {
		tail = tail<<8 | uint64(b)
	}
	h = (bits.RotateLeft64(h, 29) ^ tail) * k
	return &c.entries[h>>(64-cacheBits)]
}

func (e *cacheEntry) holds(p []byte) bool {
	return int(e.length) == len(p) && e.n > 0 && string(e.key[:len(p)]) == string(p)
}

// store keeps tokens for p when they fit and follow each other without gap or overlap.
func (e *cacheEntry) store(p []byte, tokens []token) {
	if len(tokens) == 0 || len(tokens) > maxCachedIDs {
		return
	}
	at := int32(0)
	for _, t := range tokens {
		if t.start != at {
			return
		}
		at = t.end
	}
	e.n, e.length = uint8(len(tokens)), uint8(len(p))
	copy(e.key[:], p)
	for i, t := range tokens {
		e.ids[i], e.ends[i] = t.id, uint8(t.end)
	}
}
