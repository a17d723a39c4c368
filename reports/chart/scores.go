package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// ScorePoint is a bin of the reliability plot: what the router said, and how often it was right.
type ScorePoint struct {
	Score float64
	Point
}

// Reliability plots accuracy against mean score; on the diagonal scores mean what they say.
func Reliability(title string, points []ScorePoint) template.HTML {
	const left, right, upper, lower = 56, phoneWidth - 12, 14, 232
	c := newCanvas(phoneWidth, 274, "square", title)
	low := 1.0
	for _, p := range points {
		low = math.Min(low, math.Min(p.Score, p.Value))
	}
	low = math.Max(0, math.Floor(low*5)/5) // scores crowd near 1: begin where they do
	if low >= 1 {
		low = 0.8
	}
	x, y := axis{low, 1, left, right}, axis{low, 1, lower, upper}
	for i := range 5 {
		v := low + (1-low)*float64(i)/4
		c.line(left, y.at(v), right, y.at(v), "grid")
		c.text(left-8, y.at(v)+4.5, "e", percentTick(v))
		if i%2 == 0 {
			anchor := "m"
			if i == 4 {
				anchor = "e"
			}
			c.text(x.at(v)+map[string]float64{"e": 6}[anchor], lower+18, anchor, fmt.Sprintf("%.2g", v))
		}
	}
	c.line(x.at(low), y.at(low), x.at(1), y.at(1), "diag")
	for _, p := range points {
		c.upright(x.at(p.Score), y, p.Point, "ink", 4.5)
	}
	c.text((left+right)/2, lower+38, "sub m", "mean score")
	return c.markup()
}

// RiskPoint is one threshold of the coverage-risk curve.
type RiskPoint struct {
	Coverage float64 // share of messages the router decides
	Point            // misroute rate among them
}

// RiskMark is a threshold worth naming.
type RiskMark struct {
	Label string
	RiskPoint
}

// Risk plots misroutes among decided messages against how many are decided.
func Risk(title string, curve []RiskPoint, marks []RiskMark) template.HTML {
	const left, right, upper, lower = 56, phoneWidth - 12, 14, 232
	c := newCanvas(phoneWidth, 274, "square", title)
	top := 0.01
	for _, p := range curve {
		if !p.Few {
			top = math.Max(top, p.High)
		}
	}
	steps := Ticks(top, 5)
	x, y := axis{0, 1, left, right}, axis{0, steps[len(steps)-1], lower, upper}
	for _, v := range steps {
		c.line(left, y.at(v), right, y.at(v), "grid")
		c.text(left-8, y.at(v)+4.5, "e", percentTick(v))
	}
	var band, line strings.Builder
	started := false
	var solid []RiskPoint
	for _, p := range curve {
		if !p.Few { // the first few messages say nothing
			solid = append(solid, p)
		}
	}
	for i, p := range solid {
		fmt.Fprintf(&band, "%s%s %s", []string{"M", "L"}[min(i, 1)], num(x.at(p.Coverage)), num(y.at(p.High)))
		fmt.Fprintf(&line, "%s%s %s", []string{"M", "L"}[min(i, 1)], num(x.at(p.Coverage)), num(y.at(p.Value)))
		started = true
	}
	for i := len(solid) - 1; i >= 0; i-- {
		fmt.Fprintf(&band, "L%s %s", num(x.at(solid[i].Coverage)), num(y.at(solid[i].Low)))
	}
	if started {
		c.path(band.String()+"Z", "band")
		c.path(line.String(), "ln s0")
	}
	for i, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		anchor := "m"
		shift := 0.0
		if i == 4 {
			anchor, shift = "e", 6
		}
		c.text(x.at(v)+shift, lower+18, anchor, percentTick(v))
	}
	taken := &occupied{}
	for _, m := range marks {
		px, py := x.at(m.Coverage), y.at(m.Value)
		c.circle(px, py, 4, "s0 on")
		taken.dot(px, py, 6)
	}
	for _, m := range marks {
		taken.place(c, x.at(m.Coverage), y.at(m.Value), m.Label, "halo", left, right, upper, lower)
	}
	c.text((left+right)/2, lower+38, "sub m", "share of messages the router decides")
	return c.markup()
}

// box is a rectangle that is drawn on.
type box struct{ x1, y1, x2, y2 float64 }

// occupied remembers what is drawn where, so that labels do not cover each other.
type occupied struct{ boxes []box }

func (o *occupied) dot(x, y, r float64) {
	o.boxes = append(o.boxes, box{x - r, y - r, x + r, y + r})
}

func (o *occupied) free(b box) bool {
	for _, t := range o.boxes {
		if b.x1 < t.x2 && t.x1 < b.x2 && b.y1 < t.y2 && t.y1 < b.y2 {
			return false
		}
	}
	return true
}

// place writes a label near a point on the first free side, or not at all: a label left out is
// better than two that cannot be read, since the table has every number.
func (o *occupied) place(c *canvas, x, y float64, label, class string, left, right, upper, lower float64) bool {
	width, height := float64(len([]rune(label)))*charWidth, 14.0
	for _, try := range []struct {
		dx, dy float64
		anchor string
	}{{9, -8, ""}, {9, 17, ""}, {-9, -8, "e"}, {-9, 17, "e"}, {0, -12, "m"}, {0, 22, "m"}, {9, -22, ""}, {9, 31, ""}, {-9, -22, "e"}} {
		tx, ty := x+try.dx, y+try.dy
		b := box{tx, ty - height + 3, tx + width, ty + 3}
		switch try.anchor {
		case "e":
			b.x1, b.x2 = tx-width, tx
		case "m":
			b.x1, b.x2 = tx-width/2, tx+width/2
		}
		if b.x1 < left || b.x2 > right || b.y1 < upper-8 || b.y2 > lower || !o.free(b) {
			continue
		}
		c.text(tx, ty, strings.TrimSpace(class+" "+try.anchor), label)
		o.boxes = append(o.boxes, b)
		return true
	}
	return false
}
