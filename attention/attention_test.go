package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// near fails unless got is want within tolerance, number by number. NaN matches NaN.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.IsNaN(got[i]) && math.IsNaN(want[i]) || got[i] == want[i] {
			continue
		}
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("%s: number %d is %v, want %v within %v", what, i, got[i], want[i], tolerance)
		}
	}
}

func nearRows(t *testing.T, what string, got, want [][]float64, tolerance float64) {
	t.Helper()
	near(t, what, slices.Concat(got...), slices.Concat(want...), tolerance)
}

// The worked example of the story: "eggless chocolate cake", two channels a token. Its numbers were
// worked out by hand and are rounded to two places in the weights, one in the outputs.
var (
	exampleQ = [][]float64{{1, 0}, {0, 1}, {1, 1}}
	exampleK = [][]float64{{2, 0}, {0, 1}, {1, 1}}
	exampleV = [][]float64{{10, 0}, {0, 10}, {5, 5}}
)

func TestEqualAverageIsTheSameForEveryToken(t *testing.T) {
	nearRows(t, "average", EqualAverage(exampleQ), [][]float64{{.67, .67}, {.67, .67}, {.67, .67}}, .005)
}

func TestSimilarityWeightsPreferTheTokenItself(t *testing.T) {
	weights := SimilarityWeights([][]float64{{2, 0}, {0, 2}, {1, 1}})
	for i, row := range weights {
		near(t, "row sum", []float64{sum(row)}, []float64{1}, 1e-15)
		if row[i] < slices.Max(row) {
			t.Errorf("token %d looks more at another token than at itself: %v", i, row)
		}
	}
	// e⁴, 1 and e² over their sum, by hand
	near(t, "first row", weights[0], []float64{.867, .016, .117}, .0005)
}

func TestWorkedExample(t *testing.T) {
	out, weights := ScaledDotProduct(exampleQ, exampleK, exampleV, nil)
	nearRows(t, "weights", weights, [][]float64{{.58, .14, .28}, {.20, .40, .40}, {.40, .20, .40}}, .005)
	nearRows(t, "outputs", out, [][]float64{{7.2, 2.8}, {4, 6}, {6, 4}}, .05)
}

func TestChocolateTurnsAwayFromCake(t *testing.T) {
	k := [][]float64{{2, 0}, {0, -3}, {1, 1}}
	out, weights := ScaledDotProduct(exampleQ, k, exampleV, nil)
	near(t, "cake's weights", weights[2], []float64{.49, .01, .49}, .005)
	near(t, "cake's output", out[2], []float64{7.4, 2.6}, .05)
}

func TestSoftmaxOfLargeAndSmallScores(t *testing.T) {
	near(t, "8,0,0", Softmax([]float64{8, 0, 0}), []float64{.9993, .0003, .0003}, .00005)
	near(t, "1,0,0", Softmax([]float64{1, 0, 0}), []float64{.58, .21, .21}, .005)
}

func TestSoftmaxLeavesNobodyOut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		scores := make([]float64, 1+r.IntN(20))
		for i := range scores {
			scores[i] = 40 * r.NormFloat64()
		}
		weights := Softmax(scores)
		near(t, "sum", []float64{sum(weights)}, []float64{1}, 1e-12)
		if slices.Min(weights) <= 0 {
			t.Fatalf("a finite score got weight 0: %v -> %v", scores, weights)
		}
	}
}

// Word vectors for "refund the cake not the delivery"; any vectors do, as long as no two words share
// one.
var sentence = []string{"refund", "the", "cake", "not", "the", "delivery"}

func wordVectors(words []string) [][]float64 {
	x := make([][]float64, len(words))
	for i, w := range words {
		seed := uint64(0)
		for _, c := range []byte(w) {
			seed = seed*131 + uint64(c)
		}
		r := rand.New(rand.NewPCG(seed, 7))
		x[i] = []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	}
	return x
}

// addPositions adds the sinusoids of Vaswani et al. 2017, section 3.5.
func addPositions(x [][]float64) [][]float64 {
	for i, row := range x {
		for c := range row {
			angle := float64(i) / math.Pow(10000, float64(c/2*2)/float64(len(row)))
			if c%2 == 0 {
				row[c] += math.Sin(angle)
			} else {
				row[c] += math.Cos(angle)
			}
		}
	}
	return x
}

func TestWithoutPositionsOrderIsInvisible(t *testing.T) {
	swapped := []string{"refund", "the", "delivery", "not", "the", "cake"}
	self := func(x [][]float64) [][]float64 {
		out, _ := ScaledDotProduct(x, x, x, nil)
		return out
	}
	a, b := self(wordVectors(sentence)), self(wordVectors(swapped))
	b[2], b[5] = b[5], b[2]
	nearRows(t, "cake and delivery exchanged", b, a, 1e-12)

	a, b = self(addPositions(wordVectors(sentence))), self(addPositions(wordVectors(swapped)))
	b[2], b[5] = b[5], b[2]
	if math.Abs(a[2][0]-b[2][0]) < 1e-3 {
		t.Errorf("with positions the two sentences still give the same row for cake: %v", a[2])
	}
}

// The mistakes people make. Each test fails for an implementation that makes it.

