package main

import (
	"fmt"
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"misroute/reports/stats"
)

// plotLadder draws the rungs from the bottom up: misroutes in percent with their 95 % intervals.
func plotLadder(path, judged string, rungs []climbed) error {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text = "Misroutes of "+judged, "%, with 95 % intervals"
	p.Title.Padding = vg.Points(6)
	var names []string
	points := plotter.XYs{}
	spans := plotter.XErrors{}
	labels := plotter.XYLabels{}
	all := make([]int, len(rungs[0].wrong))
	for i, r := range rungs {
		wrong, n := count(r.wrong, all, 0)
		rate, span := 100*float64(wrong)/float64(n), stats.Wilson(wrong, n)
		at := plotter.XY{X: rate, Y: float64(i)}
		names = append(names, r.name)
		points = append(points, at)
		spans = append(spans, struct{ Low, High float64 }{rate - 100*span.Low, 100*span.High - rate})
		labels.XYs, labels.Labels = append(labels.XYs, at), append(labels.Labels, fmt.Sprintf("%.1f", rate))
	}
	bars, err := plotter.NewXErrorBars(struct {
		plotter.XYer
		plotter.XErrorer
	}{points, spans})
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	values, err := plotter.NewLabels(labels)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	bars.Color, bars.Width = fullInk, vg.Points(1.5)
	dots.Color, dots.Radius, dots.Shape = fullInk, vg.Points(4), draw.CircleGlyph{}
	values.Offset.X, values.Offset.Y = -vg.Points(10), vg.Points(6)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{Y: 0xee}, color.Gray{Y: 0xdd}
	p.Add(grid, bars, dots, values)
	p.NominalY(names...)
	p.X.Min, p.Y.Min, p.Y.Max = 0, -0.5, float64(len(rungs))-0.5
	return savePanels(path, p)
}
