package attention

import (
	"math"
	"sync"
	"sync/atomic"

	"misroute/attention/kernel"
)

// Distances says which row of a table of relative positions stands for the distance from a key to a
// query.
type Distances struct {
	Span int // the table has 2*Span rows; distances beyond it share the outermost
	// Buckets > 0: only distances up to Buckets/2 have a row of their own. Farther ones share rows,
	// which grow with the logarithm of the distance and end at MaxDistance.
	Buckets, MaxDistance int
}

// Rows of the table.
func (d Distances) Rows() int { return 2 * d.Span }

// Row is the table's row for a query that stands distance tokens after its key.
func (d Distances) Row(distance int) int {
	return min(max(0, d.bucket(distance)+d.Span), 2*d.Span-1)
}

// bucket is the distance itself, or with Buckets the number of its bucket. The float32 steps are the
// library's: at the border of two buckets the rounding decides.
func (d Distances) bucket(distance int) int {
	middle := d.Buckets / 2
	size := max(distance, -distance)
	if d.Buckets <= 0 || size <= middle {
		return distance
	}
	far := float32(math.Log(float64(float32(size) / float32(middle))))
	most := float32(math.Log(float64(float32(d.MaxDistance-1) / float32(middle))))
	bucket := int(math.Ceil(float64(far/most*float32(middle-1)))) + middle
	if distance < 0 {
		return -bucket
	}
	return bucket
}

// most is how many tokens have distances that the buckets can tell; 0 = any number.
func (d Distances) most() int {
	if middle := d.Buckets / 2; d.Buckets > 0 && d.MaxDistance-1 <= middle {
		return middle + 1
	}
	return 0
}

// near is the range of keys around a query, by their offset from it, whose rows differ by 1 from one
// key to the next.
func (d Distances) near() (left, right int) {
	if d.Buckets > 0 {
		return d.Buckets / 2, d.Buckets / 2
	}
	return d.Span - 1, d.Span
}

// distanceTable knows the column of every offset of a key from its query. Columns are rows counted
// from the end, so that they ascend with the key. The table grows with the longest message seen and is
// shared by all goroutines.
type distanceTable struct {
	Distances
	grow    sync.Mutex
	columns atomic.Pointer[[]int32] // of offsets -n to n
}

// offsets returns the columns for offsets of up to n tokens either way; that of offset 0 is in the
// middle.
func (d *distanceTable) offsets(n int) []int32 {
	if c := d.columns.Load(); c != nil && len(*c) > 2*n {
		return *c
	}
	d.grow.Lock()
	defer d.grow.Unlock()
	if c := d.columns.Load(); c != nil && len(*c) > 2*n {
		return *c
	}
	n = (n + 511) / 512 * 512
	columns := make([]int32, 2*n+1)
	for i := range columns {
		columns[i] = int32(d.Rows() - 1 - d.Row(n-i))
	}
	d.columns.Store(&columns)
	return columns
}

// relativeScores adds to the scores of a block of queries what the distances contribute: c2p, the
// query's product with the key-side table, and p2c, the key's product with the query-side table. Both
// products are with the table's rows, of which there are few, and are spread over the pairs
// afterwards, so memory grows with T and not with T x T.
type relativeScores struct {
	tokens      int
	columns     []int32 // by the offset of the key from the query, 0 in the middle
	left, right int     // offsets from -left to right have consecutive columns

	posKeys *kernel.Packed // HS x rows, of this head; nil without c2p
	queries []float32      // a block of queries x wide: c2p by column

	keys        []float32 // T x wide: p2c by column, from column first on; nil without p2c
	first, last int       // the columns that occur
	wide        int

	// All offsets up to below have the first column that occurs, all from above on the last one: far keys
	// share one distance. Their p2c, one number a key, stands side by side.
	farthest, below, above int // farthest is the lowest offset
	keysBelow, keysAbove   []float32
}

// scores prepares for rows queries and the keys of a message of that many tokens; p2c asks for room
// for the keys' products.
func (d *distanceTable) scores(tokens, rows int, p2c bool, ws *Workspace) relativeScores {
	r := relativeScores{tokens: tokens, columns: d.offsets(tokens)}
	r.left, r.right = d.near()
	r.farthest = 1 - rows
	r.first, r.last = r.column(r.farthest), r.column(tokens-1)+1
	r.wide = d.Rows()
	r.queries = ws.floats.take(mostQueries * r.wide)
	if p2c {
		r.keys = ws.floats.take(tokens * r.wide)
		r.keysBelow, r.keysAbove = ws.floats.take(tokens), ws.floats.take(tokens)
		for r.below = r.farthest; r.below < tokens-1 && r.column(r.below+1) == r.first; {
			r.below++
		}
		for r.above = tokens - 1; r.above > r.farthest && r.column(r.above-1) == r.last-1; {
			r.above--
		}
	}
	return r
}

// relativeFloats is the scratch that scores takes, and the larger blocks of scores.
func relativeFloats(tokens, rows int) int {
	return (mostQueries+tokens)*rows + mostQueries*scoresStride(tokens) + 2*tokens + 5*16
}

// column of a key at that offset from its query.
func (r *relativeScores) column(offset int) int { return int(r.columns[len(r.columns)/2+offset]) }

