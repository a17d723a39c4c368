package text

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
	"testing"

	"misroute/pipeline/mail"
)

// suiteFiles reads the messages of the parser suites: name to bytes.
func suiteFiles(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open(shared(t, "zoo/parser-suites.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[path.Clean(h.Name)], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}

// stalwartPart is a part of stalwart's expected output.
type stalwartPart struct {
	Headers []struct {
		Name, Value json.RawMessage
	}
	Body map[string]json.RawMessage
}

type stalwartMessage struct {
	TextBody []int `json:"text_body"`
	HTMLBody []int `json:"html_body"`
	Parts    []stalwartPart
}

func (p *stalwartPart) attached() bool {
	for _, h := range p.Headers {
		if string(h.Name) == `"content_disposition"` && bytes.Contains(h.Value, []byte(`"attachment"`)) {
			return true
		}
	}
	return false
}

// text is the text of a part; HTML goes through this package's reader.
func (p *stalwartPart) text(kinds ...string) string {
	for _, k := range kinds {
		var s string
		if json.Unmarshal(p.Body[k], &s) != nil {
			continue
		}
		if k == "Html" {
			e := NewExtractor(Options{Quotes: QuotesKeep})
			s = string(e.zones.markers(e.html(nil, []byte(s))))
		}
		return s
	}
	return ""
}

// stalwartTexts are the texts that stalwart's output allows: its text bodies, or its HTML bodies where
// they are empty; with them the text
// parts that it calls attachments only because they are not closed or stand in a multipart without
// parts; and, of a message of messages, theirs.
func stalwartTexts(m *stalwartMessage) []string {
	var bodies, all, nested []string
	for i := range m.Parts {
		p := &m.Parts[i]
		if slices.Contains(m.TextBody, i) {
			bodies = append(bodies, p.text("Text", "Html"))
			all = append(all, p.text("Text", "Html"))
		} else if !p.attached() {
			all = append(all, p.text("Text"))
		}
		var inner stalwartMessage
		if json.Unmarshal(p.Body["Message"], &inner) == nil && inner.Parts != nil {
			nested = append(nested, stalwartTexts(&inner)[1])
		}
	}
	if squeeze(strings.Join(bodies, "")) == "" {
		bodies = nil
		for _, i := range m.HTMLBody {
			bodies = append(bodies, m.Parts[i].text("Html", "Text"))
		}
	}
	out := []string{strings.Join(bodies, " "), strings.Join(all, " "), strings.Join(append(all, nested...), " ")}
	for i := range out {
		out[i] = squeeze(strings.ReplaceAll(out[i], "\x00", "")) // NULs are dropped, with a warning
	}
	return out
}

// Where the text differs from stalwart's and why.
var stalwartDiffers = map[string]string{
	"legacy/049":    "uuencoded files are removed from the text",
	"malformed/001": "a line that is nobody's delimiter is text",
	"malformed/009": "the outer boundary ends an unclosed inner multipart",
	"malformed/011": "the outer boundary ends an unclosed inner multipart",
	"malformed/010": "text of an attached message is read where there is no other, closed or not",
	"malformed/012": "the outer boundary ends an unclosed inner multipart",
	"malformed/020": "a delimiter lost among header lines is put back: the alternative has two parts",
	"malformed/021": "a delimiter lost among header lines is put back: the alternative has two parts",
	"rfc/000":       "text/enriched is text; audio and images that are not decoded are not",
}

func TestStalwartSuite(t *testing.T) {
	files := suiteFiles(t)
	var names []string
	for n := range files {
		if strings.HasPrefix(n, "stalwart") && strings.HasSuffix(n, ".eml") {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	total, agree := 0, 0
	for _, n := range names {
		raw, ok := files[strings.TrimSuffix(n, ".eml")+".json"]
		if !ok {
			continue
		}
		var want stalwartMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		total++
		got, _ := extract(files[n], Options{Quotes: QuotesKeep})
		short := path.Base(path.Dir(n)) + "/" + strings.TrimSuffix(path.Base(n), ".eml")
		switch wants := stalwartTexts(&want); {
		case slices.ContainsFunc(wants, func(w string) bool { return sameText(squeeze(got.Body), w, false) }):
			if agree++; stalwartDiffers[short] != "" {
				t.Errorf("%s agrees by now", short)
			}
		case stalwartDiffers[short] != "":
			t.Logf("%s differs: %s", short, stalwartDiffers[short])
		default:
			t.Errorf("%s\n  got  %.300q\n  want %.300q", short, squeeze(got.Body), wants)
		}
	}
	if t.Logf("%d of %d agree", agree, total); total != 107 || agree < 95 {
		t.Errorf("%d of %d agree, want 95 of 107", agree, total)
	}
}

// isMessage picks the messages among the files of the suites.
func isMessage(name string) bool {
	switch path.Ext(name) {
	case ".eml", ".raw", ".msg":
		return true
	case ".txt":
		return strings.Contains(name, "cpython") && strings.Contains(name, "msg_") || strings.Contains(name, "zbateson")
	}
	return false
}

// No message of the suites may panic, and none is rejected but for having neither subject nor text.
func TestAllSuites(t *testing.T) {
	var names []string
	files := suiteFiles(t)
	for n := range files {
		if isMessage(n) {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	rejected, empty := 0, 0
	for _, n := range names {
		got, rej := extract(files[n], Options{})
		if rej != nil {
			rejected++
			if rej.Code != mail.CodeNoText {
				t.Errorf("%s: rejected %s: %s", n, rej.Code, rej.Detail)
			}
			continue
		}
		if _, body, ok := bytes.Cut(bytes.ReplaceAll(files[n], []byte("\r"), nil), []byte("\n\n")); got.Body == "" && ok && len(bytes.TrimSpace(body)) > 0 {
			empty++
			t.Logf("%s: no text, warnings %v", n, got.Warnings)
		}
	}
	t.Logf("%d messages; %d have neither subject nor text, %d a subject only", len(names), rejected, empty)
}
