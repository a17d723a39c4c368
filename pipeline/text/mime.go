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
	headless  bool // text at once where a header should stand
	first     bool // first child of its parent
	body      []byte

	decoded bool
	text    []byte // once decoded
	asked   bool
	inside  []int // of a multipart, once asked: the children to read
}

// contentHeader is what the header of a part says about its body.
type contentHeader struct {
	typ, disposition, encoding []byte
	headless                   bool           // no field, and no empty line that stands for none
	second                     *contentHeader // of a part whose delimiter was lost
}

// field takes a field of the header. The first of a kind counts, but for a second Content-Type behind
// that of a multipart: it is the header of the first part.
func (c *contentHeader) field(f mail.Field) {
	if c.second != nil {
		c.second.field(f)
		return
	}
	switch {
	case f.Is("Content-Type") && c.typ == nil:
		c.typ = f.Value
	case f.Is("Content-Type") && len(c.typ) > 10 && equal(bytes.TrimSpace(c.typ)[:min(10, len(bytes.TrimSpace(c.typ)))], "multipart/"):
		c.second = &contentHeader{typ: f.Value}
	case f.Is("Content-Transfer-Encoding") && c.encoding == nil:
		c.encoding = f.Value
	case f.Is("Content-Disposition") && c.disposition == nil:
		c.disposition = f.Value
	}
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
	w := walker{body: h.Body}
	e.add(c, &w, len(h.Body), -1, 0, "")
	if e.reject != nil {
		return false
	}
	if e.parts[0].multipart != "" || e.isBody(0) {
		e.body = e.read(0, e.body)
	}
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
		c.field(f)
	}
	if int64(h.BodyAt) > e.limits.HeaderBytes {
		e.limit(mail.CodeHeaderBytes, "a header larger than the limit", "header_bytes", e.limits.HeaderBytes, int64(h.BodyAt))
	}
	c.headless = fields == 0 && h.BodyAt == 0 && len(h.Body) > 0
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

// add appends the part whose header is c and whose body starts at the walker's position; end is where
// the body ends if it is no multipart. It leaves the walker at the delimiter that ended the part.
func (e *Extractor) add(c contentHeader, w *walker, end int, parent, nesting int, inside string) {
	p := part{parent: parent, nesting: nesting, body: w.body[w.pos:max(w.pos, end)], first: parent == len(e.parts)-1}
	ct := parseContentType(c.typ, e.limits.Parameters)
	if ct.params > e.limits.Parameters {
		e.limit(mail.CodeParams, "more Content-Type parameters than the limit", "parameters", int64(e.limits.Parameters), int64(ct.params))
		return
	}
	p.media, p.charset, p.headless = ct.media, ct.charset, c.headless
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
	d := parseDisposition(c.disposition)
	p.attached = d.attachment
	p.named = p.named || d.named
	if sub, ok := strings.CutPrefix(p.media, "multipart/"); ok {
		p.multipart = sub
		e.multipart(p, ct.boundary, c.second, w, end)
		return
	}
	w.pos = end
	e.leaf(p)
}

func (e *Extractor) leaf(p part) {
	e.parts = append(e.parts, p)
	if len(e.parts) > e.limits.Parts {
		e.limit(mail.CodeParts, "more parts than the limit", "parts", int64(e.limits.Parts), int64(len(e.parts)))
	}
}

// multipart appends a multipart and its children. Without a usable boundary it is one plain part.
// second is a part header that stands in the multipart's own: its delimiter was lost, and what is
// else a preamble is its body.
func (e *Extractor) multipart(p part, boundary string, second *contentHeader, w *walker, end int) {
	if len(w.boundaries) >= e.limits.Depth {
		e.limit(mail.CodeDepth, "multiparts nested deeper than the limit", "depth", int64(e.limits.Depth), int64(len(w.boundaries)+1))
		return
	}
	outer := w
	boundary = delimiting(boundary, w.body[w.pos:max(w.pos, end)])
	if !w.within(boundary, end) && (p.encoding == "base64" || strings.HasPrefix(p.encoding, "quoted")) {
		// No composite may be encoded as a whole (RFC 2045, section 6.4); some software does it.
		p.body = e.transfer(nil, p.body, p.encoding)
		outer.pos = end
		w = &walker{body: p.body}
		end = len(p.body)
	}
	if !w.within(boundary, end) {
		e.warn(mail.CodeNoBoundary)
		if boundary = sniffBoundary(p.body); boundary == "" {
			p.multipart, p.media = "", "text/plain"
			outer.pos = max(outer.pos, end)
			e.leaf(p)
			return
		}
	}
	self := len(e.parts)
	e.leaf(p)
	level := len(w.boundaries)
	w.boundaries = append(w.boundaries, boundary)
	if !e.children(w, self, level, second) {
		if w.unclosed == nil {
			w.unclosed = make(map[string]string)
		}
		w.unclosed[strings.TrimRight(boundary, " \t")] = boundary
	}
	w.boundaries = w.boundaries[:level]
}

