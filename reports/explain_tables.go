package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"misroute/reports/chart"
	"misroute/reports/table"
)

// ends are the smallest and the largest value of a column, zero among them: the scale of its bars.
func ends(values []Number) (low, high float64) {
	for _, v := range values {
		if v.Defined() {
			low, high = math.Min(low, float64(v)), math.Max(high, float64(v))
		}
	}
	return low, high
}

// textBar is a signed bar in terminal columns: what is above zero grows to the right of a bar.
func textBar(v Number, low, high float64, width int) string {
	if !v.Defined() || high-low == 0 {
		return ""
	}
	zero := int(math.Round(-low / (high - low) * float64(width)))
	n := int(math.Round(math.Abs(float64(v)) / (high - low) * float64(width)))
	if n == 0 && v != 0 {
		n = 1
	}
	if v < 0 {
		n = min(n, zero)
		return strings.Repeat(" ", zero-n) + strings.Repeat("-", n) + "|"
	}
	return strings.Repeat(" ", zero) + "|" + strings.Repeat("#", min(n, width-zero))
}

// zoneTable says which parts of the message were read.
func (x *Explain) zoneTable() *table.Table {
	t := &table.Table{Caption: "Parts of the message", Columns: []table.Column{
		{Head: "part"}, {Head: "tokens", Align: table.Right}, {Head: "from", Align: table.Right}, {Head: "to", Align: table.Right}, {Head: "not read", Align: table.Right},
	}}
	for _, z := range x.Tokens.Zones {
		class := ""
		if z.Lost > 0 {
			class = "hot"
		}
		t.AddRow("", cell(zoneName(z.Zone)), cell(count(z.Tokens)), cell(count(z.From)), cell(count(z.To-1)), table.Cell{Text: count(z.Lost), Class: class})
	}
	return t
}

// scoreTable has a row a queue: at the cap and whole.
func (x *Explain) scoreTable() *table.Table {
	t := &table.Table{Caption: "Score of each queue", Columns: []table.Column{
		{Head: "queue"}, {Head: "at the cap", Align: table.Right}, {Head: "whole", Align: table.Right}, {Head: ""},
	}}
	for i, q := range x.e.Queues {
		class, note := "", ""
		switch {
		case q == x.e.Label && q == x.AtCap.Prediction:
			class, note = "best", "label and prediction"
		case q == x.e.Label:
			class, note = "best", "label"
		case q == x.AtCap.Prediction:
			class, note = "now", "prediction"
		}
		if q == x.Whole.Prediction && q != x.AtCap.Prediction {
			note = strings.TrimPrefix(note+", prediction of the whole", ", ")
		}
		t.AddRow(class, cell(q), x.scoreCell(x.AtCap.Scores[i]), x.scoreCell(x.Whole.Scores[i]), cell(note))
	}
	return t
}

func (x *Explain) scoreCell(v Number) table.Cell {
	return table.Cell{Text: decimals(v, 3), Mark: chart.Bar(float64(v))}
}

// windowTable has a row a window.
func (x *Explain) windowTable() *table.Table {
	t := &table.Table{Caption: "Windows, each read alone", Columns: []table.Column{
		{Head: "tokens"}, {Head: "read", In: table.InText | table.InMarkdown | table.InHTML}, {Head: "prediction"}, {Head: "score", Align: table.Right},
		{Head: "score of " + x.Target, Align: table.Right, Max: 30}, {Head: "its margin", Align: table.Right},
	}}
	for i := range x.Windows {
		w := &x.Windows[i]
		read, lost := "yes", 0
		for k := w.From; k < w.To; k++ {
			if x.isLost(k) {
				lost++
			}
		}
		if lost == w.To-w.From {
			read = "no"
		} else if lost > 0 {
			read = "partly"
		}
		t.AddRow("", cell(span(w.From, w.To)), cell(read), x.predictionCell(w.Prediction), cell(decimals(w.Score, 2)), cell(decimals(w.TargetScore, 3)), cell(marginText(w.TargetMargin)))
	}
	return t
}

