package tokenize

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Parse reads the contents of a tokenizer.json. An unknown component is an error that names its place.
func Parse(data []byte) (*Tokenizer, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("tokenizer of %d bytes: at most %d are read", len(data), maxFileBytes)
	}
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
	if err = t.readPostProcessor(root.get("post_processor")); err != nil {
		return nil, err
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
	}
	return nil, typeValue.errorf("unknown model %q; known: BPE, Unigram, WordPiece", name)
}

func readNormalizer(v value) ([]normalizer, error) {
	if v.isNull() {
		return nil, nil
	}
	typeValue := v.get("type")
	name, err := typeValue.str()
	if err != nil {
		return nil, err
	}
	switch name {
	case "BertNormalizer":
		return readBertNormalizer(v)
	}
	return nil, typeValue.errorf("unknown normalizer %q", name)
}

func readBertNormalizer(v value) ([]normalizer, error) {
	var n bertNormalizer
	var err error
	read := func(name string, absent bool) bool {
		member := v.get(name)
		b, e := member.boolOr(absent)
		err = errors.Join(err, e)
		return b
	}
	n.clean = read("clean_text", true)
	n.chinese = read("handle_chinese_chars", true)
	n.lower = read("lowercase", true)
	n.strip = read("strip_accents", n.lower) // null follows lowercase
	return []normalizer{n}, err
}

func readPreTokenizer(v value) ([]preTokenizer, error) {
	if v.isNull() {
		return nil, nil
	}
	typeValue := v.get("type")
	name, err := typeValue.str()
	if err != nil {
		return nil, err
	}
	switch name {
	case "BertPreTokenizer":
		return []preTokenizer{bertPreTokenizer{}}, nil
	}
	return nil, typeValue.errorf("unknown pre-tokenizer %q", name)
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

// readPostProcessor reads $.post_processor, of which the single-sequence side counts here.
func (t *Tokenizer) readPostProcessor(v value) error {
	if v.isNull() {
		return nil
	}
	typeValue := v.get("type")
	name, err := typeValue.str()
	if err != nil {
		return err
	}
	switch name {
	case "TemplateProcessing":
		return t.readTemplate(v)
	}
	return typeValue.errorf("unknown post-processor %q", name)
}

func (t *Tokenizer) readTemplate(v value) error {
	single := v.get("single")
	specials := v.get("special_tokens")
	seen := false
	return single.array(func(_ int, e value) error {
		return e.object(func(kind string, m value) error {
			idValue, typeValue := m.get("id"), m.get("type_id")
			name, err := idValue.str()
			if err != nil {
				return err
			}
			typeID, err := typeValue.intOr(0)
			if err != nil {
				return err
			}
			switch kind {
			case "Sequence":
				if name != "A" || seen {
					return idValue.errorf("a single template holds the sequence A once, got %q", name)
				}
				seen = true
				t.template.typeID = int32(typeID)
				return nil
			case "SpecialToken":
				entry := specials.get(name)
				ids := entry.get("ids")
				if ids.isNull() {
					return idValue.errorf("%s has no entry for %q", specials.path(), name)
				}
				return ids.array(func(_ int, idv value) error {
					id, err := idv.id()
					if err != nil {
						return err
					}
					to := &t.template.before
					if seen {
						to = &t.template.after
					}
					*to = append(*to, special{id, int32(typeID)})
					return nil
				})
			}
			return e.errorf("unknown template piece %q; known: Sequence, SpecialToken", kind)
		})
	})
}

// readOwnCuts warns of truncation and padding that the file asks for: the cap of a run is the run's.
func (t *Tokenizer) readOwnCuts(root value) {
	if v := root.get("truncation"); !v.isNull() {
		length := v.get("max_length")
		t.warnings = append(t.warnings, fmt.Sprintf("tokenizer.json asks to truncate to %s tokens ($.truncation); ignored, the cap of the run counts", length.short()))
	}
	if v := root.get("padding"); !v.isNull() {
		strategy := v.get("strategy")
		t.warnings = append(t.warnings, fmt.Sprintf("tokenizer.json asks for padding %s ($.padding); ignored, nothing is padded", strings.TrimSpace(strategy.short())))
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
