package mail

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

const head = "From: a@example.com\nSubject: s\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\n"

// Splitting cases that people reported, with the number of messages that were sent.
var splits = []struct {
	name    string
	raw     string
	want    int
	suspect int // records with suspect_split
}{
	{"plain", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "hi\n\nFrom b@example.com Mon Mar  2 11:00:00 2026\n" + head + "yo\n", 2, 0},
	{"crlf", strings.ReplaceAll("From a@example.com Mon Mar  2 10:00:00 2026\n"+head+"hi\n\nFrom b@example.com Mon Mar  2 11:00:00 2026\n"+head+"yo\n", "\n", "\r\n"), 2, 0},
	{"From in a body after a blank line", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "Hello\n\nFrom my (non-technical) end, nothing arrived.\n", 1, 1},
	{"From in a body with a colon below", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "Hello\n\nFrom what I see:\nOrder: 55\n", 1, 1},
	{"a film", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "see below\n\nFrom Russia with love\nYear: 1963\n", 1, 1},
	{"a pasted mailbox without transport fields", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "Log:\nFrom root@host Mon Mar  2 10:00:00 2026\nFrom: cron\nSubject: inner\n\ninner body\n", 1, 1},
	{"no blank line before", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "hi\nFrom b@example.com Mon Mar  2 11:00:00 2026\n" + head + "yo\n", 2, 0},
	{"zone before year", "From 1545668983435175434@xxx Fri Sep 16 22:26:51 +0000 2016\n" + head + "hi\n\nFrom 1844347792267117879@xxx Fri Sep 16 22:26:51 +0000 2016\n" + head + "yo\n", 2, 0},
	{"Takeout without a date", "From 1545668983435175434@xxx\n" + head + "hi\n\nFrom 1844347792267117879@xxx\n" + head + "yo\n", 2, 2},
	{"Thunderbird", "From - Thu Feb  8 18:49:08 1996\n" + head + "hi\n\nFrom - \n" + head + "yo\n", 2, 1},
	{"Thunderbird without blank lines", "From - Thu Feb  8 18:49:08 1996\n" + head + "hi\nFrom - Thu Feb  8 18:49:08 1996\n" + head + "yo\n", 2, 0},
	{"no sender", "From  Mon Mar  2 10:00:00 2026\n" + head + "hi\n\nFrom MAILER-DAEMON Mon Mar  2 10:00:00 2026\n" + head + "yo\n", 2, 0},
	{"a second, escaped From line", "From a@example.com Mon Mar  2 10:00:00 2026\n>From - Sat Apr 12 2025 15:59:28\n" + head + "hi\n\nFrom a@example.com Mon Mar  2 10:00:00 2026\n" + head + "yo\n", 2, 0},
	{"escaped From lines in the body", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + ">From the start\n>>From older\n", 1, 0},
	{"mark and blank lines first", "\xef\xbb\xbf\n\nFrom - Thu Feb  8 18:49:08 1996\n" + head + "hi\n", 1, 0},
	{"seconds missing", "From a@example.com Mon Mar  2 10:00 2026\n" + head + "hi\n\nFrom a@example.com Mon Mar  2 10:00 2026\n" + head + "yo\n", 2, 0},
	{"no line end at the end", "From a@example.com Mon Mar  2 10:00:00 2026\n" + head + "hi\n\nFrom a@example.com Mon Mar  2 10:00:00 2026\n" + head + "yo", 2, 0},
	{"mboxcl: the length names the end", "From a@example.com Mon Mar  2 10:00:00 2026\nContent-Length: 106\n" + head + "one\n\nFrom b@example.com Mon Mar  2 11:00:00 2026\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\nquoted whole mail\n\nFrom c@example.com Mon Mar  2 11:00:00 2026\n" + head + "yo\n", 2, 0},
	{"mboxcl: a wrong length is not believed", "From a@example.com Mon Mar  2 10:00:00 2026\nContent-Length: 77\n" + head + "one\n\nFrom b@example.com Mon Mar  2 11:00:00 2026\n" + head + "two\n\nFrom c@example.com Mon Mar  2 11:00:00 2026\n" + head + "yo\n", 3, 0},
}

