package mail

import (
	"bytes"
	"strings"
)

// Identify reads who a message is and which queue it belongs to. It looks at the header alone, or
// at the columns; it is cheap and safe for many goroutines. A message with a Reject has whatever
// could be read.
func (o *Labels) Identify(m *Message) Identity {
	var id Identity
	c := labelCandidates{folder: m.Folder}
	if m.Columns != nil {
		o.identifyColumns(m, &id, &c)
	} else {
		o.identifyHeader(m, &id, &c)
	}
	if id.MessageID == "" && m.Columns == nil {
		id.Warnings = append(id.Warnings, CodeNoMessageID)
	}
	if !id.HasDate {
		id.Warnings = append(id.Warnings, CodeNoDate)
	}
	if id.ThreadKey == "" {
		id.ThreadKey = bareID(id.MessageID)
	}
	o.choose(&id, &c)
	return id
}

// labelCandidates is what each source of labels says.
type labelCandidates struct {
	header, column, folder string
	gmail                  []string
}

func (o *Labels) choose(id *Identity, c *labelCandidates) {
	from := o.From
	if from == nil {
		from = []string{LabelFile, LabelHeader, LabelGmail, LabelColumn, LabelFolder}
	}
	for _, source := range from {
		label := ""
		switch source {
		case LabelFile:
			label = o.File.Lookup(id.MessageID)
		case LabelHeader:
			label = c.header
		case LabelGmail:
			label = gmailQueue(c.gmail)
			if label != "" && gmailQueue(without(c.gmail, label)) != "" {
				id.Warnings = append(id.Warnings, CodeSeveralLabels)
			}
		case LabelColumn:
			label = c.column
		case LabelFolder:
			label = c.folder
		}
		if label != "" {
			id.Label, id.LabelSource = label, source
			return
		}
	}
}

func (o *Labels) identifyColumns(m *Message, id *Identity, c *labelCandidates) {
	f := m.Columns
	id.MessageID, id.Subject, id.Routed, id.ThreadKey = f.ID, f.Subject, f.Routed, f.Thread
	c.column = f.Label
	if f.Date != "" {
		o.date(id, f.Date)
	}
}

// date sets the date from s if it is one, with its warning.
func (o *Labels) date(id *Identity, s string) {
	t, zoned, ok := parseDate(s, o.Zone)
	if !ok {
		return
	}
	id.Date, id.HasDate = t, true
	if !zoned {
		id.Warnings = append(id.Warnings, CodeDateNoZone)
	}
}

func (o *Labels) identifyHeader(m *Message, id *Identity, c *labelCandidates) {
	labelHeader := o.Header
	if labelHeader == "" {
		labelHeader = "X-Queue"
	}
	var received, references, reply, subject, contentType []byte
	h := NewHeaderScanner(m.Raw)
	for {
		f, ok := h.Next()
		if !ok {
			break
		}
		// The switch over lengths keeps the ten fields nobody asked for cheap.
		switch {
		case f.Is("Message-ID") && id.MessageID == "":
			id.MessageID = messageID(f.Value)
		case f.Is("Date") && !id.HasDate:
			o.date(id, string(Unfold(f.Value)))
		case f.Is("Subject") && len(subject) == 0:
			subject = f.Value
		case f.Is("Content-Type") && contentType == nil:
			contentType = f.Value
		case f.Is("Received") && received == nil:
			received = f.Value
		case f.Is("References") && references == nil:
			references = f.Value
		case f.Is("In-Reply-To") && reply == nil:
			reply = f.Value
		case f.Is("X-Gmail-Labels"):
			c.gmail = gmailLabels(DecodeHeader(f.Value))
		}
		if f.Is(labelHeader) && c.header == "" {
			c.header = strings.TrimSpace(DecodeHeader(f.Value))
		}
		if o.RoutedHeader != "" && f.Is(o.RoutedHeader) && id.Routed == "" {
			id.Routed = strings.TrimSpace(DecodeHeader(f.Value))
		}
	}
	id.Subject = DecodeHeaderAs(subject, bodyCharset(subject, contentType))
	if id.ThreadKey = bareID(messageID(references)); id.ThreadKey == "" {
		id.ThreadKey = bareID(messageID(reply))
	}
	if !id.HasDate {
		o.fallbackDate(m, id, received)
	}
}

