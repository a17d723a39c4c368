package mail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// csvTable splits CSV into records with their byte ranges and survives broken quoting: the record
// with the fault is rejected alone.
//
// encoding/csv cannot be used: it knows no byte ranges of records, and one unclosed quote makes it
// swallow or refuse the rest of the file.
type csvTable struct {
	s      *stream
	limits *Limits
	comma  byte
	cr     bool // records end with a bare CR
	header []string
	line   int64 // of the next record
	start  int64 // bytes before the first record: mark and header
}

// csvRecord is one record; fields are copies.
type csvRecord struct {
	fields        []string
	offset, bytes int64
	line          int64
	separator     int64
	warnings      []Code
	reject        *Reject
}

func newCSVTable(s *stream, l *Limits) (*csvTable, error) {
	t := &csvTable{s: s, limits: l, line: 1}
	s.skipBOM()
	s.fill(64 << 10)
	w := s.window()
	if len(w) >= 2 && (w[0] == 0xff && w[1] == 0xfe || w[0] == 0xfe && w[1] == 0xff) {
		return nil, errors.New("the file is UTF-16; save it as UTF-8 CSV")
	}
	if len(bytes.TrimSpace(w)) == 0 {
		return nil, io.EOF
	}
	t.cr = bytes.IndexByte(w, '\n') < 0 && bytes.IndexByte(w, '\r') >= 0
	t.comma = sniffComma(w)
	rec, err := t.read(0)
	if err != nil {
		return nil, err
	}
	if rec.reject != nil {
		return nil, fmt.Errorf("the header line cannot be read: %s", rec.reject.Detail)
	}
	t.header = rec.fields
	t.start = s.off
	return t, nil
}

// sniffComma chooses the separator that splits the first lines into most fields, as long as it
// splits the lines alike.
func sniffComma(w []byte) byte {
	best, bestScore := byte(','), 0
	for _, c := range []byte{',', ';', '\t', '|'} {
		n, lines := 0, 0
		score := 0
		for _, line := range firstLines(w, 10) {
			k := countOutsideQuotes(line, c)
			if lines == 0 {
				if n = k; n == 0 {
					break
				}
				score = 2 * n
			} else if k == n {
				score += n
			}
			lines++
		}
		if score > bestScore {
			best, bestScore = c, score
		}
	}
	return best
}

func firstLines(w []byte, n int) [][]byte {
	var out [][]byte
	for len(w) > 0 && len(out) < n {
		end := bytes.IndexAny(w, "\r\n")
		if end < 0 {
			end = len(w)
		}
		if line := w[:end]; len(line) > 0 {
			out = append(out, line)
		}
		w = w[min(len(w), end+1):]
	}
	return out
}

func countOutsideQuotes(line []byte, c byte) int {
	n, quoted := 0, false
	for _, b := range line {
		switch {
		case b == '"':
			quoted = !quoted
		case b == c && !quoted:
			n++
		}
	}
	return n
}

// next returns the next record that is not an empty line; io.EOF at the end.
func (t *csvTable) next() (*csvRecord, error) { return t.read(len(t.header)) }

