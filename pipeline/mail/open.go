package mail

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// A SourceError says why an export cannot be used: what is wrong and what to do.
type SourceError struct {
	Source string
	What   string
	Do     string
}

func (e *SourceError) Error() string {
	s := e.Source + ": " + e.What
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

// recordReader yields the records of one stream; io.EOF after the last, any other error when the
// stream broke off or cannot be used.
type recordReader interface{ next() (*Message, error) }

type emptyReader struct{}

func (emptyReader) next() (*Message, error) { return nil, io.EOF }

func closeRecords(r recordReader) {
	if f, ok := r.(flagged); ok {
		r = f.recordReader
	}
	if c, ok := r.(interface{ close() }); ok {
		c.close()
	}
}

// A Reader streams the messages of one or more exports. Next and Close belong to one goroutine;
// BytesRead and TotalBytes may be called from any.
type Reader struct {
	ctx     context.Context
	options Options
	paths   []string
	names   []string
	total   int64
	sources []Source
	cur     *openSource
	read    atomic.Int64
}

// openSource is the export being read.
type openSource struct {
	files FileSystem
	lost  error // what a remote file system failed with
	file  fs.File
	size  int64     // of the file when it was opened; 0: unknown
	time  time.Time // of its last change then
	raw   io.Reader // counted and hashed
	hash  hash.Hash
	bytes int64
	read  *atomic.Int64
	rr    recordReader
	info  *Source
	zip   bool
}

// Open prepares to read exports: files, folders or "-" for standard input. It fails on a path that
// is not there; what a file holds is found out by Next.
func Open(ctx context.Context, paths []string, o Options) (*Reader, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("no export given")
	}
	o.Limits = o.Limits.OrDefault()
	r := &Reader{ctx: ctx, options: o, paths: paths, names: SourceNames(paths)}
	known := true
	for _, p := range paths {
		if p == "-" {
			known = false
			continue
		}
		files, name, err := o.locate(ctx, p)
		if err != nil {
			return nil, err
		}
		st, err := files.Stat(name)
		if _, local := files.(machine); err != nil && !local {
			return nil, err
		}
		if err != nil {
			return nil, &SourceError{Source: p, What: plainOSError(err), Do: "check the path"}
		}
		if st.IsDir() {
			r.total += dirBytes(files, name)
		} else {
			r.total += st.Size()
		}
	}
	if !known {
		r.total = 0
	}
	return r, nil
}

func plainOSError(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		return "no permission to read it"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// dirBytes adds up the files of a folder, as far as they can be seen: what cannot is said when it is
// to be read.
func dirBytes(files FileSystem, root string) (total int64) {
	list, err := files.ReadDir(root)
	if err != nil {
		return 0
	}
	for _, e := range list {
		switch {
		case e.IsDir():
			total += dirBytes(files, below(root, e.Name()))
		case e.Type().IsRegular():
			if st, err := e.Info(); err == nil {
				total += st.Size()
			}
		}
	}
	return total
}

// SourceNames are the names that the sources of paths get: the base names, with the parent folder where
// two have the same.
func SourceNames(paths []string) []string {
	names := make([]string, len(paths))
	count := make(map[string]int)
	for i, p := range paths {
		if names[i] = filepath.Base(filepath.Clean(p)); p == "-" {
			names[i] = "stdin"
		}
		count[names[i]]++
	}
	for i, p := range paths {
		if count[names[i]] > 1 && p != "-" {
			names[i] = filepath.Base(filepath.Dir(filepath.Clean(p))) + "/" + names[i]
		}
	}
	return names
}

// BytesRead is the number of stored bytes read so far.
func (r *Reader) BytesRead() int64 { return r.read.Load() }

// TotalBytes is the number of stored bytes of all exports; 0 when unknown.
func (r *Reader) TotalBytes() int64 { return r.total }

// Sources returns what is known about each export opened so far; digests are complete after io.EOF.
func (r *Reader) Sources() []Source { return append([]Source(nil), r.sources...) }

// Close releases what is open. It may be called at any time.
func (r *Reader) Close() error {
	if r.cur != nil {
		r.cur.close()
		r.cur = nil
	}
	r.paths = nil
	return nil
}

// Next returns the next record; io.EOF after the last. A record that cannot be used is a Message
// with Reject set. An error is fatal: a *SourceError when an export cannot be used at all, or the
// context's. A source that breaks off ends early and is marked Incomplete.
func (r *Reader) Next() (*Message, error) {
	for {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if r.cur == nil {
			if len(r.paths) == 0 {
				return nil, io.EOF
			}
			if err := r.open(); err != nil {
				return nil, err
			}
		}
		src := r.cur.info
		m, err := r.cur.rr.next()
		if r.cur.lost != nil {
			return nil, r.cur.lost
		}
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err() // what was read up to an interrupt may be half a record
		}
		if err == nil {
			src.Seen++
			m.Source, m.RecordNo = src.Name, src.Seen
			return m, nil
		}
		var unusable *SourceError
		if errors.As(err, &unusable) {
			return nil, err
		}
		if err := r.finish(err); err != nil {
			return nil, err
		}
	}
}

