package mail

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Dates of real headers, with the instant they mean (RFC 5322 section 4.3 for the obsolete forms).
func TestDates(t *testing.T) {
	for in, want := range map[string]string{
		"Mon, 2 Mar 2026 10:00:00 +0100":             "2026-03-02T09:00:00Z",
		"2 Mar 2026 10:00 -0500":                     "2026-03-02T15:00:00Z",
		"Mon, 2 Mar 2026 10:00:00 +0200 (GMT+02:00)": "2026-03-02T08:00:00Z",
		"Mon, 02 Mar 2026 10:00:00 GMT":              "2026-03-02T10:00:00Z",
		"Mon, 2 Mar 2026 10:00:00 EST":               "2026-03-02T15:00:00Z",
		"Mon Mar  2 10:00:00 2026":                   "2026-03-02T10:00:00Z",
		"Mon Mar  2 10:00:00 +0100 2026":             "2026-03-02T09:00:00Z",
		"Monday, 02-Mar-26 10:00:00 GMT":             "2026-03-02T10:00:00Z",
		"16 Apr 93 19:33:24 GMT":                     "1993-04-16T19:33:24Z",
		"2026-03-02T10:00:00Z":                       "2026-03-02T10:00:00Z",
		"2026-03-02T10:00:00.123+01:00":              "2026-03-02T09:00:00Z",
		"2026-03-02 10:00:00":                        "2026-03-02T10:00:00Z",
		"2026-03-02":                                 "2026-03-02T00:00:00Z",
		"2026/03/02 10:00":                           "2026-03-02T10:00:00Z",
		"Sat, 1 Mar 100 10:00:00 GMT":                "2000-03-01T10:00:00Z",
		"Mon, 2 Mar 2026 10:00:00 -1900":             "2026-03-02T10:00:00Z", // no such zone
		"Thu, 1 Jan 1970 00:00:00 +0000":             "",
		"not a date":                                 "",
		"":                                           "",
		"Mon, 32 Mar 2026 10:00:00 +0000":            "",
		"Mon, 2 Mar 2026 25:00:00 +0000":             "",
		"2026-13-40":                                 "",
	} {
		got := ""
		if d, _, ok := parseDate(in, nil); ok {
			got = d.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	berlin := time.FixedZone("", 3600)
	if d, zoned, ok := parseDate("Mon, 2 Mar 2026 10:00:00", berlin); !ok || zoned || d.Hour() != 9 {
		t.Errorf("without zone: %v %v %v", d, zoned, ok)
	}
}

func identify(o Labels, raw string) Identity {
	return o.Identify(&Message{Raw: []byte(raw), Folder: "folder-queue"})
}

// Labels by source, in their order and as asked.
func TestLabels(t *testing.T) {
	file := &LabelList{queues: map[string]string{"1@example.com": "from-file"}}
	raw := "Message-ID: <1@example.com>\nX-Queue: from-header\nX-Team: team\nX-Gmail-Labels: Inbox,\n =?utf-8?Q?Refunds=2C_late?=,Unread\nX-Router: router\n\nx\n"
	for _, c := range []struct {
		name               string
		o                  Labels
		raw, label, source string
	}{
		{"file first", Labels{File: file}, raw, "from-file", LabelFile},
		{"header", Labels{}, raw, "from-header", LabelHeader},
		{"another header", Labels{Header: "x-team"}, raw, "team", LabelHeader},
		{"Gmail", Labels{From: []string{LabelGmail}}, raw, "Refunds", LabelGmail},
		{"Gmail, quoted comma", Labels{}, "X-Gmail-Labels: Important,\"Refunds, late\",Opened\n\nx\n", "Refunds, late", LabelGmail},
		{"Gmail, only its own labels", Labels{From: []string{LabelGmail}}, "X-Gmail-Labels: Inbox,Category Promotions,Unread\n\nx\n", "", ""},
		{"Gmail, German", Labels{From: []string{LabelGmail}}, "X-Gmail-Labels: =?UTF-8?Q?Posteingang,Ge=C3=B6ffnet,Erstattung?=\n\nx\n", "Erstattung", LabelGmail},
		{"folder last", Labels{}, "Subject: s\n\nx\n", "folder-queue", LabelFolder},
		{"only what was asked", Labels{From: []string{LabelFile}}, raw, "", ""},
	} {
		id := identify(c.o, c.raw)
		if id.Label != c.label || id.LabelSource != c.source {
			t.Errorf("%s: %q from %q, want %q from %q", c.name, id.Label, id.LabelSource, c.label, c.source)
		}
	}
	if id := identify(Labels{RoutedHeader: "X-Router"}, raw); id.Routed != "router" {
		t.Errorf("routed %q", id.Routed)
	}
	if id := identify(Labels{}, "X-Gmail-Labels: Refunds,Late\n\nx\n"); id.Label != "Refunds" || !slices.Contains(id.Warnings, CodeSeveralLabels) {
		t.Errorf("two labels: %+v", id)
	}
}

// Threads hang on their root; a message that starts one has its own id as key.
func TestThreads(t *testing.T) {
	for raw, want := range map[string]string{
		"Message-ID: <3@x>\nReferences: <1@x>\n <2@x>\nIn-Reply-To: <2@x>\n\n": "1@x",
		"Message-ID: <3@x>\nIn-Reply-To: Your message <2@x>\n\n":               "2@x",
		"Message-ID: <3@x>\n\n": "3@x",
		"Subject: s\n\n":        "",
	} {
		if got := identify(Labels{}, raw).ThreadKey; got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// Where no Date field helps: the mbox line, then the first Received field, never now.
func TestFallbackDate(t *testing.T) {
	var o Labels
	m := &Message{Raw: []byte("Received: from a by b; Tue, 3 Mar 2026 10:00:00 +0000\nDate: soon\n\n"), FromLine: "From a@b Mon Mar  2 10:00:00 2026"}
	if id := o.Identify(m); id.Date.Day() != 2 || !slices.Contains(id.Warnings, CodeDateGuessed) {
		t.Errorf("mbox line: %+v", id)
	}
	m.FromLine = "From - "
	if id := o.Identify(m); id.Date.Day() != 3 || !slices.Contains(id.Warnings, CodeDateGuessed) {
		t.Errorf("Received: %+v", id)
	}
	if id := identify(o, "Subject: s\n\n"); id.HasDate || !id.Date.IsZero() || !slices.Contains(id.Warnings, CodeNoDate) || !slices.Contains(id.Warnings, CodeNoMessageID) {
		t.Errorf("nothing: %+v", id)
	}
}

func TestLabelFiles(t *testing.T) {
	l, err := LoadLabels(write(t, "l.csv", []byte("queue;message_id\nrefunds;<1@x>\nlate;2@x\nodd;\"<4@x and\n more> (added by y)\"\nodd;PM 5\n")))
	if err != nil || l.Len() != 4 || l.Lookup("<4@x and more>") != "odd" || l.Lookup("PM 5") != "odd" || l.Lookup("<2@x>") != "late" || l.Lookup("1@x") != "refunds" || l.Lookup("<3@x>") != "" {
		t.Errorf("%v %+v", err, l)
	}
	err = l.Check(1, 10, "<7@x>", "<8@x>", "<9@x>", "<10@x>")
	for _, want := range []string{"1 of 10", "<7@x>", "<9@x>", "<1@x>", "2@x"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not show %s", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "<10@x>") {
		t.Error("more than three examples")
	}
	if l.Check(5, 10) != nil || l.Check(0, 0) != nil || (*LabelList)(nil).Check(0, 9) != nil {
		t.Error("half is enough")
	}
	if _, err := LoadLabels(write(t, "l.csv", []byte("message_id,queue\n1,a\n1,b\n"))); err == nil {
		t.Error("one id with two queues")
	}
	if _, err := LoadLabels("/nowhere.csv"); err == nil {
		t.Error("missing file")
	}
	for name, data := range map[string]string{"g.json": `{"groups":[{"id":7,"name":"Refunds"}]}`, "h.json": `[{"id":7,"name":"Refunds"}]`, "i.json": `{"7":"Refunds"}`, "g.csv": "id,name\n7,Refunds\n"} {
		g, err := LoadGroups(write(t, name, []byte(data)))
		if err != nil || g["7"] != "Refunds" {
			t.Errorf("%s: %v %v", name, g, err)
		}
	}
}

// README.md has exactly the codes of the code list, in its order and words.
func TestCodesDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("| Code | Kind | Stage | Meaning |\n|---|---|---|---|\n")
	seen := make(map[Code]bool)
	for _, c := range Codes() {
		if seen[c.Code] || c.Stage == "" || c.Meaning == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Code] = true
		b.WriteString("| `" + string(c.Code) + "` | " + c.Kind + " | " + c.Stage + " | " + c.Meaning + " |\n")
	}
	doc, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), b.String()) {
		got := filepath.Join(t.TempDir(), "codes.md")
		_ = os.WriteFile(got, []byte(b.String()), 0o600)
		t.Errorf("README.md does not have this table:\n%s", b.String())
	}
}
