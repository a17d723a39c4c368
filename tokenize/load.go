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