// read returns the next record; want is the number of fields it should have, 0 for any.
func (t *csvTable) read(want int) (*csvRecord, error) {
	before := t.s.off
	t.skipEmptyLines()
	if !t.s.fill(1) {
		return nil, io.EOF
	}
	rec := &csvRecord{offset: t.s.off, line: t.line, separator: t.s.off - before}
	p := csvParser{t: t}
	code, detail := p.record()
	if code == "" && want > 0 && len(p.fields) != want {
		extra := len(p.fields) > want
		for _, f := range p.fields[min(want, len(p.fields)):] {
			extra = extra && strings.TrimSpace(f) == ""
		}
		switch {
		case extra:
			p.fields = p.fields[:want]
			rec.warnings = append(rec.warnings, CodeCSVExtraFields)
		case p.lines > 1 && p.quotedLines:
			// A record over several lines with the wrong number of fields has swallowed its
			// neighbours through a stray quote.
			code, detail = CodeCSVQuote, "a quoted field runs over its line and the record comes out with the wrong number of fields"
		default:
			code, detail = CodeCSVFields, fmt.Sprintf("%d fields, the header has %d", len(p.fields), want)
		}
	}
	if p.bare {
		rec.warnings = append(rec.warnings, CodeCSVBareQuote)
	}
	end := p.pos
	switch code {
	case "":
		rec.fields = p.fields
		t.line += int64(p.lines)
	case CodeCSVRecordBytes:
		rec.reject = NewLimit(code, detail, "csv_bytes", t.limits.CSVBytes, int64(p.pos))
		return t.skipLine(rec), nil
	case CodeCSVQuote:
		rec.reject = NewReject(code, detail)
		return t.skipLine(rec), nil
	default:
		rec.reject = NewReject(code, detail)
		t.line += int64(p.lines)
	}
	t.s.advance(end)
	rec.bytes = int64(end)
	return rec, nil
}

// skipLine ends a rejected record at the end of its first line, however long that is.
func (t *csvTable) skipLine(rec *csvRecord) *csvRecord {
	eol := byte('\n')
	if t.cr {
		eol = '\r'
	}
	for t.s.fill(1) {
		w := t.s.window()
		if i := bytes.IndexByte(w, eol); i >= 0 {
			t.s.advance(i + 1)
			break
		}
		t.s.advance(len(w))
	}
	rec.bytes = t.s.off - rec.offset
	t.line++
	return rec
}

func (t *csvTable) skipEmptyLines() {
	for t.s.fill(1) {
		c := t.s.window()[0]
		if c != '\n' && c != '\r' {
			return
		}
		if c == '\n' || t.cr {
			t.line++
		}
		t.s.advance(1)
	}
}

// csvParser reads one record from the window of its table.
type csvParser struct {
	t           *csvTable
	pos         int
	lines       int
	quotedLines bool // a quoted field held a line end
	bare        bool
	fields      []string
	field       []byte
}

// at returns the byte at pos+k, or 0 and false at the end of the stream.
func (p *csvParser) at(k int) (byte, bool) {
	if p.pos+k >= len(p.t.s.window()) && !p.t.s.fill(p.pos+k+1) {
		return 0, false
	}
	return p.t.s.window()[p.pos+k], true
}

// record parses up to and with the line end. The code is empty when all went well.
func (p *csvParser) record() (Code, string) {
	for {
		c, ok := p.at(0)
		if ok && c == '"' {
			if code, detail := p.quoted(); code != "" {
				return code, detail
			}
		}
		if code := p.plain(); code != "" {
			return code, "record larger than the limit"
		}
		p.fields = append(p.fields, p.text())
		c, ok = p.at(0)
		if !ok {
			p.lines++
			return "", ""
		}
		p.pos++
		if c == p.t.comma {
			continue
		}
		if c == '\r' && !p.t.cr { // plain stops at CR only before LF
			p.pos++
		}
		p.lines++
		return "", ""
	}
}

// text is the finished field. Fields in another charset than UTF-8 are guessed one by one.
func (p *csvParser) text() string {
	s := p.field
	p.field = p.field[:0]
	if utf8.Valid(s) {
		return string(s)
	}
	return string(DecodeCharset(s, "").Text)
}

// plain reads an unquoted field, or what stands behind a closing quote, up to a comma or line end.
func (p *csvParser) plain() Code {
	for {
		w := p.t.s.window()[p.pos:]
		i := 0
		for i < len(w) && w[i] != p.t.comma && w[i] != '\n' && w[i] != '\r' {
			i++
		}
		p.field = append(p.field, w[:i]...)
		p.pos += i
		if int64(p.pos) > p.t.limits.CSVBytes {
			return CodeCSVRecordBytes
		}
		c, ok := p.at(0)
		if !ok || c == p.t.comma || c == '\n' {
			return ""
		}
		if c == '\r' {
			if n, ok := p.at(1); p.t.cr || ok && n == '\n' {
				return ""
			}
			p.field = append(p.field, c) // a bare CR is text
			p.pos++
		}
	}
}

