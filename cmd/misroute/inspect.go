package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"misroute/cmd/misroute/evaluation"
	"misroute/pipeline/mail"
	"misroute/pipeline/text"
)

// InspectCommand says what is in an export before anyone evaluates it.
func InspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what is in an export: format, messages, weeks, labels, lengths, rejects",
		ArgsUsage: "EXPORT...",
		Description: "Reads exports as eval would, without a model, and says what it found.\n\n" +
			"Examples:\n" +
			"  misroute inspect inbox-2026-W12.mbox.gz\n" +
			"  misroute inspect --rejects inbox-2026-W12.mbox.gz\n" +
			"  misroute inspect --jsonl --with-text tickets.csv | head -3\n" +
			"  misroute inspect --preset zendesk --groups groups.json tickets.jsonl",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print the summary as JSON"},
			&cli.BoolFlag{Name: "jsonl", Usage: "print one JSON object a record instead of the summary"},
			&cli.BoolFlag{Name: "with-text", Usage: "with --jsonl: subject and text too"},
			&cli.BoolFlag{Name: "rejects", Usage: "list the rejected records with the place of their bytes"},
			&cli.BoolFlag{Name: "allow-incomplete", Usage: "exit 0 for an export that is cut off"},
		}, evaluation.MailFlags()...),
		Action: func(c *cli.Context) error {
			paths := exportsOf(c)
			if len(paths) == 0 {
				return usagef("inspect needs an EXPORT: a file, a folder or - for standard input")
			}
			for _, e := range paths {
				if strings.HasPrefix(e, "--") {
					return usagef("%s stands after an export: flags come first, then exports", e)
				}
			}
			o := inspectOptions{paths: paths, json: c.Bool("json"), jsonl: c.Bool("jsonl"),
				withText: c.Bool("with-text"), rejects: c.Bool("rejects"), allowIncomplete: c.Bool("allow-incomplete")}
			if o.withText && !o.jsonl {
				return usagef("--with-text belongs to --jsonl")
			}
			var err error
			if o.mail, o.text, err = evaluation.MailOptions(c); err != nil {
				return usageError(err)
			}
			return runInspect(c.Context, o, c.App.Writer)
		},
	}
}

type inspectOptions struct {
	paths                 []string
	mail                  mail.Options
	text                  text.Options
	json, jsonl, withText bool
	rejects               bool
	allowIncomplete       bool
}

// record is what inspect knows about one record; --jsonl prints it.
type record struct {
	Source      string         `json:"source"`
	Member      string         `json:"member,omitempty"`
	RecordNo    int64          `json:"record_no"`
	ByteOffset  int64          `json:"byte_offset"`
	ByteLength  int64          `json:"byte_length"`
	Line        int64          `json:"line,omitempty"`
	MessageID   string         `json:"message_id"`
	Date        string         `json:"date,omitempty"`
	Week        string         `json:"week,omitempty"`
	Label       string         `json:"label,omitempty"`
	LabelSource string         `json:"label_source,omitempty"`
	Routed      string         `json:"routed,omitempty"`
	Language    string         `json:"language,omitempty"`
	Status      string         `json:"status"` // ok, salvaged, duplicate, filtered, rejected
	DuplicateOf int64          `json:"duplicate_of,omitempty"`
	Chars       int            `json:"chars"`
	Words       int            `json:"words"`
	QuoteChars  int            `json:"quote_chars_dropped"`
	Warnings    []mail.Code    `json:"warnings"`
	Reject      *inspectReject `json:"reject,omitempty"`
	Subject     *string        `json:"subject,omitempty"`
	Text        *string        `json:"text,omitempty"`
}

type inspectReject struct {
	Stage          string    `json:"stage"`
	Code           mail.Code `json:"code"`
	Detail         string    `json:"detail"`
	LimitName      string    `json:"limit_name,omitempty"`
	LimitValue     int64     `json:"limit_value,omitempty"`
	LimitActual    int64     `json:"limit_actual,omitempty"`
	RecoveredChars int64     `json:"recovered_chars,omitempty"`
}

