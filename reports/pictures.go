package reports

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"misroute/reports/chart"
)

// Picture is a chart as a picture file, for slides and wikis that show no page.
type Picture struct {
	Name string // file name without its ending
	plot *plot.Plot
}

// Formats of picture files.
var Formats = []string{"png", "svg"}

// Write draws the picture in a format of [Formats].
func (p Picture) Write(out io.Writer, format string) error {
	to, err := p.plot.WriterTo(18*vg.Centimeter, 10*vg.Centimeter, format)
	if err != nil {
		return fmt.Errorf("picture %s: %w", p.Name, err)
	}
	_, err = to.WriteTo(out)
	return err
}

// The colours of the page, light.
var (
	atCapInk  = color.RGBA{0xb3, 0x26, 0x1e, 0xff}
	wholeInk  = color.RGBA{0x1f, 0x5f, 0x8b, 0xff}
	fewInk    = color.RGBA{0x8d, 0x87, 0x7b, 0xff}
	cutInk    = color.RGBA{0x8f, 0x4d, 0x00, 0xff}
	seriesInk = []color.RGBA{{0x1c, 0x1b, 0x19, 0xff}, {0x7d, 0x5f, 0x92, 0xff}, {0x1a, 0x6e, 0x52, 0xff}, {0x9a, 0x5c, 0x00, 0xff}}
)

// Pictures are the charts of the report as picture files: misroutes by length, and for a sweep
// misroutes against cost.
func (w *Weekly) Pictures() ([]Picture, error) {
	var list []Picture
	if w.Total.N > 0 {
		p, err := w.lengthPicture()
		if err != nil {
			return nil, err
		}
		list = append(list, Picture{"misroutes-by-length", p})
	}
	if w.Sweep != nil && w.Sweep.N > 0 {
		p, err := w.Sweep.picture()
		if err != nil {
			return nil, err
		}
		list = append(list, Picture{"misroutes-by-cost", p})
	}
	return list, nil
}

// estimates are points with vertical intervals.
type estimates struct {
	plotter.XYs
	plotter.YErrors
}

func (e *estimates) add(x float64, r Rate) {
	v := 100 * float64(r.Rate)
	e.XYs = append(e.XYs, plotter.XY{X: x, Y: v})
	e.YErrors = append(e.YErrors, struct{ Low, High float64 }{100*float64(r.Low) - v, 100*float64(r.High) - v})
}

// draw adds the points to a plot; hollow rings or filled dots.
func (e *estimates) draw(p *plot.Plot, ink color.Color, shape draw.GlyphDrawer, legend string) error {
	if len(e.XYs) == 0 {
		return nil
	}
	bars, err := plotter.NewYErrorBars(e)
	if err != nil {
		return err
	}
	bars.Color, bars.Width, bars.CapWidth = ink, vg.Points(1.2), 0
	dots, err := plotter.NewScatter(e)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: ink, Radius: vg.Points(3.5), Shape: shape}
	p.Add(bars, dots)
	if legend != "" {
		p.Legend.Add(legend, dots)
	}
	return nil
}

// percentAxis sets the vertical axis from 0 to a round number above every interval.
func percentAxis(p *plot.Plot, of ...*estimates) (top float64) {
	for _, e := range of {
		for i := range e.XYs {
			top = max(top, e.XYs[i].Y+e.YErrors[i].High)
		}
	}
	var marks plot.ConstantTicks
	for _, v := range chart.Ticks(top, 6) {
		marks = append(marks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
		top = v
	}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, top, marks
	return top
}

func (w *Weekly) lengthPicture() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = w.words.length
	p.X.Label.Text = w.Unit + " in the whole message"
	p.Y.Label.Text = "misroutes, %, with 95 % intervals"
	p.Legend.Top, p.Legend.Left = true, true
	var atCap, whole, small estimates
	names := make([]string, len(w.Buckets))
	for i, b := range w.Buckets {
		names[i] = b.Label
		at := float64(i)
		if b.Whole != nil {
			at -= 0.1
			whole.add(float64(i)+0.1, *b.Whole)
		}
		switch {
		case b.N == 0:
		case b.Few:
			small.add(at, b.Rate)
		default:
			atCap.add(at, b.Rate)
		}
	}
	p.NominalX(names...)
	top := percentAxis(p, &atCap, &whole, &small)
	if cut := w.lengthChart().Cut; cut >= 0 {
		line, err := plotter.NewLine(plotter.XYs{{X: cut - 0.5, Y: 0}, {X: cut - 0.5, Y: top}})
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = cutInk, []vg.Length{vg.Points(3), vg.Points(3)}
		p.Add(line)
		p.Legend.Add("cut at "+count(w.Cut.Cap), line)
	}
	for _, x := range []struct {
		e      *estimates
		ink    color.Color
		shape  draw.GlyphDrawer
		legend string
	}{{&atCap, atCapInk, draw.CircleGlyph{}, "at the cap"}, {&whole, wholeInk, draw.RingGlyph{}, "read whole"}, {&small, fewInk, draw.CircleGlyph{}, fmt.Sprintf("at the cap, fewer than %d messages", few)}} {
		if err := x.e.draw(p, x.ink, x.shape, x.legend); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (sw *Sweep) picture() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = sw.sayHeading()
	p.X.Label.Text = "mean cost of a message, " + sw.costHead()
	p.Y.Label.Text = "misroutes, %, with 95 % intervals"
	p.Legend.Top = true
	trade, key := sw.tradeChart()
	var all estimates
	low, high := math.Inf(1), 0.0
	for i, s := range trade.Settings {
		all.add(s.Cost, sw.Settings[i].Rate)
		low, high = min(low, s.Cost), max(high, s.Cost)
	}
	percentAxis(p, &all)
	var marks plot.ConstantTicks
	for _, v := range chart.RoundCosts(low, high, 8) {
		marks = append(marks, plot.Tick{Value: v, Label: magnitude(v)})
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, marks
	for series, k := range key {
		var e estimates
		line := plotter.XYs{}
		for i, s := range trade.Settings {
			if s.Series == series {
				e.add(s.Cost, sw.Settings[i].Rate)
				line = append(line, plotter.XY{X: s.Cost, Y: 100 * float64(sw.Settings[i].Rate.Rate)})
			}
		}
		if len(line) == 0 {
			continue
		}
		joined, err := plotter.NewLine(line)
		if err != nil {
			return nil, err
		}
		joined.Color = seriesInk[series%len(seriesInk)]
		p.Add(joined)
		if err := e.draw(p, seriesInk[series%len(seriesInk)], draw.CircleGlyph{}, k.Label); err != nil {
			return nil, err
		}
	}
	return p, nil
}
