package tokenize

import (
	"errors"
	"unicode/utf8"
)

// fields reads members of an object and keeps the first error.
type fields struct {
	v   value
	err error
}

func (f *fields) bool(name string, absent bool) bool {
	member := f.v.get(name)
	b, err := member.boolOr(absent)
	f.err = errors.Join(f.err, err)
	return b
}

func (f *fields) str(name, absent string) string {
	member := f.v.get(name)
	s, err := member.strOr(absent)
	f.err = errors.Join(f.err, err)
	return s
}

// char reads a string of one character.
func (f *fields) char(name string, absent rune) rune {
	member := f.v.get(name)
	s, err := member.strOr(string(absent))
	f.err = errors.Join(f.err, err)
	r, n := utf8.DecodeRuneInString(s)
	if err == nil && (n != len(s) || n == 0) {
		f.err = errors.Join(f.err, member.errorf("want one character, got %q", s))
	}
	return r
}

// readNormalizer reads $.normalizer; a sequence becomes one flat list.
func readNormalizer(v value) ([]normalizer, error) {
	if v.isNull() {
		return nil, nil
	}
	typeValue := v.get("type")
	name, err := typeValue.str()
	if err != nil {
		return nil, err
	}
	f := &fields{v: v}
	var n normalizer
	switch name {
	case "Sequence":
		return readSequence(v.get("normalizers"), readNormalizer)
	case "BertNormalizer":
		lower := f.bool("lowercase", true)
		n = newBertNormalizer(f.bool("clean_text", true), f.bool("handle_chinese_chars", true), f.bool("strip_accents", lower), lower)
	case "NFC":
		n = compose{}
	case "NFD":
		n = decompose{}
	case "NFKC":
		n = compose{compatible: true}
	case "NFKD":
		n = decompose{compatible: true}
	case "Lowercase":
		n = lowercase{}
	case "StripAccents":
		n = stripAccents()
	case "Strip":
		n = strip{f.bool("strip_left", true), f.bool("strip_right", true)}
	case "Prepend":
		n = prepend{[]rune(f.str("prepend", ""))}
	case "Nmt":
		n = nmt{}
	case "ByteLevel":
		n = byteLevelNormalizer{}
	case "Replace":
		pattern, err := readPattern(v.get("pattern"))
		if err != nil {
			return nil, err
		}
		n = replace{pattern, []rune(f.str("content", ""))}
	case "Precompiled":
		return readPrecompiled(v.get("precompiled_charsmap"))
	default:
		return nil, typeValue.errorf("unknown normalizer %q", name)
	}
	return []normalizer{n}, f.err
}

// readSequence reads an array of components with read.
func readSequence[T any](v value, read func(value) ([]T, error)) ([]T, error) {
	var all []T
	err := v.array(func(_ int, e value) error {
		if e.isNull() {
			return e.errorf("want a component, got null")
		}
		items, err := read(e)
		all = append(all, items...)
		return err
	})
	return all, err
}

func readPrecompiled(v value) ([]normalizer, error) {
	encoded, err := v.strOr("")
	if err != nil || encoded == "" { // no map: nothing to change
		return nil, err
	}
	p, err := newPrecompiled(encoded)
	if err != nil {
		return nil, v.errorf("%v", err)
	}
	return []normalizer{p}, nil
}

// readPattern reads {"String": s} or {"Regex": r}.
func readPattern(v value) (finder, error) {
	if v.kind() == "a string" { // older files
		s, err := v.str()
		return literal(s), err
	}
	if s := v.get("String"); !s.isNull() {
		text, err := s.str()
		return literal(text), err
	}
	r := v.get("Regex")
	source, err := r.str()
	if err != nil {
		return nil, err
	}
	if source == gpt2Pattern {
		return newGPT2Splitter(), nil
	}
	re, err := newRegex(source)
	if err != nil {
		return nil, r.errorf("%v", err)
	}
	return re, nil
}

