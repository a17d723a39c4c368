package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/attention"
	"misroute/attention/train"
	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/object"
	"misroute/reports/cohort"
	"misroute/reports/stats"
	"misroute/reports/table"
	"misroute/tokenize"
)

// ladderOptions is everything `misroute ladder` was asked for.
type ladderOptions struct {
	train  trainOptions // how the mail is read and the routers are trained
	judge  string       // ISO week among the exports, or an export of its own
	rungs  []string
	cap    int
	format string
	plot   string // file to draw into; "": none
}

// LadderCommand trains the same router with ever more of attention in it.
func LadderCommand() *cli.Command {
	rungs := append(attention.Mixes(), routerTransformer)
	return &cli.Command{
		Name:      "ladder",
		Usage:     "train the same router with ever more of attention in it, and compare",
		ArgsUsage: "EXPORT...",
		Description: "Every rung learns from the same mail, with the same vocabulary, for as many epochs; only how the words\n" +
			"of a message hear of each other differs:\n" +
			"  words                not at all\n" +
			"  average              the mean of all, everyone with an equal say\n" +
			"  similarity           raw dot products: a word listens to what resembles it\n" +
			"  recurrent            a GRU: a note handed down the line, as it arrives at the end\n" +
			"  attention            learned query, key and value; one head, blind for order\n" +
			"  attention+positions  the same, and every word knows where it stands\n" +
			"  transformer          several heads and layers, with feed-forward parts between; with --masked-epochs\n" +
			"                       it guesses hidden words of the mail first, while the others have labels alone\n\n" +
			"Examples:\n" +
			"  misroute ladder --judge 2026-W46 inbox-2026-W4*.mbox\n" +
			"  misroute ladder --judge 2026-W46 --plot ladder.svg inbox-2026-W4*.mbox\n" +
			"  misroute ladder --judge week.mbox --group-header X-Crumb-Confounder --rungs words,attention train.mbox.gz\n\n" +
			"Exit codes: 0 done; 2 unusable input; 130 interrupted.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "judge", Usage: "ISO `WEEK` of the exports to judge by (2026-W46), or an export of its own"},
			&cli.StringFlag{Name: "rungs", Value: strings.Join(rungs, ","), Usage: "which ones, in this order"},
			&cli.StringFlag{Name: "group-header", Usage: "count misroutes by the value of header `NAME` too"},
			&cli.IntFlag{Name: "cap", Value: evaluation.DefaultCap, Usage: "most tokens read of a message"},
			&cli.IntFlag{Name: "epochs", Value: 6, Usage: "passes over the mail"},
			&cli.IntFlag{Name: "masked-epochs", Usage: "the transformer first learns the language: `N` passes in which hidden words are guessed"},
			&cli.IntFlag{Name: "batch", Value: 4, Usage: "messages a step"},
			&cli.Float64Flag{Name: "rate", Value: 1e-3, Usage: "peak learning rate"},
			&cli.IntFlag{Name: "hidden", Value: 64, Usage: "channels"},
			&cli.IntFlag{Name: "layers", Value: 3, Usage: "layers of the transformer"},
			&cli.IntFlag{Name: "heads", Value: 4, Usage: "heads of the transformer"},
			&cli.IntFlag{Name: "vocab", Value: 4000, Usage: "tokens of the learned vocabulary"},
			&cli.IntFlag{Name: "drop-rare", Usage: "leave out queues with fewer than `N` messages"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "seed of everything random"},
			&cli.IntFlag{Name: "workers", Usage: "goroutines", DefaultText: "one a core"},
			&cli.StringFlag{Name: "plot", Usage: "draw the rungs into `FILE` (.svg or .png) too"},
			&cli.StringFlag{Name: "as", Value: "text", Usage: "form of the table: text, markdown, csv, html"},
			progressFlag(),
		}, evaluation.MailFlags()),
		Action: func(c *cli.Context) error {
			o, err := bindLadder(c)
			if err != nil {
				return err
			}
			return runLadder(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

func bindLadder(c *cli.Context) (ladderOptions, error) {
	o := ladderOptions{
		judge: c.String("judge"), rungs: strings.Split(c.String("rungs"), ","), cap: c.Int("cap"), format: c.String("as"), plot: c.String("plot"),
		train: trainOptions{
			exports: exportsOf(c), subject: !c.Bool("no-subject"), dropRare: c.Int("drop-rare"), groupHeader: c.String("group-header"),
			router: routerTransformer, out: "-", seed: c.Uint64("seed"), maskedEpochs: c.Int("masked-epochs"), workers: c.Int("workers"), progress: c.String("progress"),
			words:      train.BagOptions{Grams: 1, Cost: 1, Loss: train.LossBoth},
			vocabulary: tokenize.LearnOptions{VocabSize: c.Int("vocab"), Lowercase: true},
			shape:      encoderShape{c.Int("layers"), c.Int("heads"), c.Int("hidden"), c.Int("cap")},
			fit: train.Options{Epochs: c.Int("epochs"), Batch: c.Int("batch"), Rate: c.Float64("rate"), WordDrop: 0.02,
				LayerRate: 1, Average: 0.99, MaxTokens: c.Int("cap"), Seed: c.Uint64("seed")},
		},
	}
	if o.train.workers == 0 {
		o.train.workers = runtime.GOMAXPROCS(0)
	}
	o.train.fit.Workers = o.train.workers
	if o.judge == "" {
		return o, usagef("ladder: no --judge: which week should the rungs be judged by?")
	}
	if forms := []string{"text", "markdown", "csv", "html"}; !slices.Contains(forms, o.format) {
		return o, usagef("--as %s: want one of %s", o.format, strings.Join(forms, ", "))
	}
	if err := checkPlot(o.plot); err != nil {
		return o, err
	}
	known := append(attention.Mixes(), routerTransformer)
	for _, r := range o.rungs {
		if !slices.Contains(known, r) {
			return o, usagef("--rungs %s: known are %s", r, strings.Join(known, ", "))
		}
	}
	if err := o.train.check(); err != nil {
		return o, err
	}
	var err error
	if o.train.mail, o.train.text, err = evaluation.MailOptions(c); err != nil {
		return o, usageError(err)
	}
	return o, nil
}

// climbed is what one rung came to.
type climbed struct {
	name         string
	wrong        []bool // of each judged message
	parameters   int64
	cells, flops int64 // of a message as long as the cap
	took         time.Duration
}

// ladder is the work of the verb.
type ladder struct {
	trainer
	o      *ladderOptions
	judged []train.Example
	groups []string // of the judged messages
	rungs  []climbed
}

func runLadder(ctx context.Context, o ladderOptions, stdout, stderr io.Writer) error {
	l := &ladder{o: &o, trainer: trainer{o: &o.train, stderr: stderr, began: time.Now()}}
	if err := l.prepareLadder(ctx); err != nil {
		return err
	}
	for _, name := range o.rungs {
		if err := l.climb(ctx, name); err != nil {
			return err
		}
	}
	if o.plot != "" {
		if err := plotLadder(o.plot, filepath.Base(o.judge), l.rungs); err != nil {
			return err
		}
	}
	return l.print(stdout)
}

var isoWeek = regexp.MustCompile(`^\d{4}-W\d{2}$`)

// prepareLadder reads the mail and splits the judged week from what is learned from.
func (l *ladder) prepareLadder(ctx context.Context) error {
	week := isoWeek.MatchString(l.o.judge) && !exists(l.o.judge)
	var judged []lesson
	err := l.stage(func(update func(int64, int64, string)) (err error) {
		if l.corpus, err = readCorpus(ctx, &l.o.train, update); err != nil || week {
			return err
		}
		if _, err := os.Stat(l.o.judge); err != nil && !object.IsAddress(l.o.judge) {
			return usagef("--judge %s is neither a week such as 2026-W46 nor an export: %w", l.o.judge, err)
		}
		o := l.o.train
		o.exports, o.dropRare = []string{l.o.judge}, 0
		c, err := readLabelled(ctx, &o, update)
		if err == nil {
			judged = c.items
		}
		return err
	})
	if err != nil {
		return err
	}
	if week {
		l.corpus.items = slices.DeleteFunc(l.corpus.items, func(m lesson) bool {
			year, n := m.date.ISOWeek()
			is := !m.date.IsZero() && fmt.Sprintf("%d-W%02d", year, n) == l.o.judge
			if is {
				judged = append(judged, m)
			}
			return is
		})
	}
	if err := l.learnVocabulary(); err != nil {
		return err
	}
	l.training = l.corpus.encode(l.tokens, l.o.train.workers)
	unknown := l.judgeBy(judged)
	if len(l.judged) == 0 {
		return usagef("--judge %s: no labelled messages of known queues in it", l.o.judge)
	}
	l.say("learning from %s messages, judging %s of %s%s", group(int64(len(l.training))), group(int64(len(l.judged))), l.o.judge, unknown)
	return nil
}

// judgeBy encodes the judged messages and says how many belong to queues nobody learned.
func (l *ladder) judgeBy(judged []lesson) string {
	c := corpus{}
	unknown := 0
	for _, m := range judged {
		label, ok := slices.BinarySearch(l.corpus.queues, m.queue)
		if !ok {
			unknown++
			continue
		}
		m.label = int32(label)
		c.items = append(c.items, m)
		l.groups = append(l.groups, m.group)
	}
	l.judged = c.encode(l.tokens, l.o.train.workers)
	if unknown == 0 {
		return ""
	}
	return fmt.Sprintf("; %s more belong to queues without training mail", group(int64(unknown)))
}

// rungNetwork is what the rungs have in common.
type rungNetwork interface {
	Fit(ctx context.Context, training, held []train.Example, o train.Options, from *train.State) (train.Judgement, error)
	Model() (attention.Model, error)
}

// climb trains one rung and judges it.
func (l *ladder) climb(ctx context.Context, name string) error {
	began := time.Now()
	network, err := l.network(name)
	if err != nil {
		return usageError(err)
	}
	mask, _ := l.maskID() // a learned vocabulary has one
	if e, ok := network.(*train.Encoder); ok && l.o.train.maskedEpochs > 0 {
		err = l.learnLanguage(ctx, e, mask, nil, nil)
		if err != nil && !errors.Is(err, train.ErrNotANumber) {
			return err
		}
	}
	err = l.stage(func(update func(int64, int64, string)) error {
		o := l.o.train.fit
		o.UnknownID = mask
		o.Report = func(e train.Event) {
			update(e.Tokens, e.Total, fmt.Sprintf("%s, epoch %d of %d, loss %.3f", name, e.Epoch, e.Epochs, e.Loss))
		}
		_, err := network.Fit(ctx, l.training, nil, o, nil)
		return err
	})
	if err != nil && !errors.Is(err, train.ErrNotANumber) {
		return err
	}
	m, err := network.Model()
	if err != nil {
		return err
	}
	read := train.Cut(l.judged, l.o.cap)
	logits, err := train.Logits(m, read, l.o.train.workers)
	if err != nil {
		return err
	}
	rung := climbed{name: name, parameters: m.Parameters(), took: time.Since(began)}
	rung.cells, rung.flops = m.Cost(l.o.cap)
	misroutes := 0
	for i, row := range logits {
		wrong := slices.Index(row, slices.Max(row)) != int(l.judged[i].Label)
		rung.wrong = append(rung.wrong, wrong)
		if wrong {
			misroutes++
		}
	}
	l.say("%s: %d of %d misrouted, %s", name, misroutes, len(l.judged), seconds(began))
	l.rungs = append(l.rungs, rung)
	return nil
}

// network draws the rung.
func (l *ladder) network(name string) (rungNetwork, error) {
	if name == routerTransformer {
		return l.newEncoder()
	}
	s := l.o.train.shape
	return train.NewMixer(attention.Config{
		Labels: l.corpus.queues, Hidden: s.hidden, Intermediate: 4 * s.hidden, VocabSize: int(l.tokens.MaxID()) + 1,
		Positions: s.positions, NormEps: 1e-12, TrainedCap: l.o.cap,
	}, name, l.o.train.seed)
}

// print shows the rungs side by side: overall and by length, then by group.
func (l *ladder) print(w io.Writer) error {
	buckets, err := cohort.NewBuckets([]int{l.o.cap / 4, l.o.cap / 2, l.o.cap})
	if err != nil {
		return err
	}
	of := make([]int, len(l.judged))
	names := make([]string, buckets.Len())
	for i := range names {
		names[i] = buckets.Label(i)
	}
	for i, m := range l.judged {
		of[i] = buckets.Of(len(m.IDs))
	}
	if err := l.draw(w, l.overall(names, of)); err != nil {
		return err
	}
	if l.o.train.groupHeader == "" {
		return nil
	}
	var groups []string
	for _, g := range l.groups {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	for i, g := range l.groups {
		of[i] = slices.Index(groups, g)
	}
	t := &table.Table{Caption: "Misroutes by " + l.o.train.groupHeader, Columns: []table.Column{{Head: l.o.train.groupHeader}, {Head: "messages", Align: table.Right}}}
	for _, r := range l.rungs {
		t.Columns = append(t.Columns, table.Column{Head: r.name, Align: table.Right})
	}
	for g, name := range groups {
		row := []string{name, ""}
		for _, r := range l.rungs {
			wrong, n := count(r.wrong, of, g)
			row[1] = fmt.Sprint(n)
			row = append(row, fmt.Sprint(wrong))
		}
		t.Add(row...)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return l.draw(w, t)
}

// overall is the table of rungs; of is the length bucket of each judged message.
func (l *ladder) overall(buckets []string, of []int) *table.Table {
	right := func(head string) table.Column { return table.Column{Head: head, Align: table.Right} }
	t := &table.Table{Caption: "Misroutes of " + l.o.judge, Columns: []table.Column{{Head: "mixing"}, right("misroutes"), right("rate"), {Head: "95 % interval"}}}
	for _, b := range buckets {
		t.Columns = append(t.Columns, right(b))
	}
	t.Columns = append(t.Columns, right("parameters"), right("cells"), right("MFLOP"), right("seconds"), table.Column{In: table.InText | table.InHTML})
	all := make([]int, len(of))
	for _, r := range l.rungs {
		wrong, n := count(r.wrong, all, 0)
		rate, i := float64(wrong)/float64(n), stats.Wilson(wrong, n)
		row := []string{r.name, fmt.Sprintf("%d of %d", wrong, n), fmt.Sprintf("%.1f %%", 100*rate), fmt.Sprintf("%.1f to %.1f", 100*i.Low, 100*i.High)}
		for b := range buckets {
			wrong, n := count(r.wrong, of, b)
			row = append(row, fmt.Sprintf("%d of %d", wrong, n))
		}
		bar := strings.Repeat("█", int(60*rate+0.5))
		t.Add(append(row, group(r.parameters), group(r.cells), fmt.Sprintf("%.1f", float64(r.flops)/1e6), fmt.Sprintf("%.0f", r.took.Seconds()), bar)...)
	}
	return t
}

// count is how many of a part's messages are wrong, and how many there are.
func count(wrong []bool, of []int, part int) (k, n int) {
	for i, w := range wrong {
		if of[i] == part {
			n++
			if w {
				k++
			}
		}
	}
	return k, n
}

func (l *ladder) draw(w io.Writer, t *table.Table) error {
	switch l.o.format {
	case "markdown":
		return t.Markdown(w)
	case "csv":
		return t.CSV(w)
	case "html":
		return t.HTML(w)
	}
	return t.Text(w, table.TextOptions{})
}
