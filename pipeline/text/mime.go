package text

import (
	"bytes"
	"fmt"
	"strings"

	"misroute/pipeline/mail"
)

// A part is a node of the MIME structure. Parts are kept in one slice in reading order; a part's
// children follow it.
type part struct {
	parent    int // index, -1 for the message
	multipart string
	media     string // "text/plain" where nothing usable is declared
	charset   string
	encoding  string // transfer encoding, lower case
	flowed    bool
	delsp     bool
	attached  bool // disposition "attachment"
	named     bool // has a file name
	nesting   int  // attached messages around it
	odd       bool // the media type was missing or unreadable
	first     bool // first child of its parent
	body      []byte

	decoded bool
	text    []byte // once decoded
	size    int    // of the bytes that text was made from
}

// contentHeader is what the header of a part says about its body.
type contentHeader struct {
	typ, disposition, encoding []byte
}

// message extracts the text of raw into e.body and reports whether it had to be salvaged.
func (e *Extractor) message(raw []byte) (salvaged bool) {
	e.body, e.parts, e.buf = e.body[:0], e.parts[:0], e.buf[:0]
	h := mail.NewHeaderScanner(raw)
	c, fields := e.scan(&h)
	if e.reject != nil {
		return false
	}
	if fields == 0 {
		e.warn(mail.CodeHeaderMissing)
	}
	e.add(c, h.Body, -1, 0, 0, "")
	if e.reject != nil {
		return false
	}
	e.body = e.read(0, e.body)
	if e.reject != nil || !blankText(e.body) {
		return false
	}
	return e.salvage(h.Body)
}

// scan reads the header of the message or of a part, checking its limits.
func (e *Extractor) scan(h *mail.HeaderScanner) (c contentHeader, fields int) {
	for {
		f, ok := h.Next()
		if !ok {
			break
		}
		fields++
		if n := int64(len(f.Name) + len(f.Value)); n > e.limits.HeaderField {
			e.limit(mail.CodeHeaderLine, "a header field larger than the limit", "header_field", e.limits.HeaderField, n)
			return c, fields
		}
		switch {
		case f.Is("Content-Type") && c.typ == nil:
			c.typ = f.Value
		case f.Is("Content-Transfer-Encoding") && c.encoding == nil:
			c.encoding = f.Value
		case f.Is("Content-Disposition") && c.disposition == nil:
			c.disposition = f.Value
		}
	}
	if int64(h.BodyAt) > e.limits.HeaderBytes {
		e.limit(mail.CodeHeaderBytes, "a header larger than the limit", "header_bytes", e.limits.HeaderBytes, int64(h.BodyAt))
	}
	if h.Skipped {
		e.warn(mail.CodeHeaderNoColon)
	}
	if h.NoBlank {
		e.warn(mail.CodeHeaderNoBlank)
	}
	return c, fields
}

func (e *Extractor) limit(code mail.Code, what, name string, value, actual int64) {
	if e.reject == nil {
		e.reject = mail.NewLimit(code, what, name, value, actual)
	}
}

// add appends a part and, of a multipart, its children.
func (e *Extractor) add(c contentHeader, body []byte, parent, depth, nesting int, inside string) {
	p := part{parent: parent, nesting: nesting, body: body, first: parent == len(e.parts)-1}
	ct := parseContentType(c.typ, e.limits.Parameters)
	if ct.params > e.limits.Parameters {
		e.limit(mail.CodeParams, "more Content-Type parameters than the limit", "parameters", int64(e.limits.Parameters), int64(ct.params))
		return
	}
	p.media, p.charset, p.odd = ct.media, ct.charset, ct.odd
	p.flowed, p.delsp, p.named = ct.flowed, ct.delsp, ct.named
	if ct.odd && len(c.typ) > 0 {
		e.warn(mail.CodeBadContentType)
	}
	if p.media == "" {
		if p.media = "text/plain"; inside == "digest" {
			p.media = "message/rfc822"
		}
	}
	p.encoding = strings.ToLower(string(bytes.Trim(mail.Unfold(c.encoding), " \t\"';")))
	disposition := parseDisposition(c.disposition)
	p.attached = disposition.attachment
	p.named = p.named || disposition.named
	if sub, ok := strings.CutPrefix(p.media, "multipart/"); ok {
		p.multipart = sub
		e.multipart(p, ct.boundary, depth)
		return
	}
	e.parts = append(e.parts, p)
	if len(e.parts) > e.limits.Parts {
		e.limit(mail.CodeParts, "more parts than the limit", "parts", int64(e.limits.Parts), int64(len(e.parts)))
	}
}

