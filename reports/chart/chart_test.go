package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// word is a text of a drawing with its estimated place.
type word struct {
	text           string
	x1, x2, y1, y2 float64
}

// check reads drawings back: well-formed, with finite numbers, every text inside of its drawing and
// none on top of another.
func check(t *testing.T, what string, drawings template.HTML) {
	t.Helper()
	for _, drawing := range strings.SplitAfter(string(drawings), "</svg>") {
		if drawing == "" {
			continue
		}
		if strings.Contains(drawing, "NaN") || strings.Contains(drawing, "Inf") {
			t.Errorf("%s: a coordinate is no number", what)
		}
		width, height, words := read(t, what, drawing)
		for i, w := range words {
			// A quarter of a character of slack: widths are estimated.
			if w.x1 < -2 || w.x2 > width+2 || w.y1 < -1 || w.y2 > height+2 {
				t.Errorf("%s: %q stands outside: %.0f to %.0f of %.0f, %.0f to %.0f of %.0f", what, w.text, w.x1, w.x2, width, w.y1, w.y2, height)
			}
			for _, v := range words[:i] {
				if w.x1+1 < v.x2 && v.x1+1 < w.x2 && w.y1+1 < v.y2 && v.y1+1 < w.y2 {
					t.Errorf("%s: %q covers %q", what, w.text, v.text)
				}
			}
		}
	}
}

func read(t *testing.T, what, drawing string) (width, height float64, words []word) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(drawing))
	var at map[string]string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return width, height, words
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			at = map[string]string{"element": e.Name.Local}
			for _, a := range e.Attr {
				at[a.Name.Local] = a.Value
			}
			if e.Name.Local == "svg" {
				if _, err := fmt.Sscanf(at["viewBox"], "0 0 %g %g", &width, &height); err != nil {
					t.Fatalf("%s: viewBox %q", what, at["viewBox"])
				}
			}
		case xml.EndElement:
			at = nil
		case xml.CharData:
			if at["element"] != "text" {
				continue
			}
			x, _ := strconv.ParseFloat(at["x"], 64)
			y, _ := strconv.ParseFloat(at["y"], 64)
			w := word{text: string(e), x1: x, y1: y - 10, y2: y + 3}
			span := float64(len([]rune(w.text))) * 6.5
			for _, class := range strings.Fields(at["class"]) {
				switch class {
				case "e":
					w.x1 -= span
				case "m":
					w.x1 -= span / 2
				}
			}
			w.x2 = w.x1 + span
			words = append(words, w)
		}
	}
}

func TestLengthChart(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for trial := range 60 {
		l := &Length{Title: "Misroutes by length", AxisNote: "tokens in the whole message", Cut: -1}
		for i := range 1 + random.IntN(12) {
			g := Group{Label: fmt.Sprintf("%d–%d", 64<<i, 64<<(i+1)), Sub: "none"}
			if random.Float64() < 0.9 {
				v := random.Float64()
				g.Sub = "112 of 1,130"
				g.AtCap = &Point{Value: v, Low: v * random.Float64(), High: v + (1-v)*random.Float64(), Few: random.Float64() < 0.3}
				if random.Float64() < 0.5 {
					g.Whole = g.AtCap
				}
			}
			l.Groups = append(l.Groups, g)
		}
		if trial%3 > 0 {
			l.Cut, l.CutLabel = float64(random.IntN(2*len(l.Groups)+1))/2, "past the cap: 16,384 tokens"
		}
		check(t, fmt.Sprint("trial ", trial), l.Markup())
	}
	if got := (&Length{}).Markup(); got != "" {
		t.Errorf("no groups draw %q", got)
	}
}

func TestLengthChartDrawsWhatItIsGiven(t *testing.T) {
	l := &Length{Title: "a < b", Groups: []Group{
		{Label: "1–64", Sub: "1 of 92", AtCap: &Point{Value: 0.1, Low: 0, High: 0.2}},
		{Label: "> 64", Sub: "2 of 4", AtCap: &Point{Value: 0.5, Low: 0.15, High: 0.85, Few: true}, Whole: &Point{Value: 0, Low: 0, High: 0.49, Few: true}},
	}, Cut: 1, CutLabel: "past the cap"}
	desk := string(l.desk())
	for part, want := range map[string]int{`class="pt cap"`: 1, `class="pt cap fewpt"`: 1, `class="pt whole fewpt"`: 1, `class="cutline"`: 1, `class="past"`: 1, `aria-label="a &lt; b"`: 1} {
		if got := strings.Count(desk, part); got != want {
			t.Errorf("%d times %s, want %d", got, part, want)
		}
	}
	// The axis ends at 60 %, the first round tick above the largest rate and the largest interval
	// that counts; a tenth is then a sixth of the way up from 246 to 34.
	if want := regexp.MustCompile(`<circle cx="[\d.]+" cy="210\.7" r="5"/>`); !want.MatchString(desk) {
		t.Errorf("no point at 10 %% in %s", desk)
	}
	if strings.Contains(desk, "style=") || strings.Contains(desk, "fill=") || strings.Contains(desk, "stroke=") {
		t.Error("colours belong to the stylesheet")
	}
}

