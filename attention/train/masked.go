package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"misroute/attention"
	"misroute/attention/kernel"
)

// MaskedOptions say how a network learns its language before it learns the labels.
type MaskedOptions struct {
	Share  float64 // of the tokens that are hidden; 0: 0.15
	MaskID int32   // the token that hides
	Keep   []bool  // by id: tokens that are never hidden nor guessed, such as the specials
}

// masked trains an encoder to guess hidden words from what stands around them, as BERT was (Devlin et
// al. 2018, section 3.1): of the tokens chosen, eight in ten become the mask, one another token, one
// stays, and every one of them is guessed. No label is looked at.
//
// The guess is the state's dot product with the table of words, plus the logarithm of how often the
// word is used; so no parameter is added that a router would not have.
type masked struct {
	*Encoder
	o     MaskedOptions
	prior []float32 // by id, the logarithm of its share
}

// FitMasked trains the encoder on the words of messages alone; see masked. Of Options, Smoothing,
// Balance, WordDrop and Patience mean nothing here.
func (e *Encoder) FitMasked(ctx context.Context, messages []Example, m MaskedOptions, o Options, from *State) error {
	if m.Share == 0 {
		m.Share = 0.15
	}
	if m.Share < 0 || m.Share > 0.9 || int(m.MaskID) >= e.Config.VocabSize || m.MaskID < 0 || len(m.Keep) < e.Config.VocabSize {
		return fmt.Errorf("hiding a share of %g behind token %d of %d: want a share of 0 to 0.9, a token and %d flags", m.Share, m.MaskID, e.Config.VocabSize, e.Config.VocabSize)
	}
	o.Smoothing, o.Balance, o.WordDrop, o.Patience = 0, false, 0, 0
	_, err := fit(ctx, &masked{Encoder: e, o: m, prior: frequencies(messages, e.Config.VocabSize)}, messages, nil, o, from)
	return err
}

// frequencies are the logarithms of the shares of the ids, each seen once more than it was.
func frequencies(messages []Example, vocabulary int) []float32 {
	count := make([]float64, vocabulary)
	total := float64(vocabulary)
	for i := range count {
		count[i] = 1
	}
	for _, x := range messages {
		for _, id := range x.IDs {
			if id >= 0 && int(id) < vocabulary { // others are refused by fit
				count[id]++
				total++
			}
		}
	}
	logs := make([]float32, vocabulary)
	for i, n := range count {
		logs[i] = float32(math.Log(n / total))
	}
	return logs
}

// hide chooses the tokens to guess, hides them in m.ids and returns their rows and what they were.
func (n *masked) hide(m *messages, t *tape) (of *asks, truth []int32) {
	limit := uint64(n.o.Share * (1 << 32))
	of = &asks{at: []int{0}}
	m.ids = slices.Clone(m.ids)
	for b := range len(m.at) - 1 {
		for row := m.at[b]; row < m.at[b+1]; row++ {
			id := m.ids[row]
			x := t.random.Uint64()
			if n.o.Keep[id] || x&(1<<32-1) >= limit {
				continue
			}
			of.rows, truth = append(of.rows, row), append(truth, id)
			switch x >> 32 % 10 {
			case 0:
			case 1:
				m.ids[row] = int32(t.random.Uint64() % uint64(n.Config.VocabSize))
			default:
				m.ids[row] = n.o.MaskID
			}
		}
		of.at = append(of.at, len(of.rows))
	}
	return of, truth
}

// gradients: every message counts the same, whatever its length, so that the parts of a batch add up.
func (n *masked) gradients(gradient []float32, examples []Example, _ *Loss, total float64, t *tape) (sum float64) {
	m := n.messages(examples)
	of, truth := n.hide(&m, t)
	if len(of.rows) == 0 {
		return 0
	}
	s := n.encode(t, m, of)
	c, vocabulary := n.Config.Hidden, n.Config.VocabSize
	words := attention.Linear{In: c, Out: vocabulary, Weight: n.p.Words, Bias: n.prior}
	logits := t.linear(s.asked, words)
	for b := range examples {
		hidden := of.at[b+1] - of.at[b]
		for i := of.at[b]; i < of.at[b+1]; i++ {
			row := logits[i*vocabulary:][:vocabulary]
			kernel.Softmax(row, 1)
			share := 1 / (total * float64(hidden))
			sum -= share * math.Log(max(float64(row[truth[i]]), math.SmallestNonzeroFloat32))
			row[truth[i]]--
			kernel.Scale(row, float32(share))
		}
	}
	g := n.view(&layout{vector: gradient})
	// The bias is counted, not learned: its gradient goes to nobody.
	dx := t.linearBackTo(logits, s.asked, words, attention.Linear{In: c, Out: vocabulary, Weight: g.Words, Bias: t.zero(vocabulary)})
	n.encodeBack(t, s, &g, dx)
	return sum
}