// readPreTokenizer reads $.pre_tokenizer; a sequence becomes one flat list.
func readPreTokenizer(v value) ([]preTokenizer, error) {
	if v.isNull() {
		return nil, nil
	}
	typeValue := v.get("type")
	name, err := typeValue.str()
	if err != nil {
		return nil, err
	}
	f := &fields{v: v}
	var p preTokenizer
	switch name {
	case "Sequence":
		return readSequence(v.get("pretokenizers"), readPreTokenizer)
	case "BertPreTokenizer":
		p = newBertPreTokenizer()
	case "Whitespace":
		p = splitter{whitespaceWords{}, removed, true}
	case "WhitespaceSplit":
		p = splitter{runes{isSpace}, removed, false}
	case "ByteLevel":
		bl := &byteLevel{prefixSpace: f.bool("add_prefix_space", true)}
		if f.bool("use_regex", true) {
			bl.pattern = newGPT2Splitter()
		}
		p = bl
	case "Metaspace":
		return readMetaspace(v)
	case "Punctuation":
		how, err := readBehavior(v.get("behavior"), "Isolated")
		if err != nil {
			return nil, err
		}
		p = splitter{runes{isBertPunctuation}, how, false}
	case "Digits":
		how := contiguous
		if f.bool("individual_digits", false) {
			how = isolated
		}
		p = splitter{runes{func(r rune) bool { return uni.word(r)&rustNumeric != 0 }}, how, false}
	case "CharDelimiterSplit":
		c := f.char("delimiter", ' ')
		p = splitter{runes{func(r rune) bool { return r == c }}, removed, false}
	case "FixedLength":
		length := v.get("length")
		n, err := length.intOr(5)
		if err == nil && n < 1 {
			err = length.errorf("must be at least 1, got %d", n)
		}
		if err != nil {
			return nil, err
		}
		p = fixedLength(n)
	case "Split":
		pattern, err := readPattern(v.get("pattern"))
		if err != nil {
			return nil, err
		}
		how, err := readBehavior(v.get("behavior"), "")
		if err != nil {
			return nil, err
		}
		p = splitter{pattern, how, f.bool("invert", false)}
	default:
		return nil, typeValue.errorf("unknown pre-tokenizer %q", name)
	}
	return []preTokenizer{p}, f.err
}

func readBehavior(v value, absent string) (behavior, error) {
	name, err := v.strOr(absent)
	if err != nil {
		return 0, err
	}
	how, err := parseBehavior(name)
	if err != nil {
		return 0, v.errorf("%v", err)
	}
	return how, nil
}

// readMetaspace reads both forms: the older add_prefix_space and the newer prepend_scheme.
func readMetaspace(v value) ([]preTokenizer, error) {
	f := &fields{v: v}
	p := metaspace{replacement: f.char("replacement", '\u2581'), splits: f.bool("split", true)}
	prefix := f.bool("add_prefix_space", true)
	schemeValue := v.get("prepend_scheme")
	absent := "always"
	if !prefix {
		absent = "never"
	}
	switch scheme := f.str("prepend_scheme", absent); scheme {
	case "always":
		p.scheme = prependAlways
	case "never":
		p.scheme = prependNever
	case "first":
		p.scheme = prependFirst
	default:
		f.err = errors.Join(f.err, schemeValue.errorf("unknown scheme %q; known: always, first, never", scheme))
	}
	if !prefix && p.scheme != prependNever {
		f.err = errors.Join(f.err, schemeValue.errorf("contradicts add_prefix_space false"))
	}
	return []preTokenizer{p}, f.err
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
	f := &fields{v: v}
	switch name {
	case "Sequence":
		list := v.get("processors")
		return list.array(func(_ int, e value) error { return t.readPostProcessor(e) })
	case "TemplateProcessing":
		return t.readTemplate(v)
	case "ByteLevel":
		if f.bool("trim_offsets", true) {
			t.trim = &trimOffsets{prefixSpace: f.bool("add_prefix_space", true)}
		}
		return f.err
	case "BertProcessing", "RobertaProcessing":
		cls, err := readTokenPair(v.get("cls"))
		if err != nil {
			return err
		}
		sep, err := readTokenPair(v.get("sep"))
		if err != nil {
			return err
		}
		t.template.wrap(template{before: []special{{cls, 0}}, after: []special{{sep, 0}}})
		if name == "RobertaProcessing" && f.bool("trim_offsets", true) {
			t.trim = &trimOffsets{prefixSpace: f.bool("add_prefix_space", true)}
		}
		return f.err
	}
	return typeValue.errorf("unknown post-processor %q", name)
}

// readTokenPair reads ["[SEP]", 102].
func readTokenPair(v value) (int32, error) {
	parts, err := v.elements()
	if err != nil {
		return 0, err
	}
	if len(parts) != 2 {
		return 0, v.errorf("want [token, id], got %d elements", len(parts))
	}
	return parts[1].id()
}

// readTemplate reads the single template: specials around the sequence A.
func (t *Tokenizer) readTemplate(v value) error {
	single, specials := v.get("single"), v.get("special_tokens")
	var tpl template
	seen := false
	err := single.array(func(_ int, e value) error {
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
				tpl.typeID = int32(typeID)
				return nil
			case "SpecialToken":
				to := &tpl.before
				if seen {
					to = &tpl.after
				}
				return readSpecial(to, specials, idValue, name, int32(typeID))
			}
			return e.errorf("unknown template piece %q; known: Sequence, SpecialToken", kind)
		})
	})
	if err != nil {
		return err
	}
	if !seen {
		return single.errorf("the template has no sequence A")
	}
	t.template.wrap(tpl)
	return nil
}

// readSpecial appends the ids that $.post_processor.special_tokens has for a name.
func readSpecial(to *[]special, specials, at value, name string, typeID int32) error {
	entry := specials.get(name)
	ids := entry.get("ids")
	if ids.isNull() {
		return at.errorf("%s has no ids for %q", specials.path(), name)
	}
	return ids.array(func(_ int, e value) error {
		id, err := e.id()
		if err == nil {
			*to = append(*to, special{id, typeID})
		}
		return err
	})
}
