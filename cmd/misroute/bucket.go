package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/pipeline/mail"
	"misroute/pipeline/object"
)

// buckets is what the verbs share of s3://: the store, and the copies of what they work with. Exports
// are read where they are; everything else is worked with on this machine.
type buckets struct {
	notes  io.Writer // for who waits
	opened *object.Store
	temp   string            // holds the copies of this process; made when first needed
	copies map[string]string // path of a copy -> its address
}

type bucketsKey struct{}

// withBuckets makes a context whose verbs may use buckets. The caller closes them.
func withBuckets(ctx context.Context, notes io.Writer) (context.Context, *buckets) {
	b := &buckets{notes: notes, copies: map[string]string{}}
	return context.WithValue(ctx, bucketsKey{}, b), b
}

func bucketsOf(ctx context.Context) *buckets {
	if b, ok := ctx.Value(bucketsKey{}).(*buckets); ok {
		return b
	}
	return &buckets{notes: io.Discard, copies: map[string]string{}}
}

// longWait is how many bytes are worth a line to whoever waits for them.
const longWait = 64 << 20

// note says what is waited for.
func (b *buckets) note(what string, a object.Address, bytes int64) {
	if bytes >= longWait {
		fmt.Fprintf(b.notes, "misroute: %s %s, %s\n", what, a, megabytes(bytes))
	}
}

// store is the store of the environment.
func (b *buckets) store(ctx context.Context) (*object.Store, error) {
	if b.opened == nil {
		s, err := object.Open(ctx)
		if err != nil {
			return nil, usagef("s3://: %w", err)
		}
		b.opened = s
	}
	return b.opened, nil
}

// at opens the store that an address is in.
func (b *buckets) at(ctx context.Context, path string) (*object.Store, object.Address, error) {
	a, err := object.Parse(path)
	if err != nil {
		return nil, a, usageError(err)
	}
	if base := a.Base(); !filepath.IsLocal(base) || base == "." || strings.ContainsAny(base, `\:`) {
		return nil, a, usagef("%s: %q is no name for a file of this machine; use another key", a, base)
	}
	s, err := b.store(ctx)
	return s, a, err
}

// close removes the copies.
func (b *buckets) close() error {
	if b.temp == "" {
		return nil
	}
	return os.RemoveAll(b.temp)
}

// scratch makes a private folder that is gone with the process; base is the name of a copy in it.
func (b *buckets) scratch(a object.Address) (path string, err error) {
	if b.temp == "" {
		if b.temp, err = os.MkdirTemp("", "misroute-"); err != nil { // readable by its owner alone
			return "", err
		}
	}
	dir, err := os.MkdirTemp(b.temp, "")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, a.Base())
	b.copies[path] = strings.TrimSuffix(a.String(), "/")
	return path, nil
}

// plain names addresses in an error where it names their copies, which are gone when it is read, and
// shows nothing that lets others in: a signed address may have been given for a path.
func (b *buckets) plain(err error) error {
	if err == nil {
		return nil
	}
	s := object.Redact(err.Error())
	for path, address := range b.copies {
		s = strings.ReplaceAll(s, path, address)
	}
	return &reworded{err, s}
}

type reworded struct {
	error
	text string
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.error }

// bucketFlags are the flags that may name something in a bucket, beside the exports and runs that are
// arguments. What is only read is fetched before the verb sees it.
var bucketFlags = map[string]func(*buckets, context.Context, string) (string, error){
	"model":        (*buckets).modelCopy,
	"from":         (*buckets).modelCopy,
	"tokenizer":    (*buckets).tokenizerCopy,
	"only-rejects": (*buckets).runCopy,
	"labels":       (*buckets).fileCopy,
	"groups":       (*buckets).fileCopy,
	"costs":        (*buckets).fileCopy,
	"out":          nil,
	"judge":        nil,
}

// fetchFlags puts copies in the place of the addresses that the flags of a verb name.
func fetchFlags(c *cli.Context) error {
	b := bucketsOf(c.Context)
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		text, ok := f.(*cli.StringFlag)
		if !ok || !object.IsAddress(c.String(name)) {
			continue
		}
		fetch, may := bucketFlags[text.Name]
		switch {
		case !may:
			return usagef("--%s: this has to be on this machine; s3:// may be exports, models, run folders, and files that are read", name)
		case fetch == nil, c.Command.Name == "verify" && name == "model" && c.NArg() < 2: // it needs none to check a run alone
			continue
		}
		path, err := fetch(b, c.Context, c.String(name))
		if err != nil {
			return usageError(err)
		}
		if err := c.Set(name, path); err != nil {
			return err
		}
	}
	return nil
}