func runInspect(ctx context.Context, o inspectOptions, stdout io.Writer) error {
	r, err := openExports(ctx, &o.paths, o.mail)
	if err != nil {
		return usageError(err)
	}
	defer r.Close()
	out := bufio.NewWriterSize(stdout, 64<<10)
	in := newInspector(o)
	if err := in.read(r, out); err != nil {
		if flush := out.Flush(); flush != nil {
			return flush
		}
		return err
	}
	in.sources(r.Sources())
	switch {
	case o.jsonl:
	case o.json:
		err = in.writeJSON(out)
	default:
		in.writeText(out)
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if err := o.mail.Labels.Check(in.matched, in.identified, in.unmatched...); err != nil {
		return usageError(err)
	}
	return in.incomplete()
}

// inspector adds records up.
type inspector struct {
	o       inspectOptions
	x       *text.Extractor
	summary inspection
	seen    map[string]int64 // content and id of a message: its record

	chars, words                []int
	weeks, labels, warns, langs map[string]int64
	identified, matched         int64
	unmatched                   []string
}

// inspection is the summary as --json prints it.
type inspection struct {
	SchemaVersion int              `json:"schema_version"`
	Sources       []inspectSource  `json:"sources"`
	Messages      int64            `json:"messages"`
	Status        map[string]int64 `json:"status"`
	Weeks         []inspectCount   `json:"weeks"`
	NoDate        int64            `json:"no_date"`
	Labels        []inspectCount   `json:"labels"`
	LabelSources  []inspectCount   `json:"label_sources"`
	Unlabelled    int64            `json:"unlabelled"`
	Routed        int64            `json:"routed"`
	Languages     []inspectCount   `json:"languages"`
	Characters    map[string]int   `json:"characters"`
	Words         map[string]int   `json:"words"`
	Warnings      []inspectCount   `json:"warnings"`
	Rejects       []inspectCount   `json:"rejects"`
	Rejected      []record         `json:"rejected,omitempty"`
	sourcesOf     map[string]int64
	rejectsOf     map[string]int64
}

type inspectSource struct {
	Name         string      `json:"name"`
	Format       mail.Format `json:"format"`
	Compression  string      `json:"compression,omitempty"`
	Bytes        int64       `json:"bytes"`
	SHA256       string      `json:"sha256"`
	Seen         int64       `json:"seen"`
	Incomplete   bool        `json:"incomplete"`
	IncompleteAt int64       `json:"incomplete_at,omitempty"`
	Fault        string      `json:"fault,omitempty"`
}

type inspectCount struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// statuses in the order they are shown; their sum is the number of records.
var statuses = []string{"ok", "salvaged", "duplicate", "filtered", "rejected"}

func newInspector(o inspectOptions) *inspector {
	in := &inspector{o: o, x: text.NewExtractor(o.text), seen: make(map[string]int64), weeks: map[string]int64{}, labels: map[string]int64{}, warns: map[string]int64{}, langs: map[string]int64{}}
	in.summary = inspection{SchemaVersion: 1, Status: map[string]int64{}, sourcesOf: map[string]int64{}, rejectsOf: map[string]int64{}}
	for _, s := range statuses {
		in.summary.Status[s] = 0
	}
	return in
}

func (in *inspector) read(r *mail.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		m, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			var unusable *mail.SourceError
			if errors.As(err, &unusable) {
				return usageError(err)
			}
			return err
		}
		rec := in.record(m)
		in.add(&rec)
		if in.o.jsonl {
			if err := enc.Encode(&rec); err != nil {
				return err
			}
		} else if rec.Reject != nil && in.o.rejects {
			rec.Subject, rec.Text = nil, nil
			in.summary.Rejected = append(in.summary.Rejected, rec)
		}
	}
}

// record reads one message the way eval does.
func (in *inspector) record(m *mail.Message) record {
	rec := record{Source: m.Source, Member: m.Member, RecordNo: m.RecordNo, ByteOffset: m.Offset, ByteLength: m.Length, Line: m.Line, Status: "ok", Warnings: m.Warnings}
	if m.Reject != nil {
		rec.reject(m.Reject)
		return rec
	}
	id := in.o.mail.Labels.Identify(m)
	rec.MessageID, rec.Label, rec.LabelSource, rec.Routed = id.MessageID, id.Label, id.LabelSource, id.Routed
	if id.HasDate {
		year, week := id.Date.ISOWeek()
		rec.Date, rec.Week = id.Date.Format("2006-01-02T15:04:05Z"), fmt.Sprintf("%d-W%02d", year, week)
	}
	rec.Warnings = append(rec.Warnings, id.Warnings...)
	in.match(&rec)
	if m.Filtered != "" {
		rec.Status = "filtered"
		rec.Warnings = append(rec.Warnings, m.Filtered)
		return rec
	}
	t, rej := in.x.Extract(m, &id)
	if in.o.withText {
		rec.Subject, rec.Text = &t.Subject, &t.Body
	}
	if rej != nil {
		rec.reject(rej)
		return rec
	}
	rec.Warnings = append(rec.Warnings, t.Warnings...)
	reading := t.Reading(!in.o.text.NoSubject)
	rec.Chars, rec.Words = utf8.RuneCountInString(reading), len(strings.Fields(reading))
	rec.QuoteChars, rec.Language = t.QuoteCharsDropped, t.Language
	if t.Salvaged {
		rec.Status = "salvaged"
	}
	key := t.ContentSHA256 + id.MessageID
	if first, ok := in.seen[key]; ok {
		rec.Status, rec.DuplicateOf = "duplicate", first
	} else {
		in.seen[key] = m.RecordNo
	}
	return rec
}