// multipart appends a multipart and its children. Without a usable boundary it is one plain part.
func (e *Extractor) multipart(p part, boundary string, depth int) {
	if depth >= e.limits.Depth {
		e.limit(mail.CodeDepth, "multiparts nested deeper than the limit", "depth", int64(e.limits.Depth), int64(depth+1))
		return
	}
	at := nextBoundary(p.body, boundary, 0)
	if at.start < 0 && (p.encoding == "base64" || strings.HasPrefix(p.encoding, "quoted")) {
		// No composite may be encoded as a whole (RFC 2045, section 6.4); some software does it.
		p.body = e.transfer(nil, p.body, p.encoding)
		at = nextBoundary(p.body, boundary, 0)
	}
	if at.start < 0 {
		if found := sniffBoundary(p.body); found != "" {
			boundary = found
			at = nextBoundary(p.body, boundary, 0)
		}
		e.warn(mail.CodeNoBoundary)
	}
	self := len(e.parts)
	if at.start < 0 {
		p.multipart, p.media, p.odd = "", "text/plain", true
		e.parts = append(e.parts, p)
		return
	}
	body := p.body
	e.parts = append(e.parts, p)
	for !at.last {
		next := nextBoundary(body, boundary, at.end)
		end := next.start
		if end < 0 {
			end = len(body)
			e.warn(mail.CodeNoFinalBoundary)
		}
		if len(e.parts) > e.limits.Parts {
			e.limit(mail.CodeParts, "more parts than the limit", "parts", int64(e.limits.Parts), int64(len(e.parts)+countBoundaries(body[at.end:], boundary)))
			return
		}
		e.child(trimLineEnd(body[at.end:max(at.end, end)]), self, depth+1, p.nesting, p.multipart)
		if e.reject != nil || next.start < 0 {
			return
		}
		at = next
	}
}

// child appends one body part.
func (e *Extractor) child(raw []byte, parent, depth, nesting int, inside string) {
	h := mail.NewPartScanner(raw)
	c, fields := e.scan(&h)
	if e.reject != nil {
		return
	}
	body := h.Body
	if fields == 0 {
		body = bytes.TrimPrefix(bytes.TrimPrefix(raw, []byte("\r\n")), []byte("\n"))
	}
	e.add(c, body, parent, depth, nesting, inside)
}

// boundaryLine is a delimiter found in a body.
type boundaryLine struct {
	start, end int // of the line; start is -1 when there is none
	last       bool
}

// nextBoundary finds the next delimiter line of boundary at or after from: "--boundary" at a line's
// start, perhaps "--", and then nothing but white space. A boundary that only begins like this one
// is another's.
func nextBoundary(body []byte, boundary string, from int) boundaryLine {
	mark := make([]byte, 0, 80)
	mark = append(append(mark, "--"...), boundary...)
	if boundary == "" {
		return boundaryLine{start: -1}
	}
	for from <= len(body) {
		i := bytes.Index(body[from:], mark)
		if i < 0 {
			break
		}
		start := from + i
		from = start + len(mark)
		if start > 0 && body[start-1] != '\n' && body[start-1] != '\r' {
			continue
		}
		rest, last := body[start+len(mark):], false
		if bytes.HasPrefix(rest, []byte("--")) {
			rest, last = rest[2:], true
		}
		n := 0
		for n < len(rest) && (rest[n] == ' ' || rest[n] == '\t' || rest[n] == '\r') {
			n++
		}
		if n < len(rest) && rest[n] != '\n' {
			if n == 0 || rest[n-1] != '\r' { // a bare CR ends a line too
				continue
			}
		} else if n < len(rest) {
			n++
		}
		return boundaryLine{start: start, end: len(body) - len(rest) + n, last: last}
	}
	return boundaryLine{start: -1}
}

