package mail

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// memberName cleans a path of an archive. Nothing is ever written under it; outside says that it
// pointed out of the archive.
func memberName(name string) (clean string, outside bool) {
	slashed := strings.ReplaceAll(name, "\\", "/")
	clean = strings.TrimLeft(path.Clean("/"+slashed), "/")
	return clean, path.IsAbs(slashed) || strings.HasPrefix(path.Clean(slashed), "..")
}

// archiveMembers is what tar and zip share: the record reader of the open entry and its place.
type archiveMembers struct {
	options *Options
	depth   int
	entries int64
	inner   recordReader
	member  string
	folder  string
	outside bool
}

// open starts reading an entry. The returned message, if any, says why it cannot be read.
func (a *archiveMembers) open(r io.Reader, name string) *Message {
	a.name(name)
	rr, found, err := openRecords(r, a.member, a.options, a.depth+1, FormatAuto)
	if err != nil {
		return a.failed(rejectOf(err))
	}
	if found == FormatMbox && a.folder == "" {
		a.folder = mailboxName(a.member)
	}
	a.inner = rr
	return nil
}

func (a *archiveMembers) name(name string) {
	a.member, a.outside = memberName(name)
	a.folder = ""
	if i := strings.LastIndexByte(a.member, '/'); i > 0 {
		a.folder = folderName(a.member[:i])
	}
}

func (a *archiveMembers) failed(rej *Reject) *Message {
	m := &Message{Reject: rej}
	a.place(m)
	return m
}

func (a *archiveMembers) place(m *Message) {
	if m.Member == "" {
		m.Member = a.member
	} else {
		m.Member = a.member + "/" + m.Member
	}
	if m.Folder == "" {
		m.Folder = a.folder
	}
	if a.outside {
		m.Warnings = append(m.Warnings, CodeArchivePath)
	}
}

// read returns the next record of the open entry; nil at its end. A fault that breaks the whole
// archive is an error; of zip, only the entry is broken.
func (a *archiveMembers) read() (*Message, error) {
	m, err := a.inner.next()
	if err == nil {
		a.place(m)
		return m, nil
	}
	a.closeInner()
	if err == io.EOF {
		return nil, nil
	}
	return nil, err
}

func (a *archiveMembers) closeInner() {
	if a.inner != nil {
		closeRecords(a.inner)
		a.inner = nil
	}
}

func (a *archiveMembers) tooMany() *Message {
	a.member, a.folder, a.outside = "", "", false
	return a.failed(NewLimit(CodeArchiveEntries, "more archive entries than the limit; the rest is not read", "archive_entries", a.options.Limits.ArchiveEntries, a.entries))
}

// skipEntry says which entries hold no mail.
func skipEntry(name string) bool {
	clean, _ := memberName(name)
	for _, p := range strings.Split(clean, "/") {
		if ignored(p) && !strings.Contains(clean, p+"/cur/") && !strings.Contains(clean, p+"/new/") {
			return true
		}
	}
	return clean == "" || strings.HasPrefix(clean, "tmp/") || strings.Contains(clean, "/tmp/")
}

type tarReader struct {
	archiveMembers
	s    *stream
	t    *tar.Reader
	done bool
}

func newTarReader(s *stream, o *Options, depth int) *tarReader {
	return &tarReader{archiveMembers: archiveMembers{options: o, depth: depth}, s: s, t: tar.NewReader(s)}
}

func (t *tarReader) next() (*Message, error) {
	for {
		if t.inner != nil {
			m, err := t.read()
			if m != nil {
				return m, nil
			}
			if err != nil {
				if fatal := t.s.fault(); fatal != nil {
					return nil, fatal
				}
				return t.failed(rejectOf(err)), nil
			}
			continue
		}
		if t.done {
			return nil, io.EOF
		}
		h, err := t.t.Next()
		if err == io.EOF {
			t.done = true
			continue
		}
		if err != nil {
			t.done = true
			if fatal := t.s.fault(); fatal != nil {
				return nil, fatal
			}
			return nil, fmt.Errorf("tar: %w", err)
		}
		if t.entries++; t.entries > t.options.Limits.ArchiveEntries {
			t.done = true
			return t.tooMany(), nil
		}
		if skipEntry(h.Name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if m := t.open(t.t, h.Name); m != nil {
				return m, nil
			}
			t.maildir(h.Name)
		case tar.TypeSymlink, tar.TypeLink:
			t.name(h.Name)
			return t.failed(NewReject(CodeSymlink, "links in an archive are not followed")), nil
		}
	}
}