func TestSplit(t *testing.T) {
	for _, c := range splits {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "a.mbox", []byte(c.raw))
			ms, src := must(t, path, Options{})
			suspect := 0
			for _, m := range ms {
				if slices.Contains(m.Warnings, CodeSuspectSplit) {
					suspect++
				}
				if m.Reject != nil {
					t.Errorf("rejected: %+v", m.Reject)
				}
			}
			if len(ms) != c.want || suspect != c.suspect {
				t.Errorf("%d messages, %d suspect; want %d and %d", len(ms), suspect, c.want, c.suspect)
			}
			covers(t, ms, int64(len(c.raw)))
			if src[0].Format != FormatMbox || src[0].Bytes != int64(len(c.raw)) {
				t.Errorf("source %+v", src[0])
			}
		})
	}
}

// covers asserts that records and separators cover size bytes without gap or overlap.
func covers(t testing.TB, ms []*Message, size int64) {
	t.Helper()
	at := int64(0)
	for _, m := range ms {
		if m.Offset-m.Separator != at {
			t.Fatalf("record %d: separator of %d bytes before %d, the record before ended at %d", m.RecordNo, m.Separator, m.Offset, at)
		}
		at = m.Offset + m.Length
	}
	if at != size {
		t.Fatalf("records end at %d of %d bytes", at, size)
	}
}

