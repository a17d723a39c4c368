package reports

import (
	"fmt"
	"strings"

	"misroute/reports/table"
)

// words are what the numbers say: a heading states its section's finding, not its subject.
type words struct {
	headline            string
	lead, rest          string // the headline in two parts: the count, which a page makes bold, and what follows
	findings, do, doubt []string
	length, cut, queues string
	scores, messages    string
	rejected            string
}

func (w *Weekly) say() words {
	var x words
	x.lead, x.rest, x.headline = w.sayHeadline()
	x.findings = nonNil(w.sayFindings())
	x.do = nonNil(w.sayDo())
	x.doubt = nonNil(w.sayDoubt())
	x.length = w.sayLength()
	x.cut = w.sayCut()
	x.queues = w.sayQueues()
	x.scores = w.sayScores()
	x.messages = w.sayMessages()
	x.rejected = w.sayRejected()
	return x
}

// name quotes a queue inside of a sentence: cleaned, and cut where it would take over.
func name(q string) string {
	const most = 40
	if q = table.Clean(q); strings.TrimSpace(q) == "" {
		return "“" + q + "”"
	}
	return table.Fit(q, most)
}

func (w *Weekly) scored() int {
	n := 0
	for _, b := range w.Buckets {
		n += b.Messages
	}
	return n
}

func (w *Weekly) sayHeadline() (lead, rest, whole string) {
	t := w.Total
	switch {
	case w.scored() == 0:
		return "No message", "was scored", "No message was scored"
	case t.N == 0:
		lead = plural(w.scored(), "message", "messages")
		rest = "scored, none labelled: nobody can say which went to the wrong queue"
		return lead, rest, lead + " " + rest
	}
	lead = count(t.Wrong) + " of " + count(t.N)
	rest = "messages went to the wrong queue"
	if t.N == 1 {
		rest = "message went to the wrong queue"
	}
	return lead, rest, fmt.Sprintf("%s %s (%s, 95 %% interval %s)", lead, rest, percent(t.Rate), t.interval())
}

func (w *Weekly) sayFindings() []string {
	var s []string
	if c := w.Cut; c != nil && w.Total.Wrong > 0 {
		s = append(s, w.sayCounterfactual(c))
	}
	if c := w.Cut; c != nil && w.Total.N == 0 && c.Again > 0 {
		s = append(s, fmt.Sprintf("Of %s that lost text to the cap, %s to another queue when read whole.", plural(c.Again, "message", "messages"), plural(c.Changed, "goes", "go")))
	}
	if sw := w.Sweep; sw != nil && w.Total.N > 0 {
		s = append(s, sw.Answer)
	}
	if r := w.Routable; r != nil {
		s = append(s, fmt.Sprintf("%s a label the router does not know; without them it is %s of %s (%s, %s).",
			plural(w.Total.N-r.N, "message carries", "messages carry"), count(r.Wrong), count(r.N), percent(r.Rate), r.interval()))
	}
	if w.Cost != nil {
		s = append(s, fmt.Sprintf("Weighted by the costs file, misroutes cost %s, %s a message.", decimals(Number(w.Cost.Sum), 1), decimals(w.Cost.Mean, 3)))
	}
	if w.Abstain != nil && w.Abstain.Asked != nil {
		a := w.Abstain.Asked
		s = append(s, fmt.Sprintf("With a threshold of %g the router decides %s of the messages, and %s of those %s go wrong (%s, %s).",
			a.Threshold, percent(a.Coverage), count(a.Wrong), count(a.N), percent(a.Rate.Rate), a.interval()))
	}
	return s
}

