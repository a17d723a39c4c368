package tokenize

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

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

// robertaFile writes a tokenizer.json as RoBERTa's around a byte-level vocabulary and its merges.
func robertaFile(tokens []string, merges []pair, lower bool) []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [")
	for i, token := range robertaSpecials {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n    {\"id\": %d, \"content\": %s, \"single_word\": false, \"lstrip\": %t, \"rstrip\": false, \"normalized\": false, \"special\": true}",
			i, quote(token), token == "<mask>")
	}
	normalizer := "null"
	if lower {
		normalizer = `{"type": "Lowercase"}`
	}
	b.WriteString("\n  ],\n  \"normalizer\": " + normalizer + `,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": false},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {`)
	writeVocab(&b, tokens)
	b.WriteString("}, \"merges\": [")
	for i, p := range merges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n      [" + quote(tokens[p.a]) + ", " + quote(tokens[p.b]) + "]")
	}
	b.WriteString("]}\n}\n")
	return b.Bytes()
}
