package tokenize

import (
	"runtime"
	"sync"
)

// piece is a stretch of the scratch's text: one added token (id >= 0), or text for the model.
type piece struct {
	start, end int32
	id         int32 // noID for text
}

const noID = -1

// token is what a model made of a piece: bytes [start, end) of it.
type token struct{ id, start, end int32 }

// scratch is all the memory one Encode needs. It is reused, so that a message costs no allocation
// once the buffers have grown.
type scratch struct {
	text, spare text
	rewriter    rewriter
	parked      []byte // text's own buffer while text.b is the caller's
	borrowed    bool
	origin      int32 // first byte in the message of the stretch in work

	pieces, next []piece
	tokens       []token
	cache        *pieceCache
	valid        []byte // the message with invalid UTF-8 replaced
	model        modelScratch
	marks        []mark
	matches      []span // of a pattern
	units        []unit // of a normalization form
	sorted       []unit

	record   bool // collect the tokens' strings: see Tokenizer.EncodePieces
	texts    []string
	unknowns []span // unknown tokens that the model writes as their text
}

// maxPooledBytes is the largest buffer a scratch may bring back to the pool: one huge message must
// not pin its memory for the rest of the run.
const maxPooledBytes = 4 << 20

func (s *scratch) pooled() bool {
	return cap(s.text.b)+cap(s.spare.b)+cap(s.parked)+cap(s.valid)+8*cap(s.text.al)+8*cap(s.spare.al)+
		12*(cap(s.pieces)+cap(s.next)+cap(s.tokens)+cap(s.units)+cap(s.sorted))+8*cap(s.matches)+8*cap(s.marks)+s.model.size() <= 4*maxPooledBytes
}

// scratchPool lends scratches. Unlike a sync.Pool it survives garbage collection, which would throw
// away warm caches twice a second in a busy run; it is bounded by the number of processors.
type scratchPool struct {
	mu   sync.Mutex
	free []*scratch
}

func (p *scratchPool) get() *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	return &scratch{cache: newPieceCache()}
}

func (p *scratchPool) put(s *scratch) {
	if s.borrowed { // keep nothing of the caller's
		s.text.b, s.borrowed = s.parked, false
	}
	if !s.pooled() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < 2*runtime.GOMAXPROCS(0) {
		p.free = append(p.free, s)
	}
}

// modelScratch is the memory of models and patterns.
type modelScratch struct {
	regex regexScratch
	bpe   bpeScratch
	best  []bestPath
}

func (m *modelScratch) size() int { return m.regex.size() + m.bpe.size() + 16*cap(m.best) }
