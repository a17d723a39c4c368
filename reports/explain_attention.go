package reports

import (
	"fmt"
	"slices"
	"sort"

	"misroute/reports/chart"
)

// strongest is how many of a row's weights count as what a token looked at; the rest is spread so
// thin that no single weight of it says anything.
const strongest = 10

// AttentionFacts are what the attention weights of one pass show.
type AttentionFacts struct {
	Layers  int `json:"layers"`
	Heads   int `json:"heads"`
	Tokens  int `json:"tokens"`
	Largest int `json:"strongest"` // how many weights a row counts as its strongest
	// Outside is the share of attention outside each row's strongest, mean over rows, by layer and
	// head. Even is what it were if every token looked at all alike.
	Outside [][]Number `json:"outside_strongest"`
	Even    Number     `json:"outside_if_even"`
	Maps    []HeatMap  `json:"maps"`
}

// HeatMap is one map, by token for the first row and by word for what is drawn.
type HeatMap struct {
	Layer        int        `json:"layer"` // 1 is the first
	Head         int        `json:"head"`  // 0: the mean over heads
	Outside      Number     `json:"outside_strongest"`
	FirstOutside Number     `json:"first_row_outside_strongest"`
	First        []Number   `json:"first_row"` // what the first token looked at, of all tokens of the pass
	Words        []HeatWord `json:"words"`     // those that are drawn, in the order of the text
	Grid         [][]Number `json:"grid"`      // between them; row i is what word i looked at
	Drawn        Number     `json:"drawn"`     // share of the drawn rows' attention that goes to drawn words

	wordsOfFirst []firstWord
}

// HeatWord is a word of a map.
type HeatWord struct {
	From     int    `json:"from"` // tokens
	To       int    `json:"to"`
	Received Number `json:"received"` // mean over all rows
	Text     string `json:"text,omitempty"`

	word string
	at   wordAt
}

type firstWord struct {
	from   int
	word   string
	weight float64
}

// attention works out the maps that are drawn.
func (x *Explain) attention() error {
	m := x.e.Attention
	if m == nil || len(m.Weights) == 0 || len(m.Positions) == 0 {
		return nil
	}
	n := len(m.Positions)
	a := &AttentionFacts{Layers: len(m.Weights), Heads: len(m.Weights[0]), Tokens: n, Largest: strongest}
	a.Even = Number(float64(max(0, n-strongest)) / float64(n))
	scratch := make([]float32, n)
	for _, layer := range m.Weights {
		row := make([]Number, len(layer))
		for h, w := range layer {
			if len(w) != n*n {
				return fmt.Errorf("explain: %d attention weights for %d tokens, want %d", len(w), n, n*n)
			}
			row[h] = outside(w, n, scratch)
		}
		a.Outside = append(a.Outside, row)
	}
	layer := m.Layer
	if layer == 0 {
		layer = a.Layers
	}
	if layer < 1 || layer > a.Layers || m.Head < 0 || m.Head > len(m.Weights[layer-1]) {
		return fmt.Errorf("explain: layer %d head %d: the router has %d layers of %d heads", m.Layer, m.Head, a.Layers, a.Heads)
	}
	words := x.e.wordsOf(m.Positions)
	heads := m.Weights[layer-1]
	switch {
	case m.Head > 0:
		a.Maps = append(a.Maps, x.heatMap(heads[m.Head-1], words, layer, m.Head))
	case len(heads) == 1:
		a.Maps = append(a.Maps, x.heatMap(heads[0], words, layer, 1))
	default:
		focused := 0
		for h := range heads {
			if a.Outside[layer-1][h] < a.Outside[layer-1][focused] {
				focused = h
			}
		}
		a.Maps = append(a.Maps, x.heatMap(meanOf(heads), words, layer, 0), x.heatMap(heads[focused], words, layer, focused+1))
	}
	x.Attention = a
	return nil
}

func meanOf(heads [][]float32) []float32 {
	mean := make([]float32, len(heads[0]))
	for i := range mean {
		sum := 0.0
		for _, h := range heads {
			sum += float64(h[i])
		}
		mean[i] = float32(sum / float64(len(heads)))
	}
	return mean
}

