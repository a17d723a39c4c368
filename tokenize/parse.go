package tokenize

import (
	"fmt"
	"sort"
	"strings"
)

// Parse reads the contents of a tokenizer.json. An unknown component is an error that names its place.
func Parse(data []byte) (*Tokenizer, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("tokenizer of %d bytes: at most %d are read", len(data), maxFileBytes)
	}
	loadUnicode()
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	if root.raw == nil || root.raw[0] != '{' {
		return nil, root.errorf("want an object, got %s", root.kind())
	}
	t := &Tokenizer{sha: checksum(data), serialized: data, pool: &scratchPool{}}
	if t.model, err = readModel(root.get("model")); err != nil {
		return nil, err
	}
	if t.normalize, err = readNormalizer(root.get("normalizer")); err != nil {
		return nil, err
	}
	if t.split, err = readPreTokenizer(root.get("pre_tokenizer")); err != nil {
		return nil, err
	}
	if err = t.readAdded(root.get("added_tokens")); err != nil {
		return nil, err
	}
	t.joinByteLevel()
	if err = t.readPostProcessor(root.get("post_processor")); err != nil {
		return nil, err
	}
	if t.trim != nil {
		t.trim.measure(t)
	}
	t.readOwnCuts(root)
	t.findPad(root)
	return t, nil
}

// maxFileBytes bounds a tokenizer.json; the largest published ones are about 40 MB.
const maxFileBytes = 512 << 20

func readModel(v value) (model, error) {
	if v.isNull() {
		return nil, v.errorf("the model is missing")
	}
	typeValue := v.get("type")
	name, err := typeValue.strOr("")
	if err != nil {
		return nil, err
	}
	if name == "" { // older files leave it out: the members tell
		vocabValue, merges, unkID := v.get("vocab"), v.get("merges"), v.get("unk_id")
		switch {
		case !merges.isNull():
			name = "BPE"
		case vocabValue.kind() == "an array" || !unkID.isNull():
			name = "Unigram"
		default:
			name = "WordPiece"
		}
	}
	switch name {
	case "WordPiece":
		return readWordPiece(v)
	case "BPE":
		return readBPE(v)
	case "Unigram":
		return readUnigram(v)
	case "WordLevel":
		return readWordLevel(v)
	}
	return nil, typeValue.errorf("unknown model %q; known: BPE, Unigram, WordLevel, WordPiece", name)
}

// readAdded reads $.added_tokens. A token the model knows has the model's id.
func (t *Tokenizer) readAdded(v value) error {
	t.added = &addedTokens{ids: map[string]int32{}, byID: map[int32]addedToken{}}
	var order []addedToken
	if !v.isNull() {
		err := v.array(func(_ int, e value) error {
			a, err := readAddedToken(e)
			if err != nil || a.content == "" {
				return err
			}
			idValue := e.get("id")
			if id, ok := t.model.id(a.content); ok && id != a.id {
				return idValue.errorf("%q has id %d, and id %d in the model's vocabulary", a.content, a.id, id)
			}
			if other, ok := t.model.token(a.id); ok && other != a.content {
				return idValue.errorf("id %d belongs to %q already", a.id, other)
			}
			if other, ok := t.added.byID[a.id]; ok && other.content != a.content {
				return idValue.errorf("id %d belongs to %q already", a.id, other.content)
			}
			if old, ok := t.added.ids[a.content]; ok && old != a.id {
				return idValue.errorf("%q has ids %d and %d", a.content, old, a.id)
			}
			t.added.ids[a.content], t.added.byID[a.id] = a.id, a
			order = append(order, a)
			return nil
		})
		if err != nil {
			return err
		}
	}
	t.buildMatchers(order)
	return nil
}

// joinByteLevel lets a byte-level model take bytes as they are when nothing stands between it and the
// pre-tokenizer that would write them as characters.
func (t *Tokenizer) joinByteLevel() {
	m, ok := t.model.(*bpe)
	if !ok || len(t.split) == 0 {
		return
	}
	if last, ok := t.split[len(t.split)-1].(*byteLevel); ok {
		last.raw = m.useBytes()
	}
}

// buildMatchers splits the added tokens into those matched before and after normalization, special
// ones first.
func (t *Tokenizer) buildMatchers(order []addedToken) {
	sort.SliceStable(order, func(i, j int) bool { return order[i].special && !order[j].special })
	var raw, normalized []addedToken
	var rawBy, normalizedBy []string
	s := &scratch{}
	for _, a := range order {
		a = t.added.byID[a.id] // the last of several with one content decides
		if !a.normalized {
			raw, rawBy = append(raw, a), append(rawBy, a.content)
			continue
		}
		s.load([]byte(a.content), 0)
		for _, n := range t.normalize {
			n.normalize(s)
		}
		normalized, normalizedBy = append(normalized, a), append(normalizedBy, string(s.text.b))
	}
	t.added.raw = newMatcher(raw, rawBy)
	t.added.normalized = newMatcher(normalized, normalizedBy)
}

func readAddedToken(v value) (a addedToken, err error) {
	content, idValue := v.get("content"), v.get("id")
	if a.content, err = content.str(); err != nil {
		return a, err
	}
	if a.id, err = idValue.id(); err != nil {
		return a, err
	}
	for _, flag := range []struct {
		name string
		to   *bool
	}{{"single_word", &a.singleWord}, {"lstrip", &a.lstrip}, {"rstrip", &a.rstrip}, {"normalized", &a.normalized}, {"special", &a.special}} {
		member := v.get(flag.name)
		if *flag.to, err = member.boolOr(false); err != nil {
			return a, err
		}
	}
	return a, nil
}

// readOwnCuts warns of truncation and padding that the file asks for: the cap of a run is the run's.
func (t *Tokenizer) readOwnCuts(root value) {
	if v := root.get("truncation"); !v.isNull() {
		length := v.get("max_length")
		t.warnings = append(t.warnings, fmt.Sprintf("tokenizer.json asks to truncate to %s tokens ($.truncation); ignored, the cap of the run counts", length.short()))
	}
	if v := root.get("padding"); !v.isNull() {
		strategy := v.get("strategy")
		t.warnings = append(t.warnings, fmt.Sprintf("tokenizer.json asks for padding %s ($.padding); ignored, nothing is padded",
			strings.Join(strings.Fields(strategy.short()), " ")))
	}
}

// findPad finds the padding token: the one $.padding names, or the usual name among the special ones.
func (t *Tokenizer) findPad(root value) {
	padding := root.get("padding")
	if v := padding.get("pad_id"); !v.isNull() {
		if id, err := v.id(); err == nil {
			t.padID, t.hasPad = id, true
			return
		}
	}
	for _, name := range []string{"[PAD]", "<pad>", "<|padding|>", "<|pad|>", "<PAD>"} {
		if id, ok := t.ID(name); ok {
			t.padID, t.hasPad = id, true
			return
		}
	}
}
