// Crumb writes weekly exports of a demo cake shop's support inbox: real mbox, seeded,
// of any size. The demo, the tests and the scale runs of misroute read them.
//
// Everything in them is made up: the shop, its customers, what they say. What makes
// them worth evaluating a router on is that each message has exactly one right queue,
// said by one sentence, and that the words around it often point elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
)

const description = `Each message goes to one queue, which one sentence decides; X-Queue names it.
Wording comes from three pools that share no sentence frame: train, validation and
judged. Without --split, weeks before 2026-W46 use train, 2026-W46 validation, later
ones judged. The same flags write the same bytes.

   crumb --week 2026-W47 --messages 310 --out 2026-W47.mbox
   crumb --weeks 2026-W01..2026-W45 --messages 400 --out train.mbox.gz
   crumb --weeks 2026-W33..2026-W45 --messages 310 --out '{week}.mbox.gz'
   crumb --weeks 2026-W01..2026-W45 --messages 400 --confounded 0.9 --words 25 --out drill.mbox.gz
   crumb --week 2026-W20 --messages 1000000 --out - | misroute inspect -`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newApp(os.Stdout).RunContext(ctx, os.Args)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "crumb:", err)
	var usage usageError
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	case errors.As(err, &usage):
		os.Exit(2)
	default:
		os.Exit(1)
	}
}

// usageError is a mistake in the flags; it ends the program with 2.
type usageError struct{ error }

func newApp(stdout io.Writer) *cli.App {
	return &cli.App{
		Name:            "crumb",
		Usage:           "write weekly support exports of a demo cake shop",
		UsageText:       "crumb --week 2026-W47 --messages 310 --out FILE.mbox[.gz]",
		Description:     description,
		HideHelpCommand: true,
		Writer:          stdout,
		ExitErrHandler:  func(*cli.Context, error) {}, // main decides
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return usageError{err} },
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "start of the random streams"},
			&cli.StringFlag{Name: "week", Usage: "ISO week, such as `2026-W47`"},
			&cli.StringFlag{Name: "weeks", Usage: "several, such as `2026-W35..2026-W47`"},
			&cli.IntFlag{Name: "messages", Value: 310, Usage: "messages a week"},
			&cli.StringFlag{Name: "split", Usage: "wording `pool`: train, validation or judged (default: by the week)"},
			&cli.Float64Flag{Name: "confounded", Value: usual.confounded, Usage: "`share` of messages with something that misleads a reader of single words; more is drill"},
			&cli.Float64Flag{Name: "words", Value: usual.medianWords, Usage: "`median` of the words of a message"},
			&cli.StringFlag{Name: "out", Usage: "`file` to write, compressed if it ends in .gz; \"-\" for standard output;\n" +
				"{week} in the name makes one file a week"},
		},
		Action: func(c *cli.Context) error {
			o, err := optionsOf(c)
			if err != nil {
				return usageError{err}
			}
			return run(c.Context, o, stdout)
		},
	}
}

// options are the flags, checked.
type options struct {
	seed     uint64
	weeks    []isoWeek
	messages int
	split    *pool // nil: by the week
	recipe
	out string
}

// recipe is what kind of messages an export holds.
type recipe struct {
	confounded  float64 // share of messages with a confounder, where their queue allows one
	medianWords float64 // median of a message's words
}

// usual is the recipe of the shop's weeks.
var usual = recipe{confounded: 0.41, medianWords: 70}

func optionsOf(c *cli.Context) (options, error) {
	o := options{seed: c.Uint64("seed"), messages: c.Int("messages"), out: c.String("out")}
	if c.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: everything is a flag", c.Args().First())
	}
	if o.out == "" {
		return o, errors.New("--out says where to write: a file, or - for standard output")
	}
	o.recipe = recipe{confounded: c.Float64("confounded"), medianWords: c.Float64("words")}
	if !(o.confounded >= 0 && o.confounded <= 1) {
		return o, fmt.Errorf("--confounded %g: want a share from 0 to 1", o.confounded)
	}
	if !(o.medianWords >= fewestWords && o.medianWords <= mostWords) {
		return o, fmt.Errorf("--words %g: want a median from %d to %d", o.medianWords, fewestWords, mostWords)
	}
	if o.messages < 1 {
		return o, fmt.Errorf("--messages %d: want at least 1", o.messages)
	}
	week, weeks := c.String("week"), c.String("weeks")
	if (week == "") == (weeks == "") {
		return o, errors.New("give either --week 2026-W47 or --weeks 2026-W35..2026-W47")
	}
	var err error
	if week != "" {
		var w isoWeek
		w, err = parseWeek(week)
		o.weeks = []isoWeek{w}
	} else {
		o.weeks, err = parseWeeks(weeks)
	}
	if err != nil {
		return o, err
	}
	if split := c.String("split"); split != "" {
		for p, name := range poolNames {
			if split == name {
				p := pool(p)
				o.split = &p
			}
		}
		if o.split == nil {
			return o, fmt.Errorf("--split %q: want train, validation or judged", split)
		}
	}
	return o, nil
}
