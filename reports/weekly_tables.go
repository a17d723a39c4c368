package reports

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"misroute/reports/chart"
	"misroute/reports/stats"
	"misroute/reports/table"
)

// The tables of the weekly report. Each is made once and drawn in every form.

func cell(text string) table.Cell { return table.Cell{Text: text} }

// rateCells are the cells wrong, rate and interval of a line.
func rateCells(r Rate) []table.Cell {
	return []table.Cell{{Text: count(r.Wrong), Class: badIf(r.Wrong > 0)}, cell(percent(r.Rate)), cell(r.interval())}
}

func badIf(b bool) string {
	if b {
		return "bad"
	}
	return ""
}

func rowClass(r Rate) string {
	if r.Few {
		return "few"
	}
	return ""
}

// fewMark follows the count of a cell with few messages, where colour must not be the only sign.
const fewMark = "°"

func counted(r Rate) table.Cell {
	if r.Few && r.N > 0 {
		return cell(count(r.N) + fewMark)
	}
	return cell(count(r.N))
}

// unjudgedLengths is the length table of a run without labels: how many messages there are.
func (w *Weekly) unjudgedLengths() *table.Table {
	t := &table.Table{Caption: "Messages by length", Columns: []table.Column{{Head: w.Unit}, {Head: "messages", Align: table.Right}, {In: table.InText}}}
	most := 1
	for _, b := range w.Buckets {
		most = max(most, b.Messages)
	}
	for _, b := range w.Buckets {
		t.AddRow("", cell(b.Label), cell(count(b.Messages)), table.Cell{Text: blocks(float64(b.Messages)/float64(most), 24, false)})
	}
	return t
}

// unjudgedQueues is the queue table of a run without labels: where messages went.
func (w *Weekly) unjudgedQueues() *table.Table {
	t := &table.Table{Caption: "Queues", Columns: []table.Column{{Head: "queue", Max: 40}, {Head: "messages sent there", Align: table.Right}, {Head: "share", Align: table.Right}}}
	n := w.scored()
	for _, q := range w.Queues[:min(len(w.Queues), mostQueueRows)] {
		t.AddRow("", cell(q.Name), cell(count(q.Predicted)), cell(percent(ratio(stats.Ratio{Num: q.Predicted, Den: n}))))
	}
	return t
}

func (w *Weekly) lengthTable() *table.Table {
	if w.Total.N == 0 {
		return w.unjudgedLengths()
	}
	compared, tested := false, false
	for _, b := range w.Buckets {
		compared = compared || b.Whole != nil
		tested = tested || b.P.Defined()
	}
	t := &table.Table{Caption: "Misroutes by message length", Columns: []table.Column{
		{Head: w.Unit}, {Head: "messages", Align: table.Right}, {Head: "wrong", Align: table.Right},
		{Head: "rate", Align: table.Right}, {Head: "95 % interval", Align: table.Right},
	}}
	if compared {
		t.Columns = append(t.Columns, table.Column{Head: "wrong whole", Align: table.Right})
	}
	if tested {
		t.Columns = append(t.Columns, table.Column{Head: "p (Holm)", Align: table.Right, In: table.InHTML | table.InCSV})
	}
	if w.Cost != nil {
		t.Columns = append(t.Columns, table.Column{Head: "cost", Align: table.Right})
	}
	t.Columns = append(t.Columns, table.Column{Head: "", In: table.InText})
	widest := 0.0
	for _, b := range w.Buckets {
		if b.N > 0 {
			widest = max(widest, float64(b.Rate.Rate))
		}
	}
	ruled := w.Cut == nil || w.Cut.Cap == 0 || w.Unit != "tokens"
	for _, b := range w.Buckets {
		if !ruled && (b.Over >= w.Cut.Cap || b.UpTo == 0) {
			words := w.cutWord() + count(w.Cut.Cap)
			if b.Over < w.Cut.Cap {
				words += ", inside of the next line"
			}
			t.AddRule(words, "cutrow")
			ruled = true
		} else if !ruled && b.UpTo > w.Cut.Cap {
			t.AddRule(w.cutWord()+count(w.Cut.Cap)+", inside of the next line", "cutrow")
			ruled = true
		}
		cells := append([]table.Cell{cell(b.Label), counted(b.Rate)}, rateCells(b.Rate)...)
		if compared {
			whole := ""
			if b.Whole != nil {
				whole = count(b.Whole.Wrong)
			}
			cells = append(cells, cell(whole))
		}
		if tested {
			p := ""
			if b.P.Defined() {
				p = significance(float64(b.P), w.options.Alpha)
			}
			cells = append(cells, cell(p))
		}
		if w.Cost != nil {
			cells = append(cells, cell(decimals(b.Cost, 1)))
		}
		bar := ""
		if widest > 0 && b.N > 0 {
			bar = blocks(float64(b.Rate.Rate)/widest, 12, b.Few)
		}
		cells = append(cells, table.Cell{Text: bar, Class: "bar"})
		t.AddRow(rowClass(b.Rate), cells...)
	}
	return t
}