// finish ends the current source after err, io.EOF or a fault.
func (r *Reader) finish(err error) error {
	cur := r.cur
	src := cur.info
	if err != io.EOF {
		src.Incomplete = true
		src.Fault = err.Error()
		src.IncompleteAt = faultOffset(cur.rr)
	}
	cur.complete()
	cur.compare()
	cur.close()
	r.cur = nil
	if cur.lost != nil {
		return cur.lost
	}
	if src.Seen == 0 && !src.Incomplete {
		return &SourceError{Source: src.Name, What: "no messages in it", Do: "check that it is the right export"}
	}
	return nil
}

// faultOffset is how far the uncompressed stream came.
func faultOffset(rr recordReader) int64 {
	switch rr := rr.(type) {
	case *mboxReader:
		return rr.s.off
	case *csvReader:
		return rr.t.s.off
	case *jsonReader:
		return rr.s.off
	case *emlReader:
		return rr.s.off
	case *tarReader:
		return rr.s.off
	}
	return 0
}

// track hashes and counts what is read from f.
func (s *openSource) track(f io.Reader) io.Reader { return &tracked{f, s} }

type tracked struct {
	r io.Reader
	s *openSource
}

func (t *tracked) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.s.hash.Write(p[:n])
	t.s.bytes += int64(n)
	t.s.read.Add(int64(n))
	if err == io.EOF && t.s.bytes < t.s.size {
		// The end of a file that somebody cut is not the end of the export.
		err = fmt.Errorf("the file shrank while it was read: it had %d bytes, the end came after %d", t.s.size, t.s.bytes)
	}
	return n, err
}

// compare says whether the file changed under the reader's hands.
func (s *openSource) compare() {
	if s.file == nil || s.time.IsZero() {
		return
	}
	st, err := s.file.Stat()
	switch {
	case err != nil:
	case st.Size() > s.size:
		s.info.Changed = fmt.Sprintf("grew from %d to %d bytes while it was read; evaluated are the first %d", s.size, st.Size(), s.bytes)
	case st.Size() < s.size:
		s.info.Changed = fmt.Sprintf("shrank from %d to %d bytes while it was read; evaluated are the first %d", s.size, st.Size(), s.bytes)
	case !st.ModTime().Equal(s.time):
		s.info.Changed = "was written to while it was read; evaluated is a mixture of old and new"
	}
}

func (r *Reader) open() error {
	p, name := r.paths[0], r.names[0]
	r.paths, r.names = r.paths[1:], r.names[1:]
	r.sources = append(r.sources, Source{Name: name})
	src := &openSource{hash: sha256.New(), read: &r.read, info: &r.sources[len(r.sources)-1]}
	r.cur = src
	err := src.open(r.ctx, p, name, &r.options)
	if src.lost != nil {
		err = src.lost
	}
	if err != nil {
		src.close()
		r.cur = nil
		if src.lost != nil {
			return err
		}
		var unusable *SourceError
		if !errors.As(err, &unusable) {
			err = &SourceError{Source: name, What: strings.TrimPrefix(err.Error(), name+": ")}
		}
	}
	return err
}

