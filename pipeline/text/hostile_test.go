package text

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"misroute/pipeline/mail"
)

// hostile are messages made to hurt parsers, each with the reject or warning it must give. The
// shapes are those on which MIME libraries were measured to take more than 20 seconds for a
// megabyte.
var hostile = []struct {
	name    string
	raw     func() []byte
	reject  mail.Code
	limit   string
	warning mail.Code
}{
	{name: "100,000 parts", reject: mail.CodeParts, limit: "parts", raw: func() []byte {
		return []byte("Content-Type: multipart/mixed; boundary=x\n\n" + strings.Repeat("--x\n\na\n", 100_000) + "--x--\n")
	}},
	{name: "50,000 parameters", reject: mail.CodeParams, limit: "parameters", raw: func() []byte {
		return []byte("Content-Type: text/plain" + strings.Repeat(";a=1", 16_000) + "\n\nhello\n")
	}},
	{name: "parameters folded over 50,000 lines", reject: mail.CodeHeaderLine, limit: "header_field", raw: func() []byte {
		return []byte("Content-Type: text/plain" + strings.Repeat(";\n a=1", 50_000) + "\n\nhello\n")
	}},
	{name: "depth 10,000", reject: mail.CodeDepth, limit: "depth", raw: func() []byte {
		var b bytes.Buffer
		for i := range 10_000 {
			fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
		}
		return append(b.Bytes(), "\ntext\n"...)
	}},
	{name: "20 MB header in one field", reject: mail.CodeHeaderLine, limit: "header_field", raw: func() []byte {
		return []byte("X-Long: " + strings.Repeat("a", 20<<20) + "\nSubject: s\n\nhello\n")
	}},
	{name: "20 MB header in many fields", reject: mail.CodeHeaderBytes, limit: "header_bytes", raw: func() []byte {
		return []byte(strings.Repeat("X-Short: abcdefghijklmnopqrstuvwxyz\n", 20<<20/36) + "\nhello\n")
	}},
	{name: "messages in messages", raw: func() []byte {
		return []byte("Subject: deep\n" + strings.Repeat("Content-Type: message/rfc822\n\n", 10_000) + "Subject: x\n\nhello\n")
	}, warning: mail.CodeNesting},
	{name: "NULs", warning: mail.CodeNulRemoved, raw: func() []byte {
		return []byte("Subject: s\n\nhello" + strings.Repeat("\x00", 1<<20) + "world\n")
	}},
	{name: "a million characters between On and wrote", raw: func() []byte {
		return []byte("Subject: s\n\nhello\nOn " + strings.Repeat("a ", 500_000) + "wrote:\n> x\n")
	}},
	{name: "a million lines that look like attributions", warning: mail.CodeTextCut, raw: func() []byte {
		return []byte("Subject: s\n\nhello\n" + strings.Repeat("On 1 at 10:00 a@b wrote:\n", 400_000))
	}},
	{name: "a million signature separators", warning: mail.CodeTextCut, raw: func() []byte {
		return []byte("Subject: s\n\nhello\n" + strings.Repeat("-- \nx\n", 400_000))
	}},
	{name: "a million open elements", raw: func() []byte {
		return []byte("Subject: s\nContent-Type: text/html\n\nhello" + strings.Repeat("<div>", 1_000_000))
	}},
	{name: "a million quoting elements", raw: func() []byte {
		return []byte("Subject: s\nContent-Type: text/html\n\nhello " + strings.Repeat("<blockquote type=cite>", 300_000))
	}},
	{name: "one tag of ten megabytes", warning: mail.CodeHTMLCut, raw: func() []byte {
		return []byte("Subject: s\nContent-Type: text/html\n\nhello <a " + strings.Repeat("b=c ", 2_500_000) + ">")
	}},
	{name: "dashes", raw: func() []byte {
		return []byte("Content-Type: multipart/mixed; boundary=-\n\nhello\n" + strings.Repeat("-", 2<<20) + "\n")
	}},
	{name: "boundary of one dash, a line of its prefix each", raw: func() []byte {
		return []byte("Content-Type: multipart/mixed; boundary=" + strings.Repeat("x", 60) + "\n\n--" + strings.Repeat("x", 60) + "\n\nhello\n" + strings.Repeat("--"+strings.Repeat("x", 59)+"\n", 40_000))
	}},
	{name: "multiparts whose boundaries are nowhere, before a long text", warning: mail.CodeNoBoundary, raw: func() []byte {
		return []byte("Content-Type: multipart/mixed; boundary=x\n\n" + strings.Repeat("--x\nContent-Type: multipart/mixed; boundary=\"-- \"\n\na\n", 900) + "--x\n\nhello\n" + strings.Repeat("--a line\n", 2_000_000))
	}},
	{name: "multiparts that are never closed, before a long text", warning: mail.CodeNoFinalBoundary, raw: func() []byte {
		var b bytes.Buffer
		b.WriteString("Content-Type: multipart/mixed; boundary=x\n\n")
		for i := range 400 {
			fmt.Fprintf(&b, "--x\nContent-Type: multipart/mixed; boundary=a%d\n\n--a%d\n\na\n", i, i)
		}
		return append(b.Bytes(), "--x\n\nhello\n"+strings.Repeat("--a line\n", 2_000_000)...)
	}},
	{name: "alternatives in alternatives", raw: func() []byte {
		var b bytes.Buffer
		for i := range 20 {
			fmt.Fprintf(&b, "Content-Type: multipart/alternative; boundary=b%d\n\n--b%d\n\nview as html\n--b%d\n", i, i, i)
		}
		return append(b.Bytes(), "Content-Type: text/html\n\n"+strings.Repeat("<p>The cake was late.</p>\n", 1000)...)
	}},
	{name: "parameters of enriched text that are never closed", raw: func() []byte {
		return []byte("Subject: s\nContent-Type: text/enriched\n\nhello" + strings.Repeat("<param>", 500_000))
	}},
	{name: "encoded words", raw: func() []byte {
		return []byte("Subject: " + strings.Repeat("=?utf-8?q?a?= ", 4000) + "\n\nhello\n")
	}},
	{name: "half encoded words", raw: func() []byte {
		return []byte("Subject: " + strings.Repeat("=?", 30_000) + "\n\nhello\n")
	}},
	{name: "comments", raw: func() []byte {
		return []byte("Content-Type: " + strings.Repeat("(", 60_000) + "text/plain\n\nhello\n")
	}},
	{name: "uuencode beginnings", warning: mail.CodeTextCut, raw: func() []byte {
		return []byte("Subject: s\n\nhello\n" + strings.Repeat("begin 644 a\n#\n", 200_000))
	}},
}

func TestHostile(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			raw := h.raw()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			got, rej := extract(raw, Options{})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			switch {
			case h.reject != "" && rej == nil:
				t.Errorf("not rejected, want %s", h.reject)
			case h.reject != "" && (rej.Code != h.reject || rej.LimitName != h.limit || rej.LimitActual <= rej.LimitValue || rej.LimitValue <= 0):
				t.Errorf("got %+v, want %s by %s", rej, h.reject, h.limit)
			case h.reject == "" && rej != nil:
				t.Errorf("rejected: %+v", rej)
			case h.warning != "" && !contains(got.Warnings, h.warning):
				t.Errorf("warnings %v, want %s", got.Warnings, h.warning)
			}
			// The bound for one hostile message is a second and 100 MB; what is asserted here is
			// memory, as time on a shared machine proves nothing.
			if used := int64(after.TotalAlloc - before.TotalAlloc); used > 100<<20 {
				t.Errorf("%d MB allocated", used>>20)
			}
			t.Logf("%v, %d kB allocated, %d bytes", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10, len(raw))
		})
	}
}

func contains(list []mail.Code, c mail.Code) bool {
	for _, x := range list {
		if x == c {
			return true
		}
	}
	return false
}
