package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"misroute/attention"
)

// curvePoint is the cost of one layer at one length, with full attention and with a sliding window.
type curvePoint struct {
	Tokens       int     `json:"tokens"`
	FullMillis   float64 `json:"full_ms"`
	FullShare    float64 `json:"full_quadratic_share"` // of the arithmetic: what the score grid takes
	WindowMillis float64 `json:"window_ms"`
	WindowShare  float64 `json:"window_quadratic_share"`
}

// longestCurve ends the curve: the positions of the longest readers among the families.
const longestCurve = 8192

// timeCurve times one layer of the model's shape. The layer is of the ModernBERT family whatever the
// model is, since that has both kinds of attention and no table of positions that ends; its weights do
// not matter for time.
func timeCurve(ctx context.Context, shape *attention.Config, window int, long time.Duration) ([]curvePoint, error) {
	if shape.Heads == 0 || shape.Intermediate == 0 {
		return nil, usagef("--curve: a %s model has no attention layers", shape.ModelType)
	}
	full, err := oneLayer(shape, 0)
	if err != nil {
		return nil, err
	}
	local, err := oneLayer(shape, window)
	if err != nil {
		return nil, err
	}
	var curve []curvePoint
	for n := 32; n <= longestCurve; n *= 2 {
		a, err := timeSet(ctx, full, []int{n}, 1, long/2)
		if err != nil {
			return nil, err
		}
		b, err := timeSet(ctx, local, []int{n}, 1, long/2)
		if err != nil {
			return nil, err
		}
		curve = append(curve, curvePoint{n, a.MinMillis, a.QuadraticShare, b.MinMillis, b.QuadraticShare})
	}
	return curve, nil
}

// oneLayer is a layer of the shape with small weights, global for a window of 0.
func oneLayer(shape *attention.Config, window int) (attention.Model, error) {
	c, f := shape.Hidden, shape.Intermediate
	if shape.ModelType != "modernbert" {
		f = (2*f + 2) / 3 // a gated feed-forward part has three matrices of F x C, others have two
	}
	weights := func(n int) []float32 { return someWeights(n, c) }
	norm := attention.Norm{Gain: ones(c)}
	linear := func(out, in int) attention.Linear {
		return attention.Linear{Out: out, In: in, Weight: weights(out * in)}
	}
	heads := shape.Heads
	if c/heads%2 != 0 {
		heads = 1 // rotary positions turn pairs of channels
	}
	if c/heads%2 != 0 {
		return nil, usagef("--curve: rotary positions need an even hidden size, the model has %d", c)
	}
	cfg := attention.Config{ModelType: "modernbert", Labels: []string{"queue"}, Layers: 1, Heads: heads, Hidden: c, Intermediate: f, VocabSize: 64, Activation: "gelu", NormEps: 1e-5}
	return attention.NewModernBERT(cfg, &attention.ModernBERTParams{
		Tokens: weights(cfg.VocabSize * c), EmbedNorm: norm, FinalNorm: norm, HeadNorm: norm,
		Pooling: "mean", Head: linear(c, c), HeadActivation: "gelu", Classify: linear(1, c),
		Layers: []attention.ModernBERTLayer{{
			QKV: linear(3*c, c), Output: linear(c, c), FeedNorm: norm, GateUp: linear(2*f, c), Down: linear(c, f),
			Local: window > 0, Window: window / 2, Theta: 10_000,
		}},
	})
}

// The ink of the two kinds of attention, told apart by most who see colours differently.
var (
	fullInk  = color.RGBA{R: 0xb4, G: 0x3c, B: 0x28, A: 0xff}
	localInk = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
)

// Size of the picture. A phone is little wider, so its text is read there at nearly its own size.
const (
	curveWidth  = 11 * vg.Centimeter
	curveHeight = 15 * vg.Centimeter
)

