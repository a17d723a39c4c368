package main

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"
)

// charset is how a part's text becomes bytes.
type charset uint8

const (
	utf8Charset charset = iota
	windows1252
	latin1
	charsets
)

var charsetNames = [charsets]string{"utf-8", "windows-1252", "iso-8859-1"}

// dialect is the habit of a mail program.
type dialect uint8

const (
	webmail dialect = iota // gmail_quote, <div dir="ltr">
	desktop                // MsoNormal, a <style> block, "From: ... Sent: ..." above quotes
	mobile                 // plain <div>s, blockquote type="cite"
	dialects
)

var mailers = [dialects]string{"Webmail 4.2", "Desk Mail 16.0", "Pocket Mail (20B110)"}

// structure is the shape of the MIME tree.
type structure uint8

const (
	plainOnly structure = iota
	alternative
	htmlOnly
	mixed // alternative text and an attachment
	structures
)

var structureWeights = [structures]float64{plainOnly: 44, alternative: 40, htmlOnly: 12, mixed: 4}

// mailWriter turns letters into records of an mbox file. Its buffers are reused.
type mailWriter struct {
	random            // of the letter: continues where composing stopped
	text, html        []byte
	quoted            []byte
	encoded, boundary []byte
	message, record   []byte
	structure         structure
	dialect           dialect
	charset           charset
	decisiveByte      int // of the decisive sentence in the text
}

// record returns the letter as one mbox record: From_ line, message with mboxrd
// quoting, blank line. The bytes are valid until the next call.
func (w *mailWriter) write(l *letter, r random) []byte {
	w.random = r
	w.structure = structure(w.weighted(structureWeights[:]))
	w.dialect = dialect(w.below(int(dialects)))
	if l.voice == phone {
		w.dialect = mobile
	}
	w.writeText(l)
	w.charset = w.chooseCharset(w.text)
	w.boundary = append(w.boundary[:0], "=_"...)
	w.boundary = strconv.AppendUint(w.boundary, w.uint64(), 36)

	w.message = w.message[:0]
	w.writeHeaders(l)
	switch w.structure {
	case plainOnly:
		w.part("text/plain", w.text)
	case htmlOnly:
		w.writeHTML(l)
		w.part("text/html", w.html)
	case alternative:
		w.writeHTML(l)
		w.alternative("")
	case mixed:
		w.writeHTML(l)
		w.multipart("mixed", "")
		w.open("")
		w.alternative(".a")
		w.message = append(w.message, '\n')
		w.open("")
		w.message = append(w.message, attachment...)
		w.close("")
	}
	w.record = append(w.record[:0], "From "...)
	w.record = append(w.record, l.from.address...)
	w.record = l.sent.AppendFormat(w.record, " Mon Jan _2 15:04:05 2006\n")
	w.record = appendMboxrd(w.record, w.message)
	return append(w.record, '\n')
}

// writeText makes the plain form, and finds the decisive sentence in it.
func (w *mailWriter) writeText(l *letter) {
	w.text = w.text[:0]
	quoteFirst := len(l.quote) > 0 && w.chance(.15)
	if quoteFirst {
		w.quoteText(l)
		w.text = append(w.text, '\n')
	}
	at := len(w.text)
	w.decisiveByte = at + l.decisive.at
	w.text = append(w.text, l.body...)
	if w.dialect != mobile && w.structure != htmlOnly && w.chance(.6) {
		wrap(w.text[at:], 72)
	}
	w.text = append(w.text, '\n')
	if len(l.quote) > 0 && !quoteFirst {
		w.text = append(w.text, '\n')
		w.quoteText(l)
	}
}

const shopAddress = "hello@crumb.example"

// quoteText appends the shop's mail as a quotation.
func (w *mailWriter) quoteText(l *letter) {
	mark := "> "
	if w.dialect == desktop {
		mark = ""
		w.text = append(w.text, "-----Original Message-----\nFrom: Crumb <"+shopAddress+">\nSent: "...)
		w.text = l.answered().AppendFormat(w.text, "Monday, 2 January 2006 15:04")
		w.text = append(w.text, "\nSubject: "...)
		w.text = append(w.text, l.subject...)
		w.text = append(w.text, "\n\n"...)
	} else {
		w.text = w.attribution(w.text, l)
		w.text = append(w.text, '\n')
	}
	w.quoted = append(w.quoted[:0], l.quote...)
	wrap(w.quoted, 70)
	for line := range bytes.Lines(w.quoted) {
		w.text = append(w.text, mark...)
		w.text = append(w.text, line...)
	}
	w.text = append(w.text, '\n')
}

// answered is when the shop had answered the thread's first message.
func (l *letter) answered() time.Time {
	return l.thread.sent.Add(l.sent.Sub(l.thread.sent) / 2).Add(l.offset)
}

func (w *mailWriter) attribution(dst []byte, l *letter) []byte {
	dst = append(dst, "On "...)
	if w.dialect == mobile {
		dst = l.answered().AppendFormat(dst, "2 Jan 2006, at 15:04")
		dst = append(dst, ", Crumb <"+shopAddress+"> wrote:\n"...)
		return dst
	}
	dst = l.answered().AppendFormat(dst, "Mon, 2 Jan 2006 at 15:04")
	return append(dst, ", Crumb <"+shopAddress+"> wrote:"...)
}

