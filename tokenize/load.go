package tokenize

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Load reads a tokenizer: a tokenizer.json, a vocab.txt of BERT, or a folder that holds one of them.
// The tokenizer_config.json beside it gives MaxLength and, for a vocab.txt, the flags of the
// normalizer.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if info.IsDir() {
		file, err := findFile(path)
		if err != nil {
			return nil, err
		}
		path = file
	}
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	config, err := readConfig(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
	if err != nil {
		return nil, err
	}
	var t *Tokenizer
	if strings.EqualFold(filepath.Ext(path), ".txt") {
		t, err = parseVocabText(data, config)
	} else {
		t, err = Parse(data)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	t.maxLength = config.maxLength
	return t, nil
}

func findFile(dir string) (string, error) {
	for _, name := range []string{"tokenizer.json", "vocab.txt"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("tokenizer: %s has neither tokenizer.json nor vocab.txt", dir)
}

// readFile is os.ReadFile with a bound: a wrong path must not fill the memory.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", path, info.Size(), maxFileBytes)
	}
	return os.ReadFile(path)
}

// fileConfig is what is used of tokenizer_config.json.
type fileConfig struct {
	maxLength int
	lower     bool
	strip     bool
	chinese   bool
}

func readConfig(path string) (fileConfig, error) {
	c := fileConfig{lower: true, strip: true, chinese: true}
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("tokenizer: %w", err)
	}
	fail := func(err error) (fileConfig, error) { return c, fmt.Errorf("tokenizer: %s: %w", path, err) }
	root, err := parseJSON(data)
	if err != nil {
		return fail(err)
	}
	if v := root.get("model_max_length"); !v.isNull() {
		f, err := v.float()
		if err != nil {
			return fail(err)
		}
		// Files write 1e30 for "no limit".
		if f >= 1 && f < math.MaxInt32 {
			c.maxLength = int(f)
		}
	}
	lower, strip, chinese := root.get("do_lower_case"), root.get("strip_accents"), root.get("tokenize_chinese_chars")
	if c.lower, err = lower.boolOr(true); err != nil {
		return fail(err)
	}
	if c.strip, err = strip.boolOr(c.lower); err != nil { // null follows lowercase
		return fail(err)
	}
	if c.chinese, err = chinese.boolOr(true); err != nil {
		return fail(err)
	}
	return c, nil
}

// parseVocabText makes the WordPiece tokenizer of a BERT vocab.txt: one token a line, the id is the
// line's number from 0.
func parseVocabText(data []byte, c fileConfig) (*Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	var tokens []string
	seen := map[string]int{}
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		token := strings.TrimRight(sc.Text(), "\r")
		if first, ok := seen[token]; ok {
			return nil, fmt.Errorf("line %d: %q is the token of line %d already", len(tokens)+1, token, first)
		}
		tokens = append(tokens, token)
		seen[token] = len(tokens)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", len(tokens)+1, err)
	}
	for _, name := range []string{"[UNK]", "[CLS]", "[SEP]"} {
		if seen[name] == 0 {
			return nil, fmt.Errorf("no line is %s: not a BERT vocabulary", name)
		}
	}
	file := bertFile(tokens, c)
	t, err := Parse(file)
	if err != nil {
		return nil, err
	}
	t.sha = checksum(data)
	return t, nil
}

// bertFile writes the tokenizer.json of BERT around a vocabulary.
func bertFile(tokens []string, c fileConfig) []byte {
	ids := map[string]int{}
	for i, token := range tokens {
		ids[token] = i
	}
	var b bytes.Buffer
	b.WriteString("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [")
	comma := ""
	for i, token := range tokens {
		switch token {
		case "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]":
			fmt.Fprintf(&b, "%s\n    {\"id\": %d, \"content\": %s, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}",
				comma, i, quote(token))
			comma = ","
		}
	}
	fmt.Fprintf(&b, "\n  ],\n  \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": %t, \"strip_accents\": %t, \"lowercase\": %t},\n",
		c.chinese, c.strip, c.lower)
	b.WriteString("  \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},\n")
	b.WriteString(bertTemplate(ids["[CLS]"], ids["[SEP]"]))
	b.WriteString("  \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true},\n")
	b.WriteString("  \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": {")
	writeVocab(&b, tokens)
	b.WriteString("}}\n}\n")
	return b.Bytes()
}

// bertTemplate is the post-processor [CLS] A [SEP] (B [SEP]).
func bertTemplate(cls, sep int) string {
	return `  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [` + strconv.Itoa(cls) + `], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [` + strconv.Itoa(sep) + `], "tokens": ["[SEP]"]}}},
`
}

func writeVocab(b *bytes.Buffer, tokens []string) {
	for i, token := range tokens {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n      ")
		b.WriteString(quote(token))
		b.WriteString(": ")
		b.WriteString(strconv.Itoa(i))
	}
}

// quote writes a JSON string; bytes outside UTF-8 do not occur in tokens.
func quote(s string) string {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// WriteFile writes the tokenizer as a tokenizer.json, by way of a second file, so that a crash leaves
// no half of one.
func (t *Tokenizer) WriteFile(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tokenizer-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.Write(t.serialized)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
