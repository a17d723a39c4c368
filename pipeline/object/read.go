package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// Info is what is known of an object without reading it.
type Info struct {
	Name     string // the last part of the key, or the key below the listed prefix
	Bytes    int64
	ETag     string
	Modified time.Time
	folder   bool
	sha256   string // as the writer left it in the object's metadata; empty: unknown
	md5      bool   // the ETag is the MD5 of the content
}

// file is an object that is being read, from the first byte on or from any other. One stream is open
// at a time; reading on where the last read ended costs no new request.
type file struct {
	mu     sync.Mutex
	ctx    context.Context
	store  *Store
	where  Address
	info   Info
	known  bool // info is of the object that is read
	at     int64
	body   io.ReadCloser
	dog    *watchdog
	offset int64 // of Read
}

// Read reads on.
func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.read(p, f.offset)
	f.offset += int64(n)
	return n, err
}

// ReadAt fills p from byte off on.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n < len(p) && err == nil {
		var m int
		m, err = f.read(p[n:], off+int64(n))
		n += m
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}

// Stat asks the store, unless the object was read from already.
func (f *file) Stat() (fs.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known {
		if err := f.open(0); err != nil {
			return nil, err
		}
	}
	return f.info.stat(), nil
}

// Close ends the stream.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
	return nil
}

func (f *file) drop() {
	if f.body != nil {
		f.dog.stop()
		f.dog.cancel()
		f.body.Close() // the bytes that were wanted have come; its error tells nothing
		f.body = nil
	}
}

// nearby is a gap that is cheaper to read over than to ask anew for what comes after it.
const nearby = 256 << 10

// read reads some bytes from off on. It goes on by itself where the stream is cut.
func (f *file) read(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for failures := 0; ; {
		n, err := f.try(p, off)
		if n > 0 || err == nil || err == io.EOF {
			return n, err
		}
		f.drop()
		var final *Error
		if errors.As(err, &final) { // the store answered, or could not be reached for a while
			return 0, err
		}
		if failures++; failures >= readTries {
			return 0, f.store.explain(f.where, fmt.Errorf("cut %d times at byte %d: %w", failures, off, err))
		}
		if err := f.store.wait(f.ctx, failures); err != nil {
			return 0, f.store.explain(f.where, err)
		}
	}
}

// try is read with the stream that is open, or one new one.
func (f *file) try(p []byte, off int64) (int, error) {
	if f.known && f.info.Bytes >= 0 && off >= f.info.Bytes {
		f.drop()
		return 0, io.EOF
	}
	if f.body != nil && f.at < off && off-f.at <= nearby {
		f.dog.start(f.store.stall)
		n, err := io.CopyN(io.Discard, f.body, off-f.at)
		f.dog.stop()
		if f.at += n; err != nil {
			f.drop()
		}
	}
	if f.body != nil && f.at != off {
		f.drop()
	}
	if f.body == nil {
		if err := f.open(off); err != nil {
			return 0, err
		}
		if f.info.Bytes >= 0 && off >= f.info.Bytes {
			f.drop()
			return 0, io.EOF
		}
	}
	f.dog.start(f.store.stall)
	n, err := f.body.Read(p)
	f.dog.stop()
	f.at += int64(n)
	switch {
	case f.ctx.Err() != nil:
		return n, f.store.explain(f.where, f.ctx.Err())
	case err == io.EOF && (f.info.Bytes < 0 || f.at == f.info.Bytes):
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case errors.Is(err, context.Canceled): // by the watchdog
		err = fmt.Errorf("no byte for %s", f.store.stall)
	}
	if err != nil && n > 0 {
		f.drop() // what came is good; the next read goes on behind it
		return n, nil
	}
	return n, err
}

// open starts the stream at off, of the same object as before.
func (f *file) open(off int64) error {
	var o minio.GetObjectOptions
	if off > 0 {
		if err := o.SetRange(off, 0); err != nil {
			return err
		}
	}
	if f.known && f.info.ETag != "" && !strings.Contains(f.info.ETag, `"`) {
		if err := o.SetMatchETag(f.info.ETag); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(f.ctx)
	body, got, header, err := f.store.client.GetObject(ctx, f.where.Bucket, f.where.Key, o)
	if err != nil {
		cancel()
		if f.ctx.Err() != nil {
			err = f.ctx.Err()
		}
		return f.store.explain(f.where, err)
	}
	info := infoOf(got)
	if off > 0 {
		info.Bytes, err = rangeOf(header.Get("Content-Range"), off)
		if err != nil {
			cancel()
			body.Close()
			return &Error{Where: f.where.String(), What: err.Error(), Do: "copy the object to this machine first"}
		}
	}
	if f.known && !f.info.same(&info) {
		cancel()
		body.Close()
		return &Error{Where: f.where.String(), What: ErrChanged.Error(), Do: "start over with an object that stays as it is", kind: ErrChanged}
	}
	f.info, f.known = info, true
	f.body, f.at, f.dog = body, off, &watchdog{cancel: cancel}
	return nil
}

// rangeOf reads "bytes 5-9/10" and returns the 10.
func rangeOf(header string, off int64) (int64, error) {
	span, total, ok := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	from, _, ok2 := strings.Cut(span, "-")
	start, err := strconv.ParseInt(from, 10, 64)
	if !ok || !ok2 || err != nil || start != off {
		return 0, fmt.Errorf("the store does not give a part of an object (asked from byte %d on, got %q)", off, header)
	}
	if total == "*" {
		return -1, nil
	}
	n, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the store gives a range without a length (%q)", header)
	}
	return n, nil
}

// same says whether two answers are about the same content.
func (i *Info) same(other *Info) bool {
	return i.ETag == other.ETag && (i.Bytes == other.Bytes || i.Bytes < 0 || other.Bytes < 0) && (i.ETag != "" || i.Modified.Equal(other.Modified))
}

func infoOf(o minio.ObjectInfo) Info {
	i := Info{Name: o.Key, Bytes: o.Size, ETag: o.ETag, Modified: o.LastModified, sha256: o.UserMetadata[sha256Field]}
	kind := o.Headers.Get("X-Amz-Server-Side-Encryption")
	i.md5 = len(i.ETag) == 32 && !strings.ContainsAny(i.ETag, `-"`) && (kind == "" || kind == "AES256") &&
		o.Headers.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") == "" && len(o.Headers) > 0
	return i
}
