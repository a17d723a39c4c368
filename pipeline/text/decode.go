package text

import (
	"bytes"
	"slices"
	"strings"

	"misroute/pipeline/mail"
)

// decode returns the text of leaf i: transfer encoding, charset, markup, line wrapping. The result
// may share memory with the message.
func (e *Extractor) decode(i int) []byte {
	p := &e.parts[i]
	if p.decoded {
		return p.text
	}
	p.decoded = true
	b := e.transfer(nil, p.body, p.encoding)
	if p.encoding == "base64" && slices.Contains(e.warnings, mail.CodeBadBase64) && controls(b)*20 > len(b) {
		b = p.body // decoding made no text of it
	}
	if p.media == "text/html" && int64(len(b)) > e.limits.HTMLBytes {
		b = b[:e.limits.HTMLBytes]
		e.warn(mail.CodeHTMLCut)
	}
	label := p.charset
	if label == "" && p.media == "text/html" {
		label = metaCharset(b)
	}
	d := mail.DecodeCharset(b, label)
	e.note(d, label)
	switch p.media {
	case "text/html":
		p.text = e.html(nil, d.Text)
	case "text/enriched", "text/richtext":
		p.text = enriched(d.Text)
	default:
		p.text = e.plain(d.Text, p.flowed, p.delsp)
	}
	return p.text
}

// note records what decoding a charset had to guess.
func (e *Extractor) note(d mail.Decoded, label string) {
	if d.Replaced > 0 {
		e.warn(mail.CodeReplaced)
	}
	switch d.Reason {
	case mail.ReasonUnknown:
		e.warn(mail.CodeCharsetUnknown)
	case mail.ReasonDetected, mail.ReasonFallback, mail.ReasonEscape:
		if label == "" {
			e.warn(mail.CodeCharsetGuessed)
		} else {
			e.warn(mail.CodeCharsetWrong)
		}
	case mail.ReasonUTF8:
		if low := strings.ToLower(label); low != "" && !strings.Contains(low, "utf") {
			e.warn(mail.CodeCharsetWrong)
		}
	}
}

// transfer undoes a content transfer encoding.
func (e *Extractor) transfer(dst, b []byte, encoding string) []byte {
	clean := true
	switch encoding {
	case "", "7bit", "8bit", "binary", "7-bit", "8-bit", "none", "text", "plain":
		return b
	case "base64", "b", "base-64", "x-base64":
		if b, clean = mail.DecodeBase64(grow(dst, len(b)), b); !clean {
			e.warn(mail.CodeBadBase64)
		}
	case "quoted-printable", "q", "quoted_printable", "quotedprintable", "qp", "quoted printable", "x-quoted-printable":
		if b, clean = mail.DecodeQuotedPrintable(grow(dst, len(b)), b); !clean {
			e.warn(mail.CodeBadQP)
		}
	case "x-uuencode", "uuencode", "x-uue", "uue":
		return decodeUU(b)
	default:
		if strings.HasPrefix(encoding, "base64") { // "base64; x=y"
			return e.transfer(dst, b, "base64")
		}
		if strings.HasPrefix(encoding, "quoted") {
			return e.transfer(dst, b, "quoted-printable")
		}
		e.warn(mail.CodeUnknownCTE)
	}
	return b
}

// controls counts control characters that no text has.
func controls(b []byte) (n int) {
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b && c != 0x0e && c != 0x0f {
			n++
		}
	}
	return n
}

func grow(dst []byte, n int) []byte {
	if dst == nil {
		return make([]byte, 0, n)
	}
	return dst
}

// plain handles what plain text can hold: uuencoded files, and lines that format=flowed broke.
func (e *Extractor) plain(b []byte, flowed, delsp bool) []byte {
	if bytes.Contains(b, []byte("begin ")) {
		if out, n := stripUU(b); n > 0 {
			e.warn(mail.CodeUUStripped)
			b = out
		}
	}
	if flowed {
		return unflow(b, delsp)
	}
	return b
}

