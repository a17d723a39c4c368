package attention

import "math"

// The definitions. Rows are tokens: x[i] is the vector of token i.

// EqualAverage gives every token the plain mean of all rows: what a router without attention knows
// of the context. x is T x C; the result too, with all rows equal.
func EqualAverage(x [][]float64) [][]float64 {
	if len(x) == 0 {
		return nil
	}
	equal := make([]float64, len(x))
	for j := range equal {
		equal[j] = 1 / float64(len(x))
	}
	weights := make([][]float64, len(x))
	for i := range weights {
		weights[i] = equal
	}
	return Blend(weights, x)
}

// SimilarityWeights lets every token look at the tokens that resemble it: row i is the softmax of the
// dot products x[i]·x[j]. Nothing is learned and nothing is scaled; query and key are the same
// vector, so a token can only look for what it is itself. x is T x C, the weights T x T.
func SimilarityWeights(x [][]float64) [][]float64 {
	weights := make([][]float64, len(x))
	for i := range x {
		weights[i] = make([]float64, len(x))
		for j := range x {
			weights[i][j] = dot(x[i], x[j])
		}
		weights[i] = Softmax(weights[i])
	}
	return weights
}

// Scores are the scaled dot products q[i]·k[j] / sqrt(HS) of "Attention Is All You Need" (Vaswani et
// al. 2017, equation 1). The scale keeps their variance near 1 whatever HS is; without it softmax
// saturates and one key takes all. q is Tq x HS, k is Tk x HS, the scores Tq x Tk.
func Scores(q, k [][]float64) [][]float64 {
	scores := make([][]float64, len(q))
	for i := range q {
		scale := 1 / math.Sqrt(float64(len(q[i])))
		scores[i] = make([]float64, len(k))
		for j := range k {
			scores[i][j] = dot(q[i], k[j]) * scale
		}
	}
	return scores
}

// Softmax turns one row of scores into weights that are positive and sum to 1.
//
// The largest score is subtracted first, so nothing overflows. A score of -Inf gets weight 0. The
// row becomes NaN altogether when it holds a NaN or +Inf, or nothing but -Inf: there is no answer
// then, and a silent one would hide a broken model.
func Softmax(scores []float64) []float64 {
	highest := math.Inf(-1)
	for _, s := range scores {
		highest = max(highest, s)
	}
	weights := make([]float64, len(scores))
	sum := 0.0
	for j, s := range scores {
		weights[j] = math.Exp(s - highest)
		sum += weights[j]
	}
	for j := range weights {
		weights[j] /= sum
	}
	return weights
}

// Mask says whether a query may look at a key. A nil Mask shows everything.
type Mask func(query, key int) bool

// Causal shows each token itself and what stands before it.
func Causal(query, key int) bool { return key <= query }

// KeyPadding hides the keys whose mask is 0, from every query.
func KeyPadding(mask []uint8) Mask {
	return func(_, key int) bool { return mask[key] != 0 }
}

// Window shows each token its neighbours up to radius positions away, on both sides, and itself.
func Window(radius int) Mask {
	return func(query, key int) bool { return key-query <= radius && query-key <= radius }
}

// Weights are the attention weights: softmax over the keys (each row, not each column) of the scores
// of the visible ones; hidden keys get 0. A query that may see nothing looks at every key equally, as
// encoders do whose mask is a large negative number added to the scores. q is Tq x HS, k is Tk x HS,
// the weights Tq x Tk.
func Weights(q, k [][]float64, visible Mask) [][]float64 {
	weights := Scores(q, k)
	for i, row := range weights {
		if visible != nil {
			hide(row, i, visible)
		}
		weights[i] = Softmax(row)
	}
	return weights
}

// hide sets the scores of hidden keys to -Inf, or all scores to 0 when every key is hidden.
func hide(row []float64, query int, visible Mask) {
	seen := false
	for key := range row {
		seen = seen || visible(query, key)
	}
	for key := range row {
		switch {
		case !seen:
			row[key] = 0
		case !visible(query, key):
			row[key] = math.Inf(-1)
		}
	}
}

// Blend is the mixture of values that the weights ask for: out[i] = sum over j of weights[i][j] v[j].
// Every token gets some of every visible value; none is picked. weights is Tq x Tk, v is Tk x HS, the
// result Tq x HS.
func Blend(weights, v [][]float64) [][]float64 {
	out := make([][]float64, len(weights))
	for i, row := range weights {
		if len(v) == 0 {
			continue
		}
		out[i] = make([]float64, len(v[0]))
		for j, w := range row {
			if w == 0 {
				continue // a hidden key adds nothing, whatever its value holds
			}
			for c, x := range v[j] {
				out[i][c] += w * x
			}
		}
	}
	return out
}

// ScaledDotProduct is attention with one head: softmax(q kᵀ / sqrt(HS)) v. It also returns the
// weights, for maps. q is Tq x HS, k is Tk x HS, v is Tk x HSv; out is Tq x HSv, weights Tq x Tk.
func ScaledDotProduct(q, k, v [][]float64, visible Mask) (out, weights [][]float64) {
	weights = Weights(q, k, visible)
	return Blend(weights, v), weights
}

// MultiHead runs attention in heads: the channels of q, k and v are cut into equal parts, each part
// attends by itself, and the results stand side by side again. q, k and v are T x C and heads divides
// C; weights has one T x T map a head. The projections before and after it are the caller's.
func MultiHead(q, k, v [][]float64, heads int, visible Mask) (out [][]float64, weights [][][]float64) {
	out = make([][]float64, len(q))
	for h := range heads {
		part, w := ScaledDotProduct(head(q, h, heads), head(k, h, heads), head(v, h, heads), visible)
		weights = append(weights, w)
		for i := range part {
			out[i] = append(out[i], part[i]...)
		}
	}
	return out, weights
}

// head is the part of every row that belongs to head h: T x C in, T x HS out, sharing memory.
func head(x [][]float64, h, heads int) [][]float64 {
	part := make([][]float64, len(x))
	for i, row := range x {
		size := len(row) / heads
		part[i] = row[h*size : (h+1)*size]
	}
	return part
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
