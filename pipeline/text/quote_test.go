package text

import (
	"slices"
	"strings"
	"testing"

	"misroute/pipeline/mail"
)

// Replies as mail programs write them in seven languages, and texts that only look like replies.
// The kinds are those that quote-stripping libraries test; the texts are our own.
var replies = []struct {
	name, in, want string
}{
	{"en, Gmail", "The cake was late.\n\nOn Mon, Mar 2, 2026 at 10:00 AM Crumb Support <help@example.com>\nwrote:\n\n> How was it?\n> Regards\n", "The cake was late."},
	{"en, one line", "Yes please.\n\nOn 2 Mar 2026, at 10:00, Crumb wrote:\n\n> Shall we refund?\n", "Yes please."},
	{"de", "Der Kuchen kam zu spät.\n\nAm Mo., 2. März 2026 um 10:00 Uhr schrieb Crumb Support <\nhelp@example.com>:\n\n> Wie war er?\n", "Der Kuchen kam zu spät."},
	{"de, Outlook", "Bitte erstatten.\n\n-----Ursprüngliche Nachricht-----\nVon: Crumb\nGesendet: Montag\nBetreff: Kuchen\n\nWie war er?\n", "Bitte erstatten."},
	{"fr", "Le gâteau est arrivé en retard.\n\nLe lun. 2 mars 2026 à 10:00, Crumb Support <help@example.com> a écrit :\n\n> Comment était-il ?\n", "Le gâteau est arrivé en retard."},
	{"es", "La tarta llegó tarde.\n\nEl lun, 2 mar 2026 a las 10:00, Crumb Support (<help@example.com>)\nescribió:\n\n> ¿Qué tal?\n", "La tarta llegó tarde."},
	{"it", "La torta è arrivata tardi.\n\nIl giorno lun 2 mar 2026 alle ore 10:00 Crumb Support <help@example.com> ha scritto:\n\n> Com'era?\n", "La torta è arrivata tardi."},
	{"pt", "O bolo chegou tarde.\n\nEm seg., 2 de mar. de 2026 às 10:00, Crumb Support <help@example.com> escreveu:\n\n> Como estava?\n", "O bolo chegou tarde."},
	{"nl", "De taart kwam te laat.\n\nOp ma 2 mrt 2026 om 10:00 schreef Crumb Support <help@example.com>:\n\n> Hoe was hij?\n", "De taart kwam te laat."},
	{"Outlook header block", "Please refund me.\n\nFrom: Crumb [mailto:help@example.com]\nSent: Monday, 2 March 2026 10:00\nTo: Jane\nSubject: Cake\n\nHow was it?\n", "Please refund me."},
	{"Outlook header block in bold", "Please refund me.\n\n*From:* Crumb\n*Sent:* Monday\n*To:* Jane\n*Subject:* Cake\n\nHow was it?\n", "Please refund me."},
	{"Outlook header block, fr", "Merci de rembourser.\n\nDe : Crumb\nEnvoyé : lundi\nÀ : Jane\nObjet : Gâteau\n\nComment ?\n", "Merci de rembourser."},
	{"original message", "No thanks.\n\n-----Original Message-----\nFrom: Crumb\n\nMore cake?\n", "No thanks."},
	{"a ruler and a header block", "No thanks.\n\n________________________________\nFrom: Crumb\nSent: Monday\nTo: Jane\n\nMore cake?\n", "No thanks."},
	{"one word left, quote certain", "Thanks\n\nOn Mon, Mar 2, 2026 at 10:00 AM Crumb <help@example.com> wrote:\n\n> one two three four five six seven eight nine ten eleven\n", "Thanks"},
	{"reply below the quote", "On Mon, Mar 2, 2026 at 10:00 AM Crumb <help@example.com> wrote:\n\n> How was it?\n> Tell us.\n\nIt was late.\n", "It was late."},
	{"replies between the quotes", "On Mon, Mar 2, 2026 at 10:00 AM Crumb <help@example.com> wrote:\n> Was it late?\n\nYes, an hour.\n\n> Was it good?\n\nVery good.\n", "Yes, an hour.\n\nVery good."},
	{"newsgroup", "In article <1@example.com>, jane@example.com (Jane) writes:\n> Cake is bread.\n\nIt is not bread.\n", "It is not bread."},
	{"another quote sign", "In article <1@example.com>, jane@example.com writes:\n# Cake is bread.\n# So there.\n\nIt is not bread.\n", "It is not bread."},
	{"a name alone", "jane@example.com (Jane Doe) writes:\n>Cake is bread.\n\nIt is not bread.\n", "It is not bread."},
	{"no attribution: the sender's own list", "I ordered:\n> one cake\n> two pies\nWhere are they?\n", "I ordered:\n> one cake\n> two pies\nWhere are they?"},
	{"On at a line's start is text", "On your host I can order:\n\n     order 127.0.0.1 52698\n\nThis fails. If it\nworked, fine.\n\nOn 9 Jan 2014, at 2:47, Jane wrote:\n\n> I am having an issue\n", "On your host I can order:\n\n     order 127.0.0.1 52698\n\nThis fails. If it\nworked, fine."},
	{"wrote without a quote is text", "On Monday I wrote:\nmy cake is late. Nobody answered.\n", "On Monday I wrote:\nmy cake is late. Nobody answered."},
	{"a forwarded message is what the sender wants read", "See below.\n\n---------- Forwarded message ---------\nFrom: Jane <jane@example.com>\nDate: Mon, 2 Mar 2026\nSubject: Cake\nTo: Crumb\n\nThe cake is late.\n", "See below.\n\n---------- Forwarded message ---------\nFrom: Jane <jane@example.com>\nDate: Mon, 2 Mar 2026\nSubject: Cake\nTo: Crumb\n\nThe cake is late."},
	{"signature", "The cake is late.\n-- \nJane Doe\nExample Ltd\n", "The cake is late."},
	{"signature above a quote", "The cake is late.\n-- \nJane Doe\n\nOn Mon, Mar 2, 2026 at 10:00 AM Crumb <help@example.com> wrote:\n> Hi\n", "The cake is late."},
	{"signature with a telephone", "The cake is late.\n\nKind regards,\nJane Doe\nTel: +49 30 1234567\nExample Ltd\n", "The cake is late."},
	{"signature with a telephone, no formula", "The cake is late.\n\nJane Doe\n+49 30 1234567\n", "The cake is late."},
	{"a telephone number to call is text", "The cake is late.\n\nPlease call me at +49 30 1234567.\n", "The cake is late.\n\nPlease call me at +49 30 1234567."},
	{"an order number is text", "The cake is late, order number:\n\n4711 0815 22\n", "The cake is late, order number:\n\n4711 0815 22"},
	{"phones", "Too late.\n\nSent from my iPhone\n", "Too late."},
	{"phones, de", "Zu spät.\n\nVon meinem iPhone gesendet\n", "Zu spät."},
	{"phones, fr", "Trop tard.\n\nEnvoyé de mon iPhone\n", "Trop tard."},
	{"phones, es", "Tarde.\n\nEnviado desde mi iPhone\n", "Tarde."},
	{"phones, it", "Tardi.\n\nInviato da iPhone\n", "Tardi."},
	{"phones, pt", "Tarde.\n\nEnviado do meu iPhone\n", "Tarde."},
	{"phones, nl", "Te laat.\n\nVerstuurd vanaf mijn iPhone\n", "Te laat."},
	{"a name as signature", "It was late.\n\n-Jane\n", "It was late."},
	{"dashes in a long text are no signature", "List:\n-- \n" + strings.Repeat("a line of text that goes on\n", 60), "List:\n-- \n" + strings.TrimSpace(strings.Repeat("a line of text that goes on\n", 60))},
}