// unflow joins the lines of format=flowed (RFC 3676): a line that ends with a space goes on in the
// next one of the same quote depth; the signature separator does not.
func unflow(b []byte, delsp bool) []byte {
	out := make([]byte, 0, len(b))
	depth, open := 0, false // the line before: its depth, and whether it goes on
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte{'\n'})
		b = rest
		line = bytes.TrimRight(line, "\r")
		d := 0
		for d < len(line) && line[d] == '>' {
			d++
		}
		text := bytes.TrimPrefix(line[d:], []byte(" ")) // space-stuffing
		sig := string(text) == "-- "
		if len(out) > 0 && (!open || d != depth || sig) {
			out = append(bytes.TrimRight(out, " "), '\n')
			open = false
		}
		if !open {
			for range d {
				out = append(out, '>')
			}
			if d > 0 {
				out = append(out, ' ')
			}
		}
		depth, open = d, len(text) > 0 && text[len(text)-1] == ' ' && !sig
		if open && delsp {
			text = text[:len(text)-1]
		}
		out = append(out, text...)
	}
	return out
}

// stripUU removes uuencoded files from text and returns how many there were. A file starts with
// "begin MODE NAME" and goes on while its lines have the length that their first character says.
func stripUU(b []byte) ([]byte, int) {
	var out []byte
	files, copied := 0, 0
	for at := 0; at < len(b); {
		end := lineEnd(b, at)
		if !isUUBegin(b[at:end]) {
			at = end
			continue
		}
		stop, lines := end, 0
		for stop < len(b) {
			next := lineEnd(b, stop)
			line := bytes.TrimRight(b[stop:next], "\r\n")
			if string(line) == "end" {
				stop = next
				break
			}
			if !isUULine(line) {
				break
			}
			stop = next
			lines++
		}
		if lines == 0 {
			at = end
			continue
		}
		out = append(out, b[copied:at]...)
		copied, at = stop, stop
		files++
	}
	if files == 0 {
		return b, 0
	}
	return append(out, b[copied:]...), files
}

func isUUBegin(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("begin "))
	if !ok {
		return false
	}
	mode, name, _ := bytes.Cut(bytes.TrimLeft(rest, " \t"), []byte(" "))
	return len(mode) >= 3 && len(mode) <= 4 && len(bytes.Trim(mode, "01234567")) == 0 && !blankText(name)
}

// isUULine says whether the line's length fits the count in its first character; trailing blanks
// may have been stripped on the way.
func isUULine(line []byte) bool {
	if len(line) == 0 {
		return false
	}
	n := int(line[0]-' ') & 63
	want := 1 + (n+2)/3*4
	return line[0] >= ' ' && line[0] <= '`' && len(line) <= want+2 && len(line) >= min(want, 1+n)-2
}

// decodeUU decodes a part whose transfer encoding is uuencode.
func decodeUU(b []byte) []byte {
	var out []byte
	begun := false
	for at := 0; at < len(b); {
		end := lineEnd(b, at)
		line := bytes.TrimRight(b[at:end], "\r\n")
		at = end
		switch {
		case !begun:
			begun = isUUBegin(line)
		case string(line) == "end":
			return out
		case isUULine(line):
			out = appendUU(out, line)
		}
	}
	if !begun { // not uuencoded after all
		return b
	}
	return out
}

func appendUU(dst, line []byte) []byte {
	n := int(line[0]-' ') & 63
	at := func(i int) byte {
		if i < len(line) {
			return (line[i] - ' ') & 63
		}
		return 0
	}
	for i := 1; n > 0; i += 4 {
		a, b, c, d := at(i), at(i+1), at(i+2), at(i+3)
		three := [3]byte{a<<2 | b>>4, b<<4 | c>>2, c<<6 | d}
		dst = append(dst, three[:min(n, 3)]...)
		n -= 3
	}
	return dst
}

// enriched removes the commands of text/enriched (RFC 1896): "<<" is a "<", <param> has no text up to
// its end.
func enriched(b []byte) []byte {
	out := make([]byte, 0, len(b))
	param := -1 // where the text of an open <param> starts in out
	for len(b) > 0 {
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			break
		}
		out = append(out, b[:i]...)
		b = b[i:]
		if len(b) > 1 && b[1] == '<' {
			out = append(out, '<')
			b = b[2:]
			continue
		}
		end := bytes.IndexByte(b, '>')
		if end < 0 {
			break
		}
		switch command := b[1:end]; {
		case param < 0 && equal(command, "param"):
			param = len(out)
		case param >= 0 && equal(command, "/param"):
			out, param = out[:param], -1
		}
		b = b[end+1:]
	}
	return append(out, b...)
}

func lineEnd(b []byte, at int) int {
	if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(b)
}
