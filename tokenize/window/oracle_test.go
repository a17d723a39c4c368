package window

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"misroute/tokenize"
)

// sharedPath returns a file under the folder MISROUTE_SHARED names, relative to the module's root.
func sharedPath(tb testing.TB, elem ...string) string {
	tb.Helper()
	shared := os.Getenv("MISROUTE_SHARED")
	if shared == "" {
		tb.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(shared) { // this package lies two levels below the module's root
		shared = filepath.Join("..", "..", shared)
	}
	path := filepath.Join(append([]string{shared}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

type oracleWindow struct {
	IDs     []int32  `json:"ids"`
	Offsets [][2]int `json:"offsets"`
	Special []int    `json:"special"`
}

// truncationCase is a text as the Rust crate tokenizers 0.22.2 cut it; stride is what neighbours share.
type truncationCase struct {
	Text      string `json:"text"`
	MaxLength int    `json:"max_length"`
	Stride    int    `json:"stride"`
	Direction string `json:"direction"`
	oracleWindow
	Overflow []oracleWindow `json:"overflow"`
}

// TestTruncationOracle lays windows as the reference does, from the start and from the end, and holds
// head and tail against its first window.
func TestTruncationOracle(t *testing.T) {
	for _, name := range []string{"distilbert", "roberta", "t5"} {
		t.Run(name, func(t *testing.T) {
			tok, err := tokenize.Load(sharedPath(t, "data", "tokenizer-oracle", name, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(sharedPath(t, "data", "tokenizer-oracle", name, "truncation_cases.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			sc := bufio.NewScanner(f)
			sc.Buffer(nil, 16<<20)
			n := 0
			for ; sc.Scan(); n++ {
				var c truncationCase
				if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
					t.Fatal(err)
				}
				checkTruncation(t, tok, &c)
			}
			if n < 100 {
				t.Errorf("%d cases", n)
			}
		})
	}
}

func checkTruncation(t *testing.T, tok *tokenize.Tokenizer, c *truncationCase) {
	t.Helper()
	var e tokenize.Encoding
	tok.Encode(&e, []byte(c.Text))
	starts := []int{}
	for i := range c.Text {
		starts = append(starts, i)
	}
	starts = append(starts, len(c.Text))
	before, after := tok.Specials()
	left := c.Direction == "Left"
	p, err := NewPlanner(before, after, Options{MaxTokens: c.MaxLength, Strategy: KeepWindows, Overlap: c.Stride, FromEnd: left, AsReference: true})
	if err != nil {
		t.Fatal(err)
	}
	var plan Plan
	if err := p.Plan(&plan, &e); err != nil {
		t.Fatal(err)
	}
	want := append([]oracleWindow{c.oracleWindow}, c.Overflow...)
	if len(plan.Windows) != len(want) {
		t.Errorf("%.40q cap %d stride %d %s: %d windows, want %d", c.Text, c.MaxLength, c.Stride, c.Direction, len(plan.Windows), len(want))
		return
	}
	for i, w := range plan.Windows {
		if !slices.Equal(w.IDs, want[i].IDs) {
			t.Errorf("%.40q cap %d stride %d %s: window %d is %v, want %v", c.Text, c.MaxLength, c.Stride, c.Direction, i, w.IDs, want[i].IDs)
			return
		}
		for k, pos := range w.Positions {
			o := want[i].Offsets[k]
			if int(e.Start[pos]) != starts[o[0]] || int(e.End[pos]) != starts[o[1]] || e.Special[pos] != (want[i].Special[k] == 1) {
				t.Errorf("%.40q cap %d: window %d token %d at [%d,%d), want code points %v", c.Text, c.MaxLength, i, k, e.Start[pos], e.End[pos], o)
				return
			}
		}
	}
	end := KeepHead
	if left {
		end = KeepTail
	}
	if p, err = NewPlanner(before, after, Options{MaxTokens: c.MaxLength, Strategy: end, AsReference: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.Plan(&plan, &e); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plan.Windows[0].IDs, c.IDs) {
		t.Errorf("%.40q cap %d %v: %v, want %v", c.Text, c.MaxLength, end, plan.Windows[0].IDs, c.IDs)
	}
}
