package mail

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func FuzzMbox(f *testing.F) {
	for _, c := range splits {
		f.Add([]byte(c.raw))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkCoverage(t, data, FormatMbox)
	})
}

func FuzzCSV(f *testing.F) {
	for _, c := range tables {
		f.Add([]byte(c.raw))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkCoverage(t, data, FormatCSV)
	})
}

func FuzzJSON(f *testing.F) {
	for _, c := range tables {
		f.Add([]byte(c.raw))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkCoverage(t, data, FormatJSON)
		checkCoverage(t, data, FormatJSONL)
	})
}

func FuzzCharset(f *testing.F) {
	f.Add([]byte("caf\xe9"), "iso-8859-1")
	f.Add([]byte("\x1b$B$3$s\x1b(B"), "iso-2022-jp")
	f.Add([]byte("\x1b$)C\x0e!!\x0f"), "iso-2022-kr")
	f.Add([]byte("+AOk-x+"), "utf-7")
	f.Add([]byte("~{!!~}"), "hz-gb-2312")
	f.Add([]byte("\xff\xfea\x00"), "utf-16")
	f.Add([]byte("\xcf\xf0\xe8\xe2\xe5\xf2"), "")
	f.Add([]byte("=?utf-8?B?w6k=?= =?x?Q?=?="), "cp-1251*en")
	f.Fuzz(func(t *testing.T, b []byte, label string) {
		d := DecodeCharset(b, label)
		if !utf8.Valid(d.Text) || d.Charset == "" || d.Reason == "" || d.Replaced != bytes.Count(d.Text, []byte("\uFFFD")) && d.Reason != ReasonUTF8 {
			t.Fatalf("%+v", d)
		}
		if s := DecodeHeaderAs(b, label); !utf8.ValidString(s) {
			t.Fatalf("header %q", s)
		}
		if out, _ := DecodeBase64(nil, b); len(out) > len(b) {
			t.Fatal("base64 grew")
		}
		if out, _ := DecodeQuotedPrintable(nil, b); len(out) > len(b) {
			t.Fatal("quoted-printable grew")
		}
		parseDate(string(b), nil)
		gmailLabels(string(b))
	})
}

// FuzzOpen detects and reads whatever it is given, archives and compression included.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(mbox(1, 2)))
	f.Add(gz(mbox(1, 1)))
	f.Add(zst(mbox(1, 1)))
	f.Add([]byte(tarOf(entry{name: "1.eml", body: eml(1)})))
	f.Add([]byte(zipOf(entry{name: "1.eml", body: eml(1)})))
	f.Add([]byte("id,body\n1,x\n"))
	f.Add([]byte(`{"tickets":[{"id":1,"body":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ms, src, err := readAll(t, write(t, "export", data), Options{})
		if err == nil && (len(src) != 1 || src[0].Seen != int64(len(ms)) || src[0].Bytes != int64(len(data))) {
			t.Fatalf("%d records of %+v", len(ms), src)
		}
	})
}