// cutWord says what happens at the cap: windows cut nothing.
func (w *Weekly) cutWord() string {
	if len(w.Windows) > 0 {
		return "in windows past "
	}
	return "cut at "
}

// significance prints a p, or ~ where nothing is told from chance.
func significance(p, alpha float64) string {
	if p >= alpha {
		return "~"
	}
	return pvalue(p)
}

// blocks draws a bar of at most width columns in eighths; a bar of few messages is drawn lighter.
func blocks(share float64, width int, light bool) string {
	eighths := int(share*float64(width)*8 + 0.5)
	if light {
		return strings.Repeat("░", (eighths+4)/8)
	}
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s
}

func (w *Weekly) windowsTable() *table.Table {
	t := &table.Table{Caption: "Misroutes by number of windows", Columns: rateColumns("windows")}
	for _, x := range w.Windows {
		t.AddRow(rowClass(x.Rate), append([]table.Cell{cell(x.Label), counted(x.Rate)}, rateCells(x.Rate)...)...)
	}
	return t
}

func rateColumns(first string) []table.Column {
	return []table.Column{{Head: first}, {Head: "messages", Align: table.Right}, {Head: "wrong", Align: table.Right},
		{Head: "rate", Align: table.Right}, {Head: "95 % interval", Align: table.Right}}
}

func (w *Weekly) lostTable() *table.Table {
	t := &table.Table{Caption: "Misroutes by share of tokens lost", Columns: rateColumns("tokens lost")}
	t.AddRow(rowClass(w.Cut.Under), append([]table.Cell{cell("none"), counted(w.Cut.Under)}, rateCells(w.Cut.Under)...)...)
	for _, x := range w.Cut.ByLost {
		t.AddRow(rowClass(x.Rate), append([]table.Cell{cell(x.Label), counted(x.Rate)}, rateCells(x.Rate)...)...)
	}
	return t
}

// Limits of what a page shows; report.json has the rest.
const (
	mostQueueRows = 300
	mostMatrix    = 30
	mostReasons   = 100
)

func (w *Weekly) queueTable() *table.Table {
	if w.Total.N == 0 {
		return w.unjudgedQueues()
	}
	wide := table.InHTML | table.InCSV | table.InMarkdown
	t := &table.Table{Caption: "Queues", Columns: []table.Column{
		{Head: "queue", Max: 28}, {Head: "messages", Align: table.Right}, {Head: "wrong", Align: table.Right},
		{In: table.InHTML}, {Head: "rate", Align: table.Right, In: wide}, {Head: "95 % interval", Align: table.Right, In: wide},
		{Head: "precision", Align: table.Right}, {Head: "recall", Align: table.Right}, {Head: "F1", Align: table.Right, In: table.InHTML | table.InCSV},
	}}
	if w.Cost != nil {
		t.Columns = append(t.Columns, table.Column{Head: "cost", Align: table.Right})
	}
	t.Columns = append(t.Columns, table.Column{Head: "most often went to"})
	highest := 0.0
	for _, q := range w.Queues {
		if q.N > 0 {
			highest = max(highest, float64(q.Rate.Rate))
		}
	}
	for _, q := range w.Queues[:min(len(w.Queues), mostQueueRows)] {
		label := q.Name
		note := ""
		if !q.Known {
			note = "(unknown to the router)"
		}
		mostly := ""
		if q.MostlyN > 0 {
			mostly = fmt.Sprintf("%s (%s)", q.Mostly, count(q.MostlyN))
		}
		var bar table.Cell
		if highest > 0 && q.N > 0 {
			bar.Mark = chart.Bar(float64(q.Rate.Rate) / highest)
		}
		rates := rateCells(q.Rate)
		cells := append([]table.Cell{{Text: label, Note: note}, counted(q.Rate), rates[0], bar}, rates[1:]...)
		cells = append(cells, cell(decimals(q.Precision, 3)), cell(decimals(q.Recall, 3)), cell(decimals(q.F1, 3)))
		if w.Cost != nil {
			cells = append(cells, cell(decimals(q.Cost, 1)))
		}
		t.AddRow(rowClass(q.Rate), append(cells, cell(mostly))...)
	}
	return t
}

