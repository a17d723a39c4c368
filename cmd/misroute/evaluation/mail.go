package evaluation

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/pipeline/mail"
	"misroute/pipeline/text"
)

const mailCategory = "Reading the export:"

// MailFlags are the flags that say how an export is read. Every verb that reads mail has them, so
// that all read it the same way.
func MailFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Category: mailCategory, Usage: "`FORMAT` of the export: mbox, mboxo, mboxrd, mboxcl, maildir, folder, eml, csv, jsonl, json, zip, tar (default: told from the content)"},
		&cli.StringFlag{Name: "preset", Category: mailCategory, Usage: "field names of a help desk: zendesk, freshdesk, takeout"},
		&cli.StringSliceFlag{Name: "map", Category: mailCategory, Usage: "`ROLE=COLUMN`, such as body=description,label=group; roles: " + strings.Join(mail.Roles(), ", ")},
		&cli.StringFlag{Name: "groups", Category: mailCategory, Usage: "`FILE` (.json or .csv: id, name) with the names of help-desk groups"},
		&cli.StringFlag{Name: "labels", Category: mailCategory, Usage: "`FILE.csv` with message ids and their true queues"},
		&cli.StringFlag{Name: "label-from", Category: mailCategory, Usage: "where labels are, in order: file,header,gmail,column,folder (default: all, in this order)"},
		&cli.StringFlag{Name: "label-header", Category: mailCategory, Usage: "header with the true queue (default: X-Queue)"},
		&cli.StringFlag{Name: "label-column", Category: mailCategory, Usage: "column with the true queue (default: queue, label, group, category, ...)"},
		&cli.StringFlag{Name: "routed-header", Category: mailCategory, Usage: "header with the queue that the deployed router chose"},
		&cli.StringFlag{Name: "routed-column", Category: mailCategory, Usage: "column with the queue that the deployed router chose"},
		&cli.StringFlag{Name: "quotes", Category: mailCategory, Value: text.QuotesStrip, Usage: "quoted replies and signatures: strip or keep"},
		&cli.BoolFlag{Name: "no-subject", Category: mailCategory, Usage: "do not put the subject before the body"},
		&cli.StringFlag{Name: "tz", Category: mailCategory, Usage: "time `ZONE` of dates that name none, such as Europe/Berlin (default: UTC)"},
		&cli.Int64Flag{Name: "max-message-bytes", Category: mailCategory, Usage: "reject larger messages", DefaultText: "64 MiB"},
		&cli.Int64Flag{Name: "max-expansion", Category: mailCategory, Usage: "most decompressed bytes per compressed byte, after 10 MiB", DefaultText: "200"},
	}
}

// MailOptions turns the flags of MailFlags into options.
func MailOptions(c *cli.Context) (mail.Options, text.Options, error) {
	limits := mail.Limits{MessageBytes: c.Int64("max-message-bytes"), Expansion: c.Int64("max-expansion")}.OrDefault()
	m := mail.Options{Format: mail.Format(c.String("format")), Preset: c.String("preset"), Limits: limits}
	t := text.Options{Quotes: c.String("quotes"), NoSubject: c.Bool("no-subject"), Limits: limits}
	if t.Quotes != text.QuotesStrip && t.Quotes != text.QuotesKeep {
		return m, t, fmt.Errorf("--quotes %q: use strip or keep", t.Quotes)
	}
	roles, err := mailRoles(c)
	if err != nil {
		return m, t, err
	}
	m.Map = roles
	if path := c.String("groups"); path != "" {
		if m.Groups, err = mail.LoadGroups(path); err != nil {
			return m, t, err
		}
	}
	m.Labels.Header, m.Labels.RoutedHeader = c.String("label-header"), c.String("routed-header")
	switch from := c.String("label-from"); {
	case from != "":
		m.Labels.From = strings.Split(from, ",")
	case m.Preset == "takeout": // a header of that name is some other system's there
		m.Labels.From = []string{mail.LabelFile, mail.LabelGmail}
	}
	if path := c.String("labels"); path != "" {
		if m.Labels.File, err = mail.LoadLabels(path); err != nil {
			return m, t, err
		}
	}
	if tz := c.String("tz"); tz != "" {
		if m.Labels.Zone, err = time.LoadLocation(tz); err != nil {
			return m, t, fmt.Errorf("--tz %q: not a time zone; use a name such as Europe/Berlin", tz)
		}
	}
	if err := m.Check(); err != nil {
		return m, t, err
	}
	return m, t, nil
}

// mailRoles joins --map with the column flags.
func mailRoles(c *cli.Context) (map[string]string, error) {
	roles := make(map[string]string)
	for _, pair := range c.StringSlice("map") {
		role, column, ok := strings.Cut(pair, "=")
		if !ok || column == "" {
			return nil, fmt.Errorf("--map %q: write ROLE=COLUMN, such as body=description", pair)
		}
		roles[strings.TrimSpace(role)] = strings.TrimSpace(column)
	}
	for flag, role := range map[string]string{"label-column": "label", "routed-column": "routed"} {
		column := c.String(flag)
		if column == "" {
			continue
		}
		if other, ok := roles[role]; ok && other != column {
			return nil, fmt.Errorf("--%s %s contradicts --map %s=%s", flag, column, role, other)
		}
		roles[role] = column
	}
	return roles, nil
}
