package mail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// wrapperKeys are the names under which exports keep their list of records.
var wrapperKeys = map[string]bool{"tickets": true, "results": true, "messages": true, "data": true, "items": true, "records": true, "rows": true, "emails": true, "conversations": true}

// A jsonReader reads one object a line, or the objects of an array, of a stream of objects, or of
// the list inside a wrapping object ({"tickets": [...]}). A broken record is rejected alone.
type jsonReader struct {
	s       *stream
	limits  *Limits
	columns *columnMap
	lines   bool // one record a line
	array   bool // inside the list of records
	wrapper bool // inside a wrapping object
	wraps   bool // objects at the top are wrappers
	line    int64
	end     int64 // where the last record ended
}

func newJSONReader(s *stream, f Format, o *Options) *jsonReader {
	j := &jsonReader{s: s, limits: &o.Limits, columns: newColumnMap(o), line: 1, end: s.off}
	s.most = int(o.Limits.JSONBytes)
	s.skipBOM()
	s.fill(64 << 10)
	j.wraps = wraps(s.window())
	j.lines = f == FormatJSONL && !j.wraps
	return j
}

// oneALine says whether w starts JSON Lines: its first or its second line is complete by itself,
// or no line ends in w at all.
func oneALine(w []byte) bool {
	w = bytes.TrimLeft(w, " \t\r\n")
	if len(w) == 0 || w[0] == '[' {
		return false
	}
	first, rest, ok := bytes.Cut(w, []byte("\n"))
	if !ok || json.Valid(first) {
		return true
	}
	second, _, _ := bytes.Cut(bytes.TrimLeft(rest, " \t\r\n"), []byte("\n"))
	return len(second) > 1 && second[0] == '{' && json.Valid(second)
}

// wraps says whether the first object of w holds the records in a list: one of wrapperKeys, before
// any key that a record itself would have.
func wraps(w []byte) bool {
	w = bytes.TrimLeft(w, " \t\r\n")
	if len(w) == 0 || w[0] != '{' {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(w))
	if _, err := dec.Token(); err != nil {
		return false
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok || key == "id" || key == "subject" || key == "description" {
			return false
		}
		if wrapperKeys[key] {
			rest := bytes.TrimLeft(w[dec.InputOffset():], " \t\r\n:")
			if len(rest) > 1 && rest[0] == '[' {
				rest = bytes.TrimLeft(rest[1:], " \t\r\n")
				return len(rest) > 0 && (rest[0] == '{' || rest[0] == ']')
			}
			return false
		}
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return false
		}
	}
	return false
}

