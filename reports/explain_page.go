package reports

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"misroute/reports/chart"
	"misroute/reports/table"
)

//go:embed explain.css
var explainStyle string

// HTML draws the report as one page that asks the network for nothing. The text of the message is on
// it only with text; positions and token counts are there always.
func (x *Explain) HTML(out io.Writer) error {
	eyebrow := "Message " + x.e.MessageID
	for _, s := range []string{x.e.Week, "router " + x.e.Router.Name, x.capName() + ", " + x.e.Strategy} {
		if s != "" {
			eyebrow += " · " + s
		}
	}
	p := &page{
		Title: "Why one message went where it went", Style: explainStyle, Eyebrow: eyebrow, Lead: x.lead, Rest: x.rest, Fine: x.fine,
		Lede: x.Findings, Doubt: x.Doubt, Facts: x.explainFacts(),
	}
	p.Sections = []section{x.messageSection(), x.scoreSection(), x.depthSection()}
	if len(x.Sentences) > 0 {
		p.Sections = append(p.Sections, section{ID: "sentences", Nav: "Sentences", Heading: x.sentenceHeading(), Parts: []part{{
			Table: x.sentenceTable(x.o.WithText).Markup(), Class: "sentences",
			Notes: []string{fmt.Sprintf("Drop: what the margin of %s loses, in logits, when the sentence is left out of the whole message. From cap: tokens past the cap at which it starts, negative before it.", x.Target)},
		}}})
	}
	if x.Words != nil && len(x.Words.Words) > 0 {
		p.Sections = append(p.Sections, section{ID: "words", Nav: "Words", Heading: "What words said for " + x.Words.For, Parts: []part{{
			Table: x.shareTable(x.o.WithText, 40).Markup(), Notes: []string{x.sayShares()},
		}}})
	}
	if x.Attention != nil {
		p.Sections = append(p.Sections, x.attentionSection())
	}
	return p.write(out)
}

// lostSpans are the lost ranges for a chart: a tail that was lost ends the picture, although a special
// token that every reading has stands behind it.
func (x *Explain) lostSpans() []chart.Span {
	var list []chart.Span
	first, last := x.textEnds()
	for _, r := range x.lost {
		s := chart.Span{From: int(r.From), To: int(r.To)}
		if s.From == first {
			s.From = 0
		}
		if s.To == last {
			s.To = x.Tokens.Total
		}
		list = append(list, s)
	}
	return list
}

func (x *Explain) messageSection() section {
	s := section{ID: "message", Nav: "Message", Heading: "The message, and what the router read of it"}
	strip := &chart.Strip{Title: x.sayRead(), Tokens: x.Tokens.Total, Lost: x.lostSpans(), CutLabel: x.cutLabel()}
	for _, z := range x.Tokens.Zones {
		strip.Zones = append(strip.Zones, chart.Zone{Span: chart.Span{From: z.From, To: z.To}, Name: z.Zone})
	}
	key := []keyEntry{{"read", "read"}, {"unread", "not read"}}
	if d := x.decisive(); d != nil {
		strip.Decisive = &chart.Span{From: d.From, To: d.To}
		key = append(key, keyEntry{"decides", "the sentence that decides"})
	}
	s.Parts = append(s.Parts, part{Figure: strip.Markup(), Key: key, Caption: x.sayRead()})
	if x.o.WithText {
		s.Parts = append(s.Parts, part{Table: x.mailMarkup(), Class: "mail"})
	}
	s.Parts = append(s.Parts, part{Table: x.zoneTable().Markup()})
	if !x.o.WithText {
		s.Parts = append(s.Parts, part{Notes: []string{"The text is left out; --with-text writes it into the page."}})
	}
	return s
}

// sayRead is the strip in words.
func (x *Explain) sayRead() string {
	s := fmt.Sprintf("%s, %s read", plural(x.Tokens.Total, "token", "tokens"), count(x.Tokens.Kept))
	if d := x.decisive(); d != nil {
		s += fmt.Sprintf("; the sentence that decides: tokens %s, %s", span(d.From, d.To), x.place(d))
	}
	return s + "."
}

// longPassage is how many bytes of one passage a page shows; beyond it the middle is skipped.
const longPassage = 6000

