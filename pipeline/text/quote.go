package text

import (
	"bytes"
	"slices"
	"strings"
)

// Bounds of the line rules: an attribution ("On ... wrote:") spans at most so many lines and
// characters, a signature at most so many lines. They keep the rules linear, whatever the text.
const (
	attributionLines = 3
	attributionBytes = 400
	signatureLines   = 30
	signatureBytes   = 2000
)

// A zoner splits a text into what the sender wrote, what is quoted and what is a signature. One
// pass over the lines; each looks at a bounded number of others.
type zoner struct {
	text   []byte
	lines  []line
	quotes []Span // marked by the HTML reader
	spans  []Span
	// certain says that a quote was found whose signs leave no doubt: quoted lines under an
	// attribution, or the header block of a quoted message.
	certain bool
}

type line struct {
	from, to int // without the line end; to the next line's from lies the line end
	zone     Zone
}

// split returns the zones of text, in order and without gaps, with their line ends.
func (z *zoner) split(text []byte) []Span {
	z.text = text
	z.index()
	z.classify()
	z.closing()
	z.spans = z.spans[:0]
	for i := range z.lines {
		from, to := z.lines[i].from, len(text)
		if i+1 < len(z.lines) {
			to = z.lines[i+1].from
		}
		if n := len(z.spans); n > 0 && z.spans[n-1].Zone == z.lines[i].zone {
			z.spans[n-1].To = to
		} else {
			z.spans = append(z.spans, Span{from, to, z.lines[i].zone})
		}
	}
	return z.spans
}

func (z *zoner) index() {
	z.lines = slices.Grow(z.lines[:0], bytes.Count(z.text, []byte{'\n'})+1)
	for at := 0; at < len(z.text); {
		end := bytes.IndexByte(z.text[at:], '\n')
		if end < 0 {
			z.lines = append(z.lines, line{at, len(z.text), Own})
			return
		}
		z.lines = append(z.lines, line{at, at + end, Own})
		at += end + 1
	}
}

// at is line i without white space at its ends.
func (z *zoner) at(i int) []byte { return bytes.TrimSpace(z.text[z.lines[i].from:z.lines[i].to]) }

// How lines are being taken.
type quoteMode int

const (
	modeOwn    quoteMode = iota
	modeLines            // ">" lines after an attribution are quoted
	modeRest             // everything to the end is quoted
	modeSigned           // a signature, up to a quote
)

func (z *zoner) classify() {
	mode := modeOwn
	z.certain = false
	prefix := byte(0) // what quoted lines start with, once something has been attributed
	q := 0
	for i := 0; i < len(z.lines); i++ {
		l := &z.lines[i]
		for q < len(z.quotes) && z.quotes[q].To <= l.from {
			q++
		}
		if q < len(z.quotes) && l.from >= z.quotes[q].From {
			l.zone = Quoted
			continue
		}
		if mode == modeRest {
			l.zone = Quoted
			continue
		}
		raw := z.text[l.from:l.to]
		if len(raw) == 0 {
			l.zone = zoneOf(mode)
			continue
		}
		if prefix != 0 && (raw[0] == prefix || raw[0] == '>') {
			l.zone, mode = Quoted, modeLines
			continue
		}
		if raw[0] == '>' {
			continue
		}
		t := bytes.TrimSpace(raw)
		if len(t) == 0 {
			l.zone = zoneOf(mode)
			continue
		}
		if isForward(t) { // what somebody forwards is what they want read
			return
		}
		if k, header := z.startsQuote(i, t); k >= 0 {
			for j := i - k; j <= i; j++ {
				z.lines[j].zone = Quoted
			}
			mode = modeRest
			if p := z.prefix(i + 1); p != 0 && !header {
				mode, prefix = modeLines, p
			}
			z.certain = z.certain || header || mode == modeLines
			continue
		}
		if mode == modeSigned {
			l.zone = Signature
			continue
		}
		mode = modeOwn
		if z.signs(i, raw) {
			mode = modeSigned
			l.zone = Signature
		} else if isMobileSignature(t) {
			l.zone = Signature
		}
	}
}

