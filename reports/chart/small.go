package chart

import (
	"fmt"
	"html/template"
	"math"
)

// Bar is a rate as a small bar for a table cell: share of a full track.
func Bar(share float64) template.HTML {
	const width, height = 72, 8
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true">`, width, height, width, height)
	c.rect(0, 0, width, height, 4, "track")
	if share > 0 {
		c.rect(0, 0, math.Max(3, math.Min(1, share)*width), height, 4, "rate")
	}
	return c.markup()
}

// Span is a range of tokens, half open.
type Span struct{ From, To int }

// Ruler draws one message as a bar: dark where it was read, a line at each cut, a dot where the
// deciding sentence stands. Longest is the length that fills the ruler.
func Ruler(title string, tokens, longest int, read []Span, decisive *Span) template.HTML {
	const width, height = 200, 18
	c := &canvas{}
	c.b.WriteString(string(rulerHead(title, width, height)))
	x := axis{0, math.Max(1, float64(longest)), 1, width - 1}
	end := x.at(float64(tokens))
	c.rect(1, 6, math.Max(2, end-1), 6, 3, "lost")
	for _, s := range read {
		from, to := x.at(float64(s.From)), x.at(float64(s.To))
		c.rect(from, 6, math.Max(1, to-from), 6, 0, "kept")
		if s.To < tokens {
			c.line(to, 1, to, height-1, "cutline")
		}
		if s.From > 0 {
			c.line(from, 1, from, height-1, "cutline")
		}
	}
	if decisive != nil {
		mid := x.at(float64(decisive.From+decisive.To) / 2)
		c.circle(math.Min(math.Max(mid, 6), width-6), height/2, 4.5, "dec")
	}
	return c.markup()
}

func rulerHead(title string, width, height int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %d %d" width="%d" height="%d" class="ruler" role="img" aria-label="%s">`, width, height, width, height, template.HTMLEscapeString(title)))
}

// Part is one signed bar of a split.
type Part struct {
	Label, Value string
	Size         float64
	Class        string // b-hard, b-cut, b-total, b-placebo
}

// Split draws signed bars from one zero line: parts that add up to a whole, each with its value.
func Split(title string, parts []Part) template.HTML {
	const row, left, right = 42, 8, phoneWidth - 8
	c := newCanvas(phoneWidth, float64(row*len(parts))+4, "square", title)
	low, high := 0.0, 0.0
	for _, p := range parts {
		low, high = math.Min(low, p.Size), math.Max(high, p.Size)
	}
	if low == high {
		high = 1
	}
	x := axis{low, high, left, right}
	zero := x.at(0)
	for i, p := range parts {
		y := float64(row * i)
		c.text(left, y+13, "", p.Label)
		c.text(right, y+13, "e", p.Value)
		from, to := math.Min(zero, x.at(p.Size)), math.Max(zero, x.at(p.Size))
		c.rect(from, y+19, math.Max(1.5, to-from), 14, 2, p.Class)
		c.line(zero, y+17, zero, y+35, "axis")
	}
	return c.markup()
}
