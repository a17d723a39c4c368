package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"misroute/pipeline/mail"
	"misroute/pipeline/object"
	"misroute/pipeline/result"
	"misroute/pipeline/text"
)

// foundMessage is the one message that was asked for.
type foundMessage struct {
	source, member string
	recordNo       int64
	id             mail.Identity
	text           text.Text
	row            *result.Row // of the run, nil without one
	warnings       []string
}

// looksLikeFile says whether an argument names something that can be read.
func looksLikeFile(arg string) bool {
	if object.IsAddress(arg) {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil || arg == "-"
}

// wanted is a message as somebody names it.
type wanted struct {
	asked  string // as typed
	id     string // without brackets
	record int64  // 0: by id
}

func parseWanted(s string) wanted {
	w := wanted{asked: s, id: bareID(s)}
	if digits, ok := strings.CutPrefix(s, "#"); ok {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n > 0 {
			w.record = n
		}
	}
	return w
}

func bareID(s string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(s), "<"), ">")
}

// match says how a message fits: not, as one of several that begin so, or exactly.
type match int

const (
	noMatch match = iota
	prefixMatch
	exactMatch
)

func (w *wanted) match(id string, record int64) match {
	id = bareID(id)
	switch {
	case w.record > 0:
		if record == w.record {
			return exactMatch
		}
	case id == w.id:
		return exactMatch
	case w.id != "" && strings.HasPrefix(id, w.id):
		return prefixMatch
	}
	return noMatch
}

// candidate is a message that may be the wanted one.
type candidate struct {
	id    string
	place result.Place
	at    int // index in the caller's list
}

// chooser collects candidates and what else there is, for suggestions.
type chooser struct {
	w      wanted
	exact  []candidate
	prefix []candidate
	ids    []string
}

// most ids that a suggestion is looked for among, and candidates that are kept.
const (
	mostSuggested  = 50000
	mostCandidates = 20
)

// add returns whether the message is a candidate.
func (c *chooser) add(x candidate) bool {
	switch c.w.match(x.id, x.place.RecordNo) {
	case exactMatch:
		if len(c.exact) < mostCandidates {
			c.exact = append(c.exact, x)
			return true
		}
	case prefixMatch:
		if len(c.prefix) < mostCandidates {
			c.prefix = append(c.prefix, x)
			return true
		}
	default:
		if len(c.ids) < mostSuggested && x.id != "" {
			c.ids = append(c.ids, bareID(x.id))
		}
	}
	return false
}

// choose gives the one that is meant, or says why there is none. The same id twice is a copy: the
// first is meant.
func (c *chooser) choose(where string) (candidate, error) {
	list := c.exact
	if len(list) == 0 {
		list = c.prefix
	}
	same := true
	for _, x := range list[min(1, len(list)):] {
		same = same && x.id == list[0].id
	}
	switch {
	case len(list) == 0:
		return candidate{}, usagef("%s: no message %s%s", where, plain(c.w.asked), c.near())
	case c.w.record > 0 && len(list) > 1:
		return candidate{}, usagef("%s: record %d is in %d sources; name the message by its id: %s", where, c.w.record, len(list), names(list))
	case !same:
		return candidate{}, usagef("%s: %d messages begin with %s: %s", where, len(list), plain(c.w.asked), names(list))
	}
	return list[0], nil
}

func names(list []candidate) string {
	var s []string
	for _, x := range list[:min(4, len(list))] {
		s = append(s, plain(bareID(x.id)))
	}
	if len(list) > 4 {
		s = append(s, "...")
	}
	return strings.Join(s, ", ")
}

// near suggests ids that hold what was typed, or differ in a few letters.
func (c *chooser) near() string {
	if c.w.record > 0 {
		return fmt.Sprintf("; %d messages were seen", len(c.ids))
	}
	type scored struct {
		id       string
		distance int
	}
	var list []scored
	limit := max(2, len(c.w.id)/3)
	for _, id := range c.ids {
		switch {
		case len(c.w.id) >= 4 && strings.Contains(strings.ToLower(id), strings.ToLower(c.w.id)):
			list = append(list, scored{id, 0})
		case max(len(id)-len(c.w.id), len(c.w.id)-len(id)) <= limit:
			if d := editDistance(c.w.id, id); d <= limit {
				list = append(list, scored{id, d})
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].distance < list[j].distance })
	var s []string
	for _, x := range list[:min(3, len(list))] {
		s = append(s, plain(x.id))
	}
	if len(s) == 0 {
		return "; misroute inspect --jsonl lists the ids of an export, #123 names a record by number"
	}
	return "; did you mean " + strings.Join(s, ", or ") + "?"
}

