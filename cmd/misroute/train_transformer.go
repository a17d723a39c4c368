package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/attention/train"
	"misroute/tokenize"
)

// fitTransformer learns a small BERT from nothing, or fine-tunes a model folder.
func (t *trainer) fitTransformer(ctx context.Context) (string, error) {
	encoder, judged, err := t.trainEncoder(ctx)
	if err != nil && !errors.Is(err, train.ErrNotANumber) {
		return "", err
	}
	facts, writeErr := t.writeEncoder(encoder, judged)
	if writeErr != nil {
		return "", errors.Join(err, writeErr)
	}
	return facts, errors.Join(err, os.RemoveAll(t.stateDir()))
}

// trainEncoder trains the transformer. With train.ErrNotANumber it still has the last good parameters.
func (t *trainer) trainEncoder(ctx context.Context) (encoder *train.Encoder, judged train.Judgement, err error) {
	if encoder, err = t.newEncoder(); err != nil {
		return nil, judged, err
	}
	if t.o.byMail {
		t.o.maskedEpochs = languageEpochs(len(t.training))
	}
	var from *train.State
	if t.o.resume {
		if from, err = t.readState(); err != nil {
			return nil, judged, usageError(err)
		}
		t.say("going on after epoch %d of %d", from.Epoch, t.o.fit.Epochs)
	}
	mask, hasMask := t.maskID()
	if t.o.maskedEpochs > 0 && (from == nil || from.Masked) {
		if !hasMask {
			return nil, judged, usagef("--masked-epochs %d: the vocabulary of --from %s has no mask token", t.o.maskedEpochs, t.o.from)
		}
		err = t.learnLanguage(ctx, encoder, mask, from, func(s *train.State) error {
			s.Masked = true
			return t.saveState(s)
		})
		if err != nil {
			return nil, judged, trainingStopped(err)
		}
		from = nil
	}
	o := t.o.fit
	if o.UnknownID = mask; !hasMask {
		o.WordDrop = 0
	}
	o.Save = t.saveState
	err = t.stage(func(update func(int64, int64, string)) error {
		o.Report = t.reporter(update, "", o.Patience)
		judged, err = encoder.Fit(ctx, t.training, t.held, o, from)
		return err
	})
	return encoder, judged, trainingStopped(err)
}

// trainingStopped words why a training ended early.
func trainingStopped(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w; finished epochs are kept: go on with --resume", err)
	case err == nil || errors.Is(err, train.ErrNotANumber):
		return err
	}
	return usageError(err)
}

// maskID is the token that hides a word.
func (t *trainer) maskID() (int32, bool) {
	for _, name := range []string{"[MASK]", "<mask>"} {
		if id, ok := t.tokens.ID(name); ok {
			return id, true
		}
	}
	return 0, false
}

// learnLanguage lets the encoder guess hidden words of the training mail. Not of the held-out messages,
// although no label is looked at: whoever knows their wording is judged too kindly by them.
func (t *trainer) learnLanguage(ctx context.Context, e *train.Encoder, mask int32, from *train.State, save func(*train.State) error) error {
	m := train.MaskedOptions{MaskID: mask, Keep: make([]bool, e.Config.VocabSize)}
	for _, name := range t.tokens.SpecialTokens() {
		if id, ok := t.tokens.ID(name); ok {
			m.Keep[id] = true
		}
	}
	o := t.o.fit
	o.Epochs = t.o.maskedEpochs
	o.Save = save
	return t.stage(func(update func(int64, int64, string)) error {
		o.Report = t.reporter(update, "hidden words, ", 0)
		return e.FitMasked(ctx, t.training, m, o, from)
	})
}

// reporter tells how a training goes.
func (t *trainer) reporter(update func(done, total int64, note string), what string, patience int) func(train.Event) {
	note := "first epoch"
	return func(e train.Event) {
		if !e.EpochDone {
			update(e.Tokens, e.Total, fmt.Sprintf("%sepoch %d of %d, loss %.3f; %s", what, e.Epoch, e.Epochs, e.Loss, note))
			return
		}
		note = fmt.Sprintf("%sepoch %d: mean loss %.4f", what, e.Epoch, e.Loss)
		if e.HeldOut.Messages > 0 {
			note += fmt.Sprintf(", held-out accuracy %.4f, loss %.4f", e.HeldOut.Accuracy(), e.HeldOut.Loss)
			if e.Best {
				note += " (best)"
			}
		}
		t.say("%s, %s", note, seconds(t.began))
		if e.StoppedEarly {
			t.say("stopped early: no better for %d epochs", patience)
		}
	}
}

func (t *trainer) writeEncoder(e *train.Encoder, judged train.Judgement) (string, error) {
	c := &e.Config
	training := t.facts(routerTransformer, len(t.training))
	training["epochs"] = t.o.fit.Epochs
	facts := fmt.Sprintf("%s, %d layers of %d channels, %d queues", c.ModelType, c.Layers, c.Hidden, len(c.Labels))
	if judged.Messages > 0 {
		training["held_out_messages"], training["held_out_right"] = judged.Messages, judged.Right
		facts += fmt.Sprintf(", held-out accuracy %.4f (%d of %d)", judged.Accuracy(), judged.Right, judged.Messages)
	}
	config := checkpoint.EncoderConfig(c)
	config["misroute_training"] = training
	if err := t.write(config, checkpoint.EncoderTensors(c, e.Params())); err != nil {
		return "", err
	}
	return facts + ", " + seconds(t.began), nil
}

