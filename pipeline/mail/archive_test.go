package mail

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func eml(n int) string { return fmt.Sprintf("Message-ID: <%d@example.com>\n%shello %d\n", n, head, n) }

func mbox(from, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("From a@example.com Mon Mar  2 10:00:00 2026\n" + eml(from+i) + "\n")
	}
	return b.String()
}

func gz(parts ...string) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		z.Write([]byte(p))
		z.Close()
	}
	return b.Bytes()
}

func zst(s string) []byte {
	var b bytes.Buffer
	z, _ := zstd.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.Bytes()
}

type entry struct {
	name, body string
	link       string
}

func tarOf(entries ...entry) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o600, Size: int64(len(e.body)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		w.WriteHeader(h)
		w.Write([]byte(e.body))
	}
	w.Close()
	return b.String()
}

func zipOf(entries ...entry) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, _ := w.Create(e.name)
		f.Write([]byte(e.body))
	}
	w.Close()
	return b.String()
}

// places lists "member folder offset+length" or the reject of each record.
func places(ms []*Message) (out []string) {
	for _, m := range ms {
		s := fmt.Sprintf("%s|%s|%d+%d", m.Member, m.Folder, m.Offset, m.Length)
		if m.Reject != nil {
			s = fmt.Sprintf("%s|%s", m.Member, m.Reject.Code)
		}
		out = append(out, s)
	}
	return out
}

func TestArchives(t *testing.T) {
	n := len(eml(1))
	one := fmt.Sprintf("0+%d", n)
	for _, c := range []struct {
		name, file string
		data       []byte
		want       []string
	}{
		{"tar of mail", "a.tar", []byte(tarOf(entry{name: "refunds/1.eml", body: eml(1)}, entry{name: "allergy/2.eml", body: eml(2)})), []string{"refunds/1.eml|refunds|" + one, "allergy/2.eml|allergy|" + one}},
		{"tar.gz", "a.tgz", gz(tarOf(entry{name: "refunds/1.eml", body: eml(1)})), []string{"refunds/1.eml|refunds|" + one}},
		{"tar.zst", "a.tar.zst", zst(tarOf(entry{name: "1.eml", body: eml(1)})), []string{"1.eml||" + one}},
		{"zip", "a.zip", []byte(zipOf(entry{name: "refunds/1.eml", body: eml(1)}, entry{name: "refunds/", body: ""}, entry{name: "Late.mbox", body: mbox(2, 2)})),
			[]string{"refunds/1.eml|refunds|" + one, fmt.Sprintf("Late.mbox|Late|44+%d", n+1), fmt.Sprintf("Late.mbox|Late|%d+%d", 2*44+n+1, n+1)}},
		{"zip in tar.gz, gz in zip", "a.tar.gz", gz(tarOf(entry{name: "in.zip", body: zipOf(entry{name: "x/1.mbox.gz", body: string(gz(mbox(1, 1)))})})), []string{fmt.Sprintf("in.zip/x/1.mbox.gz|x|44+%d", n+1)}},
		{"paths out of the archive", "a.tar", []byte(tarOf(entry{name: "../../etc/1.eml", body: eml(1)}, entry{name: "/abs/2.eml", body: eml(2)})), []string{"etc/1.eml|etc|" + one, "abs/2.eml|abs|" + one}},
		{"links", "a.tar", []byte(tarOf(entry{name: "l.eml", link: "/etc/passwd"}, entry{name: "1.eml", body: eml(1)})), []string{"l.eml|read.symlink", "1.eml||" + one}},
		{"no mail", "a.zip", []byte(zipOf(entry{name: "picture.png", body: "\x89PNG\r\n\x1a\n\x00\x00"}, entry{name: "__MACOSX/._1.eml", body: "x"}, entry{name: "1.eml", body: eml(1)})), []string{"picture.png|read.unknown_format", "1.eml||" + one}},
		{"too deep", "a.zip", []byte(zipOf(entry{name: "b.zip", body: zipOf(entry{name: "c.zip", body: zipOf(entry{name: "d.zip", body: zipOf(entry{name: "1.eml", body: eml(1)})})})})), []string{"b.zip/c.zip/d.zip|archive.too_deep"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.file, c.data)
			ms, _ := must(t, path, Options{})
			if got := places(ms); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if strings.HasPrefix(c.name, "paths") && !slices.Contains(ms[0].Warnings, CodeArchivePath) {
				t.Errorf("warnings %v", ms[0].Warnings)
			}
			for _, m := range ms {
				if m.Reject != nil {
					continue
				}
				var b bytes.Buffer
				if err := Cut(context.Background(), &b, path, m.Member, m.Offset, m.Length, Options{}); err != nil || b.String() != string(m.Raw) {
					t.Errorf("cut %s: %v, %q", m.Member, err, b.String())
				}
			}
		})
	}
}