func TestReplies(t *testing.T) {
	for _, c := range replies {
		got, rej := extract([]byte("Subject: s\nContent-Type: text/plain; charset=utf-8\n\n"+c.in), Options{})
		if rej != nil || got.Body != c.want {
			t.Errorf("%s\n got  %q\n want %q (%v)", c.name, got.Body, c.want, rej)
		}
		kept, _ := extract([]byte("Subject: s\nContent-Type: text/plain; charset=utf-8\n\n"+c.in), Options{Quotes: QuotesKeep})
		if kept.Body != strings.TrimRight(c.in, "\n") {
			t.Errorf("%s kept: %q", c.name, kept.Body)
		}
		at := 0
		for _, s := range kept.Spans {
			if s.From != at || s.To <= s.From {
				t.Errorf("%s: spans %v", c.name, kept.Spans)
			}
			at = s.To
		}
		if at != len(kept.Body) {
			t.Errorf("%s: spans end at %d of %d", c.name, at, len(kept.Body))
		}
	}
}

// Stripping never leaves nothing.
func TestNeverEmpty(t *testing.T) {
	for _, in := range []string{
		"-- \nJane Doe\nExample Ltd\n",
		"On Mon, Mar 2, 2026 at 10:00 AM Crumb <help@example.com> wrote:\n> only a quote\n",
		"-----Original Message-----\nFrom: Crumb\n\nMore cake?\n",
		"Sent from my iPhone\n",
	} {
		got, rej := extract([]byte("Subject: s\n\n"+in), Options{})
		if rej != nil || got.Body != strings.TrimRight(in, "\n") || !slices.Contains(got.Warnings, mail.CodeQuoteReverted) || got.QuoteCharsDropped != 0 {
			t.Errorf("%q became %q, warnings %v", in, got.Body, got.Warnings)
		}
	}
}

