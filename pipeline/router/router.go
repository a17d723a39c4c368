// Package router puts tokenizer, window and model together behind one small interface: text in,
// queue scores out. A [Router] is a local model folder or a deployed router behind HTTP.
package router

import (
	"context"
	"fmt"
	"math"
	"math/rand"

	"misroute/tokenize"
	"misroute/tokenize/window"
)

// Facts names a router for the run's metadata.
type Facts struct {
	Name, Family            string
	SHA256, TokenizerSHA256 string
	Tokenizer               string // "WordPiece 8,000"
	Parameters              int64
	Layers, Heads, Hidden   int
	Positions               int // most tokens of one pass, specials included; 0: unlimited
	TrainedCap              int // 0: unknown
	Kernel, Precision       string
	Warnings                []string
	TrainedOn               []string // hex digests of the exports it was trained on, where it tells
}

// Router is immutable and safe for goroutines.
type Router interface {
	Facts() Facts
	// Queues are the model's, in its order.
	Queues() []string
	// Check says whether the setting can be read, before any message is.
	Check(Setting) error
	// Encode tokenizes text into dst, which is reused.
	Encode(dst *Encoded, text []byte)
	// NewSession returns what one goroutine needs to read messages.
	NewSession() Session
	// Whole is the reference reading of a message of any length, and its name for a person.
	Whole() (Setting, string)
}

// Session reads encoded messages. One goroutine at a time.
type Session interface {
	// Read routes e as setting s says. dst is reused.
	Read(ctx context.Context, e *Encoded, s Setting, dst *Reading) error
}

// Setting says how much of a message is read, and which part.
type Setting struct {
	MaxTokens  int // specials included; 0: no cap
	Strategy   window.Strategy
	HeadTokens int // of head+tail; 0: a quarter
	Overlap    int // of windows
	// WindowTokens is the length of one window where MaxTokens is 0.
	WindowTokens int
	Aggregate    window.Aggregation
	// Placebo drops as many tokens as the cap would, at random spans drawn from Seed.
	Placebo bool
	Seed    uint64
}

// Name is "256 head", "none windows": for flags, reports and keys.
func (s Setting) Name() string { return s.Limit() + " " + s.Strategy.String() }

// Limit is the cap in words: "256", "none".
func (s Setting) Limit() string {
	if s.MaxTokens > 0 {
		return fmt.Sprint(s.MaxTokens)
	}
	return "none"
}

// Encoded is a message's tokens.
type Encoded struct {
	Text []byte
	tokenize.Encoding
}

// Tokens is the untruncated token count, specials included.
func (e *Encoded) Tokens() int { return len(e.IDs) }

// Reading is one reading of one message.
type Reading struct {
	Logits     []float32
	Kept       []window.Range // ranges of the message's own tokens that were read, as indices of the encoding
	TokensKept int            // of those, and one set of specials: equal to Encoded.Tokens when nothing was cut
	Windows    int
	Cells      int64
	FLOPs      int64
}

// Best returns the highest and the second highest logit's index (second is -1 for a single queue).
// Ties go to the earlier queue.
func (r *Reading) Best() (best, second int) {
	best, second = 0, -1
	for i := 1; i < len(r.Logits); i++ {
		switch {
		case r.Logits[i] > r.Logits[best]:
			best, second = i, best
		case second < 0 || r.Logits[i] > r.Logits[second]:
			second = i
		}
	}
	return best, second
}

// Softmax writes the probabilities of the logits into dst in float64 (max shifted), so that scores
// sum to 1 within rounding whatever the size of the logits.
func (r *Reading) Softmax(dst []float32) {
	top := math.Inf(-1)
	for _, v := range r.Logits {
		top = max(top, float64(v))
	}
	sum := 0.0
	for _, v := range r.Logits {
		sum += math.Exp(float64(v) - top)
	}
	for i, v := range r.Logits {
		dst[i] = float32(math.Exp(float64(v)-top) / sum)
	}
}

// placeboRand is the random stream of one message's placebo cut: it depends on the seed and the
// message alone, never on the order of work.
func placeboRand(seed uint64, ids []int32) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a over the ids
	for _, id := range ids {
		h = (h ^ uint64(uint32(id))) * 1099511628211
	}
	return rand.New(rand.NewSource(int64(seed ^ h)))
}