// mailMarkup draws the text with the cut in it.
func (x *Explain) mailMarkup() template.HTML {
	var b strings.Builder
	zone, lost := "", false
	for _, p := range x.passages {
		if p.lost != lost {
			fmt.Fprintf(&b, `<span class="cutmark">%s</span>`, html.EscapeString(x.cutWords(p)))
			lost = p.lost
		}
		if p.zone != zone {
			fmt.Fprintf(&b, `<span class="zone">%s</span>`, html.EscapeString(zoneName(p.zone)))
			zone = p.zone
		}
		class := "z-" + p.zone
		if p.lost {
			class += " gone"
		}
		tag := "span"
		if p.decisive {
			tag = "mark"
		}
		text := strings.Trim(string(x.e.Text[p.from:p.to]), "\r\n")
		tail := ""
		if strings.HasSuffix(string(x.e.Text[p.from:p.to]), "\n") {
			tail = "\n"
		}
		fmt.Fprintf(&b, `<%s class="%s">%s</%s>%s`, tag, html.EscapeString(class), x.passageMarkup(text, p), tag, tail)
	}
	return template.HTML(b.String())
}

func (x *Explain) passageMarkup(text string, p passage) string {
	if len(text) <= longPassage {
		return html.EscapeString(cleanLines(text))
	}
	head, tail := headOf(text, longPassage/2), tailOf(text, longPassage/2)
	skipped := x.e.tokensIn(p.from+len(head), p.to-len(tail))
	return html.EscapeString(cleanLines(head)) + fmt.Sprintf(` <span class="skip">[ … %s … ]</span> `, plural(skipped, "token", "tokens")) + html.EscapeString(cleanLines(tail))
}

// headOf and tailOf are at most n bytes of a text, ending between words where there are any.
func headOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if at := strings.LastIndexAny(s[:n], " \n"); at > n/2 {
		n = at
	}
	return s[:n]
}

func tailOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	if at := strings.IndexAny(s[from:], " \n"); at >= 0 && at < n/2 {
		from += at + 1
	}
	return s[from:]
}

