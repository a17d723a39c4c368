package tokenize

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// wordPieceFile is a BERT tokenizer of a few words.
const wordPieceFile = `{"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":0,"content":"[PAD]","special":true},{"id":1,"content":"[UNK]","special":true},{"id":2,"content":"[CLS]","special":true},
 {"id":3,"content":"[SEP]","special":true},{"id":4,"content":"[MASK]","special":true}],
"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
 "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"a":5,"naive":6,"caf":7,"##e":8,",":9,"allen":10,"##nl":11,"##p":12,"e":13,"\uff0c":14,"##x":15,"中":16}}}`

// byteFile is a byte-level BPE tokenizer with two merges.
func byteFile(members string) string {
	var vocab []string
	for b, r := range byteRunes {
		vocab = append(vocab, fmt.Sprintf("%s:%d", quote(string(r)), b))
	}
	return `{"added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
"post_processor":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
"model":{"type":"BPE","dropout":null` + members + `,"vocab":{` + strings.Join(vocab, ",") + `,"ab":256,"abc":257,"\u0120a":258},"merges":["a b",["ab","c"],["\u0120","a"]]}}`
}

// unigramFile is a Unigram tokenizer: "ab" scores better than "a" and "b" together.
const unigramFile = `{"added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},
"pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always","split":true},"post_processor":null,
"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["\u2581",-2.0],["a",-3.0],["b",-3.5],["ab",-4.0],["\u2581ab",-9.0],["fi",-5.0]]}}`