func zoneOf(m quoteMode) Zone {
	switch m {
	case modeLines:
		return Quoted
	case modeSigned:
		return Signature
	}
	return Own
}

// prefix is what the quoted lines from line i on start with: ">", or another sign that two of the
// next lines with text share; 0 if they are not quoted.
func (z *zoner) prefix(i int) byte {
	first := byte(0)
	for n, texts := 0, 0; i < len(z.lines) && n < 6 && texts < 4; i, n = i+1, n+1 {
		t := z.at(i)
		if len(t) == 0 {
			continue
		}
		texts++
		switch {
		case first == 0 && t[0] == '>':
			return '>'
		case first == 0 && bytes.IndexByte([]byte("|:#}]%*+=~"), t[0]) >= 0:
			first = t[0]
		case first == 0:
			return 0
		case t[0] == first:
			return first
		}
	}
	return 0
}

// startsQuote says with how many lines before line i a quote begins there, -1 if none does; header
// says that it is the whole quoted message that follows, header and all.
func (z *zoner) startsQuote(i int, t []byte) (before int, header bool) {
	switch c := t[0]; {
	case c == '-' && isOriginal(t):
		return 0, true
	case c == '_' && len(t) >= 10 && len(bytes.Trim(t, "_")) == 0 && i+1 < len(z.lines) && z.headerBlock(i+1):
		return 0, true
	case bytes.IndexByte(t[:min(len(t), 16)], ':') > 0 && z.headerBlock(i):
		return 0, true
	}
	if t[len(t)-1] == ':' {
		return z.attribution(i), false
	}
	if isDigit(t[0]) && len(t) <= 200 && startsWithDate(t) && bytes.IndexByte(t, '@') > 0 && z.prefix(i+1) != 0 {
		return 0, false
	}
	return -1, false
}

// attribution looks for "On ... wrote:" ending with line i, starting at most two lines before; the
// nearest start counts. Without quoted lines behind it, it needs a time or an address: people
// write such sentences too.
func (z *zoner) attribution(i int) int {
	quoted := z.prefix(i+1) != 0
	for k := 0; k < attributionLines && k <= i; k++ {
		first := z.lines[i-k]
		if z.lines[i].to-first.from > attributionBytes || first.zone != Own || k > 0 && len(z.at(i-k)) == 0 {
			return -1
		}
		t := bytes.TrimSpace(z.text[first.from:z.lines[i].to])
		low := strings.ToLower(string(t))
		if !hasVerb(low) {
			continue
		}
		if opens(low) && strings.ContainsAny(low, "0123456789@") && (quoted || z.answers(i-k) && !strings.HasPrefix(low, "in ") && (strings.ContainsRune(low, '@') || hasClock(low))) {
			return k
		}
		if quoted && k == 0 && verbNearEnd(low) && !opensAbove(z, i) {
			return 0
		}
	}
	if quoted && startsWithDate(z.at(i)) && bytes.IndexByte(z.at(i), '@') > 0 {
		return 0
	}
	return -1
}

// answers says whether the sender wrote something above line i: what follows an attribution without
// quote signs can only be told from the reply where the reply stands first.
func (z *zoner) answers(i int) bool {
	for n := 0; i > 0 && n < signatureLines; n++ {
		i--
		if z.lines[i].zone == Own && len(z.at(i)) > 0 {
			return true
		}
	}
	return i > 0
}

// opensAbove says whether one of the two lines before i starts an attribution of its own, which
// then is the better beginning.
func opensAbove(z *zoner, i int) bool {
	for k := 1; k < attributionLines && k <= i; k++ {
		t := z.at(i - k)
		if len(t) == 0 {
			return false
		}
		if opens(strings.ToLower(string(t))) && len(t) < attributionBytes {
			return true
		}
	}
	return false
}

// openings of attributions: en, de, fr, es, it, pt, nl; newsgroups.
var openings = []string{"on ", "am ", "le ", "el ", "il ", "em ", "no dia ", "op ", "in article ", "in message ", "in <", "in news:", "at ", "a las ", "den ", "a ", "in data ", "dne "}

