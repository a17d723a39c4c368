package mail

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// cell is what a test looks at in a record of columns.
type cell struct {
	id, text string
	reject   Code
	line     int64
}

func cells(ms []*Message) (out []cell) {
	for _, m := range ms {
		c := cell{line: m.Line}
		if m.Columns != nil {
			c.id, c.text = m.Columns.ID, m.Columns.Text
		}
		if m.Reject != nil {
			c.id, c.text, c.reject = "", "", m.Reject.Code
		}
		out = append(out, c)
	}
	return out
}

// One broken record must not take its neighbours with it, and each has its line.
var tables = []struct {
	name, raw string
	want      []cell
	warning   Code // of the first record
}{
	{name: "plain", raw: "id,body,queue\n1,hello,a\n2,world,b\n", want: []cell{{"1", "hello", "", 2}, {"2", "world", "", 3}}},
	{name: "semicolons and a mark", raw: "\xef\xbb\xbfid;body;queue\r\n1;a, b;x\r\n2;c;y\r\n", want: []cell{{"1", "a, b", "", 2}, {"2", "c", "", 3}}},
	{name: "tabs", raw: "id\tbody\n1\ta,b\n", want: []cell{{"1", "a,b", "", 2}}},
	{name: "line ends and quotes in a field", raw: "id,body\n1,\"two\nlines, \"\"quoted\"\"\"\n2,x\n", want: []cell{{"1", "two\nlines, \"quoted\"", "", 2}, {"2", "x", "", 4}}},
	{name: "bare CR as text", raw: "id,body\n1,a\rb\n2,c\n", want: []cell{{"1", "a\rb", "", 2}, {"2", "c", "", 3}}},
	{name: "CR as line end", raw: "id,body\r1,a\r2,b\r", want: []cell{{"1", "a", "", 2}, {"2", "b", "", 3}}},
	{name: "no line end at the end", raw: "id,body\n1,a\n2,b", want: []cell{{"1", "a", "", 2}, {"2", "b", "", 3}}},
	{name: "empty lines", raw: "id,body\n\n1,a\n\n\n2,b\n", want: []cell{{"1", "a", "", 3}, {"2", "b", "", 6}}},
	{name: "a stray quote at a field's start", raw: "id,body\n1,\"tis the season\n2,next\n3,\"quoted\"\n4,last\n", want: []cell{{"", "", CodeCSVQuote, 2}, {"2", "next", "", 3}, {"3", "quoted", "", 4}, {"4", "last", "", 5}}},
	{name: "a stray quote and no other quote in the file", raw: "id,body\n1,\"tis the season\n2,next\n3,last\n", want: []cell{{"", "", CodeCSVQuote, 2}, {"2", "next", "", 3}, {"3", "last", "", 4}}},
	{name: "undoubled quotes inside", raw: "id,body,queue\n1,\"He said \"hi, there\" to me\",a\n2,x,b\n", want: []cell{{"1", "He said \"hi, there\" to me", "", 2}, {"2", "x", "", 3}}, warning: CodeCSVBareQuote},
	{name: "text behind a closing quote", raw: "id,body,queue\n1,\"oops\" more,a\n2,x,b\n", want: []cell{{"1", "oops more", "", 2}, {"2", "x", "", 3}}, warning: CodeCSVBareQuote},
	{name: "a quote inside an unquoted field", raw: "id,body\n1,27\" screen\n2,x\n", want: []cell{{"1", "27\" screen", "", 2}, {"2", "x", "", 3}}},
	{name: "too many and too few fields", raw: "id,body\n1,a,b\n2\n3,c\n", want: []cell{{"", "", CodeCSVFields, 2}, {"", "", CodeCSVFields, 3}, {"3", "c", "", 4}}},
	{name: "empty extra fields", raw: "id,body\n1,a,,\n2,b\n", want: []cell{{"1", "a", "", 2}, {"2", "b", "", 3}}, warning: CodeCSVExtraFields},
	{name: "windows-1252 bytes", raw: "id,body\n1,caf\xe9\n", want: []cell{{"1", "café", "", 2}}},
	{name: "JSON lines", raw: `{"id":1,"body":"a"}` + "\n\n" + `{"id":2,"body":"b"}` + "\n", want: []cell{{"1", "a", "", 1}, {"2", "b", "", 3}}},
	{name: "a broken line of JSON", raw: `{"id":1,"body":"a"}` + "\n" + `{"id":2,"body":` + "\n" + `{"id":3,"body":"c"}` + "\n", want: []cell{{"1", "a", "", 1}, {"", "", CodeJSONSyntax, 2}, {"3", "c", "", 3}}},
	{name: "a broken first line of JSON", raw: `{"id":1,"body":` + "\n" + `{"id":2,"body":"b"}` + "\n", want: []cell{{"", "", CodeJSONSyntax, 1}, {"2", "b", "", 2}}},
	{name: "a line that is no object", raw: `{"id":1,"body":"a"}` + "\n7\n", want: []cell{{"1", "a", "", 1}, {"", "", CodeJSONShape, 2}}},
	{name: "a lone surrogate", raw: `{"id":1,"body":"a\ud83d"}` + "\n", want: []cell{{"1", "a\uFFFD", "", 1}}, warning: CodeJSONSurrogate},
	{name: "a surrogate pair", raw: `{"id":1,"body":"a\ud83d\ude00"}` + "\n", want: []cell{{"1", "a😀", "", 1}}},
	{name: "an array", raw: "[\n " + `{"id":1,"body":"a"},` + "\n " + `{"id":2,"body":"b]"}` + "\n]\n", want: []cell{{"1", "a", "", 2}, {"2", "b]", "", 3}}},
	{name: "an array with a broken object", raw: "[\n" + `{"id":1,"body":"a` + "\n" + `},` + "\n" + `{"id":2,"body":"b"}]`, want: []cell{{"", "", CodeJSONSyntax, 2}, {"2", "b", "", 4}}},
	{name: "objects over several lines", raw: "{\n\"id\": 1,\n\"body\": \"a\"\n}\n{\n\"id\": 2,\n\"body\": \"b\"\n}\n", want: []cell{{"1", "a", "", 1}, {"2", "b", "", 5}}},
	{name: "a wrapping object", raw: `{"count": 2, "tickets": [{"id":1,"body":"a"}, {"id":2,"body":"b","tags":["x"]}], "next_page": null}`, want: []cell{{"1", "a", "", 1}, {"2", "b", "", 1}}},
	{name: "pages of a wrapping object", raw: `{"tickets": [{"id":1,"body":"a"}]}` + "\n" + `{"tickets": [{"id":2,"body":"b"}], "end": {"at": [1]}}` + "\n", want: []cell{{"1", "a", "", 1}, {"2", "b", "", 2}}},
	{name: "a record with its own list of messages", raw: `{"id":1,"body":"a","messages":[{"id":9}]}` + "\n", want: []cell{{"1", "a", "", 1}}},
	{name: "no field with text", raw: `{"id":1,"note":"a"}` + "\n", want: []cell{{"", "", CodeNoBody, 1}}},
}

