package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
)

// Grid is a square of weights with a label a row, which is also the label of the column.
type Grid struct {
	Labels  []string
	Weights [][]float64 // row i is what label i looked at
	Most    []string    // said beside each row; nil: nothing
}

// Heat draws weights as shades: the darker, the more. Shades go with the square root, so that a
// weight of a hundredth can still be told from none.
type Heat struct {
	Title string // a sentence
	Top   float64
	Desk  Grid
	Phone Grid // fewer labels: the same cells would be too small to read
}

// MaxHeatDesk and MaxHeatPhone are the most labels at which text keeps its size.
const (
	MaxHeatDesk  = 36
	MaxHeatPhone = 14
)

// Markup draws both variants.
func (h *Heat) Markup() template.HTML {
	if len(h.Desk.Labels) == 0 {
		return ""
	}
	return h.draw(&h.Desk, deskWidth, 92, 24, "desk") + h.draw(&h.Phone, phoneWidth, 74, 15, "phone")
}

func (h *Heat) draw(g *Grid, width, left, most float64, class string) template.HTML {
	const upper, right = 84, 50
	n := float64(len(g.Labels))
	step := math.Min(most+2, (width-left-right)/math.Max(1, n))
	gap := math.Min(2, step/8)
	c := newCanvas(width, upper+step*n+6, class, h.Title)
	for i, label := range g.Labels {
		x := left + (float64(i)+0.5)*step
		fmt.Fprintf(&c.b, `<text transform="translate(%s,%d) rotate(-65)">%s</text>`, num(x+3), upper-6, html.EscapeString(label))
		y := upper + (float64(i)+0.5)*step + 4.5
		c.text(left-7, y, "e", label)
		if i < len(g.Most) {
			c.text(left+n*step+7, y, "sub", g.Most[i])
		}
	}
	if len(g.Most) > 0 {
		c.text(left+n*step+7, upper-6, "sub", "most")
	}
	c.open("hm")
	for i, row := range g.Weights {
		for j, w := range row {
			shade := math.Sqrt(math.Max(0, math.Min(1, w/h.Top)))
			if !(shade >= 0.04) {
				continue // cannot be seen, and a page of them is long
			}
			fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill-opacity="%s"/>`,
				num(left+float64(j)*step), num(upper+float64(i)*step), num(step-gap), num(step-gap), strconv.FormatFloat(math.Round(shade*100)/100, 'f', -1, 64))
		}
	}
	c.close()
	return c.markup()
}

// Zone is a named stretch of a message.
type Zone struct {
	Span
	Name string
}

// Strip draws a message from its first token to its last: what was read dark, what was not light, a
// dashed line at each cut, the deciding sentence, and, where there are values, a bar a token.
type Strip struct {
	Title    string // a sentence
	Tokens   int
	Lost     []Span
	CutLabel string
	Zones    []Zone
	Decisive *Span
	Values   []float64 // one a token, from 0; nil: none
}

// Markup draws both variants.
func (s *Strip) Markup() template.HTML {
	if s.Tokens == 0 {
		return ""
	}
	return s.draw(deskWidth, 8, "desk") + s.draw(phoneWidth, 4, "phone")
}

func (s *Strip) draw(width float64, marks int, class string) template.HTML {
	const left, right = 8, 8
	bars := 0.0
	if s.Values != nil {
		bars = 64
	}
	top := 26 + bars
	low := top + 14
	c := newCanvas(width, low+22, class, s.Title)
	x := axis{0, float64(s.Tokens), left, width - right}
	for _, z := range s.Lost {
		c.rect(x.at(float64(z.From)), 20, x.at(float64(z.To))-x.at(float64(z.From)), low-20, 0, "past")
	}
	c.rect(left, top, width-left-right, 14, 3, "kept")
	for _, z := range s.Lost {
		c.rect(x.at(float64(z.From)), top, math.Max(1, x.at(float64(z.To))-x.at(float64(z.From))), 14, 0, "lost")
	}
	if s.Decisive != nil {
		from, to := x.at(float64(s.Decisive.From)), x.at(float64(s.Decisive.To))
		c.rect(from, top-3, math.Max(4, to-from), 20, 2, "dec")
	}
	for _, z := range s.Zones {
		if z.From > 0 {
			c.line(x.at(float64(z.From)), top-4, x.at(float64(z.From)), low+4, "axis")
		}
	}
	s.bars(c, x, top-4, bars-6)
	s.cuts(c, x, low)
	for _, v := range Ticks(float64(s.Tokens), marks) {
		at := x.at(v)
		switch {
		case v > float64(s.Tokens):
		case v == 0:
			c.text(at, low+18, "sub", "0")
		case at > width-28:
			c.text(width-right, low+18, "sub e", strconv.Itoa(int(v)))
		default:
			c.text(at, low+18, "sub m", strconv.Itoa(int(v)))
		}
	}
	return c.markup()
}

// cuts draws the lines, and the words at the first of them.
func (s *Strip) cuts(c *canvas, x axis, low float64) {
	said := false
	for _, z := range s.Lost {
		for _, at := range []int{z.From, z.To} {
			if at <= 0 || at >= s.Tokens {
				continue
			}
			px := x.at(float64(at))
			c.line(px, 4, px, low, "cutline")
			if said {
				continue
			}
			said = true
			if px+8+float64(len(s.CutLabel))*charWidth < c.width {
				c.text(px+6, 14, "cutc", s.CutLabel)
			} else {
				c.text(px-6, 14, "cutc e", s.CutLabel)
			}
		}
	}
}

// bars draws the values upwards from base: of the tokens that share a pixel, the largest.
func (s *Strip) bars(c *canvas, x axis, base, height float64) {
	top := 0.0
	for _, v := range s.Values {
		top = math.Max(top, v)
	}
	if top == 0 {
		return
	}
	wide := math.Max(1.5, math.Min(6, (x.to-x.from)/float64(len(s.Values))-0.5))
	c.open("hm")
	for i := 0; i < len(s.Values); {
		at := x.at(float64(i))
		v := 0.0
		for i < len(s.Values) && x.at(float64(i)) < at+wide {
			v = math.Max(v, s.Values[i])
			i++
		}
		if h := v / top * height; h >= 0.3 {
			c.rect(at, base-h, wide, h, 0, "")
		}
	}
	c.close()
}

// Series is one line of scores.
type Series struct {
	Class string
	X, Y  []float64
}

// ScoreLines draws scores from 0 to 1 over token positions, with what was not read shaded.
type ScoreLines struct {
	Title, XName string
	Tokens       int
	Lost         []Span
	CutLabel     string
	Series       []Series
}

// Markup draws both variants.
func (s *ScoreLines) Markup() template.HTML {
	if len(s.Series) == 0 || s.Tokens == 0 {
		return ""
	}
	return s.draw(deskWidth, 7, "desk") + s.draw(phoneWidth, 3, "phone")
}

func (s *ScoreLines) draw(width float64, marks int, class string) template.HTML {
	const left, upper, lower = 36, 28, 148
	right := width - 12
	c := newCanvas(width, lower+42, class, s.Title)
	x := axis{0, float64(s.Tokens), left, right}
	y := axis{0, 1, lower, upper}
	for _, z := range s.Lost {
		c.rect(x.at(float64(z.From)), upper, x.at(float64(z.To))-x.at(float64(z.From)), lower-upper, 0, "past")
	}
	for _, v := range []float64{0, 0.5, 1} {
		c.line(left, y.at(v), right, y.at(v), "grid")
		c.text(left-8, y.at(v)+4.5, "e", strconv.FormatFloat(v, 'f', 1, 64))
	}
	for _, v := range Ticks(float64(s.Tokens), marks) {
		switch at := x.at(v); {
		case v > float64(s.Tokens):
		case at > width-28:
			c.text(right, lower+18, "e", strconv.Itoa(int(v)))
		default:
			c.text(at, lower+18, "m", strconv.Itoa(int(v)))
		}
	}
	for _, line := range s.Series {
		d, pen := "", "M"
		for i := range line.X {
			d += pen + num(x.at(line.X[i])) + " " + num(y.at(line.Y[i]))
			pen = "L"
		}
		c.path(d, "ln "+line.Class)
		for i := range line.X {
			c.circle(x.at(line.X[i]), y.at(line.Y[i]), 3.5, "on "+line.Class)
		}
	}
	strip := Strip{Tokens: s.Tokens, Lost: s.Lost, CutLabel: s.CutLabel}
	strip.cuts(c, x, lower)
	c.text((left+right)/2, lower+37, "sub m", s.XName)
	return c.markup()
}

// SignedBar is a value as a bar from a zero line, for a table cell: to the right what is above zero,
// to the left what is below. Low and high are the ends of the column.
func SignedBar(value, low, high float64) template.HTML {
	const width, height = 110, 10
	low, high = math.Min(0, low), math.Max(0, high)
	if low == high {
		high = 1
	}
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true">`, width, height, width, height)
	x := axis{low, high, 1, width - 1}
	zero, end := x.at(0), x.at(value)
	class := "rate"
	if value < 0 {
		class = "less"
	}
	if value != 0 {
		c.rect(math.Min(zero, end), 1, math.Max(1.5, math.Abs(end-zero)), height-2, 1, class)
	}
	c.line(zero, 0, zero, height, "axis")
	return c.markup()
}