// readPretrained reads the model to fine-tune, and its tokenizer.
func (t *trainer) readPretrained() (err error) {
	if t.old, err = checkpoint.ReadPretrained(t.o.from, t.corpus.queues); err != nil {
		return usageError(err)
	}
	if t.old.Tokenizer == "" {
		return usagef("--from %s: no tokenizer.json and no vocab.txt: put the tokenizer's file into the folder", t.o.from)
	}
	if t.tokens, err = tokenize.Load(t.old.Tokenizer); err != nil {
		return usagef("--from %s: %w", t.o.from, err)
	}
	c := &t.old.Config
	if int(t.tokens.MaxID()) >= c.VocabSize {
		return usagef("--from %s: the tokenizer's ids go up to %d, the model has %d tokens: they do not belong together", t.o.from, t.tokens.MaxID(), c.VocabSize)
	}
	if t.o.top > c.Layers {
		return usagef("--top %d: the model has %d layers", t.o.top, c.Layers)
	}
	t.say("fine-tuning %s: %s of %d layers and %d channels, %s", t.o.from, c.ModelType, c.Layers, c.Hidden, t.tokens.Describe())
	return nil
}

// newEncoder draws a new network in the shape asked for, or goes on from the one of --from.
func (t *trainer) newEncoder() (*train.Encoder, error) {
	if t.old != nil {
		c := t.old.Config
		if c.TrainedCap = c.Positions; t.o.fit.MaxTokens > 0 {
			c.TrainedCap = t.o.fit.MaxTokens
		}
		e, err := train.FromEncoder(c, t.old.Params, t.o.seed)
		if err != nil {
			return nil, usageError(err)
		}
		if t.o.top >= 0 {
			e.Freeze(t.o.top)
		}
		return e, nil
	}
	s := t.o.shape
	pad, _ := t.tokens.PadID()
	c := attention.Config{
		ModelType: "bert", Labels: t.corpus.queues, Layers: s.layers, Heads: s.heads, Hidden: s.hidden, Intermediate: 4 * s.hidden,
		VocabSize: int(t.tokens.MaxID()) + 1, Positions: s.positions, TypeVocab: 2, PadID: pad, Activation: "gelu", NormEps: 1e-12,
		TrainedCap: s.positions,
	}
	if t.o.fit.MaxTokens > 0 {
		c.TrainedCap = t.o.fit.MaxTokens
	}
	e, err := train.NewEncoder(c, 0, t.o.seed)
	if err != nil {
		return nil, usageError(err)
	}
	return e, nil
}

// stateDir is where an unfinished training keeps what --resume needs.
func (t *trainer) stateDir() string { return filepath.Clean(t.o.out) + ".training" }

// stateFacts are the numbers of a train.State that are no arrays, and what must be the same for it to
// be taken up again.
type stateFacts struct {
	Run       string          `json:"run"`
	Epoch     int             `json:"epoch"`
	Step      int             `json:"step"`
	Tokens    int64           `json:"tokens"`
	BestHeld  train.Judgement `json:"best_held"`
	SinceBest int             `json:"since_best"`
	Masked    bool            `json:"masked,omitempty"`
	Saved     time.Time       `json:"saved"`
}

// runName tells one training from another: options, vocabulary and size of the mail.
func (t *trainer) runName() string {
	o := t.o.fit
	o.Report, o.Save = nil, nil
	o.Epochs = 0 // more epochs than planned may be asked for
	return fmt.Sprintf("%+v %+v %d %s %d %d %v %s %d", o, t.o.shape, t.o.maskedEpochs, t.tokens.SHA256(), len(t.training), len(t.held), t.corpus.queues, t.o.from, t.o.top)
}

func (t *trainer) saveState(s *train.State) error {
	array := func(name string, data []float32) checkpoint.Tensor {
		return checkpoint.Tensor{Name: name, Shape: []int{len(data)}, Data: data}
	}
	list := []checkpoint.Tensor{array("values", s.Values), array("first", s.First), array("second", s.Second), array("best", s.Best)}
	if s.Mean != nil {
		list = append(list, array("mean", s.Mean))
	}
	return checkpoint.Write(t.stateDir(), stateFacts{
		Run: t.runName(), Epoch: s.Epoch, Step: s.Step, Tokens: s.Tokens, BestHeld: s.BestHeld, SinceBest: s.SinceBest, Masked: s.Masked, Saved: time.Now().UTC(),
	}, list)
}

func (t *trainer) readState() (s *train.State, err error) {
	dir := t.stateDir()
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--resume: no unfinished training in %s", dir)
	}
	var facts stateFacts
	if err == nil {
		err = json.Unmarshal(text, &facts)
	}
	if err != nil {
		return nil, fmt.Errorf("--resume: %s: %w", dir, err)
	}
	if facts.Run != t.runName() {
		return nil, fmt.Errorf("--resume: the training in %s has other options or other mail; start anew without --resume", dir)
	}
	f, err := os.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := checkpoint.NewFile(f, info.Size(), f.Name())
	if err != nil {
		return nil, err
	}
	s = &train.State{Epoch: facts.Epoch, Step: facts.Step, Tokens: facts.Tokens, BestHeld: facts.BestHeld, SinceBest: facts.SinceBest, Masked: facts.Masked}
	into := map[string]*[]float32{"values": &s.Values, "first": &s.First, "second": &s.Second, "mean": &s.Mean, "best": &s.Best}
	for i, tensor := range file.Infos() {
		to, ok := into[tensor.Name]
		if !ok {
			return nil, fmt.Errorf("--resume: %s: no array %q is expected", dir, tensor.Name)
		}
		*to = make([]float32, tensor.Len())
		if err := file.ReadFloat32(*to, &file.Infos()[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}