// What decompresses to too much is cut off by a named reject, in little memory.
func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 24<<20)
	flat := strings.Repeat("a line of text that says nothing\n", 512<<10)
	for _, c := range []struct {
		name, file string
		data       []byte
	}{
		{"zip of zeros", "a.zip", []byte(zipOf(entry{name: "1.eml", body: eml(1)}, entry{name: "z.eml", body: zeros}))},
		{"zip of lines", "a.zip", []byte(zipOf(entry{name: "1.eml", body: eml(1)}, entry{name: "z.mbox", body: mbox(1, 1) + flat}))},
		{"gz of zeros", "a.mbox.gz", gz(mbox(1, 1) + mbox(2, 1) + zeros)},
		{"tar.gz of zeros", "a.tar.gz", gz(tarOf(entry{name: "1.eml", body: eml(1)}, entry{name: "z.eml", body: zeros}))},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.file, c.data)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ms, src := must(t, path, Options{})
			runtime.ReadMemStats(&after)
			if len(ms) < 2 || ms[0].Reject != nil {
				t.Fatalf("%v", places(ms))
			}
			last := ms[len(ms)-1].Reject
			if last == nil || last.Code != CodeExpansion && last.Code != CodeTruncated {
				t.Errorf("last record %+v", last)
			}
			if !src[0].Incomplete && last.Code != CodeExpansion {
				t.Errorf("source %+v", src[0])
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 100 {
				t.Errorf("%d MB allocated", used)
			}
		})
	}
}

func TestEntryLimit(t *testing.T) {
	var entries []entry
	for i := range 20 {
		entries = append(entries, entry{name: fmt.Sprintf("%d.eml", i), body: eml(i)})
	}
	for _, data := range []string{tarOf(entries...), zipOf(entries...)} {
		ms, _ := must(t, write(t, "a", []byte(data)), Options{Limits: Limits{ArchiveEntries: 5}})
		if rej := ms[len(ms)-1].Reject; len(ms) != 6 || rej == nil || rej.Code != CodeArchiveEntries || rej.LimitValue != 5 {
			t.Errorf("%v", places(ms))
		}
	}
}

// A cut-off stream gives its records up to the fault, says so, and names the byte.
func TestTruncated(t *testing.T) {
	raw := mbox(1, 2000)
	for name, data := range map[string][]byte{"a.mbox.gz": gz(raw), "a.mbox.zst": zst(raw), "two.mbox.gz": gz(raw, raw)} {
		whole, _ := must(t, write(t, name, data), Options{})
		cut, src := must(t, write(t, name, data[:len(data)*2/3]), Options{})
		s := src[0]
		if !s.Incomplete || s.Fault == "" || s.IncompleteAt <= 0 || s.Bytes != int64(len(data)*2/3) || s.Seen != int64(len(cut)) {
			t.Errorf("%s: %+v", name, s)
		}
		if len(cut) == 0 || len(cut) >= len(whole) {
			t.Fatalf("%s: %d of %d records", name, len(cut), len(whole))
		}
		for i, m := range cut {
			if m.Reject != nil && (i != len(cut)-1 || m.Reject.Code != CodeTruncated) {
				t.Errorf("%s: record %d: %+v", name, i+1, m.Reject)
			}
			if m.Reject == nil && (string(m.Raw) != string(whole[i].Raw) || m.Offset != whole[i].Offset) {
				t.Errorf("%s: record %d differs", name, i+1)
			}
		}
		if last := cut[len(cut)-1]; last.Offset+last.Length != s.IncompleteAt {
			t.Errorf("%s: incomplete at %d, records end at %d", name, s.IncompleteAt, last.Offset+last.Length)
		}
	}
	if ms, _ := must(t, write(t, "two.mbox.gz", gz(mbox(1, 3), mbox(4, 3))), Options{}); len(ms) != 6 {
		t.Errorf("two members: %d records", len(ms))
	}
}