func (t *tarReader) close() { t.closeInner() }

// maildir applies the flags of a Maildir file name.
func (a *archiveMembers) maildir(name string) {
	if f := maildirFilter(name); f != "" && a.inner != nil {
		a.inner = flagged{a.inner, f}
	}
}

type zipReader struct {
	archiveMembers
	z     *zip.Reader
	size  int64 // of the archive
	out   int64 // decompressed so far
	at    int
	entry io.ReadCloser
	spool *os.File // of a zip that came as a stream
	src   *openSource
	halt  bool
}

func newZipReader(r io.ReaderAt, size int64, o *Options, depth int) (*zipReader, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("zip: %w", err)
	}
	return &zipReader{archiveMembers: archiveMembers{options: o, depth: depth}, z: z, size: size}, nil
}

// spoolZip reads a zip that comes as a stream into a nameless temporary file: its directory stands
// at its end.
func spoolZip(r io.Reader, o *Options, depth int) (*zipReader, error) {
	f, err := os.CreateTemp("", "misroute-*.zip")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where a system keeps open files, the name stays until its own clean-up
	n, err := io.Copy(f, r)
	if err == nil {
		var z *zipReader
		if z, err = newZipReader(f, n, o, depth); err == nil {
			z.spool = f
			return z, nil
		}
	}
	f.Close()
	return nil, err
}

func (z *zipReader) next() (*Message, error) {
	for {
		if z.inner != nil {
			m, err := z.read()
			if m != nil {
				return m, nil
			}
			z.entry.Close()
			if err != nil {
				z.halt = errors.Is(err, errExpansion)
				return z.failed(rejectOf(damaged(err))), nil
			}
			continue
		}
		if z.at >= len(z.z.File) || z.halt {
			return nil, io.EOF
		}
		f := z.z.File[z.at]
		z.at++
		if z.entries++; z.entries > z.options.Limits.ArchiveEntries {
			z.halt = true
			return z.tooMany(), nil
		}
		if z.src != nil {
			z.src.read.Add(int64(f.CompressedSize64))
		}
		if f.FileInfo().IsDir() || skipEntry(f.Name) {
			continue
		}
		if m := z.openEntry(f); m != nil {
			return m, nil
		}
	}
}

func (z *zipReader) openEntry(f *zip.File) *Message {
	z.name(f.Name)
	switch {
	case f.Flags&1 != 0:
		return z.failed(NewReject(CodeEncrypted, "the entry is encrypted"))
	case f.Mode()&os.ModeSymlink != 0:
		return z.failed(NewReject(CodeSymlink, "links in an archive are not followed"))
	}
	rc, err := f.Open()
	if err != nil {
		return z.failed(NewReject(CodeDamaged, err.Error()))
	}
	z.entry = rc
	// An entry may claim any size; what counts is what really comes out, of this entry and of all.
	entry := &expanding{r: rc, limits: &z.options.Limits, compressed: func() int64 { return int64(f.CompressedSize64) }}
	all := &expanding{r: entry, limits: &z.options.Limits, compressed: func() int64 { return z.size }}
	all.out = z.out
	total := &tallying{all, &z.out}
	if m := z.open(total, f.Name); m != nil {
		rc.Close()
		return m
	}
	z.maildir(f.Name)
	return nil
}

// tallying adds what passes to a total.
type tallying struct {
	r     io.Reader
	total *int64
}

func (t *tallying) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	*t.total += int64(n)
	return n, err
}

func (z *zipReader) close() {
	z.closeInner()
	if z.entry != nil {
		z.entry.Close()
	}
	if z.spool != nil {
		z.spool.Close()
	}
}

// damaged wraps an error of a decompressor so that it is counted as such.
func damaged(err error) error {
	if errors.Is(err, errExpansion) {
		return err
	}
	return &damage{err}
}

type damage struct{ err error }

func (d *damage) Error() string { return d.err.Error() }
func (d *damage) Unwrap() error { return d.err }
