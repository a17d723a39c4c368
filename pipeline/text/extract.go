package text

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"misroute/pipeline/mail"
)

// What happens to quoted replies and signatures.
const (
	QuotesStrip = "strip" // the router reads only what the sender wrote
	QuotesKeep  = "keep"  // everything is read; Spans tell the zones
)

// Options say what a router reads of a message. The zero value strips quotes and prepends the
// subject.
type Options struct {
	Quotes    string // QuotesStrip (default) or QuotesKeep
	NoSubject bool   // for those who call Reading
	Limits    mail.Limits
}

// Text is a message as a router should read it.
type Text struct {
	Subject string
	Body    string // quotes and signature handled as Options say
	// BodyChars counts the characters of the body before a limit cut it, quotes handled.
	BodyChars         int
	QuoteCharsDropped int    // characters of quotes and signatures that were removed
	ContentSHA256     string // hex, of subject and whole text with white space collapsed
	// BodyHash is hex, of the body in lower case with white space collapsed: a thread key for
	// messages without one. It is left empty where the identity has a thread key.
	BodyHash string
	Salvaged bool   // only the raw body could be read
	Language string // ISO 639-1, empty when unsure
	Warnings []mail.Code
	Spans    []Span // zones of Body, in order and without gaps
}

// Zone of a stretch of the body.
type Zone string

// Zones.
const (
	Own       Zone = "own"
	Quoted    Zone = "quoted"
	Signature Zone = "signature"
)

// A Span is the half-open byte range [From, To) of a Text's Body.
type Span struct {
	From, To int
	Zone     Zone
}

// Reading is what goes to the tokenizer: the subject, an empty line and the body, or the one that
// is there.
func (t *Text) Reading(withSubject bool) string {
	switch {
	case !withSubject || t.Subject == "":
		return t.Body
	case t.Body == "":
		return t.Subject
	}
	return t.Subject + "\n\n" + t.Body
}

// An Extractor turns messages into text. It keeps buffers: one for each goroutine.
type Extractor struct {
	keepQuotes bool
	limits     mail.Limits

	parts    []part
	buf      []byte // decoded transfer encoding
	body     []byte // assembled text
	own      []byte // after quotes
	norm     []byte // for digests
	zones    zoner
	warnings []mail.Code
	reject   *mail.Reject
}

// NewExtractor returns an Extractor; zero limits are the defaults.
func NewExtractor(o Options) *Extractor {
	l := o.Limits
	if l == (mail.Limits{}) {
		l = mail.DefaultLimits()
	}
	return &Extractor{keepQuotes: o.Quotes == QuotesKeep, limits: l}
}

// Extract turns a message into text. The reject, if any, says why there is none; the Text then
// holds what was found. Message and identity are only read.
func (e *Extractor) Extract(m *mail.Message, id *mail.Identity) (Text, *mail.Reject) {
	if m.Reject != nil {
		return Text{}, m.Reject
	}
	e.warnings, e.reject = nil, nil
	t := Text{Subject: cleanSubject(id.Subject)}
	if m.Columns != nil {
		e.columns(m.Columns)
	} else {
		t.Salvaged = e.message(m.Raw)
	}
	if e.reject != nil {
		e.reject.RecoveredChars = int64(utf8.RuneCount(e.body))
		return t, e.reject
	}
	body := e.clean(e.zones.markers(e.body))
	e.finish(&t, body, id.ThreadKey == "")
	if t.Body == "" {
		if t.Subject == "" {
			return t, mail.NewReject(mail.CodeNoText, "neither subject nor body has text")
		}
		e.warn(mail.CodeNoTextFound)
	}
	t.Warnings = e.warnings
	return t, nil
}

// warn records a code once.
func (e *Extractor) warn(c mail.Code) {
	if !slices.Contains(e.warnings, c) {
		e.warnings = append(e.warnings, c)
	}
}

// columns takes the text of a record of fields; a field that holds HTML, as help desks send it, is
// read as such.
func (e *Extractor) columns(c *mail.Columns) {
	e.body = e.body[:0]
	switch {
	case strings.TrimSpace(c.Text) != "" && !looksHTML(c.Text):
		e.body = append(e.body, c.Text...)
	case strings.TrimSpace(c.Text) != "":
		e.body = e.html(e.body, []byte(c.Text))
	case c.HTML != "":
		e.body = e.html(e.body, []byte(c.HTML))
	}
}

