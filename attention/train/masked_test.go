package train

import (
	"context"
	"math"
	"slices"
	"testing"
)

// Hidden words are chosen by the tape's seed, so that the loss is one function of the parameters.
func TestMaskedGradientByDifferences(t *testing.T) {
	for _, modelType := range []string{"bert", "distilbert", "roberta"} {
		e := drawnEncoder(t, smallConfig(modelType))
		examples := letters(4, 5)
		n := &masked{Encoder: e, o: MaskedOptions{Share: .4, MaskID: 3, Keep: make([]bool, 42)}, prior: frequencies(examples, 42)}
		checkDirection(t, modelType, n, examples, &Loss{}, 0)
	}
}

func TestMaskedHidesItsShare(t *testing.T) {
	e := drawnEncoder(t, smallConfig("bert"))
	keep := make([]bool, 42)
	keep[20] = true
	n := &masked{Encoder: e, o: MaskedOptions{Share: .15, MaskID: 41, Keep: keep}}
	tp := newTape()
	var hidden, masks, left, total int
	for seed := range uint64(300) {
		examples := letters(8, seed)
		tp.start(0, seed, 1)
		m := e.messages(examples)
		before := slices.Clone(m.ids)
		of, truth := n.hide(&m, tp)
		for i, row := range of.rows {
			if before[row] != truth[i] || truth[i] == 20 {
				t.Fatalf("row %d was %d and should be guessed as %d", row, before[row], truth[i])
			}
			switch m.ids[row] {
			case 41:
				masks++
			case before[row]:
				left++
			}
			before[row] = m.ids[row]
		}
		if !slices.Equal(before, m.ids) {
			t.Fatal("a token changed that is not to be guessed")
		}
		hidden += len(of.rows)
		for _, id := range before {
			if id != 20 {
				total++
			}
		}
		if of.at[len(of.at)-1] != len(of.rows) || len(of.at) != len(examples)+1 {
			t.Fatalf("%d rows, bounds %v", len(of.rows), of.at)
		}
	}
	// Devlin et al. 2018: 15 % of the tokens, of which 80 % are masked and 10 % stay; four standard deviations.
	within := func(what string, k, n int, p float64) {
		if d := math.Abs(float64(k)/float64(n) - p); d > 4*math.Sqrt(p*(1-p)/float64(n)) {
			t.Errorf("%s: %d of %d, want %.0f %%", what, k, n, 100*p)
		}
	}
	within("hidden", hidden, total, .15)
	within("masks", masks, hidden, .8+.1/42)
	within("left", left, hidden, .1+.1/42)
}

// A pair always stands in one of two orders: what hides behind the mask is known from its neighbour.
func TestFitMaskedLearnsNeighbours(t *testing.T) {
	e := smallEncoder(t, "bert", 1)
	var messages []Example
	for i := range 300 {
		a := int32(i % 20)
		messages = append(messages, Example{IDs: []int32{40, a, a + 20, a, a + 20, 40}})
	}
	m := MaskedOptions{MaskID: 41, Keep: make([]bool, 42)}
	m.Keep[40] = true
	var last float64
	o := Options{Epochs: 30, Rate: 5e-3, Seed: 1, Report: func(e Event) { last = e.Loss }}
	for i := range messages {
		messages[i].Label = int32(i % 2)
	}
	if err := e.FitMasked(context.Background(), messages, m, o, nil); err != nil {
		t.Fatal(err)
	}
	// Blind for the other tokens the loss is ln 40 = 3.7; a token whose copies are all hidden cannot be known.
	if last > 0.6 {
		t.Errorf("loss %.2f, want what stands around a word used", last)
	}
	if err := e.FitMasked(context.Background(), messages, MaskedOptions{MaskID: 42, Keep: m.Keep}, o, nil); err == nil {
		t.Error("a mask outside the vocabulary was taken")
	}
}
