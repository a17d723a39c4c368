package table

import (
	"encoding/csv"
	"html"
	"io"
	"strings"
	"testing"
)

func sample() *Table {
	t := &Table{Caption: "queues", Columns: []Column{{Head: "queue"}, {Head: "n", Align: Right}, {Head: "rate", Align: Right}, {Head: "note", In: InHTML}}}
	t.AddRow("", Cell{Text: "日本語"}, Cell{Text: "7"}, Cell{Text: "3.1 %", Note: "1.0 to 9.0"})
	t.AddRule("cut at 256", "cut")
	t.AddRow("", Cell{Text: "refunds"}, Cell{Text: "104"}, Cell{Text: "-"})
	return t
}

func TestTextAlignsByDisplayWidth(t *testing.T) {
	var b strings.Builder
	if err := sample().Text(&b, TextOptions{Indent: 2}); err != nil {
		t.Fatal(err)
	}
	// "refunds" takes seven columns, "日本語" six: one column of fill behind the latter.
	want := "" +
		"  queue      n              rate\n" +
		"  日本語     7  3.1 % 1.0 to 9.0\n" +
		"  --------- cut at 256 ---------\n" +
		"  refunds  104                 -\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTextGivesWayToTheTerminal(t *testing.T) {
	tab := &Table{Columns: []Column{{Head: "queue"}, {Head: "n", Align: Right}}}
	tab.Add(strings.Repeat("late deliveries ", 9), "12")
	var b strings.Builder
	if err := tab.Text(&b, TextOptions{Width: 40}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if got := Width(strings.TrimSuffix(line, "\n")); got > 40 {
			t.Errorf("%d columns: %q", got, line)
		}
	}
	if !strings.Contains(b.String(), "…") || !strings.Contains(b.String(), "12") {
		t.Errorf("want a shortened name and the whole number:\n%s", b.String())
	}
}

func TestCleanLeavesNoControl(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                  "plain",
		"\x1b[31mred":            "\ufffd[31mred",
		"a\nb\tc":                "a b c",
		"abc\u202etxt.exe":       "abc\ufffdtxt.exe",
		"bad\xffbyte":            "bad\ufffdbyte",
		"\u0085next":             "\ufffdnext",
		"Käse 🎂":                 "Käse 🎂",
		"e\u0301":                "e\u0301",
		"tag\U000e0041\ufeffhid": "tag\ufffd\ufffdhid",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCSVGuardsFormulas(t *testing.T) {
	for in, want := range map[string]string{
		"=1+1": "'=1+1", "+cmd": "'+cmd", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)", " =x": "' =x", "＝1": "'＝1",
		"-1.5": "-1.5", "+3": "+3", "-": "-", "refunds": "refunds", "": "",
	} {
		if got := Guard(in); got != want {
			t.Errorf("Guard(%q) = %q, want %q", in, got, want)
		}
	}
	tab := &Table{Columns: []Column{{Head: "queue"}, {Head: "n"}}}
	tab.Add("a,\"b\"\n=c", "2")
	var b strings.Builder
	if err := tab.CSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][0] != `a,"b" =c` {
		t.Errorf("read back %q, %v", rows, err)
	}
}

func TestMarkdownStaysATable(t *testing.T) {
	tab := &Table{Columns: []Column{{Head: "queue"}, {Head: "n", Align: Right}}}
	tab.Add("a|b <script> [x](http://y) @all `c`", "1")
	tab.AddRule("cut", "")
	var b strings.Builder
	if err := tab.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 || lines[1] != "| :--- | ---: |" {
		t.Fatalf("%q", lines)
	}
	for _, bad := range []string{"<script>", " [x", "://", "@all", " `c"} {
		if strings.Contains(lines[2], bad) {
			t.Errorf("%q survives in %q", bad, lines[2])
		}
	}
	if !strings.Contains(lines[2], `a\|b`) {
		t.Errorf("pipe not escaped: %q", lines[2])
	}
}

func TestHTMLEscapes(t *testing.T) {
	tab := &Table{Caption: `x" onfocus="y`, Columns: []Column{{Head: "<q>"}, {Head: "n", Align: Right}}}
	tab.AddRow(`c" x="`, Cell{Text: "<script>alert(1)</script>", Note: "a&b", Mark: `<i class="bar"></i>`}, Cell{Text: "1", Class: "bad"})
	got := string(tab.Markup())
	for _, bad := range []string{"<script", `" onfocus`, "<q>", `" x="`} {
		if strings.Contains(got, bad) {
			t.Errorf("%q survives in %s", bad, got)
		}
	}
	for _, want := range []string{`tabindex="0"`, `<th scope="row"><i class="bar"></i> &lt;script&gt;`, `class="num bad"`, "<small>a&amp;b</small>"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestMarkdownLineStarts(t *testing.T) {
	for in, want := range map[string]string{
		"+39.4 (+33.6)": "+39.4 (+33.6)", "-1.5": "-1.5", "- item": `\- item`, "+ item": `\+ item`, "12. item": `12\. item`, "3) x": `3\) x`,
		"===": `\===`, "---": `\---`, "-": `\-`, "1.5 %": "1.5 %", "2026-W47": "2026-W47",
	} {
		if got := EscapeMarkdown(in); got != want {
			t.Errorf("EscapeMarkdown(%q) = %q, want %q", in, got, want)
		}
	}
}

// failing refuses every write: a report on a full disk must say so.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteErrorsAreReturned(t *testing.T) {
	tab := sample()
	for name, err := range map[string]error{
		"text": tab.Text(failing{}, TextOptions{}), "csv": tab.CSV(failing{}),
		"markdown": tab.Markdown(failing{}), "html": tab.HTML(failing{}),
	} {
		if err == nil {
			t.Errorf("%s: a failed write is lost", name)
		}
	}
}

func FuzzCell(f *testing.F) {
	f.Add("refunds")
	f.Add("<script>|\x1b[2J\u202e")
	f.Add("=HYPERLINK(\"x\")")
	f.Fuzz(func(t *testing.T, s string) {
		tab := &Table{Columns: []Column{{Head: "queue"}, {Head: "n", Align: Right}}}
		tab.Add(s, "1")
		var text, md strings.Builder
		if err := tab.Text(&text, TextOptions{Width: 60}); err != nil {
			t.Fatal(err)
		}
		if err := tab.Markdown(&md); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "\n"); n != 2 {
			t.Errorf("%d lines of text from %q", n, s)
		}
		if n := strings.Count(md.String(), "\n"); n != 3 {
			t.Errorf("%d lines of Markdown from %q", n, s)
		}
		if strings.ContainsAny(text.String(), "\x1b\r\x00") {
			t.Errorf("control characters from %q", s)
		}
		markup := string(tab.Markup())
		if strings.Contains(html.UnescapeString(markup), "\x1b") || strings.Count(markup, "<tr>") != 2 {
			t.Errorf("markup broken by %q: %s", s, markup)
		}
	})
}
