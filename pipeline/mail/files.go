package mail

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A FileSystem holds exports. Names have slashes. Where its files are io.ReaderAt as well, a zip is read
// without a copy.
type FileSystem interface {
	fs.StatFS
	fs.ReadDirFS
}

// machine is this machine's file system; names are paths.
type machine struct{}

func (machine) Open(name string) (fs.File, error) { return os.Open(filepath.FromSlash(name)) }

func (machine) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.FromSlash(name)) }

func (machine) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.FromSlash(name))
}

// locate finds the file system of an export, and its name there.
func (o *Options) locate(ctx context.Context, path string) (FileSystem, string, error) {
	if o.Remote != nil {
		if fsys, name, err := o.Remote(ctx, path); fsys != nil || err != nil {
			return fsys, name, err
		}
	}
	return machine{}, filepath.ToSlash(path), nil
}

// below is the name of rel in a folder.
func below(folder, rel string) string {
	if rel == "" {
		return folder
	}
	if folder == "" || strings.HasSuffix(folder, "/") {
		return folder + rel
	}
	return folder + "/" + rel
}

// watched remembers the first failure of a remote file system. On this machine a file that cannot be
// read is a record of its own kind, and the rest goes on; a store that fails takes everything with it,
// and a run without the messages behind it would pass for a whole one.
type watched struct {
	FileSystem
	lost *error
}

func (w watched) note(err error) error {
	if err != nil && err != io.EOF && !errors.Is(err, fs.ErrNotExist) && *w.lost == nil {
		*w.lost = err
	}
	return err
}

func (w watched) Open(name string) (fs.File, error) {
	f, err := w.FileSystem.Open(name)
	file := &watchedFile{f, w}
	if err != nil {
		return nil, file.note(err)
	}
	return file, nil
}

func (w watched) Stat(name string) (fs.FileInfo, error) {
	st, err := w.FileSystem.Stat(name)
	return st, w.note(err)
}

func (w watched) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := w.FileSystem.ReadDir(name)
	return list, w.note(err)
}

type watchedFile struct {
	fs.File
	w watched
}

// note: a file that is gone when it is read was there when it was listed: that is a failure too.
func (f *watchedFile) note(err error) error {
	if err != nil && err != io.EOF && *f.w.lost == nil {
		*f.w.lost = err
	}
	return err
}

func (f *watchedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	return n, f.note(err)
}

func (f *watchedFile) ReadAt(p []byte, off int64) (int, error) {
	r, ok := f.File.(io.ReaderAt)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	n, err := r.ReadAt(p, off)
	return n, f.note(err)
}
