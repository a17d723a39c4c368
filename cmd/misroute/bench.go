package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/attention/kernel"
)

// BenchCommand times a model by message length.
func BenchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "time a model by message length, beside what the processor can do at most",
		Description: "Runs messages of random token ids, one after the other on each worker, and prints the best and the\n" +
			"middle time, messages a second over all workers, and the share of the processor's measured peak.\n" +
			"The n² share is the part of the arithmetic that grows with the square of the length: the price of\n" +
			"every token looking at every token.\n\n" +
			"With --curve, one layer of the model's shape is timed from 32 to 8,192 tokens twice: with full attention,\n" +
			"and with a sliding window, whose cost grows with the length alone. --plot draws that curve, with the n² share below it.\n\n" +
			"--shape times made-up weights of a size that no folder holds yet: minilm, bert-base, or four numbers,\n" +
			"layers x hidden size x heads x intermediate size. Such a model takes up to 8,192 tokens.\n\n" +
			"Examples:\n" +
			"  misroute bench --model models/router\n" +
			"  misroute bench --model models/router --lengths 32,128,512 --workers 2 --json\n" +
			"  misroute bench --model models/router --lengths-file lengths.json\n" +
			"  misroute bench --model models/router --curve --plot cost.svg\n" +
			"  misroute bench --shape bert-base --lengths 512,8192",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "model folder `DIR` (config.json and model.safetensors)"},
			&cli.StringFlag{Name: "shape", Usage: "instead of a model: made-up weights of `SHAPE` (minilm, bert-base or 6x384x12x1536)"},
			&cli.StringFlag{Name: "lengths", Usage: "message lengths in tokens (default: 32,64,128,256,512 as far as the model goes)"},
			&cli.StringFlag{Name: "lengths-file", Usage: "time one mixed set instead: a JSON array of lengths in `FILE`"},
			&cli.BoolFlag{Name: "int8", Usage: "8-bit weights"},
			&cli.IntFlag{Name: "workers", Value: 1, Usage: "messages at a time"},
			&cli.DurationFlag{Name: "time", Value: time.Second, Usage: "time to spend on each length"},
			&cli.BoolFlag{Name: "curve", Usage: "time one layer from 32 to 8,192 tokens, full attention and a sliding window"},
			&cli.IntFlag{Name: "window", Value: 128, Usage: "with --curve: tokens that a token of the sliding window sees"},
			&cli.StringFlag{Name: "plot", Usage: "with --curve: draw it into `FILE` (.svg or .png)"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		},
		Action: func(c *cli.Context) error {
			o, err := bindBench(c)
			if err != nil {
				return err
			}
			return runBench(c.Context, o, c.App.Writer)
		},
	}
}

type benchOptions struct {
	model      string
	shape      string // instead of a model
	lengths    []int  // nil: the default
	mixed      []int  // one set instead
	int8, json bool
	workers    int
	time       time.Duration
	curve      bool
	window     int
	plot       string
}

func bindBench(c *cli.Context) (benchOptions, error) {
	o := benchOptions{model: c.String("model"), shape: c.String("shape"), int8: c.Bool("int8"), json: c.Bool("json"), workers: c.Int("workers"),
		time: c.Duration("time"), curve: c.Bool("curve"), window: c.Int("window"), plot: c.String("plot")}
	switch {
	case c.NArg() > 0:
		return o, usagef("bench takes no argument %q; the model goes to --model", c.Args().First())
	case (o.model == "") == (o.shape == ""):
		return o, usagef("bench needs either --model DIR or --shape SHAPE")
	case o.workers < 1 || o.workers > 1024:
		return o, usagef("--workers %d: want 1 to 1024", o.workers)
	case o.time <= 0:
		return o, usagef("--time %v: want more than 0", o.time)
	case o.window < 1:
		return o, usagef("--window %d: want at least 1", o.window)
	case o.plot != "" && !o.curve:
		return o, usagef("--plot draws the curve; give --curve too")
	case c.IsSet("lengths") && c.IsSet("lengths-file"):
		return o, usagef("--lengths and --lengths-file exclude each other")
	}
	if err := checkPlot(o.plot); err != nil {
		return o, err
	}
	if c.IsSet("lengths") {
		for word := range strings.SplitSeq(c.String("lengths"), ",") {
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil {
				return o, usagef("--lengths: %q is not a number of tokens", word)
			}
			o.lengths = append(o.lengths, n)
		}
	}
	if path := c.String("lengths-file"); c.IsSet("lengths-file") {
		text, err := os.ReadFile(path)
		if err != nil {
			return o, usagef("--lengths-file: %w", err)
		}
		if err := json.Unmarshal(text, &o.mixed); err != nil || len(o.mixed) == 0 {
			return o, usagef("--lengths-file %s: want a JSON array of lengths such as [93, 198, 512]", path)
		}
	}
	for _, n := range slices.Concat(o.lengths, o.mixed) {
		if n < 1 {
			return o, usagef("a message of %d tokens: want at least 1", n)
		}
	}
	return o, nil
}

