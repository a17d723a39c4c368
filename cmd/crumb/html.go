package main

import (
	"bytes"
	"strings"
)

// The heads of three mail programs. The style blocks carry words a careless reader
// would take for the customer's.
var htmlHeads = [dialects]string{
	webmail: `<div dir="ltr">`,
	desktop: "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=%\">\n" +
		"<style><!--\n/* Font Definitions */\n@font-face {font-family:Calibri;}\n" +
		"p.MsoNormal, li.MsoNormal {margin:0cm; font-size:11.0pt; font-family:\"Calibri\",sans-serif;}\n" +
		"a:link {color:#0563C1; text-decoration:underline;}\n--></style></head>\n" +
		"<body lang=\"EN-GB\"><div class=\"WordSection1\">\n",
	mobile: "<html><head><style>body { order: 1; float: none; } .free { content: \"late\"; }</style></head>" +
		"<body dir=\"auto\">",
}

var htmlFeet = [dialects]string{
	webmail: "</div>\n",
	desktop: "</div></body></html>\n",
	mobile:  "</body></html>\n",
}

// writeHTML makes the HTML form of the letter.
func (w *mailWriter) writeHTML(l *letter) {
	w.html = w.html[:0]
	head, tail, hasCharset := strings.Cut(htmlHeads[w.dialect], "%")
	w.html = append(w.html, head...)
	if hasCharset {
		w.html = append(w.html, charsetNames[w.charset]...)
		w.html = append(w.html, tail...)
	}
	w.htmlParagraphs(l.body)
	if len(l.quote) > 0 {
		w.htmlQuote(l)
	}
	w.html = append(w.html, htmlFeet[w.dialect]...)
}

// htmlParagraphs writes text as the dialect's paragraphs.
func (w *mailWriter) htmlParagraphs(text []byte) {
	for len(text) > 0 {
		block, rest, _ := bytes.Cut(text, []byte("\n\n"))
		text = rest
		switch w.dialect {
		case desktop:
			w.html = append(w.html, `<p class="MsoNormal">`...)
			w.htmlLines(block)
			w.html = append(w.html, "</p>\n<p class=\"MsoNormal\">&nbsp;</p>\n"...)
		case webmail:
			w.html = append(w.html, "<div>"...)
			w.htmlLines(block)
			w.html = append(w.html, "</div><div><br></div>"...)
		default:
			w.htmlLines(block)
			w.html = append(w.html, "<br><br>"...)
		}
	}
}

func (w *mailWriter) htmlLines(block []byte) {
	kept := 0 // block[:kept] is written
	for i, x := range block {
		var escaped string
		switch x {
		case '\n':
			escaped = "<br>\n"
		case '&':
			escaped = "&amp;"
		case '<':
			escaped = "&lt;"
		case '>':
			escaped = "&gt;"
		default:
			continue
		}
		w.html = append(append(w.html, block[kept:i]...), escaped...)
		kept = i + 1
	}
	w.html = append(w.html, block[kept:]...)
}

func (w *mailWriter) htmlQuote(l *letter) {
	switch w.dialect {
	case desktop:
		w.html = append(w.html, "<div style=\"border:none;border-top:solid #E1E1E1 1.0pt\"><p class=\"MsoNormal\">"+
			"<b>From:</b> Crumb &lt;"+shopAddress+"&gt;<br><b>Sent:</b> "...)
		w.html = l.answered().AppendFormat(w.html, "Monday, 2 January 2006 15:04")
		w.html = append(w.html, "<br><b>Subject:</b> "...)
		w.htmlLines(l.subject)
		w.html = append(w.html, "</p></div>\n"...)
		w.htmlParagraphs(l.quote)
	case webmail:
		w.html = append(w.html, "<div class=\"gmail_quote\"><div dir=\"ltr\" class=\"gmail_attr\">"...)
		w.quoted = w.attribution(w.quoted[:0], l)
		w.htmlLines(w.quoted)
		w.html = append(w.html, "<br></div><blockquote class=\"gmail_quote\">"...)
		w.htmlParagraphs(l.quote)
		w.html = append(w.html, "</blockquote></div>"...)
	default:
		w.html = append(w.html, "<blockquote type=\"cite\">"...)
		w.quoted = w.attribution(w.quoted[:0], l)
		w.htmlLines(bytes.TrimRight(w.quoted, "\n"))
		w.html = append(w.html, "<br><br>"...)
		w.htmlParagraphs(l.quote)
		w.html = append(w.html, "</blockquote>"...)
	}
}
