package chart

import (
	"html/template"
	"math"
	"strings"

	"misroute/reports/table"
)

// Change is a difference with its interval, one row of the changes chart.
type Change struct {
	Label string
	Point      // in shares: 0.01 is one point
	Told  bool // told from chance
}

// Changes draws differences of candidate and baseline as rows around a line of no change; the
// margin that still passes stands beside it.
type Changes struct {
	Title  string
	Rows   []Change
	Margin float64 // 0: none to draw
}

// Markup draws both variants.
func (g *Changes) Markup() template.HTML {
	if len(g.Rows) == 0 {
		return ""
	}
	return g.draw(deskWidth, 190, 24, "desk") + g.draw(phoneWidth, 122, 14, "phone")
}

func (g *Changes) draw(width, left float64, letters int, class string) template.HTML {
	const upper, row = 22, 28
	right := width - 26
	lower := upper + row*float64(len(g.Rows))
	c := newCanvas(width, lower+42, class, g.Title)
	reach := math.Max(0.005, 2*g.Margin)
	for _, r := range g.Rows {
		if r.Few {
			reach = math.Max(reach, math.Abs(r.Value))
		} else {
			reach = math.Max(reach, math.Max(math.Abs(r.Low), math.Abs(r.High)))
		}
	}
	marks := Ticks(reach, 2)
	top := marks[len(marks)-1]
	x := axis{-top, top, left, right}
	for _, v := range []float64{-top, -top / 2, 0, top / 2, top} {
		c.line(x.at(v), upper, x.at(v), lower, "grid")
		label := strings.TrimSuffix(percentTick(math.Abs(v)), "\u00a0%")
		if v > 0 {
			label = "+" + label
		} else if v < 0 {
			label = "−" + label
		}
		if math.Abs(v) != top/2 || class == "desk" {
			c.text(x.at(v), lower+18, "m", label)
		}
	}
	c.line(x.at(0), upper-6, x.at(0), lower, "axis")
	if g.Margin > 0 {
		c.line(x.at(g.Margin), upper-6, x.at(g.Margin), lower, "cutline")
	}
	c.text(x.at(-top), upper-8, "sub", "better")
	c.text(x.at(top), upper-8, "sub e", "worse")
	for i, r := range g.Rows {
		y := upper + (float64(i)+0.5)*row
		c.text(left-10, y+4.5, "e", table.Fit(table.Clean(r.Label), letters))
		series := "ink"
		if r.Told && r.Value > 0 {
			series = "cap"
		} else if r.Told {
			series = "whole"
		}
		p := r.Point
		tip := p.Low < -top
		p.Low = math.Max(p.Low, -top)
		c.level(y, x, p, series, 4.5)
		if tip {
			c.open(p.class(series))
			c.line(x.at(-top)+6, y-4, x.at(-top), y, "")
			c.line(x.at(-top)+6, y+4, x.at(-top), y, "")
			c.close()
		}
	}
	c.text((left+right)/2, lower+37, "sub m", "points of misroute rate")
	return c.markup()
}