func (j *jsonReader) next() (*Message, error) {
	for {
		j.skipSpace()
		if !j.s.fill(1) {
			if err := j.s.fault(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		if j.lines || !j.punctuation() {
			break
		}
	}
	m := &Message{Format: FormatJSON, Offset: j.s.off, Line: j.line, Separator: j.s.off - j.end}
	end, rej := 0, (*Reject)(nil)
	if j.lines {
		m.Format = FormatJSONL
		end, rej = j.untilLineEnd()
	} else {
		end, rej = j.value()
	}
	raw := j.s.window()[:end]
	switch {
	case rej != nil:
		m.Reject = rej
		m.Length = int64(end) + max(0, rej.LimitActual)
		if rej.LimitName != "" {
			rej.LimitActual = m.Length
		}
	case j.s.fault() != nil && end == len(j.s.window()) && !json.Valid(raw):
		m.Reject = NewReject(CodeTruncated, j.s.fault().Error())
		m.Length = int64(end)
	default:
		m.Length = int64(len(bytes.TrimRight(raw, " \t\r\n")))
		j.decode(m, raw)
		end = int(m.Length)
	}
	j.consume(end)
	j.end = m.Offset + m.Length
	return m, nil
}

// consume advances and counts lines.
func (j *jsonReader) consume(n int) {
	j.line += int64(bytes.Count(j.s.window()[:n], []byte{'\n'}))
	j.s.advance(n)
}

func (j *jsonReader) skipSpace() {
	for j.s.fill(1) {
		w := j.s.window()
		n := len(w) - len(bytes.TrimLeft(w, " \t\r\n"))
		if n == 0 {
			return
		}
		j.consume(n)
	}
}

// punctuation consumes what stands between records and reports whether there was any.
func (j *jsonReader) punctuation() bool {
	c := j.s.window()[0]
	switch {
	case c == ',' || c == '}':
		j.wrapper = j.wrapper && c != '}'
	case c == ']':
		j.array = false
	case c == '[' && !j.array:
		j.array = true
	case c == '{' && j.wraps && !j.array && !j.wrapper:
		j.wrapper = true
	case j.wrapper && !j.array:
		j.member()
		return true
	default:
		return false
	}
	j.consume(1)
	return true
}

// member passes over one key of a wrapping object and its value, unless that is the list of
// records, which it enters.
func (j *jsonReader) member() {
	end, _ := j.value()
	key := ""
	_ = json.Unmarshal(j.s.window()[:end], &key)
	j.consume(end)
	j.skipSpace()
	if j.s.fill(1) && j.s.window()[0] == ':' {
		j.consume(1)
		j.skipSpace()
	}
	if !j.s.fill(1) || wrapperKeys[key] && j.s.window()[0] == '[' {
		return
	}
	end, _ = j.value()
	j.consume(max(end, min(1, len(j.s.window()))))
}

// untilLineEnd measures the rest of the line. A line over the limit is consumed but for its end;
// LimitActual then holds the bytes already gone.
func (j *jsonReader) untilLineEnd() (int, *Reject) {
	scan := 0
	for {
		w := j.s.window()
		if i := bytes.IndexByte(w[scan:], '\n'); i >= 0 {
			scan += i
			break
		}
		scan = len(w)
		if int64(scan) > j.limits.JSONBytes {
			return j.dropLine()
		}
		if !j.s.fill(scan + 1) {
			break
		}
	}
	if int64(scan) > j.limits.JSONBytes {
		return scan, NewLimit(CodeJSONBytes, "line longer than the limit", "json_bytes", j.limits.JSONBytes, 0)
	}
	return scan, nil
}

func (j *jsonReader) dropLine() (int, *Reject) {
	rej := NewLimit(CodeJSONBytes, "line longer than the limit", "json_bytes", j.limits.JSONBytes, 0)
	for {
		w := j.s.window()
		if i := bytes.IndexByte(w, '\n'); i >= 0 {
			return i, rej
		}
		rej.LimitActual += int64(len(w))
		j.consume(len(w))
		if !j.s.fill(1) {
			return 0, rej
		}
	}
}

// value measures the JSON value at the start of the window: to the bracket that closes it, or, of a
// scalar, to the next delimiter. A string that runs over its line, or brackets that never close,
// end the record where the next line starts an object. A value over the limit is consumed but for
// its end; LimitActual then holds the bytes already gone.
func (j *jsonReader) value() (int, *Reject) {
	depth, quoted := 0, false
	var over *Reject
	for i := 0; ; i++ {
		if i >= len(j.s.window()) && !j.s.fill(i+1) {
			if depth > 0 || quoted {
				return j.resync(over, "the record is not closed before the end")
			}
			return min(i, len(j.s.window())), over
		}
		if int64(i) > j.limits.JSONBytes {
			if over == nil {
				over = NewLimit(CodeJSONBytes, "record longer than the limit", "json_bytes", j.limits.JSONBytes, 0)
			}
			over.LimitActual += int64(i)
			j.consume(i)
			i = 0
		}
		switch c := j.s.window()[i]; {
		case quoted && c == '\\':
			i++
		case quoted && c == '\n':
			return j.resync(over, "a string runs over the end of its line")
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1, over
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, over
			}
			if depth < 0 {
				return max(i, 1), over
			}
		case depth == 0 && (c == ',' || c == '\n' || c == ':'):
			return max(i, 1), over
		}
	}
}

// resync ends a broken record. One that was over the limit is named for that.
func (j *jsonReader) resync(over *Reject, why string) (int, *Reject) {
	if over == nil {
		over = NewReject(CodeJSONSyntax, why)
	}
	return j.nextObject(), over
}

// nextObject is where, in the window, a further line starts with "{": the record ends before it.
// Without one, the record takes all that has been read.
func (j *jsonReader) nextObject() int {
	w := j.s.window()
	for at := 0; ; {
		i := bytes.IndexByte(w[at:], '\n')
		if i < 0 {
			return len(w)
		}
		at += i + 1
		if rest := bytes.TrimLeft(w[at:], " \t\r,"); len(rest) > 0 && rest[0] == '{' {
			return at
		}
	}
}

// decode parses the record.
func (j *jsonReader) decode(m *Message, raw []byte) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	if err == nil {
		if _, err = dec.Token(); err == io.EOF {
			err = nil
		} else {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		var syntax *json.SyntaxError
		at := dec.InputOffset()
		if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		m.Reject = NewReject(CodeJSONSyntax, fmt.Sprintf("at byte %d of the record: not valid JSON", at))
		return
	}
	obj, ok := v.(map[string]any)
	if !ok {
		m.Reject = NewReject(CodeJSONShape, "the record is no JSON object")
		return
	}
	if loneSurrogate(raw) {
		m.Warnings = append(m.Warnings, CodeJSONSurrogate)
	}
	j.columns.fromObject(m, obj)
}

// loneSurrogate says whether raw holds an escaped half of a surrogate pair, which decoding has
// replaced by U+FFFD.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); {
		k := bytes.IndexByte(raw[i:], '\\')
		if k < 0 || i+k+1 >= len(raw) {
			return false
		}
		i += k
		u := unit(raw[i:])
		switch {
		case u>>10 == 0xd800>>10 && unit(raw[i+6:])>>10 == 0xdc00>>10:
			i += 12
		case u>>11 == 0xd800>>11:
			return true
		default:
			i += 2
		}
	}
	return false
}

// unit is the value of the \uXXXX escape at the start of b, or 0.
func unit(b []byte) uint32 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	return hexValue(b[2:6])
}
