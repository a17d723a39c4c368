package tokenize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value is one JSON value of a tokenizer.json with the way that leads to it, so that every error can
// name its place. The bytes were validated as a whole before the first value was made, so walking
// them needs no error of its own.
type value struct {
	raw    []byte
	parent *value
	key    string // in an object
	index  int    // in an array; -1 otherwise
}

// parseJSON checks the syntax of data once and returns its root.
func parseJSON(data []byte) (value, error) {
	if !utf8.Valid(data) {
		return value{}, errors.New("not valid UTF-8")
	}
	if !json.Valid(data) {
		var any json.RawMessage
		err := json.Unmarshal(data, &any)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte{'\n'})
			return value{}, fmt.Errorf("not valid JSON at byte %d (line %d): %v", syntax.Offset, line, err)
		}
		return value{}, fmt.Errorf("not valid JSON: %v", err)
	}
	return value{raw: bytes.TrimSpace(data), index: -1}, nil
}

// path is the value's place in JSONPath form, "$" being the whole file.
func (v *value) path() string {
	var steps []string
	for ; v.parent != nil; v = v.parent {
		if v.index >= 0 {
			steps = append(steps, "["+strconv.Itoa(v.index)+"]")
		} else {
			steps = append(steps, "."+v.key)
		}
	}
	var sb strings.Builder
	sb.WriteByte('$')
	for i := len(steps) - 1; i >= 0; i-- {
		sb.WriteString(steps[i])
	}
	return sb.String()
}

func (v *value) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{v.path()}, args...)...)
}

func (v *value) isNull() bool { return len(v.raw) == 0 || v.raw[0] == 'n' }

// kind names the JSON type for messages.
func (v *value) kind() string {
	if len(v.raw) == 0 {
		return "nothing"
	}
	switch v.raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// skipSpace returns the index of the first byte of b at or after i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i. It keeps no stack: in valid JSON it
// is enough to count brackets outside strings.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			if depth == 0 {
				return i
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
			if depth == 0 {
				return i
			}
		default:
			if depth > 0 {
				i++
				continue
			}
			for i < len(b) && !bytes.ContainsRune([]byte(",]} \n\t\r"), rune(b[i])) {
				i++
			}
			return i
		}
	}
	return i
}

// skipString returns the index after the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return i
}

// object calls fn for every member, in the order of the file.
func (v *value) object(fn func(key string, member value) error) error {
	if len(v.raw) == 0 || v.raw[0] != '{' {
		return v.errorf("want an object, got %s", v.kind())
	}
	parent := *v
	b := v.raw
	i := skipSpace(b, 1)
	for i < len(b) && b[i] != '}' {
		end := skipString(b, i)
		key := unquote(b[i:end])
		i = skipSpace(b, skipSpace(b, end)+1) // over the colon
		end = skipValue(b, i)
		if err := fn(key, value{raw: b[i:end], parent: &parent, key: key, index: -1}); err != nil {
			return err
		}
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return nil
}

// array calls fn for every element.
func (v *value) array(fn func(i int, element value) error) error {
	if len(v.raw) == 0 || v.raw[0] != '[' {
		return v.errorf("want an array, got %s", v.kind())
	}
	parent := *v
	b := v.raw
	i := skipSpace(b, 1)
	for n := 0; i < len(b) && b[i] != ']'; n++ {
		end := skipValue(b, i)
		if err := fn(n, value{raw: b[i:end], parent: &parent, index: n}); err != nil {
			return err
		}
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return nil
}

// get returns the member of that name; it is null when there is none.
func (v *value) get(name string) value {
	parent := *v
	found := value{parent: &parent, key: name, index: -1}
	if len(v.raw) == 0 || v.raw[0] != '{' {
		return found
	}
	_ = v.object(func(key string, member value) error { // fn never fails
		if key == name {
			found = member
		}
		return nil
	})
	return found
}

// elements returns the elements of an array.
func (v *value) elements() ([]value, error) {
	var all []value
	err := v.array(func(_ int, e value) error {
		all = append(all, e)
		return nil
	})
	return all, err
}

func (v *value) str() (string, error) {
	if len(v.raw) == 0 || v.raw[0] != '"' {
		return "", v.errorf("want a string, got %s", v.kind())
	}
	return unquote(v.raw), nil
}

// strOr is str with a value for absence and null.
func (v *value) strOr(absent string) (string, error) {
	if v.isNull() {
		return absent, nil
	}
	return v.str()
}

func (v *value) boolOr(absent bool) (bool, error) {
	switch {
	case v.isNull():
		return absent, nil
	case string(v.raw) == "true":
		return true, nil
	case string(v.raw) == "false":
		return false, nil
	}
	return false, v.errorf("want true or false, got %s", v.kind())
}

// id reads a token id: a whole number that fits 31 bits.
func (v *value) id() (int32, error) {
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil {
		return 0, v.errorf("want a token id, got %s", v.short())
	}
	if n < 0 || n > maxID {
		return 0, v.errorf("token id %d outside 0..%d", n, maxID)
	}
	return int32(n), nil
}

func (v *value) intOr(absent int) (int, error) {
	if v.isNull() {
		return absent, nil
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil {
		return 0, v.errorf("want a whole number, got %s", v.short())
	}
	return int(n), nil
}

func (v *value) float() (float64, error) {
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil {
		return 0, v.errorf("want a number, got %s", v.short())
	}
	return f, nil
}

// short quotes the value for a message, cut to what fits a line.
func (v *value) short() string {
	if len(v.raw) <= 40 {
		return string(v.raw)
	}
	return strings.ToValidUTF8(string(v.raw[:40]), "") + "..."
}

// unquote decodes a JSON string; raw is known to be one.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // validated before
	return s
}