func (s *openSource) open(ctx context.Context, p, name string, o *Options) error {
	if p == "-" {
		s.raw = s.track(newPipe(ctx, os.Stdin))
		return s.records(name, o)
	}
	var err error
	if s.files, p, err = o.locate(ctx, p); err != nil {
		return err
	}
	if _, local := s.files.(machine); !local {
		s.files = watched{s.files, &s.lost}
	}
	st, err := s.files.Stat(p)
	if err != nil {
		return &SourceError{Source: name, What: plainOSError(err)}
	}
	if st.IsDir() {
		d := &dirReader{root: p, options: o, src: s}
		s.info.Format = FormatFolder
		mailbox := isMaildir(s.files, p)
		if mailbox {
			s.info.Format = FormatMaildir
		}
		s.rr = d
		return d.push("", false)
	}
	if s.file, err = s.files.Open(p); err != nil {
		return &SourceError{Source: name, What: plainOSError(err)}
	}
	if _, local := s.files.(machine); local && st.Mode().IsRegular() {
		if st, err = s.file.Stat(); err != nil {
			return &SourceError{Source: name, What: plainOSError(err)}
		}
		s.size, s.time = st.Size(), st.ModTime()
	}
	head := make([]byte, 4)
	parts, ok := s.file.(io.ReaderAt)
	if !ok {
		s.raw = s.track(s.file)
		return s.records(name, o)
	}
	if n, _ := parts.ReadAt(head, 0); n == 4 && detectFormat(head, "") == FormatZip && (o.Format == FormatAuto || o.Format == FormatZip) {
		z, err := newZipReader(parts, st.Size(), o, 0)
		if err != nil {
			return err
		}
		z.src = s
		s.rr, s.zip, s.info.Format = z, true, FormatZip
		return nil
	}
	s.raw = s.track(s.file)
	return s.records(name, o)
}

func (s *openSource) records(name string, o *Options) error {
	r, how, err := unpack(s.raw, name, &o.Limits)
	if err != nil {
		return &SourceError{Source: name, What: strings.TrimPrefix(err.Error(), name+": ")}
	}
	s.info.Compression = how
	in := newStream(r)
	if !in.fill(1) && in.fault() == nil {
		s.rr = emptyReader{}
		return nil
	}
	rr, format, err := openStream(in, innerName(name, how), o, 0, o.Format)
	if err != nil {
		return err
	}
	s.rr, s.info.Format = rr, format
	return nil
}

// innerName is a name without the extension of its compression.
func innerName(name, how string) string {
	if how == "" {
		return name
	}
	for _, ext := range [...]string{".gz", ".zst", ".zstd", ".bz2"} {
		if inner, ok := strings.CutSuffix(name, ext); ok {
			return inner
		}
	}
	if inner, ok := strings.CutSuffix(name, ".tgz"); ok {
		return inner + ".tar"
	}
	return name
}

// complete reads what no record needed, so that digest and size cover the whole file.
func (s *openSource) complete() {
	if parts, ok := s.file.(io.ReaderAt); ok && s.zip {
		s.bytes, _ = io.Copy(s.hash, io.NewSectionReader(parts, 0, 1<<62))
	} else if s.raw != nil {
		_, _ = io.Copy(io.Discard, s.raw)
	}
	s.info.Bytes, s.info.SHA256 = s.bytes, hex.EncodeToString(s.hash.Sum(nil))
}

func (s *openSource) close() {
	if s.rr != nil {
		closeRecords(s.rr)
	}
	if s.file != nil {
		s.file.Close()
	}
}

// openRecords is openStream for a member of a folder or archive, which may be compressed itself.
func openRecords(r io.Reader, name string, o *Options, depth int, f Format) (recordReader, Format, error) {
	r, how, err := unpack(r, name, &o.Limits)
	if err != nil {
		return nil, "", &damage{err}
	}
	switch {
	case f != FormatAuto:
	case o.Format != FormatFolder && o.Format != FormatMaildir && o.Format != FormatZip && o.Format != FormatTar:
		f = o.Format
	}
	return openStream(newStream(r), innerName(name, how), o, depth, f)
}

