package mail

import (
	"bytes"
	"io"
)

// How far the splitter looks past a "From " line for evidence that a header follows.
const (
	mboxLookahead = 16 << 10
	maxFromLine   = 4 << 10
)

var fromMark = []byte("\nFrom ")

// An mboxReader splits an mbox. Record ranges start after the "From " line and end before the next
// one, so records and separator lines cover the stream.
//
// No flavour of mbox says which "From " lines are separators and which are text, so the splitter
// weighs evidence (see judge) and leaves a warning where it was not plain.
type mboxReader struct {
	s       *stream
	limits  *Limits
	keepQ   bool   // mboxo: leave ">From " alone
	from    []byte // separator line of the next record
	sepLen  int64
	begun   bool
	suspect bool // the separator before the next record was taken on thin evidence
}

func newMboxReader(s *stream, f Format, l *Limits) *mboxReader {
	s.most = int(l.MessageBytes)
	return &mboxReader{s: s, limits: l, keepQ: f == FormatMboxo}
}

func (m *mboxReader) next() (*Message, error) {
	if !m.begun {
		m.begun = true
		if msg := m.begin(); msg != nil {
			return msg, nil
		}
	}
	if m.from == nil {
		if err := m.s.fault(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	msg := &Message{Format: FormatMbox, Offset: m.s.off, Separator: m.sepLen, FromLine: string(m.from)}
	if m.suspect {
		msg.Warnings = append(msg.Warnings, CodeSuspectSplit)
	}
	m.record(msg)
	if m.s.ended() && len(m.s.window()) == 0 {
		m.from = nil
		if err := m.s.fault(); err != nil && msg.Reject == nil {
			msg.Reject = NewReject(CodeTruncated, err.Error())
		}
	}
	return msg, nil
}

// begin finds the first separator. Bytes before it other than white space are a record of their own.
func (m *mboxReader) begin() *Message {
	start := m.s.off
	m.s.skipBOM()
	for {
		m.s.fill(mboxLookahead)
		w := m.s.window()
		n := 0
		for n < len(w) && (w[n] == '\n' || w[n] == '\r' || w[n] == ' ' || w[n] == '\t') {
			n++
		}
		m.s.advance(n)
		if n < len(w) || m.s.ended() {
			break
		}
	}
	m.s.fill(maxFromLine)
	w := m.s.window()
	if bytes.HasPrefix(w, fromMark[1:]) {
		m.takeSeparator(start, !hasFromDate(fromLine(w, 0)))
		return nil
	}
	if len(w) == 0 {
		return nil
	}
	msg := &Message{Format: FormatMbox, Offset: m.s.off, Separator: m.s.off - start}
	m.record(msg)
	msg.Raw = nil
	msg.Reject = NewReject(CodeBeforeFirst, "bytes before the first \"From \" line")
	return msg
}

// takeSeparator consumes the "From " line at the window's start. start is where the bytes between
// the records began.
func (m *mboxReader) takeSeparator(start int64, suspect bool) {
	w := m.s.window()
	end := lineEnd(w, 0)
	m.from = bytes.Clone(trimEOL(w[:end]))
	m.s.advance(end)
	m.sepLen = m.s.off - start
	m.suspect = suspect
}

// record reads up to the next separator, which it consumes, and fills msg.
func (m *mboxReader) record(msg *Message) {
	var (
		scan    int   // of the window: searched so far
		dropped int64 // bytes of an oversized record that are already gone
		seen    bool  // a "From " line was not taken
	)
	for {
		w := m.s.window()
		i := bytes.Index(w[scan:], fromMark)
		if i < 0 {
			scan = max(0, len(w)-len(fromMark)+1)
			if int64(len(w)) > m.limits.MessageBytes {
				dropped += int64(scan)
				m.s.advance(scan)
				scan = 0
			}
			if m.s.ended() {
				m.finish(msg, len(m.s.window()), dropped, seen)
				m.from = nil
				return
			}
			m.s.fill(len(m.s.window()) + 1)
			continue
		}
		cand := scan + i + 1
		m.s.fill(cand + mboxLookahead)
		w = m.s.window()
		take, thin := judge(w, cand, cand >= 2 && blankBefore(w, cand) || cand == 1 && dropped == 0)
		if take && dropped == 0 {
			if end := m.contentEnd(cand); end > 0 {
				if end == len(m.s.window()) {
					m.finish(msg, end, 0, seen)
					m.from = nil
					return
				}
				cand, take, thin = end, true, false
			}
		}
		if !take {
			seen = true
			scan = cand
			continue
		}
		m.finish(msg, cand, dropped, seen)
		m.takeSeparator(m.s.off, thin)
		return
	}
}

// finish cuts the record [0, end) off the window.
func (m *mboxReader) finish(msg *Message, end int, dropped int64, seen bool) {
	raw := m.s.window()[:end]
	msg.Length = dropped + int64(end)
	if seen {
		msg.Warnings = append(msg.Warnings, CodeSuspectSplit)
	}
	switch {
	case msg.Length > m.limits.MessageBytes:
		msg.Reject = NewLimit(CodeMessageBytes, "message larger than the limit", "message_bytes", m.limits.MessageBytes, msg.Length)
	case blank(raw):
		msg.Reject = NewReject(CodeEmptyRecord, "nothing between two \"From \" lines")
	default:
		msg.Raw = m.unescape(raw)
		msg.Filtered = filterOf(msg.Raw)
	}
	m.s.advance(end)
}

// unescape copies a record, removing exactly one ">" from each line `^>+From `.
func (m *mboxReader) unescape(raw []byte) []byte {
	mark := fromMark[1:]
	var out []byte
	copied := 0
	for pos := 0; !m.keepQ; {
		i := bytes.Index(raw[pos:], []byte(">From "))
		if i < 0 {
			break
		}
		start := pos + i
		for start > 0 && raw[start-1] == '>' {
			start--
		}
		if start > 0 && raw[start-1] == '\n' {
			if out == nil {
				out = make([]byte, 0, len(raw))
			}
			out = append(out, raw[copied:start]...)
			copied = start + 1
		}
		pos += i + 1 + len(mark)
	}
	return append(out, raw[copied:]...)
}

// contentEnd is where the record ends by its Content-Length field, when that lies beyond cand and
// lands on the end of the file or on a separator; else 0.
func (m *mboxReader) contentEnd(cand int) int {
	h := NewHeaderScanner(m.s.window()[:cand])
	length := int64(-1)
	for {
		f, ok := h.Next()
		if !ok {
			break
		}
		if f.Is("Content-Length") {
			length = parseInt(Unfold(f.Value))
		}
	}
	if length < 0 || length > m.limits.MessageBytes {
		return 0
	}
	end := h.BodyAt + int(length)
	if end <= cand {
		return 0
	}
	m.s.fill(end + mboxLookahead)
	w := m.s.window()
	if len(w) < end {
		return 0
	}
	for range 2 { // the blank line that follows is not counted
		if end < len(w) && (w[end] == '\n' || w[end] == '\r') {
			end++
		}
		if end < len(w) && w[end] == '\n' && w[end-1] == '\r' {
			end++
		}
	}
	if end == len(w) && m.s.ended() {
		return end
	}
	if bytes.HasPrefix(w[end:], fromMark[1:]) && w[end-1] == '\n' {
		if take, _ := judge(w, end, true); take {
			return end
		}
	}
	return 0
}

// judge weighs the "From " line at w[at:]. A separator has a date, or is "From -", or names a
// sender "@xxx" as Takeout writes, or names some address after a blank line; and a header field
// follows, after perhaps one escaped ">From " line. Without a blank line before it, the header must
// also hold a field that only transport writes: people paste mailbox excerpts into mail. thin is
// set when no date helped the decision.
func judge(w []byte, at int, blankBefore bool) (take, thin bool) {
	line := fromLine(w, at)
	if line == nil {
		return false, false
	}
	dated := hasFromDate(line)
	dash := bytes.HasPrefix(line, []byte("From -")) && (len(line) == 6 || line[6] == ' ')
	takeout := bytes.Contains(line, []byte("@xxx"))
	if !dated && !dash && !takeout && !(blankBefore && bytes.IndexByte(line, '@') >= 0) {
		return false, false
	}
	next := lineEnd(w, at)
	if bytes.HasPrefix(w[next:], []byte(">From ")) {
		next = lineEnd(w, next)
	}
	if next >= len(w) || nameLen(w[next:lineEnd(w, next)]) == 0 {
		return false, false
	}
	if !blankBefore && !dash && !transported(w[next:min(len(w), next+mboxLookahead)]) {
		return false, false
	}
	return true, !dated
}

// transported says whether the header at the start of b holds a field that mail software writes.
func transported(b []byte) bool {
	h := NewPartScanner(b)
	for {
		f, ok := h.Next()
		if !ok {
			return false
		}
		for _, name := range [...]string{"Date", "Message-ID", "Received", "Return-Path", "Delivered-To", "X-Mozilla-Status", "X-GM-THRID"} {
			if f.Is(name) {
				return true
			}
		}
	}
}

// fromLine is the line at w[at:] without its end; nil when it is longer than any separator.
func fromLine(w []byte, at int) []byte {
	end := lineEnd(w, at)
	if end-at > maxFromLine {
		return nil
	}
	return trimEOL(w[at:end])
}

// hasFromDate looks for a month's name, a time of day and a year of four digits in the line.
func hasFromDate(line []byte) bool {
	var month, clock, year bool
	for _, f := range bytes.Fields(line) {
		switch {
		case len(f) == 3 && monthOf(f) > 0:
			month = true
		case len(f) >= 4 && f[0] >= '0' && f[0] <= '9' && bytes.IndexByte(f, ':') > 0:
			clock = true
		case len(f) == 4 && parseInt(f) >= 1900:
			year = true
		}
	}
	return month && clock && year
}

func blankBefore(w []byte, at int) bool {
	if w[at-2] == '\r' {
		return at >= 4 && w[at-3] == '\n' || at == 2
	}
	return w[at-2] == '\n'
}

// parseInt reads an unsigned decimal number; -1 when b is none.
func parseInt(b []byte) int64 {
	if len(b) == 0 || len(b) > 18 {
		return -1
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// filterOf says whether the mail program marked the message as deleted, or wrote it for itself.
func filterOf(raw []byte) Code {
	head := raw[:min(len(raw), 64<<10)]
	if !bytes.Contains(head, []byte("Status:")) && !bytes.Contains(head, []byte("X-IMAP")) {
		return ""
	}
	h := NewHeaderScanner(head)
	var imap bool
	var subject []byte
	for {
		f, ok := h.Next()
		if !ok {
			break
		}
		switch {
		case f.Is("X-Mozilla-Status"):
			if hexValue(Unfold(f.Value))&0x0008 != 0 {
				return CodeDeleted
			}
		case f.Is("X-Status"):
			if bytes.IndexByte(f.Value, 'D') >= 0 {
				return CodeDeleted
			}
		case f.Is("X-IMAP"), f.Is("X-IMAPbase"):
			imap = true
		case f.Is("Subject") && subject == nil:
			subject = f.Value
		}
	}
	if imap && bytes.Contains(subject, []byte("FOLDER INTERNAL DATA")) {
		return CodeFolderData
	}
	return ""
}

// hexValue reads up to eight hexadecimal digits; 0 when b is none.
func hexValue(b []byte) (v uint32) {
	if len(b) > 8 {
		return 0
	}
	for _, c := range b {
		d := unhex(c)
		if d < 0 {
			return 0
		}
		v = v<<4 | uint32(d)
	}
	return v
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}
