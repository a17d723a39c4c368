package mail

import "bytes"

// A Field is one header field. Value is raw: continuation lines are still folded into it.
type Field struct{ Name, Value []byte }

// A HeaderScanner walks the fields of a header in one pass without allocating. It forgives what
// real mail does: lines without a colon, a body that follows without a blank line, white-space-only
// lines, "\r\r\n".
type HeaderScanner struct {
	raw    []byte
	pos    int
	fields int

	Body    []byte // what follows the header, once Next has returned false
	BodyAt  int    // its offset in the bytes given to NewHeaderScanner
	Skipped bool   // a line without colon was skipped
	NoBlank bool   // the body followed without a blank line
}

// NewHeaderScanner starts after a byte order mark, blank lines and an mbox "From " line that stand
// before the first field.
func NewHeaderScanner(raw []byte) HeaderScanner {
	return HeaderScanner{raw: raw, pos: skipPrologue(raw)}
}

// NewPartScanner starts at the first byte: a MIME part may begin with its body.
func NewPartScanner(raw []byte) HeaderScanner { return HeaderScanner{raw: raw} }

func skipPrologue(raw []byte) int {
	pos := 0
	if bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")) {
		pos = 3
	}
	for pos < len(raw) {
		end := lineEnd(raw, pos)
		line := trimEOL(raw[pos:end])
		if len(bytes.TrimSpace(line)) > 0 && !isFromLine(line) {
			break
		}
		pos = end
	}
	if pos == len(raw) { // nothing but blank lines: not ours to judge
		return 0
	}
	// White space before the first field name is not a continuation of anything.
	for p := pos; p < len(raw) && (raw[p] == ' ' || raw[p] == '\t'); p++ {
		if nameLen(raw[p+1:]) > 0 {
			return p + 1
		}
	}
	return pos
}

// isFromLine says whether line is an mbox separator, bare or escaped.
func isFromLine(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From "))
}

// Next returns the next field; false at the end of the header.
func (h *HeaderScanner) Next() (Field, bool) {
	for h.pos < len(h.raw) {
		end := lineEnd(h.raw, h.pos)
		line := h.raw[h.pos:end]
		if blank(line) && !h.continues(end) {
			h.finish(end)
			return Field{}, false
		}
		n := nameLen(line)
		if n == 0 {
			if h.bodyStarts(line, end) {
				h.NoBlank = h.fields > 0
				h.finish(h.pos)
				return Field{}, false
			}
			h.Skipped = h.Skipped || !blank(line)
			h.pos = end
			continue
		}
		colon := n
		for line[colon] != ':' {
			colon++
		}
		value := h.pos + colon + 1
		for end < len(h.raw) && (h.raw[end] == ' ' || h.raw[end] == '\t') {
			next := lineEnd(h.raw, end)
			if blank(h.raw[end:next]) && !h.continues(next) {
				break
			}
			end = next
		}
		f := Field{Name: line[:n], Value: trimEOL(h.raw[value:end])}
		h.pos = end
		h.fields++
		return f, true
	}
	h.finish(len(h.raw))
	return Field{}, false
}

func (h *HeaderScanner) finish(body int) {
	h.pos = len(h.raw)
	h.Body, h.BodyAt = h.raw[body:], body
}

// continues says whether the header goes on after a line of white space only: some software folds
// fields with such lines. An empty line always ends it.
func (h *HeaderScanner) continues(next int) bool {
	prev := h.raw[h.pos:next]
	i := bytes.LastIndexByte(prev[:max(0, len(prev)-1)], '\n') + 1
	if c := prev[i]; c != ' ' && c != '\t' || next >= len(h.raw) {
		return false
	}
	line := h.raw[next:lineEnd(h.raw, next)]
	return !blank(line) && (line[0] == ' ' || line[0] == '\t' || nameLen(line) > 0)
}

// bodyStarts decides on a line that is no field: either a stray line inside the header, when
// another field follows it, or the first line of a body without a blank line before it.
func (h *HeaderScanner) bodyStarts(line []byte, next int) bool {
	if bytes.HasPrefix(line, []byte("--")) || h.fields == 0 && line[0] != '>' && !bytes.HasPrefix(line, []byte("From ")) {
		return !h.fieldFollows(next) || bytes.HasPrefix(line, []byte("--"))
	}
	return !h.fieldFollows(next)
}

// fieldFollows looks at the next line only: prose has colons too, further down.
func (h *HeaderScanner) fieldFollows(next int) bool {
	return next < len(h.raw) && nameLen(h.raw[next:lineEnd(h.raw, next)]) > 0
}

// nameLen is the length of the field name at the start of line, 0 when the line is no field:
// printable characters without space, then a colon with perhaps white space before it.
func nameLen(line []byte) int {
	i := 0
	for i < len(line) && line[i] > ' ' && line[i] < 0x7f && line[i] != ':' {
		i++
	}
	n := i
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	if i == len(line) || line[i] != ':' {
		return 0
	}
	return n
}

// lineEnd is the offset after the line that starts at pos, its "\n" included.
func lineEnd(b []byte, pos int) int {
	if i := bytes.IndexByte(b[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(b)
}

// blank says whether a line holds nothing but white space.
func blank(line []byte) bool {
	for _, c := range line {
		if c != '\r' && c != '\n' && c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

func trimEOL(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// Is says whether the field has the given name, in any case.
func (f Field) Is(name string) bool {
	return len(f.Name) == len(name) && foldEqual(f.Name, name)
}

// foldEqual compares ASCII letters in any case; lengths must be equal.
func foldEqual(b []byte, s string) bool {
	for i := range b {
		x, y := b[i], s[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}

// Unfold joins the lines of a raw value and trims it.
func Unfold(v []byte) []byte {
	v = bytes.TrimSpace(v)
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	for _, c := range v {
		if c != '\n' && c != '\r' {
			out = append(out, c)
		}
	}
	return out
}