// wrap breaks lines longer than width at spaces, in place: a space becomes a line
// end, so no byte moves.
func wrap(b []byte, width int) {
	lineStart, lastSpace := 0, -1
	for i, x := range b {
		switch x {
		case '\n':
			lineStart, lastSpace = i+1, -1
		case ' ':
			// "-- " ends a signature line and is not a place to break.
			if i > lineStart+2 {
				lastSpace = i
			}
		}
		if i-lineStart >= width && lastSpace > 0 {
			b[lastSpace] = '\n'
			lineStart, lastSpace = lastSpace+1, -1
		}
	}
}

// chooseCharset picks one that can hold the text.
func (w *mailWriter) chooseCharset(text []byte) charset {
	want := charset(w.weighted([]float64{70, 18, 12}))
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			text = text[1:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		if r > 0xff && (r != '’' || want != windows1252) {
			return utf8Charset
		}
		text = text[n:]
	}
	return want
}

// encode turns UTF-8 into the charset's bytes.
func (w *mailWriter) encode(text []byte) []byte {
	if w.charset == utf8Charset {
		return text
	}
	w.encoded = w.encoded[:0]
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == '’' {
			r = 0x92
		}
		w.encoded = append(w.encoded, byte(r))
		text = text[n:]
	}
	return w.encoded
}

func (w *mailWriter) writeHeaders(l *letter) {
	m := w.message
	local := l.sent.Add(l.offset)
	m = append(m, "Received: from mail.example.net (mail.example.net [192.0.2."...)
	m = strconv.AppendInt(m, int64(1+w.below(254)), 10)
	m = append(m, "])\n\tby mx.crumb.example with ESMTPS id "...)
	m = strconv.AppendUint(m, w.uint64()>>24, 36)
	m = l.sent.AppendFormat(m, "\n\tfor <"+shopAddress+">; Mon, 2 Jan 2006 15:04:05 +0000\n")
	m = append(m, "Message-ID: <"...)
	m = append(m, l.id...)
	m = local.AppendFormat(append(m, '>', '\n'), "Date: Mon, 2 Jan 2006 15:04:05 ")
	m = appendZone(m, l.offset)
	m = append(m, "\nFrom: "...)
	m = w.appendName(m, l.from)
	m = append(m, " <"...)
	m = append(m, l.from.address...)
	m = append(m, ">\nTo: Crumb <"+shopAddress+">\nSubject: "...)
	m = w.appendWords(m, l.subject)
	if l.thread != nil {
		m = append(m, "\nIn-Reply-To: <"...)
		m = append(m, l.thread.answer...)
		m = append(m, ">\nReferences: <"...)
		m = append(m, l.thread.id...)
		m = append(m, ">\n <"...)
		m = append(m, l.thread.answer...)
		m = append(m, '>')
	}
	m = append(m, "\nX-Mailer: "...)
	m = append(m, mailers[w.dialect]...)
	m = append(m, "\nX-Queue: "...)
	m = append(m, queueNames[l.queue]...)
	m = append(m, "\nX-Crumb-Decisive: "...)
	m = append(m, l.third()...)
	m = strconv.AppendInt(append(m, "; word="...), int64(l.wordAt), 10)
	m = strconv.AppendInt(append(m, "; words="...), int64(l.words), 10)
	m = strconv.AppendInt(append(m, "; byte="...), int64(w.decisiveByte), 10)
	m = strconv.AppendInt(append(m, "; length="...), int64(l.decisive.length), 10)
	m = append(m, "\nX-Crumb-Confounder: "...)
	m = append(m, confounderNames[l.confounder]...)
	m = append(m, "\nX-Crumb-Voice: "...)
	m = append(m, voiceNames[l.voice]...)
	w.message = append(m, "\nMIME-Version: 1.0\n"...)
}

// third says in which third of the customer's words the decisive sentence begins.
func (l *letter) third() string {
	switch {
	case 3*l.wordAt < l.words:
		return "early"
	case 3*l.wordAt < 2*l.words:
		return "middle"
	default:
		return "late"
	}
}

func appendZone(dst []byte, offset time.Duration) []byte {
	sign, hours := byte('+'), int(offset/time.Hour)
	if hours < 0 {
		sign, hours = '-', -hours
	}
	return append(dst, sign, byte('0'+hours/10), byte('0'+hours%10), '0', '0')
}

func (w *mailWriter) appendName(dst []byte, p person) []byte {
	w.encoded = append(append(append(w.encoded[:0], p.given...), ' '), p.family...)
	return w.appendWords(dst, w.encoded)
}

// appendWords appends header text, as RFC 2047 encoded words where it is not ASCII.
func (w *mailWriter) appendWords(dst, text []byte) []byte {
	if isASCII(text) {
		return append(dst, text...)
	}
	b64 := w.chance(.4)
	for first := true; len(text) > 0; first = false {
		// 36 bytes make at most 36*3 of "Q", so a word of "Q" takes 18.
		n := min(len(text), 18)
		if b64 {
			n = min(len(text), 36)
		}
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		if !first {
			dst = append(dst, "\n "...)
		}
		if b64 {
			dst = append(dst, "=?UTF-8?B?"...)
			dst = base64.StdEncoding.AppendEncode(dst, text[:n])
		} else {
			dst = append(dst, "=?utf-8?Q?"...)
			dst = appendQ(dst, text[:n])
		}
		dst = append(dst, "?="...)
		text = text[n:]
	}
	return dst
}

func isASCII(b []byte) bool {
	for _, x := range b {
		if x >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
