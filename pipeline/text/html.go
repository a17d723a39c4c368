package text

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Marks that the HTML reader leaves around quoted blocks, for the zoner. No text of a message holds
// them: the reader drops control characters.
const (
	quoteOpen  = 0x01
	quoteClose = 0x02
)

// html appends the text of an HTML document: newline at blocks, space between cells, labels of
// links, no styles, scripts, comments or hidden elements; blocks that mail programs quote with are
// marked. It runs over tokens, not over a tree: real mail nests more elements than a tree parser
// allows.
func (e *Extractor) html(dst, src []byte) []byte {
	w := htmlWriter{out: dst, base: len(dst)}
	w.convert(src, 0)
	if w.quote.depth > 0 || w.rest {
		w.mark(quoteClose)
	}
	return w.out
}

type htmlWriter struct {
	out    []byte
	base   int
	space  bool // white space is owed before the next word
	breaks int  // line breaks owed before the next word
	pre    int
	quote  openTag // the outermost quoting element that is open
	rest   bool    // everything from here on is quoted
	hidden openTag // the hidden element being skipped
}

// openTag counts elements of one name, so that its end tag is found without a tree.
type openTag struct {
	name  atom.Atom
	depth int
}

func (w *htmlWriter) convert(src []byte, level int) {
	z := html.NewTokenizer(bytes.NewReader(src))
	z.SetMaxBuf(0)
	var skipText atom.Atom
	for {
		switch tt := z.Next(); tt {
		case html.ErrorToken:
			return
		case html.TextToken:
			switch {
			case skipText == atom.Noframes || skipText == atom.Noscript || skipText == atom.Noembed:
				if level < 2 && w.hidden.depth == 0 {
					w.convert(bytes.Clone(z.Raw()), level+1)
				}
			case skipText == 0 && w.hidden.depth == 0:
				w.text(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, attrs := z.TagName()
			tag := atom.Lookup(name)
			skipText = rawText(tag)
			w.start(z, tag, attrs, tt == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			skipText = 0
			w.end(atom.Lookup(name))
		}
	}
}

// rawText are elements whose content is no text of the message. noframes and its kin hold markup.
func rawText(tag atom.Atom) atom.Atom {
	switch tag {
	case atom.Script, atom.Style, atom.Title, atom.Iframe, atom.Noframes, atom.Noembed, atom.Noscript:
		return tag
	}
	return 0
}

// maxAttributes bounds what is looked at of a tag: no mail program says more of an element.
const maxAttributes = 100

func (w *htmlWriter) start(z *html.Tokenizer, tag atom.Atom, attrs, selfClosing bool) {
	if w.hidden.depth > 0 {
		if tag == w.hidden.name && !selfClosing {
			w.hidden.depth++
		}
		return
	}
	quoted := w.rest || w.quote.depth > 0
	if w.quote.depth > 0 && w.quote.name == tag && !selfClosing {
		w.quote.depth++
	}
	hidden, quote, rest := false, false, false
	for n := 0; attrs && n < maxAttributes; n++ {
		var key, val []byte
		key, val, attrs = z.TagAttr()
		hidden = hidden || hides(key, val)
		q, r := quotes(tag, key, val)
		quote, rest = quote || q, rest || r
	}
	w.breakFor(tag)
	switch {
	case isVoid(tag) || selfClosing && tag != atom.Div && tag != atom.P:
	case hidden:
		w.hidden = openTag{tag, 1}
	case tag == atom.Pre:
		w.pre++
	case quoted:
	case rest:
		w.rest = true
		w.mark(quoteOpen)
	case quote || tag == atom.Blockquote && w.afterColon():
		w.quote = openTag{tag, 1}
		w.mark(quoteOpen)
	}
}

func (w *htmlWriter) end(tag atom.Atom) {
	if w.hidden.depth > 0 {
		if tag == w.hidden.name {
			w.hidden.depth--
		}
		return
	}
	if tag == atom.Pre && w.pre > 0 {
		w.pre--
	}
	if w.quote.depth > 0 && tag == w.quote.name {
		if w.quote.depth--; w.quote.depth == 0 {
			w.mark(quoteClose)
		}
	}
	w.breakFor(tag)
}

// breakFor owes the white space that a tag stands for.
func (w *htmlWriter) breakFor(tag atom.Atom) {
	switch tag {
	case atom.Br:
		w.breaks++
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table, atom.Ul, atom.Ol, atom.Pre, atom.Blockquote, atom.Dl:
		w.breaks = max(w.breaks, 2)
	case atom.Div, atom.Tr, atom.Li, atom.Hr, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Dt, atom.Dd,
		atom.Center, atom.Form, atom.Body, atom.Tbody, atom.Thead, atom.Address, atom.Fieldset, atom.Main, atom.Nav, atom.Option, atom.Caption:
		w.breaks = max(w.breaks, 1)
	case atom.Td, atom.Th:
		w.space = true
	}
}

func isVoid(tag atom.Atom) bool {
	switch tag {
	case atom.Br, atom.Img, atom.Hr, atom.Input, atom.Meta, atom.Link, atom.Base, atom.Col, atom.Area, atom.Wbr, atom.Embed, atom.Param, atom.Source:
		return true
	}
	return false
}

// hides says whether an attribute makes its element invisible.
func hides(key, val []byte) bool {
	switch string(key) {
	case "hidden":
		return true
	case "style":
		v := bytes.ToLower(removeSpace(val))
		return bytes.Contains(v, []byte("display:none")) || bytes.Contains(v, []byte("visibility:hidden")) ||
			bytes.HasSuffix(v, []byte("font-size:0")) || bytes.Contains(v, []byte("font-size:0;")) || bytes.Contains(v, []byte("font-size:0px")) || bytes.Contains(v, []byte("mso-hide:all"))
	}
	return false
}

func removeSpace(v []byte) []byte {
	if bytes.IndexByte(v, ' ') < 0 {
		return v
	}
	return bytes.ReplaceAll(v, []byte(" "), nil)
}

// quotes says whether an attribute marks its element as a quoted reply, or as the head of one that
// goes on to the end of the message.
func quotes(tag atom.Atom, key, val []byte) (quote, rest bool) {
	switch string(key) {
	case "type":
		return tag == atom.Blockquote && bytes.EqualFold(val, []byte("cite")), false
	case "class", "id":
		v := string(bytes.ToLower(val))
		switch {
		case v == "divrplyfwdmsg", v == "appendonsend", v == "x_divrplyfwdmsg", v == "outlookmessageheader", v == "replysplit":
			return false, true
		}
		for _, name := range [...]string{"gmail_quote", "gmail_extra", "moz-cite-prefix", "yahoo_quoted", "yahooquotedcontent", "protonmail_quote", "zmail_extra", "tutanota_quote", "quoted-text", "mailquote"} {
			if bytes.Contains([]byte(v), []byte(name)) {
				return true, false
			}
		}
	case "cite":
		return tag == atom.Blockquote, false
	}
	return false, false
}

// afterColon says whether the text so far ends with a colon: what a plain blockquote quotes is
// introduced, what it only indents is not.
func (w *htmlWriter) afterColon() bool {
	t := bytes.TrimRight(w.out[w.base:], " \n")
	return len(t) > 0 && t[len(t)-1] == ':'
}

func (w *htmlWriter) mark(c byte) {
	if len(w.out) > w.base && w.out[len(w.out)-1] != '\n' {
		w.out = append(w.out, '\n')
	}
	w.out = append(w.out, c, '\n')
	w.space, w.breaks = false, 0
}

// text appends the words of t.
func (w *htmlWriter) text(t []byte) {
	for i := 0; i < len(t); {
		c := t[i]
		switch {
		case c == '\n' && w.pre > 0:
			w.breaks++
			i++
		case c == ' ' && w.pre > 0 && len(w.out) > w.base:
			w.pay()
			w.out = append(w.out, ' ')
			i++
		case c <= ' ' || c == 0x7f:
			w.space = true
			i++
		default:
			n := i + 1
			for n < len(t) && t[n] > ' ' && t[n] < 0x80 {
				n++
			}
			if c >= 0x80 {
				skip, blank := invisible(t[i:])
				if blank {
					w.space = true
				}
				if skip > 0 {
					i += skip
					continue
				}
			}
			w.pay()
			w.out = append(w.out, t[i:n]...)
			i = n
		}
	}
}

// pay writes the white space that is owed.
func (w *htmlWriter) pay() {
	if w.breaks > 0 {
		if len(w.out) > w.base {
			for range min(w.breaks, 2) {
				w.out = append(w.out, '\n')
			}
		}
	} else if w.space && len(w.out) > w.base && w.out[len(w.out)-1] != '\n' {
		w.out = append(w.out, ' ')
	}
	w.space, w.breaks = false, 0
}

// invisible returns the length of a character at the start of t that shows nothing, 0 for others;
// blank says that it shows as a space.
func invisible(t []byte) (n int, blank bool) {
	for _, c := range [...]struct {
		s     string
		blank bool
	}{{"\u00a0", true}, {"\u00ad", false}, {"\u034f", false}, {"\u200b", false}, {"\u2060", false}, {"\ufeff", false}, {"\u2007", true}, {"\u202f", true}} {
		if bytes.HasPrefix(t, []byte(c.s)) {
			return len(c.s), c.blank
		}
	}
	return 0, false
}

// metaCharset finds the charset that a document declares for itself in its first two kilobytes.
func metaCharset(b []byte) string {
	head := bytes.ToLower(b[:min(len(b), 2<<10)])
	for {
		i := bytes.Index(head, []byte("charset="))
		if i < 0 {
			return ""
		}
		head = head[i+len("charset="):]
		v := bytes.TrimLeft(head, "\"' ")
		n := bytes.IndexAny(v, "\"' />;\r\n")
		if n > 0 && n < 40 {
			return string(v[:n])
		}
	}
}
