package mail

import (
	"bytes"
	"path"
	"strings"
)

// detectBytes is how much of a source is looked at to tell its format.
const detectBytes = 64 << 10

// detectFormat tells a format from content; the name decides only where content leaves it open.
// Empty: unknown.
func detectFormat(w []byte, name string) Format {
	ext := strings.ToLower(path.Ext(name))
	switch {
	case bytes.HasPrefix(w, []byte("PK\x03\x04")), bytes.HasPrefix(w, []byte("PK\x05\x06")):
		return FormatZip
	case len(w) >= 262 && string(w[257:262]) == "ustar":
		return FormatTar
	case ext == ".eml" || ext == ".emlx":
		return FormatEML
	}
	w = bytes.TrimPrefix(w, []byte("\xef\xbb\xbf"))
	t := bytes.TrimLeft(w, " \t\r\n")
	if len(t) == 0 {
		return FormatEML // an empty record, reported as such
	}
	switch {
	case bytes.HasPrefix(t, []byte("From ")):
		return FormatMbox
	case t[0] == '{' && !wraps(t) && oneALine(t):
		return FormatJSONL
	case t[0] == '{':
		return FormatJSON
	case t[0] == '[':
		if rest := bytes.TrimLeft(t[1:], " \t\r\n"); len(rest) == 0 || rest[0] == '{' || rest[0] == '[' || rest[0] == ']' {
			return FormatJSON
		}
	}
	if ext == ".csv" || ext == ".tsv" {
		return FormatCSV
	}
	if looksMail(t) {
		return FormatEML
	}
	if looksCSV(t) {
		return FormatCSV
	}
	return FormatAuto
}

// looksMail says whether w starts with a mail header: two fields that mail has, in the first
// lines, and no line before them that is not a field.
func looksMail(w []byte) bool {
	h := NewHeaderScanner(w)
	known := 0
	for range 60 {
		f, ok := h.Next()
		if !ok {
			break
		}
		for _, n := range [...]string{"From", "To", "Subject", "Date", "Received", "Message-ID", "Return-Path", "Delivered-To", "Content-Type", "MIME-Version", "Path", "Newsgroups"} {
			if f.Is(n) {
				known++
				break
			}
		}
		if known >= 2 {
			return true
		}
	}
	return known > 0 && len(h.Body) > 0
}

// looksCSV says whether the first line could be the header of a table of messages.
func looksCSV(w []byte) bool {
	lines := firstLines(w, 2)
	if len(lines) == 0 || len(lines[0]) > 4<<10 {
		return false
	}
	comma := sniffComma(w)
	if countOutsideQuotes(lines[0], comma) == 0 {
		return false
	}
	var header []string
	for _, f := range strings.Split(string(lines[0]), string(comma)) {
		header = append(header, strings.Trim(f, `" `))
	}
	found := 0
	for _, names := range roleNames {
		if columnOf(header, names) >= 0 {
			found++
		}
	}
	return found > 0
}
