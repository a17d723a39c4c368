package mail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A LabelList maps message ids to queues.
type LabelList struct {
	Path   string
	queues map[string]string
	ids    []string // the first few, as written, for error messages
}

// Len is the number of ids.
func (l *LabelList) Len() int {
	if l == nil {
		return 0
	}
	return len(l.queues)
}

// Lookup returns the queue of a message id, with or without angle brackets; empty if unknown.
func (l *LabelList) Lookup(id string) string {
	if l == nil || id == "" {
		return ""
	}
	return l.queues[bareID(id)]
}

// LoadLabels reads a labels file: CSV with a header line, a column of message ids (message_id, id,
// ticket_id, or the first) and one of queues (queue, label, class, group, or the second). The same
// id twice with two queues is an error.
func LoadLabels(path string) (*LabelList, error) {
	rows, err := readTable(path)
	if err != nil {
		return nil, fmt.Errorf("labels file %s: %w", path, err)
	}
	if len(rows) < 2 || len(rows[0]) < 2 {
		return nil, fmt.Errorf("labels file %s: needs a header line and rows of message id and queue", path)
	}
	idCol, queueCol := columnOf(rows[0], []string{"message_id", "message-id", "messageid", "id", "ticket_id"}), columnOf(rows[0], []string{"queue", "label", "class", "group", "category"})
	if idCol < 0 {
		idCol = 0
	}
	if queueCol < 0 {
		if queueCol = 1; idCol == 1 {
			queueCol = 0
		}
	}
	l := &LabelList{Path: path, queues: make(map[string]string, len(rows))}
	for i, row := range rows[1:] {
		if len(row) <= max(idCol, queueCol) {
			return nil, fmt.Errorf("labels file %s: row %d has %d fields, needs %d", path, i+2, len(row), max(idCol, queueCol)+1)
		}
		id, queue := bareID(row[idCol]), strings.TrimSpace(row[queueCol])
		if id == "" || queue == "" {
			continue
		}
		if old, ok := l.queues[id]; ok && old != queue {
			return nil, fmt.Errorf("labels file %s: row %d gives message id %s the queue %q, an earlier row %q", path, i+2, id, queue, old)
		}
		l.queues[id] = queue
		if len(l.ids) < 3 {
			l.ids = append(l.ids, row[idCol])
		}
	}
	return l, nil
}

// ErrLabelsDoNotMatch says that a labels file belongs to another export.
var ErrLabelsDoNotMatch = errors.New("labels do not match the export")

// Check fails when the file's ids matched fewer than half of the messages: such a file belongs to
// another export, and every number made with it would mislead. examples are message ids that found
// no label.
func (l *LabelList) Check(matched, total int64, examples ...string) error {
	if l == nil || total == 0 || matched*2 >= total {
		return nil
	}
	if len(examples) > 3 {
		examples = examples[:3]
	}
	return fmt.Errorf("%w: %s names %d of %d messages; the export has ids like %s, the file ids like %s",
		ErrLabelsDoNotMatch, l.Path, matched, total, list(examples), list(l.ids))
}

// Check asks the labels file, if there is one; see [LabelList.Check].
func (o *Labels) Check(matched, total int64, examples ...string) error {
	return o.File.Check(matched, total, examples...)
}

func list(ids []string) string {
	if len(ids) == 0 {
		return "(none)"
	}
	return strings.Join(ids, ", ")
}

// LoadGroups reads the names of help-desk groups by id: CSV with id and name columns, a JSON array
// of objects, {"groups": [...]}, or one JSON object of id to name.
func LoadGroups(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	groups := make(map[string]string)
	if t := bytes.TrimSpace(data); len(t) > 0 && (t[0] == '{' || t[0] == '[') {
		if err := groupsFromJSON(t, groups); err != nil {
			return nil, fmt.Errorf("groups file %s: %w", path, err)
		}
	} else {
		rows, err := readTable(path)
		if err != nil {
			return nil, fmt.Errorf("groups file %s: %w", path, err)
		}
		if len(rows) == 0 || len(rows[0]) < 2 {
			return nil, fmt.Errorf("groups file %s: needs a header line and rows of id and name", path)
		}
		idCol, nameCol := max(0, columnOf(rows[0], []string{"id", "group_id"})), columnOf(rows[0], []string{"name", "group", "queue"})
		if nameCol < 0 {
			nameCol = 1
		}
		for _, row := range rows[1:] {
			if len(row) > max(idCol, nameCol) {
				groups[strings.TrimSpace(row[idCol])] = strings.TrimSpace(row[nameCol])
			}
		}
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("groups file %s: no group found; needs id and name", path)
	}
	return groups, nil
}

func groupsFromJSON(data []byte, into map[string]string) error {
	var doc any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return err
	}
	if obj, ok := doc.(map[string]any); ok {
		if inner, ok := obj["groups"]; ok {
			doc = inner
		} else {
			for id, name := range obj {
				if s, ok := name.(string); ok {
					into[id] = s
				}
			}
			return nil
		}
	}
	items, _ := doc.([]any)
	for _, it := range items {
		if g, ok := it.(map[string]any); ok {
			into[scalar(g["id"])] = scalar(g["name"])
		}
	}
	return nil
}

// readTable reads a small CSV file whole.
func readTable(path string) ([][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limits := DefaultLimits()
	r, _, err := unpack(f, filepath.Base(path), &limits)
	if err != nil {
		return nil, err
	}
	s := newStream(r)
	t, err := newCSVTable(s, &limits)
	if err != nil {
		return nil, err
	}
	rows := [][]string{t.header}
	for {
		rec, err := t.next()
		if err == io.EOF {
			return rows, s.fault()
		}
		if err != nil {
			return nil, err
		}
		if rec.reject != nil {
			return nil, fmt.Errorf("line %d: %s", rec.line, rec.reject.Detail)
		}
		rows = append(rows, rec.fields)
	}
}

// columnOf is the index of the first of names in header; -1 when none is there. Case, spaces, "-"
// and "_" do not count.
func columnOf(header, names []string) int {
	for _, n := range names {
		for i, h := range header {
			if plainName(h) == plainName(n) {
				return i
			}
		}
	}
	return -1
}

func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}