// benchRow is one line of the table. For a mixed set, tokens is the mean length, and the times are
// those of one pass divided by its messages.
type benchRow struct {
	Tokens         int     `json:"tokens"`
	Messages       int     `json:"messages"` // in a pass; 1 unless the set is mixed
	MinMillis      float64 `json:"min_ms"`
	MedianMillis   float64 `json:"median_ms"`
	PerSecond      float64 `json:"messages_per_s"` // over all workers
	GFLOPS         float64 `json:"gflops"`         // of one worker, at its best
	PeakShare      float64 `json:"peak_share"`
	QuadraticShare float64 `json:"quadratic_share"` // of the arithmetic
}

type benchResult struct {
	Model     string       `json:"model"`
	Kernel    string       `json:"kernel"`
	Precision string       `json:"precision"`
	Workers   int          `json:"workers"`
	Peak      float64      `json:"peak_gflops"` // of one core, float32
	Rows      []benchRow   `json:"rows"`
	Curve     []curvePoint `json:"curve,omitempty"`
	window    int
}

func runBench(ctx context.Context, o benchOptions, stdout io.Writer) error {
	m, err := o.load()
	if err != nil {
		return usageError(err)
	}
	c := m.Config()
	r := &benchResult{Model: c.ModelType, Kernel: m.Kernel(), Precision: m.Precision(), Workers: o.workers, Peak: measurePeak(), Rows: []benchRow{}, window: o.window}
	var sets [][]int
	if o.mixed != nil {
		sets = [][]int{o.mixed}
	} else {
		if o.lengths == nil {
			o.lengths = defaultLengths(maxTokens(c))
		}
		for _, n := range o.lengths {
			sets = append(sets, []int{n})
		}
	}
	for _, set := range sets {
		row, err := timeSet(ctx, m, set, o.workers, o.time)
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
		r.Peak = max(r.Peak, measurePeak()) // the clock may have been low before
	}
	for i := range r.Rows {
		r.Rows[i].PeakShare = r.Rows[i].GFLOPS / r.Peak
	}
	if o.curve {
		if r.Curve, err = timeCurve(ctx, c, o.window, o.time); err != nil {
			return err
		}
	}
	if o.plot != "" {
		if err := plotCurve(o.plot, r.Curve, o.window); err != nil {
			return err
		}
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(stdout)
}

// load is the model in the folder, or one made up.
func (o *benchOptions) load() (attention.Model, error) {
	if o.shape != "" {
		return shapeModel(o.shape, o.int8)
	}
	f, err := checkpoint.Load(o.model, checkpoint.Options{Int8: o.int8})
	if err != nil {
		return nil, err
	}
	return f.Model, nil
}

// defaultLengths are powers of two from 32 on, and the model's own end.
func defaultLengths(most int) (lengths []int) {
	for n := 32; n <= min(512, most); n *= 2 {
		lengths = append(lengths, n)
	}
	if len(lengths) == 0 {
		lengths = []int{most}
	}
	return lengths
}

// measurePeak is the fastest one core goes through multiply-adds, in GFLOPS: the best of many short
// tries, since others use the machine too.
func measurePeak() (gflops float64) {
	for range 60 {
		start := time.Now()
		flops := kernel.PeakLoop(20_000)
		gflops = max(gflops, flops/time.Since(start).Seconds()/1e9)
	}
	return gflops
}

// timeSet runs passes over messages of the given lengths on every worker at once.
func timeSet(ctx context.Context, m attention.Model, set []int, workers int, long time.Duration) (benchRow, error) {
	var mu sync.Mutex
	var times []time.Duration // of passes
	var failed error
	var ready, done sync.WaitGroup
	ready.Add(workers)
	start := make(chan time.Time)
	var end time.Time // of the last pass
	for range workers {
		done.Go(func() {
			pass := newPass(m, set)
			err := pass() // the workspace grows, caches fill
			ready.Done()
			began, last := <-start, time.Time{}
			var own []time.Duration
			for err == nil && (len(own) < 3 || time.Since(began) < long) && ctx.Err() == nil {
				before := time.Now()
				err = pass()
				last = time.Now()
				own = append(own, last.Sub(before))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			if last.After(end) {
				end = last
			}
			if err != nil {
				failed = err
			}
		})
	}
	ready.Wait()
	began := time.Now()
	for range workers {
		start <- began
	}
	done.Wait()
	switch {
	case ctx.Err() != nil:
		return benchRow{}, ctx.Err()
	case failed != nil:
		return benchRow{}, usageError(failed)
	}
	return summarise(m, set, times, end.Sub(began)), nil
}

// newPass prepares one goroutine's pass over the messages.
func newPass(m attention.Model, set []int) func() error {
	ids := someIDs(slices.Max(set), m.Config())
	ws, logits := m.NewWorkspace(), make([]float32, len(m.Config().Labels))
	return func() error {
		for _, n := range set {
			if err := m.Logits(logits, attention.Input{IDs: ids[:n]}, ws); err != nil {
				return err
			}
		}
		return nil
	}
}

// summarise makes a row of the times of passes.
func summarise(m attention.Model, set []int, times []time.Duration, elapsed time.Duration) benchRow {
	slices.Sort(times)
	tokens, flops, quadratic := 0, 0.0, 0.0
	for _, n := range set {
		cells, f := m.Cost(n)
		tokens += n
		flops += float64(f)
		quadratic += quadraticFLOPs(m.Config(), cells)
	}
	messages := float64(len(set))
	best := times[0].Seconds()
	row := benchRow{
		Tokens: (tokens + len(set)/2) / len(set), Messages: len(set),
		MinMillis: best * 1e3 / messages, MedianMillis: times[len(times)/2].Seconds() * 1e3 / messages,
		PerSecond: float64(len(times)) * messages / elapsed.Seconds(), GFLOPS: flops / best / 1e9,
	}
	if flops > 0 {
		row.QuadraticShare = quadratic / flops
	}
	return row
}

// quadraticFLOPs is the arithmetic of score grids: every cell is a product of two head-sized vectors
// for the score, and one more for the value it brings.
func quadraticFLOPs(c *attention.Config, cells int64) float64 {
	if c.Heads == 0 {
		return 0
	}
	return 4 * float64(cells) * float64(c.Hidden/c.Heads)
}

func (r *benchResult) print(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %s on %s, %s, %s of %d; one core peaks at %.0f GFLOPS\n\n", r.Model, r.Precision, r.Kernel, runtime.GOARCH, plural(r.Workers, "worker"), runtime.GOMAXPROCS(0), r.Peak)
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "tokens\tmin ms\tmedian ms\tmessages/s\tGFLOPS\tof peak\tn² share\t")
	for _, row := range r.Rows {
		tokens := fmt.Sprint(row.Tokens)
		if row.Messages > 1 {
			tokens = fmt.Sprintf("%d mixed, mean %d", row.Messages, row.Tokens)
		}
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.1f\t%.1f\t%.0f%%\t%.1f%%\t\n", tokens, row.MinMillis, row.MedianMillis, row.PerSecond, row.GFLOPS, 100*row.PeakShare, 100*row.QuadraticShare)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Curve != nil {
		fmt.Fprintf(&b, "\nOne layer of this shape: full attention, and a sliding window of %d tokens\n\n", r.window)
		fmt.Fprintln(t, "tokens\tfull ms\tn² share\twindow ms\tits share\tfull/window\t")
		for _, p := range r.Curve {
			fmt.Fprintf(t, "%d\t%.3f\t%.1f%%\t%.3f\t%.1f%%\t%.2f\t\n", p.Tokens, p.FullMillis, 100*p.FullShare, p.WindowMillis, 100*p.WindowShare, p.FullMillis/p.WindowMillis)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := b.WriteTo(w)
	return err
}
