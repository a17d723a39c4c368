package attention

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// small is an encoder whose sizes fit no register: 3 heads of 20 channels.
var small = shape{layers: 3, hidden: 60, heads: 3, wide: 130, positions: 300}

// A message has the same bits alone, after others, in workspaces of any history, shared by any number
// of goroutines, and with padding behind it.
func TestSameBits(t *testing.T) {
	everyVariant(t, func(t *testing.T) { sameBits(t, randomEncoder(t, small)) })
	t.Run("int8", func(t *testing.T) { sameBits(t, randomEncoderInt8(t, small)) })
}

func sameBits(t *testing.T, m *Encoder) {
	lengths := []int{1, 2, 7, 8, 9, 31, 64, 100, 300, 5}
	want := make([][]float32, len(lengths))
	for i, n := range lengths {
		want[i] = logits(t, m, message(n), m.NewWorkspace())
	}
	for _, width := range []int{1, 2, 3, 16} {
		ws := m.NewWorkspace()
		ws.Width = width
		for i, n := range lengths {
			if got := logits(t, m, message(n), ws); !slices.Equal(got, want[i]) {
				t.Errorf("%d tokens on %d goroutines: %v, alone %v", n, width, got, want[i])
			}
		}
	}
	for i, n := range lengths[:8] {
		padded := message(n)
		padded.Mask = slices.Repeat([]uint8{1}, n)
		padded.IDs = append(padded.IDs, make([]int32, 50)...)
		padded.Mask = append(padded.Mask, make([]uint8, 50)...)
		if got := logits(t, m, padded, m.NewWorkspace()); !slices.Equal(got, want[i]) {
			t.Errorf("%d tokens and padding: %v, alone %v", n, got, want[i])
		}
	}
	for _, workers := range []int{2, 16} {
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				ws := m.NewWorkspace()
				for i := range lengths {
					i := (i + w) % len(lengths)
					if got := logits(t, m, message(lengths[i]), ws); !slices.Equal(got, want[i]) {
						t.Errorf("%d tokens, one of %d workers: %v, alone %v", lengths[i], workers, got, want[i])
					}
				}
			})
		}
		wait.Wait()
	}
}

func logits(t testing.TB, m Model, in Input, ws *Workspace) []float32 {
	dst := make([]float32, len(m.Config().Labels))
	if err := m.Logits(dst, in, ws); err != nil {
		t.Error(err)
	}
	return dst
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	everyVariant(t, func(t *testing.T) { allocatesNothing(t, randomEncoder(t, small)) })
	t.Run("int8", func(t *testing.T) { allocatesNothing(t, randomEncoderInt8(t, small)) })
}

