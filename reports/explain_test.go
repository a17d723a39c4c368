package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"misroute/pipeline/result"
	"misroute/reports/chart"
	"misroute/reports/table"
)

const examinedText = "my order\n\nHello Crumb. The cake was un-believably good. Please send the money back. Bye"

// examined is a message of words and marks between [CLS] and [SEP], read at a cap of 12 of its 22
// tokens by a router of three queues. Logits are chosen so that the numbers can be checked by hand.
func examined() *Examined {
	e := &Examined{
		MessageID: "<one@example.org>", Source: "week.mbox", RecordNo: 7, Week: "2026-W47", Label: "refunds",
		Router: result.ModelFacts{Name: "crumb-v3", Family: "bert", SHA256: strings.Repeat("ab", 32), Tokenizer: "WordPiece 8,000", Layers: 2, Heads: 2, Positions: 64},
		Kernel: "generic", Precision: "float32", Queues: []string{"praise", "refunds", "other"},
		Cap: 12, Strategy: "head", Quotes: "keep", Subject: true, Reference: "one pass up to 64 tokens, beyond that windows of 64",
		Text: []byte(examinedText), Tokens: []TokenAt{{Special: true, Piece: "[CLS]"}},
	}
	for _, at := range regexp.MustCompile(`[A-Za-z]+|[.-]`).FindAllStringIndex(examinedText, -1) {
		e.Tokens = append(e.Tokens, TokenAt{Start: at[0], End: at[1], Piece: examinedText[at[0]:at[1]]})
	}
	e.Tokens = append(e.Tokens, TokenAt{Special: true, Piece: "[SEP]"})
	body, bye := strings.Index(examinedText, "Hello"), strings.Index(examinedText, "Bye")
	e.Zones = []ZoneAt{{0, body, "subject"}, {body, bye, "own"}, {bye, len(examinedText), "signature"}}
	e.Kept = []result.Range{{From: 1, To: 11}}
	e.AtCap, e.Whole = []float32{2, 0, 0}, []float32{0, 3, 0}
	e.Windows = []ReadPart{{From: 1, To: 11, Logits: []float32{2, 0, 0}}, {From: 11, To: 21, Logits: []float32{0, 4, 0}}}
	e.Caps = []ReadPart{{To: 4, Kept: 4, Logits: []float32{0, 1, 0}}, {To: 12, Kept: 12, Logits: []float32{2, 0, 0}}, {To: 18, Kept: 18, Logits: []float32{0, 1, 0}}}
	sentence := func(text string, drop float32) {
		from := strings.Index(examinedText, text)
		s := LeftOut{FromByte: from, ToByte: from + len(text), Drop: drop, FromToken: -1}
		for i, t := range e.Tokens {
			if !t.Special && t.Start >= s.FromByte && t.Start < s.ToByte {
				if s.FromToken < 0 {
					s.FromToken = i
				}
				s.ToToken = i + 1
			}
		}
		e.Sentences = append(e.Sentences, s)
	}
	sentence("my order", 0.25)
	sentence("Hello Crumb.", 0)
	sentence("The cake was un-believably good.", -1)
	sentence("Please send the money back.", 4.5)
	sentence("Bye", -0.125)
	return e
}

