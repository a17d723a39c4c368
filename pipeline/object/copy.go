package object

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
)

// sha256Field is the metadata in which Put leaves the digest of an object.
const sha256Field = "Sha256"

// Fetch copies one object to a new file, readable by its owner alone. expect is what a listing said of
// it; an object that is another one by now is refused. The content is checked against its length, the
// digest that Put left, and the ETag where that is an MD5. It returns the SHA-256 (hex).
func (s *Store) Fetch(ctx context.Context, from Address, expect Info, to string) (digest string, err error) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	in := &file{ctx: ctx, store: s, where: from, info: expect, known: true}
	defer in.Close()
	sum, old := sha256.New(), md5.New()
	n, err := io.CopyBuffer(io.MultiWriter(out, sum, old), struct{ io.Reader }{in}, make([]byte, 256<<10))
	if err != nil {
		return "", err
	}
	digest = hex.EncodeToString(sum.Sum(nil))
	damaged := func(what string) error {
		return &Error{Where: from.String(), What: "what came is not what is stored: its " + what + " differs", Do: "try again; if it stays so, write the object anew"}
	}
	switch {
	case n != expect.Bytes:
		return "", damaged("length")
	case in.info.sha256 != "" && in.info.sha256 != digest:
		return "", damaged("SHA-256")
	case in.info.md5 && !strings.EqualFold(in.info.ETag, hex.EncodeToString(old.Sum(nil))):
		return "", damaged("MD5")
	}
	return digest, nil
}

// putTries is how often a whole file is sent, each of its requests being tried by itself as well.
const putTries = 3

// Put stores a file, with its SHA-256 beside it. The object is there whole or not at all.
func (s *Store) Put(ctx context.Context, file string, to Address) error {
	digest, size, err := digestOf(file)
	if err != nil {
		return err
	}
	for failures := 1; ; failures++ {
		err := s.put(ctx, file, size, to, digest)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		var answer minio.ErrorResponse
		refused := errors.As(err, &answer) && answer.StatusCode >= 400 && answer.StatusCode < 500 && answer.Code != "NoSuchUpload" && answer.Code != "BadDigest"
		if failures == putTries || refused || ctx.Err() != nil {
			return s.explain(to, err)
		}
		if err := s.wait(ctx, failures); err != nil {
			return s.explain(to, err)
		}
	}
}

func (s *Store) put(ctx context.Context, file string, size int64, to Address, digest string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := s.client.Client.PutObject(ctx, to.Bucket, to.Key, f, size, minio.PutObjectOptions{
		UserMetadata: map[string]string{sha256Field: digest}, ContentType: contentType(file),
		// The MD5 is signed and every store checks it, where newer checksums and signed pieces are known to
		// some stores only.
		SendContentMd5: true, DisableContentSha256: true,
	})
	if err == nil && got.Size != size {
		err = fmt.Errorf("%d of %d bytes were stored", got.Size, size)
	}
	return err
}

func digestOf(file string) (digest string, size int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// contentType is for browsers: a report opens as a page.
func contentType(file string) string {
	switch filepath.Ext(file) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".json":
		return "application/json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	}
	return "application/octet-stream"
}

// Remove deletes an object; one that is not there is no error.
func (s *Store) Remove(ctx context.Context, where Address) error {
	err := s.client.RemoveObject(ctx, where.Bucket, where.Key, minio.RemoveObjectOptions{})
	return s.explain(where, err)
}

// Publish puts the files of a folder, marker last: as long as the marker is missing, what stands there
// is not finished. A marker of older files is taken away first. Folders in it are left out.
func (s *Store) Publish(ctx context.Context, folder string, to Address, marker string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	if _, err := s.Stat(ctx, to.In(marker)); !errors.Is(err, fs.ErrNotExist) {
		if err := s.Remove(ctx, to.In(marker)); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != marker {
			if err := s.Put(ctx, filepath.Join(folder, e.Name()), to.In(e.Name())); err != nil {
				return err
			}
		}
	}
	return s.Put(ctx, filepath.Join(folder, marker), to.In(marker))
}