func opens(low string) bool {
	for _, o := range openings {
		if strings.HasPrefix(low, o) {
			return true
		}
	}
	return false
}

// verbs of attributions, in the same languages.
var verbs = []string{"wrote", "writes", "schrieb", "schrieben", "a écrit", "a ecrit", "a écrit", "écrivait", "écrit", "escribió", "escribio", "ha scritto", "scrive", "scrisse", "escreveu", "schreef", "geschreven", "sent", "said", "dijo", "skrev"}

// hasVerb looks for a verb that stands as a word of its own.
func hasVerb(low string) bool {
	for _, v := range verbs {
		for at := 0; ; {
			i := strings.Index(low[at:], v)
			if i < 0 {
				break
			}
			i += at
			end := i + len(v)
			if (i == 0 || !isLetter(low[i-1])) && (end == len(low) || !isLetter(low[end])) {
				return true
			}
			at = end
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0x80 }

// verbNearEnd says whether a verb is the last word, as in "Jane Doe <jane@example.com> writes:".
func verbNearEnd(low string) bool {
	low = strings.TrimRight(low, ": \t\u00a0")
	for _, v := range verbs {
		if strings.HasSuffix(low, v) && len(low) > len(v)+1 {
			return true
		}
	}
	return false
}

// hasClock looks for hh:mm.
func hasClock(s string) bool {
	for i := 1; i+2 < len(s); i++ {
		if (s[i] == ':' || s[i] == 'h' || s[i] == '.') && isDigit(s[i-1]) && isDigit(s[i+1]) && isDigit(s[i+2]) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// startsWithDate recognises 2026/3/2, 2026-03-02 and 02.03.2026.
func startsWithDate(t []byte) bool {
	digits, seps := 0, 0
	for _, c := range t {
		switch {
		case isDigit(c):
			digits++
		case (c == '/' || c == '-' || c == '.') && digits > 0:
			seps++
		default:
			return seps >= 2 && digits >= 6
		}
	}
	return false
}

// originals are the words of "-----Original Message-----" in seven languages, and of the phone
// that writes "---- Jane Doe wrote ----".
var originals = []string{"original message", "original-nachricht", "ursprüngliche nachricht", "originalnachricht", "urspr. nachricht", "message d'origine", "message d’origine", "message original", "mensaje original", "messaggio originale", "mensagem original", "oorspronkelijk bericht", "reply message", "original appointment"}

func isOriginal(t []byte) bool {
	if len(t) < len("--x wrote-") || len(t) > 200 || !bytes.HasPrefix(t, []byte("--")) || t[len(t)-1] != '-' {
		return false
	}
	low := strings.Trim(strings.ToLower(string(t)), "- ")
	for _, o := range originals {
		if strings.HasPrefix(low, o) {
			return true
		}
	}
	return strings.HasSuffix(low, " wrote")
}

var forwards = []string{"forwarded message", "forwarded by", "weitergeleitete nachricht", "message transféré", "message transmis", "mensaje reenviado", "messaggio inoltrato", "mensagem encaminhada", "doorgestuurd bericht", "begin forwarded message", "anfang der weitergeleiteten"}

// isForward recognises the line that mail programs put above a forwarded message.
func isForward(t []byte) bool {
	if t[0] != '-' && t[0] != 'B' && t[0] != 'A' || len(t) > 200 {
		return false
	}
	low := strings.Trim(strings.ToLower(string(t)), "- ")
	for i, f := range forwards {
		if strings.HasPrefix(low, f) && (t[0] == '-' || i >= len(forwards)-2) {
			return true
		}
	}
	return false
}

// Names of the fields in the header block above a quote.
var (
	senderNames = []string{"from", "von", "de", "da", "van", "expéditeur", "mittente", "afzender"}
	otherNames  = []string{"sent", "date", "to", "cc", "subject", "gesendet", "datum", "an", "betreff", "kopie", "envoyé", "à", "a", "objet", "enviado", "enviado el", "fecha", "para", "asunto", "inviato", "data", "oggetto", "enviada em", "enviado em", "assunto", "verzonden", "aan", "onderwerp", "date d'envoi", "importance", "reply-to"}
)

// headerBlock says whether a mail header as Outlook writes it above a quote starts at line i: the
// sender, and at least two more fields in the next lines.
func (z *zoner) headerBlock(i int) bool {
	if i >= len(z.lines) || !fieldOf(z.at(i), senderNames) {
		return false
	}
	found := 0
	for j := i + 1; j < len(z.lines) && j <= i+8; j++ {
		if fieldOf(z.at(j), otherNames) {
			if found++; found == 2 {
				return true
			}
		}
	}
	return false
}

// fieldOf says whether t is "Name: ..." with one of names, perhaps in bold "*Name:*".
func fieldOf(t []byte, names []string) bool {
	t = bytes.TrimLeft(t, "*> ")
	colon := bytes.IndexByte(t, ':')
	if colon < 1 || colon > 24 {
		return false
	}
	return slices.Contains(names, strings.ToLower(strings.TrimRight(string(t[:colon]), "* \u00a0")))
}

// signs says whether line i opens a signature: "-- ", or a bare "--" or a ruler near the end, with
// a bounded number of lines behind it up to the end or to a quote.
func (z *zoner) signs(i int, raw []byte) bool {
	limit := signatureLines
	switch t := bytes.TrimRight(raw, "\r"); {
	case string(t) == "-- ", string(t) == "--\u00a0":
	case string(t) == "--", string(t) == "—", len(t) >= 20 && len(bytes.Trim(t, "_")) == 0:
		limit = 10
	default:
		return false
	}
	n, bytesSeen := 0, 0
	for j := i + 1; j < len(z.lines); j++ {
		t := z.at(j)
		if len(t) == 0 {
			continue
		}
		if t[0] == '>' || t[len(t)-1] == ':' && z.attribution(j) == 0 || isOriginal(t) {
			return true
		}
		n++
		if bytesSeen += len(t); n > limit || bytesSeen > signatureBytes {
			return false
		}
	}
	return true
}

// mobile are the lines that phones add.
var mobile = []string{"sent from my ", "sent from mail for ", "sent from yahoo", "sent from outlook", "sent via ", "get outlook for ", "von meinem ", "gesendet von ", "gesendet mit ", "diese nachricht wurde von meinem", "envoyé de mon ", "envoyé depuis ", "enviado desde ", "enviado do meu ", "enviado de mi ", "enviado a partir ", "inviato da ", "inviato dal mio ", "verstuurd vanaf ", "verzonden vanaf ", "verzonden met "}

func isMobileSignature(t []byte) bool {
	switch t[0] | 0x20 {
	case 's', 'g', 'v', 'd', 'e', 'i':
	default:
		return false
	}
	if len(t) > 80 {
		return false
	}
	low := strings.ToLower(string(t))
	for _, m := range mobile {
		if strings.HasPrefix(low, m) {
			return m != "von meinem " || strings.Contains(low, "gesendet")
		}
	}
	return false
}

// closing looks at the last own lines: a block of short lines with a telephone number is a
// signature, from its closing formula if one is near; so is a last line "-Name".
func (z *zoner) closing() {
	last := -1
	for i := len(z.lines) - 1; i >= 0; i-- {
		if z.lines[i].zone == Own && len(z.at(i)) > 0 {
			last = i
			break
		}
	}
	if last < 1 {
		return
	}
	if t := z.at(last); t[0] == '-' && len(t) > 1 && len(t) < 40 && isLetter(t[1]|0x20) && bytes.Count(t, []byte(" ")) <= 2 && !bytes.ContainsAny(t, ".?!,:") {
		z.lines[last].zone = Signature
		return
	}
	phone := -1
	for top, n := last, 0; top >= 0 && n < 10 && z.lines[top].zone == Own; top-- {
		t := z.at(top)
		if len(t) == 0 {
			continue
		}
		if phone >= 0 && isFormula(t) {
			z.sign(top, last)
			return
		}
		if !isSignatureLine(t) {
			break
		}
		n++
		if isPhoneLine(t) {
			phone = top
		}
	}
	if phone >= 0 {
		// No formula: the block without empty lines around the number.
		for phone > 0 && z.lines[phone-1].zone == Own && len(z.at(phone-1)) > 0 && isSignatureLine(z.at(phone-1)) {
			phone--
		}
		z.sign(phone, last)
	}
}

// isSignatureLine says whether a line could stand in a signature: short, and no sentence.
func isSignatureLine(t []byte) bool {
	if len(t) > 70 || bytes.IndexByte([]byte(".?!:;,"), t[len(t)-1]) >= 0 && !isFormula(t) {
		return false
	}
	return bytes.Count(t, []byte(" ")) < 10 && !bytes.Contains(t, []byte(". "))
}

func (z *zoner) sign(from, to int) {
	if from == 0 {
		return
	}
	for i := from; i <= to; i++ {
		z.lines[i].zone = Signature
	}
}

// isPhoneLine says whether a line is a telephone number and little else: seven digits or more, and
// at most three words of letters or a name for the number before it. "Call me at ..." is text.
func isPhoneLine(t []byte) bool {
	digits, letters, words, in := 0, 0, 0, false
	for _, c := range t {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
		switch {
		case isDigit(c):
			digits++
		case letter:
			letters++
			if !in {
				words++
			}
		}
		in = letter
	}
	if digits < 7 || digits > 40 {
		return false
	}
	low := strings.ToLower(string(t))
	for _, p := range [...]string{"telephone", "telefon", "tel", "phone", "ph", "mobile", "mobil", "cell", "cel", "fax", "office", "direct", "t", "m", "p", "f", "tél", "handy", "gsm"} {
		if rest, ok := strings.CutPrefix(low, p); ok && rest != "" && !isLetter(rest[0]) {
			return letters <= digits+20
		}
	}
	if words > 1 || letters > 6 {
		return false
	}
	switch low[0] {
	case '+', '(', '0':
		return true
	}
	// 555-123-4567
	return digits == 10 && strings.Count(low, "-") == 2
}

// formulas close letters.
var formulas = []string{"regards", "best regards", "kind regards", "best", "thanks", "thank you", "many thanks", "cheers", "sincerely", "yours", "warm regards", "best wishes", "mit freundlichen grüßen", "mit freundlichem gruß", "viele grüße", "freundliche grüße", "beste grüße", "mfg", "lg", "cordialement", "bien cordialement", "bien à vous", "merci", "saludos", "atentamente", "un saludo", "gracias", "cordiali saluti", "distinti saluti", "saluti", "grazie", "atenciosamente", "cumprimentos", "obrigado", "obrigada", "met vriendelijke groet", "vriendelijke groeten", "groeten", "groet", "mvg"}

func isFormula(t []byte) bool {
	if len(t) > 40 {
		return false
	}
	return slices.Contains(formulas, strings.Trim(strings.ToLower(string(t)), " ,.!-"))
}

// markers removes the marks of the HTML reader from text and keeps the ranges between them as
// quotes, unless a forwarded message stands there.
func (z *zoner) markers(text []byte) []byte {
	z.quotes = z.quotes[:0]
	if bytes.IndexByte(text, quoteOpen) < 0 && bytes.IndexByte(text, quoteClose) < 0 {
		return text
	}
	out := text[:0]
	depth, from := 0, 0
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		l := text[at:end]
		at = end
		switch {
		case len(l) > 0 && l[0] == quoteOpen && len(bytes.TrimSpace(l)) == 1:
			if depth == 0 {
				from = len(out)
			}
			depth++
		case len(l) > 0 && l[0] == quoteClose && len(bytes.TrimSpace(l)) == 1:
			if depth > 0 {
				depth--
			}
			if depth == 0 {
				z.addQuote(out, from)
			}
		default:
			out = append(out, l...)
		}
	}
	if depth > 0 {
		z.addQuote(out, from)
	}
	return out
}

func (z *zoner) addQuote(out []byte, from int) {
	first, _, _ := bytes.Cut(bytes.TrimSpace(out[from:]), []byte{'\n'})
	if len(first) == 0 || isForward(bytes.TrimSpace(first)) {
		return
	}
	z.quotes = append(z.quotes, Span{from, len(out), Quoted})
}
