package chart

import (
	"html/template"
	"math"
)

// Group is one length bucket of the length chart.
type Group struct {
	Label string // "65–128"
	Sub   string // "1 of 104"
	AtCap *Point // nil: no message
	Whole *Point // the same messages read whole; nil where nothing was cut
}

// Length is misroute rate by message length, at the cap and read whole, with the cut between the
// groups.
type Length struct {
	Title    string // a sentence
	AxisNote string // what the groups are
	Groups   []Group
	// Cut is where the cap stands, in groups from the left: 3 is between the third and the fourth,
	// 3.5 in the middle of the fourth. Below 0: there is no cap.
	Cut      float64
	CutLabel string
}

// Markup draws both variants.
func (l *Length) Markup() template.HTML {
	if len(l.Groups) == 0 {
		return ""
	}
	return l.desk() + l.phone()
}

// top is the largest value of the axis: every rate, and the intervals of groups that have messages
// enough. The interval of a handful of messages reaches anywhere and would flatten the rest.
func (l *Length) top() float64 {
	top := 0.02
	for _, g := range l.Groups {
		for _, p := range []*Point{g.AtCap, g.Whole} {
			switch {
			case p == nil:
			case p.Few:
				top = math.Max(top, math.Min(1, p.Value*1.1))
			default:
				top = math.Max(top, p.High)
			}
		}
	}
	return top
}

func (l *Length) desk() template.HTML {
	const left, right, upper, lower = 56, deskWidth - 14, 34, 246
	c := newCanvas(deskWidth, 312, "desk", l.Title)
	marks := Ticks(l.top(), 6)
	y := axis{0, marks[len(marks)-1], lower, upper}
	step := (right - left) / float64(len(l.Groups))
	cut := left + l.Cut*step
	if l.Cut >= 0 {
		c.rect(cut, upper, right-cut, lower-upper, 0, "past")
	}
	for _, v := range marks {
		c.line(left, y.at(v), right, y.at(v), "grid")
		c.text(left-8, y.at(v)+4.5, "e", percentTick(v))
	}
	for i, g := range l.Groups {
		x := left + (float64(i)+0.5)*step
		shift := 0.0
		if g.Whole != nil {
			shift = math.Min(9, step/6)
		}
		if g.AtCap != nil {
			c.upright(x-shift, y, *g.AtCap, "cap", 5)
		}
		if g.Whole != nil {
			c.upright(x+shift, y, *g.Whole, "whole", 5)
		}
		if every := labelEvery(l.Groups, step); i%every == 0 {
			c.text(x, lower+19, "m", g.Label)
			c.text(x, lower+37, "sub m", g.Sub)
		}
	}
	if l.Cut >= 0 {
		c.line(cut, upper-26, cut, lower, "cutline")
		// Above the plot, where no interval ends, on the side that has room for the words.
		if need := float64(len(l.CutLabel))*charWidth + 12; right-cut >= need {
			c.text(cut+8, upper-14, "cutc", l.CutLabel)
		} else {
			c.text(cut-8, upper-14, "cutc e", l.CutLabel)
		}
	}
	c.text((left+right)/2, 308, "sub m", l.AxisNote)
	return c.markup()
}

// labelEvery thins out labels that would run into each other.
func labelEvery(groups []Group, step float64) int {
	longest := 0
	for _, g := range groups {
		longest = max(longest, len([]rune(g.Label)), len([]rune(g.Sub)))
	}
	return max(1, int(math.Ceil((float64(longest)*charWidth+8)/step)))
}

// phone lays the groups out as rows: seven labels do not fit side by side.
func (l *Length) phone() template.HTML {
	const right, upper, row = phoneWidth - 14, 8, 44
	longest := 0
	for _, g := range l.Groups {
		longest = max(longest, len([]rune(g.Label)), len([]rune(g.Sub)))
	}
	left := math.Min(math.Max(84, float64(longest)*charWidth+14), phoneWidth/2)
	height := upper + row*float64(len(l.Groups)) + 44
	c := newCanvas(phoneWidth, height, "phone", l.Title)
	lower := upper + row*float64(len(l.Groups))
	marks := Ticks(l.top(), 4)
	x := axis{0, marks[len(marks)-1], left, right}
	cut := upper + l.Cut*row
	if l.Cut >= 0 {
		c.rect(0, cut, phoneWidth, lower-cut, 0, "past")
	}
	for i, v := range marks {
		c.line(x.at(v), upper, x.at(v), lower, "grid")
		anchor := "m"
		if i == len(marks)-1 {
			anchor = "e"
		}
		end := x.at(v)
		if anchor == "e" {
			end += 12
		}
		c.text(end, lower+18, anchor, percentTick(v))
	}
	for i, g := range l.Groups {
		y := upper + (float64(i)+0.5)*row
		c.text(left-10, y-2, "e", g.Label)
		c.text(left-10, y+14, "sub e", g.Sub)
		shift := 0.0
		if g.Whole != nil {
			shift = 7
		}
		if g.AtCap != nil {
			c.level(y-shift, x, *g.AtCap, "cap", 4.5)
		}
		if g.Whole != nil {
			c.level(y+shift, x, *g.Whole, "whole", 4.5)
		}
	}
	if l.Cut >= 0 {
		c.line(0, cut, phoneWidth, cut, "cutline")
		y := cut - 6
		if y < 12 {
			y = cut + 16
		}
		c.text(phoneWidth-4, y, "cutc halo e", l.CutLabel)
	}
	c.text(phoneWidth/2, height-6, "sub m", l.AxisNote)
	return c.markup()
}
