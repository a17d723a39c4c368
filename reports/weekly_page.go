package reports

import (
	"io"
	"strings"
)

// HTML writes the report as one file that asks the network for nothing.
func (w *Weekly) HTML(out io.Writer) error {
	p := &page{
		Title: "Misroutes", Eyebrow: w.eyebrow(), Lead: w.words.lead, Rest: w.words.rest + ".", Fine: w.Total.N > 0 && w.Total.Wrong == 0,
		Do: w.Do, Doubt: w.Doubt, Cards: w.cards(), Facts: w.facts(),
	}
	if w.Week != "" {
		p.Title += ", " + w.Week
	}
	var lede []string
	if w.Total.N > 0 {
		lede = append(lede, "That is "+percent(w.Total.Rate)+" (95 % interval "+w.Total.interval()+").")
	}
	if text := strings.Join(append(lede, w.Findings...), " "); text != "" {
		p.Lede = []string{text}
	}
	p.Sections = w.sections()
	return p.write(out)
}

func (w *Weekly) eyebrow() string {
	parts := []string{"Weekly misroute report"}
	if w.Week != "" {
		parts = append(parts, w.Week)
	}
	if m := w.Run.Model; m.Family == asRouted {
		parts = append(parts, "as routed, without a model")
	} else if m.Name != "" {
		parts = append(parts, "router "+name(m.Name))
	}
	if w.Run.Cap > 0 {
		parts = append(parts, "cap "+count(w.Run.Cap)+", "+w.Run.Strategy)
	}
	return strings.Join(parts, " · ")
}

func (w *Weekly) cards() []card {
	var cards []card
	if w.Total.N > 0 {
		cards = append(cards, card{percent(w.Total.Rate), "misrouted, 95 % interval " + w.Total.interval(), ""})
	}
	if c := w.Cut; c != nil {
		cards = append(cards, card{percent(c.Share), "of messages lost text to the cap", ""})
		if c.Table != nil {
			cards = append(cards, card{count(c.Table.Cost), "misroutes caused by the cut", "c2"}, card{count(c.Table.Helped), "saved by the cut", ""})
		}
	}
	if w.Cost != nil {
		cards = append(cards, card{decimals(Number(w.Cost.Sum), 1), "cost of all misroutes", ""})
	}
	if m := w.Measured; m != nil && m.MeanScoreMillis > 0 {
		cards = append(cards, card{decimals(Number(m.MeanScoreMillis), 1) + " ms", "a message, one core", ""})
	}
	return cards
}

func (w *Weekly) sections() []section {
	var list []section
	length := section{ID: "length", Nav: "By length", Heading: w.words.length}
	length.Parts = append(length.Parts, part{Table: w.lengthTable().Markup(), Notes: w.fewNote()})
	list = append(list, length)
	list = append(list, section{ID: "queues", Nav: "Queues", Heading: w.words.queues, Parts: []part{{Table: w.queueTable().Markup()}}})
	return list
}
