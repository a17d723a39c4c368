package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Week is one period of the weeks chart.
type Week struct {
	Label string // "W47"
	Sub   string // "31 of 310"
	Rate  *Point // nil: no labelled message
	// Low and High are the limits of chance for this week's number of messages.
	Low, High float64
	Out       bool // outside of them
}

// Weeks is a control chart: the misroute rate of each week, the limits of chance around the centre
// as a band that is narrower where a week has more mail.
type Weeks struct {
	Title  string // a sentence
	Centre float64
	Weeks  []Week
}

// Markup draws both variants.
func (w *Weeks) Markup() template.HTML {
	if len(w.Weeks) == 0 {
		return ""
	}
	return w.desk() + w.phone()
}

// top is the largest value of the axis: every rate and every limit, and the intervals of weeks with
// messages enough.
func (w *Weeks) top() float64 {
	top := math.Max(0.02, w.Centre*1.2)
	for _, x := range w.Weeks {
		if x.Rate == nil {
			continue
		}
		top = math.Max(top, x.Rate.Value*1.05)
		if !x.Rate.Few {
			top = math.Max(top, math.Max(x.High, x.Rate.High))
		}
	}
	return math.Min(1, top)
}

// series is the class of a week's point: colour is not the only sign, the point outside is also
// larger and ringed.
func (x *Week) series() string {
	if x.Out {
		return "cap"
	}
	return "ink"
}

func (w *Weeks) desk() template.HTML {
	const left, right, upper, lower = 56, deskWidth - 14, 18, 230
	c := newCanvas(deskWidth, 278, "desk", w.Title)
	marks := Ticks(w.top(), 6)
	y := axis{0, marks[len(marks)-1], lower, upper}
	step := (right - left) / float64(len(w.Weeks))
	for i, x := range w.Weeks {
		if x.Rate != nil {
			high, low := y.at(x.High), y.at(x.Low)
			c.rect(left+float64(i)*step, high, step, low-high, 0, "band")
		}
	}
	for _, v := range marks {
		c.line(left, y.at(v), right, y.at(v), "grid")
		c.text(left-8, y.at(v)+4.5, "e", percentTick(v))
	}
	c.line(left, y.at(w.Centre), right, y.at(w.Centre), "diag")
	c.path(w.joined(func(i int, v float64) (float64, float64) { return left + (float64(i)+0.5)*step, y.at(v) }), "ln s1")
	groups := make([]Group, len(w.Weeks))
	for i, x := range w.Weeks {
		groups[i] = Group{Label: x.Label, Sub: x.Sub}
	}
	every := labelEvery(groups, step)
	for i, x := range w.Weeks {
		at := left + (float64(i)+0.5)*step
		if x.Rate != nil {
			c.upright(at, y, *x.Rate, x.series(), 5)
			if x.Out {
				c.circle(at, y.at(x.Rate.Value), 9, "ring")
			}
		}
		// Thinned out from the last week backwards: it is the one that matters.
		if (len(w.Weeks)-1-i)%every == 0 {
			c.text(at, lower+19, "m", x.Label)
			c.text(at, lower+37, "sub m", x.Sub)
		}
	}
	return c.markup()
}

// joined is the line through the weeks; a week without labels leaves a gap.
func (w *Weeks) joined(at func(week int, rate float64) (x, y float64)) string {
	var d strings.Builder
	pen := "M"
	for i, week := range w.Weeks {
		if week.Rate == nil {
			pen = "M"
			continue
		}
		x, y := at(i, week.Rate.Value)
		fmt.Fprintf(&d, "%s%s %s", pen, num(x), num(y))
		pen = "L"
	}
	return d.String()
}

// phone lays the weeks out as rows.
func (w *Weeks) phone() template.HTML {
	const left, right, upper, row = 92, phoneWidth - 14, 8, 40
	lower := upper + row*float64(len(w.Weeks))
	c := newCanvas(phoneWidth, lower+28, "phone", w.Title)
	marks := Ticks(w.top(), 4)
	x := axis{0, marks[len(marks)-1], left, right}
	for i, week := range w.Weeks {
		if week.Rate != nil {
			c.rect(x.at(week.Low), upper+float64(i)*row, x.at(week.High)-x.at(week.Low), row, 0, "band")
		}
	}
	for i, v := range marks {
		c.line(x.at(v), upper, x.at(v), lower, "grid")
		if i == len(marks)-1 {
			c.text(x.at(v)+12, lower+18, "e", percentTick(v))
		} else {
			c.text(x.at(v), lower+18, "m", percentTick(v))
		}
	}
	c.line(x.at(w.Centre), upper, x.at(w.Centre), lower, "diag")
	for i, week := range w.Weeks {
		y := upper + (float64(i)+0.5)*row
		c.text(left-10, y-1, "e", week.Label)
		c.text(left-10, y+14, "sub e", week.Sub)
		if week.Rate != nil {
			c.level(y, x, *week.Rate, week.series(), 4.5)
			if week.Out {
				c.circle(x.at(week.Rate.Value), y, 8, "ring")
			}
		}
	}
	return c.markup()
}