// looksHTML says whether a field that should be plain is HTML all the same: it starts with a tag
// and ends with one.
func looksHTML(s string) bool {
	s = strings.TrimSpace(s)
	if len(s) < 7 || s[0] != '<' || s[len(s)-1] != '>' || !strings.Contains(s, "</") {
		return false
	}
	c := s[1]
	return c == '!' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// clean makes decoded text regular: "\n" line ends, no NUL, nothing but text at its ends.
func (e *Extractor) clean(b []byte) []byte {
	if bytes.IndexByte(b, 0) >= 0 {
		e.warn(mail.CodeNulRemoved)
		b = removeByte(b, 0)
	}
	if bytes.IndexByte(b, '\r') >= 0 {
		b = lineEnds(b)
	}
	b = bytes.TrimRight(b, " \t\n\u00a0")
	for len(b) > 0 { // leading empty lines go, an indented first line stays
		end := bytes.IndexByte(b, '\n')
		if end < 0 || len(bytes.TrimSpace(b[:end])) > 0 {
			break
		}
		b = b[end+1:]
	}
	return b
}

func removeByte(b []byte, c byte) []byte {
	out := b[:0]
	for _, x := range b {
		if x != c {
			out = append(out, x)
		}
	}
	return out
}

// lineEnds turns "\r\n", "\r\r\n" and a bare "\r" into "\n", in place.
func lineEnds(b []byte) []byte {
	out := b[:0]
	for i := 0; i < len(b); i++ {
		if b[i] != '\r' {
			out = append(out, b[i])
			continue
		}
		for i+1 < len(b) && b[i+1] == '\r' && i+2 < len(b) && (b[i+2] == '\n' || b[i+2] == '\r') {
			i++
		}
		if i+1 < len(b) && b[i+1] == '\n' {
			i++
		}
		out = append(out, '\n')
	}
	return out
}

// finish splits the text into zones, cuts it to the limit and fills t.
func (e *Extractor) finish(t *Text, full []byte, hashBody bool) {
	e.digest(t, full)
	whole := e.cut(full)
	spans := e.zones.split(whole)
	own := whole
	if e.keepQuotes {
		t.Spans = slices.Clone(spans)
	} else {
		e.own = e.own[:0]
		dropped := 0
		for _, s := range spans {
			if s.Zone == Own {
				e.own = append(e.own, whole[s.From:s.To]...)
			} else {
				dropped += utf8.RuneCount(whole[s.From:s.To])
			}
		}
		own = e.clean(e.own)
		// Never nothing; and of more than ten words not one alone, unless the quote is certain:
		// then the one word is the reply.
		left := wordsUpTo(own, 2)
		if dropped > 0 && (left == 0 || left < 2 && !e.zones.certain && wordsUpTo(whole, 11) > 10) {
			e.warn(mail.CodeQuoteReverted)
			own, dropped = whole, 0
		}
		t.QuoteCharsDropped = dropped
	}
	t.Body = string(own)
	t.BodyChars = utf8.RuneCountInString(t.Body)
	if len(whole) < len(full) {
		t.BodyChars += utf8.RuneCount(full[len(whole):])
	}
	if t.Spans == nil && len(t.Body) > 0 {
		t.Spans = []Span{{0, len(t.Body), Own}}
	}
	t.Language = language(t.Body)
	if hashBody {
		e.norm = normalise(e.norm[:0], own, true)
		sum := sha256.Sum256(e.norm)
		t.BodyHash = hex.EncodeToString(sum[:8])
	}
}

// digest fills the content hash: what makes two records copies of each other.
func (e *Extractor) digest(t *Text, full []byte) {
	e.norm = append(e.norm[:0], t.Subject...)
	e.norm = append(e.norm, '\n')
	e.norm = normalise(e.norm, full, false)
	sum := sha256.Sum256(e.norm)
	t.ContentSHA256 = hex.EncodeToString(sum[:])
}

// normalise appends b with white space collapsed and, if lower, ASCII letters in lower case.
func normalise(dst, b []byte, lower bool) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(b)+1)[:n+len(b)+1]
	space := false
	for _, c := range b {
		if c <= ' ' {
			space = n > 0
			continue
		}
		if space {
			dst[n] = ' '
			n++
			space = false
		}
		if lower && c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		dst[n] = c
		n++
	}
	return dst[:n]
}

// cut shortens text to the limit at a character's start.
func (e *Extractor) cut(b []byte) []byte {
	n := int(e.limits.TextBytes)
	if len(b) <= n {
		return b
	}
	e.warn(mail.CodeTextCut)
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// wordsUpTo counts words, no further than limit.
func wordsUpTo(b []byte, limit int) int {
	n, in := 0, false
	for _, c := range b {
		word := c > ' ' && c != '>' && c != '-' && c != '_' && c != '|' && c != '*'
		if word && !in {
			if n++; n >= limit {
				break
			}
		}
		in = c > ' '
		// Scripts without spaces: a character of three bytes counts as a word by itself.
		if c >= 0xe3 && c <= 0xed {
			in = false
		}
	}
	return n
}

// cleanSubject makes one line of a decoded subject.
func cleanSubject(s string) string {
	if !strings.ContainsAny(s, "\x00\r\n\t") {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == 0 || r == '\r' || r == '\n' || r == '\t' }), " ")
}