func (rec *record) reject(r *mail.Reject) {
	rec.Status = "rejected"
	rec.Reject = &inspectReject{r.Stage, r.Code, r.Detail, r.LimitName, r.LimitValue, r.LimitActual, r.RecoveredChars}
}

// match counts how many messages the labels file knows.
func (in *inspector) match(rec *record) {
	if in.o.mail.Labels.File == nil {
		return
	}
	in.identified++
	if rec.LabelSource == mail.LabelFile {
		in.matched++
	} else if len(in.unmatched) < 3 && rec.MessageID != "" {
		in.unmatched = append(in.unmatched, rec.MessageID)
	}
}

func (in *inspector) add(rec *record) {
	s := &in.summary
	s.Messages++
	s.Status[rec.Status]++
	for _, w := range rec.Warnings {
		in.warns[string(w)]++
	}
	if rec.Reject != nil {
		s.rejectsOf[string(rec.Reject.Code)]++
	}
	if rec.Warnings == nil {
		rec.Warnings = []mail.Code{}
	}
	if rec.Status != "ok" && rec.Status != "salvaged" {
		return
	}
	in.chars, in.words = append(in.chars, rec.Chars), append(in.words, rec.Words)
	if rec.Week == "" {
		s.NoDate++
	} else {
		in.weeks[rec.Week]++
	}
	if rec.Label == "" {
		s.Unlabelled++
	} else {
		in.labels[rec.Label]++
		s.sourcesOf[rec.LabelSource]++
	}
	if rec.Routed != "" {
		s.Routed++
	}
	if rec.Language != "" {
		in.langs[rec.Language]++
	}
}

// sources finishes the summary.
func (in *inspector) sources(list []mail.Source) {
	s := &in.summary
	for _, src := range list {
		s.Sources = append(s.Sources, inspectSource{src.Name, src.Format, src.Compression, src.Bytes, src.SHA256, src.Seen, src.Incomplete, src.IncompleteAt, src.Fault})
	}
	s.Weeks = counts(in.weeks, false)
	s.Labels, s.LabelSources, s.Languages = counts(in.labels, true), counts(s.sourcesOf, true), counts(in.langs, true)
	s.Warnings, s.Rejects = counts(in.warns, true), counts(s.rejectsOf, true)
	s.Characters, s.Words = percentiles(in.chars), percentiles(in.words)
}

// counts lists a map by name, or by number and then name.
func counts(m map[string]int64, byNumber bool) []inspectCount {
	out := make([]inspectCount, 0, len(m))
	for k, n := range m {
		out = append(out, inspectCount{k, n})
	}
	sort.Slice(out, func(i, j int) bool {
		if byNumber && out[i].N != out[j].N {
			return out[i].N > out[j].N
		}
		return out[i].Name < out[j].Name
	})
	return out
}

var percents = []int{5, 25, 50, 75, 90, 95, 99}

// percentiles by nearest rank, with the ends.
func percentiles(v []int) map[string]int {
	out := make(map[string]int)
	if len(v) == 0 {
		return out
	}
	sort.Ints(v)
	out["min"], out["max"] = v[0], v[len(v)-1]
	for _, p := range percents {
		out[fmt.Sprintf("p%d", p)] = v[(len(v)*p+99)/100-1]
	}
	return out
}

func (in *inspector) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(&in.summary)
}

