package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"misroute/tokenize"
)

// learnedTokenizer writes a tokenizer of a few words.
func learnedTokenizer(t *testing.T) string {
	t.Helper()
	l := tokenize.NewLearner(tokenize.LearnOptions{Lowercase: true, VocabSize: 200, MinFrequency: 1})
	l.Add([]byte("where is my order cake cake"))
	tok, err := l.Learn()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := tok.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokensJSON(t *testing.T) {
	tok := learnedTokenizer(t)
	text := filepath.Join(t.TempDir(), "message.txt")
	if err := os.WriteFile(text, []byte("Where is my cake"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"misroute", "tokens", "--tokenizer", tok, "--json", "--max-tokens", "4", "--strategy", "tail", text}, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var got shownTokens
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	// Every word was learned whole, so six tokens: the specials and four words, of which two are read.
	var read []string
	for _, k := range got.Tokens {
		if k.Kept && !k.Special {
			read = append(read, "Where is my cake"[k.Start:k.End])
		}
	}
	if got.Total != 6 || strings.Join(read, " ") != "my cake" || len(got.DroppedBytes) != 1 || got.DroppedBytes[0] != [2]int{0, 8} {
		t.Errorf("total %d, read %q, dropped %v", got.Total, read, got.DroppedBytes)
	}
}

func TestTokensForPeople(t *testing.T) {
	text := filepath.Join(t.TempDir(), "message.txt")
	if err := os.WriteFile(text, []byte("Where is my \x1b[31mcake"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"misroute", "tokens", "--tokenizer", learnedTokenizer(t), "--max-tokens", "4", text}, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "cut: tokens 3 to") || !strings.Contains(got, `"Where"`) {
		t.Errorf("output:\n%s", got)
	}
}

func TestTokensLines(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	lines := `{"text":"my cake","max_tokens":3,"strategy":"windows"}
{"text_base64":"/2154oI="}
{"text":"my cake","max_tokens":4,"strategy":"windows","overlap":2}
`
	if err := os.WriteFile(in, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"misroute", "tokens", "--tokenizer", learnedTokenizer(t), "--jsonl", in}, &out, &errs); code != exitUsage {
		t.Fatalf("exit %d, want %d: %s", code, exitUsage, &errs)
	}
	if !strings.Contains(errs.String(), "line 3: an overlap of 2 tokens does not fit") {
		t.Errorf("error %s", &errs)
	}
	dec := json.NewDecoder(&out)
	var first, second tokensResult
	if err := dec.Decode(&first); err != nil {
		t.Fatal(err)
	}
	if err := dec.Decode(&second); err != nil {
		t.Fatal(err)
	}
	if len(first.Windows) != 2 || len(first.IDs) != 4 {
		t.Errorf("%d windows of %d tokens, want 2 of 4", len(first.Windows), len(first.IDs))
	}
	// ff, "m", "y", e2 82: invalid bytes are cleaned away as U+FFFD, the word keeps its place.
	if n := len(second.IDs); n != 3 || second.Start[1] != 1 || second.End[1] != 3 {
		t.Errorf("ids %v at %v, %v", second.IDs, second.Start, second.End)
	}
}

func TestTokensUsage(t *testing.T) {
	for _, args := range [][]string{{"x.txt"}, {"--tokenizer", "none.json", "x.txt"}, {"--tokenizer", "t", "--json", "--jsonl"}, {"--tokenizer", "t"}, {"--tokenizer", "t", "a", "b"}} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"misroute", "tokens"}, args...), &out, &errs); code != exitUsage {
			t.Errorf("%v: exit %d, want %d: %s", args, code, exitUsage, &errs)
		}
	}
}
