package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"misroute/pipeline/mail"
)

// check asserts what holds for every message: valid text, a body within its limit, spans that
// cover it, and the same answer twice.
func check(t *testing.T, e *Extractor, m *mail.Message) {
	t.Helper()
	id := (&mail.Labels{}).Identify(m)
	got, rej := e.Extract(m, &id)
	if rej != nil && (rej.Code.Stage() == "" || rej.Stage != rej.Code.Stage()) {
		t.Fatalf("reject %+v is not in the table", rej)
	}
	if !utf8.ValidString(got.Body) || !utf8.ValidString(got.Subject) || strings.ContainsRune(got.Body, 0) {
		t.Fatalf("text is not clean: %q %q", got.Subject, got.Body)
	}
	if rej == nil && got.Body == "" && got.Subject == "" {
		t.Fatal("neither text nor reject")
	}
	at := 0
	for _, s := range got.Spans {
		if s.From != at || s.To < s.From {
			t.Fatalf("spans %v", got.Spans)
		}
		at = s.To
	}
	if at != len(got.Body) {
		t.Fatalf("spans %v of %d bytes", got.Spans, len(got.Body))
	}
	again, _ := e.Extract(m, &id)
	if again.Body != got.Body || again.ContentSHA256 != got.ContentSHA256 {
		t.Fatalf("twice: %q and %q", got.Body, again.Body)
	}
}

var small = mail.Limits{HeaderBytes: 4 << 10, HeaderField: 1 << 10, Parts: 20, Depth: 4, Nesting: 2, HTMLBytes: 4 << 10, TextBytes: 2 << 10, Parameters: 10}.OrDefault()

func FuzzMessage(f *testing.F) {
	for _, c := range real {
		if len(c.raw) < 4096 {
			f.Add([]byte(c.raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, q := range []string{QuotesStrip, QuotesKeep} {
			check(t, NewExtractor(Options{Quotes: q, Limits: small}), &mail.Message{Raw: raw})
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add("<p>hello<br>there</p><style>x</style>")
	f.Add("<div class=gmail_quote>x</div><blockquote type=cite>y</blockquote><p hidden>z")
	f.Add("<noframes><p>x</noframes><pre>a\n b</pre><td>c&nbsp;d\u200b<!-- -->")
	f.Fuzz(func(t *testing.T, src string) {
		check(t, NewExtractor(Options{Limits: small}), &mail.Message{Columns: &mail.Columns{HTML: strings.ToValidUTF8(src, "")}})
	})
}

func FuzzQuotes(f *testing.F) {
	for _, c := range replies {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.ToValidUTF8(in, "")
		var z zoner
		at := 0
		for _, s := range z.split([]byte(in)) {
			if s.From != at || s.To <= s.From {
				t.Fatalf("spans %v", z.spans)
			}
			at = s.To
		}
		if at != len(in) {
			t.Fatalf("spans %v of %d bytes", z.spans, len(in))
		}
		for _, q := range []string{QuotesStrip, QuotesKeep} {
			check(t, NewExtractor(Options{Quotes: q, Limits: small}), &mail.Message{Columns: &mail.Columns{Text: in}})
		}
	})
}