// mostPairs is as many lines as somebody reads of the ways mail goes wrong.
const mostPairs = 30

func (w *Weekly) pairTable(most int) *table.Table {
	t := &table.Table{Caption: "Ways mail goes wrong", Columns: []table.Column{
		{Head: "belongs to", Max: 24}, {Head: "went to", Max: 24}, {Head: "messages", Align: table.Right},
	}}
	if w.Cost != nil {
		t.Columns = append(t.Columns, table.Column{Head: "cost", Align: table.Right})
	}
	whole := w.Cut != nil && w.Cut.Table != nil
	if w.Cut != nil {
		t.Columns = append(t.Columns, table.Column{Head: "cut", Align: table.Right})
	}
	if whole {
		t.Columns = append(t.Columns, table.Column{Head: "right whole", Align: table.Right}, table.Column{Head: "new whole", Align: table.Right})
	}
	for _, p := range w.Pairs[:min(len(w.Pairs), most)] {
		cells := []table.Cell{cell(p.From), cell(p.To), cell(count(p.N))}
		if w.Cost != nil {
			cells = append(cells, cell(decimals(Number(p.Cost), 1)))
		}
		if w.Cut != nil {
			cells = append(cells, cell(count(p.Over)))
		}
		if whole {
			cells = append(cells, table.Cell{Text: count(p.Right), Class: hotIf(p.Right > 0)}, cell(count(p.Added)))
		}
		t.AddRow("", cells...)
	}
	return t
}

// confusionTable has the labels in rows and the predictions in columns; many queues are numbered
// in the head, where their names would not fit.
func (w *Weekly) confusionTable() *table.Table {
	t := &table.Table{Caption: "Confusion matrix: rows are the true queue, columns the queue a message went to", Columns: []table.Column{{Head: "belongs to"}}}
	const named = 8
	worst := 0
	for i, q := range w.Queues {
		head := table.Fit(table.Clean(q.Name), 24)
		if len(w.Queues) > named {
			head = strconv.Itoa(i + 1)
		}
		t.Columns = append(t.Columns, table.Column{Head: head})
		for j, c := range w.Confusion[i] {
			if i != j {
				worst = max(worst, c)
			}
		}
	}
	for i, q := range w.Queues {
		label := q.Name
		if len(w.Queues) > named {
			label = strconv.Itoa(i+1) + " " + label
		}
		cells := []table.Cell{cell(label)}
		for j, c := range w.Confusion[i] {
			x := cell(count(c))
			switch {
			case i == j:
				x.Class = "right"
			case c > 0:
				x.Class = fmt.Sprintf("h%d", 1+min(2, 3*c/(worst+1)))
			default:
				x = table.Cell{Text: "·", Class: "few"}
			}
			cells = append(cells, x)
		}
		t.AddRow("", cells...)
	}
	return t
}

