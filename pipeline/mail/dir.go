package mail

import (
	"io"
	"io/fs"
	"sort"
	"strings"
)

// A dirReader reads a Maildir or a folder of files, depth first in the order of names. It holds the
// names of the directories it is in, and one open file.
type dirReader struct {
	root    string
	options *Options
	src     *openSource
	levels  []dirLevel
	file    fs.File
	inner   recordReader
	member  string
	folder  string
}

type dirLevel struct {
	rel     string
	entries []dirEntry
	maildir bool // rel is a cur or new of a Maildir
}

type dirEntry struct {
	name string
	mode fs.FileMode
}

// isMaildir goes by the folders in it. A store has no empty folders: there a cur is all that is left
// of a Maildir without new mail.
func isMaildir(files FileSystem, folder string) bool {
	_, local := files.(machine)
	found := 0
	for _, sub := range [...]string{"cur", "new", "tmp"} {
		if st, err := files.Stat(below(folder, sub)); err == nil && st.IsDir() {
			if found++; !local && sub == "cur" {
				return true
			}
		}
	}
	return found >= 2
}

func (d *dirReader) push(rel string, maildir bool) error {
	list, err := d.src.files.ReadDir(below(d.root, rel))
	if err != nil {
		return err
	}
	entries := make([]dirEntry, 0, len(list))
	for _, e := range list {
		entries = append(entries, dirEntry{e.Name(), e.Type()})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].name < entries[j].name })
	d.levels = append(d.levels, dirLevel{rel, entries, maildir})
	return nil
}

func (d *dirReader) next() (*Message, error) {
	for {
		if d.inner != nil {
			m, err := d.inner.next()
			if err == nil {
				d.place(m)
				return m, nil
			}
			if err != io.EOF {
				m = d.failed(err)
			}
			d.closeFile()
			if m != nil {
				return m, nil
			}
			continue
		}
		m, err := d.step()
		if m != nil || err != nil {
			return m, err
		}
	}
}

// place gives a record of the open file its member name and folder.
func (d *dirReader) place(m *Message) {
	if m.Member == "" {
		m.Member = d.member
	} else {
		m.Member = d.member + "/" + m.Member
	}
	if m.Folder == "" {
		m.Folder = d.folder
	}
}

// failed is the record that stands for a file that broke off.
func (d *dirReader) failed(err error) *Message {
	m := &Message{Reject: rejectOf(err)}
	d.place(m)
	return m
}

// step takes the next entry: a directory to go into, a file to open, or a record that says why not.
func (d *dirReader) step() (*Message, error) {
	if len(d.levels) == 0 {
		return nil, io.EOF
	}
	top := &d.levels[len(d.levels)-1]
	if len(top.entries) == 0 {
		d.levels = d.levels[:len(d.levels)-1]
		return nil, nil
	}
	e := top.entries[0]
	top.entries = top.entries[1:]
	rel := e.name
	if top.rel != "" {
		rel = top.rel + "/" + e.name
	}
	inMaildir := top.maildir
	full, parent := below(d.root, rel), below(d.root, top.rel)
	d.member, d.folder = rel, folderName(top.rel)
	switch {
	case e.mode.IsDir():
		mailbox := (e.name == "cur" || e.name == "new") && isMaildir(d.src.files, parent)
		if e.name == "tmp" && isMaildir(d.src.files, parent) || ignored(e.name) && !isMaildir(d.src.files, full) {
			return nil, nil
		}
		if err := d.push(rel, mailbox); err != nil {
			return d.failed(err), nil
		}
		return nil, nil
	case ignored(e.name):
		return nil, nil
	case e.mode&fs.ModeSymlink != 0:
		m := &Message{Reject: NewReject(CodeSymlink, "symbolic links are not followed")}
		d.place(m)
		return m, nil
	case !e.mode.IsRegular():
		return nil, nil
	}
	return d.open(full, inMaildir), nil
}

// open starts reading a file; a record comes back when that fails.
func (d *dirReader) open(full string, maildir bool) *Message {
	f, err := d.src.files.Open(full)
	if err != nil {
		return d.failed(err)
	}
	d.file = f
	format := FormatAuto
	if maildir {
		format = FormatEML
	}
	d.src.hash.Write([]byte(d.member + "\x00"))
	rr, found, err := openRecords(d.src.track(f), d.member, d.options, 0, format)
	if err != nil {
		d.closeFile()
		return d.failed(err)
	}
	if found == FormatMbox && d.folder == "" {
		d.folder = mailboxName(d.member)
	}
	if maildir {
		rr = flagged{rr, maildirFilter(d.member)}
	}
	d.inner = rr
	return nil
}

func (d *dirReader) closeFile() {
	if d.inner != nil {
		closeRecords(d.inner)
		d.inner = nil
	}
	if d.file != nil {
		_, _ = io.Copy(io.Discard, d.src.track(d.file)) // the rest belongs to the digest too
		d.file.Close()
		d.file = nil
	}
}

func (d *dirReader) close() { d.closeFile() }

// flagged marks the records of a Maildir file by the flags in its name.
type flagged struct {
	recordReader
	filter Code
}

func (f flagged) next() (*Message, error) {
	m, err := f.recordReader.next()
	if m != nil && f.filter != "" {
		m.Filtered = f.filter
	}
	return m, err
}

func maildirFilter(name string) Code {
	_, flags, ok := strings.Cut(name, ":2,")
	if !ok {
		_, flags, _ = strings.Cut(name, ";2,") // file systems without colons
	}
	switch {
	case strings.Contains(flags, "T"):
		return CodeDeleted
	case strings.Contains(flags, "D"):
		return CodeDraft
	}
	return ""
}

// ignored names files that are no mail and that nobody put there as mail: dot files, indexes of
// mail programs, metadata of archivers.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "dovecot") || name == "__MACOSX" || name == "Thumbs.db" || name == "maildirfolder" || strings.HasSuffix(name, ".msf")
}

// folderName is the label that a path of folders gives: without the cur and new of a Maildir,
// without the dot of Maildir++.
func folderName(rel string) string {
	var parts []string
	for _, p := range strings.Split(rel, "/") {
		if p != "cur" && p != "new" && p != "" && p != "." {
			parts = append(parts, strings.TrimPrefix(p, "."))
		}
	}
	return strings.Join(parts, "/")
}

// mailboxName is the label that a mailbox file gives: its name without extensions.
func mailboxName(member string) string {
	name := member[strings.LastIndexByte(member, '/')+1:]
	for _, ext := range [...]string{".gz", ".zst", ".bz2", ".mbox", ".mbx"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
