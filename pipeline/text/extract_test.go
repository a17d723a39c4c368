package text

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"misroute/pipeline/mail"
)

// Cases that people reported about real mail, with what a reader would want to see.
var real = []struct {
	name, raw, want string
	subject         string
	warning         mail.Code
}{
	{name: "mark before the first header", raw: "\xef\xbb\xbfSubject: s\n\nhello\n", want: "hello", subject: "s"},
	{name: "From line and blank lines first", raw: "\n\nFrom a@b Mon Mar  2 10:00:00 2026\nSubject: s\n\nhello\n", want: "hello", subject: "s"},
	{name: "boundary among the headers", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\n--x\nContent-Type: text/plain\n\nhello\n--x--\n", want: "hello", warning: mail.CodeHeaderNoBlank},
	{name: "header line without colon", raw: "Subject: s\nthis line has none\nContent-Type: text/plain\n\nhello\n", want: "hello", subject: "s", warning: mail.CodeHeaderNoColon},
	{name: "no blank line after the header", raw: "Subject: s\nhello there\nhow are you\n", want: "hello there\nhow are you", subject: "s", warning: mail.CodeHeaderNoBlank},
	{name: "final boundary missing", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nhello\n", want: "hello", warning: mail.CodeNoFinalBoundary},
	{name: "no boundary parameter", raw: "Subject: s\nContent-Type: multipart/mixed\n\n--abc\nContent-Type: text/plain\n\nhello\n--abc--\n", want: "hello", warning: mail.CodeNoBoundary},
	{name: "boundary that never comes", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\n\nhello\n", want: "hello", warning: mail.CodeNoBoundary},
	{name: "letter split over two encoded words", raw: "Subject: =?utf-8?B?w4PDow==?= =?utf-8?Q?=C3?= =?utf-8?Q?=A4?=\n\nx\n", want: "x", subject: "Ããä"},
	{name: "raw 8-bit subject", raw: "Subject: caf\xe9 cr\xe8me\n\nx\n", want: "x", subject: "café crème"},
	{name: "raw subject in the body's charset", raw: "Subject: \xcf\xf0\xe8\xe2\xe5\xf2\nContent-Type: text/plain; charset=windows-1251\n\n\xcf\xf0\xe8\xe2\xe5\xf2\n", want: "Привет", subject: "Привет"},
	{name: "ISO-2022-JP without charset", raw: "Subject: s\n\n\x1b$B$3$s$K$A$O\x1b(B\n", want: "こんにちは", warning: mail.CodeCharsetGuessed},
	{name: "label iso-2022-jp over UTF-8", raw: "Subject: s\nContent-Type: text/plain; charset=iso-2022-jp\n\nこんにちは\n", want: "こんにちは", warning: mail.CodeCharsetWrong},
	{name: "UTF-8 with a Latin-1 footer byte", raw: "Subject: s\nContent-Type: text/plain; charset=utf-8\n\nGrüße aus Köln, schöne Tage\nCaf\xe9\n", want: "Grüße aus Köln, schöne Tage\nCaf\uFFFD", warning: mail.CodeReplaced},
	{name: "quoted-printable line over 4 KiB", raw: "Subject: s\nContent-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("caf=C3=A9 ", 1000) + "\n", want: strings.TrimSpace(strings.Repeat("café ", 1000))},
	{name: "padding inside base64", raw: "Subject: s\nContent-Transfer-Encoding: base64\n\naGVsbG8=IHRoZXJl\n", want: "hello there"},
	{name: "multipart labelled base64 as a whole", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\nContent-Transfer-Encoding: base64\n\n--x\nContent-Type: text/plain\n\nhello\n--x--\n", want: "hello"},
	{name: "multipart encoded base64 as a whole", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\nContent-Transfer-Encoding: base64\n\nLS14CkNvbnRlbnQtVHlwZTogdGV4dC9wbGFpbgoKaGVsbG8KLS14LS0K\n", want: "hello"},
	{name: "boundary in mid-line", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nhello --x there\n--x--\n", want: "hello --x there"},
	{name: "a boundary that begins like another", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=ab\n\n--ab\nContent-Type: multipart/alternative; boundary=abc\n\n--abc\n\nhello\n--abc--\n--ab\n\nthere\n--ab--\n", want: "hello\n\nthere"},
	{name: "CR CR LF", raw: "Subject: s\r\r\nContent-Type: text/plain\r\r\n\r\r\nhello\r\r\nthere\r\r\n", want: "hello\nthere", subject: "s"},
	{name: "NUL bytes", raw: "Subject: s\n\nhel\x00lo\n", want: "hello", warning: mail.CodeNulRemoved},
	{name: "style text in a body", raw: "Subject: s\nContent-Type: text/html\n\n<html><head><style>p { color: red }</style><title>t</title></head><body><script>x()</script><!-- no --><p style='display:none'>hidden</p><p>hello</p></body></html>\n", want: "hello"},
	{name: "cells, breaks, entities, NBSP, zero width", raw: "Subject: s\nContent-Type: text/html; charset=utf-8\n\n<table><tr><td>a</td><td>b&nbsp;c</td></tr><tr><td>d&amp;e</td></tr></table>f<br>g\u200bh <a href='http://x'>label</a>\n", want: "a b c\nd&e\n\nf\ngh label"},
	{name: "a plain part that points to the HTML", raw: "Subject: s\nContent-Type: multipart/alternative; boundary=x\n\n--x\n\nView this in an HTML reader\n--x\nContent-Type: text/html\n\n<p>The cake was late, and it was cold when it came.</p>\n--x--\n", want: "The cake was late, and it was cold when it came."},
	{name: "an empty plain part", raw: "Subject: s\nContent-Type: multipart/alternative; boundary=x\n\n--x\n\n\n--x\nContent-Type: text/html\n\n<p>hello</p>\n--x--\n", want: "hello"},
	{name: "attachments are not read", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nhello\n--x\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment\n\nnot this\n--x\nContent-Type: message/rfc822\n\nSubject: in\n\nnor this\n--x--\n", want: "hello"},
	{name: "format=flowed", raw: "Subject: s\nContent-Type: text/plain; format=flowed\n\nThe cake \nwas late.\n> and \n> cold\n-- \nJane\n", want: "The cake was late.\n> and cold"},
	{name: "unknown charset", raw: "Subject: s\nContent-Type: text/plain; charset=fakescii-7\n\ncaf\xe9\n", want: "café", warning: mail.CodeCharsetUnknown},
	{name: "only a subject", raw: "Subject: the cake is late\n\n\n", want: "", subject: "the cake is late", warning: mail.CodeNoTextFound},
	{name: "uuencoded file in the text", raw: "Subject: s\n\nhello\nbegin 644 a.txt\n#86)C\n`\nend\nthere\n", want: "hello\nthere", warning: mail.CodeUUStripped},
	{name: "uuencoded as a whole", raw: "Subject: s\nContent-Transfer-Encoding: x-uuencode\n\nbegin 644 a.txt\n%:&5L;&\\*\n`\nend\n", want: "hello"},
	{name: "text outside any part", raw: "Subject: s\nContent-Type: multipart/mixed; boundary=x\n\nhello from the preamble\n--x\n\n--x--\n", want: "hello from the preamble", warning: mail.CodeSalvaged},
}

func TestReal(t *testing.T) {
	for _, c := range real {
		got, rej := extract([]byte(c.raw), Options{})
		if rej != nil || got.Body != c.want || c.subject != "" && got.Subject != c.subject {
			t.Errorf("%s\n got  %q, subject %q, %v\n want %q, subject %q", c.name, got.Body, got.Subject, rej, c.want, c.subject)
		}
		if c.warning != "" && !slices.Contains(got.Warnings, c.warning) {
			t.Errorf("%s: warnings %v, want %s", c.name, got.Warnings, c.warning)
		}
	}
}

// Columns hold plain text, or HTML in a field of its own or in the plain one.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		in   mail.Columns
		want string
	}{
		{mail.Columns{Text: "a < b and c > d"}, "a < b and c > d"},
		{mail.Columns{HTML: "<p>hello</p>"}, "hello"},
		{mail.Columns{Text: "<div>hello<br>there</div>"}, "hello\nthere"},
		{mail.Columns{Text: " ", HTML: "<p>hello</p>"}, "hello"},
	} {
		got, rej := NewExtractor(Options{}).Extract(&mail.Message{Columns: &c.in}, &mail.Identity{})
		if rej != nil || got.Body != c.want {
			t.Errorf("%+v: %q %v", c.in, got.Body, rej)
		}
	}
	if _, rej := NewExtractor(Options{}).Extract(&mail.Message{Columns: &mail.Columns{}}, &mail.Identity{}); rej == nil || rej.Code != mail.CodeNoText {
		t.Errorf("nothing at all: %v", rej)
	}
}

// The content hash sees text, not its layout; an Extractor used before gives the same as a new one.
func TestContentHash(t *testing.T) {
	e := NewExtractor(Options{})
	hash := func(raw string) string {
		m := &mail.Message{Raw: []byte(raw)}
		id := (&mail.Labels{}).Identify(m)
		got, _ := e.Extract(m, &id)
		return got.ContentSHA256
	}
	a := hash("Subject: s\n\nhello  there\n\n-- \nJane\n")
	if a != hash("Received: x\nSubject: s\r\n\r\nhello there\r\n-- \r\nJane") {
		t.Error("layout changes the hash")
	}
	for _, other := range []string{"Subject: s\n\nhello thére\n\n-- \nJane\n", "Subject: t\n\nhello there\n\n-- \nJane\n", "Subject: s\n\nhello there\n\n-- \nJoan\n"} {
		if a == hash(other) {
			t.Errorf("%q has the same hash", other)
		}
	}
}

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"I have ordered the cake and it was not what you promised, please refund":              "en",
		"Ich habe den Kuchen bestellt und er ist nicht angekommen, bitte erstatten Sie":        "de",
		"Bonjour, je n'ai pas reçu le gâteau que nous avons commandé, merci de votre aide":     "fr",
		"Hola, el pedido no ha llegado y los pasteles están muy secos, gracias por su ayuda":   "es",
		"Buongiorno, il dolce non è arrivato e sono molto deluso, grazie per la risposta che":  "it",
		"Olá, o bolo não foi entregue e eu não recebi uma resposta, obrigado por ajudar você":  "pt",
		"Ik heb een taart besteld en het is niet aangekomen, graag het geld van mij terug met": "nl",
		"お世話になっております。注文した商品がまだ届きません。":                                                          "ja",
		"Здравствуйте, мой заказ ещё не пришёл":                                                "ru",
		"ok": "", "12345": "", "": "",
	} {
		if got := language(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Where a message of the hard set differs from what its own project expects, and why. Both
// projects' rules would lose all that the sender wrote.
var hardDiffers = map[string]string{
	"29-mime4j-malformedHeader-noheader.eml": "a message without header is all body, as it says itself; expected is an empty one",
	"35-mime4j-hdr-fakeout.eml":              "a line of white space ends the header where no field follows; expected is that it does not, and no body",
}

// hardCase is what a project states about a message of its own.
type hardCase struct {
	File    string
	Source  string   `json:"expect_source"`
	Text    *string  `json:"text"`
	HTML    string   `json:"html"`
	Decoded []string `json:"decoded_parts"`
	Subject *string
}

// want is the text that the case states; prefix says that only its beginning is known. A text part
// that is empty beside HTML leaves the HTML to be read. Of uuencoded files in text nothing is read.
func (c *hardCase) want() (text string, prefix, stated bool) {
	e := NewExtractor(Options{Quotes: QuotesKeep})
	if c.Text != nil && squeeze(*c.Text) == "" && c.HTML != "" {
		return squeeze(string(e.zones.markers(e.html(nil, []byte(c.HTML))))), false, true
	}
	if c.Text != nil {
		return squeeze(*c.Text), false, true
	}
	var parts []string
	for _, p := range c.Decoded {
		if utf8.RuneCountInString(p) == 4000 { // the record keeps no more of a part
			p, prefix = p[:strings.LastIndexByte(p, '\n')+1], true
		}
		rest, _ := stripUU([]byte(p))
		parts = append(parts, string(rest))
	}
	return squeeze(strings.Join(parts, " ")), prefix, c.Decoded != nil
}

// sameText compares with a stated text. Its U+FFFD stand for bytes that its own reader could not
// decode; a letter in their place is no contradiction.
func sameText(got, want string, prefix bool) bool {
	g, w := []rune(got), []rune(want)
	if len(g) < len(w) || len(g) > len(w) && !prefix {
		return false
	}
	for i, r := range w {
		if g[i] != r && (r != utf8.RuneError || g[i] < 0x80) {
			return false
		}
	}
	return true
}

// Every expectation that a project states about its own hard message.
func TestHardMail(t *testing.T) {
	f, err := os.Open(shared(t, "zoo/hardmail/expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	holds := 0
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c hardCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		want, prefix, stated := c.want()
		if !strings.HasSuffix(c.File, ".eml") || !stated {
			continue
		}
		raw, err := os.ReadFile(shared(t, "zoo/hardmail/"+c.File))
		if err != nil {
			t.Fatal(err)
		}
		quotes := QuotesKeep
		if strings.Contains(c.File, "talon") {
			quotes = QuotesStrip
		}
		got, rej := extract(raw, Options{Quotes: quotes})
		same := sameText(squeeze(got.Body), want, prefix) && (rej == nil || want == "")
		switch why := hardDiffers[c.File]; {
		case same && why != "":
			t.Errorf("%s holds by now", c.File)
		case same:
			holds++
		case why != "":
			t.Logf("%s differs: %s", c.File, why)
		default:
			t.Errorf("%s: %q, want %q, %v", c.File, squeeze(got.Body), want, rej)
		}
		if c.Subject != nil && !strings.Contains(c.Source, "NOT") && got.Subject != *c.Subject {
			t.Errorf("%s: subject %q, want %q", c.File, got.Subject, *c.Subject)
		}
	}
	if t.Logf("%d stated expectations hold, %d do not", holds, len(hardDiffers)); holds < 15 {
		t.Errorf("only %d stated expectations hold", holds)
	}
}

// White space at a boundary's end is padding, but for a sender whose final delimiter has it too.
func TestBoundarySpace(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"padding", "--b\n\none\n--b \n\ntwo\n--b--\n", "one\n\ntwo"},
		{"counted", "--b  \n\none\n--b \ntwo\n--b  --\n", "one\n--b \ntwo"},
		{"never closed", "--b  \n\none\n--b \n\ntwo\n", "one\n\ntwo"},
	} {
		got, rej := extract([]byte("Subject: s\nContent-Type: multipart/mixed; boundary=\"b  \"\n\n"+c.in), Options{Quotes: QuotesKeep})
		if rej != nil || got.Body != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.name, got.Body, c.want, rej)
		}
	}
}

// Commands of text/enriched are no text; a parameter that is never closed hides nothing.
func TestEnriched(t *testing.T) {
	for in, want := range map[string]string{
		"<bold>late</bold> <<cake>":                          "late <cake>",
		"<color><PARAM>red</param>late</color> cake":         "late cake",
		"<param>late cake":                                   "late cake",
		"a<param>x</param>b<param>y<bold>z</param>c</param>": "abc",
		"3 < 4": "3 < 4",
	} {
		if got := string(enriched([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Several HTML parts of an alternative are pieces of one text, as several plain ones are.
func TestAlternativeInPieces(t *testing.T) {
	head := "Subject: s\nContent-Type: multipart/alternative; boundary=b\n\n"
	html := "--b\nContent-Type: text/html\n\n<p>The cake was late.</p>\n--b\nContent-Type: text/html\n\n<p>The pie was cold.</p>\n"
	for _, c := range []struct{ name, in, want string }{
		{"HTML alone", html, "The cake was late.\n\nThe pie was cold."},
		{"with an empty text", "--b\n\n\n" + html, "The cake was late.\n\nThe pie was cold."},
		{"with debris", html + "--b\n header=\"left\"\n\n", "The cake was late.\n\nThe pie was cold."},
		{"debris alone", "--b\nThe cake was late.\n", "The cake was late."},
		{"HTML that has a file name", "--b\n\nPlease view as HTML\n--b\nContent-Type: text/html; name=a.html\n\n<p>The cake was late and cold.</p>\n", "The cake was late and cold."},
		{"with a full text", "--b\n\nLate cake, cold pie.\n" + html, "Late cake, cold pie."},
	} {
		if got, rej := extract([]byte(head+c.in+"--b--\n"), Options{}); rej != nil || got.Body != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.name, got.Body, c.want, rej)
		}
	}
}