func TestSplitShared(t *testing.T) {
	f, err := os.Open(shared(t, "zoo/mbox-cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c struct {
			Name string
			Want int    `json:"want_messages"`
			Raw  []byte `json:"raw_base64"`
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		ms, _ := must(t, write(t, "a.mbox", c.Raw), Options{})
		if len(ms) != c.Want {
			t.Errorf("%s: %d messages, want %d", c.Name, len(ms), c.Want)
		}
		covers(t, ms, int64(len(c.Raw)))
	}
	// What upstream means: two messages where a parser that splits at every From line finds four;
	// the numbers of the other two are counted by hand.
	for name, want := range map[string]int{"38-MimeKit-unmunged-mbox.mbox": 2, "39-MimeKit-issue1189-mbox.mbox": 4, "40-MimeKit-simple-mbox.mbox": 3} {
		if ms, _ := must(t, shared(t, "zoo/hardmail/"+name), Options{}); len(ms) != want {
			t.Errorf("%s: %d messages, want %d", name, len(ms), want)
		}
	}
}

func TestEscapedFrom(t *testing.T) {
	raw := []byte("From a@example.com Mon Mar  2 10:00:00 2026\n" + head + ">From the start\n>>From older\nx >From inside\n")
	for format, want := range map[Format]string{
		FormatAuto:  "From the start\n>From older\nx >From inside\n",
		FormatMboxo: ">From the start\n>>From older\nx >From inside\n",
	} {
		ms, _ := must(t, write(t, "a.mbox", raw), Options{Format: format})
		_, body, _ := strings.Cut(string(ms[0].Raw), "\n\n")
		if body != want {
			t.Errorf("%q: %q, want %q", format, body, want)
		}
		if ms[0].Length != int64(len(raw))-44 {
			t.Errorf("length %d counts the bytes in the source, not in Raw", ms[0].Length)
		}
	}
}

func TestFiltered(t *testing.T) {
	for header, want := range map[string]Code{
		"X-Mozilla-Status: 0009\n":  CodeDeleted,
		"X-Mozilla-Status: 0001\n":  "",
		"X-Mozilla-Status: 8\n":     CodeDeleted,
		"X-Status: AD\n":            CodeDeleted,
		"Status: RO\nX-Status: A\n": "",
		"X-IMAP: 1234 5\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\n": CodeFolderData,
	} {
		ms, _ := must(t, write(t, "a.mbox", []byte("From - Thu Feb  8 18:49:08 1996\n"+header+head+"hi\n")), Options{})
		if len(ms) != 1 || ms[0].Filtered != want {
			t.Errorf("%q: filtered %q, want %q", header, ms[0].Filtered, want)
		}
	}
}

// A message over the limit is one named reject; those around it read as always, and memory stays
// below twice the limit.
func TestMessageLimit(t *testing.T) {
	sep := "From a@example.com Mon Mar  2 10:00:00 2026\n"
	raw := sep + head + "one\n\n" + sep + head + strings.Repeat("0123456789abcde\n", 200_000) + "\n" + sep + head + "three\n"
	ms, _ := must(t, write(t, "a.mbox", []byte(raw)), Options{Limits: Limits{MessageBytes: 1 << 20}})
	if len(ms) != 3 || ms[0].Reject != nil || ms[2].Reject != nil {
		t.Fatalf("%d messages", len(ms))
	}
	rej := ms[1].Reject
	if rej == nil || rej.Code != CodeMessageBytes || rej.LimitName != "message_bytes" || rej.LimitValue != 1<<20 || rej.LimitActual != ms[1].Length || ms[1].Raw != nil {
		t.Errorf("reject %+v", rej)
	}
	covers(t, ms, int64(len(raw)))
}

func TestBeforeFirstSeparator(t *testing.T) {
	raw := "some bytes that are no mail\nand more\nFrom a@example.com Mon Mar  2 10:00:00 2026\n" + head + "hi\n"
	ms, _ := must(t, write(t, "a.mbox", []byte(raw)), Options{Format: FormatMbox})
	if len(ms) != 2 || ms[0].Reject == nil || ms[0].Reject.Code != CodeBeforeFirst || ms[1].Reject != nil {
		t.Fatalf("%+v", ms)
	}
	covers(t, ms, int64(len(raw)))
}

// Any mixture of lines splits into records that cover the file.
func TestSplitCoverage(t *testing.T) {
	lines := []string{"From a@example.com Mon Mar  2 10:00:00 2026\n", "From - \n", "From me to you\n", ">From x@y\n", "Date: Mon, 2 Mar 2026 10:00:00 +0000\n", "Content-Length: 40\n", "\n", "\r\n", "text\n", "From 1@xxx\r\n", "Subject: s\r\n", "no line end"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var b bytes.Buffer
		fmt.Fprint(&b, lines[0])
		for range rng.IntN(40) {
			b.WriteString(lines[rng.IntN(len(lines))])
		}
		checkCoverage(t, b.Bytes(), FormatMbox)
	}
}

// checkCoverage reads data in the given format and asserts what holds for any bytes: no panic,
// records in order that cover the stream. Formats with closing punctuation leave a rest.
func checkCoverage(t testing.TB, data []byte, f Format) {
	t.Helper()
	o := Options{Format: f, Limits: Limits{MessageBytes: 4 << 10, CSVBytes: 4 << 10, JSONBytes: 4 << 10}.OrDefault()}
	rr, _, err := openStream(newStream(bytes.NewReader(data)), "fuzz", &o, 0, f)
	if err != nil {
		return
	}
	at := int64(0)
	for n := 0; ; n++ {
		m, err := rr.next()
		if err != nil {
			break
		}
		if n > len(data) {
			t.Fatal("more records than bytes")
		}
		if m.Offset-m.Separator != at || m.Length < 0 || m.Separator < 0 {
			t.Fatalf("record %d: separator %d, offset %d, length %d after byte %d", n, m.Separator, m.Offset, m.Length, at)
		}
		if at = m.Offset + m.Length; at > int64(len(data)) {
			t.Fatalf("record ends at %d of %d bytes", at, len(data))
		}
	}
	if f == FormatMbox && at != int64(len(data)) && len(bytes.Trim(data, " \t\r\n\xef\xbb\xbf")) > 0 {
		t.Fatalf("records end at %d of %d bytes", at, len(data))
	}
}