func TestSmallCharts(t *testing.T) {
	check(t, "reliability", Reliability("x", []ScorePoint{{0.93, Point{0.9, 0.8, 0.95, false}}, {1, Point{1, 0.9, 1, false}}}))
	check(t, "reliability of nothing", Reliability("x", nil))
	check(t, "reliability of zero", Reliability("x", []ScorePoint{{0, Point{0, 0, 0.3, true}}}))
	check(t, "risk of nothing", Risk("x", nil, nil))
	var curve []RiskPoint
	for i := range 100 {
		v := float64(i) / 1000
		curve = append(curve, RiskPoint{float64(i+1) / 100, Point{v, v / 2, v * 2, i < 5}})
	}
	check(t, "risk", Risk("x", curve, []RiskMark{{"0.5", curve[99]}, {"0.6", curve[98]}, {"0.7", curve[60]}, {"0.9", curve[8]}}))
	check(t, "bar", Bar(0.3)+Bar(0)+Bar(7))
	check(t, "split", Split("x", []Part{{"gap", "+12.0", 0.12, "b-total"}, {"harder mail", "−2.5", -0.025, "b-hard"}, {"nothing", "0.0", 0, "b-cut"}}))
	check(t, "split of nothing", Split("x", []Part{{"a", "0.0", 0, ""}}))
	check(t, "depth", Depth("x", []DepthStep{{"64", 0.5}, {"128", 0.8}, {"256", 0.9}, {"512", 0.95}, {"1024", 0.96}, {"whole", 0.97}}, 2))
	check(t, "depth of all", Depth("x", []DepthStep{{"64", 1}, {"whole", 1}}, -1))
	check(t, "depth of none", Depth("x", []DepthStep{{"64", 0}, {"whole", 0}}, 5))
}

func TestRuler(t *testing.T) {
	r := string(Ruler("612 tokens, 256 read", 612, 1224, []Span{{0, 192}, {548, 612}}, &Span{480, 500}))
	check(t, "ruler", template.HTML(r))
	// A message of half the longest fills half of the 198 pixels; head+tail is cut on both sides.
	if !strings.Contains(r, `width="99" height="6" rx="3" class="lost"`) || strings.Count(r, `class="cutline"`) != 2 || strings.Count(r, `class="kept"`) != 2 {
		t.Errorf("%s", r)
	}
	for _, bad := range []template.HTML{Ruler("", 0, 0, nil, nil), Ruler("", 1<<31-1, 1, []Span{{0, 1 << 30}}, &Span{1 << 30, 1<<30 + 1})} {
		check(t, "odd ruler", bad)
	}
}

func TestTradeChart(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for trial := range 40 {
		tr := &Trade{Title: "x", CostName: "mean cost of a message, FLOP (log)", Cost: func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }}
		spread := math.Pow(10, random.Float64()*6)
		for i := range 1 + random.IntN(20) {
			wrong := random.IntN(300)
			tr.Settings = append(tr.Settings, Setting{Label: fmt.Sprintf("head+tail %d", 64<<(i%6)), Series: i % 4, Cost: 1 + random.Float64()*spread, Wrong: wrong, Low: float64(wrong) * 0.8, High: float64(wrong) * 1.3, Named: true, Now: i == 0, Dominated: i%2 == 0})
		}
		check(t, fmt.Sprint("trial ", trial), tr.Markup())
	}
}

func TestTicks(t *testing.T) {
	for _, x := range []struct {
		high float64
		n    int
		want []float64
	}{
		{0.56, 6, []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}},
		{1, 5, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{0.02, 4, []float64{0, 0.005, 0.01, 0.015, 0.02}},
		{48, 6, []float64{0, 10, 20, 30, 40, 50}},
		{0, 5, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
	} {
		got := Ticks(x.high, x.n)
		if len(got) != len(x.want) {
			t.Errorf("Ticks(%g, %d) = %v, want %v", x.high, x.n, got, x.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-x.want[i]) > 1e-12 {
				t.Errorf("Ticks(%g, %d) = %v, want %v", x.high, x.n, got, x.want)
				break
			}
		}
	}
}