// sayCounterfactual is the second sentence of the report: what the cut has to do with it.
func (w *Weekly) sayCounterfactual(c *Cut) string {
	over := c.Over.Wrong
	switch {
	case c.Messages == 0 && len(w.Windows) > 0:
		return fmt.Sprintf("No message lost text: what is longer than %s tokens was read in windows.", count(c.Cap))
	case c.Messages == 0 && c.Cap > 0:
		return fmt.Sprintf("No message lost text to the cap of %s.", count(c.Cap))
	case over == 0:
		return "None of them lost text to the cap."
	}
	s := fmt.Sprintf("%s of the %s lost text to the cap", count(over), count(w.Total.Wrong))
	if c.Table == nil {
		return s + "; whether that is why is not known, because no message was read whole."
	}
	s += fmt.Sprintf("; read whole, %s of those %s", count(c.Table.Cost), count(c.Table.Cost+c.Table.BothWrong))
	s += verb(c.Table.Cost, " goes", " go") + " to the right queue, and "
	switch c.Table.Helped {
	case 0:
		return s + "no message that was right turns wrong."
	default:
		return s + plural(c.Table.Helped, "message that was right turns wrong.", "messages that were right turn wrong.")
	}
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (w *Weekly) sayDo() []string {
	var s []string
	if w.Total.N == 0 {
		return append(s, "Give labels (--labels, or a header, column or folder that holds the true queue): without them nothing can be judged.")
	}
	switch c := w.Cut; {
	case c != nil && c.Control.Flips == 0 && w.Sweep != nil && w.Sweep.sayDo() != "":
		s = append(s, w.Sweep.sayDo())
	case c != nil:
		s = append(s, w.sayDoCut(c))
	}
	if len(w.Pairs) > 0 && w.Pairs[0].N >= 5 && w.Pairs[0].N*5 >= w.Total.Wrong {
		p := w.Pairs[0]
		s = append(s, fmt.Sprintf("Look at %s sent to %s: %s of the %s misroutes.", name(p.From), name(p.To), count(p.N), count(w.Total.Wrong)))
	}
	if c := w.Calibration; c != nil && c.Temperature.Defined() && float64(c.ECE) > 0.05 {
		s = append(s, fmt.Sprintf("Do not read scores as chances: they are off by %s points on average. Dividing the logits by %s would mend most of it.", bare(c.ECE), decimals(c.Temperature, 2)))
	}
	if l := w.Run.Ledger; l.Rejected*100 > l.Read {
		s = append(s, fmt.Sprintf("Look at the %s: they were not evaluated.", plural(l.Rejected, "rejected record", "rejected records")))
	}
	return s
}

// sayDoCut advises on the cap, and never beyond what the paired test allows.
func (w *Weekly) sayDoCut(c *Cut) string {
	switch {
	case c.Control.Flips > 0:
		return "Do not act on the cost of the cut: messages under the cap changed as well, which must not happen."
	case c.Messages == 0 && len(w.Windows) > 0:
		return "To learn whether one pass or another window is better, run misroute sweep: windows cut nothing, but they read in pieces."
	case c.Messages == 0:
		return "Leave the cap as it is: it cut nothing."
	case c.Test == nil && c.Over.Wrong == 0:
		return "Leave the cap as it is: no misroute lost text to it."
	case c.Test == nil:
		return "Find out what the cap costs: misroute sweep reads the cut messages whole and by other strategies."
	}
	d := fmt.Sprintf("difference %s points among cut messages, %s; p %s", points(Number(c.Test.Difference)), signedInterval(c.Test.Interval.Low, c.Test.Interval.High), pvalue(c.Test.P()))
	changed := c.Test.Changed()
	switch {
	case changed == 0:
		return fmt.Sprintf("Leave the cap as it is: none of the %s changes when read whole.", plural(c.Test.N, "cut message", "cut messages"))
	case changed < c.Need:
		return fmt.Sprintf("Leave the cap as it is for now: %s when read whole, and fewer than %d cannot show anything.", plural(changed, "message changes", "messages change"), c.Need)
	case c.Test.Decided() && c.Table.Net() > 0:
		return fmt.Sprintf("Let the router read more, or another part: read whole, %s (%s). misroute sweep finds the cap and strategy that are worth their price.", plural(c.Table.Net(), "message fewer goes wrong", "messages fewer go wrong"), d)
	case c.Test.Decided():
		return fmt.Sprintf("Leave the cap as it is: read whole, %s (%s).", plural(-c.Table.Net(), "message more goes wrong", "messages more go wrong"), d)
	}
	return fmt.Sprintf("Leave the cap as it is: reading whole mends %s and breaks %s, which chance alone would do (%s).", count(c.Table.Cost), count(c.Table.Helped), d)
}

func signedInterval(low, high float64) string {
	return points(Number(low)) + " to " + points(Number(high))
}

func (w *Weekly) sayDoubt() []string {
	var s []string
	if t := w.Threads; t != nil && interval(t.Low, t.High) != w.Total.interval() {
		s = append(s, fmt.Sprintf("Replies in a thread go wrong together: counting %s instead of messages, the interval is %s %% (design effect %s).", plural(t.Threads, "thread", "threads"), interval(t.Low, t.High), decimals(t.DesignEffect, 2)))
	}
	smallN := 0
	for _, b := range w.Buckets {
		if b.Few && b.N > 0 {
			smallN++
		}
	}
	if smallN > 0 {
		s = append(s, fmt.Sprintf("%s of %d %s fewer than %d labelled messages: no ranking among them.", plural(smallN, "length bucket", "length buckets"), len(w.Buckets), verb(smallN, "holds", "hold"), few))
	}
	l := w.Run.Ledger
	if l.Unlabelled > 0 && w.Total.N > 0 {
		s = append(s, fmt.Sprintf("%s not judged: no label.", plural(l.Unlabelled, "scored message is", "scored messages are")))
	}
	if l.Rejected > 0 {
		s = append(s, fmt.Sprintf("%s in no rate: rejected.", plural(l.Rejected, "record is", "records are")))
	}
	for _, src := range w.Run.Sources {
		if src.Incomplete {
			s = append(s, fmt.Sprintf("%s ends early, at byte %s: what came after is not counted.", name(src.Source), count(src.IncompleteAt)))
		}
	}
	if c := w.Cut; c != nil {
		for _, limit := range c.Limits {
			s = append(s, strings.ToUpper(limit[:1])+limit[1:]+".")
		}
		if p := c.Probe; p != nil && p.Caused > 0 {
			s = append(s, fmt.Sprintf("Of %s the cut caused, %s, because another part of the message goes right at the same cap; any other is suspected.", plural(p.Caused, "misroute", "misroutes"), plural(p.Confirmed, "is confirmed", "are confirmed")))
		}
	}
	for _, warning := range w.Warnings {
		s = append(s, strings.TrimSuffix(table.Clean(warning), ".")+".")
	}
	return s
}

func (w *Weekly) sayLength() string {
	c := w.Cut
	switch {
	case w.Total.N == 0:
		return "How long the messages are"
	case w.Run.Model.Family == asRouted:
		return "By length of the message"
	case c == nil || c.Cap == 0 && c.Messages == 0:
		return "Every message was read whole"
	case c.Messages == 0 && len(w.Windows) > 0:
		return "Every message was read to its end, long ones in windows"
	case c.Messages == 0:
		return "No message was longer than the router reads"
	case c.Over.N == 0:
		return "No labelled message was cut"
	case c.Over.Few:
		return fmt.Sprintf("Only %s cut: too few to rank lengths", plural(c.Over.N, "labelled message was", "labelled messages were"))
	case c.Over.Low > c.Under.High && c.Under.N > 0:
		return "Longer messages fail more" + w.sayWhy(c)
	case c.Over.High < c.Under.Low:
		return "Longer messages fail less, cut as they are"
	}
	return "Cut messages do not clearly fail more than short ones"
}

func (w *Weekly) sayWhy(c *Cut) string {
	switch {
	case c.Test == nil || c.Gap == nil:
		return ""
	case !c.Test.Decided():
		return ", and the cut does not explain it"
	case c.Gap.Cut >= c.Gap.Total:
		return ", and the cut is all of it"
	case c.Gap.Cut*2 >= c.Gap.Total:
		return ", and the cut is most of it"
	case c.Gap.Cut > 0:
		return ", and the cut is part of it"
	}
	return ", though the cut helps"
}

func (w *Weekly) sayCut() string {
	c := w.Cut
	switch {
	case c == nil || c.Messages == 0:
		return ""
	case c.Table == nil:
		return "What the cut cost is not known: nothing was read whole"
	case c.Control.Flips > 0:
		return "The control failed: messages under the cap changed"
	case c.Test.Changed() == 0:
		return "The cut changed nothing"
	case c.Test.Decided() && c.Table.Net() > 0:
		return fmt.Sprintf("The cut cost %s", plural(c.Table.Net(), "message", "messages")) + ", net"
	case c.Test.Decided():
		return fmt.Sprintf("The cut saved %s", plural(-c.Table.Net(), "message", "messages")) + ", net"
	}
	return fmt.Sprintf("The cut cost %s and saved %s: no more than chance", count(c.Table.Cost), count(c.Table.Helped))
}

func (w *Weekly) sayQueues() string {
	worst := -1
	for i, q := range w.Queues {
		if q.Wrong > 0 && (worst < 0 || q.Wrong > w.Queues[worst].Wrong) {
			worst = i
		}
	}
	switch {
	case w.Total.N == 0:
		return "Where the messages went"
	case worst < 0:
		return "Every queue got its messages"
	case len(w.Queues) < 2:
		return "Queues"
	}
	q := w.Queues[worst]
	return fmt.Sprintf("The queue that loses most is %s: %s of its %s", name(q.Name), count(q.Wrong), plural(q.N, "message", "messages"))
}

func upperFirst(s string) string {
	if s == "" || s[0] >= 0x80 {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func (w *Weekly) sayScores() string {
	c := w.Calibration
	switch {
	case c == nil || !c.ECE.Defined():
		return ""
	case c.N < few:
		return "Too few messages to say what a score is worth"
	}
	sum, n := 0.0, 0
	for _, b := range c.Bins {
		sum += float64(b.N) * float64(b.Score-b.Rate)
		n += b.N
	}
	off := bare(c.ECE) + " points off on average"
	switch tilt := sum / float64(n); {
	case c.ECE < 0.03:
		return "Scores mean what they say: " + off
	case tilt > 0.02:
		return "The router is too sure of itself: scores are " + off
	case tilt < -0.02:
		return "The router is surer than it says: scores are " + off
	}
	return "Scores are " + off
}

func (w *Weekly) sayMessages() string {
	switch n := w.CausedN + w.OthersN; {
	case n == 0 && w.SavedN == 0:
		return "No misrouted message to show"
	case w.CausedN > 0:
		return fmt.Sprintf("%s of %s right when read whole", count(w.CausedN), plural(n, "misroute is", "misroutes are"))
	default:
		return upperFirst(plural(n, "misroute", "misroutes")) + ", none of them known to come from the cut"
	}
}

func (w *Weekly) sayRejected() string {
	n := 0
	for _, r := range w.Rejected {
		n += r.N
	}
	if n == 0 {
		return "Every record was read"
	}
	return upperFirst(plural(n, "record was", "records were")) + " rejected"
}