// Nothing that cannot be used passes silently.
func TestUnusable(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty.mbox":  {nil, "no messages"},
		"blank.mbox":  {[]byte("\n\n \n"), ""},
		"noise.bin":   {[]byte("\x00\x01\x02\x03 nothing known"), "not recognised"},
		"a.7z":        {[]byte("7z\xbc\xaf\x27\x1c\x00\x04"), "7z archives"},
		"a.xz":        {[]byte("\xfd7zXZ\x00\x00"), "xz compression"},
		"header.gz":   {[]byte("\x1f\x8b\x08"), "gzip"},
		"empty.csv":   {[]byte("id,body\n"), "no messages"},
		"utf16.csv":   {[]byte("\xff\xfei\x00d\x00,\x00b\x00"), "UTF-16"},
		"damaged.zip": {[]byte("PK\x03\x04 and then nothing"), "zip"},
	} {
		_, _, err := readAll(t, write(t, name, c.data), Options{})
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: error %v, want %q with the name", name, err, c.want)
		}
	}
	if _, err := Open(context.Background(), []string{"/nowhere/at/all.mbox"}, Options{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
}

func TestFolders(t *testing.T) {
	root := t.TempDir()
	put := func(name, body string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := len(eml(1))
	one := fmt.Sprintf("0+%d", n)
	put("refunds/1.eml", eml(1))
	put("refunds/2", eml(2))
	put("late/cur/3:2,S", eml(3))
	put("late/cur/4:2,ST", eml(4))
	put("late/new/5", eml(5))
	put("late/tmp/6", eml(6))
	put("late/.sub/cur/7:2,", "no header, but mail all the same\n")
	put("late/.sub/new/8", "")
	put("Allergy.mbox", mbox(9, 1))
	put("Inbox.msf", "index")
	put(".hidden", eml(1))
	if err := os.Symlink(filepath.Join(root, "refunds/1.eml"), filepath.Join(root, "late/new/9")); err != nil {
		t.Skip(err)
	}
	ms, src := must(t, root, Options{})
	want := []string{
		"Allergy.mbox|Allergy|" + fmt.Sprintf("44+%d", n+1),
		"late/.sub/cur/7:2,|late/sub|0+33",
		"late/.sub/new/8|read.empty",
		"late/cur/3:2,S|late|" + one,
		"late/cur/4:2,ST|late|" + one,
		"late/new/5|late|" + one,
		"late/new/9|read.symlink",
		"refunds/1.eml|refunds|" + one,
		"refunds/2|refunds|" + one,
	}
	if got := places(ms); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if src[0].Format != FormatFolder || src[0].Seen != int64(len(ms)) || len(src[0].SHA256) != 64 {
		t.Errorf("%+v", src)
	}
	if ms[4].Filtered != CodeDeleted || ms[3].Filtered != "" {
		t.Errorf("flags: %q %q", ms[4].Filtered, ms[3].Filtered)
	}
	maildir, src := must(t, filepath.Join(root, "late"), Options{})
	if len(maildir) != 6 || src[0].Format != FormatMaildir || maildir[3].Folder != "" || maildir[0].Folder != "sub" {
		t.Errorf("maildir: %q %+v", places(maildir), src)
	}
	var b bytes.Buffer
	if err := Cut(context.Background(), &b, root, "late/cur/3:2,S", 0, 11, Options{}); err != nil || b.String() != "Message-ID:" {
		t.Errorf("cut from a folder: %v %q", err, b.String())
	}
	if err := Cut(context.Background(), &b, root, "../"+filepath.Base(root)+"/refunds/2", 0, 11, Options{}); err == nil {
		t.Error("a member may not point out of the folder")
	}
}

// Sources with the same base name stay apart, and a closed reader reads no more.
func TestSourceNames(t *testing.T) {
	a, b := write(t, "inbox.mbox", []byte(mbox(1, 1))), write(t, "inbox.mbox", []byte(mbox(2, 2)))
	r, err := Open(context.Background(), []string{a, b}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m1, _ := r.Next()
	m2, _ := r.Next()
	m3, err := r.Next()
	if err != nil || m1.Source == m2.Source || m2.Source != m3.Source || m3.RecordNo != 2 {
		t.Errorf("%v: %q %q %q", err, m1.Source, m2.Source, m3.Source)
	}
	if r.TotalBytes() != int64(len(mbox(1, 1))+len(mbox(2, 2))) || r.BytesRead() != r.TotalBytes() {
		t.Errorf("%d of %d bytes", r.BytesRead(), r.TotalBytes())
	}
	r.Close()
	if m, err := r.Next(); m != nil || err == nil {
		t.Error("read after Close")
	}
}