// children reads the parts of the multipart at level, up to the delimiter of an outer one. It
// reports whether the multipart's own final delimiter was seen.
func (e *Extractor) children(w *walker, self, level int, second *contentHeader) (closed bool) {
	p := e.parts[self]
	at := w.next()
	if second != nil {
		sub := walker{body: w.body, pos: w.pos, boundaries: w.boundaries}
		e.add(*second, &sub, at.start, self, p.nesting, p.multipart)
	}
	for at.level == level && !at.last {
		w.pos = at.end
		next := w.next()
		raw := trimLineEnd(w.body[at.end:next.start])
		if next.level < 0 { // a final delimiter behind the last word, not on a line of its own
			raw = bytes.TrimSuffix(bytes.TrimRight(raw, " \t\r\n"), []byte("--"+w.boundaries[level]+"--"))
		}
		h := mail.NewPartScanner(raw)
		c, _ := e.scan(&h)
		if e.reject != nil {
			e.countParts(w)
			return false
		}
		w.pos = at.end + h.BodyAt
		e.add(c, w, at.end+len(raw), self, p.nesting, p.multipart)
		if e.reject != nil {
			e.countParts(w)
			return false
		}
		at = w.next()
	}
	if at.level != level {
		e.warn(mail.CodeNoFinalBoundary)
		w.pos = at.start
		return false
	}
	w.pos = at.end // the epilogue ends at an outer delimiter
	w.boundaries = w.boundaries[:level]
	w.pos = w.next().start
	return true
}

// countParts makes the message of a reject for too many parts say how many there are.
func (e *Extractor) countParts(w *walker) {
	if e.reject.Code != mail.CodeParts {
		return
	}
	n := int64(len(e.parts))
	for at := w.next(); at.level >= 0; at = w.next() {
		w.pos = at.end
		if !at.last {
			n++
		}
	}
	e.reject.LimitActual = max(e.reject.LimitActual, n)
}

// A walker goes through a body once, line by line that could be a delimiter, with the boundaries of
// the multiparts it is in.
type walker struct {
	body       []byte
	pos        int
	boundaries []string
	// unclosed are boundaries of multiparts that an outer delimiter cut off. Where they come back
	// they still delimit: they are never text. They count as the innermost open multipart's. The keys
	// have no white space at their ends.
	unclosed map[string]string
}

// delimiter is a delimiter line. level is the index of its boundary; -1 at the end of the body.
type delimiter struct {
	start, end int
	level      int
	last       bool
}

// next finds the next delimiter line from pos on: "--boundary" at a line's start, perhaps "--", and
// then nothing but white space. The innermost boundary is tried first, so that equal boundaries
// nest; one that only begins like another is not it.
func (w *walker) next() delimiter {
	at := w.pos
	for at < len(w.body) {
		i := bytes.Index(w.body[at:], []byte("--"))
		if i < 0 {
			break
		}
		start := at + i
		if start == 0 || start == w.pos || w.body[start-1] == '\n' || w.body[start-1] == '\r' {
			for level := len(w.boundaries) - 1; level >= 0; level-- {
				if d, ok := w.match(start, level, w.boundaries[level]); ok {
					return d
				}
			}
			if d, ok := w.matchUnclosed(start); ok {
				return d
			}
		}
		// Nothing more can start in this line, but for a bare CR.
		next := bytes.IndexAny(w.body[start:min(len(w.body), start+256)], "\r\n")
		if next < 0 {
			next = 2
			for start+next < len(w.body) && w.body[start+next] == '-' {
				next++
			}
		}
		at = start + next
	}
	return delimiter{start: len(w.body), end: len(w.body), level: -1}
}

