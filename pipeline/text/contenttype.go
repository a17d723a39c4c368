package text

import (
	"bytes"
	"strings"

	"misroute/pipeline/mail"
)

// contentType is a Content-Type as far as reading text needs it.
type contentType struct {
	media    string // lower case; empty when missing or unreadable
	charset  string
	boundary string // as declared, white space at its end included
	flowed   bool
	delsp    bool
	named    bool
	odd      bool
	params   int
}

// parseContentType reads a raw Content-Type value. It forgives what software writes: missing
// semicolons and quotes, spaces in types, parameters twice (the first counts), RFC 2231 pieces.
func parseContentType(v []byte, maxParams int) (ct contentType) {
	v = bytes.TrimSpace(dropComments(mail.Unfold(v)))
	end := bytes.IndexAny(v, "; \t")
	if end < 0 {
		end = len(v)
	}
	media := bytes.ToLower(bytes.Trim(v[:end], "\"'<>,"))
	ct.media = normalMedia(media)
	ct.odd = ct.media == ""
	var pieces []byte // boundary*0=, boundary*1=
	eachParam(v[end:], func(name, value []byte) bool {
		if ct.params++; ct.params > maxParams {
			ct.params += bytes.Count(value, []byte(";"))
			return true // keep counting, keep nothing
		}
		switch {
		case equal(name, "charset"), equal(name, "charset*"):
			if ct.charset == "" {
				ct.charset = string(afterLanguage(name, value))
			}
		case equal(name, "boundary"), equal(name, "boundary*"):
			if ct.boundary == "" {
				ct.boundary = string(afterLanguage(name, value))
			}
		case len(name) > 9 && equal(name[:9], "boundary*"):
			pieces = append(pieces, value...)
		case equal(name, "format"):
			ct.flowed = equal(value, "flowed")
		case equal(name, "delsp"):
			ct.delsp = equal(value, "yes")
		case len(name) >= 4 && equal(name[:4], "name"):
			ct.named = true
		}
		return true
	})
	if ct.boundary == "" {
		ct.boundary = string(pieces)
	}
	return ct
}

// mediaChars are what the names of media types are made of (RFC 6838, section 4.2).
const mediaChars = "abcdefghijklmnopqrstuvwxyz0123456789!#$&-^_.+"

// normalMedia repairs a media type: a bare "text" or "html" says enough.
func normalMedia(media []byte) string {
	s := string(media)
	switch s {
	case "text", "plain", "text/", "txt", "ascii", "text/ascii", "text/text", "text/us-ascii":
		return "text/plain"
	case "html", "text/htm", "text/xhtml", "application/xhtml+xml":
		return "text/html"
	case "multipart", "multipart/":
		return "multipart/mixed"
	}
	if typ, sub, ok := strings.Cut(s, "/"); !ok || typ == "" || sub == "" || strings.Trim(typ+sub, mediaChars) != "" {
		return ""
	}
	return s
}

// disposition is a Content-Disposition.
type disposition struct{ attachment, named bool }

func parseDisposition(v []byte) (d disposition) {
	v = bytes.TrimSpace(mail.Unfold(v))
	if len(v) == 0 {
		return d
	}
	end := bytes.IndexAny(v, "; \t")
	if end < 0 {
		end = len(v)
	}
	d.attachment = equal(bytes.Trim(v[:end], "\"'"), "attachment")
	eachParam(v[end:], func(name, _ []byte) bool {
		d.named = d.named || len(name) >= 8 && equal(name[:8], "filename")
		return !d.named
	})
	return d
}

// eachParam walks "; name=value" pairs until f returns false.
func eachParam(v []byte, f func(name, value []byte) bool) {
	for len(v) > 0 {
		v = bytes.TrimLeft(v, "; \t,")
		eq := bytes.IndexAny(v, "=;")
		if eq < 0 {
			return
		}
		if v[eq] == ';' {
			v = v[eq:]
			continue
		}
		name := bytes.TrimSpace(v[:eq])
		if sp := bytes.LastIndexAny(name, " \t"); sp >= 0 { // a missing semicolon
			name = name[sp+1:]
		}
		v = bytes.TrimLeft(v[eq+1:], " \t")
		var value []byte
		value, v = paramValue(v)
		if !f(name, value) {
			return
		}
	}
}

// paramValue reads a quoted or bare value and returns what follows it.
func paramValue(v []byte) (value, rest []byte) {
	if len(v) > 0 && v[0] == '"' {
		var out []byte
		for i := 1; i < len(v); i++ {
			switch {
			case v[i] == '\\' && i+1 < len(v):
				i++
				out = append(out, v[i])
			case v[i] == '"':
				return out, v[i+1:]
			default:
				out = append(out, v[i])
			}
		}
		// Never closed: the value ends where a parameter could.
		if end := bytes.IndexByte(v, ';'); end >= 0 {
			return v[1:end], v[end:]
		}
		return v[1:], nil
	}
	end := bytes.IndexAny(v, "; \t")
	if end < 0 {
		end = len(v)
	}
	return v[:end], v[end:]
}

// afterLanguage drops the charset and language of an RFC 2231 value: us-ascii'en'value.
func afterLanguage(name, value []byte) []byte {
	if name[len(name)-1] != '*' {
		return value
	}
	if i := bytes.LastIndexByte(value, '\''); i >= 0 {
		return value[i+1:]
	}
	return value
}

// dropComments removes parenthesised comments outside quotes.
func dropComments(v []byte) []byte {
	if bytes.IndexByte(v, '(') < 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	depth, quoted := 0, false
	last := bytes.LastIndexByte(v, ')') // a comment that is never closed is none
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c == '\\' && i+1 < len(v):
			if depth == 0 {
				out = append(out, c, v[i+1])
			}
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
			out = append(out, c)
		case c == '(' && !quoted && i < last:
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0:
			out = append(out, c)
		}
	}
	return out
}

func equal(b []byte, s string) bool { return len(b) == len(s) && strings.EqualFold(string(b), s) }
