package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/attention/train"
	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/mail"
	"misroute/pipeline/text"
	"misroute/tokenize"
)

// Routers that `misroute train` can make.
const (
	routerWords       = "words"
	routerTransformer = "transformer"
	routerWideDeep    = "wide-deep"
)

// trainOptions is everything `misroute train` was asked for.
type trainOptions struct {
	exports  []string
	mail     mail.Options
	text     text.Options
	subject  bool
	dropRare int
	// groupHeader names a header whose values are groups of messages (the ladder's confounders).
	groupHeader string

	router   string
	out      string
	force    bool
	heldOut  float64
	seed     uint64
	workers  int
	progress string

	vocabulary tokenize.LearnOptions
	words      train.BagOptions
	shape      encoderShape
	fit        train.Options
	resume     bool
	from       string // folder to fine-tune
	top        int    // its layers to train; -1: all
	// maskedEpochs is how often the mail is read for its language alone, before the labels are learned.
	maskedEpochs int
	byMail       bool // maskedEpochs is languageEpochs of the mail
	folds        int  // judge by so many folds and write nothing
}

// encoderShape is the size of a transformer.
type encoderShape struct{ layers, heads, hidden, positions int }

// TrainCommand learns a router from labelled mail.
func TrainCommand() *cli.Command {
	return &cli.Command{
		Name:      "train",
		Usage:     "learn a router from labelled exports",
		ArgsUsage: "EXPORT...",
		Description: "Reads the same exports as eval, learns a vocabulary and a router from their labels, and writes a model\n" +
			"folder for eval --model. A part of the mail, the newest threads, is held out to judge by.\n\n" +
			"Routers:\n" +
			"  words        every word and pair of words has one fixed vector, whatever stands around it, and the\n" +
			"               message is their sum. Learned in seconds, reads any length: the baseline to beat\n" +
			"  transformer  a small BERT from nothing: attention, positions, layers. Opens in Python as\n" +
			"               BertForSequenceClassification. It knows no language yet: before it sees a label it guesses\n" +
			"               hidden words of the mail (--masked-epochs), which is most of what few labels lack\n" +
			"  wide-deep    both: the words of the whole message, and a transformer on its first --cap tokens, add up.\n" +
			"               Evaluate it with --cap none: it cuts for its deep part itself\n\n" +
			"Examples:\n" +
			"  misroute train --out models/words inbox-2026-W4*.mbox\n" +
			"  misroute train --labels labels.csv --out models/words inbox.mbox.gz\n" +
			"  misroute train --router transformer --out models/small inbox-2026-W4*.mbox\n" +
			"  misroute train --folds 5 tickets.csv.gz\n" +
			"  misroute train --from models/minilm --out models/tuned inbox-2026-W4*.mbox\n\n" +
			"Exit codes: 0 done; 1 the loss is no number any more (the last good model is kept); 2 unusable input;\n" +
			"130 interrupted (a transformer goes on with --resume).",
		Flags: slices.Concat(trainFlags(), evaluation.MailFlags()),
		Action: func(c *cli.Context) error {
			o, err := bindTrain(c)
			if err != nil {
				return err
			}
			if o.folds > 0 {
				return runFolds(c.Context, o, c.App.Writer, c.App.ErrWriter)
			}
			return runTrain(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

func trainFlags() []cli.Flag {
	const words, deep = "Router of words", "Transformer"
	return []cli.Flag{
		&cli.StringFlag{Name: "router", Value: routerWords, Usage: "what to learn: words, transformer, wide-deep"},
		&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "model folder `DIR` to write"},
		&cli.BoolFlag{Name: "force", Usage: "replace the model in --out"},
		&cli.Float64Flag{Name: "held-out", Value: 0.1, Usage: "`SHARE` of the messages to judge by: whole threads, the newest first; 0: none"},
		&cli.IntFlag{Name: "folds", Usage: "judge the router of words by cross-validation in `N` folds of whole threads, and write nothing"},
		&cli.IntFlag{Name: "drop-rare", Usage: "leave out queues with fewer than `N` messages"},
		&cli.BoolFlag{Name: "balance", Usage: "every queue counts the same, however rare"},
		&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "seed of everything random"},
		&cli.IntFlag{Name: "workers", Usage: "goroutines. A transformer's last bits depend on their number", DefaultText: "one a core"},
		&cli.IntFlag{Name: "vocab", Usage: "tokens of the learned vocabulary", DefaultText: "30,000 for words, 8,000 for a transformer"},
		&cli.BoolFlag{Name: "cased", Usage: "keep upper and lower case, and accents, apart"},
		progressFlag(),
		&cli.IntFlag{Name: "ngrams", Category: words, Value: 2, Usage: "longest run of words that has a vector of its own"},
		&cli.IntFlag{Name: "opening", Category: words, Usage: "the first `N` words, the subject's among them, count once more on their own"},
		&cli.IntFlag{Name: "min-messages", Category: words, Value: 2, Usage: "a word must be in `N` messages"},
		&cli.IntFlag{Name: "max-features", Category: words, Value: 1_000_000, Usage: "keep the `N` most frequent words and runs"},
		&cli.StringFlag{Name: "loss", Category: words, Value: train.LossBoth, Usage: "hinge (each queue against the rest), softmax (cross-entropy over all), or both: the sum of the two"},
		&cli.Float64Flag{Name: "cost", Category: words, Value: 1, Usage: "of an error, against the size of the vectors"},
		&cli.BoolFlag{Name: "mean", Category: words, Usage: "plain mean of the vectors: no tf-idf weights, no unit length"},
		&cli.IntFlag{Name: "layers", Category: deep, Value: 2, Usage: "encoder layers"},
		&cli.IntFlag{Name: "heads", Category: deep, Value: 4, Usage: "attention heads"},
		&cli.IntFlag{Name: "hidden", Category: deep, Value: 128, Usage: "channels"},
		&cli.IntFlag{Name: "positions", Category: deep, Value: 512, Usage: "most tokens of a message"},
		&cli.IntFlag{Name: "cap", Category: deep, Usage: "most tokens read of a training message", DefaultText: "all positions"},
		&cli.IntFlag{Name: "epochs", Category: deep, Usage: "passes over the mail", DefaultText: "20, with --from 4"},
		&cli.IntFlag{Name: "masked-epochs", Category: deep, Usage: "first learn the language: `N` passes in which hidden words are guessed, labels unseen", DefaultText: "2, up to 12 for little mail, with --from none"},
		&cli.IntFlag{Name: "batch", Category: deep, Usage: "messages a step", DefaultText: "8, with --from 16"},
		&cli.Float64Flag{Name: "rate", Category: deep, Usage: "peak learning rate", DefaultText: "7e-4, with --from 5e-5"},
		&cli.Float64Flag{Name: "warm-up", Category: deep, Value: 0.1, Usage: "share of the steps in which the rate rises"},
		&cli.Float64Flag{Name: "decay", Category: deep, Value: 0.01, Usage: "weight decay"},
		&cli.Float64Flag{Name: "clip", Category: deep, Value: 1, Usage: "longest gradient"},
		&cli.Float64Flag{Name: "dropout", Category: deep, Value: 0.1, Usage: "share of activations dropped"},
		&cli.Float64Flag{Name: "word-dropout", Category: deep, Value: 0.1, Usage: "share of tokens made unknown while training"},
		&cli.Float64Flag{Name: "smoothing", Category: deep, Value: 0.05, Usage: "label smoothing"},
		&cli.Float64Flag{Name: "average", Category: deep, Value: 0.99, Usage: "running mean of the parameters, decay a step; 0: none"},
		&cli.IntFlag{Name: "patience", Category: deep, Value: 5, Usage: "stop after `N` epochs without a better held-out result; 0: never"},
		&cli.BoolFlag{Name: "resume", Category: deep, Usage: "go on with the interrupted training of --out"},
		&cli.StringFlag{Name: "from", Category: deep, Usage: "fine-tune the model folder `DIR` (BERT, DistilBERT, RoBERTa) with a new head; with --router wide-deep as its deep part"},
		&cli.IntFlag{Name: "top", Category: deep, Value: -1, Usage: "with --from: train the top `N` layers and the head only", DefaultText: "all"},
		&cli.Float64Flag{Name: "layer-rate", Category: deep, Value: 1, Usage: "rate of a layer as a share of the one above it"},
	}
}

func bindTrain(c *cli.Context) (trainOptions, error) {
	o := trainOptions{
		exports: exportsOf(c), subject: !c.Bool("no-subject"), dropRare: c.Int("drop-rare"),
		router: c.String("router"), out: c.String("out"), force: c.Bool("force"), heldOut: c.Float64("held-out"),
		seed: c.Uint64("seed"), workers: c.Int("workers"), progress: c.String("progress"),
		vocabulary: tokenize.LearnOptions{VocabSize: c.Int("vocab"), Lowercase: !c.Bool("cased")},
		words: train.BagOptions{
			Grams: c.Int("ngrams"), MinMessages: c.Int("min-messages"), MaxFeatures: c.Int("max-features"), Mean: c.Bool("mean"), Opening: c.Int("opening"),
			Loss: c.String("loss"), Cost: c.Float64("cost"), Balance: c.Bool("balance"), Seed: c.Uint64("seed"),
		},
		shape: encoderShape{c.Int("layers"), c.Int("heads"), c.Int("hidden"), c.Int("positions")},
		fit: train.Options{
			Epochs: c.Int("epochs"), Batch: c.Int("batch"), Rate: c.Float64("rate"), WarmUp: c.Float64("warm-up"), Decay: c.Float64("decay"),
			Clip: c.Float64("clip"), Dropout: c.Float64("dropout"), WordDrop: c.Float64("word-dropout"), Smoothing: c.Float64("smoothing"),
			Average: c.Float64("average"), Patience: c.Int("patience"), LayerRate: c.Float64("layer-rate"), MaxTokens: c.Int("cap"),
			Balance: c.Bool("balance"), Seed: c.Uint64("seed"),
		},
		resume: c.Bool("resume"), from: c.String("from"), top: c.Int("top"), maskedEpochs: c.Int("masked-epochs"), folds: c.Int("folds"),
	}
	o.fillPace(c.IsSet)
	if o.workers == 0 {
		o.workers = runtime.GOMAXPROCS(0)
	}
	o.words.Workers, o.fit.Workers = o.workers, o.workers
	if o.from != "" && !c.IsSet("router") {
		o.router = routerTransformer
	}
	if err := o.check(); err != nil {
		return o, err
	}
	var err error
	if o.mail, o.text, err = evaluation.MailOptions(c); err != nil {
		return o, usageError(err)
	}
	return o, nil
}

// fillPace sets how fast a transformer learns where no flag did. One that knows a language already wants few and
// careful steps (Devlin et al. 2018, section A.3: batches of 16 or 32, a rate of 2e-5 to 5e-5, 2 to 4 epochs).
// One from nothing wants many and bold ones, and to guess hidden words first: on 13,950 messages of the demo
// shop (cmd/crumb) that came to 317 misroutes of 3,000, batches of 16 at 5e-4 with labels alone to 413.
func (o *trainOptions) fillPace(set func(flag string) bool) {
	epochs, batch, rate := 20, 8, 7e-4
	if o.from != "" {
		epochs, batch, rate = 4, 16, 5e-5
	}
	if !set("epochs") {
		o.fit.Epochs = epochs
	}
	o.byMail = o.from == "" && !set("masked-epochs")
	if !set("batch") {
		o.fit.Batch = batch
	}
	if !set("rate") {
		o.fit.Rate = rate
	}
}

// languageEpochs is how often so many messages are read for their language: the less there is, the more often. On 1,860
// messages of the demo shop 0, 2, 6 and 12 times came to 797, 648, 615 and 569 misroutes of 3,000.
func languageEpochs(messages int) int { return max(2, min(12, 24_000/max(1, messages))) }

// check finds flags that make no sense, before any mail is read.
func (o *trainOptions) check() error {
	if len(o.exports) == 0 {
		return usagef("train: no export given; see misroute train --help")
	}
	for _, e := range o.exports {
		if len(e) > 1 && strings.HasPrefix(e, "-") {
			return usagef("%s stands after an export: flags come first, then exports", e)
		}
	}
	switch {
	case o.folds == 0:
	case o.folds < 2 || o.folds > 1000:
		return usagef("--folds %d: want 2 to 1000", o.folds)
	case o.router != routerWords:
		return usagef("--folds judges the router of words; --router %s is judged by --held-out", o.router)
	case o.out != "":
		return usagef("--folds writes no model, so that --out %s has no meaning", o.out)
	default:
		return nil
	}
	if o.out == "" {
		return usagef("train: no --out: which folder should the model be written to?")
	}
	if known := []string{routerWords, routerTransformer, routerWideDeep}; !slices.Contains(known, o.router) {
		return usagef("--router %s: want one of %s", o.router, strings.Join(known, ", "))
	}
	if o.from != "" && o.router == routerWords {
		return usagef("--from goes on from a transformer; --router %s has none", o.router)
	}
	if o.router == routerWideDeep && o.heldOut == 0 {
		return usagef("--router wide-deep weighs its two parts by the held-out messages: --held-out 0 leaves none")
	}
	if losses := []string{train.LossHinge, train.LossSoftmax, train.LossBoth}; !slices.Contains(losses, o.words.Loss) {
		return usagef("--loss %s: want one of %s", o.words.Loss, strings.Join(losses, ", "))
	}
	for _, f := range []struct {
		name        string
		v, low, top float64
	}{
		{"held-out", o.heldOut, 0, 0.5}, {"dropout", o.fit.Dropout, 0, 0.9}, {"word-dropout", o.fit.WordDrop, 0, 0.9},
		{"smoothing", o.fit.Smoothing, 0, 0.9}, {"average", o.fit.Average, 0, 0.99999}, {"warm-up", o.fit.WarmUp, 0, 1},
		{"layer-rate", o.fit.LayerRate, 0, 1}, {"rate", o.fit.Rate, 1e-9, 10}, {"cost", o.words.Cost, 1e-9, 1e9},
		{"ngrams", float64(o.words.Grams), 1, 8}, {"opening", float64(o.words.Opening), 0, 1000}, {"workers", float64(o.workers), 1, 1024}, {"epochs", float64(o.fit.Epochs), 1, 1e6},
		{"masked-epochs", float64(o.maskedEpochs), 0, 1e6},
		{"batch", float64(o.fit.Batch), 1, 1e6}, {"layers", float64(o.shape.layers), 1, 100}, {"heads", float64(o.shape.heads), 1, 256},
		{"hidden", float64(o.shape.hidden), 1, 8192}, {"positions", float64(o.shape.positions), 8, 1 << 16},
	} {
		if !(f.v >= f.low && f.v <= f.top) {
			return usagef("--%s %g: want %g to %g", f.name, f.v, f.low, f.top)
		}
	}
	if o.shape.hidden%o.shape.heads != 0 {
		return usagef("--hidden %d cannot be cut into --heads %d", o.shape.hidden, o.shape.heads)
	}
	if o.router != routerWords && o.from == "" && o.fit.MaxTokens > o.shape.positions {
		return usagef("--cap %d is more than --positions %d", o.fit.MaxTokens, o.shape.positions)
	}
	if info, err := os.Stat(o.out); err == nil && !o.resume {
		switch {
		case !info.IsDir():
			return usagef("--out %s is a file; a model is a folder", o.out)
		case !o.force && notEmpty(o.out):
			return usagef("--out %s is there already; --force replaces it", o.out)
		case o.force && notEmpty(o.out) && !exists(filepath.Join(o.out, "config.json")):
			return usagef("--out %s holds something else than a model; it is not replaced", o.out)
		}
	}
	return nil
}

func notEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// trainer is one training at work.
type trainer struct {
	o      *trainOptions
	stderr io.Writer
	corpus *corpus
	tokens *tokenize.Tokenizer
	old    *checkpoint.Pretrained // of --from
	// all, training and held are the messages as token ids; held is empty without --held-out.
	all, training, held []train.Example
	began               time.Time
}

func runTrain(ctx context.Context, o trainOptions, stdout, stderr io.Writer) error {
	place := o.out
	bring, err := trainInto(ctx, &o)
	if err != nil {
		return err
	}
	t := &trainer{o: &o, stderr: stderr, began: time.Now()}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	fit := map[string]func(context.Context) (string, error){
		routerWords: t.fitWords, routerTransformer: t.fitTransformer, routerWideDeep: t.fitWideDeep,
	}[o.router]
	facts, err := fit(ctx)
	if err != nil && !errors.Is(err, train.ErrNotANumber) {
		return err
	}
	if err := bring(); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %s\n", place, facts)
	return err
}

// say tells a person what was learned, one line at a time.
func (t *trainer) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	switch t.o.progress {
	case "none":
	case "json":
		text, _ := json.Marshal(map[string]string{"note": line}) // a string always has a JSON form
		fmt.Fprintf(t.stderr, "%s\n", text)
	default:
		fmt.Fprintln(t.stderr, line)
	}
}

// stage runs work with a progress display of its own.
func (t *trainer) stage(work func(update func(done, total int64, note string)) error) error {
	p, err := newProgress(t.o.progress, t.stderr)
	if err != nil {
		return err
	}
	began := time.Now()
	err = work(func(done, total int64, note string) {
		p.update(done, total, time.Since(began), note, struct {
			Stage string `json:"stage"`
			Done  int64  `json:"done"`
			Total int64  `json:"total"`
		}{note, done, total})
	})
	p.close()
	return err
}

// prepare reads the mail, learns the vocabulary and splits off what is held out.
func (t *trainer) prepare(ctx context.Context) (err error) {
	err = t.stage(func(update func(int64, int64, string)) error {
		t.corpus, err = readCorpus(ctx, t.o, update)
		return err
	})
	if err != nil {
		return err
	}
	c := t.corpus
	t.say("read %s messages in %s: %s labelled in %d queues%s", group(c.read), seconds(t.began), group(int64(len(c.items))), len(c.queues), c.leftOut())
	if err := t.learnVocabulary(); err != nil {
		return err
	}
	t.all = c.encode(t.tokens, t.o.workers)
	if err := ctx.Err(); err != nil {
		return err
	}
	t.training = t.all
	if t.o.heldOut == 0 {
		return nil
	}
	held, err := train.HeldOut(c.origins(), t.o.heldOut)
	if err != nil {
		return usagef("--held-out %g: %w; give more mail, or --held-out 0 to learn from all of it unjudged", t.o.heldOut, err)
	}
	t.training = nil
	for i, e := range t.all {
		if held[i] {
			t.held = append(t.held, e)
		} else {
			t.training = append(t.training, e)
		}
	}
	t.say("held out: %s messages, the newest threads; learning from %s", group(int64(len(t.held))), group(int64(len(t.training))))
	return nil
}

// learnVocabulary learns the tokens, or takes those of the model to fine-tune. Labels are not looked
// at, so that the held-out messages may take part.
func (t *trainer) learnVocabulary() error {
	if t.o.from != "" {
		return t.readPretrained()
	}
	began := time.Now()
	if t.o.vocabulary.VocabSize == 0 {
		t.o.vocabulary.VocabSize = 8_000
		if t.o.router == routerWords {
			t.o.vocabulary.VocabSize = 30_000 // whole words: fewer tokens a message, so that a cap cuts less
		}
	}
	l := tokenize.NewLearner(t.o.vocabulary)
	for _, m := range t.corpus.items {
		l.Add([]byte(m.text))
	}
	var err error
	if t.tokens, err = l.Learn(); err != nil {
		return usageError(err)
	}
	t.say("learned a vocabulary in %s: %s", seconds(began), t.tokens.Describe())
	return nil
}

// learnWords learns the words router from some of the messages.
func (t *trainer) learnWords(ctx context.Context, examples []train.Example) (b *attention.Bag, err error) {
	kinds := tokenKinds(t.tokens)
	err = t.stage(func(update func(int64, int64, string)) error {
		o := t.o.words
		o.Progress = func(stage string, done, total int) { update(int64(done), int64(total), stage) }
		b, err = train.FitBag(ctx, examples, t.corpus.queues, kinds, o)
		return err
	})
	if err != nil {
		return nil, trainingError(err)
	}
	return b, nil
}

// facts are what config.json says about the training. The exports are named by their digests, so that
// eval can tell when it is asked to judge a router by mail that it has learned.
func (t *trainer) facts(router string, messages int) map[string]any {
	exports := make([]checkpoint.TrainedOn, len(t.corpus.sources))
	for i, s := range t.corpus.sources {
		exports[i] = checkpoint.TrainedOn{Name: s.Name, SHA256: s.SHA256}
	}
	return map[string]any{"router": router, "tool": evaluation.Version, "seed": t.o.seed, "messages": messages, "exports": exports}
}

// temperature is the factor on a router's logits that makes its scores honest on the held-out messages.
func (t *trainer) temperature(logits [][]float32) float32 {
	labels := make([]int32, len(t.held))
	for i, e := range t.held {
		labels[i] = e.Label
	}
	return train.Calibrate(logits, labels)
}

// fitWords learns the words router: once without the held-out messages, to judge it and to make its
// scores honest, and then once more with all of them.
func (t *trainer) fitWords(ctx context.Context) (string, error) {
	training := t.facts(routerWords, len(t.all))
	factor := float32(1)
	judged := ""
	if len(t.held) > 0 {
		b, err := t.learnWords(ctx, t.training)
		if err != nil {
			return "", err
		}
		logits, err := train.Logits(b, t.held, t.o.workers)
		if err != nil {
			return "", err
		}
		factor = t.temperature(logits)
		j, err := train.Judge(b, t.held, t.o.workers)
		if err != nil {
			return "", err
		}
		judged = fmt.Sprintf(", held-out accuracy %.4f (%d of %d)", j.Accuracy(), j.Right, j.Messages)
		training["held_out_messages"], training["held_out_right"] = j.Messages, j.Right
		t.say("without the held-out messages: %s features%s; learning once more from all messages", group(int64(len(b.Tensors().Keys))), judged)
	}
	b, err := t.learnWords(ctx, t.all)
	if err != nil {
		return "", err
	}
	if b, err = train.ScaleBag(b, factor); err != nil {
		return "", err
	}
	config := checkpoint.BagConfig(b)
	config["misroute_training"] = training
	if err := t.write(config, checkpoint.BagTensors(b)); err != nil {
		return "", err
	}
	return fmt.Sprintf("words router, %d queues, %s features%s, %s", len(t.corpus.queues), group(int64(len(b.Tensors().Keys))), judged, seconds(t.began)), nil
}

// trainingError marks what only other input can mend.
func trainingError(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return usageError(err)
}

// write replaces the model folder by a complete new one: readers see the old model or the new.
func (t *trainer) write(config any, tensors []checkpoint.Tensor) (err error) {
	out := filepath.Clean(t.o.out)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+".new-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := checkpoint.Write(fresh, config, tensors); err != nil {
		return err
	}
	if err := t.tokens.WriteFile(filepath.Join(fresh, "tokenizer.json")); err != nil {
		return err
	}
	old := fresh + ".old"
	if err := os.Rename(out, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, out); err != nil {
		return errors.Join(err, os.Rename(old, out))
	}
	return os.RemoveAll(old)
}

// seconds is the time since t for a person.
func seconds(t time.Time) string { return fmt.Sprintf("%.1f s", time.Since(t).Seconds()) }

// group writes a count with commas.
func group(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