func span(from, to int) string { return count(from) + "–" + count(to-1) }

func (x *Explain) predictionCell(queue string) table.Cell {
	class := ""
	if x.TargetIsLabel {
		class = "bad"
		if queue == x.Target {
			class = "good"
		}
	}
	return table.Cell{Text: queue, Class: class}
}

// depthTable has a row a cap.
func (x *Explain) depthTable() *table.Table {
	t := &table.Table{Caption: "Rising caps", Columns: []table.Column{
		{Head: "cap"}, {Head: "tokens read", Align: table.Right}, {Head: "prediction"}, {Head: "score", Align: table.Right}, {Head: "margin", Align: table.Right}, {Head: ""},
	}}
	for _, c := range x.Depth.Caps {
		name, note, class := "whole", "", ""
		if c.Cap > 0 {
			name = count(c.Cap)
			if c.Cap == x.e.Cap {
				note, class = "now", "now"
			}
		}
		if x.Depth.Reached && c.Cap == x.Depth.From {
			word := "right from here"
			if !x.TargetIsLabel {
				word = "from here"
			}
			note, class = strings.TrimPrefix(note+", "+word, ", "), "best"
		}
		t.AddRow(class, cell(name), cell(count(c.Kept)), x.predictionCell(c.Prediction), cell(decimals(c.Score, 2)), cell(marginText(c.TargetMargin)), cell(note))
	}
	return t
}

// sentenceTable has a row a sentence, in the order of the text.
func (x *Explain) sentenceTable(text bool) *table.Table {
	offsets := table.Format(0)
	if !x.cut() || x.e.Cap == 0 {
		offsets = table.InCSV // nothing was cut: how far from the cap says nothing
	}
	t := &table.Table{Caption: "What taking a sentence out costs " + x.Target, Columns: []table.Column{
		{Head: "tokens"}, {Head: "from cap", Align: table.Right, In: offsets}, {Head: "read"}, {Head: "part", In: table.InHTML | table.InMarkdown | table.InCSV},
		{Head: "drop", Align: table.Right}, {Head: "", In: table.InText},
	}}
	if text {
		t.Columns = append(t.Columns, table.Column{Head: "sentence"})
	}
	values := make([]Number, len(x.Sentences))
	for i := range x.Sentences {
		values[i] = x.Sentences[i].Drop
	}
	low, high := ends(values)
	for i := range x.Sentences {
		s := &x.Sentences[i]
		class := ""
		if x.Decisive != nil && *x.Decisive == i {
			class = "best hot"
		} else if s.Read == "no" {
			class = "few"
		}
		offset := ""
		if s.Offset != nil {
			offset = signed(*s.Offset)
		}
		cells := []table.Cell{cell(span(s.From, s.To)), cell(offset), cell(s.Read), cell(zoneName(s.Zone)),
			{Text: marginText(s.Drop), Mark: chart.SignedBar(float64(s.Drop), low, high)}, cell(textBar(s.Drop, low, high, 16))}
		if text {
			cells = append(cells, cell(oneLine(string(x.e.Text[s.fromByte:s.toByte]))))
		}
		t.AddRow(class, cells...)
	}
	return t
}

// shareTable lists the words that said most, each way together, largest first.
func (x *Explain) shareTable(text bool, most int) *table.Table {
	w := x.Words
	t := &table.Table{Caption: "What words said for " + w.For + " against " + w.Against, Columns: []table.Column{{Head: "tokens"}, {Head: "share", Align: table.Right}, {Head: "", In: table.InText}}}
	if text {
		t.Columns = append([]table.Column{{Head: "word", Max: 24}}, t.Columns...)
	}
	values := make([]Number, len(w.Words))
	for i := range w.Words {
		values[i] = w.Words[i].Share
	}
	low, high := ends(values)
	for i := range w.Words {
		if i == most {
			break
		}
		s := &w.Words[i]
		cells := []table.Cell{cell(span(s.From, s.To)), {Text: marginText(s.Share), Mark: chart.SignedBar(float64(s.Share), low, high)}, cell(textBar(s.Share, low, high, 24))}
		if text {
			cells = append([]table.Cell{cell(s.word)}, cells...)
		}
		t.AddRow("", cells...)
	}
	return t
}