func explained(t *testing.T, e *Examined, o Options) *Explain {
	t.Helper()
	x, err := NewExplain(e, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExplainByHand(t *testing.T) {
	x := explained(t, examined(), Options{})
	// The words: my order Hello Crumb . The cake was un - believably good . Please send the money back . Bye
	if x.Tokens.Total != 22 || x.Tokens.Kept != 12 || len(x.Tokens.Lost) != 1 || x.Tokens.Lost[0] != (result.Range{From: 11, To: 21}) {
		t.Errorf("tokens %+v, want 12 of 22 kept and 11 to 21 lost", x.Tokens)
	}
	for i, want := range []ZoneTokens{{"subject", 1, 3, 2, 0}, {"own", 3, 20, 17, 9}, {"signature", 20, 21, 1, 1}} {
		if x.Tokens.Zones[i] != want {
			t.Errorf("zone %+v, want %+v", x.Tokens.Zones[i], want)
		}
	}
	// e^2/(e^2+2) and e^3/(e^3+2)
	near := func(what string, got Number, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("score at the cap", x.AtCap.Score, math.Exp(2)/(math.Exp(2)+2))
	near("score of the whole", x.Whole.Score, math.Exp(3)/(math.Exp(3)+2))
	near("margin of the label at the cap", x.AtCap.TargetMargin, -2)
	near("margin of the label whole", x.Whole.TargetMargin, 3)
	if d := x.Depth; !d.Reached || d.From != 18 || d.Again != 4 {
		t.Errorf("depth from %d (reached %v), right before at %d; want 18 and 4", d.From, d.Reached, d.Again)
	}
	d := x.decisive()
	if d == nil || d.From != 14 || d.To != 20 || d.Read != "no" || d.Zone != "own" || *d.Offset != 2 {
		t.Fatalf("decisive %+v, want tokens 14 to 20, not read, 2 past the cap of 12", d)
	}
	if want := "Went to praise, belongs to refunds: the sentence that decides stands 2 tokens past the cut."; x.Headline != want {
		t.Errorf("headline %q, want %q", x.Headline, want)
	}
	if s := x.Sentences[2]; s.Read != "partly" {
		t.Errorf("the sentence that the cut goes through is read: %s", s.Read)
	}
}

func TestExplainHeadlines(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Examined)
		want   string
	}{
		"no label":          {func(e *Examined) { e.Label = "" }, "Went to praise with score 0.79; where it belongs is not known, and read whole it goes to refunds."},
		"right":             {func(e *Examined) { e.AtCap = e.Whole }, "Went to refunds, where it belongs, although 10 tokens were cut."},
		"the cut helped":    {func(e *Examined) { e.AtCap, e.Whole = e.Whole, e.AtCap }, "Went to refunds, where it belongs: the cut helped, read whole it goes to praise."},
		"wrong whole":       {func(e *Examined) { e.Whole = []float32{0, 0, 1} }, "Went to praise, belongs to refunds: the cut is not why, read whole it goes to other."},
		"nothing cut":       {func(e *Examined) { e.Kept[0].To = 21; e.Whole = e.AtCap }, "Went to praise, belongs to refunds: nothing was cut, the router read all 22 tokens."},
		"unknown queue":     {func(e *Examined) { e.Label = "careers" }, "Went to praise, belongs to careers: a queue that this router does not know."},
		"before a tail":     {func(e *Examined) { e.Kept = []result.Range{{From: 20, To: 21}} }, "Went to praise, belongs to refunds: the sentence that decides stands right before the cut."},
		"through the cut":   {func(e *Examined) { e.Kept[0].To = 16 }, "Went to praise, belongs to refunds: the cut goes through the sentence that decides."},
		"between two parts": {func(e *Examined) { e.Kept = []result.Range{{From: 1, To: 11}, {From: 20, To: 21}} }, "Went to praise, belongs to refunds: the sentence that decides stands in the part that was left out."},
	} {
		e := examined()
		c.change(e)
		if got := explained(t, e, Options{}).Headline; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// withAttention has one layer of two heads over 22 tokens: the first looks at everything alike, the
// second at "money" alone.
func withAttention(e *Examined) *Examined {
	n := len(e.Tokens)
	even, focused := make([]float32, n*n), make([]float32, n*n)
	positions := make([]int, n)
	for i := range n {
		positions[i] = i
		for j := range n {
			even[i*n+j] = 1 / float32(n)
		}
		focused[i*n+17] = 1
	}
	e.Attention = &WeightMaps{Positions: positions, Weights: [][][]float32{{even, focused}}}
	return e
}

func TestExplainAttention(t *testing.T) {
	x := explained(t, withAttention(examined()), Options{WithText: true})
	a := x.Attention
	// Of 22 equal weights, 12 lie outside the strongest ten.
	if math.Abs(float64(a.Outside[0][0])-12.0/22) > 1e-6 || a.Outside[0][1] != 0 || math.Abs(float64(a.Even)-12.0/22) > 1e-12 {
		t.Errorf("outside the strongest ten: %v, even %v; want 12/22, 0 and 12/22", a.Outside, a.Even)
	}
	if len(a.Maps) != 2 || a.Maps[0].Head != 0 || a.Maps[1].Head != 2 {
		t.Fatalf("maps %d, want the mean and head 2, the focused one", len(a.Maps))
	}
	mean := a.Maps[0]
	if want := 0.5 + 0.5/22; math.Abs(float64(mean.First[17])-want) > 1e-6 {
		t.Errorf("[CLS] looks at money with %v, want %v", mean.First[17], want)
	}
	for i, row := range mean.Grid {
		sum := 0.0
		for _, v := range row {
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-5 { // every word is drawn
			t.Errorf("row %d of the drawn words adds up to %v, want 1", i, sum)
		}
	}
	if w := mean.wordsOfFirst[0]; w.word != "money" {
		t.Errorf("[CLS] looks at %q most, want money", w.word)
	}
	e := withAttention(examined())
	e.Attention.Layer = 2
	if _, err := NewExplain(e, Options{}); err == nil {
		t.Error("a layer that is not there was taken")
	}
	e = withAttention(examined())
	e.Attention.Head = 1
	if m := explained(t, e, Options{}).Attention.Maps; len(m) != 1 || m[0].Head != 1 {
		t.Errorf("head 1 was asked for, got %d maps", len(m))
	}
}

// Pieces that stand together are one word; marks, spaces and scripts without spaces part them.
func TestExplainWords(t *testing.T) {
	text := "unbelievably good, 蛋糕 a-b"
	e := &Examined{Text: []byte(text), Tokens: []TokenAt{{Special: true, Piece: "[CLS]"}}}
	at := 0
	for _, piece := range []string{"un", "believ", "ably", " good", ",", "蛋", "糕", "a", "-", "b"} {
		at += strings.Index(text[at:], piece)
		e.Tokens = append(e.Tokens, TokenAt{Start: at, End: at + len(piece)})
		at += len(piece)
	}
	positions := make([]int, len(e.Tokens))
	for i := range positions {
		positions[i] = i
	}
	var got []string
	for _, w := range e.wordsOf(positions) {
		got = append(got, e.wordText(positions, w))
	}
	if want := "[CLS]|unbelievably|good|,|蛋|糕|a|-|b"; strings.Join(got, "|") != want {
		t.Errorf("words %q, want %q", strings.Join(got, "|"), want)
	}
}

func TestExplainShares(t *testing.T) {
	e := examined()
	n := len(e.Tokens)
	shares := make([]float32, n*3)
	shares[7*3], shares[17*3+1] = 2.5, 0.75 // cake for praise, money for refunds
	positions := make([]int, n)
	for i := range positions {
		positions[i] = i
	}
	e.Shares = &TokenShares{Positions: positions, Shares: shares, Bias: []float32{0.25, 0, 0}}
	w := explained(t, e, Options{}).Words
	// 0.25 + 2.5 - 0.75: the difference of the logits at the cap.
	if w.For != "praise" || w.Against != "refunds" || w.Sum != 2 || w.Bias != 0.25 || len(w.Words) != 2 || w.Words[0].Share != 2.5 || w.Words[1].Share != -0.75 {
		t.Errorf("shares %+v, want 0.25 + 2.5 - 0.75 for praise against refunds", w)
	}
	if w.Words[0].Text != "" || w.Words[0].word != "cake" {
		t.Errorf("word %+v: want cake, and no text in the JSON", w.Words[0])
	}
}

// The text reaches the terminal, and files only where it was asked for.
func TestExplainKeepsTextOut(t *testing.T) {
	for _, with := range []bool{false, true} {
		e := withAttention(examined())
		e.Shares = &TokenShares{Positions: e.Attention.Positions, Shares: make([]float32, 3*len(e.Tokens)), Bias: make([]float32, 3)}
		e.Shares.Shares[17*3] = 1
		x := explained(t, e, Options{WithText: with})
		for name, write := range map[string]func(io.Writer) error{"html": x.HTML, "markdown": x.Markdown, "json": x.JSON} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"money", "believably", "Hello"} {
				if got := strings.Contains(b.String(), word); got != with && (word == "money" || !with) {
					t.Errorf("%s with text %v: %q in it: %v", name, with, word, got)
				}
			}
		}
		var b bytes.Buffer
		if err := x.Terminal(&b, TermOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "> Please send the money back.") {
			t.Error("the terminal does not show the sentence that decides")
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if table.Width(line) > 80 {
				t.Errorf("%d columns: %q", table.Width(line), line)
			}
		}
	}
}

// A stranger's text is text: on the page, on the terminal, in the labels of a map.
func TestExplainHostileText(t *testing.T) {
	e := withAttention(examined())
	e.Text = bytes.Replace(e.Text, []byte("Hello"), []byte("<b>\x1b!"), 1)
	e.MessageID, e.Label, e.Queues[0] = "<script>alert(1)</script>", "<i>", "<script>x</script>"
	x := explained(t, e, Options{WithText: true})
	var page, term bytes.Buffer
	if err := x.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if err := x.Terminal(&term, TermOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>", "<b>\x1b", "<i>", " style=", "\x1b"} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if strings.Contains(term.String(), "\x1b") {
		t.Error("an escape of the message reached the terminal")
	}
	var back map[string]any
	var b bytes.Buffer
	if err := x.JSON(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Error(err)
	}
}

// A message that is too long for pictures of every word, without a label, of one sentence.
func TestExplainLongMessage(t *testing.T) {
	e := &Examined{MessageID: "long", Queues: []string{"a", "b"}, AtCap: []float32{1, 0}, Whole: []float32{0, 1}, Strategy: "head", Cap: 100, Reference: "one pass"}
	var text strings.Builder
	for i := range 3000 {
		word := fmt.Sprintf("w%d", i)
		e.Tokens = append(e.Tokens, TokenAt{Start: text.Len(), End: text.Len() + len(word)})
		text.WriteString(word + " ")
	}
	e.Text = []byte(text.String())
	e.Kept = []result.Range{{From: 0, To: 100}}
	e.Attention = &WeightMaps{}
	for i := range 100 {
		e.Attention.Positions = append(e.Attention.Positions, i)
	}
	head := make([]float32, 100*100)
	for i := range head {
		head[i] = 0.01
	}
	e.Attention.Weights = [][][]float32{{head}}
	x := explained(t, e, Options{WithText: true})
	if n := len(x.Attention.Maps[0].Words); n != chart.MaxHeatDesk {
		t.Errorf("%d words are drawn, want %d", n, chart.MaxHeatDesk)
	}
	var b bytes.Buffer
	if err := x.HTML(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 400_000 || !strings.Contains(b.String(), "tokens … ]") {
		t.Errorf("a page of %d bytes; want the middle of the lost tail skipped", b.Len())
	}
	if _, err := NewExplain(&Examined{}, Options{}); err == nil {
		t.Error("an empty message was explained")
	}
}

func TestExplainGolden(t *testing.T) {
	x := explained(t, withAttention(examined()), Options{WithText: true})
	golden(t, "explain.html", x.HTML)
	golden(t, "explain.txt", func(out io.Writer) error { return x.Terminal(out, TermOptions{}) })
	golden(t, "explain.md", x.Markdown)
	plain := explained(t, withAttention(examined()), Options{})
	golden(t, "explain.json", plain.JSON)
	golden(t, "explain-plain.html", plain.HTML)
}