// countBoundaries counts delimiter lines, for the message of a reject.
func countBoundaries(body []byte, boundary string) (n int) {
	for at := 0; ; n++ {
		b := nextBoundary(body, boundary, at)
		if b.start < 0 {
			return n
		}
		at = b.end
	}
}

// sniffBoundary guesses a boundary that no header names: the first line that starts with "--" and
// is followed by a header field.
func sniffBoundary(body []byte) string {
	for at, lines := 0, 0; at < len(body) && lines < 200; lines++ {
		end := bytes.IndexByte(body[at:], '\n')
		if end < 0 {
			return ""
		}
		line := bytes.TrimRight(body[at:at+end], " \t\r")
		at += end + 1
		if len(line) < 4 || len(line) > 200 || line[0] != '-' || line[1] != '-' || bytes.IndexByte(line, ' ') >= 0 {
			continue
		}
		if bytes.HasPrefix(bytes.ToLower(body[at:min(len(body), at+8)]), []byte("content-")) {
			return string(line[2:])
		}
	}
	return ""
}

// trimLineEnd removes the line end that belongs to the delimiter after it.
func trimLineEnd(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte("\n"))
	return bytes.TrimSuffix(b, []byte("\r"))
}

// read appends the text of part i and of everything inside it.
func (e *Extractor) read(i int, dst []byte) []byte {
	if e.parts[i].multipart == "" {
		if !e.isBody(i) {
			return dst
		}
		return appendBlock(dst, e.decode(i))
	}
	if e.parts[i].multipart == "alternative" {
		if c := e.choose(i); c >= 0 {
			return e.read(c, dst)
		}
		return dst
	}
	for c := range e.children(i) {
		dst = e.read(c, dst)
	}
	return dst
}

// children yields the indices of the direct children of part i.
func (e *Extractor) children(i int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for c := i + 1; c < len(e.parts) && e.parts[c].parent >= i; c++ {
			if e.parts[c].parent == i && !yield(c) {
				return
			}
		}
	}
}

// isBody says whether a leaf is text to be read and no attachment; the rule is that of RFC 8621,
// section 4.1.4: a text part that has a file name and is not the first of its multipart is a file.
func (e *Extractor) isBody(i int) bool {
	p := &e.parts[i]
	if p.attached {
		return false
	}
	switch p.media {
	case "text/plain", "text/html", "text/enriched", "text/richtext", "text/markdown", "text/x-markdown":
	default:
		return false
	}
	if p.first || p.parent < 0 {
		return true
	}
	return e.parts[p.parent].multipart != "related" && !p.named
}

// choose picks the child of an alternative: the plain one, unless it is empty, a stub that points
// to the HTML, or holds under a fifth of the HTML's text. -1 when there is nothing to choose from.
func (e *Extractor) choose(i int) int {
	plain, rich := -1, -1
	for c := range e.children(i) {
		switch html, any := e.kind(c); {
		case !any:
		case html:
			rich = c
		default:
			if plain < 0 || len(bytes.TrimSpace(e.textOf(c))) > 0 {
				plain = c
			}
		}
	}
	if plain < 0 || rich < 0 {
		return max(plain, rich)
	}
	text := bytes.TrimSpace(e.textOf(plain))
	if len(text) > 0 && !isStub(text) && len(text)*5 >= e.rawSize(rich) {
		return plain // already a fifth of the markup: no need to look at it
	}
	if html := bytes.TrimSpace(e.textOf(rich)); len(html) > 0 && (len(text) == 0 || isStub(text) || len(text)*5 < len(html)) {
		return rich
	}
	return plain
}

