package main

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

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
	weights := func(n int) []float32 {
		w := make([]float32, n)
		for i := range w {
			w[i] = float32(math.Sin(float64(i))) / float32(math.Sqrt(float64(c)))
		}
		return w
	}
	ones := weights(c)
	for i := range ones {
		ones[i] = 1
	}
	norm := attention.Norm{Gain: ones}
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

// lineColors tell the lines apart, also for most who see colours differently.
var lineColors = []color.Color{color.RGBA{R: 0xb4, G: 0x3c, B: 0x28, A: 0xff}, color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}}

// plotCurve draws both costs over the length, both axes logarithmic: the full attention's line turns
// from slope 1 to slope 2, the window's does not.
func plotCurve(path string, curve []curvePoint, window int) error {
	p := plot.New()
	p.Title.Text = "Cost of one layer by message length"
	p.X.Label.Text, p.Y.Label.Text = "tokens", "ms"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		for n := 32; n <= longestCurve; n *= 2 {
			ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
		}
		return ticks
	})
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	var full, local plotter.XYs
	for _, point := range curve {
		full = append(full, plotter.XY{X: float64(point.Tokens), Y: point.FullMillis})
		local = append(local, plotter.XY{X: float64(point.Tokens), Y: point.WindowMillis})
	}
	for i, line := range []struct {
		name   string
		points plotter.XYs
	}{{"full attention", full}, {fmt.Sprintf("sliding window of %d", window), local}} {
		l, dots, err := plotter.NewLinePoints(line.points)
		if err != nil {
			return err
		}
		l.Width = vg.Points(1.5)
		l.Color, dots.Color = lineColors[i], lineColors[i]
		p.Add(l, dots)
		p.Legend.Add(line.name, l, dots)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs, p.Legend.YOffs = vg.Points(4), vg.Points(8), -vg.Points(4)
	if err := p.Save(16*vg.Centimeter, 11*vg.Centimeter, path); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}