func parse(tb testing.TB, file string) *Tokenizer {
	tb.Helper()
	t, err := Parse([]byte(file))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// want is one token of a text: its string and its bytes.
type want struct {
	piece      string
	start, end int32
}

func TestEncodeByHand(t *testing.T) {
	wordPiece, unigram := parse(t, wordPieceFile), parse(t, unigramFile)
	bpe := parse(t, byteFile(""))
	for _, c := range []struct {
		name string
		tok  *Tokenizer
		text string
		want []want
	}{
		{"composed accent spans both bytes", wordPiece, "Café", []want{{"[CLS]", 0, 0}, {"caf", 0, 3}, {"##e", 3, 5}, {"[SEP]", 0, 0}}},
		{"a combining accent is left out", wordPiece, "cafe\u0301x", []want{{"[CLS]", 0, 0}, {"caf", 0, 3}, {"##e", 3, 4}, {"##x", 6, 7}, {"[SEP]", 0, 0}}},
		{"offsets after an added token are not shifted", wordPiece, "A, naïve [MASK] AllenNLP",
			[]want{{"[CLS]", 0, 0}, {"a", 0, 1}, {",", 1, 2}, {"naive", 3, 9}, {"[MASK]", 10, 16}, {"allen", 17, 22}, {"##nl", 22, 24}, {"##p", 24, 25}, {"[SEP]", 0, 0}}},
		{"full-width comma alone", wordPiece, "，", []want{{"[CLS]", 0, 0}, {"，", 0, 3}, {"[SEP]", 0, 0}}},
		{"ideographs stand alone", wordPiece, "a中a", []want{{"[CLS]", 0, 0}, {"a", 0, 1}, {"中", 1, 4}, {"a", 4, 5}, {"[SEP]", 0, 0}}},
		{"nothing", wordPiece, "", []want{{"[CLS]", 0, 0}, {"[SEP]", 0, 0}}},
		{"controls go, and do not move what follows", wordPiece, "\x00a\u0085\x01e", []want{{"[CLS]", 0, 0}, {"a", 1, 2}, {"##e", 5, 6}, {"[SEP]", 0, 0}}},
		{"a space at the front is not in the offsets", bpe, "abc ad", []want{{"abc", 0, 3}, {"\u0120a", 4, 5}, {"d", 5, 6}}},
		{"the pair learned first is merged first", bpe, "abc abd", []want{{"abc", 0, 3}, {"\u0120", 4, 4}, {"ab", 4, 6}, {"d", 6, 7}}},
		{"bytes of one character share its range", bpe, "é", []want{{"\u00c3", 0, 2}, {"\u00a9", 0, 2}}},
		{"the better path wins", unigram, "ab", []want{{"\u2581", 0, 1}, {"ab", 0, 2}}},
		{"unknown characters are one", unigram, "xyzab", []want{{"\u2581", 0, 1}, {"xyz", 0, 3}, {"ab", 3, 5}}},
		{"a ligature is two characters in one place", unigram, "a ﬁ", []want{{"\u2581", 0, 1}, {"a", 0, 1}, {"\u2581", 1, 2}, {"fi", 2, 5}}},
	} {
		var e Encoding
		pieces := c.tok.EncodePieces(&e, []byte(c.text))
		var got []want
		for i, piece := range pieces {
			got = append(got, want{piece, e.Start[i], e.End[i]})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q is %v, want %v", c.name, c.text, got, c.want)
		}
	}
}

// Each maximal subpart is one U+FFFD: the examples of the Unicode standard, section 3.9, tables 3-8 to
// 3-11. BERT cleans U+FFFD away, so the letters around show where the bytes are.
func TestInvalidUTF8(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int // replacement characters
	}{
		{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 8},
		{"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 8},
		{"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 7},
		{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 4},
		{"\xE2\x82", 1}, {"\xF0\x9F\x98", 1}, {"\xC3", 1}, {"a\xFFb", 1}, {"\uFFFD\xFF", 2},
	} {
		out, _ := repair(nil, nil, []byte(c.in))
		if got := strings.Count(string(out), "\uFFFD"); got != c.want {
			t.Errorf("%q: %d replacements in %q, want %d", c.in, got, out, c.want)
		}
	}
	tok := parse(t, byteFile(""))
	var e Encoding
	tok.Encode(&e, []byte("ab\xE2\x82abc\xFFab"))
	// ab, three bytes of U+FFFD for e2 82, abc, three for ff, ab.
	wantStart := []int32{0, 2, 2, 2, 4, 7, 7, 7, 8}
	wantEnd := []int32{2, 4, 4, 4, 7, 8, 8, 8, 10}
	if !slices.Equal(e.Start, wantStart) || !slices.Equal(e.End, wantEnd) {
		t.Errorf("at %v, %v; want %v, %v", e.Start, e.End, wantStart, wantEnd)
	}
}

// Marks far apart and steps back: the walk agrees with bisection for each offset alone.
func TestUnrepair(t *testing.T) {
	var marks []mark
	for i := range int32(100) {
		marks = append(marks, mark{10 * (i + 1), -2 * (i + 1)})
	}
	offsets := []int32{0, 9, 10, 11, 995, 12, 1000, 3, 500, 499, 2000, 10}
	got := slices.Clone(offsets)
	unrepair(marks, got)
	for i, o := range offsets {
		if want := o - 2*min(100, o/10); got[i] != want {
			t.Errorf("offset %d is %d, want %d", o, got[i], want)
		}
	}
}

func TestLiteralSpecials(t *testing.T) {
	tok := parse(t, wordPieceFile)
	var e Encoding
	tok.Encode(&e, []byte("a [SEP]"))
	if want := []int32{2, 5, 3, 3}; !slices.Equal(e.IDs, want) {
		t.Errorf("ids %v, want %v", e.IDs, want)
	}
	tok.Literal().Encode(&e, []byte("a [SEP]"))
	if want := []int32{2, 5, 1, 1, 1, 3}; !slices.Equal(e.IDs, want) { // "[", "sep", "]" are unknown
		t.Errorf("literal ids %v, want %v", e.IDs, want)
	}
}

func TestFacts(t *testing.T) {
	tok := parse(t, strings.Replace(strings.Replace(wordPieceFile, `"truncation":null`, `"truncation":{"direction":"Right","max_length":128,"strategy":"LongestFirst","stride":0}`, 1),
		`"padding":null`, `"padding":{"strategy":{"Fixed":128},"pad_id":0,"pad_token":"[PAD]"}`, 1))
	before, after := tok.Specials()
	pad, ok := tok.PadID()
	if tok.Describe() != "WordPiece 17" || tok.VocabSize() != 17 || tok.MaxID() != 16 || pad != 0 || !ok ||
		!slices.Equal(before, []int32{2}) || !slices.Equal(after, []int32{3}) || tok.Token(7) != "caf" || tok.Token(99) != "" || tok.Token(-1) != "" {
		t.Errorf("%s, %d, %d, pad %d %v, %v, %v", tok.Describe(), tok.VocabSize(), tok.MaxID(), pad, ok, before, after)
	}
	if w := strings.Join(tok.Warnings(), "\n"); !strings.Contains(w, "truncate to 128") || !strings.Contains(w, "padding") {
		t.Errorf("warnings %q", w)
	}
	if len(parse(t, wordPieceFile).Warnings()) != 0 {
		t.Error("a file that cuts nothing gives a warning")
	}
}

func TestLoadVocabText(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nÉa\r\n##a\r\nea\r\n")
	var e Encoding
	for _, c := range []struct {
		config string
		want   []int32
		length int
	}{
		{``, []int32{2, 7, 6, 3}, 0}, // lowercased, accents stripped: ea ##a
		{`{"do_lower_case": false, "model_max_length": 512}`, []int32{2, 5, 6, 3}, 512},
		{`{"do_lower_case": true, "model_max_length": 1000000000000000019884624838656}`, []int32{2, 7, 6, 3}, 0}, // 1e30: unset
	} {
		if c.config != "" {
			write("tokenizer_config.json", c.config)
		}
		tok, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		tok.Encode(&e, []byte("Éaa"))
		if !slices.Equal(e.IDs, c.want) || tok.MaxLength() != c.length {
			t.Errorf("%s: ids %v, want %v; max length %d, want %d", c.config, e.IDs, c.want, tok.MaxLength(), c.length)
		}
	}
}

// Errors name the place in the file.
func TestParseErrors(t *testing.T) {
	edit := func(old, new string) string {
		if !strings.Contains(wordPieceFile, old) {
			t.Fatalf("the file has no %q", old)
		}
		return strings.Replace(wordPieceFile, old, new, 1)
	}
	for _, c := range []struct{ file, want string }{
		{`{`, "not valid JSON"},
		{`[]`, "$: want an object"},
		{`{}`, "$.model: the model is missing"},
		{"{\"a\xff\":1}", "not valid UTF-8"},
		{edit(`"WordPiece"`, `"Magic"`), `$.model.type: unknown model "Magic"`},
		{edit(`"BertNormalizer"`, `"Magic"`), `$.normalizer.type: unknown normalizer "Magic"`},
		{edit(`"BertPreTokenizer"`, `"Magic"`), `$.pre_tokenizer.type: unknown pre-tokenizer "Magic"`},
		{edit(`"BertProcessing"`, `"Magic"`), `$.post_processor.type: unknown post-processor "Magic"`},
		{edit(`"caf":7`, `"caf":8`), `$.model.vocab.##e: id 8 belongs to "caf" already`},
		{edit(`"caf":7`, `"a":7`), "$.model.vocab.a: token given twice, with ids 5 and 7"},
		{edit(`"caf":7`, `"caf":-7`), "$.model.vocab.caf: token id -7 outside"},
		{edit(`"caf":7`, `"caf":99999999999`), "$.model.vocab.caf: token id 99999999999 outside"},
		{edit(`"caf":7`, `"caf":"x"`), "$.model.vocab.caf: want a token id"},
		{edit(`"unk_token":"[UNK]"`, `"unk_token":"<unk>"`), `$.model.unk_token: the vocabulary has no "<unk>"`},
		{edit(`{"id":4,"content":"[MASK]"`, `{"id":5,"content":"[MASK]"`), `$.added_tokens[4].id: "[MASK]" has id 5, and id 4`},
		{edit(`{"id":4,"content":"[MASK]"`, `{"id":5,"content":"<m>"`), `$.added_tokens[4].id: id 5 belongs to "a" already`},
		{edit(`"max_input_chars_per_word":100`, `"max_input_chars_per_word":0`), "$.model.max_input_chars_per_word: must be at least 1"},
		{edit(`"lowercase":true`, `"lowercase":1`), "$.normalizer.lowercase: want true or false, got a number"},
		{edit(`{"type":"BertPreTokenizer"}`, `{"type":"Split","pattern":{"Regex":"a("},"behavior":"Isolated"}`), `$.pre_tokenizer.pattern.Regex: pattern "a("`},
		{edit(`{"type":"BertPreTokenizer"}`, `{"type":"Split","pattern":{"String":"a"},"behavior":"Gone"}`), `$.pre_tokenizer.behavior: unknown behavior "Gone"`},
		{edit(`{"type":"BertPreTokenizer"}`, `{"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"X"}]}`), `$.pre_tokenizer.pretokenizers[1].type: unknown pre-tokenizer "X"`},
		{edit(`{"type":"BertPreTokenizer"}`, `{"type":"Metaspace","replacement":"__"}`), "$.pre_tokenizer.replacement: want one character"},
		{strings.Replace(byteFile(""), `["ab","c"]`, `["ab","zz"]`, 1), `$.model.merges[1]: the vocabulary has no "zz"`},
		{strings.Replace(byteFile(""), `["ab","c"]`, `["ab","d"]`, 1), `$.model.merges[1]: the vocabulary has no "abd"`},
		{strings.Replace(byteFile(""), `"dropout":null`, `"dropout":0.1`, 1), "$.model.dropout: a dropout of 0.1 makes ids random"},
		{strings.Replace(unigramFile, `"unk_id":0`, `"unk_id":70`, 1), "$.model.unk_id: id 70 is outside"},
		{strings.Replace(unigramFile, `["a",-3.0]`, `["a"]`, 1), "$.model.vocab[2]: want [token, score]"},
		{strings.Replace(unigramFile, `{"type":"NFKC"}`, `{"type":"Precompiled","precompiled_charsmap":"AAA="}`, 1), "$.normalizer.normalizers[0].precompiled_charsmap: a map of 2 bytes"},
	} {
		_, err := Parse([]byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// A file without model.type, as older ones are, is recognized by its members.
func TestModelIsInferred(t *testing.T) {
	for want, file := range map[string]string{
		"WordPiece": strings.Replace(wordPieceFile, `"type":"WordPiece",`, "", 1),
		"BPE":       strings.Replace(byteFile(""), `"type":"BPE",`, "", 1),
		"Unigram":   strings.Replace(unigramFile, `"type":"Unigram",`, "", 1),
	} {
		if got := parse(t, file).Describe(); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestEncodeIsSafeForGoroutines(t *testing.T) {
	tok := parse(t, wordPieceFile)
	texts := difficultTexts(7, 300)
	wants := make([][]int32, len(texts))
	for i, text := range texts {
		var e Encoding
		tok.Encode(&e, []byte(text))
		wants[i] = slices.Clone(e.IDs)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var e Encoding
			for i, text := range texts {
				tok.Encode(&e, []byte(text))
				if !slices.Equal(e.IDs, wants[i]) {
					t.Errorf("%q: %v, alone %v", text, e.IDs, wants[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestEncodeAllocatesNothing(t *testing.T) {
	for _, file := range []string{wordPieceFile, byteFile(""), unigramFile} {
		tok := parse(t, file)
		text := []byte(strings.Join(difficultTexts(8, 100), " "))
		var e Encoding
		tok.Encode(&e, text)
		if n := testing.AllocsPerRun(20, func() { tok.Encode(&e, text) }); n != 0 {
			t.Errorf("%s: %v allocations a message", tok.Describe(), n)
		}
	}
}

// Texts that quadratic code does not survive, on every model; sizes grow under MISROUTE_LONG.
func TestEncodeIsLinear(t *testing.T) {
	n := 1 << 17
	if os.Getenv("MISROUTE_LONG") == "1" {
		n = 10 << 20
	}
	nested := strings.Replace(wordPieceFile, `"added_tokens":[`, `"added_tokens":[{"id":20,"content":"<<<<<<<<<<<<<<<<>","rstrip":true,"lstrip":true},{"id":21,"content":"  ","rstrip":true,"normalized":true},`, 1)
	gpt4 := strings.Replace(byteFile(""), `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},`,
		`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},`, 1)
	whole := strings.Replace(unigramFile, `"split":true`, `"split":false`, 1)
	for name, file := range map[string]string{"wordpiece": nested, "bpe": byteFile(""), "gpt-4": gpt4, "unigram": unigramFile, "whole": whole} {
		tok := parse(t, file)
		var e Encoding
		for _, unit := range []string{"a", "ab", "\u0301", "e\u0323\u0301", "<", " ", "\n", "  x", "\xff", "中", "[MASK]", "\U0001f468\u200d", "a\u200d", "1"} {
			text := bytes.Repeat([]byte(unit), n/len(unit))
			tok.Encode(&e, text)
			for i, end := range e.End {
				if e.Start[i] > end || int(end) > len(text) {
					t.Fatalf("%s, %q repeated: token %d at [%d,%d)", name, unit, i, e.Start[i], end)
				}
			}
		}
	}
}

// FuzzEncode checks what holds for any bytes: offsets lie in the text and on no broken order, the cache
// changes nothing, and the ids are tokens.
func FuzzEncode(f *testing.F) {
	files := []string{wordPieceFile, byteFile(""), byteFile(`,"ignore_merges":true`), unigramFile,
		strings.Replace(unigramFile, `{"type":"NFKC"}`, `{"type":"NFD"},{"type":"StripAccents"},{"type":"Lowercase"},{"type":"Nmt"},{"type":"Strip"}`, 1)}
	var toks []*Tokenizer
	for _, file := range files {
		toks = append(toks, parse(f, file))
	}
	for _, text := range difficult {
		f.Add([]byte(text))
	}
	f.Add([]byte("a\xe2\x82 \xf0\x9f[MASK]\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e, again Encoding
		for _, tok := range toks {
			tok.Encode(&e, text)
			pieces := tok.EncodePieces(&again, text)
			if !slices.Equal(e.IDs, again.IDs) || len(pieces) != len(e.IDs) || len(e.Special) != len(e.IDs) || len(e.TypeIDs) != len(e.IDs) {
				t.Fatalf("%s: %v and %v", tok, e.IDs, again.IDs)
			}
			for i := range e.IDs {
				if e.Start[i] < 0 || e.Start[i] > e.End[i] || int(e.End[i]) > len(text) || tok.Token(e.IDs[i]) == "" {
					t.Fatalf("%s: token %d is %d at [%d,%d) of %d", tok, i, e.IDs[i], e.Start[i], e.End[i], len(text))
				}
			}
		}
	})
}

// FuzzParse reads any file without a panic, and what it accepts encodes any text.
func FuzzParse(f *testing.F) {
	for _, file := range []string{wordPieceFile, byteFile(""), unigramFile} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tok, err := Parse(file)
		if err != nil {
			return
		}
		var e Encoding
		for _, text := range []string{"", "Café au lait 12 [MASK]  \u0301\xff中", "abab \n\n x"} {
			tok.Encode(&e, []byte(text))
		}
	})
}

// FuzzRegex compiles any pattern and runs it without a panic.
func FuzzRegex(f *testing.F) {
	for _, p := range []string{gpt2Pattern, `(?i:a|b)+?(?=c)[^\w\s&&\p{L}]{1,3}`, `(?<!a)\b.*`} {
		f.Add(p, "don't 12 a")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := newRegex(pattern)
		if err != nil {
			return
		}
		valid := []byte(strings.ToValidUTF8(text, "?"))
		last := int32(0)
		for _, m := range re.find(&scratch{}, nil, valid) {
			if m.start < last || m.end < m.start || int(m.end) > len(valid) {
				t.Fatalf("%q on %q: match %v after %d", pattern, text, m, last)
			}
			last = m.end
		}
	})
}
