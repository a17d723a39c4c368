package mail

import (
	"encoding/json"
	"fmt"
	"strings"
)

// roles are what a column can be, with the names it goes by when nobody says.
var roleNames = map[string][]string{
	"id":      {"message_id", "ticket_id", "id", "case_number", "case_id", "ticket_number", "number", "uid"},
	"subject": {"subject", "raw_subject", "title", "summary"},
	"body":    {"body", "text", "description", "description_text", "plain_body", "body_text", "body_plain", "message", "content", "comment", "question"},
	"html":    {"html_body", "body_html", "description_html", "html"},
	"date":    {"date", "created_at", "created", "creation_date", "sent_at", "received_at", "timestamp", "time"},
	"label":   {"queue", "label", "group", "group_name", "category", "class", "team", "assigned_group", "department"},
	"routed":  nil,
	"thread":  {"thread_id", "conversation_id", "thread"},
	"status":  nil,
}

// presets are the exports of help desks by their documented field names.
var presets = map[string]map[string][]string{
	"zendesk": {
		"id": {"id", "ticket_id", "Ticket ID"}, "subject": {"subject", "raw_subject"}, "body": {"description"},
		"date": {"created_at"}, "label": {"group_id", "group", "Group"}, "status": {"status"},
	},
	"freshdesk": {
		"id": {"id", "display_id", "Ticket ID"}, "subject": {"subject"}, "body": {"description_text"}, "html": {"description"},
		"date": {"created_at", "Created time"}, "label": {"group_id", "group", "type"}, "status": {"deleted"},
	},
	"takeout": {},
}

// Roles are the names that --map knows.
func Roles() []string {
	return []string{"id", "subject", "body", "html", "date", "label", "routed", "thread"}
}

// columnMap knows which fields of a record hold what.
type columnMap struct {
	preset   string
	names    map[string][]string
	explicit map[string]bool
	groups   map[string]string
}

func newColumnMap(o *Options) *columnMap {
	m := &columnMap{preset: o.Preset, names: make(map[string][]string), explicit: make(map[string]bool), groups: o.Groups}
	for role, names := range roleNames {
		m.names[role] = names
	}
	for role, names := range presets[o.Preset] {
		m.names[role] = names
	}
	for role, name := range o.Map {
		m.names[role] = []string{name}
		m.explicit[role] = true
	}
	return m
}

// Check says whether the options name only what exists.
func (o *Options) Check() error {
	if _, ok := presets[o.Preset]; !ok && o.Preset != "" {
		return fmt.Errorf("preset %q is not one of zendesk, freshdesk, takeout", o.Preset)
	}
	for role := range o.Map {
		if _, ok := roleNames[role]; !ok || role == "status" {
			return fmt.Errorf("map: %q is not one of %s", role, strings.Join(Roles(), ", "))
		}
	}
	for _, f := range o.Labels.From {
		switch f {
		case LabelFile, LabelHeader, LabelGmail, LabelColumn, LabelFolder:
		default:
			return fmt.Errorf("label source %q is not one of file, header, gmail, column, folder", f)
		}
	}
	switch o.Format {
	case FormatAuto, FormatMbox, FormatMboxo, FormatMboxrd, FormatMboxcl, FormatMaildir, FormatFolder, FormatEML, FormatCSV, FormatJSONL, FormatJSON, FormatZip, FormatTar:
		return nil
	}
	return fmt.Errorf("format %q is not one of mbox, mboxo, mboxrd, mboxcl, maildir, folder, eml, csv, jsonl, json, zip, tar", o.Format)
}

// bind finds the columns of a table. A column that was asked for must be there, and so must one
// that can hold the text.
func (m *columnMap) bind(header []string) (map[string]int, error) {
	at := make(map[string]int)
	for role, names := range m.names {
		if i := columnOf(header, names); i >= 0 {
			at[role] = i
		} else if m.explicit[role] {
			return nil, fmt.Errorf("no column %q (for %s); the columns are %s", names[0], role, columnList(header))
		}
	}
	_, body := at["body"]
	_, html := at["html"]
	if !body && !html {
		return nil, fmt.Errorf("no column that holds the text; the columns are %s; name it with --map body=COLUMN", columnList(header))
	}
	return at, nil
}

func columnList(header []string) string {
	if len(header) > 12 {
		return strings.Join(header[:12], ", ") + fmt.Sprintf(" and %d more", len(header)-12)
	}
	return strings.Join(header, ", ")
}