// matchUnclosed says whether the delimiter of a cut-off multipart starts at start. It looks the whole
// line up: a damaged message may have hundreds of them.
func (w *walker) matchUnclosed(start int) (delimiter, bool) {
	if len(w.unclosed) == 0 || len(w.boundaries) == 0 {
		return delimiter{}, false
	}
	line := w.body[start+2:]
	if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
		line = line[:end]
	}
	line = bytes.TrimRight(line, " \t")
	boundary, ok := w.unclosed[string(line)]
	if !ok {
		boundary, ok = w.unclosed[string(bytes.TrimRight(bytes.TrimSuffix(line, []byte("--")), " \t"))]
	}
	if !ok {
		return delimiter{}, false
	}
	d, ok := w.match(start, len(w.boundaries)-1, boundary)
	d.last = false
	return d, ok
}

func (w *walker) match(start, level int, boundary string) (delimiter, bool) {
	rest, ok := bytes.CutPrefix(w.body[start+2:], []byte(boundary))
	if !ok {
		return delimiter{}, false
	}
	last := bytes.HasPrefix(rest, []byte("--"))
	if last {
		rest = rest[2:]
	}
	n := 0
	for n < len(rest) && (rest[n] == ' ' || rest[n] == '\t' || rest[n] == '\r') {
		n++
	}
	switch {
	case n == len(rest):
	case rest[n] == '\n':
		n++
	case n == 0 || rest[n-1] != '\r': // a bare CR ends a line too
		return delimiter{}, false
	}
	return delimiter{start, len(w.body) - len(rest) + n, level, last}, true
}

// delimiting is what of a declared boundary stands in delimiter lines. A boundary never ends with
// white space (RFC 2046, section 5.1.1), and what a line has of it is padding; but where the final
// delimiter has the white space before its "--", the sender counts it.
func delimiting(declared string, body []byte) string {
	trimmed := strings.TrimRight(declared, " \t")
	if len(trimmed) < len(declared) && trimmed != "" && bytes.Contains(body, []byte("--"+declared+"--")) {
		return declared
	}
	return trimmed
}

// within says whether a delimiter of boundary stands before end.
func (w *walker) within(boundary string, end int) bool {
	if boundary == "" {
		return false
	}
	// The end was found without this boundary: the delimiter itself may stand there, where it is
	// the longer form of an outer one.
	probe := walker{body: w.body[:lineEnd(w.body, min(len(w.body), end+2))], pos: w.pos, boundaries: []string{boundary}}
	d := probe.next()
	return d.level == 0 && d.start <= end+2
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
		return appendBlock(dst, e.decode(i))
	}
	for _, c := range e.inside(i) {
		dst = e.read(c, dst)
	}
	return dst
}

// inside are the children of multipart i that are read. The answer is kept: alternatives inside
// alternatives would else ask for it anew at every level, and at every level twice.
func (e *Extractor) inside(i int) []int {
	if e.parts[i].asked {
		return e.parts[i].inside
	}
	var list []int
	if e.parts[i].multipart == "alternative" {
		list = e.choose(i)
	} else {
		for c := range e.under(i) {
			if e.parts[c].multipart != "" || e.isBody(c) {
				list = append(list, c)
			}
		}
	}
	e.parts[i].asked, e.parts[i].inside = true, list
	return list
}

// under yields the indices of the direct children of part i.
func (e *Extractor) under(i int) func(yield func(int) bool) {
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
	if p.parent < 0 { // what is the whole message is nobody's attachment
		return isText(p.media)
	}
	if p.attached {
		return false
	}
	if !isText(p.media) {
		return false
	}
	return p.first || e.parts[p.parent].multipart != "related" && !p.named
}

// choose picks the children of an alternative to read: the plain ones, unless they are empty, a stub
// that points to the HTML, or hold under a fifth of the HTML's text.
func (e *Extractor) choose(i int) []int {
	var plain, rich, debris []int
	best := 0
	for c := range e.under(i) {
		switch k := e.kind(c); {
		case k == kindHTML:
			rich = append(rich, c)
		case k == kindDebris:
			debris = append(debris, c)
		case k > best:
			plain, best = []int{c}, k
		case k == best && k > 0:
			plain = append(plain, c)
		}
	}
	if len(plain) == 0 && e.size(rich) == 0 {
		return debris
	}
	if len(plain) == 0 || len(rich) == 0 {
		return append(plain, rich...)
	}
	var start [stubBytes + 1]byte
	text, head := e.measure(plain, 0, start[:0])
	stub := isStub(head)
	markup := 0
	for _, c := range rich {
		markup += e.rawSize(c)
	}
	if text > 0 && !stub && text*5 >= markup {
		return plain // already a fifth of the markup: no need to look at it
	}
	if html := e.size(rich); html > text && (text == 0 || stub || text*5 < html) {
		return rich
	}
	return plain
}