// find looks the message up in the run, where there is one, and reads it from the export.
func (o *explainOptions) find(ctx context.Context) (*foundMessage, error) {
	w := parseWanted(o.id)
	if o.run == nil {
		return o.findInExport(ctx, w, nil)
	}
	row, err := o.findRow(w)
	if err != nil {
		return nil, err
	}
	if len(o.exports) > 0 {
		return o.findInExport(ctx, w, row)
	}
	if row.Text == "" && row.Subject == "" {
		return nil, usagef("%s holds no text (it was not made with --with-text): name its export after the message id, such as %s", o.run.Dir, row.Source)
	}
	m := &foundMessage{source: row.Source, member: row.Member, recordNo: row.RecordNo, row: row}
	m.id = mail.Identity{MessageID: row.MessageID, Label: row.Label, LabelSource: row.LabelSource, Routed: row.Routed, Subject: row.Subject}
	if row.Date != nil {
		m.id.Date, m.id.HasDate = *row.Date, true
	}
	m.text = text.Text{Subject: row.Subject, Body: row.Text, Language: row.Language}
	m.warnings = append(m.warnings, "The text is the run's own copy; quoted parts and signature are not told apart in it.")
	return m, nil
}

// findRow looks the message up among the run's rows; rejected and uncounted ones say what they are.
func (o *explainOptions) findRow(w wanted) (*result.Row, error) {
	c := chooser{w: w}
	f := o.run
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Scored() {
			c.add(candidate{r.MessageID, r.Place(), i})
		}
	}
	x, err := c.choose(f.Dir)
	if err == nil {
		return &f.Rows[x.at], nil
	}
	for i := range f.Rows {
		if r := &f.Rows[i]; !r.Scored() && w.match(r.MessageID, r.RecordNo) == exactMatch {
			return nil, usagef("%s: %s was not scored: it is a %s record", f.Dir, plain(w.asked), r.Status)
		}
	}
	for i := range f.Rejects {
		if r := &f.Rejects[i]; w.match(r.MessageID, r.RecordNo) == exactMatch {
			return nil, usagef("%s: %s was rejected: %s: %s", f.Dir, plain(w.asked), r.Code, plain(r.Detail))
		}
	}
	return nil, err
}

// findInExport reads the exports once and keeps the messages that may be meant. With a row, the place
// in the export decides.
func (o *explainOptions) findInExport(ctx context.Context, w wanted, row *result.Row) (*foundMessage, error) {
	r, err := openExports(ctx, &o.exports, o.eval.Mail)
	if err != nil {
		return nil, usageError(err)
	}
	defer r.Close()
	c := chooser{w: w}
	if row != nil {
		c.w = wanted{asked: row.MessageID, id: bareID(row.MessageID)}
	}
	var kept []*mail.Message
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, usageError(err)
		}
		place := result.Place{Source: m.Source, Member: m.Member, RecordNo: m.RecordNo}
		if row != nil && place == row.Place() {
			return o.extract(m, row)
		}
		id := ""
		if m.Reject == nil {
			id = o.eval.Mail.Labels.Identify(m).MessageID
		}
		if c.add(candidate{id, place, len(kept)}) {
			kept = append(kept, m)
		}
	}
	where := strings.Join(o.exports, ", ")
	if row != nil {
		return nil, usagef("%s: record %d of %s is not in it: is this the export of the run?", where, row.RecordNo, plain(row.Source))
	}
	x, err := c.choose(where)
	if err != nil {
		return nil, err
	}
	return o.extract(kept[x.at], nil)
}

// extract reads the message as eval does, and checks it against the run's row.
func (o *explainOptions) extract(m *mail.Message, row *result.Row) (*foundMessage, error) {
	f := &foundMessage{source: m.Source, member: m.Member, recordNo: m.RecordNo, row: row}
	refuse := func(r *mail.Reject) error {
		return usagef("%s: record %d is rejected: %s: %s", plain(m.Source), m.RecordNo, r.Code, plain(r.Detail))
	}
	if m.Reject != nil {
		return nil, refuse(m.Reject)
	}
	f.id = o.eval.Mail.Labels.Identify(m)
	t, reject := text.NewExtractor(o.eval.Text).Extract(m, &f.id)
	if reject != nil {
		return nil, refuse(reject)
	}
	f.text = t
	if row != nil && row.ContentSHA256 != t.ContentSHA256 {
		return nil, usagef("%s: record %d is not the message that the run read (its content differs): is this the export of the run?", plain(m.Source), m.RecordNo)
	}
	if row != nil { // the run's labels, whatever flags it had them from
		f.id.Label, f.id.Routed = row.Label, row.Routed
	}
	return f, nil
}