// openExports opens exports on this machine and in buckets. Patterns among them are replaced by what
// they mean.
func openExports(ctx context.Context, exports *[]string, o mail.Options) (*mail.Reader, error) {
	if err := matchExports(ctx, exports); err != nil {
		return nil, err
	}
	o.Remote = bucketsOf(ctx).export
	return mail.Open(ctx, *exports, o)
}

// matchExports replaces patterns in buckets by the addresses they mean: on this machine the shell does.
func matchExports(ctx context.Context, exports *[]string) error {
	var list []string
	for _, path := range *exports {
		if !object.IsAddress(path) {
			list = append(list, path)
			continue
		}
		a, err := object.Parse(path)
		if err != nil {
			return err
		}
		s, err := bucketsOf(ctx).store(ctx)
		if err != nil {
			return err
		}
		found, err := s.Match(ctx, a)
		if err != nil {
			return err
		}
		for _, a := range found {
			list = append(list, a.String())
		}
	}
	*exports = list
	return nil
}

// export gives the file system of an export in a bucket.
func (b *buckets) export(ctx context.Context, path string) (mail.FileSystem, string, error) {
	if !object.IsAddress(path) {
		return nil, "", nil
	}
	a, err := object.Parse(path)
	if err != nil {
		return nil, "", err
	}
	s, err := b.store(ctx)
	if err != nil {
		return nil, "", err
	}
	return s.Bucket(ctx, a.Bucket), a.Key, nil
}

// mostFileBytes bounds a file that is fetched whole, such as labels: more than any list of queues has.
const mostFileBytes = 1 << 30

// fileCopy fetches one file.
func (b *buckets) fileCopy(ctx context.Context, path string) (string, error) {
	s, a, err := b.at(ctx, path)
	if err != nil {
		return "", err
	}
	info, err := s.Stat(ctx, a)
	if err != nil {
		return "", err
	}
	if info.Bytes > mostFileBytes {
		return "", fmt.Errorf("%s has %d bytes, more than the %d that are fetched", a, info.Bytes, mostFileBytes)
	}
	to, err := b.scratch(a)
	if err != nil {
		return "", err
	}
	_, err = s.Fetch(ctx, a, info, to)
	return to, err
}

// cacheVariable names the folder for what outlives a process: fetched models, unfinished runs.
const cacheVariable = "MISROUTE_CACHE"

// cacheFolder is a private folder of this machine for what belongs to an address.
func cacheFolder(s *object.Store, kind string, a object.Address) (string, error) {
	root := os.Getenv(cacheVariable)
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no folder to keep copies of what is in a bucket: %w; name one with %s", err, cacheVariable)
		}
		root = filepath.Join(user, "misroute")
	}
	sum := sha256.Sum256([]byte(s.Name() + "\x00" + strings.TrimSuffix(a.String(), "/")))
	dir := filepath.Join(root, kind, hex.EncodeToString(sum[:8]))
	return dir, os.MkdirAll(dir, 0o700)
}

// putFolder makes a folder for the files that belong to path; bring takes them there once they are
// written. On this machine they are there already.
func putFolder(ctx context.Context, path string) (dir string, bring func() error, err error) {
	if !object.IsAddress(path) {
		if err := os.MkdirAll(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return "", nil, usageError(err)
		}
		return path, func() error { return nil }, nil
	}
	b := bucketsOf(ctx)
	s, a, err := b.at(ctx, path)
	if err != nil {
		return "", nil, err
	}
	if dir, err = b.scratch(a); err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	return dir, func() error { return putFiles(ctx, s, dir, a) }, nil
}

func putFiles(ctx context.Context, s *object.Store, dir string, a object.Address) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.Put(ctx, filepath.Join(dir, e.Name()), a.In(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// notThere says whether an error means that nothing is at an address.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// named is the file of that name in a list.
func named(files []object.Info, name string) (object.Info, bool) {
	i := slices.IndexFunc(files, func(f object.Info) bool { return f.Name == name })
	if i < 0 {
		return object.Info{}, false
	}
	return files[i], true
}
