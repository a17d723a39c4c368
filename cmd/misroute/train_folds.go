package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"misroute/attention/train"
	"misroute/reports/stats"
)

// runFolds judges the router of words by cross-validation: each fold of whole threads is routed by what
// was learned from all others. Nothing is written. The vocabulary is learned from all mail, whose labels
// it does not see.
func runFolds(ctx context.Context, o trainOptions, stdout, stderr io.Writer) error {
	o.heldOut = 0
	t := &trainer{o: &o, stderr: stderr, began: time.Now()}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	fold := make([]int, len(t.all))
	for i, m := range t.corpus.items {
		fold[i] = foldOf(m.thread, o.seed, o.folds)
	}
	right := 0
	for k := range o.folds {
		t.training, t.held = nil, nil
		for i, e := range t.all {
			if fold[i] == k {
				t.held = append(t.held, e)
			} else {
				t.training = append(t.training, e)
			}
		}
		if len(t.held) == 0 || len(t.training) == 0 {
			return usagef("--folds %d: fold %d has %d of %d messages; fewer folds, or more threads, are needed", o.folds, k+1, len(t.held), len(t.all))
		}
		b, err := t.learnWords(ctx, t.training)
		if err != nil {
			return err
		}
		j, err := train.Judge(b, t.held, o.workers)
		if err != nil {
			return err
		}
		right += j.Right
		fmt.Fprintf(stdout, "fold %d of %d: accuracy %.4f (%d of %d)\n", k+1, o.folds, j.Accuracy(), j.Right, j.Messages)
	}
	i := stats.Wilson(right, len(t.all))
	fmt.Fprintf(stdout, "all folds: accuracy %.4f (%d of %d; 95 %% interval %.4f to %.4f), %s\n",
		float64(right)/float64(len(t.all)), right, len(t.all), i.Low, i.High, seconds(t.began))
	return nil
}

// foldOf deals threads to folds by their name, so that a thread never stands on both sides and more
// mail does not move the rest.
func foldOf(thread string, seed uint64, folds int) int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, thread)
	return int(h.Sum64() % uint64(folds))
}
