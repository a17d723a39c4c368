package chart

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// Whatever was lost, wherever, no word covers another or stands outside of its picture.
func TestInsideKeepsItsWordsApart(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for trial := range 60 {
		tokens := 1 + rng.Intn(3000)
		from := rng.Intn(tokens)
		lost := []Span{{from, from + 1 + rng.Intn(tokens-from)}}
		values := make([]float64, tokens)
		for i := range values {
			values[i] = rng.Float64()
		}
		strip := &Strip{Title: "s", Tokens: tokens, Lost: lost, CutLabel: fmt.Sprintf("cut at %d", from), Decisive: &Span{from, from + 1}, Values: values}
		check(t, fmt.Sprint("strip ", trial), strip.Markup())
		lines := &ScoreLines{Title: "l", XName: "tokens", Tokens: tokens, Lost: lost, CutLabel: strip.CutLabel, Series: []Series{{"lt", []float64{0, float64(tokens)}, []float64{0, 1}}}}
		check(t, fmt.Sprint("lines ", trial), lines.Markup())
	}
}

func TestHeat(t *testing.T) {
	g := Grid{Labels: []string{"<b>", "two"}, Weights: [][]float64{{1, 0}, {0.25, 0.75}}, Most: []string{"100 %", "75 %"}}
	got := string((&Heat{Title: "h", Top: 1, Desk: g, Phone: g}).Markup())
	if strings.Contains(got, "<b>") || strings.Contains(got, "style=") {
		t.Error("a label is markup, or a shade a style that the page's policy forbids")
	}
	// Square roots: 1, 0.5 and 0.87 (of 0.75), each drawn twice; nothing is not drawn.
	for _, shade := range []string{`fill-opacity="1"`, `fill-opacity="0.5"`, `fill-opacity="0.87"`} {
		if n := strings.Count(got, shade); n != 2 {
			t.Errorf("%s is drawn %d times, want 2", shade, n)
		}
	}
	if n := strings.Count(got, "<rect"); n != 6 {
		t.Errorf("%d cells, want 6", n)
	}
	if (&Heat{}).Markup() != "" || (&Strip{}).Markup() != "" || (&ScoreLines{}).Markup() != "" {
		t.Error("nothing to draw is drawn")
	}
}

func TestSignedBar(t *testing.T) {
	for _, c := range []struct {
		value, low, high float64
		want             string
	}{
		{2, -2, 2, `<rect x="55" y="1" width="54"`}, // from the middle of 1 to 109 to its end
		{-1, -2, 2, `<rect x="28" y="1" width="27"`},
		{0, 0, 0, `<line x1="1"`},
	} {
		if got := string(SignedBar(c.value, c.low, c.high)); !strings.Contains(got, c.want) {
			t.Errorf("%v of %v to %v: %s, want %s", c.value, c.low, c.high, got, c.want)
		}
	}
}
