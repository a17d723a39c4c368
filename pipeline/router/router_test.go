package router

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"misroute/tokenize/window"
)

// shared returns a path in the shared data, or skips.
func shared(t *testing.T, path string) string {
	t.Helper()
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) { // as written: from the top of the module
		root = filepath.Join("..", "..", root)
	}
	full := filepath.Join(root, path)
	if _, err := os.Stat(full); err != nil {
		t.Fatal(err)
	}
	return full
}

// oracleCases are PyTorch's logits of a folder.
type oracleCases struct {
	Cases []struct {
		Name          string
		InputIDs      [][]int32 `json:"input_ids"`
		AttentionMask [][]int   `json:"attention_mask"`
		TokenTypeIDs  [][]int   `json:"token_type_ids"`
		Logits        []float64
		Logits64      []float64 `json:"logits_float64"`
	}
}

// The logits of PyTorch (data/encoder-oracle, recorded in float64) come out of the same session that
// reads messages. Only messages in the template's form are asked: [CLS] ... [SEP], type 0.
func TestTinyBERTThroughASession(t *testing.T) {
	dir := shared(t, "data/encoder-oracle/tiny-bert")
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var oracle oracleCases
	if err := json.Unmarshal(b, &oracle); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := r.NewSession()
	asked := 0
	for _, c := range oracle.Cases {
		ids := c.InputIDs[0]
		n := len(ids)
		if len(c.InputIDs) != 1 || n < 3 || c.AttentionMask[0][0] == 0 {
			continue
		}
		e := &Encoded{}
		e.IDs = ids
		e.TypeIDs = make([]int32, n)
		e.Start, e.End, e.Special = make([]int32, n), make([]int32, n), make([]bool, n)
		e.Special[0], e.Special[n-1] = true, true
		for _, set := range []Setting{{MaxTokens: 512}, {MaxTokens: 512, Strategy: window.KeepWindows, Overlap: 8}} {
			var got Reading
			if err := s.Read(context.Background(), e, set, &got); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			for i, want := range c.Logits64 {
				if d := math.Abs(float64(got.Logits[i]) - want); d > 2e-5 {
					t.Errorf("%s: logit %d is %v, PyTorch in float64 has %v", c.Name, i, got.Logits[i], want)
				}
			}
			if got.TokensKept != n || got.Windows != 1 {
				t.Errorf("%s: %d tokens kept in %d windows, want %d in 1", c.Name, got.TokensKept, got.Windows, n)
			}
		}
		asked++
	}
	if asked < 6 {
		t.Errorf("only %d cases were in the template's form", asked)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	r, err := Open(shared(t, "data/encoder-oracle/tiny-bert"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s  Setting
		ok bool
	}{
		"the positions":         {Setting{MaxTokens: 512}, true},
		"over the positions":    {Setting{MaxTokens: 513}, false},
		"no cap, one pass":      {Setting{}, false},
		"no cap, windows":       {Setting{Strategy: window.KeepWindows}, true},
		"no room":               {Setting{MaxTokens: 2}, false},
		"overlap as large":      {Setting{MaxTokens: 10, Strategy: window.KeepWindows, Overlap: 8}, false},
		"overlap that fits":     {Setting{MaxTokens: 10, Strategy: window.KeepWindows, Overlap: 7}, true},
		"head larger than room": {Setting{MaxTokens: 10, Strategy: window.KeepHeadTail, HeadTokens: 9}, false},
	} {
		if err := r.Check(c.s); (err == nil) != c.ok {
			t.Errorf("%s: Check says %v", name, err)
		}
	}
}

func TestReadingBestAndSoftmax(t *testing.T) {
	for _, c := range []struct {
		logits       []float32
		best, second int
		top          float64 // by hand: 1/(1+sum of exp(-gap))
	}{
		{[]float32{1, 3, 2}, 1, 2, 1 / (1 + math.Exp(-1) + math.Exp(-2))},
		{[]float32{2, 2}, 0, 1, 0.5}, // a tie goes to the earlier queue
		{[]float32{1000, -1000}, 0, 1, 1},
		{[]float32{7}, 0, -1, 1},
	} {
		r := Reading{Logits: c.logits}
		best, second := r.Best()
		scores := make([]float32, len(c.logits))
		r.Softmax(scores)
		if best != c.best || second != c.second || math.Abs(float64(scores[best])-c.top) > 1e-6 {
			t.Errorf("%v: best %d, second %d, score %v; want %d, %d, %v", c.logits, best, second, scores[best], c.best, c.second, c.top)
		}
	}
}