// exampleTable lists messages with the ruler of each.
func (w *Weekly) exampleTable(caption string, list []Example) *table.Table {
	t := &table.Table{Caption: caption, Columns: []table.Column{
		{Head: "message"}, {Head: "belongs to"}, {Head: "went to"}, {Head: w.Unit, Align: table.Right},
		{Head: "where the cut fell", In: table.InHTML}, {Head: "score", Align: table.Right}, {Head: "read whole"},
	}}
	longest, limit := 1, 0
	if w.Cut != nil {
		limit = w.Cut.Cap
	}
	for _, e := range list {
		longest = max(longest, e.Tokens)
	}
	if limit > 0 {
		longest = min(longest, 6*limit) // one endless message must not shrink all others to dots
	}
	for _, e := range list {
		id := strings.Trim(e.MessageID, "<>")
		if id == "" {
			id = fmt.Sprintf("%s record %d", e.Source, e.RecordNo)
		}
		whole := table.Cell{Text: "not cut", Tag: "mod"}
		switch {
		case e.Kept < e.Tokens && e.Whole == "":
			whole.Text = "not read"
		case e.Kept < e.Tokens && e.Whole == e.Label:
			whole = table.Cell{Text: "→ " + e.Whole, Tag: "cutt"}
		case e.Kept < e.Tokens && e.Whole == e.Prediction:
			whole.Text = "stays wrong"
		case e.Kept < e.Tokens:
			whole.Text = "→ " + e.Whole
		}
		went := ""
		if e.Prediction != e.Label {
			went = "bad"
		}
		note := ""
		if e.Zone != "" && e.Zone != "own" {
			note = "decided in the " + e.Zone
		}
		t.AddRow("", table.Cell{Text: table.Fit(table.Clean(id), 64), Note: table.Fit(table.Clean(e.Subject), 80)}, cell(e.Label), table.Cell{Text: e.Prediction, Class: went},
			cell(count(e.Tokens)), table.Cell{Mark: ruler(e, w.Unit, longest), Note: note}, cell(decimals(e.Score, 2)), whole)
	}
	return t
}

func ruler(e Example, unit string, longest int) template.HTML {
	title := fmt.Sprintf("%s %s, all read", count(e.Tokens), unit)
	read := []chart.Span{{From: 0, To: e.Tokens}}
	if e.Kept < e.Tokens {
		title = fmt.Sprintf("%s %s, %s read", count(e.Tokens), unit, count(e.Kept))
		read = read[:0]
		for _, r := range e.Ranges {
			read = append(read, chart.Span(r))
		}
	}
	var decisive *chart.Span
	if e.Decisive != nil {
		decisive = &chart.Span{From: e.Decisive.From, To: e.Decisive.To}
		title += ", decisive sentence at " + count(e.Decisive.From)
	}
	return chart.Ruler(title, e.Tokens, longest, read, decisive)
}

func hotIf(b bool) string {
	if b {
		return "hot"
	}
	return ""
}

func (w *Weekly) counterfactualTable() *table.Table {
	x := w.Cut.Table
	t := &table.Table{Caption: "Cut against whole", Columns: []table.Column{
		{Head: ""}, {Head: "right whole", Align: table.Right}, {Head: "wrong whole", Align: table.Right},
	}}
	t.AddRow("", cell("right cut"), cell(count(x.BothRight)), cell(count(x.Helped)))
	t.AddRow("", cell("wrong cut"), table.Cell{Text: count(x.Cost), Class: hotIf(x.Cost > 0)}, cell(count(x.BothWrong)))
	return t
}

func (w *Weekly) abstainTable() *table.Table {
	t := &table.Table{Caption: "Messages routed and misroutes among them, by threshold", Columns: []table.Column{
		{Head: "threshold"}, {Head: "routed", Align: table.Right}, {Head: "share", Align: table.Right}, {Head: "wrong", Align: table.Right},
		{Head: "rate", Align: table.Right}, {Head: "95 % interval", Align: table.Right},
	}}
	add := func(p CoverageAt, class string) {
		cells := append([]table.Cell{cell(fmt.Sprintf("%g", p.Threshold)), counted(p.Rate), cell(percent(p.Coverage))}, rateCells(p.Rate)...)
		t.AddRow(strings.TrimSpace(class+" "+rowClass(p.Rate)), cells...)
	}
	asked := w.Abstain.Asked
	for _, p := range w.Abstain.Points {
		if asked != nil && asked.Threshold <= p.Threshold {
			add(*asked, "now")
			same := asked.Threshold == p.Threshold
			asked = nil
			if same {
				continue
			}
		}
		add(p, "")
	}
	if asked != nil {
		add(*asked, "now")
	}
	return t
}

func reasonTable(caption string, list []Reason) *table.Table {
	t := &table.Table{Caption: caption, Columns: []table.Column{
		{Head: "reason"}, {Head: "records", Align: table.Right}, {Head: "first"}, {Head: "detail", In: table.InHTML | table.InCSV},
	}}
	for _, r := range list {
		code := r.Code
		if r.Stage != "" {
			code = r.Stage + ": " + r.Code
		}
		t.AddRow("", cell(code), cell(count(r.N)), cell(r.Example), cell(r.Detail))
	}
	return t
}