// bodyCharset is the charset that a message declares for its body, for a subject with raw bytes in
// it: software that writes them uses one charset for both.
func bodyCharset(subject, contentType []byte) string {
	if isASCII(subject) {
		return ""
	}
	_, after, ok := bytes.Cut(bytes.ToLower(contentType), []byte("charset="))
	if !ok {
		return ""
	}
	after = bytes.TrimLeft(after, "\"' ")
	if end := bytes.IndexAny(after, "\"'; \r\n"); end >= 0 {
		after = after[:end]
	}
	return string(after)
}

// fallbackDate takes the date from the mbox line, else from the first Received field. It never
// takes the present: a message without a date belongs to no week.
func (o *Labels) fallbackDate(m *Message, id *Identity, received []byte) {
	if _, rest, ok := strings.Cut(strings.TrimPrefix(m.FromLine, "From "), " "); ok {
		o.date(id, rest)
	}
	if i := bytes.LastIndexByte(received, ';'); i >= 0 && !id.HasDate {
		o.date(id, string(Unfold(received[i+1:])))
	}
	if id.HasDate {
		id.Warnings = append(id.Warnings, CodeDateGuessed)
	}
}

// messageID is the first <...> of a raw value, or all of it where software wrote no brackets.
func messageID(v []byte) string {
	v = Unfold(v)
	if open := bytes.IndexByte(v, '<'); open >= 0 {
		if end := bytes.IndexByte(v[open:], '>'); end > 1 {
			v = v[open : open+end+1]
		}
	}
	return string(bytes.ToValidUTF8(v, []byte("\uFFFD")))
}

// bareID is a message id as keys have it: without what stands around its brackets, and without
// them, as label files often write it.
func bareID(id string) string {
	id = strings.TrimSpace(id)
	if strings.IndexByte(id, '<') > 0 || strings.ContainsAny(id, "\r\n") || strings.IndexByte(id, '>') < len(id)-1 {
		id = messageID([]byte(id))
	}
	return strings.TrimSuffix(strings.TrimPrefix(id, "<"), ">")
}

// gmailLabels splits X-Gmail-Labels: commas between labels, quotes around labels with commas.
func gmailLabels(v string) []string {
	var out []string
	var cur strings.Builder
	quoted := false
	add := func() {
		if s := strings.TrimSpace(cur.String()); s != "" {
			out = append(out, s)
		}
		cur.Reset()
	}
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '\\' && quoted && i+1 < len(v):
			i++
			cur.WriteByte(v[i])
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			add()
		default:
			cur.WriteByte(c)
		}
	}
	add()
	return out
}

// gmailSystem are the labels that Gmail itself gives, in the languages of Takeout that write them
// translated.
var gmailSystem = func() map[string]bool {
	m := make(map[string]bool)
	for _, s := range strings.Split("inbox,sent,important,unread,opened,starred,archived,drafts,draft,spam,trash,chat,chats,muted,snoozed,scheduled,all mail,"+
		"posteingang,gesendet,wichtig,ungelesen,geöffnet,markiert,archiviert,entwürfe,papierkorb,"+
		"boîte de réception,messages envoyés,envoyés,non lus,ouvert,suivis,archivé,brouillons,corbeille,"+
		"recibidos,enviados,importante,importantes,no leído,no leídos,abierto,abiertos,destacados,archivados,borradores,papelera,"+
		"posta in arrivo,inviati,da leggere,aperti,speciali,archiviati,bozze,cestino,"+
		"caixa de entrada,não lidas,aberto,com estrela,arquivados,rascunhos,lixeira,"+
		"postvak in,verzonden,belangrijk,ongelezen,geopend,met ster,gearchiveerd,concepten,prullenbak", ",") {
		m[s] = true
	}
	return m
}()

// gmailQueue is the first label that a person made; empty when there is none.
func gmailQueue(labels []string) string {
	for _, l := range labels {
		low := strings.ToLower(l)
		if !gmailSystem[low] && !strings.HasPrefix(low, "category ") && !strings.HasPrefix(low, "^") && !strings.HasPrefix(low, "imap_") {
			return l
		}
	}
	return ""
}

func without(labels []string, label string) []string {
	var out []string
	for _, l := range labels {
		if l != label {
			out = append(out, l)
		}
	}
	return out
}
