package main

import (
	"bytes"
	"encoding/base64"
)

// attachment is a picture of one grey point, the smallest part that is no text.
const attachment = "Content-Type: image/gif; name=\"photo.gif\"\n" +
	"Content-Disposition: attachment; filename=\"photo.gif\"\n" +
	"Content-Transfer-Encoding: base64\n\n" +
	"R0lGODdhAQABAIAAAH9/fwAAACwAAAAAAQABAAACAkQBADs=\n"

func (w *mailWriter) multipart(kind, suffix string) {
	w.message = append(w.message, "Content-Type: multipart/"...)
	w.message = append(w.message, kind...)
	w.message = append(w.message, ";\n\tboundary=\""...)
	w.message = append(w.message, w.boundary...)
	w.message = append(w.message, suffix...)
	w.message = append(w.message, "\"\n\n"...)
}

func (w *mailWriter) open(suffix string) {
	w.message = append(w.message, "--"...)
	w.message = append(w.message, w.boundary...)
	w.message = append(w.message, suffix...)
	w.message = append(w.message, '\n')
}

func (w *mailWriter) close(suffix string) {
	w.open(suffix)
	w.message = append(w.message[:len(w.message)-1], "--\n"...)
}

// alternative writes text and HTML as two forms of one message.
func (w *mailWriter) alternative(suffix string) {
	w.multipart("alternative", suffix)
	w.open(suffix)
	w.part("text/plain", w.text)
	w.open(suffix)
	w.part("text/html", w.html)
	w.close(suffix)
}

// part writes one text part: its headers, then the content in a transfer encoding
// that can carry it.
func (w *mailWriter) part(contentType string, text []byte) {
	content := w.encode(text)
	w.message = append(w.message, "Content-Type: "...)
	w.message = append(w.message, contentType...)
	w.message = append(w.message, "; charset="...)
	w.message = append(w.message, charsetNames[w.charset]...)
	w.message = append(w.message, "\nContent-Transfer-Encoding: "...)
	short, ascii := longestLine(content) <= 900, isASCII(content) // 998 is the limit of RFC 5322
	switch x := w.unit(); {
	case short && ascii && x < .6:
		w.message = append(w.message, "7bit\n\n"...)
		w.message = append(w.message, content...)
	case short && !ascii && x < .2:
		w.message = append(w.message, "8bit\n\n"...)
		w.message = append(w.message, content...)
	case x > .86:
		w.message = append(w.message, "base64\n\n"...)
		w.message = appendBase64(w.message, content)
	default:
		w.message = append(w.message, "quoted-printable\n\n"...)
		w.message = appendQuotedPrintable(w.message, content)
	}
	if w.message[len(w.message)-1] != '\n' {
		w.message = append(w.message, '\n')
	}
}

func longestLine(b []byte) int {
	longest := 0
	for len(b) > 0 {
		n := bytes.IndexByte(b, '\n')
		if n < 0 {
			n = len(b) - 1
		}
		longest = max(longest, n)
		b = b[n+1:]
	}
	return longest
}

// appendBase64 writes lines of 76 characters.
func appendBase64(dst, content []byte) []byte {
	for len(content) > 0 {
		n := min(len(content), 57)
		dst = base64.StdEncoding.AppendEncode(dst, content[:n])
		dst = append(dst, '\n')
		content = content[n:]
	}
	return dst
}

const upperHex = "0123456789ABCDEF"

// appendQuotedPrintable follows RFC 2045, section 6.7: lines of at most 76
// characters, line ends kept.
func appendQuotedPrintable(dst, content []byte) []byte {
	const width = 75 // the 76th is for the soft line end's "="
	for len(content) > 0 {
		line, rest, hasEnd := bytes.Cut(content, []byte{'\n'})
		content = rest
		column := 0
		for len(line) > 0 {
			n := 0 // how many bytes stand for themselves
			for n < len(line) && column+n < width && qpLiteral(line[n]) {
				n++
			}
			if n > 0 && n == len(line) && line[n-1] == ' ' {
				n-- // a space before a line end would be lost on the way
			}
			dst = append(dst, line[:n]...)
			line = line[n:]
			column += n
			// What is left starts with a byte to encode, or the line is full.
			switch {
			case len(line) == 0:
			case column+3 > width:
				dst, column = append(dst, "=\n"...), 0
			default:
				dst = append(dst, '=', upperHex[line[0]>>4], upperHex[line[0]&15])
				line = line[1:]
				column += 3
			}
		}
		if hasEnd {
			dst = append(dst, '\n')
		}
	}
	return dst
}

func qpLiteral(x byte) bool {
	return x >= ' ' && x <= '~' && x != '='
}

// appendQ is the "Q" encoding of RFC 2047, section 4.2.
func appendQ(dst, text []byte) []byte {
	for _, x := range text {
		switch {
		case x == ' ':
			dst = append(dst, '_')
		case x >= '0' && x <= '9' || x|0x20 >= 'a' && x|0x20 <= 'z':
			dst = append(dst, x)
		default:
			dst = append(dst, '=', upperHex[x>>4], upperHex[x&15])
		}
	}
	return dst
}

// appendMboxrd copies a message and puts one more ">" before each line that would
// look like a separator: "From ", or that with ">" already before it.
func appendMboxrd(dst, message []byte) []byte {
	for len(message) > 0 {
		if first := message[0]; (first == 'F' || first == '>') && bytes.HasPrefix(bytes.TrimLeft(message, ">"), []byte("From ")) {
			dst = append(dst, '>')
		}
		n := bytes.IndexByte(message, '\n') + 1
		if n == 0 {
			n = len(message)
		}
		dst = append(dst, message[:n]...)
		message = message[n:]
	}
	return dst
}