// outside is the mean over rows of the share of a row's weights that is not among its strongest.
func outside(w []float32, n int, scratch []float32) Number {
	sum, rows := 0.0, 0
	for i := range n {
		if s := rowOutside(w[i*n:(i+1)*n], scratch); s.Defined() {
			sum += float64(s)
			rows++
		}
	}
	if rows == 0 {
		return undefined
	}
	return Number(sum / float64(rows))
}

// rowOutside is undefined for a row that looks nowhere (padding).
func rowOutside(row, scratch []float32) Number {
	scratch = append(scratch[:0], row...)
	slices.Sort(scratch)
	rest, all := 0.0, 0.0
	for i, v := range scratch {
		all += float64(v)
		if i < len(scratch)-strongest {
			rest += float64(v)
		}
	}
	if all == 0 {
		return undefined
	}
	return Number(rest / all)
}

// heatMap groups a map by word and chooses what is drawn: the words that all tokens together look at
// most, the first token always among them.
func (x *Explain) heatMap(w []float32, words []wordAt, layer, head int) HeatMap {
	positions := x.e.Attention.Positions
	n := len(positions)
	scratch := make([]float32, n)
	m := HeatMap{Layer: layer, Head: head, Outside: outside(w, n, scratch), FirstOutside: rowOutside(w[:n], scratch)}
	for _, v := range w[:n] {
		m.First = append(m.First, Number(v))
	}
	received := make([]float64, len(words))
	for k, word := range words {
		first := 0.0
		for t := word.from; t < word.to; t++ {
			for i := range n {
				received[k] += float64(w[i*n+t])
			}
			first += float64(w[t])
		}
		received[k] /= float64(n)
		m.wordsOfFirst = append(m.wordsOfFirst, firstWord{positions[word.from], x.e.wordText(positions, word), first})
	}
	sort.SliceStable(m.wordsOfFirst, func(i, j int) bool { return m.wordsOfFirst[i].weight > m.wordsOfFirst[j].weight })
	drawn := mostReceived(received, chart.MaxHeatDesk)
	for _, k := range drawn {
		h := HeatWord{From: positions[words[k].from], To: positions[words[k].to-1] + 1, Received: Number(received[k]), word: x.e.wordText(positions, words[k]), at: words[k]}
		if x.o.WithText {
			h.Text = h.word
		}
		m.Words = append(m.Words, h)
	}
	total := 0.0
	for _, a := range m.Words {
		row := make([]Number, len(m.Words))
		for j, b := range m.Words {
			row[j] = Number(between(w, n, a.at, b.at))
			total += float64(row[j])
		}
		m.Grid = append(m.Grid, row)
	}
	m.Drawn = Number(total / float64(len(m.Words)))
	return m
}

// between is what word a looked at word b: the mean over a's tokens of the sum over b's, so that
// rows of words add up to 1 as rows of tokens do.
func between(w []float32, n int, a, b wordAt) float64 {
	sum := 0.0
	for i := a.from; i < a.to; i++ {
		for j := b.from; j < b.to; j++ {
			sum += float64(w[i*n+j])
		}
	}
	return sum / float64(a.to-a.from)
}

// mostReceived gives the indices of the most looked at, with the first always among them, in order.
func mostReceived(received []float64, most int) []int {
	order := make([]int, len(received))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		if order[i] == 0 || order[j] == 0 {
			return order[i] == 0 && order[j] != 0
		}
		return received[order[i]] > received[order[j]]
	})
	order = order[:min(most, len(order))]
	slices.Sort(order)
	return order
}

// pick is the part of a map that a smaller picture has room for, most looked at first.
func (m *HeatMap) pick(most int) []int {
	received := make([]float64, len(m.Words))
	for i, w := range m.Words {
		received[i] = float64(w.Received)
	}
	return mostReceived(received, most)
}

// name of a map for a heading.
func (m *HeatMap) name() string {
	if m.Head == 0 {
		return fmt.Sprintf("layer %d, mean over its heads", m.Layer)
	}
	return fmt.Sprintf("layer %d, head %d", m.Layer, m.Head)
}
