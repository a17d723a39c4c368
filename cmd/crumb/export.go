package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// outputBuffer is large because records are a few kilobytes and a system call each
// would cost more than composing them.
const outputBuffer = 1 << 20

// run writes the export, or one a week if the file name holds {week}.
func run(ctx context.Context, o options, stdout io.Writer) error {
	g, err := loadGrammar()
	if err != nil {
		return err
	}
	if o.out == "-" {
		return writeBuffered(ctx, stdout, g, o)
	}
	if !strings.Contains(o.out, "{week}") {
		return writeFile(ctx, o.out, g, o)
	}
	for _, w := range o.weeks {
		one := o
		one.weeks = []isoWeek{w}
		if err := writeFile(ctx, strings.ReplaceAll(o.out, "{week}", w.String()), g, one); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes beside the file and renames at the end: what carries the name is
// complete.
func writeFile(ctx context.Context, name string, g *grammar, o options) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := writeBuffered(ctx, z, g, o); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	} else if err := writeBuffered(ctx, f, g, o); err != nil {
		return err
	}
	// CreateTemp made the file private; an export is as public as any new file.
	if err := f.Chmod(0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}

func writeBuffered(ctx context.Context, to io.Writer, g *grammar, o options) error {
	b := bufio.NewWriterSize(to, outputBuffer)
	if err := writeExport(ctx, b, g, o); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing the export: %w", err)
	}
	return nil
}

// writeExport writes the weeks one after the other, in constant memory.
func writeExport(ctx context.Context, to io.Writer, g *grammar, o options) error {
	var w mailWriter
	for _, week := range o.weeks {
		c := newComposer(g, o.seed, o.recipe) // anew, so that a week's bytes depend on that week alone
		p := week.pool()
		if o.split != nil {
			p = *o.split
		}
		weights, clock := shares(week), newClock(week, o.messages)
		for n := range o.messages {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			l := c.compose(week, n, p, weights[:], clock)
			if _, err := to.Write(w.write(l, c.random)); err != nil {
				return fmt.Errorf("writing the export: %w", err)
			}
		}
	}
	return nil
}