// quoted reads a quoted field from its opening quote to behind its closing one. A quote is a
// closing one before a comma or a line end. Inside, an undoubled quote is text, if a closing quote
// stands further on in the same line; if it looks like an opening quote on a later line (it follows
// a comma or a line start), this field's closing quote is missing.
func (p *csvParser) quoted() (Code, string) {
	p.pos++
	spanned := false
	for {
		w := p.t.s.window()[p.pos:]
		i := bytes.IndexByte(w, '"')
		if i < 0 {
			i = len(w)
		}
		if n := bytes.Count(w[:i], []byte{'\n'}); n > 0 {
			p.lines += n
			p.quotedLines, spanned = true, true
		}
		p.field = append(p.field, w[:i]...)
		p.pos += i
		if int64(p.pos) > p.t.limits.CSVBytes {
			if spanned {
				return CodeCSVQuote, fmt.Sprintf("a quoted field is not closed within %d bytes", p.t.limits.CSVBytes)
			}
			return CodeCSVRecordBytes, "record larger than the limit"
		}
		if _, ok := p.at(0); !ok {
			return CodeCSVQuote, "a quoted field is never closed"
		}
		if p.t.s.window()[p.pos] != '"' {
			continue
		}
		prev := p.t.s.window()[p.pos-1]
		next, ok := p.at(1)
		switch {
		case !ok || next == p.t.comma || next == '\n' || next == '\r':
			p.pos++
			return "", ""
		case next == '"':
			p.field = append(p.field, '"')
			p.pos += 2
		case spanned && (prev == p.t.comma || prev == '\n' || prev == '\r'):
			return CodeCSVQuote, "a quoted field is not closed before the next one opens"
		case p.closesOnLine():
			p.bare = true
			p.field = append(p.field, '"')
			p.pos++
		default:
			p.bare = true
			p.pos++
			return "", ""
		}
	}
}

// closesOnLine says whether a closing quote follows the quote at pos before the line ends.
func (p *csvParser) closesOnLine() bool {
	p.t.s.fill(p.pos + 64<<10)
	w := p.t.s.window()[p.pos+1:]
	if end := bytes.IndexByte(w, '\n'); end >= 0 {
		w = w[:end+1]
	}
	for i, c := range w {
		if c == '"' && (i+1 == len(w) || w[i+1] == p.t.comma || w[i+1] == '\n' || w[i+1] == '\r') {
			return true
		}
	}
	return false
}

// A csvReader turns records into messages.
type csvReader struct {
	t       *csvTable
	roles   map[string]int
	first   bool
	convert *columnMap
}

func newCSVReader(s *stream, name string, o *Options) (recordReader, error) {
	t, err := newCSVTable(s, &o.Limits)
	if err == io.EOF {
		return emptyReader{}, nil
	}
	if err != nil {
		return nil, &SourceError{Source: name, What: err.Error()}
	}
	cm := newColumnMap(o)
	roles, err := cm.bind(t.header)
	if err != nil {
		return nil, &SourceError{Source: name, What: err.Error()}
	}
	return &csvReader{t: t, roles: roles, first: true, convert: cm}, nil
}

func (c *csvReader) next() (*Message, error) {
	rec, err := c.t.next()
	if err != nil {
		if f := c.t.s.fault(); f != nil {
			return nil, f
		}
		return nil, err
	}
	m := &Message{Format: FormatCSV, Offset: rec.offset, Length: rec.bytes, Line: rec.line, Separator: rec.separator, Warnings: rec.warnings, Reject: rec.reject}
	if c.first {
		m.Separator += c.t.start
		c.first = false
	}
	if f := c.t.s.fault(); f != nil && len(c.t.s.window()) == 0 {
		// The last record before a fault may miss its end.
		m.Reject = NewReject(CodeTruncated, f.Error())
	}
	if m.Reject != nil {
		return m, nil
	}
	c.convert.fromRow(m, rec.fields, c.roles)
	return m, nil
}
