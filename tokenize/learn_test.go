package tokenize

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// corpus is a small shop's mail.
var corpus = []string{
	"Where is my order? The cake was to arrive on Monday.",
	"The cake arrived broken. I want my money back, or a new cake.",
	"Please change my address: the order goes to Müller, Straße 12.",
	"Bonjour, où est ma commande? Le gâteau était pour lundi.",
	"order order ordered ordering orders reordered",
}

func learn(tb testing.TB, o LearnOptions, texts []string) *Tokenizer {
	tb.Helper()
	l := NewLearner(o)
	for _, text := range texts {
		l.Add([]byte(text))
	}
	t, err := l.Learn()
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// The first merges can be counted by hand: in "abab abab ab" with counts abab 2, ab 1, the pair a b
// occurs 5 times, then ab ab 2 times.
func TestLearnWordPieceByHand(t *testing.T) {
	tok := learn(t, LearnOptions{Model: "wordpiece", VocabSize: 100}, []string{"abab abab ab"})
	var learned []string
	for id := int32(len(bertSpecials)); tok.Token(id) != ""; id++ {
		learned = append(learned, tok.Token(id))
	}
	// Alphabet, both forms; a ##b (3 words), ##a ##b (2), ab ##ab (2).
	if want := []string{"a", "##a", "b", "##b", "ab", "##ab", "abab"}; !slices.Equal(learned, want) {
		t.Errorf("learned %q, want %q", learned, want)
	}
}

func TestLearn(t *testing.T) {
	for _, model := range []string{"wordpiece", "bpe"} {
		for _, lower := range []bool{false, true} {
			o := LearnOptions{Model: model, VocabSize: 400, Lowercase: lower}
			tok := learn(t, o, corpus)
			var e Encoding
			tok.Encode(&e, []byte("The orders"))
			if n := e.Len(); n > 6 {
				t.Errorf("%s: %q is %d tokens: nothing was learned", model, "The orders", n)
			}
			path := filepath.Join(t.TempDir(), "tokenizer.json")
			if err := tok.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			back, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range append(difficultTexts(4, 200), corpus...) {
				var f Encoding
				tok.Encode(&e, []byte(text))
				back.Encode(&f, []byte(text))
				if !slices.Equal(e.IDs, f.IDs) {
					t.Fatalf("%s: %q is %v, read back %v", model, text, e.IDs, f.IDs)
				}
			}
			again := learn(t, o, slices.Concat(corpus[2:], corpus[:2]))
			if !bytes.Equal(tok.serialized, again.serialized) {
				t.Errorf("%s: the order of the mail changes the vocabulary", model)
			}
			if size := tok.VocabSize(); size > 400 {
				t.Errorf("%s: %d tokens, asked for 400", model, size)
			}
		}
	}
}

func TestLearnRefuses(t *testing.T) {
	for _, c := range []struct {
		o    LearnOptions
		text string
		want string
	}{
		{LearnOptions{}, "", "no text"},
		{LearnOptions{Model: "words"}, "a", "unknown model"},
		{LearnOptions{VocabSize: 5}, "a", "the alphabet and the specials alone are 7"},
		{LearnOptions{Model: "bpe", VocabSize: 100}, "a", "the bytes and the specials alone are 261"},
	} {
		l := NewLearner(c.o)
		l.Add([]byte(c.text))
		if _, err := l.Learn(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

// Forgetting keeps the frequent words.
func TestLearnForgets(t *testing.T) {
	l := NewLearner(LearnOptions{})
	l.maxWords = 100
	for i := range 1000 {
		l.Add([]byte("often w" + group(i + 1000)[2:]))
	}
	if n := len(l.names); n > 101 {
		t.Errorf("%d words are kept, bound 100", n)
	}
	if i, ok := l.words["often"]; !ok || l.counts[i] != 1000 {
		t.Error("a frequent word was forgotten")
	}
}

// TestPeersLearned holds learned tokenizers against the Rust library reading the written file.
func TestPeersLearned(t *testing.T) {
	needPeers(t)
	messages := newsgroupsWeek(t)
	for _, o := range []LearnOptions{{Model: "wordpiece", Lowercase: true}, {Model: "wordpiece"}, {Model: "bpe"}, {Model: "bpe", Lowercase: true}} {
		l := NewLearner(o)
		var texts []string
		for i, m := range messages {
			l.Add(m)
			if i%50 == 0 {
				texts = append(texts, strings.ToValidUTF8(string(m), "\uFFFD"))
			}
		}
		tok, err := l.Learn()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := tok.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if bad := compare(t, tok, rustCases(t, path, append(difficultTexts(5, 1000), texts...))); bad > 0 {
			t.Errorf("%+v: %d texts differ", o, bad)
		}
	}
}

// BenchmarkLearn learns 8,000 tokens from the newsgroups week, 15 times over (about 100 MB).
func BenchmarkLearn(b *testing.B) {
	if os.Getenv("MISROUTE_LONG") != "1" {
		b.Skip("MISROUTE_LONG is not 1")
	}
	messages := newsgroupsWeek(b)
	size := int64(0)
	for _, m := range messages {
		size += int64(len(m))
	}
	for _, model := range []string{"wordpiece", "bpe"} {
		b.Run(model, func(b *testing.B) {
			const times = 15
			b.SetBytes(times * size)
			for b.Loop() {
				l := NewLearner(LearnOptions{Model: model, Lowercase: true})
				for range times {
					for _, m := range messages {
						l.Add(m)
					}
				}
				if _, err := l.Learn(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
