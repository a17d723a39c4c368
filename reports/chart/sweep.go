package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Setting is one point of the trade between cost and misroutes.
type Setting struct {
	Label     string
	Series    int     // strategy: its colour and its line, 0 to 3
	Cost      float64 // above 0
	Wrong     int
	Low, High float64 // interval of Wrong
	Dominated bool    // hollow: another is no dearer and no worse
	Now       bool    // the run's own setting
	Named     bool    // carries its label
}

// Trade is the Pareto picture of a sweep.
type Trade struct {
	Title    string
	CostName string // "mean cost of a message (log)"
	Cost     func(float64) string
	Settings []Setting
}

// Markup draws both variants.
func (t *Trade) Markup() template.HTML {
	if len(t.Settings) == 0 {
		return ""
	}
	return t.draw(deskWidth, 330, "desk") + t.draw(phoneWidth, 360, "phone")
}

func (t *Trade) draw(width, height float64, class string) template.HTML {
	left, right, upper, lower := 48.0, width-16, 18.0, height-58
	c := newCanvas(width, height, class, t.Title)
	top, cheap, dear := 1.0, math.Inf(1), 0.0
	for _, s := range t.Settings {
		top = math.Max(top, math.Max(float64(s.Wrong), s.High))
		cheap, dear = math.Min(cheap, s.Cost), math.Max(dear, s.Cost)
	}
	marks := Ticks(top, 6)
	y := axis{0, marks[len(marks)-1], lower, upper}
	pad := math.Max(0.05, math.Log(dear/cheap)*0.06)
	x := axis{math.Log(cheap) - pad, math.Log(dear) + pad, left, right}
	for _, v := range marks {
		c.line(left, y.at(v), right, y.at(v), "grid")
		c.text(left-8, y.at(v)+4.5, "e", fmt.Sprintf("%g", v))
	}
	for _, v := range RoundCosts(cheap, dear, (right-left)/70) {
		c.text(x.at(math.Log(v)), lower+19, "m", t.Cost(v))
	}
	c.text((left+right)/2, height-20, "sub m", t.CostName)
	c.text((left+right)/2, height-3, "sub m", "hollow: another is no dearer and no worse")
	taken := &occupied{}
	for series := range 4 {
		t.polyline(c, series, x, y)
	}
	for _, s := range t.Settings {
		px, py := x.at(math.Log(s.Cost)), y.at(float64(s.Wrong))
		kind := "on"
		if s.Dominated {
			kind = "dom"
		}
		if s.High > s.Low {
			c.line(px, y.at(s.Low), px, y.at(s.High), fmt.Sprintf("s%d", s.Series))
		}
		c.circle(px, py, 5, fmt.Sprintf("s%d %s", s.Series, kind))
		if s.Now {
			c.circle(px, py, 9, "ring")
		}
		taken.dot(px, py, 7)
	}
	for _, s := range t.Settings {
		if s.Named {
			taken.place(c, x.at(math.Log(s.Cost)), y.at(float64(s.Wrong)), s.Label, "halo", left, right, upper, lower)
		}
	}
	return c.markup()
}

// polyline joins the settings of a strategy in the order of cost.
func (t *Trade) polyline(c *canvas, series int, x, y axis) {
	var points []Setting
	for _, s := range t.Settings {
		if s.Series == series {
			points = append(points, s)
		}
	}
	slices.SortStableFunc(points, func(a, b Setting) int {
		switch {
		case a.Cost < b.Cost:
			return -1
		case a.Cost > b.Cost:
			return 1
		}
		return 0
	})
	if len(points) < 2 {
		return
	}
	var d strings.Builder
	for i, s := range points {
		fmt.Fprintf(&d, "%s%s %s", []string{"M", "L"}[min(i, 1)], num(x.at(math.Log(s.Cost))), num(y.at(float64(s.Wrong))))
	}
	c.path(d.String(), fmt.Sprintf("ln s%d", series))
}

// RoundCosts are values for a logarithmic axis, at most most of them: as coarse as leaves three.
func RoundCosts(low, high, most float64) []float64 {
	var list []float64
	for _, steps := range [][]float64{{1, 10}, {1, 2, 5}, {1, 2, 3, 5, 7}, {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}} {
		list = list[:0]
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, e); v >= low*0.97 && v <= high*1.03 && !slices.Contains(list, v) {
					list = append(list, v)
				}
			}
		}
		if len(list) >= 3 {
			break
		}
	}
	if len(list) == 0 {
		list = append(list, low)
	}
	for float64(len(list)) > math.Max(2, most) {
		kept := list[:0]
		for i, v := range list {
			if i%2 == 0 {
				kept = append(kept, v)
			}
		}
		list = kept
	}
	return list
}

// DepthStep is the share of messages that are right from a cap on.
type DepthStep struct {
	Label string
	Share float64
}

// Depth draws the cumulative curve of decision depth as a staircase, with the run's own cap in amber.
func Depth(title string, steps []DepthStep, now int) template.HTML {
	if len(steps) < 2 {
		return ""
	}
	const left, right, upper, lower = 56, phoneWidth - 12, 20, 216
	c := newCanvas(phoneWidth, 262, "square", title)
	low := 1.0
	for _, s := range steps {
		low = math.Min(low, s.Share)
	}
	missing := Ticks(math.Max(1-low, 0.01), 5) // the axis counts down from everything
	low = math.Max(0, 1-missing[len(missing)-1])
	y := axis{low, 1, lower, upper}
	for _, m := range missing {
		if v := 1 - m; v >= -1e-9 {
			c.line(left, y.at(v), right, y.at(v), "grid")
			c.text(left-8, y.at(v)+4.5, "e", percentTick(v))
		}
	}
	step := (right - left) / float64(len(steps))
	var d strings.Builder
	if now >= 0 && now < len(steps) {
		x := left + float64(now)*step
		c.line(x, upper-6, x, lower, "cutline")
	}
	for i, s := range steps {
		x := left + float64(i)*step
		if i == 0 {
			fmt.Fprintf(&d, "M%s %s", num(x), num(y.at(s.Share)))
		} else {
			fmt.Fprintf(&d, "V%s", num(y.at(s.Share)))
		}
		fmt.Fprintf(&d, "H%s", num(x+step))
		if every := int(math.Ceil(float64(len(s.Label)+1) * charWidth / step)); i%max(1, every) == 0 {
			c.text(x, lower+18, []string{"", "m"}[min(i, 1)], s.Label)
		}
	}
	c.path(d.String(), "ln s2")
	c.text((left+right)/2, lower+40, "sub m", "right from this cap on, and stays right")
	return c.markup()
}
