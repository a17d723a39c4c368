package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/gcs"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"

	"misroute/pipeline/result"
	"misroute/pipeline/router"
)

// remote says whether a path names an object of a store, and not a file or folder here. A deployed
// router's URL is neither.
func remote(p string) bool { return strings.Contains(p, "://") && !router.IsURL(p) }

// fetched are the copies that this process has of remote files and folders.
var fetched = struct {
	sync.Mutex
	dir   string
	paths map[string]func() (string, error)
}{paths: map[string]func() (string, error){}}

// fetch gives a local path with the content of p: p itself where it is one, else a copy under the same
// base name, made once a process.
func fetch(ctx context.Context, p string) (string, error) {
	if !remote(p) {
		return p, nil
	}
	fetched.Lock()
	once, known := fetched.paths[p]
	if !known {
		once = sync.OnceValues(func() (string, error) { return download(ctx, p) })
		fetched.paths[p] = once
	}
	fetched.Unlock()
	local, err := once()
	if err != nil { // the next bundle may have more luck
		fetched.Lock()
		delete(fetched.paths, p)
		fetched.Unlock()
		return "", fmt.Errorf("%s: %w", p, err)
	}
	return local, nil
}

// fetchAnew is fetch for what may have changed since it was fetched.
func fetchAnew(ctx context.Context, p string) (string, error) {
	if !remote(p) {
		return p, nil
	}
	return download(ctx, p)
}

// download copies a file, or the files of a folder.
func download(ctx context.Context, p string) (string, error) {
	dir, err := fetchedDir()
	if err != nil {
		return "", err
	}
	fs, err := filesystem.New(ctx, p)
	if err != nil {
		return "", err
	}
	defer fs.Close()
	to := filepath.Join(dir, path.Base(p))
	inside, err := fs.List(ctx, strings.TrimSuffix(p, "/")+"/*")
	if err != nil {
		return "", err
	}
	if len(inside) == 0 {
		return to, copyOf(ctx, fs, p, to)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return "", err
	}
	for _, file := range inside {
		if err := copyOf(ctx, fs, file, filepath.Join(to, path.Base(file))); err != nil {
			return "", err
		}
	}
	return to, nil
}

// fetchedDir makes a new folder for one copy.
func fetchedDir() (string, error) {
	fetched.Lock()
	defer fetched.Unlock()
	if fetched.dir == "" {
		dir, err := os.MkdirTemp("", name+"-")
		if err != nil {
			return "", err
		}
		fetched.dir = dir
	}
	return os.MkdirTemp(fetched.dir, "")
}

// removeFetched removes all copies, at the end of the job.
func removeFetched() {
	fetched.Lock()
	defer fetched.Unlock()
	if fetched.dir != "" {
		os.RemoveAll(fetched.dir)
	}
	fetched.dir = ""
	clear(fetched.paths)
}

func copyOf(ctx context.Context, fs filesystem.Interface, from, to string) error {
	r, err := fs.OpenRead(ctx, from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return err
}

// exists says whether there is a file p.
func exists(ctx context.Context, p string) bool {
	fs, err := filesystem.New(ctx, p)
	if err != nil {
		return false
	}
	defer fs.Close()
	if !remote(p) {
		_, err = os.Stat(p)
	} else {
		_, err = fs.Size(ctx, p)
	}
	return err == nil
}

// publish puts the files of a finished run, or part of one, into the folder to, the results last: their
// presence says that it is whole. A bundle that is tried again, or twice at a time, leaves the same files.
func publish(ctx context.Context, dir, to string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != result.ResultsFile {
			names = append(names, e.Name())
		}
	}
	fs, err := filesystem.New(ctx, to)
	if err != nil {
		return err
	}
	defer fs.Close()
	for _, n := range append(names, result.ResultsFile) {
		if err := place(ctx, fs, filepath.Join(dir, n), to+"/"+n); err != nil {
			return fmt.Errorf("write %s/%s: %w", to, n, err)
		}
	}
	return nil
}

// place writes a file that nobody sees before it is whole: under a name of this attempt, which is renamed
// then, or at once where the store knows nothing else.
func place(ctx context.Context, fs filesystem.Interface, from, final string) error {
	if whole, ok := fs.(interface {
		Put(ctx context.Context, file, to string) error
	}); ok {
		return whole.Put(ctx, from, final)
	}
	attempt := final + ".attempt-" + rand.Text()
	if err := upload(ctx, fs, from, attempt); err != nil {
		return err
	}
	return filesystem.Rename(ctx, fs, attempt, final)
}

func upload(ctx context.Context, fs filesystem.Interface, from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := fs.OpenWrite(ctx, to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return err
}

// partsName is of the folder in which the parts of a run stand until they are merged. Whatever has that
// name is removed with it, so nobody else should have one.
const partsName = ".misroute-beam-parts"

func partsDir(out string) string { return out + "/" + partsName }

// removeParts removes the parts of a run, and what attempts left of some.
func removeParts(ctx context.Context, out string) error {
	if !remote(out) {
		return os.RemoveAll(partsDir(out))
	}
	return removeRemote(ctx, partsDir(out)+"/*/*")
}

// removeRun takes back what says that the run in out is finished, and the reports of its rows.
func removeRun(ctx context.Context, out string) error {
	for _, n := range []string{result.ResultsFile, "report.html", "report.md", "report.json"} {
		p := out + "/" + n
		var err error
		if remote(out) {
			err = removeRemote(ctx, p)
		} else if err = os.Remove(p); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func removeRemote(ctx context.Context, glob string) error {
	fs, err := filesystem.New(ctx, glob)
	if err != nil {
		return err
	}
	defer fs.Close()
	files, err := fs.List(ctx, glob)
	if err != nil {
		return err
	}
	remover, ok := fs.(filesystem.Remover)
	if !ok {
		return fmt.Errorf("%s: nothing can be removed there", glob)
	}
	for _, f := range slices.Sorted(slices.Values(files)) {
		if err := remover.Remove(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