func TestMistakeSoftmaxAlongColumns(t *testing.T) {
	_, weights := ScaledDotProduct(exampleQ, exampleK, exampleV, nil)
	columns := make([]float64, 3)
	for _, row := range weights {
		near(t, "row sum", []float64{sum(row)}, []float64{1}, 1e-15)
		for j, w := range row {
			columns[j] += w
		}
	}
	if math.Abs(columns[0]-1) < .1 {
		t.Errorf("columns sum to 1 in this example, where they must not: %v", columns)
	}
}

func TestMistakeNoScale(t *testing.T) {
	// 64 channels of variance 1: unscaled dot products spread by 8, and one key would take nearly all.
	r := rand.New(rand.NewPCG(3, 4))
	q, k := randomRows(r, 50, 64), randomRows(r, 50, 64)
	largest := 0.0
	for _, row := range Weights(q, k, nil) {
		largest += slices.Max(row) / float64(len(q))
	}
	if largest > .3 {
		t.Errorf("the mean largest weight over 50 random keys is %.2f: scores are not scaled", largest)
	}
	near(t, "score", Scores([][]float64{{1, 2, 3, 4}}, [][]float64{{1, 1, 1, 1}})[0], []float64{5}, 0)
}

func TestMistakeQueryIsKey(t *testing.T) {
	// "eggless" may ask for "cake" without "cake" asking for "eggless".
	weights := Weights([][]float64{{0, 3}, {0, 0}}, [][]float64{{3, 0}, {0, 3}}, nil)
	if math.Abs(weights[0][1]-weights[1][0]) < .1 {
		t.Errorf("who looks at whom is symmetric: %v", weights)
	}
}

func TestMistakeOneWordPicked(t *testing.T) {
	out, weights := ScaledDotProduct(exampleQ, exampleK, exampleV, nil)
	for i, row := range weights {
		for _, v := range exampleV {
			if slices.Equal(out[i], v) {
				t.Errorf("output %d is one word's value, not a blend of all: %v", i, v)
			}
		}
		if slices.Max(row) == 1 {
			t.Errorf("row %d picks one word: %v", i, row)
		}
	}
}

func TestMistakeMapReadAsReason(t *testing.T) {
	// Two tokens with the same value: the weights between them differ widely and explain nothing, since
	// every split gives the same output.
	v := [][]float64{{4, 1}, {4, 1}}
	a, wa := ScaledDotProduct([][]float64{{5, 0}}, [][]float64{{1, 0}, {0, 1}}, v, nil)
	b, wb := ScaledDotProduct([][]float64{{0, 5}}, [][]float64{{1, 0}, {0, 1}}, v, nil)
	if math.Abs(wa[0][0]-wb[0][0]) < .9 {
		t.Fatalf("the two maps were meant to differ: %v %v", wa, wb)
	}
	nearRows(t, "outputs under opposite maps", a, b, 1e-15)
}

func TestMasks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	q, k := randomRows(r, 5, 4), randomRows(r, 5, 4)
	causal := Weights(q, k, Causal)
	near(t, "first token sees itself alone", causal[0], []float64{1, 0, 0, 0, 0}, 0)
	if causal[2][3] != 0 || causal[2][2] == 0 {
		t.Errorf("causal row 2 is %v", causal[2])
	}
	padded := Weights(q, k, KeyPadding([]uint8{1, 1, 0, 1, 0}))
	for _, row := range padded {
		if row[2] != 0 || row[4] != 0 {
			t.Errorf("a hidden key has weight: %v", row)
		}
	}
	window := Weights(q, k, Window(1))
	if window[2][0] != 0 || window[2][4] != 0 || window[2][1] == 0 || window[2][3] == 0 {
		t.Errorf("window row 2 is %v", window[2])
	}
	for _, row := range Weights(q, k, KeyPadding(make([]uint8, 5))) {
		near(t, "nothing visible", row, []float64{.2, .2, .2, .2, .2}, 1e-15)
	}
}

func TestHiddenValuesNeverLeak(t *testing.T) {
	v := [][]float64{{1}, {math.NaN()}}
	out, _ := ScaledDotProduct([][]float64{{1}}, [][]float64{{1}, {1}}, v, KeyPadding([]uint8{1, 0}))
	near(t, "output", out[0], []float64{1}, 0)
}

func TestMultiHeadIsHeadsSideBySide(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	q, k, v := randomRows(r, 6, 8), randomRows(r, 6, 8), randomRows(r, 6, 8)
	out, weights := MultiHead(q, k, v, 2, Causal)
	if len(weights) != 2 || len(out) != 6 || len(out[0]) != 8 {
		t.Fatalf("%d heads of %d x %d", len(weights), len(out), len(out[0]))
	}
	cut := func(x [][]float64) (part [][]float64) {
		for _, row := range x {
			part = append(part, row[4:])
		}
		return part
	}
	second, w := ScaledDotProduct(cut(q), cut(k), cut(v), Causal)
	nearRows(t, "second head", cut(out), second, 0)
	nearRows(t, "second map", weights[1], w, 0)
	one, _ := MultiHead(q, k, v, 1, nil)
	plain, _ := ScaledDotProduct(q, k, v, nil)
	nearRows(t, "one head", one, plain, 0)
}

func randomRows(r *rand.Rand, n, d int) [][]float64 {
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		for c := range x[i] {
			x[i][c] = r.NormFloat64()
		}
	}
	return x
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
