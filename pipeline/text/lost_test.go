package text

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime/quotedprintable"
	"regexp"
	"sort"
	"strings"
	"testing"
)

var (
	boundaryParam = regexp.MustCompile(`(?i)boundary\s*=\s*("[^"\r\n]+"|[^\s;"]+)`)
	unseen        = regexp.MustCompile(`(?is)<!--.*?-->|<(style|script|title|head)\b.*?</(style|script|title|head)\s*>|<[^>]*>|&[#a-z0-9]+;`)
	word          = regexp.MustCompile(`\pL{2,}`)
)

// A plainPart is a part as the plain reader of this file sees it.
type plainPart struct {
	header, body strings.Builder
	attached     bool // inside message/*, or what has no type in a digest (RFC 2046, section 5.1.5)
}

// field is the value of a header field, unfolded, in lower case.
func (p *plainPart) field(name string) string {
	unfolded := strings.NewReplacer("\n ", " ", "\n\t", " ").Replace("\n" + p.header.String())
	for _, l := range strings.Split(unfolded, "\n") {
		if n, v, ok := strings.Cut(l, ":"); ok && strings.EqualFold(strings.TrimSpace(n), name) {
			return strings.ToLower(strings.TrimSpace(v))
		}
	}
	return ""
}

// words says whether the part is text to be read, and has a word.
func (p *plainPart) words() bool {
	media := p.field("Content-Type")
	html := strings.HasPrefix(media, "text/html")
	disposition := p.field("Content-Disposition")
	if p.attached || strings.HasPrefix(disposition, "attachment") || media != "" && !html && !strings.HasPrefix(media, "text/plain") {
		return false
	}
	body := p.body.String()
	switch p.field("Content-Transfer-Encoding") {
	case "base64":
		packed := strings.Join(strings.Fields(body), "")
		raw, _ := base64.StdEncoding.DecodeString(packed) // what came before an error counts
		body = string(raw)
	case "quoted-printable":
		raw, _ := io.ReadAll(quotedprintable.NewReader(strings.NewReader(body)))
		body = string(raw)
	}
	if html {
		body = unseen.ReplaceAllString(body, " ")
	}
	return word.MatchString(body)
}

// plainParts cuts a message at lines that are "--" and any boundary declared anywhere in it: a reader
// that shares no rule with the one under test, and is right about messages that are not damaged.
func plainParts(raw []byte) []*plainPart {
	declared := make(map[string]bool)
	for _, m := range boundaryParam.FindAllSubmatch(raw, -1) {
		declared["--"+strings.Trim(string(m[1]), `"`)] = true
	}
	digest := bytes.Contains(bytes.ToLower(raw), []byte("multipart/digest"))
	p, inHeader, inMessage := &plainPart{}, true, false
	parts := []*plainPart{p}
	for _, l := range bytes.SplitAfter(bytes.TrimLeft(raw, "\r\n"), []byte("\n")) {
		line := strings.TrimRight(string(l), " \t\r\n")
		last := strings.TrimSuffix(line, "--")
		switch {
		case declared[line]:
			p, inHeader = &plainPart{attached: inMessage}, true
			parts = append(parts, p)
		case declared[last]: // what follows is an epilogue, or whatever an attached message was in
			p, inHeader, inMessage = &plainPart{attached: true}, false, false
		case inHeader && line == "":
			inHeader = false
			p.attached = p.attached || digest && p.field("Content-Type") == ""
			inMessage = inMessage || strings.HasPrefix(p.field("Content-Type"), "message/")
		case inHeader:
			p.header.WriteString(strings.TrimRight(string(l), "\r\n") + "\n")
		default:
			p.body.WriteString(line + "\n")
		}
	}
	return parts
}

// A message is lost when one of its text parts has words and what is extracted has none. One in the
// suites would be as good as the best library measured; none is.
func TestNothingLost(t *testing.T) {
	files := suiteFiles(t)
	var names []string
	for n := range files {
		if isMessage(n) {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	with, lost := 0, 0
	for _, n := range names {
		has := false
		for _, p := range plainParts(files[n]) {
			has = has || p.words()
		}
		if !has {
			continue
		}
		with++
		if got, rej := extract(files[n], Options{}); rej != nil || !word.MatchString(got.Body) {
			lost++
			t.Logf("%s: lost, body %.80q, %v, reject %v", n, got.Body, got.Warnings, rej)
		}
	}
	if t.Logf("%d of %d messages have words in a text part; %d lost", with, len(names), lost); lost > 0 || with < 400 {
		t.Errorf("%d of %d lost, want none of 400 or more", lost, with)
	}
}