// kind says whether the text inside part c is HTML, and whether there is any.
func (e *Extractor) kind(c int) (html, any bool) {
	for k := c; k < len(e.parts) && (k == c || e.parts[k].parent >= c); k++ {
		if e.parts[k].multipart == "" && (e.isBody(k) || k == c && !e.parts[k].attached && strings.HasPrefix(e.parts[k].media, "text/") && e.parts[k].media != "text/calendar") {
			any = true
			html = html || e.parts[k].media == "text/html"
		}
	}
	return html, any
}

func (e *Extractor) textOf(c int) []byte {
	if e.parts[c].multipart == "" {
		return e.decode(c)
	}
	return e.read(c, nil)
}

func (e *Extractor) rawSize(c int) (n int) {
	for k := c; k < len(e.parts) && (k == c || e.parts[k].parent >= c); k++ {
		if e.parts[k].media == "text/html" {
			n += len(e.parts[k].body)
		}
	}
	return n
}

// isStub says whether a plain part only points to the HTML part.
func isStub(t []byte) bool {
	if len(t) > 400 {
		return false
	}
	low := bytes.ToLower(t)
	if !bytes.Contains(low, []byte("html")) {
		return false
	}
	for _, s := range [...]string{"view", "display", "support", "read", "see", "anzeigen", "darstellen", "afficher", "ver ", "visualiz", "weergeven", "bekijk", "format"} {
		if bytes.Contains(low, []byte(s)) {
			return true
		}
	}
	return false
}

// appendBlock joins texts of parts with an empty line between them.
func appendBlock(dst, text []byte) []byte {
	if blankText(text) {
		return dst
	}
	if len(dst) > 0 {
		dst = append(bytes.TrimRight(dst, "\r\n"), "\n\n"...)
	}
	return append(dst, text...)
}

func blankText(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// salvage looks for text where no part gave any: in attached messages, then in other text parts,
// then in the raw body. It reports whether the raw body had to do.
func (e *Extractor) salvage(body []byte) bool {
	usable := true // the raw body is worth reading: no part of it is known to be something else
	for i := range e.parts {
		p := &e.parts[i]
		if p.multipart != "" {
			continue
		}
		switch {
		case p.media == "message/rfc822" || p.media == "message/global":
			if p.nesting >= e.limits.Nesting {
				e.warn(mail.CodeNesting)
				continue
			}
			if text := e.nested(p.body, p.nesting+1); !blankText(text) {
				e.body = append(e.body[:0], text...)
				return false
			}
		case !p.attached && strings.HasPrefix(p.media, "text/") && p.media != "text/calendar" && p.media != "text/css":
			if text := e.decode(i); !blankText(text) {
				e.body = append(e.body[:0], text...)
				return false
			}
		case !blankText(p.body):
			usable = false
		}
	}
	if !usable || blankText(body) || len(e.parts) > 1 && !e.brokenStructure() {
		return false
	}
	d := mail.DecodeCharset(body, "")
	e.note(d, "")
	e.body = append(e.body[:0], d.Text...)
	e.warn(mail.CodeSalvaged)
	return true
}

// brokenStructure says whether a multipart's parts are all empty: its delimiters are not where its
// text is.
func (e *Extractor) brokenStructure() bool {
	for i := range e.parts {
		if e.parts[i].multipart == "" && !blankText(e.parts[i].body) {
			return false
		}
	}
	return true
}

// nested extracts the text of an attached message with the same limits.
func (e *Extractor) nested(raw []byte, nesting int) []byte {
	inner := Extractor{limits: e.limits}
	inner.limits.Nesting -= nesting
	inner.message(raw)
	for _, w := range inner.warnings {
		e.warn(w)
	}
	if inner.reject != nil {
		inner.reject.Detail = fmt.Sprintf("in an attached message: %s", inner.reject.Detail)
		e.reject = inner.reject
		return nil
	}
	return inner.body
}