// Kinds of text, in the order of preference among those that are not HTML.
const (
	kindNone = iota
	kindHTML
	kindDebris // no header, as the pieces of a damaged message: read if there is nothing else
	kindMarked // text/enriched and the like
	kindPlain
)

// kind is the kind of the text inside part c.
func (e *Extractor) kind(c int) int {
	found := kindNone
	for k := c; k < len(e.parts) && (k == c || e.parts[k].parent >= c); k++ {
		p := &e.parts[k]
		if p.multipart != "" || !e.isBody(k) && (k != c || p.attached || !isText(p.media)) {
			continue
		}
		switch {
		case p.media == "text/html":
			return kindHTML
		case p.headless:
			found = max(found, kindDebris)
		case p.media == "text/plain":
			found = kindPlain
		default:
			found = max(found, kindMarked)
		}
	}
	return found
}

// isText says whether a media type is text that people write.
func isText(media string) bool {
	switch media {
	case "text/plain", "text/html", "text/enriched", "text/richtext", "text/markdown", "text/x-markdown":
		return true
	}
	return false
}

// size is how many bytes of text parts hold, without white space at the ends of each.
func (e *Extractor) size(parts []int) int {
	n, _ := e.measure(parts, 0, nil)
	return n
}

// measure adds to n the bytes of text that parts hold, and to head, up to its capacity, their
// beginning.
func (e *Extractor) measure(parts []int, n int, head []byte) (int, []byte) {
	for _, c := range parts {
		if e.parts[c].multipart != "" {
			n, head = e.measure(e.inside(c), n, head)
			continue
		}
		text := bytes.TrimSpace(e.decode(c))
		n += len(text)
		head = append(head, text[:min(len(text), cap(head)-len(head))]...)
	}
	return n, head
}

func (e *Extractor) rawSize(c int) (n int) {
	for k := c; k < len(e.parts) && (k == c || e.parts[k].parent >= c); k++ {
		if e.parts[k].media == "text/html" {
			n += len(e.parts[k].body)
		}
	}
	return n
}

// stubBytes is the most that a text holds which only points to the HTML part.
const stubBytes = 400

// isStub says whether a plain part only points to the HTML part.
func isStub(t []byte) bool {
	if len(t) > stubBytes {
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

// salvage looks for text where no part gave any: in attached messages, in other text parts, around
// the parts of a multipart, and in the raw body. It reports whether bytes had to be read that no
// part claims.
func (e *Extractor) salvage(body []byte) bool {
	known := false // a part with content that is known to be no text
	for i := range e.parts {
		p := &e.parts[i]
		switch {
		case p.multipart != "" || blankText(p.body):
		case p.media == "message/rfc822" || p.media == "message/global" || p.media == "message/news":
			if p.nesting >= e.limits.Nesting {
				e.warn(mail.CodeNesting)
				continue
			}
			e.body = appendBlock(e.body, e.nested(e.transfer(nil, p.body, p.encoding), p.nesting+1))
		case !p.attached && strings.HasPrefix(p.media, "text/") && p.media != "text/calendar" && p.media != "text/css":
			e.body = appendBlock(e.body, e.decode(i))
		default:
			known = true
		}
		if e.reject != nil {
			return false
		}
	}
	if known || !blankText(e.body) {
		return false
	}
	raw := body
	if len(e.parts) > 1 {
		raw = outsideParts(body)
	}
	if blankText(raw) {
		return false
	}
	d := mail.DecodeCharset(raw, "")
	e.note(d, "")
	e.body = append(e.body[:0], d.Text...)
	e.warn(mail.CodeSalvaged)
	return true
}

// outsideParts is what stands before the first delimiter line of a multipart: text there is meant
// for programs without MIME, but it is all there is.
func outsideParts(body []byte) []byte {
	at := 0
	for at < len(body) {
		end := lineEnd(body, at)
		if bytes.HasPrefix(body[at:end], []byte("--")) {
			break
		}
		at = end
	}
	if preamble := body[:at]; !bytes.Contains(bytes.ToLower(preamble), []byte("mime")) {
		return preamble
	}
	return nil
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