// errUnknownFormat says that nothing known was recognised.
var errUnknownFormat = errors.New("the format is not recognised")

func openStream(s *stream, name string, o *Options, depth int, f Format) (recordReader, Format, error) {
	s.fill(detectBytes)
	w := s.window()
	if len(w) == 0 && s.fault() != nil {
		return nil, "", s.fault()
	}
	found := detectFormat(w, name)
	if f == FormatAuto || found == FormatZip || found == FormatTar {
		f = found
	}
	if (f == FormatZip || f == FormatTar) && depth >= o.Limits.ArchiveDepth {
		return nil, f, &limitError{NewLimit(CodeArchiveDepth, "an archive inside too many archives", "archive_depth", int64(o.Limits.ArchiveDepth), int64(depth+1))}
	}
	switch f {
	case FormatMbox, FormatMboxo, FormatMboxrd, FormatMboxcl:
		return newMboxReader(s, f, &o.Limits), FormatMbox, nil
	case FormatCSV:
		rr, err := newCSVReader(s, name, o)
		return rr, f, err
	case FormatJSON, FormatJSONL:
		j := newJSONReader(s, f, o)
		if f = FormatJSON; j.lines {
			f = FormatJSONL
		}
		return j, f, nil
	case FormatEML:
		s.most = int(o.Limits.MessageBytes)
		return &emlReader{s: s, limits: &o.Limits}, f, nil
	case FormatTar:
		return newTarReader(s, o, depth), f, nil
	case FormatZip:
		z, err := spoolZip(s, o, depth)
		if err != nil {
			return nil, f, err
		}
		return z, f, nil
	}
	return nil, "", fmt.Errorf("%s: %w as mbox, mail, CSV, JSON or an archive of them; name it with --format", name, errUnknownFormat)
}

type limitError struct{ reject *Reject }

func (e *limitError) Error() string { return e.reject.Detail }

// rejectOf turns an error of one member into a reject.
func rejectOf(err error) *Reject {
	var limit *limitError
	var dmg *damage
	var pe *fs.PathError
	var unusable *SourceError
	switch {
	case errors.As(err, &limit):
		return limit.reject
	case errors.Is(err, errExpansion):
		return NewLimit(CodeExpansion, err.Error(), "expansion", DefaultLimits().Expansion, 0)
	case errors.As(err, &dmg), errors.Is(err, tar.ErrHeader):
		return NewReject(CodeDamaged, err.Error())
	case errors.Is(err, errUnknownFormat):
		return NewReject(CodeUnknownFormat, "not mail, mbox, CSV or JSON")
	case errors.As(err, &pe):
		return NewReject(CodeUnreadable, plainOSError(err))
	case errors.As(err, &unusable):
		return NewReject(CodeUnknownFormat, unusable.What)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return NewReject(CodeTruncated, err.Error())
	}
	return NewReject(CodeDamaged, err.Error())
}

// An emlReader reads a stream that is one message.
type emlReader struct {
	s      *stream
	limits *Limits
	done   bool
}

func (e *emlReader) next() (*Message, error) {
	if e.done {
		if err := e.s.fault(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	e.done = true
	m := &Message{Format: FormatEML}
	n := 0
	for e.s.fill(n + 1) {
		n = len(e.s.window())
		if int64(n) > e.limits.MessageBytes {
			break
		}
	}
	if int64(n) > e.limits.MessageBytes {
		for e.s.fill(1) {
			e.s.advance(len(e.s.window()))
		}
		m.Length = e.s.off
		m.Reject = NewLimit(CodeMessageBytes, "message larger than the limit", "message_bytes", e.limits.MessageBytes, m.Length)
		return m, nil
	}
	raw := e.s.window()
	m.Length = int64(len(raw))
	e.s.advance(len(raw))
	switch {
	case e.s.fault() != nil:
		m.Reject = NewReject(CodeTruncated, e.s.fault().Error())
	case blank(raw):
		m.Reject = NewReject(CodeEmptyRecord, "the file is empty")
	default:
		m.Raw = bytes.Clone(raw)
		m.Filtered = filterOf(m.Raw)
	}
	return m, nil
}
