package reports

import (
	"fmt"
	"strings"

	"misroute/reports/table"
)

// notProof is said wherever a map is drawn.
const notProof = "A map is a clue, not a proof: it shows where one layer let information flow. The sentence that decides was found by taking sentences out, not from a map."

// say writes the sentences of the report.
func (x *Explain) say() {
	x.headline()
	x.Headline = strings.TrimSpace(x.lead + " " + x.rest)
	x.findings()
	x.doubts()
}

func (x *Explain) right() bool { return x.AtCap.Prediction == x.e.Label }

func (x *Explain) headline() {
	e := x.e
	went := "Went to " + x.AtCap.Prediction
	switch {
	case e.Label == "":
		x.lead, x.fine = went, true
		x.rest = "with score " + decimals(x.AtCap.Score, 2) + "; where it belongs is not known"
		if x.Whole.Prediction != x.AtCap.Prediction {
			x.rest += ", and read whole it goes to " + x.Whole.Prediction
		}
		x.rest += "."
		return
	case x.right():
		x.lead, x.fine = went+",", true
		x.rest = "where it belongs" + x.rightBecause()
		return
	case !x.TargetIsLabel:
		x.lead = went + ","
		x.rest = fmt.Sprintf("belongs to %s: a queue that this router does not know.", e.Label)
		return
	}
	x.lead = went + ","
	x.rest = fmt.Sprintf("belongs to %s: %s", e.Label, x.wrongBecause())
}

// rightBecause ends the headline of a message that went where it belongs.
func (x *Explain) rightBecause() string {
	d := x.decisive()
	switch {
	case !x.cut():
		return "; nothing of it was cut."
	case x.Whole.Prediction != x.AtCap.Prediction:
		return fmt.Sprintf(": the cut helped, read whole it goes to %s.", x.Whole.Prediction)
	case d != nil && d.Read == "yes":
		return ": the sentence that decides was read."
	}
	return ", although " + plural(x.Tokens.Total-x.Tokens.Kept, "token was", "tokens were") + " cut."
}

// wrongBecause ends the headline of a misroute.
func (x *Explain) wrongBecause() string {
	d := x.decisive()
	switch {
	case !x.cut():
		return fmt.Sprintf("nothing was cut, the router read all %s.", plural(x.Tokens.Total, "token", "tokens"))
	case x.Whole.Prediction != x.Target:
		return fmt.Sprintf("the cut is not why, read whole it goes to %s.", x.Whole.Prediction)
	case d == nil || d.Read == "yes":
		return "read whole it goes right."
	case d.Read == "partly":
		return "the cut goes through the sentence that decides."
	}
	return "the sentence that decides stands " + x.place(d) + "."
}

func (x *Explain) cut() bool { return x.Tokens.Kept < x.Tokens.Total }

// place says where a sentence that was not read stands: past the cut of a head, before that of a tail.
func (x *Explain) place(d *SentenceDrop) string {
	for _, r := range x.lost {
		if d.From < int(r.From) || d.From >= int(r.To) {
			continue
		}
		switch first, last := x.textEnds(); {
		case int(r.To) == last && x.e.Cap > 0 && x.e.Strategy == "head":
			// From the cap, as everywhere; the cap counts a special token that stands behind the text.
			return away(d.From-x.e.Cap, "past the cut")
		case int(r.To) == last:
			return away(d.From-int(r.From), "past the cut")
		case int(r.From) == first:
			return away(int(r.To)-d.To, "before the cut")
		}
		return "in the part that was left out"
	}
	return "in what was read"
}

func away(n int, where string) string {
	if n <= 0 {
		return "right " + where
	}
	return plural(n, "token", "tokens") + " " + where
}

// textEnds are the first text token and the one after the last.
func (x *Explain) textEnds() (first, last int) {
	t := x.e.Tokens
	last = len(t)
	for first < last && t[first].Special {
		first++
	}
	for last > first && t[last-1].Special {
		last--
	}
	return first, last
}

func (x *Explain) findings() {
	if x.cut() {
		s := fmt.Sprintf("Read %s of %s (%s, %s): %s with score %s. ", count(x.Tokens.Kept), plural(x.Tokens.Total, "token", "tokens"), x.capName(), x.e.Strategy, x.AtCap.Prediction, decimals(x.AtCap.Score, 2))
		s += fmt.Sprintf("Read whole: %s with score %s. ", x.Whole.Prediction, decimals(x.Whole.Score, 2))
		x.Findings = append(x.Findings, s+x.sayDepth())
	} else {
		x.Findings = append(x.Findings, fmt.Sprintf("Read all %s: %s with score %s. ", plural(x.Tokens.Total, "token", "tokens"), x.AtCap.Prediction, decimals(x.AtCap.Score, 2))+x.sayDepth())
	}
	if d := x.decisive(); d != nil {
		after := Number(float64(x.Whole.TargetMargin) - float64(d.Drop))
		s := fmt.Sprintf("Without its marked sentence (tokens %s to %s, %s) the margin of %s falls from %s to %s", count(d.From), count(d.To-1), zoneName(d.Zone), x.Target, marginText(x.Whole.TargetMargin), marginText(after))
		if x.Whole.TargetMargin > 0 && after < 0 {
			s += ": then even the whole message goes elsewhere"
		}
		x.Findings = append(x.Findings, s+".")
	}
}