// cleanLines is table.Clean that keeps line ends, and at most one empty line in a row.
func cleanLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	kept := lines[:0]
	blank := 0
	for i, l := range lines {
		if l = table.Clean(l); i+1 < len(lines) {
			l = strings.TrimRight(l, " ")
		}
		if strings.TrimSpace(l) == "" && i+1 < len(lines) {
			blank++
		} else {
			blank = 0
		}
		if blank < 2 {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// cutWords is what the line between read and lost says.
func (x *Explain) cutWords(p passage) string {
	if !p.lost {
		return "read again from here"
	}
	n := 0
	for _, q := range x.passages {
		if q.lost && q.from >= p.from {
			n += q.tokens
		} else if q.from > p.from {
			break
		}
	}
	return fmt.Sprintf("%s: the next %s not read", x.cutLabel(), plural(n, "token is", "tokens are"))
}

func (x *Explain) scoreSection() section {
	s := section{ID: "scores", Nav: "Scores", Heading: x.scoreHeading()}
	if len(x.Windows) > 1 {
		lines := &chart.ScoreLines{
			Title: "Score by window, each read alone", XName: "tokens · windows of " + count(x.Windows[0].To-x.Windows[0].From),
			Tokens: x.Tokens.Total, Lost: x.lostSpans(), CutLabel: x.cutLabel(), Series: x.windowSeries(),
		}
		name := x.Target + " (goes there when read whole)"
		if x.TargetIsLabel {
			name = x.Target + " (label)"
		}
		key := []keyEntry{{"good", name}}
		if len(lines.Series) > 1 {
			key = append(key, keyEntry{"miss", x.AtCap.Prediction + " (prediction)"})
		}
		s.Parts = append(s.Parts, part{Figure: lines.Markup(), Key: key, Caption: "Score of a queue in each window of the message, read alone."})
	}
	s.Parts = append(s.Parts, part{Table: x.scoreTable().Markup()})
	if len(x.Windows) > 1 {
		s.Parts = append(s.Parts, part{Heading: "Window by window", Table: x.windowTable().Markup()})
	}
	return s
}

func (x *Explain) scoreHeading() string {
	switch {
	case !x.cut():
		return fmt.Sprintf("%s scores %s", x.AtCap.Prediction, decimals(x.AtCap.Score, 2))
	case x.AtCap.Prediction == x.Whole.Prediction:
		return fmt.Sprintf("%s scores %s at the cap and %s whole", x.AtCap.Prediction, decimals(x.AtCap.Score, 2), decimals(x.Whole.Score, 2))
	}
	return fmt.Sprintf("%s wins at the cap with %s, %s whole with %s", x.AtCap.Prediction, decimals(x.AtCap.Score, 2), x.Whole.Prediction, decimals(x.Whole.Score, 2))
}

// windowSeries are the scores of the target and, where that is another queue, of the prediction.
func (x *Explain) windowSeries() []chart.Series {
	target, predicted := chart.Series{Class: "lt"}, chart.Series{Class: "lp"}
	at := 0
	for i, q := range x.e.Queues {
		if q == x.AtCap.Prediction {
			at = i
		}
	}
	for _, w := range x.Windows {
		mid := float64(w.From+w.To) / 2
		target.X, target.Y = append(target.X, mid), append(target.Y, float64(w.TargetScore))
		predicted.X, predicted.Y = append(predicted.X, mid), append(predicted.Y, float64(w.Scores[at]))
	}
	if x.AtCap.Prediction == x.Target {
		return []chart.Series{target}
	}
	return []chart.Series{predicted, target}
}

func (x *Explain) depthSection() section {
	return section{ID: "depth", Nav: "Decision depth", Heading: x.depthHeading(), Parts: []part{{
		Table: x.depthTable().Markup(), Notes: []string{x.depthNote()},
	}}}
}

func (x *Explain) attentionSection() section {
	s := section{ID: "attention", Nav: "Attention", Heading: x.attentionHeading()}
	for i := range x.Attention.Maps {
		m := &x.Attention.Maps[i]
		title := strings.ToUpper(m.name()[:1]) + m.name()[1:]
		if i == 1 {
			title += ", the most focused one"
		}
		s.Parts = append(s.Parts, part{Heading: title, Figure: x.heat(m).Markup(), Caption: x.sayMap(m)})
		first := &chart.Strip{Title: "What " + x.firstName() + " looked at, token by token", Tokens: x.Tokens.Total, Lost: x.lostSpans(), CutLabel: x.cutLabel(), Values: x.firstValues(m)}
		s.Parts = append(s.Parts, part{Figure: first.Markup(), Caption: fmt.Sprintf("The row of %s over all tokens: %s of it falls outside its ten strongest.", x.firstName(), percent(m.FirstOutside))},
			part{Table: x.firstTable(m, x.o.WithText, 10).Markup()})
	}
	s.Parts = append(s.Parts, part{Heading: "Layer by layer", Table: x.outsideTable().Markup(), Notes: []string{x.sayNoise(), notProof}})
	return s
}

// firstName is the first token's piece: [CLS] or <s>, which most routers decide from.
func (x *Explain) firstName() string {
	if t := x.e.Tokens[x.e.Attention.Positions[0]]; t.Special {
		return t.Piece
	}
	return "the first token"
}

// firstValues spreads a pass's first row over the message.
func (x *Explain) firstValues(m *HeatMap) []float64 {
	values := make([]float64, x.Tokens.Total)
	for i, v := range m.First {
		values[x.e.Attention.Positions[i]] = float64(v)
	}
	return values
}

func (x *Explain) sayMap(m *HeatMap) string {
	s := fmt.Sprintf("Row: what this word looked at; darker is more (square root), the darkest is %s.", percent(Number(m.top())))
	if words := x.passWords(); words > len(m.Words) {
		s += fmt.Sprintf(" Drawn: the %s that got most of %s words; %s of the drawn rows' attention goes to them.", plural(len(m.Words), "word", "words"), count(words), percent(m.Drawn))
	}
	return s + fmt.Sprintf(" Outside each row's ten strongest tokens: %s.", percent(m.Outside))
}

func (x *Explain) passWords() int { return len(x.e.wordsOf(x.e.Attention.Positions)) }

// top is the largest weight between drawn words.
func (m *HeatMap) top() float64 {
	top := 0.0
	for _, row := range m.Grid {
		for _, v := range row {
			top = max(top, float64(v))
		}
	}
	return top
}

// heat is a map's picture.
func (x *Explain) heat(m *HeatMap) *chart.Heat {
	return &chart.Heat{
		Title: "Attention weights, " + m.name() + ": row i is what word i looked at", Top: max(m.top(), 1e-12),
		Desk: x.grid(m, m.pick(chart.MaxHeatDesk), 10), Phone: x.grid(m, m.pick(chart.MaxHeatPhone), 7),
	}
}

func (x *Explain) grid(m *HeatMap, pick []int, width int) chart.Grid {
	var g chart.Grid
	for _, i := range pick {
		g.Labels = append(g.Labels, table.Fit(x.wordLabel(x.e.Attention.Positions, m.Words[i].at, x.o.WithText), width))
		row := make([]float64, len(pick))
		for k, j := range pick {
			row[k] = float64(m.Grid[i][j])
		}
		g.Weights = append(g.Weights, row)
		most := 0.0
		for _, v := range m.Grid[i] {
			most = max(most, float64(v))
		}
		g.Most = append(g.Most, fmt.Sprintf("%.0f %%", 100*most))
	}
	return g
}