// answer computes the products of all keys (T x HS, ld between rows) with the query-side table.
func (r *relativeScores) answer(keys []float32, ld int, posQueries *kernel.Packed) {
	lowest := r.column(r.farthest)
	r.first = posQueries.PanelStart(lowest)
	kernel.MatMulPart(r.keys, r.wide, keys, ld, r.tokens, posQueries, r.first, r.last, 0, posQueries.K)
	for k := range r.tokens {
		row := r.keys[k*r.wide:]
		r.keysBelow[k], r.keysAbove[k] = row[lowest-r.first], row[r.last-1-r.first]
	}
}

// add adds both terms to the scores (n x T, ld between rows) of the queries from query on; q is their
// n x HS.
func (r *relativeScores) add(scores []float32, ld int, q []float32, ldq, query, n int) {
	if r.posKeys != nil {
		r.addC2P(scores, ld, q, ldq, query, n)
	}
	if r.keys != nil {
		r.addP2C(scores, ld, query, n)
	}
}

// addC2P adds for each pair the query's product with the row of their distance. Around the query
// columns and keys go in step, which makes it a plain sum of two rows.
func (r *relativeScores) addC2P(scores []float32, ld int, q []float32, ldq, query, n int) {
	first := r.posKeys.PanelStart(r.column(1 - query - n))
	last := r.column(r.tokens-1-query) + 1
	kernel.MatMulPart(r.queries, r.wide, q, ldq, n, r.posKeys, first, last, 0, r.posKeys.K)
	for i := range n {
		row, terms := scores[i*ld:][:r.tokens], r.queries[i*r.wide:][:last-first]
		at := query + i
		near, far := max(0, at-r.left), min(r.tokens, at+r.right+1)
		kernel.Add(row[near:far], terms[r.column(near-at)-first:][:far-near])
		columns := r.columns[len(r.columns)/2-at:][:r.tokens]
		addColumns(row[:near], terms, columns[:near], int32(first))
		addColumns(row[far:], terms, columns[far:], int32(first))
	}
}

// addColumns sets row[j] += terms[columns[j] - first].
func addColumns(row, terms []float32, columns []int32, first int32) {
	columns = columns[:len(row)]
	for j, column := range columns {
		row[j] += terms[column-first]
	}
}

// keyStrip is how many keys addP2C takes together: the part of their rows that a block of queries
// needs stays in the first-level cache until all those queries have read it.
const keyStrip = 16

// addP2C adds for each pair the key's product with the row of their distance. The queries of a block
// find their columns side by side in the key's row.
func (r *relativeScores) addP2C(scores []float32, ld int, query, n int) {
	// keys that are far below every query of the block, and keys that are far above
	near := min(max(0, query+r.below+1), r.tokens)
	far := max(near, min(r.tokens, query+n-1+r.above))
	for i := range n {
		row := scores[i*ld:][:r.tokens]
		kernel.Add(row[:near], r.keysBelow[:near])
		kernel.Add(row[far:], r.keysAbove[far:])
	}
	for j := near; j < far; j += keyStrip {
		last := min(j+keyStrip, far)
		i := 0
		for ; i+8 <= n; i += 8 {
			r.addP2C8(scores[i*ld:], ld, query+i, j, last)
		}
		for ; i < n; i++ {
			columns := r.columns[len(r.columns)/2-query-i:]
			for k := j; k < last; k++ {
				scores[i*ld+k] += r.keys[k*r.wide+int(columns[k])-r.first]
			}
		}
	}
}

// addP2C8 is addP2C for eight queries and the keys from j to last.
func (r *relativeScores) addP2C8(scores []float32, ld int, query, j, last int) {
	wide := last - j
	s0, s1, s2, s3 := scores[j:][:wide], scores[ld+j:][:wide], scores[2*ld+j:][:wide], scores[3*ld+j:][:wide]
	s4, s5, s6, s7 := scores[4*ld+j:][:wide], scores[5*ld+j:][:wide], scores[6*ld+j:][:wide], scores[7*ld+j:][:wide]
	if j-query-7 >= -r.left && last-1-query <= r.right {
		// The columns of the eight queries are consecutive, that of the last query first.
		at := j*r.wide + r.column(j-query-7) - r.first
		for k := range s0 {
			t := (*[8]float32)(r.keys[at:])
			s0[k] += t[7]
			s1[k] += t[6]
			s2[k] += t[5]
			s3[k] += t[4]
			s4[k] += t[3]
			s5[k] += t[2]
			s6[k] += t[1]
			s7[k] += t[0]
			at += r.wide + 1
		}
		return
	}
	columns := r.columns[len(r.columns)/2+j-query-7:]
	for k := range s0 {
		t := r.keys[(j+k)*r.wide:][:r.wide]
		c := (*[8]int32)(columns[k:])
		s0[k] += t[int(c[7])-r.first]
		s1[k] += t[int(c[6])-r.first]
		s2[k] += t[int(c[5])-r.first]
		s3[k] += t[int(c[4])-r.first]
		s4[k] += t[int(c[3])-r.first]
		s5[k] += t[int(c[2])-r.first]
		s6[k] += t[int(c[1])-r.first]
		s7[k] += t[int(c[0])-r.first]
	}
}