func (x *Explain) capName() string {
	if x.e.Cap == 0 {
		return "no cap"
	}
	return "cap " + count(x.e.Cap)
}

// sayDepth says from which cap on the prediction is the target.
func (x *Explain) sayDepth() string {
	d := &x.Depth
	what := "It is right"
	if !x.TargetIsLabel {
		what = "It goes there"
	}
	switch {
	case !d.Reached && x.TargetIsLabel:
		return fmt.Sprintf("%s is not reached, however much is read.", x.Target)
	case !d.Reached:
		return ""
	case d.From == 0:
		return what + " only when read whole."
	}
	return fmt.Sprintf("%s from cap %s on.", what, count(d.From))
}

func (x *Explain) doubts() {
	if again := x.Depth.Again; again > 0 {
		x.Doubt = append(x.Doubt, fmt.Sprintf("More is not always better here: at cap %s it was right already, and wrong again after.", count(again)))
	}
	if x.cut() && !strings.HasPrefix(x.e.Reference, "one pass") || strings.Contains(x.e.Reference, "windows") && x.beyond() {
		x.Doubt = append(x.Doubt, "The whole is read as "+x.e.Reference+".")
	}
	if c := x.e.Router.TrainedCap; c > 0 && x.e.Cap > c {
		x.Doubt = append(x.Doubt, fmt.Sprintf("The router was trained with cap %s and reads up to %s here.", count(c), count(x.e.Cap)))
	}
	if len(x.Sentences) == 0 {
		x.Doubt = append(x.Doubt, "It is a single sentence: there is none to leave out.")
	} else if x.Decisive == nil {
		x.Doubt = append(x.Doubt, fmt.Sprintf("No single sentence carries %s: taking any one out costs it nothing.", x.Target))
	}
	x.Doubt = append(x.Doubt, x.e.Warnings...)
	x.Doubt = append(x.Doubt, "One message is an example, not a rate: misroute sweep says what the cap costs over a week.")
}

// beyond says whether the message is longer than the router's positions.
func (x *Explain) beyond() bool {
	return x.e.Router.Positions > 0 && x.Tokens.Total > x.e.Router.Positions
}

// marginText is a margin in logits with its sign.
func marginText(v Number) string {
	s := decimals(v, 2)
	switch {
	case strings.Trim(s, "0.−") == "" && v.Defined():
		return strings.TrimPrefix(s, "−")
	case v > 0:
		return "+" + s
	}
	return s
}

// zoneName is a zone for a person.
func zoneName(zone string) string {
	switch zone {
	case "own":
		return "own text"
	case "quoted":
		return "quoted text"
	}
	return zone
}

// oneLine is a stranger's text on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(table.Clean(s)), " ") }

// cutLabel is what stands at the first cut.
func (x *Explain) cutLabel() string {
	if x.e.Cap == 0 {
		return "cut"
	}
	return "cut at " + count(x.e.Cap)
}

// depthHeading says what the data say, as every heading does.
func (x *Explain) depthHeading() string {
	d := &x.Depth
	switch {
	case !d.Reached:
		return "However much it reads, it does not reach " + x.Target
	case d.From == 0:
		return "Only the whole message leads to " + x.Target
	}
	if d.Caps[0].Cap == d.From {
		return fmt.Sprintf("%s tokens are enough to reach %s", count(d.From), x.Target)
	}
	return fmt.Sprintf("It takes %s to reach %s", plural(d.From, "token", "tokens"), x.Target)
}

func (x *Explain) sentenceHeading() string {
	d := x.decisive()
	if d == nil {
		return "No single sentence decides"
	}
	return fmt.Sprintf("One sentence is worth %s to %s", decimals(d.Drop, 2), x.Target)
}

func (x *Explain) attentionHeading() string {
	m := &x.Attention.Maps[0]
	return fmt.Sprintf("What tokens looked at: %s falls outside each row's ten strongest", percent(m.Outside))
}

// depthNote explains the table of caps.
func (x *Explain) depthNote() string {
	part := "The message at rising caps (" + x.e.Strategy + ")"
	if x.e.Strategy == "windows" {
		part = "The first tokens of the message at rising caps"
	}
	return fmt.Sprintf("%s; the last line is all of it. Margin: the logit of %s minus the best other one.", part, x.Target)
}

// sayNoise explains the share outside the strongest.
func (x *Explain) sayNoise() string {
	a := x.Attention
	if a.Tokens <= a.Largest {
		return fmt.Sprintf("The pass has %s, so none falls outside of the strongest %d.", plural(a.Tokens, "token", "tokens"), a.Largest)
	}
	return fmt.Sprintf("Softmax never says zero: over %s every row spreads some weight on everything, and a long message gathers that as noise. Were every token looked at alike, %s would fall outside the strongest %d.",
		plural(a.Tokens, "token", "tokens"), percent(a.Even), a.Largest)
}
