package tokenize

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// sharedPath returns a file under the folder MISROUTE_SHARED names, relative to the module's root. The
// recorded vectors and vocabularies there are not ours to copy, so without it the test is skipped.
func sharedPath(tb testing.TB, elem ...string) string {
	tb.Helper()
	shared := os.Getenv("MISROUTE_SHARED")
	if shared == "" {
		tb.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(shared) {
		shared = filepath.Join(moduleRoot(tb), shared)
	}
	path := filepath.Join(append([]string{shared}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

func moduleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// oracleCase is one text with what the Rust crate tokenizers 0.22.2 made of it. Offsets count code
// points of Text, or of Lossy when the bytes of the message are no UTF-8.
type oracleCase struct {
	Cat     string     `json:"cat"`
	Text    string     `json:"text"`
	Base64  string     `json:"text_base64"`
	Lossy   string     `json:"text_lossy"`
	IDs     []int32    `json:"ids"`
	Offsets [][2]int32 `json:"offsets"`
	Tokens  []string   `json:"tokens"`
	Special []int      `json:"special"`
}

// bytes returns the message and the byte at which each of its code points starts, its length last.
func (c *oracleCase) bytes(tb testing.TB) (text []byte, starts []int32) {
	if c.Base64 == "" {
		for i := range c.Text {
			starts = append(starts, int32(i))
		}
		return []byte(c.Text), append(starts, int32(len(c.Text)))
	}
	text, err := base64.StdEncoding.DecodeString(c.Base64)
	if err != nil {
		tb.Fatal(err)
	}
	// The slow definition: the copy is walked beside the message.
	i := 0
	for _, r := range c.Lossy {
		starts = append(starts, int32(i))
		if r != 0xFFFD || i+3 <= len(text) && string(text[i:i+3]) == "\uFFFD" {
			i += len(string(r))
		} else {
			i += subpart(text[i:])
		}
	}
	return text, append(starts, int32(i))
}

func readCases(tb testing.TB, path string) []oracleCase {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var all []oracleCase
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var c oracleCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			tb.Fatal(err)
		}
		all = append(all, c)
	}
	if err := sc.Err(); err != nil || len(all) == 0 {
		tb.Fatalf("%s: %d cases, %v", path, len(all), err)
	}
	return all
}

// TestOracle holds ids, byte offsets and the mask of specials against the recorded vectors.
func TestOracle(t *testing.T) {
	for _, name := range []string{"distilbert", "minilm", "roberta", "t5", "albert"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(sharedPath(t, "data", "tokenizer-oracle", name, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			var e Encoding
			bad := 0
			for i, c := range readCases(t, sharedPath(t, "data", "tokenizer-oracle", name, "cases.jsonl")) {
				text, starts := c.bytes(t)
				tok.Encode(&e, text)
				if !slices.Equal(e.IDs, c.IDs) {
					if bad++; bad <= 10 {
						t.Errorf("case %d (%s) %.200q:\n got ids %v\nwant ids %v", i, c.Cat, text, cut(e.IDs), cut(c.IDs))
					}
					continue
				}
				for k := range e.IDs {
					start, end := starts[c.Offsets[k][0]], starts[c.Offsets[k][1]]
					if e.Start[k] != start || e.End[k] != end || e.Special[k] != (c.Special[k] == 1) {
						if bad++; bad <= 10 {
							t.Errorf("case %d (%s) %.200q: token %d: got [%d,%d) special %v, want [%d,%d) special %v",
								i, c.Cat, text, k, e.Start[k], e.End[k], e.Special[k], start, end, c.Special[k] == 1)
						}
						break
					}
				}
			}
			if bad > 0 {
				t.Errorf("%d cases differ", bad)
			}
		})
	}
}

func cut(ids []int32) []int32 { return ids[:min(len(ids), 40)] }