func (m *columnMap) fromRow(msg *Message, row []string, at map[string]int) {
	get := func(role string) string {
		if i, ok := at[role]; ok {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	msg.Columns = &Columns{ID: get("id"), Subject: get("subject"), Text: get("body"), HTML: get("html"), Date: get("date"),
		Label: m.group(get("label")), Routed: get("routed"), Thread: get("thread"), HasText: true}
	m.filter(msg, get("status"))
}

// group turns a help-desk group id into its name where --groups knows it.
func (m *columnMap) group(label string) string {
	if name, ok := m.groups[label]; ok {
		return name
	}
	return label
}

func (m *columnMap) filter(msg *Message, status string) {
	switch strings.ToLower(status) {
	case "deleted":
		msg.Filtered = CodeDeleted
	case "true":
		if m.preset == "freshdesk" {
			msg.Filtered = CodeDeleted
		}
	}
}

// fromObject fills the message from a JSON object.
func (m *columnMap) fromObject(msg *Message, obj map[string]any) {
	get := func(role string) string {
		s, _ := m.lookup(obj, role)
		return s
	}
	text, hasText := m.lookup(obj, "body")
	html, hasHTML := m.lookup(obj, "html")
	c := &Columns{ID: get("id"), Subject: get("subject"), Text: text, HTML: html, Date: get("date"),
		Label: m.group(get("label")), Routed: get("routed"), Thread: get("thread"), HasText: hasText || hasHTML}
	msg.Columns = c
	m.filter(msg, get("status"))
	if strings.TrimSpace(c.Text) == "" && strings.TrimSpace(c.HTML) == "" && !m.explicit["body"] {
		m.fromComments(msg, obj)
	}
	if !c.HasText && c.Subject == "" && msg.Filtered == "" {
		msg.Reject = NewReject(CodeNoBody, "none of the fields "+strings.Join(append(append([]string(nil), m.names["body"]...), m.names["html"]...), ", "))
	}
}

// lookup returns the first of the role's fields that has text; ok says that one of them exists.
func (m *columnMap) lookup(obj map[string]any, role string) (s string, ok bool) {
	for _, name := range m.names[role] {
		v, found := field(obj, name)
		if !found {
			continue
		}
		ok = true
		if s = strings.TrimSpace(scalar(v)); s != "" {
			return s, true
		}
	}
	return "", ok
}

// fromComments takes the text from the first public comment that a person wrote.
func (m *columnMap) fromComments(msg *Message, obj map[string]any) {
	comments, _ := obj["comments"].([]any)
	passed := false
	for _, it := range comments {
		c, ok := it.(map[string]any)
		if !ok {
			continue
		}
		if public, ok := c["public"].(bool); ok && !public || systemWrote(c) {
			passed = true
			continue
		}
		msg.Columns.HasText = true
		for _, name := range [...]string{"plain_body", "body", "body_text"} {
			if s := strings.TrimSpace(scalar(c[name])); s != "" {
				msg.Columns.Text = s
				break
			}
		}
		if msg.Columns.Text == "" {
			msg.Columns.HTML = scalar(c["html_body"])
		}
		break
	}
	if !passed {
		return
	}
	if msg.Columns.Text == "" && msg.Columns.HTML == "" {
		msg.Filtered = CodeSystem
		return
	}
	msg.Warnings = append(msg.Warnings, CodeSystemComment)
}

// systemWrote says whether a comment came from the help desk itself: author -1, or a rule.
func systemWrote(c map[string]any) bool {
	if scalar(c["author_id"]) == "-1" {
		return true
	}
	v, _ := field(c, "via.channel")
	switch scalar(v) {
	case "system", "rule":
		return true
	}
	return false
}

// field looks a name up as it stands, without regard to case and separators, and, where it has
// dots, as a path.
func field(obj map[string]any, name string) (any, bool) {
	if v, ok := obj[name]; ok {
		return v, true
	}
	if head, rest, ok := strings.Cut(name, "."); ok {
		if inner, ok := obj[head].(map[string]any); ok {
			return field(inner, rest)
		}
	}
	for k, v := range obj {
		if len(k) < 64 && plainName(k) == plainName(name) {
			return v, true
		}
	}
	return nil, false
}

// scalar is the text of a JSON value; lists of scalars are joined, anything else is empty.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	case map[string]any:
		for _, k := range [...]string{"name", "value", "id"} {
			if s, ok := v[k].(string); ok {
				return s
			}
		}
	case []any:
		parts := make([]string, 0, len(v))
		for _, e := range v {
			if s := scalar(e); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "\n")
	}
	return ""
}
