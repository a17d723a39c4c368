package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Bucket is a bucket as a file system: prefixes that end in a slash are its folders. Names are keys as
// they are stored; a folder's may end in a slash or not. It is bound to a context.
type Bucket struct {
	ctx   context.Context
	store *Store
	name  string
	ahead ahead
}

// Bucket gives the bucket of that name; whether it is there shows when it is used.
func (s *Store) Bucket(ctx context.Context, name string) *Bucket {
	return &Bucket{ctx: ctx, store: s, name: name}
}

// Open opens an object to be read; the store is asked at the first read. Several reads at a time are
// one after the other. Whoever opens the objects of a folder in the order of ReadDir finds the small ones
// read already.
func (b *Bucket) Open(name string) (fs.File, error) {
	if e := b.ahead.take(b, name); e != nil {
		if f, err := e.file(); f != nil || err != nil {
			return f, err
		}
	}
	return &file{ctx: b.ctx, store: b.store, where: Address{b.name, name}}, nil
}

// Stat says what name is: an object, or else a folder with something in it.
func (b *Bucket) Stat(name string) (fs.FileInfo, error) {
	where := Address{b.name, name}
	if name != "" && !strings.HasSuffix(name, "/") {
		info, err := b.store.Stat(b.ctx, where)
		if !errors.Is(err, fs.ErrNotExist) {
			return info.stat(), err
		}
		name += "/"
	}
	for _, err := range b.store.list(b.ctx, Address{b.name, name}, true) {
		if err != nil {
			return nil, err
		}
		return Info{Name: strings.TrimSuffix(name, "/"), folder: true}.stat(), nil
	}
	if name == "" {
		return Info{folder: true}.stat(), nil
	}
	return nil, &Error{Where: where.String(), What: "neither an object nor a prefix with objects", Do: "check the key", kind: fs.ErrNotExist}
}

// ReadDir lists a folder in the order of names.
func (b *Bucket) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "" && !strings.HasSuffix(name, "/") {
		name += "/"
	}
	var list []fs.DirEntry
	var files []listed
	for info, err := range b.store.list(b.ctx, Address{b.name, name}, false) {
		if err != nil {
			return nil, err
		}
		list = append(list, fs.FileInfoToDirEntry(info.stat()))
		if !info.folder {
			files = append(files, listed{info.Name, info.Bytes})
		}
	}
	slices.SortFunc(list, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	slices.SortFunc(files, func(x, y listed) int { return strings.Compare(x.name, y.name) })
	b.ahead.push(name, files)
	return list, nil
}

// Stat asks for one object. An error unwraps to fs.ErrNotExist where there is none.
func (s *Store) Stat(ctx context.Context, where Address) (Info, error) {
	o, err := s.client.StatObject(ctx, where.Bucket, where.Key, minio.StatObjectOptions{})
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && (answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusForbidden) {
		err = s.reason(ctx, where, err)
	}
	if err != nil {
		return Info{}, s.explain(where, err)
	}
	return infoOf(o), nil
}

// reason asks for the first byte where an answer to HEAD was refused: that answer has no body, and so
// does not say why.
func (s *Store) reason(ctx context.Context, where Address, err error) error {
	var o minio.GetObjectOptions
	if e := o.SetRange(0, 0); e != nil {
		return err
	}
	body, _, _, why := s.client.GetObject(ctx, where.Bucket, where.Key, o)
	if why != nil {
		return why
	}
	body.Close()
	return err
}

// List lists the objects of a folder and the names of the folders in it, both by name.
func (s *Store) List(ctx context.Context, folder Address) (files []Info, folders []string, err error) {
	for info, err := range s.list(ctx, folder.In(""), false) {
		switch {
		case err != nil:
			return nil, nil, err
		case info.folder:
			folders = append(folders, info.Name)
		default:
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(x, y Info) int { return strings.Compare(x.Name, y.Name) })
	slices.Sort(folders)
	return files, folders, nil
}

// list goes over what stands below a prefix, all of it or one level. Names are those below the prefix.
// A key that no folder could hold is an error: what it names would be lost silently.
func (s *Store) list(ctx context.Context, prefix Address, all bool) func(func(Info, error) bool) {
	return func(yield func(Info, error) bool) {
		owner := false
		o := minio.ListObjectsOptions{Prefix: prefix.Key, Recursive: all, FetchOwner: &owner}
		for found := range s.client.ListObjectsIter(ctx, prefix.Bucket, o) {
			if found.Err != nil {
				err := found.Err
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				yield(Info{}, s.explain(prefix, err))
				return
			}
			info := infoOf(found)
			info.Name = strings.TrimPrefix(found.Key, prefix.Key)
			if info.Name == "" && info.Bytes == 0 {
				continue // the mark that some tools leave for an empty folder
			}
			if !all {
				info.Name, info.folder = strings.CutSuffix(info.Name, "/")
			}
			if !all && (info.Name == "" || info.Name == "." || info.Name == "..") {
				yield(Info{}, &Error{Where: prefix.String(), What: fmt.Sprintf("the key %q is no file of a folder", found.Key), Do: "name the objects one by one"})
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Info{}, s.explain(prefix, err))
		}
	}
}

// Match lists the addresses that a pattern means, by name: *, ? and [a-z] stand for parts of a name and
// match no slash. An address without them, or of an object whose key has them, stands for itself.
func (s *Store) Match(ctx context.Context, pattern Address) ([]Address, error) {
	i := strings.IndexAny(pattern.Key, "*?[")
	if i < 0 {
		return []Address{pattern}, nil
	}
	if _, err := s.Stat(ctx, pattern); err == nil {
		return []Address{pattern}, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := path.Match(pattern.Key, ""); err != nil {
		return nil, &Error{Where: pattern.String(), What: "a [ without its ]", Do: "write [[] for a plain one"}
	}
	var found []Address
	prefix := Address{pattern.Bucket, pattern.Key[:i]}
	for info, err := range s.list(ctx, prefix, true) {
		if err != nil {
			return nil, err
		}
		key := prefix.Key + info.Name
		if ok, _ := path.Match(pattern.Key, key); ok { // its only error was looked for above
			found = append(found, Address{pattern.Bucket, key})
		}
	}
	if len(found) == 0 {
		return nil, &Error{Where: pattern.String(), What: "matches no object", Do: "check the pattern", kind: fs.ErrNotExist}
	}
	slices.SortFunc(found, func(x, y Address) int { return strings.Compare(x.Key, y.Key) })
	return found, nil
}

func (i Info) stat() fs.FileInfo { return stat{i} }

// stat is an Info as the file system has it.
type stat struct{ Info }

func (s stat) Name() string       { return s.Info.Name[strings.LastIndexByte(s.Info.Name, '/')+1:] }
func (s stat) Size() int64        { return s.Bytes }
func (s stat) ModTime() time.Time { return s.Modified }
func (s stat) IsDir() bool        { return s.folder }
func (s stat) Sys() any           { return s.Info }
func (s stat) Mode() fs.FileMode {
	if s.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