// fact is one line of the run facts.
type fact struct{ Name, Value string }

func (w *Weekly) facts() []fact {
	run := w.Run
	facts := []fact{{"Ledger", w.ledger()}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	var inputs []string
	for _, in := range run.Inputs {
		inputs = append(inputs, fmt.Sprintf("%s (%s, %s bytes, sha256 %s)", table.Clean(in.Name), in.Format, count(in.Bytes), short(in.SHA256)))
	}
	add("Input", clipList(inputs, 12))
	add("Router", w.router())
	if run.Model.Tokenizer != "" {
		add("Tokenizer", run.Model.Tokenizer+", sha256 "+short(run.Model.TokenizerSHA256))
	}
	add("Cap", w.capFact())
	if run.Kernel != "" {
		add("Kernel", strings.TrimSuffix(run.Kernel+", "+run.Precision, ", "))
	}
	tests := fmt.Sprintf("%s; intervals Wilson and Bonett–Price, 95 %%; seed %d", plural(len(w.Tests), "test", "tests"), w.Seeds["report"])
	if w.Threads != nil {
		tests += fmt.Sprintf("; %s in %s", plural(w.Total.N, "message", "messages"), plural(w.Threads.Threads, "thread", "threads"))
	}
	add("Statistics", tests)
	if m := w.Measured; m != nil {
		add("Measured", fmt.Sprintf("%s s, %s messages/s, %s; %s ms a message scored; %sB peak", decimals(Number(m.Seconds), 1), decimals(Number(m.MessagesPerSecond), 0), plural(m.Workers, "worker", "workers"), decimals(Number(m.MeanScoreMillis), 2), magnitude(float64(m.PeakBytes))))
	}
	add("Run", run.RunID)
	add("misroute", run.ToolVersion)
	return facts
}

func short(sha string) string {
	if len(sha) <= 12 {
		return sha
	}
	return sha[:12]
}

func clipList(list []string, most int) string {
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %s more", count(len(list)-most)))
	}
	return strings.Join(list, "; ")
}

func (w *Weekly) router() string {
	m := w.Run.Model
	s := table.Clean(m.Name)
	if s == "" {
		s = m.Family
	} else if m.Family != "" && m.Family != m.Name {
		s += ", " + m.Family
	}
	if m.Layers > 0 {
		s += fmt.Sprintf(", %d × %d", m.Layers, m.Hidden)
	}
	if m.Parameters > 0 {
		s += ", " + magnitude(float64(m.Parameters)) + " parameters"
	}
	if m.SHA256 != "" {
		s += ", sha256 " + short(m.SHA256)
	}
	if m.TrainedCap > 0 {
		s += fmt.Sprintf(", trained at cap %s", count(m.TrainedCap))
	}
	return strings.TrimSpace(s)
}

func (w *Weekly) capFact() string {
	run := w.Run
	if run.Model.Family == asRouted {
		return ""
	}
	if run.Cap == 0 {
		return "none"
	}
	s := fmt.Sprintf("%s tokens, %s", count(run.Cap), run.Strategy)
	if run.Strategy == "windows" {
		s += fmt.Sprintf(" with overlap %s, aggregate %s", count(run.Overlap), run.Aggregate)
	}
	if run.Reference != "" {
		s += "; whole messages by " + run.Reference
	}
	return s
}

// ledger is the balance of the run in one line.
func (w *Weekly) ledger() string {
	l := w.Run.Ledger
	s := fmt.Sprintf("%s read = %s scored", count(l.Read), count(l.Scored))
	for _, part := range []struct {
		n    int64
		name string
	}{{l.Duplicate, verb(int(l.Duplicate), "duplicate", "duplicates")}, {l.Filtered, "filtered"}, {l.Rejected, "rejected"}} {
		if part.n > 0 {
			s += fmt.Sprintf(" + %s %s", count(part.n), part.name)
		}
	}
	s += fmt.Sprintf("; %s labelled", count(l.Labelled))
	if l.Unlabelled > 0 {
		s += fmt.Sprintf(", %s unlabelled", count(l.Unlabelled))
	}
	if l.Unroutable > 0 {
		s += fmt.Sprintf(", %s with a label the router does not know", count(l.Unroutable))
	}
	return s
}