func (in *inspector) writeText(w io.Writer) {
	s := &in.summary
	for _, src := range s.Sources {
		packed := ""
		if src.Compression != "" {
			packed = " (" + src.Compression + ")"
		}
		fmt.Fprintf(w, "%s: %s%s, %s bytes, %s records, sha256 %.16s\n", plain(src.Name), src.Format, packed, thousands(src.Bytes), thousands(src.Seen), src.SHA256)
		if src.Incomplete {
			fmt.Fprintf(w, "  INCOMPLETE: breaks off at byte %d of the uncompressed stream: %s\n", src.IncompleteAt, plain(src.Fault))
		}
	}
	fmt.Fprintf(w, "\nRecords   %s =", thousands(s.Messages))
	for i, st := range statuses {
		if i > 0 {
			fmt.Fprint(w, " +")
		}
		fmt.Fprintf(w, " %s %s", thousands(s.Status[st]), st)
	}
	fmt.Fprintln(w)
	writeCounts(w, "Weeks", s.Weeks, s.NoDate, "without a date")
	writeCounts(w, "Labels", s.Labels, s.Unlabelled, "unlabelled")
	if len(s.LabelSources) > 0 {
		writeCounts(w, "  from", s.LabelSources, 0, "")
	}
	writeCounts(w, "Languages", s.Languages, 0, "")
	fmt.Fprintf(w, "Length    %10s", "min")
	for _, p := range percents {
		fmt.Fprintf(w, " %8s", fmt.Sprintf("p%d", p))
	}
	fmt.Fprintf(w, " %9s\n", "max")
	for _, row := range []struct {
		name string
		v    map[string]int
	}{{"chars", s.Characters}, {"words", s.Words}} {
		fmt.Fprintf(w, "  %-8s%10s", row.name, thousands(int64(row.v["min"])))
		for _, p := range percents {
			fmt.Fprintf(w, " %8s", thousands(int64(row.v[fmt.Sprintf("p%d", p)])))
		}
		fmt.Fprintf(w, " %9s\n", thousands(int64(row.v["max"])))
	}
	writeCounts(w, "Warnings", s.Warnings, 0, "")
	writeCounts(w, "Rejects", s.Rejects, 0, "")
	in.writeRejects(w)
}

// writeCounts writes one line of names and numbers, wrapped at 100 columns.
func writeCounts(w io.Writer, title string, list []inspectCount, rest int64, restName string) {
	line := fmt.Sprintf("%-9s", title)
	var items []string
	for i, c := range list {
		if i == 40 {
			items = append(items, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		items = append(items, plain(c.Name)+" "+thousands(c.N))
	}
	if rest > 0 {
		items = append(items, thousands(rest)+" "+restName)
	}
	if len(items) == 0 {
		items = []string{"none"}
	}
	for i, it := range items {
		if utf8.RuneCountInString(line)+len(it) > 98 {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", 9)
		}
		if line += " " + it; i < len(items)-1 {
			line += ","
		}
	}
	fmt.Fprintln(w, line)
}

func (in *inspector) writeRejects(w io.Writer) {
	for _, rec := range in.summary.Rejected {
		fmt.Fprintln(w, rejectLine(&rec))
	}
	if len(in.summary.Rejected) > 0 {
		fmt.Fprintln(w, "\nTo look at one: misroute cut [--member MEMBER] SOURCE OFFSET LENGTH")
	} else if n := in.summary.Status["rejected"]; n > 0 {
		fmt.Fprintln(w, "\nTo see the rejected records: misroute inspect --rejects ...")
	}
}

// rejectLine says in one line which record was rejected and why.
func rejectLine(rec *record) string {
	place := plain(rec.Source)
	if rec.Member != "" {
		place += " member " + plain(rec.Member)
	}
	s := fmt.Sprintf("%s: record %d at byte %d (+%d)", place, rec.RecordNo, rec.ByteOffset, rec.ByteLength)
	if rec.Line > 0 {
		s += fmt.Sprintf(", line %d", rec.Line)
	}
	s += fmt.Sprintf(": %s: %s", rec.Reject.Code, plain(rec.Reject.Detail))
	if rec.Reject.LimitName != "" {
		s += fmt.Sprintf(" (%s %d, limit %d)", rec.Reject.LimitName, rec.Reject.LimitActual, rec.Reject.LimitValue)
	}
	return s
}

// plain makes text from an export safe for a terminal: control characters become "?".
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, s)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// incomplete turns a source that breaks off into the exit code of a partial result.
func (in *inspector) incomplete() error {
	if in.o.allowIncomplete {
		return nil
	}
	for _, src := range in.summary.Sources {
		if src.Incomplete {
			return rejectedError(fmt.Errorf("%s: incomplete: breaks off at byte %d of the uncompressed stream (%s); what comes before was read; --allow-incomplete accepts that", src.Name, src.IncompleteAt, src.Fault))
		}
	}
	return nil
}
