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
	key       cacheKey
	ids       [maxCachedIDs]int32
	ends      [maxCachedIDs]uint8
	n, length uint8 // tokens; bytes of the key. n == 0: empty
}

// cacheKey is a piece of at most 32 bytes in words. Together with the length it stands for the piece:
// shorter pieces are read in overlapping words.
type cacheKey [4]uint64

func newPieceCache() *pieceCache {
	return &pieceCache{entries: make([]cacheEntry, 1<<cacheBits)}
}

// keyOf reads a piece of 1 to 32 bytes.
func keyOf(p []byte) (k cacheKey) {
	n := len(p)
	switch {
	case n >= 16:
		k[0], k[1] = binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		k[2], k[3] = binary.LittleEndian.Uint64(p[n-16:]), binary.LittleEndian.Uint64(p[n-8:])
	case n >= 8:
		k[0], k[1] = binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[n-8:])
	case n >= 4:
		k[0] = uint64(binary.LittleEndian.Uint32(p)) | uint64(binary.LittleEndian.Uint32(p[n-4:]))<<32
	default:
		k[0] = uint64(p[0]) | uint64(p[n/2])<<8 | uint64(p[n-1])<<16
	}
	return k
}

// slot returns the entry for a key of n bytes.
func (c *pieceCache) slot(k *cacheKey, n int) *cacheEntry {
	const m = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	h := (k[0] ^ uint64(n)) * m
	if n >= 8 {
		h = (bits.RotateLeft64(h, 29) ^ k[1]) * m
	}
	if n >= 16 {
		h = (bits.RotateLeft64(h, 29) ^ k[2]) * m
		h = (bits.RotateLeft64(h, 29) ^ k[3]) * m
	}
	return &c.entries[h>>(64-cacheBits)]
}

func (e *cacheEntry) holds(k *cacheKey, n int) bool {
	return int(e.length) == n && e.key == *k
}

// store keeps tokens for a key of n bytes when they fit and follow each other without gap or overlap.
func (e *cacheEntry) store(k *cacheKey, n int, tokens []token) {
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
	e.n, e.length, e.key = uint8(len(tokens)), uint8(n), *k
	for i, t := range tokens {
		e.ids[i], e.ends[i] = t.id, uint8(t.end)
	}
}