func TestTables(t *testing.T) {
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			ms, _ := must(t, write(t, "export", []byte(c.raw)), Options{})
			if got := cells(ms); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if c.warning != "" && !slices.Contains(ms[0].Warnings, c.warning) {
				t.Errorf("warnings %v, want %s", ms[0].Warnings, c.warning)
			}
			at := int64(0)
			for _, m := range ms {
				if m.Offset-m.Separator != at {
					t.Errorf("record %d: separator %d before %d, the record before ended at %d", m.RecordNo, m.Separator, m.Offset, at)
				}
				at = m.Offset + m.Length
			}
			if rest := c.raw[min(int(at), len(c.raw)):]; strings.Trim(rest, " \r\n]}") != "" && !strings.HasPrefix(strings.TrimSpace(rest), "]") {
				t.Errorf("%q belongs to no record", rest)
			}
		})
	}
}

// The limits of records of columns.
func TestTableLimits(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, raw, limit string
		code             Code
	}{
		{"JSON line", `{"id":1,"body":"a"}` + "\n" + `{"id":2,"body":"` + long + `"}` + "\n" + `{"id":3,"body":"c"}` + "\n", "json_bytes", CodeJSONBytes},
		{"JSON array", "[" + `{"id":1,"body":"a"},` + "\n" + `{"id":2,"body":"` + long + `"},` + "\n" + `{"id":3,"body":"c"}]` + "\n", "json_bytes", CodeJSONBytes},
		{"CSV record", "id,body\n1,a\n2," + long + "\n3,c\n", "csv_bytes", CodeCSVRecordBytes},
		{"quoted CSV record", "id,body\n1,a\n2,\"" + long + "\"\n3,c\n", "csv_bytes", CodeCSVRecordBytes},
	} {
		ms, _ := must(t, write(t, "export", []byte(c.raw)), Options{Limits: Limits{JSONBytes: 64 << 10, CSVBytes: 64 << 10}})
		if len(ms) != 3 || ms[0].Reject != nil || ms[2].Reject != nil || ms[1].Reject == nil {
			t.Errorf("%s: %v", c.name, cells(ms))
			continue
		}
		if r := ms[1].Reject; r.Code != c.code || r.LimitName != c.limit || r.LimitValue != 64<<10 || r.LimitActual <= r.LimitValue {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// A line of 15 MB is within the limits.
func TestLongJSONLine(t *testing.T) {
	raw := `{"id":1,"body":"` + strings.Repeat("word ", 3_000_000) + `"}` + "\n" + `{"id":2,"body":"b"}` + "\n"
	ms, src := must(t, write(t, "export", []byte(raw)), Options{})
	if len(ms) != 2 || ms[0].Reject != nil || len(ms[0].Columns.Text) != 14_999_999 || src[0].Format != FormatJSONL {
		t.Errorf("%d records, %+v", len(ms), src)
	}
}

func TestColumnsMissing(t *testing.T) {
	_, _, err := readAll(t, write(t, "a.csv", []byte("a;b;c\n1;2;3\n")), Options{})
	if err == nil || !strings.Contains(err.Error(), "a, b, c") || !strings.Contains(err.Error(), "--map body=") {
		t.Errorf("error %v does not name the columns and the way out", err)
	}
	_, _, err = readAll(t, write(t, "a.csv", []byte("id,body\n1,2\n")), Options{Map: map[string]string{"label": "team"}})
	if err == nil || !strings.Contains(err.Error(), `no column "team"`) {
		t.Errorf("error %v does not name the missing column", err)
	}
}

// Help desks by their documented fields.
func TestPresets(t *testing.T) {
	groups := map[string]string{"7": "Refunds"}
	zendesk := []string{
		`{"id":1,"subject":"s1","description":"first comment","group_id":7,"created_at":"2026-03-02T10:00:00Z","status":"open","via":{"channel":"email"}}`,
		`{"id":2,"subject":null,"raw_subject":"raw","description":null,"comments":[{"public":false,"plain_body":"note"},{"public":true,"author_id":-1,"plain_body":"robot"},{"public":true,"plain_body":"","body":"from body"}],"group_id":8,"status":"new"}`,
		`{"id":3,"subject":"s3","comments":[{"public":true,"html_body":"<p>html</p>"}],"status":"closed"}`,
		`{"id":4,"subject":"s4","description":"gone","status":"deleted"}`,
		`{"id":5,"subject":"s5","comments":[{"author_id":-1,"plain_body":"robot","public":true}],"status":"open"}`,
	}
	for _, raw := range []string{strings.Join(zendesk, "\n") + "\n", `{"tickets": [` + strings.Join(zendesk, ",") + `], "count": 5}`} {
		ms, _ := must(t, write(t, "tickets.json", []byte(raw)), Options{Preset: "zendesk", Groups: groups})
		var got []string
		for _, m := range ms {
			c := m.Columns
			got = append(got, fmt.Sprint(c.ID, "|", c.Subject, "|", c.Text, "|", c.HTML, "|", c.Label, "|", c.Date, "|", m.Filtered, "|", m.Warnings))
		}
		want := []string{
			"1|s1|first comment||Refunds|2026-03-02T10:00:00Z||[]",
			"2|raw|from body||8|||[system_comment]",
			"3|s3||<p>html</p>||||[]",
			"4|s4|gone||||filter.deleted|[]",
			"5|s5|||||filter.system|[]",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	freshdesk := `[{"id":1,"subject":"s","description":"<div>html</div>","description_text":"text","group_id":7,"type":"Question"},{"id":2,"subject":"s","description":"<div>html</div>","type":"Question"}]`
	ms, _ := must(t, write(t, "tickets.json", []byte(freshdesk)), Options{Preset: "freshdesk", Groups: groups})
	if len(ms) != 2 || ms[0].Columns.Text != "text" || ms[0].Columns.Label != "Refunds" || ms[1].Columns.HTML != "<div>html</div>" || ms[1].Columns.Label != "Question" {
		t.Errorf("freshdesk: %+v %+v", ms[0].Columns, ms[1].Columns)
	}
	mapped, _ := must(t, write(t, "t.csv", []byte("nr,was,team,router\n1,hello,a,b\n")), Options{Map: map[string]string{"id": "nr", "body": "was", "label": "team", "routed": "router"}})
	if c := mapped[0].Columns; c.ID != "1" || c.Text != "hello" || c.Label != "a" || c.Routed != "b" {
		t.Errorf("mapped: %+v", c)
	}
}
