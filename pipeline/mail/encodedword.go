package mail

import "bytes"

// DecodeHeader turns a raw header value into text: unfolded, RFC 2047 encoded words decoded, raw
// eight-bit bytes read as UTF-8 or guessed. Neighbouring words of one charset are joined before
// they are decoded, because software splits letters between words.
func DecodeHeader(v []byte) string { return DecodeHeaderAs(v, "") }

// DecodeHeaderAs is DecodeHeader with the charset of raw eight-bit bytes.
func DecodeHeaderAs(v []byte, raw string) string {
	v = Unfold(v)
	if !bytes.Contains(v, []byte("=?")) {
		return string(decodeRaw(v, raw))
	}
	var out, pending []byte
	charset := ""
	flush := func() {
		if len(pending) > 0 {
			out = append(out, DecodeCharset(pending, charset).Text...)
			pending = pending[:0]
		}
	}
	for len(v) > 0 {
		i := bytes.Index(v, []byte("=?"))
		if i < 0 {
			break
		}
		w, ok := parseWord(v[i:])
		if !ok {
			flush()
			out = append(out, decodeRaw(v[:i+2], raw)...)
			v = v[i+2:]
			continue
		}
		if between := v[:i]; len(pending) == 0 || !blank(between) {
			flush()
			out = append(out, decodeRaw(between, raw)...)
		}
		if name := normalLabel(w.charset); name != charset || statefulWord(name) {
			flush()
			charset = name
		}
		if w.base64 {
			pending, _ = DecodeBase64(pending, w.text)
		} else {
			pending, _ = DecodeQuotedPrintable(pending, bytes.ReplaceAll(w.text, []byte("_"), []byte(" ")))
		}
		v = v[i+w.length:]
	}
	flush()
	return string(append(out, decodeRaw(v, raw)...))
}

// statefulWord says whether each word of the charset starts in its own initial state, so that
// words must be decoded one by one.
func statefulWord(name string) bool {
	return name == "utf-7" || name == "hz-gb-2312" || name == "utf-16" || name == "utf-32" || len(name) > 8 && name[:8] == "iso-2022"
}

func decodeRaw(v []byte, charset string) []byte {
	if isASCII(v) && bytes.IndexByte(v, 0x1b) < 0 {
		return v
	}
	return DecodeCharset(v, charset).Text
}

type encodedWord struct {
	charset string
	base64  bool
	text    []byte
	length  int
}

// parseWord reads =?charset?B?text?= at the start of v. Text may hold spaces and even question
// marks, which careless software leaves in; the end is the first "?=" after the encoding.
func parseWord(v []byte) (w encodedWord, ok bool) {
	q := bytes.IndexByte(v[2:], '?')
	if q < 0 || q > 80 || len(v) < q+6 || v[q+4] != '?' || bytes.IndexByte(v[2:2+q], ' ') >= 0 {
		return w, false
	}
	switch v[q+3] {
	case 'B', 'b':
		w.base64 = true
	case 'Q', 'q':
	default:
		return w, false
	}
	body := v[q+5:]
	end := bytes.Index(body, []byte("?="))
	// "=?utf-8?Q?=3F?=": the first "?=" may be the start of the text itself.
	if end == 0 && len(body) > 4 && !w.base64 && unhex(body[2]) >= 0 && unhex(body[3]) >= 0 {
		if more := bytes.Index(body[2:], []byte("?=")); more >= 0 {
			end = more + 2
		}
	}
	if end < 0 {
		return w, false
	}
	w.charset, w.text, w.length = string(v[2:2+q]), body[:end], q+5+end+2
	return w, true
}