// Under two words left of more than ten: the whole is kept, unless the quote's signs leave no doubt.
// "Thanks" above a quote is a reply; "Thanks" above a long signature may be a rule gone wrong.
func TestReverted(t *testing.T) {
	eleven := "one two three four five six seven eight nine ten eleven\n"
	at := "On Mon, Mar 2, 2026 at 10:00 AM Crumb <help@example.com> wrote:\n"
	for _, c := range []struct {
		name, in, want string // want is empty where the whole is kept
	}{
		{"a word and a signature", "Thanks\n-- \n" + eleven, ""},
		{"a word and text without quote signs", "Thanks\n\n" + at + "\n" + eleven, ""},
		{"two words and a signature", "Thanks Jane\n-- \n" + eleven, "Thanks Jane"},
		{"a word of ten in all", "Thanks\n-- \n" + strings.TrimSuffix(eleven, " ten eleven\n"), "Thanks"},
		{"a word and a quote", "Thanks\n\n" + at + "> " + eleven, "Thanks"},
		{"a word and a header block", "Thanks\n\nFrom: Crumb\nSent: Monday\nTo: Jane\nSubject: Cake\n\n" + eleven, "Thanks"},
	} {
		got, rej := extract([]byte("Subject: s\n\n"+c.in), Options{})
		reverted := c.want == ""
		if reverted {
			c.want = strings.TrimRight(c.in, "\n")
		}
		if rej != nil || got.Body != c.want || slices.Contains(got.Warnings, mail.CodeQuoteReverted) != reverted || (got.QuoteCharsDropped == 0) != reverted {
			t.Errorf("%s: %q, want %q, warnings %v", c.name, got.Body, c.want, got.Warnings)
		}
	}
}

// Quotes in HTML, by the marks of the programs that made them.
func TestHTMLQuotes(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"Gmail", `<div>It was late.</div><div class="gmail_quote"><div class="gmail_attr">On Mon wrote:</div><blockquote>How was <div>it</div>?</blockquote></div>`, "It was late."},
		{"Thunderbird", `<p>It was late.</p><div class="moz-cite-prefix">Am 2.3. schrieb Crumb:</div><blockquote type="cite">How?</blockquote><p>Bye now</p>`, "It was late.\n\nBye now"},
		{"Outlook", `<div>It was late.</div><hr><div id="divRplyFwdMsg"><b>From:</b> Crumb</div><div>How was it?</div>`, "It was late."},
		{"a blockquote that only indents", `<blockquote><p>It was late and cold.</p></blockquote>`, "It was late and cold."},
		{"a forwarded message", `<div>See</div><div class="gmail_quote">---------- Forwarded message ---------<br>From: Jane<br>It was late.</div>`, "See\n\n---------- Forwarded message ---------\nFrom: Jane\nIt was late."},
	} {
		got, _ := extract([]byte("Subject: s\nContent-Type: text/html\n\n"+c.in), Options{})
		if squeeze(got.Body) != squeeze(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got.Body, c.want)
		}
	}
}