func (x *Explain) sayShares() string {
	w := x.Words
	return fmt.Sprintf("This router is a sum, and this is the sum taken apart: above zero for %s, below for %s. All words together and the start of every message (%s) make %s.",
		w.For, w.Against, marginText(w.Bias), marginText(w.Sum))
}

// outsideTable is the share outside the strongest, a row a layer and a column a head.
func (x *Explain) outsideTable() *table.Table {
	a := x.Attention
	t := &table.Table{Caption: "Share of attention outside each row's ten strongest, by layer and head", Columns: []table.Column{{Head: "layer"}}}
	for h := range a.Heads {
		t.Columns = append(t.Columns, table.Column{Head: "head " + strconv.Itoa(h+1), Align: table.Right})
	}
	for l, row := range a.Outside {
		cells := []table.Cell{cell(strconv.Itoa(l + 1))}
		for h, v := range row {
			class := ""
			for i := range a.Maps {
				if a.Maps[i].Layer == l+1 && a.Maps[i].Head == h+1 {
					class = "hot"
				}
			}
			cells = append(cells, table.Cell{Text: percent(v), Class: class})
		}
		t.AddRow("", cells...)
	}
	return t
}

// firstTable lists what the first token looked at most.
func (x *Explain) firstTable(m *HeatMap, text bool, most int) *table.Table {
	name := x.e.Tokens[x.e.Attention.Positions[0]].Piece
	if name == "" {
		name = "the first token"
	}
	head := "token"
	if text {
		head = "word"
	}
	t := &table.Table{Caption: "What " + name + " looked at most", Columns: []table.Column{{Head: head, Max: 24}, {Head: "at", Align: table.Right}, {Head: "weight", Align: table.Right}, {Head: "", In: table.InText}}}
	top := 0.0
	for _, w := range m.wordsOfFirst {
		top = math.Max(top, w.weight)
	}
	for i, w := range m.wordsOfFirst {
		if i == most || w.weight < 5e-4 {
			break
		}
		word := w.word
		if !text && !x.e.Tokens[w.from].Special {
			word = "#" + count(w.from)
		}
		t.AddRow("", cell(word), cell(count(w.from)), table.Cell{Text: percent(Number(w.weight)), Mark: chart.Bar(w.weight / math.Max(top, 1e-12))}, cell(textBar(Number(w.weight), 0, math.Max(top, 1e-12), 30)))
	}
	return t
}

// explainFacts are the run facts.
func (x *Explain) explainFacts() []fact {
	e := x.e
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	place := e.Source
	if e.Member != "" {
		place += " member " + e.Member
	}
	add("Message", e.MessageID)
	add("Record", fmt.Sprintf("%s of %s", count(e.RecordNo), place))
	add("Week", e.Week)
	add("Went at the time to", e.Routed)
	add("Run", e.RunID)
	router := e.Router.Name + " (" + e.Router.Family
	if e.Router.Layers > 0 {
		router += fmt.Sprintf(", %s, %s", plural(e.Router.Layers, "layer", "layers"), plural(e.Router.Heads, "head", "heads"))
	}
	add("Router", router+")")
	add("Model sha256", e.Router.SHA256)
	add("Tokenizer", e.Router.Tokenizer)
	add("Cap", strings.TrimSpace(x.capName()+", "+e.Strategy))
	subject := "subject read"
	if !e.Subject {
		subject = "subject left away"
	}
	add("Text", subject+", quotes: "+e.Quotes)
	add("Whole", e.Reference)
	add("Kernel", strings.TrimSpace(e.Kernel+" "+e.Precision))
	return facts
}
