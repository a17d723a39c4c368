package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"misroute/pipeline/result"
	"misroute/reports"
)

// reportOptions is how a run is judged and shown; every verb that ends in a report has it.
type reportOptions struct {
	reports.Options
	color string // auto, always, never
	plots string // folder for picture files; "": none
}

// reportFlags are the flags of reportOptions.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "buckets", Usage: "length buckets: upper edges in tokens such as `64,256,1024`, or equal:4 for equal counts (default: the usual caps)"},
		&cli.StringFlag{Name: "costs", Usage: "weigh misroutes by a CSV `FILE` with the columns from,to,cost (* is any queue; unlisted pairs cost 1)"},
		&cli.Float64Flag{Name: "threshold", Usage: "say what happens if messages with a score below `SCORE` go to a person"},
		&cli.IntFlag{Name: "examples", Value: 200, Usage: "list at most `N` messages each way (counts are never capped)"},
		&cli.StringFlag{Name: "plots", Usage: "also write the charts as PNG and SVG files into `DIR`"},
		&cli.StringFlag{Name: "color", Value: "auto", Usage: "colour on the terminal: auto, always, never (NO_COLOR is respected)"},
	}
}

// bindReport reads reportFlags.
func bindReport(c *cli.Context) (reportOptions, error) {
	o := reportOptions{color: c.String("color"), plots: c.String("plots")}
	o.Buckets, o.Threshold, o.Examples, o.WithText = c.String("buckets"), c.Float64("threshold"), c.Int("examples"), c.Bool("with-text")
	if err := reports.CheckBuckets(o.Buckets); err != nil {
		return o, usagef("--buckets: %w", err)
	}
	if !(o.Threshold >= 0 && o.Threshold <= 1) {
		return o, usagef("--threshold %g: a score lies between 0 and 1", o.Threshold)
	}
	if o.Examples < 1 {
		return o, usagef("--examples %d: want at least 1", o.Examples)
	}
	switch o.color {
	case "auto", "always", "never":
	default:
		return o, usagef("--color %q: want auto, always or never", o.color)
	}
	var err error
	o.Costs, err = readCosts(c.String("costs"))
	return o, err
}

// readCosts reads the file of --costs; without one every misroute costs 1.
func readCosts(path string) (*reports.Costs, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("--costs: %w", err)
	}
	defer f.Close()
	costs, err := reports.ParseCosts(f)
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	return costs, nil
}

// terminal settles width and colour for a writer.
func (o reportOptions) terminal(stdout io.Writer, folder string) reports.TermOptions {
	t := reports.TermOptions{Width: 80, Folder: folder, Color: o.color == "always"}
	f, ok := stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return t
	}
	if o.color == "auto" {
		t.Color = colour(stdout)
	}
	// Wider than 120 a table is hard to follow with the eye.
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		t.Width = min(width, 120)
	}
	return t
}

// writeReports writes report.html, report.md and report.json into dir, and the pictures.
func writeReports(dir string, w *reports.Weekly, o reportOptions) error {
	if err := writeForms(dir, "report", w); err != nil {
		return err
	}
	return writePictures(w, o.plots)
}

// writeForms writes NAME.html, NAME.md and NAME.json into dir.
func writeForms(dir, name string, r drawable) error {
	for _, form := range []struct {
		ext   string
		write func(io.Writer) error
	}{{".html", r.HTML}, {".md", r.Markdown}, {".json", r.JSON}} {
		if err := replaceFile(filepath.Join(dir, name+form.ext), form.write); err != nil {
			return err
		}
	}
	return nil
}

// writePictures writes the charts of a report into dir, if there is one.
func writePictures(w *reports.Weekly, dir string) error {
	if dir == "" {
		return nil
	}
	pictures, err := w.Pictures()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usageError(err)
	}
	for _, p := range pictures {
		for _, format := range reports.Formats {
			err := replaceFile(filepath.Join(dir, p.Name+"."+format), func(out io.Writer) error { return p.Write(out, format) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceFile writes a file aside and renames it, so that nobody opens half a report.
func replaceFile(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path+".tmp", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// ReportCommand makes the reports of a run again.
func ReportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "make the reports of a run again, from its rows alone",
		ArgsUsage: "RUN",
		Description: "Reads the Parquet files of a run folder, neither mail nor model, prints the weekly report and writes\n" +
			"report.html, report.md and report.json beside them (or into --out).\n\n" +
			"Examples:\n" +
			"  misroute report runs/2026-W47\n" +
			"  misroute report --buckets equal:4 --costs costs.csv runs/2026-W47\n" +
			"  misroute report --format markdown runs/2026-W47 | pbcopy\n\n" +
			"Exit codes: 0 done; 2 no readable run there.",
		Flags: append(reportFlags(),
			&cli.StringFlag{Name: "format", Value: "all", Usage: "`FORM` to make: all (terminal here, the others as files), or one of terminal, html, markdown, json on standard output"},
			&cli.StringFlag{Name: "out", Usage: "`DIR` for the files (default: the run folder)"},
			&cli.BoolFlag{Name: "with-text", Usage: "show subjects and text, where the run stored them"},
		),
		Action: func(c *cli.Context) error {
			o, err := bindReport(c)
			if err != nil {
				return err
			}
			if c.NArg() != 1 {
				return usagef("report wants one run folder, got %d arguments; see misroute report --help", c.NArg())
			}
			return runReport(c.Context, reportRun{o, c.Args().First(), c.String("format"), c.String("out")}, c.App.Writer)
		},
	}
}

// reportRun is everything `misroute report` was asked for.
type reportRun struct {
	reportOptions
	run    string
	format string
	out    string
}

func runReport(ctx context.Context, o reportRun, stdout io.Writer) error {
	from, err := bucketsOf(ctx).runCopy(ctx, o.run)
	if err != nil {
		return usageError(err)
	}
	if _, err := result.ReadFinished(from); err != nil {
		return usageError(err)
	}
	w, err := reports.ReadWeekly(from, o.Options)
	if err != nil {
		return err
	}
	switch strings.ToLower(o.format) {
	case "terminal", "text":
		return w.Terminal(stdout, o.terminal(stdout, o.run))
	case "html":
		return w.HTML(stdout)
	case "markdown", "md":
		return w.Markdown(stdout)
	case "json":
		return w.JSON(stdout)
	case "all", "":
	default:
		return usagef("--format %q: want all, terminal, html, markdown or json", o.format)
	}
	place := o.run
	if o.out != "" {
		place = o.out
	}
	dir, bring, err := putFolder(ctx, place)
	if err != nil {
		return err
	}
	if err := writeReports(dir, w, o.reportOptions); err != nil {
		return err
	}
	if err := bring(); err != nil {
		return err
	}
	return w.Terminal(stdout, o.terminal(stdout, place))
}
