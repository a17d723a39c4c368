// Package chart draws finished numbers as inline SVG.
//
// Shapes carry classes and no colours, so that the page's one stylesheet serves light, dark and
// paper. A chart that would shrink below legible text on a phone comes in two variants, one for a
// desk and one for a phone, of which the stylesheet shows one. Every chart has a sentence as its
// accessible name; the numbers themselves stand in a table beside it.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Widths of the drawing in CSS pixels at which text has its own size: the page shows the desk
// variant at 45rem and above, where it is never narrower than deskWidth less a tenth, and a phone
// of 360 pixels has about phoneWidth left inside of the margins.
const (
	deskWidth  = 700
	phoneWidth = 320
)

// The text is 13 pixels high; its mean digit is this wide. For placing labels, not for breaking lines.
const charWidth = 7.2

// canvas collects the shapes of one drawing.
type canvas struct {
	b             strings.Builder
	width, height float64
}

func newCanvas(width, height float64, class, title string) *canvas {
	c := &canvas{width: width, height: height}
	attr := ""
	if class != "" {
		attr = fmt.Sprintf(` class="%s"`, class)
	}
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %s %s"%s role="img" aria-label="%s">`, num(width), num(height), attr, html.EscapeString(title))
	return c
}

func (c *canvas) markup() template.HTML {
	return template.HTML(c.b.String() + "</svg>")
}

// num prints a coordinate with a tenth of a pixel: enough for the eye, and short.
func num(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		x = 0
	}
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.b, `<line x1="%s" y1="%s" x2="%s" y2="%s"%s/>`, num(x1), num(y1), num(x2), num(y2), classAttr(class))
}

func (c *canvas) rect(x, y, width, height, radius float64, class string) {
	r := ""
	if radius > 0 {
		r = fmt.Sprintf(` rx="%s"`, num(radius))
	}
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s"%s%s/>`, num(x), num(y), num(math.Max(0, width)), num(math.Max(0, height)), r, classAttr(class))
}

func (c *canvas) circle(x, y, r float64, class string) {
	fmt.Fprintf(&c.b, `<circle cx="%s" cy="%s" r="%s"%s/>`, num(x), num(y), num(r), classAttr(class))
}

func (c *canvas) text(x, y float64, class, s string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s"%s>%s</text>`, num(x), num(y), classAttr(class), html.EscapeString(s))
}

func (c *canvas) path(d, class string) {
	fmt.Fprintf(&c.b, `<path d="%s"%s/>`, d, classAttr(class))
}

func (c *canvas) open(class string) { fmt.Fprintf(&c.b, `<g%s>`, classAttr(class)) }
func (c *canvas) close()            { c.b.WriteString("</g>") }

func classAttr(class string) string {
	if class == "" {
		return ""
	}
	return fmt.Sprintf(` class="%s"`, html.EscapeString(class))
}

// axis maps values to pixels.
type axis struct {
	low, high float64 // values
	from, to  float64 // pixels
}

func (a axis) at(v float64) float64 {
	if a.high == a.low {
		return a.from
	}
	v = math.Min(math.Max(v, a.low), a.high)
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// Ticks divides [0, high] into at most n round steps and returns them with the last at or above
// high.
func Ticks(high float64, n int) []float64 {
	if !(high > 0) || math.IsInf(high, 0) {
		high = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(high/float64(n))))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if step*m*float64(n) >= high*(1-1e-9) {
			step *= m
			break
		}
	}
	var list []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		list = append(list, v)
		if v >= high*(1-1e-9) {
			return list
		}
	}
}

// percentTick prints a share without more decimals than its step needs.
func percentTick(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e4, 'f', -1, 64) + "\u00a0%"
}

// Point is an estimate with its interval.
type Point struct {
	Value, Low, High float64
	Few              bool // too few messages: grey
}

func (p Point) class(series string) string {
	if p.Few {
		return "pt " + series + " fewpt"
	}
	return "pt " + series
}

// upright draws a point with its interval as a vertical line; an end beyond the axis gets a tip.
func (c *canvas) upright(x float64, y axis, p Point, series string, radius float64) {
	c.open(p.class(series))
	c.line(x, y.at(p.Low), x, y.at(p.High), "")
	if p.High > y.high*(1+1e-9) {
		top := y.at(y.high)
		c.line(x-4, top+6, x, top, "")
		c.line(x+4, top+6, x, top, "")
	}
	c.circle(x, y.at(p.Value), radius, "")
	c.close()
}

// level draws a point with its interval as a horizontal line.
func (c *canvas) level(y float64, x axis, p Point, series string, radius float64) {
	c.open(p.class(series))
	c.line(x.at(p.Low), y, x.at(p.High), y, "")
	if p.High > x.high*(1+1e-9) {
		end := x.at(x.high)
		c.line(end-6, y-4, end, y, "")
		c.line(end-6, y+4, end, y, "")
	}
	c.circle(x.at(p.Value), y, radius, "")
	c.close()
}
