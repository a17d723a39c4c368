package main

import (
	"fmt"
	"math"

	"misroute/attention"
)

// namedShapes are the sizes that many routers are fine-tuned from.
var namedShapes = map[string][4]int{
	"minilm":    {6, 384, 12, 1536},
	"bert-base": {12, 768, 12, 3072},
}

// shapeModel is a BERT classifier of a shape with made-up weights: its predictions mean nothing, its
// speed and its memory are those of a trained one. The shape is a name or LAYERSxHIDDENxHEADSxINTERMEDIATE.
func shapeModel(text string, int8 bool) (attention.Model, error) {
	s, ok := namedShapes[text]
	if !ok {
		var rest string
		n, _ := fmt.Sscanf(text+" ", "%dx%dx%dx%d%s", &s[0], &s[1], &s[2], &s[3], &rest)
		if n != 4 {
			return nil, usagef("--shape %s: want minilm, bert-base, or four numbers such as 6x384x12x1536 (layers, hidden size, heads, intermediate size)", text)
		}
	}
	for _, size := range s {
		if size < 1 || size > 1<<14 {
			return nil, usagef("--shape %s: every number must be 1 to %d", text, 1<<14)
		}
	}
	layers, c, heads, f := s[0], s[1], s[2], s[3]
	if c%heads != 0 {
		return nil, usagef("--shape %s: a hidden size of %d cannot be cut into %d heads", text, c, heads)
	}
	cfg := attention.Config{ModelType: "bert", Labels: []string{"queue"}, Layers: layers, Heads: heads, Hidden: c, Intermediate: f,
		VocabSize: 30522, TypeVocab: 2, Activation: "gelu", NormEps: 1e-12}
	norm := attention.Norm{Gain: ones(c)}
	linear := func(out, in int) attention.Linear {
		return attention.Linear{Out: out, In: in, Weight: someWeights(out*in, in)}
	}
	new := attention.NewEncoder
	if int8 {
		new = attention.NewEncoderInt8
	}
	return new(cfg, &attention.EncoderParams{
		Words: someWeights(cfg.VocabSize*c, c), Positions: someWeights(longestCurve*c, c), Types: someWeights(2*c, c), EmbedNorm: norm,
		Layer: func(int) (attention.LayerParams, error) {
			return attention.LayerParams{
				Query: linear(c, c), Key: linear(c, c), Value: linear(c, c), Output: linear(c, c), AttentionNorm: norm,
				Up: linear(f, c), Down: linear(c, f), OutputNorm: norm,
			}, nil
		},
		Pool: linear(c, c), Classify: linear(1, c),
	})
}

// someWeights are n numbers without a pattern, small enough that sums over in of them stay small.
func someWeights(n, in int) []float32 {
	w := make([]float32, n)
	x, most := uint32(2463534242), 1/(math.Sqrt(float64(in))*(1<<31))
	for i := range w {
		x ^= x << 13 // xorshift (Marsaglia 2003)
		x ^= x >> 17
		x ^= x << 5
		w[i] = float32(float64(int32(x)) * most)
	}
	return w
}

func ones(n int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = 1
	}
	return w
}
