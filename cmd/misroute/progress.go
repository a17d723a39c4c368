package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"misroute/pipeline"
)

// progressFlag chooses how long work is shown on standard error.
func progressFlag() cli.Flag {
	return &cli.StringFlag{Name: "progress", Value: "auto", Usage: "`HOW` to show progress on standard error: auto, bar, lines, json, none"}
}

// progress shows how far work is. Text and JSON printers are equals: both see every event.
type progress interface {
	// update shows done of total units of work (bytes, steps; a total of 0 is unknown) and a note.
	update(done, total int64, elapsed time.Duration, note string, event any)
	close()
}

// newProgress makes the printer that --progress names. auto is a bar on a terminal, lines elsewhere.
func newProgress(how string, stderr io.Writer) (progress, error) {
	if how == "auto" {
		how = "lines"
		if isTerminal(stderr) {
			how = "bar"
		}
	}
	switch how {
	case "bar":
		return newBar(stderr), nil
	case "lines":
		return &lines{w: stderr, every: 5 * time.Second}, nil
	case "json":
		return &jsonLines{w: stderr}, nil
	case "none":
		return silent{}, nil
	}
	return nil, usagef("--progress %s: want auto, bar, lines, json or none", how)
}

// isTerminal says whether w is a terminal a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// colour says whether to colour what goes to w: on a terminal, unless NO_COLOR is set.
func colour(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

type bar struct {
	p     *mpb.Progress
	b     *mpb.Bar
	began time.Time
	mu    sync.Mutex // the decorators run on mpb's goroutine
	note  string
}

func newBar(w io.Writer) *bar {
	x := &bar{began: time.Now(), p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(30), mpb.WithRefreshRate(150*time.Millisecond))}
	x.b = x.p.New(0, mpb.BarStyle().Lbound(" ").Filler("━").Tip("━").Padding("─").Rbound(" "),
		mpb.BarRemoveOnComplete(),
		mpb.AppendDecorators(
			decor.Percentage(decor.WCSyncSpace),
			decor.Any(func(decor.Statistics) string {
				x.mu.Lock()
				defer x.mu.Unlock()
				return "  " + x.note
			}),
			decor.OnComplete(decor.Any(func(s decor.Statistics) string {
				return eta(s.Current, s.Total, time.Since(x.began))
			}), "")))
	return x
}

func (x *bar) update(done, total int64, _ time.Duration, note string, _ any) {
	x.mu.Lock()
	x.note = note
	x.mu.Unlock()
	if total > 0 {
		x.b.SetTotal(total, false)
	}
	x.b.SetCurrent(done)
}

func (x *bar) close() {
	x.b.Abort(true)
	x.p.Wait()
}

// eta is shown only when the total is known and something was done.
func eta(done, total int64, elapsed time.Duration) string {
	if done <= 0 || total <= done || elapsed < 2*time.Second {
		return ""
	}
	left := time.Duration(float64(elapsed) * float64(total-done) / float64(done))
	return "  " + left.Round(time.Second).String() + " left"
}

type lines struct {
	w     io.Writer
	every time.Duration
	last  time.Duration
}

func (l *lines) update(done, total int64, elapsed time.Duration, note string, _ any) {
	if elapsed-l.last < l.every {
		return
	}
	l.last = elapsed
	share := ""
	if total > 0 {
		share = fmt.Sprintf("%3d %%  ", 100*min(done, total)/total)
	}
	fmt.Fprintf(l.w, "%s%s%s\n", share, note, eta(done, total, elapsed))
}
func (l *lines) close() {}

type jsonLines struct{ w io.Writer }

func (j *jsonLines) update(_, _ int64, _ time.Duration, _ string, event any) {
	if b, err := json.Marshal(event); err == nil {
		fmt.Fprintf(j.w, "%s\n", b)
	}
}
func (j *jsonLines) close() {}

type silent struct{}

func (silent) update(int64, int64, time.Duration, string, any) {}
func (silent) close()                                          {}

// evalEvent is the JSON form of a pipeline event.
type evalEvent struct {
	Messages   int64   `json:"messages"`
	Rejected   int64   `json:"rejected"`
	Wrong      int64   `json:"wrong"`
	Labelled   int64   `json:"labelled"`
	Tokens     int64   `json:"tokens"`
	BytesRead  int64   `json:"bytes_read"`
	TotalBytes int64   `json:"total_bytes"`
	Seconds    float64 `json:"seconds"`
	Done       bool    `json:"done"`
}

// showEvents connects the pipeline's events to a printer.
func showEvents(p progress) func(pipeline.Event) {
	return func(e pipeline.Event) {
		note := fmt.Sprintf("%d messages", e.Messages)
		if e.Elapsed > time.Second {
			note += fmt.Sprintf(", %.0f a second", float64(e.Messages)/e.Elapsed.Seconds())
		}
		if e.Labelled > 0 {
			note += fmt.Sprintf(", %d wrong", e.Wrong)
		}
		if e.Rejected > 0 {
			note += fmt.Sprintf(", %d rejected", e.Rejected)
		}
		p.update(e.BytesRead, e.TotalBytes, e.Elapsed, note, evalEvent{
			e.Messages, e.Rejected, e.Wrong, e.Labelled, e.Tokens, e.BytesRead, e.TotalBytes, e.Elapsed.Seconds(), e.Done})
	}
}
