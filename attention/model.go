package attention

import "fmt"

// Config is what every model can say about itself. Families with more settings keep them in their
// own parameter struct.
type Config struct {
	ModelType    string   // model_type of config.json: "bert", "distilbert", "roberta", ...
	Labels       []string // queue names, in the order of the logits
	Layers       int
	Heads        int // NH
	Hidden       int // C
	Intermediate int // F
	VocabSize    int // V
	Positions    int // most tokens a message may have, specials included; 0 = no limit
	TypeVocab    int // rows of the token-type table; 0 = none
	PadID        int32
	Activation   string  // of the feed-forward part: "gelu" (exact, erf), "gelu_new" (tanh), "relu", ...
	NormEps      float32 // added to the variance in layer norms
	TrainedCap   int     // cap the model was trained with; 0 = unknown
}

// Input is one message as the model reads it. All non-nil slices have one entry a token.
type Input struct {
	IDs     []int32
	TypeIDs []int32 // token types; nil = all 0
	Mask    []uint8 // 1 = a key that may be looked at, 0 = padding; nil = all 1
}

// Model is a classifier of token ids. It is immutable and safe for use by many goroutines.
type Model interface {
	Config() *Config
	Parameters() int64 // learned numbers
	Kernel() string    // variant of package kernel the weights are laid out for
	Precision() string // "float32" or "int8"
	// NewWorkspace returns scratch memory for Logits: one per goroutine. It grows with the longest
	// message seen, and from then on Logits allocates nothing.
	NewWorkspace() *Workspace
	// Logits writes one score a label, before softmax, into dst (len(dst) == len(Config().Labels)).
	// The bits do not depend on the workspace, on earlier messages or on Workspace.Width.
	Logits(dst []float32, in Input, ws *Workspace) error
	// Cost is the work of one message of that many tokens: entries of the score grids over layers and
	// heads, and floating point operations (2 a multiply-add).
	Cost(tokens int) (cells, flops int64)
}

// Tracer is a Model that can show its inside. It keeps T x T maps, so it is for looking, not for runs.
type Tracer interface {
	Trace(in Input) (*Trace, error)
}

// Trace is the inside of one forward pass.
type Trace struct {
	Tokens    int
	Attention [][][]float32 // [layer][head], T x T: row i holds the weights of query i
	Hidden    [][]float32   // [0] after the embeddings, [l] after layer l: T x C
	Pooled    []float32     // C: what the last linear layer reads
	Logits    []float32
}

// InputError says what is wrong with an Input; it never holds text.
type InputError struct{ Reason string }

func (e *InputError) Error() string { return "model input: " + e.Reason }

// check refuses inputs that the model cannot read.
func (c *Config) check(dst []float32, in Input) error {
	n := len(in.IDs)
	switch {
	case len(dst) != len(c.Labels):
		return &InputError{fmt.Sprintf("room for %d logits, the model has %d labels", len(dst), len(c.Labels))}
	case n == 0:
		return &InputError{"no tokens"}
	case c.Positions > 0 && n > c.Positions:
		return &InputError{fmt.Sprintf("%d tokens, the model has positions for %d", n, c.Positions)}
	case in.TypeIDs != nil && len(in.TypeIDs) != n:
		return &InputError{fmt.Sprintf("%d token types for %d tokens", len(in.TypeIDs), n)}
	case in.Mask != nil && len(in.Mask) != n:
		return &InputError{fmt.Sprintf("mask of %d for %d tokens", len(in.Mask), n)}
	}
	for i, id := range in.IDs {
		if id < 0 || int(id) >= c.VocabSize {
			return &InputError{fmt.Sprintf("token id %d at position %d, the vocabulary has %d", id, i, c.VocabSize)}
		}
	}
	if c.TypeVocab > 0 {
		for i, t := range in.TypeIDs {
			if t < 0 || int(t) >= c.TypeVocab {
				return &InputError{fmt.Sprintf("token type %d at position %d, the model has %d", t, i, c.TypeVocab)}
			}
		}
	}
	return nil
}