// plotCurve draws what a layer costs by message length. Above, its time with both kinds of attention,
// both axes logarithmic: the line of full attention turns from slope 1 to slope 2, the window's does
// not. Below, the share of the score grid in the arithmetic, which is what turns it.
func plotCurve(path string, curve []curvePoint, window int) error {
	cost, share := curvePanel("Time of one layer", "ms"), curvePanel("Of its arithmetic: every token against every token", "%")
	cost.Y.Scale, cost.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	share.Y.Min, share.Y.Max = 0, 100
	share.Y.Tick.Marker = plot.TickerFunc(func(_, _ float64) (ticks []plot.Tick) {
		for p := 0; p <= 100; p += 25 {
			ticks = append(ticks, plot.Tick{Value: float64(p), Label: fmt.Sprint(p)})
		}
		return ticks
	})
	share.X.Label.Text = "tokens in the message"
	for _, line := range []struct {
		panel *plot.Plot
		ink   color.Color
		name  string // in the legend; "" = it stands in the other panel's
		y     func(curvePoint) float64
	}{
		{cost, fullInk, "full attention", func(p curvePoint) float64 { return p.FullMillis }},
		{cost, localInk, fmt.Sprintf("sliding window of %d", window), func(p curvePoint) float64 { return p.WindowMillis }},
		{share, fullInk, "", func(p curvePoint) float64 { return 100 * p.FullShare }},
		{share, localInk, "", func(p curvePoint) float64 { return 100 * p.WindowShare }},
	} {
		points := make(plotter.XYs, len(curve))
		for i, p := range curve {
			points[i] = plotter.XY{X: float64(p.Tokens), Y: line.y(p)}
		}
		l, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		l.Width, l.Color = vg.Points(2), line.ink
		dots.Color, dots.Radius, dots.Shape = line.ink, vg.Points(2.5), draw.CircleGlyph{}
		line.panel.Add(l, dots)
		if line.name != "" {
			line.panel.Legend.Add(line.name, l, dots)
		}
	}
	return savePanels(path, cost, share)
}

// curvePanel is an empty panel over the lengths.
func curvePanel(title, unit string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.Y.Label.Text = title, unit
	p.Title.Padding = vg.Points(6)
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.TickerFunc(func(_, _ float64) (ticks []plot.Tick) {
		for n := 32; n <= longestCurve; n *= 2 {
			tick := plot.Tick{Value: float64(n)}
			if len(ticks)%2 == 0 { // all of them would touch
				tick.Label = strconv.Itoa(n)
			}
			ticks = append(ticks, tick)
		}
		return ticks
	})
	for _, size := range []*font.Length{&p.Title.TextStyle.Font.Size, &p.X.Label.TextStyle.Font.Size, &p.Y.Label.TextStyle.Font.Size,
		&p.X.Tick.Label.Font.Size, &p.Y.Tick.Label.Font.Size, &p.Legend.TextStyle.Font.Size} {
		*size = vg.Points(11)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{Y: 0xdd}, color.Gray{Y: 0xee}
	p.Add(grid)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs, p.Legend.YOffs = vg.Points(4), vg.Points(8), -vg.Points(4)
	return p
}

// decades marks the powers of ten with a label and what is between them without.
func decades(low, high float64) (ticks []plot.Tick) {
	for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
		for digit := 1.0; digit < 10; digit++ {
			tick := plot.Tick{Value: digit * math.Pow(10, power)}
			if digit == 1 {
				tick.Label = strconv.FormatFloat(tick.Value, 'g', 3, 64)
			}
			if tick.Value >= low && tick.Value <= high {
				ticks = append(ticks, tick)
			}
		}
	}
	return ticks
}

// checkPlot refuses the name of a picture in a form we do not draw.
func checkPlot(path string) error {
	if path != "" && !strings.HasSuffix(path, ".svg") && !strings.HasSuffix(path, ".png") {
		return usagef("--plot %s: want a name that ends in .svg or .png", path)
	}
	return nil
}

// savePanels writes plots one below the other, their axes in line.
func savePanels(path string, panels ...*plot.Plot) error {
	fail := func(err error) error { return fmt.Errorf("%s: %w", filepath.Base(path), err) }
	canvas, err := draw.NewFormattedCanvas(curveWidth, curveHeight, strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return fail(err)
	}
	rows := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		rows[i] = []*plot.Plot{p}
	}
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: vg.Points(12), PadTop: vg.Points(8), PadBottom: vg.Points(6), PadLeft: vg.Points(4), PadRight: vg.Points(14)}
	for i, row := range plot.Align(rows, tiles, page) {
		panels[i].Draw(row[0])
	}
	out, err := os.Create(path)
	if err != nil {
		return fail(err)
	}
	_, err = canvas.WriteTo(out)
	if err = errors.Join(err, out.Close()); err != nil {
		return fail(err)
	}
	return nil
}
