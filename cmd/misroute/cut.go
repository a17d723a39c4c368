package main

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"misroute/pipeline/mail"
)

// CutCommand writes one record of an export as it stands there.
func CutCommand() *cli.Command {
	return &cli.Command{
		Name:      "cut",
		Usage:     "write the raw bytes of one record of an export",
		ArgsUsage: "SOURCE OFFSET LENGTH",
		Description: "Rows and rejects name a record by byte offset and length in the uncompressed export.\n" +
			"This shows the record itself, to look at or to keep.\n\n" +
			"Examples:\n" +
			"  misroute cut inbox-2026-W12.mbox.zst 912345678 18233 > record.eml\n" +
			"  misroute cut --member refunds/17.eml export.zip 0 5120",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "member", Usage: "`PATH` inside a folder or archive, as the rows name it"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 3 {
				return usagef("cut needs SOURCE OFFSET LENGTH, got %d arguments; flags go before them", c.NArg())
			}
			o := cutOptions{source: c.Args().Get(0), member: c.String("member")}
			var err error
			if o.offset, err = strconv.ParseInt(c.Args().Get(1), 10, 64); err != nil || o.offset < 0 {
				return usagef("OFFSET %q is not a number of bytes", c.Args().Get(1))
			}
			if o.length, err = strconv.ParseInt(c.Args().Get(2), 10, 64); err != nil || o.length < 0 {
				return usagef("LENGTH %q is not a number of bytes", c.Args().Get(2))
			}
			return runCut(c.Context, o, c.App.Writer)
		},
	}
}

type cutOptions struct {
	source, member string
	offset, length int64
}

func runCut(ctx context.Context, o cutOptions, stdout io.Writer) error {
	err := mail.Cut(ctx, stdout, o.source, o.member, o.offset, o.length, mail.Options{Remote: bucketsOf(ctx).export})
	if err != nil && !errors.Is(err, context.Canceled) {
		return usageError(err)
	}
	return err
}