func allocatesNothing(t *testing.T, m *Encoder) {
	ws, dst := m.NewWorkspace(), make([]float32, 7)
	long, short, padded := message(300), message(17), message(40)
	padded.Mask = make([]uint8, 40)
	padded.Mask[0], padded.Mask[20] = 1, 1
	run := func() {
		for _, in := range []Input{long, short, padded} {
			if err := m.Logits(dst, in, ws); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(5, run); n != 0 {
		t.Errorf("%v allocations for three messages", n)
	}
}

// 8-bit logits stay near the recorded ones: they spread over several units, and int8 moves them by
// hundredths.
func TestInt8StaysNear(t *testing.T) {
	dir := shared(t, "encoder-oracle", "tiny-bert")
	var file struct{ Cases []encoderCase }
	readJSON(t, filepath.Join(dir, "cases.json"), &file)
	everyVariant(t, func(t *testing.T) {
		cfg, p := readEncoder(t, dir)
		m, err := NewEncoderInt8(cfg, p)
		if err != nil {
			t.Fatal(err)
		}
		if m.Precision() != "int8" {
			t.Errorf("precision %q", m.Precision())
		}
		worst := 0.0
		for _, c := range file.Cases {
			for i, ids := range c.IDs {
				got := logits(t, m, Input{IDs: ids, Mask: c.Mask[i], TypeIDs: c.Types[i]}, m.NewWorkspace())
				for j, want := range c.Logits[i*7:][:7] {
					worst = max(worst, math.Abs(float64(got[j])-want))
				}
			}
		}
		if worst > 0.25 {
			t.Errorf("a logit moved by %.3f", worst)
		}
		t.Logf("largest move of a logit: %.3f", worst)
	})
}

// The weights that int8 blends with are whole numbers over their sum: rows sum to 1, hidden keys have none, and
// they are near those of float32.
func TestInt8Weights(t *testing.T) {
	everyVariant(t, func(t *testing.T) {
		exact, rounded := randomEncoder(t, small), randomEncoderInt8(t, small)
		for _, n := range []int{1, 7, 100, 290} {
			in := message(n)
			in.Mask = slices.Repeat([]uint8{1}, n)
			in.Mask[n/2] = 0
			if n == 1 {
				in.Mask = nil
			}
			want, err := exact.Trace(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rounded.Trace(in)
			if err != nil {
				t.Fatal(err)
			}
			for h, weights := range got.Attention[0] {
				for i := range n {
					sum, off := 0.0, 0.0
					for j, w := range weights[i*n:][:n] {
						sum += float64(w)
						off = max(off, math.Abs(float64(w-want.Attention[0][h][i*n+j])))
						if in.Mask != nil && in.Mask[j] == 0 && w != 0 {
							t.Fatalf("%d tokens: hidden key %d has weight %v", n, j, w)
						}
					}
					if math.Abs(sum-1) > 1e-5 || off > 0.02 {
						t.Fatalf("%d tokens, head %d: row %d sums to %v and is up to %v from float32's", n, h, i, sum, off)
					}
				}
			}
		}
	})
}

// The room reserved at the start is all that a message takes: nothing spills to the heap.
func TestReservedRoomSuffices(t *testing.T) {
	everyVariant(t, func(t *testing.T) {
		for _, s := range []shape{small, {2, 16, 1, 8, 600}, {1, 384, 12, 1536, 600}} {
			for _, m := range []*Encoder{randomEncoder(t, s), randomEncoderInt8(t, s)} {
				for _, n := range []int{1, 8, 50, 129, 300, 600} {
					if n > s.positions {
						continue
					}
					ws := m.NewWorkspace()
					logits(t, m, message(n), ws)
					if ws.floats.peak > len(ws.floats.block) || ws.bytes.peak > len(ws.bytes.block) {
						t.Errorf("%v, %s, %d tokens: %d numbers and %d bytes taken, %d and %d reserved", s, m.Precision(), n,
							ws.floats.peak, ws.bytes.peak, len(ws.floats.block), len(ws.bytes.block))
					}
				}
			}
		}
	})
}

// 8,192 tokens need memory in proportion: under 200 MB for the shape of MiniLM and of BERT-base.
func TestMemoryIsLinear(t *testing.T) {
	for _, s := range []shape{{6, 384, 12, 1536, 8192}, {12, 768, 12, 3072, 8192}} {
		m := &Encoder{cfg: Config{Hidden: s.hidden, Heads: s.heads, Intermediate: s.wide}}
		at := func(n int) float64 { return float64(4*m.workspaceFloats(n)) / 1e6 }
		if mb := at(8192); mb > 200 {
			t.Errorf("hidden size %d: 8,192 tokens take %.0f MB", s.hidden, mb)
		}
		if grows := (at(8192) - at(4096)) / (at(4096) - at(2048)); grows > 2.01 {
			t.Errorf("hidden size %d: memory grows faster than tokens", s.hidden)
		}
	}
	// and for real, with one layer
	m := randomEncoder(t, shape{1, 96, 3, 192, 8192})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	logits(t, m, message(8192), m.NewWorkspace())
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 40e6 {
		t.Errorf("8,192 tokens allocated %d MB; one 8,192 x 8,192 map alone is 268 MB", taken/1e6)
	}
}

func TestInputsThatCannotBeRead(t *testing.T) {
	m := randomEncoder(t, small)
	good := message(5)
	for name, in := range map[string]Input{
		"no tokens":            {},
		"too long":             message(301),
		"id too large":         {IDs: []int32{5000}},
		"id negative":          {IDs: []int32{-1}},
		"types too few":        {IDs: good.IDs, TypeIDs: []int32{0}},
		"type too large":       {IDs: []int32{1}, TypeIDs: []int32{2}},
		"mask of other length": {IDs: good.IDs, Mask: []uint8{1}},
	} {
		if err := m.Logits(make([]float32, 7), in, m.NewWorkspace()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := m.Trace(in); err == nil {
			t.Errorf("%s: no error from Trace", name)
		}
	}
	if err := m.Logits(make([]float32, 3), good, m.NewWorkspace()); err == nil {
		t.Error("room for 3 of 7 logits: no error")
	}
}

func TestShapesThatDoNotFit(t *testing.T) {
	for name, spoil := range map[string]func(*Config, *EncoderParams){
		"heads":        func(c *Config, _ *EncoderParams) { c.Heads = 7 },
		"no heads":     func(c *Config, _ *EncoderParams) { c.Heads = 0 },
		"layers":       func(c *Config, _ *EncoderParams) { c.Layers = 4 },
		"vocabulary":   func(c *Config, _ *EncoderParams) { c.VocabSize++ },
		"labels":       func(c *Config, _ *EncoderParams) { c.Labels = c.Labels[:5] },
		"no labels":    func(c *Config, _ *EncoderParams) { c.Labels = nil },
		"model type":   func(c *Config, _ *EncoderParams) { c.ModelType = "gpt2" },
		"activation":   func(c *Config, _ *EncoderParams) { c.Activation = "swoosh" },
		"padding":      func(c *Config, _ *EncoderParams) { c.PadID = -1 },
		"query":        func(_ *Config, p *EncoderParams) { p.Layers[1].Query.Weight = p.Layers[1].Query.Weight[1:] },
		"bias":         func(_ *Config, p *EncoderParams) { p.Layers[1].Up.Bias = p.Layers[1].Up.Bias[1:] },
		"norm":         func(_ *Config, p *EncoderParams) { p.Layers[2].OutputNorm.Gain = nil },
		"positions":    func(_ *Config, p *EncoderParams) { p.Positions = p.Positions[:1] },
		"no positions": func(_ *Config, p *EncoderParams) { p.Positions = nil },
		"types":        func(_ *Config, p *EncoderParams) { p.Types = nil },
		"classifier":   func(_ *Config, p *EncoderParams) { p.Classify.Weight = nil },
	} {
		cfg, p := randomParams(small, 5000, 7)
		spoil(&cfg, p)
		if _, err := NewEncoder(cfg, p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCostOfTheFirstTokens(t *testing.T) {
	m := randomEncoder(t, small)
	// by hand for T = 10, C = 60, F = 130, 3 heads, 3 layers, 7 labels: the grids of two whole layers
	// and one row of the third
	cells, flops := m.Cost(10)
	if want := int64(3 * (2*100 + 10)); cells != want {
		t.Errorf("%d cells, want %d", cells, want)
	}
	whole := 10*(4*3600+2*60*130) + 2*100*60
	last := 4*3600 + 2*60*130 + 2*3*10*60
	if want := int64(2 * (2*whole + last + 3600 + 7*60)); flops != want {
		t.Errorf("%d operations, want %d", flops, want)
	}
	if a, b := fmt.Sprint(m.Cost(20)), fmt.Sprint(m.Cost(10)); a == b {
		t.Error("cost does not depend on length")
	}
}
