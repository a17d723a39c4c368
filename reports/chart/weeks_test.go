package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
)

// parsed fails unless the markup is well-formed and holds no number that is none.
func parsed(t *testing.T, m template.HTML) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader("<r>" + string(m) + "</r>"))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, m)
		}
	}
	if strings.Contains(string(m), "NaN") || strings.Contains(string(m), "Inf") {
		t.Errorf("a coordinate is no number: %s", m)
	}
}

const evil = `</svg><script>alert("1")</script>`

func TestWeeks(t *testing.T) {
	point := func(v float64) *Point { return &Point{Value: v, Low: v / 2, High: math.Min(1, v*2)} }
	w := &Weeks{Title: evil, Centre: .1, Weeks: []Week{
		{Label: "W45", Sub: "9 of 90", Rate: point(.1), Low: .02, High: .18},
		{Label: evil, Sub: "no labels"},
		{Label: "W47", Sub: "3 of 10", Rate: &Point{Value: .3, Low: 0, High: 1, Few: true}, Low: 0, High: .9, Out: true},
	}}
	m := w.Markup()
	parsed(t, m)
	if strings.Contains(string(m), "<script") || strings.Count(string(m), "<svg ") != 2 {
		t.Errorf("want two drawings and no stranger's markup: %s", m)
	}
	// A week without labels breaks the line: two pens down, in the desk variant alone.
	if got := strings.Count(w.joined(func(i int, v float64) (float64, float64) { return float64(i), v }), "M"); got != 2 {
		t.Errorf("the line has %d pieces, want 2", got)
	}
	if got := strings.Count(string(m), `class="ring"`); got != 2 {
		t.Errorf("%d rings, want one in each drawing", got)
	}
	if (&Weeks{}).Markup() != "" {
		t.Error("no week, no chart")
	}
	parsed(t, (&Weeks{Weeks: []Week{{Label: "W1"}}}).Markup())
	many := &Weeks{Centre: .5}
	for i := range 104 {
		many.Weeks = append(many.Weeks, Week{Label: fmt.Sprintf("2026-W%02d", i), Sub: "1 of 2", Rate: point(.5), High: 1})
	}
	parsed(t, many.Markup())
	if desk := string(many.desk()); !strings.Contains(desk, ">2026-W103<") || strings.Contains(desk, ">2026-W102<") {
		t.Error("labels are thinned out, but never the last one")
	}
}

func TestChanges(t *testing.T) {
	g := &Changes{Title: evil, Margin: .005, Rows: []Change{
		{Label: "all messages", Point: Point{Value: .01, Low: -.01, High: .03}},
		{Label: evil, Point: Point{Value: -.02, Low: -.03, High: -.01}, Told: true},
		{Label: "few", Point: Point{Value: 0, Low: -.9, High: .9, Few: true}},
	}}
	m := g.Markup()
	parsed(t, m)
	if strings.Contains(string(m), "<script") || strings.Count(string(m), "<svg ") != 2 {
		t.Errorf("want two drawings and no stranger's markup: %s", m)
	}
	// Of a handful of messages only the point counts for the scale: it ends at .04, not at .9.
	if !strings.Contains(string(m), ">+4<") || strings.Contains(string(m), ">+100<") {
		t.Errorf("scale: %s", m)
	}
	if (&Changes{}).Markup() != "" {
		t.Error("no row, no chart")
	}
	parsed(t, (&Changes{Rows: []Change{{Label: "nothing changed"}}}).Markup())
}
