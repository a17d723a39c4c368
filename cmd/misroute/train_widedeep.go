package main

import (
	"context"
	"fmt"
	"os"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/attention/train"
)

// fitWideDeep learns both parts apart, each from the same messages, and adds their logits, each made
// honest on the held-out messages first: two judges who are as sure as they are right.
func (t *trainer) fitWideDeep(ctx context.Context) (string, error) {
	wide, err := t.learnWords(ctx, t.training)
	if err != nil {
		return "", err
	}
	logits, err := train.Logits(wide, t.held, t.o.workers)
	if err != nil {
		return "", err
	}
	if wide, err = train.ScaleBag(wide, t.temperature(logits)); err != nil {
		return "", err
	}
	deep, judged, err := t.trainEncoder(ctx)
	if err != nil {
		return "", err
	}
	t.say("the deep part alone: held-out accuracy %.4f", judged.Accuracy())
	window := deep.Config.TrainedCap
	m, err := deep.Model()
	if err != nil {
		return "", err
	}
	if logits, err = train.Logits(m, train.Cut(t.held, window), t.o.workers); err != nil {
		return "", err
	}
	deep.ScaleHead(t.temperature(logits))
	if m, err = deep.Model(); err != nil {
		return "", err
	}
	sum, err := attention.NewWideDeep(wide, m, window)
	if err != nil {
		return "", err
	}
	if logits, err = train.Logits(sum, t.held, t.o.workers); err != nil {
		return "", err
	}
	factor := t.temperature(logits) // both read the same words, so that together they are too sure
	deep.ScaleHead(factor)
	if wide, err = train.ScaleBag(wide, factor); err != nil {
		return "", err
	}
	if judged, err = train.Judge(sum, t.held, t.o.workers); err != nil {
		return "", err
	}
	config := checkpoint.WideDeepConfig(wide, checkpoint.EncoderConfig(&deep.Config), window)
	training := t.facts(routerWideDeep, len(t.training))
	training["held_out_messages"], training["held_out_right"] = judged.Messages, judged.Right
	config["misroute_training"] = training
	if err := t.write(config, checkpoint.WideDeepTensors(wide, checkpoint.EncoderTensors(&deep.Config, deep.Params()))); err != nil {
		return "", err
	}
	if err := os.RemoveAll(t.stateDir()); err != nil {
		return "", err
	}
	return fmt.Sprintf("wide and deep, %d queues, %s features and %d layers on %d tokens, held-out accuracy %.4f (%d of %d), %s", len(t.corpus.queues),
		group(int64(len(wide.Tensors().Keys))), deep.Config.Layers, window, judged.Accuracy(), judged.Right, judged.Messages, seconds(t.began)), nil
}
