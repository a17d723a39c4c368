package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"misroute/pipeline/object"
	"misroute/pipeline/result"
)

// runFiles are the files of a run that are read again; the first one says that it is finished.
var runFiles = []string{result.ResultsFile, result.ReadingsFile, result.RejectsFile, result.TimingsFile, result.MeasuredFile}

// readRun reads a finished run on this machine or in a bucket.
func readRun(ctx context.Context, path string) (*result.Folder, error) {
	dir, err := bucketsOf(ctx).runCopy(ctx, path)
	if err != nil {
		return nil, err
	}
	f, err := result.ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	f.Dir = path
	return f, nil
}

// runCopy fetches a finished run; a path of this machine is its own copy.
func (b *buckets) runCopy(ctx context.Context, path string) (string, error) {
	if !object.IsAddress(path) {
		return path, nil
	}
	s, a, err := b.at(ctx, path)
	if err != nil {
		return "", err
	}
	files, folders, err := s.List(ctx, a)
	if err != nil {
		return "", err
	}
	if !looksLikeRun(files, folders) {
		return "", fmt.Errorf("%s: no run here: %s is missing", a, result.ResultsFile)
	}
	return b.fetchRun(ctx, s, a, files)
}

// looksLikeRun says whether a listing is of a run, finished or not.
func looksLikeRun(files []object.Info, folders []string) bool {
	return slices.Contains(folders, result.PartialDir) || slices.ContainsFunc(runFiles, func(name string) bool {
		_, ok := named(files, name)
		return ok
	})
}

// fetchRun fetches the files of a run. The marker is asked for again at the end: a run that is replaced
// meanwhile would be a mixture of two.
func (b *buckets) fetchRun(ctx context.Context, s *object.Store, a object.Address, files []object.Info) (string, error) {
	address := strings.TrimSuffix(a.String(), "/")
	marker, ok := named(files, result.ResultsFile)
	if !ok {
		return "", fmt.Errorf("%s: the run is not finished: %s is missing, which is brought there last; finish it with eval --resume --out %s where it was begun", address, result.ResultsFile, address)
	}
	dir, err := b.scratch(a)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, name := range runFiles {
		f, ok := named(files, name)
		if !ok {
			continue
		}
		if _, err := s.Fetch(ctx, a.In(name), f, filepath.Join(dir, name)); err != nil {
			if errors.Is(err, object.ErrChanged) || notThere(err) {
				err = fmt.Errorf("%s: the run was replaced while it was read: try again", address)
			}
			return "", err
		}
	}
	now, err := s.Stat(ctx, a.In(result.ResultsFile))
	if notThere(err) || err == nil && now.ETag != marker.ETag {
		return "", fmt.Errorf("%s: the run was replaced while it was read: try again", address)
	}
	return dir, err
}

// runsInBucket is readRuns for an address.
func runsInBucket(ctx context.Context, path string) ([]*result.Folder, error) {
	b := bucketsOf(ctx)
	s, a, err := b.at(ctx, path)
	if err != nil {
		return nil, err
	}
	files, folders, err := s.List(ctx, a)
	if err != nil {
		return nil, err
	}
	if looksLikeRun(files, folders) {
		f, err := readRun(ctx, path)
		return []*result.Folder{f}, err
	}
	var runs []*result.Folder
	for _, name := range folders {
		sub := a.In(name)
		files, inner, err := s.List(ctx, sub)
		if err != nil {
			return nil, err
		}
		if !looksLikeRun(files, inner) {
			continue
		}
		f, err := readRun(ctx, sub.String())
		if err != nil {
			return nil, err
		}
		runs = append(runs, f)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: no run here: neither %s nor a folder with one", a, result.ResultsFile)
	}
	return runs, nil
}

// isRunAt is isRun for an argument that may be an address. What cannot be asked for is no run.
func isRunAt(ctx context.Context, path string) bool {
	if !object.IsAddress(path) {
		return isRun(path)
	}
	s, a, err := bucketsOf(ctx).at(ctx, path)
	if err != nil {
		return false
	}
	files, folders, err := s.List(ctx, a)
	return err == nil && looksLikeRun(files, folders)
}

// runFacts reads the facts of a finished run; os.ErrNotExist: there is none.
func runFacts(ctx context.Context, path string) (result.Run, error) {
	if !object.IsAddress(path) {
		return result.ReadRun(path)
	}
	b := bucketsOf(ctx)
	s, a, err := b.at(ctx, path)
	if err != nil {
		return result.Run{}, err
	}
	info, err := s.Stat(ctx, a.In(result.ResultsFile))
	if err != nil {
		return result.Run{}, err
	}
	dir, err := b.scratch(a)
	if err != nil {
		return result.Run{}, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return result.Run{}, err
	}
	if _, err := s.Fetch(ctx, a.In(result.ResultsFile), info, filepath.Join(dir, result.ResultsFile)); err != nil {
		return result.Run{}, err
	}
	return result.ReadRun(dir)
}

// runOut is where a run is made: the folder of --out itself, or, for one in a bucket, a folder of this
// machine that keeps it until it is there.
type runOut struct {
	path string // as asked for
	dir  string
	s    *object.Store
	a    object.Address
}

func openRunOut(ctx context.Context, path string) (*runOut, error) {
	if !object.IsAddress(path) {
		return &runOut{path: path, dir: path}, nil
	}
	s, a, err := bucketsOf(ctx).at(ctx, path)
	if err != nil {
		return nil, err
	}
	dir, err := cacheFolder(s, "runs", a)
	if err != nil {
		return nil, err
	}
	return &runOut{path, filepath.Join(dir, a.Base()), s, a}, nil
}

// keyFile is the first object of a run: readers see from it that a run is not finished, and a place that
// cannot be written to is found out before the work, not after it.
const keyFile = result.PartialDir + "/key.json"

// begin says in the bucket that a run is being made.
func (w *runOut) begin(ctx context.Context) error {
	if w.s == nil {
		return nil
	}
	return w.s.Put(ctx, filepath.Join(w.dir, filepath.FromSlash(keyFile)), w.a.In(keyFile))
}

// finished says whether the run was made and could not be brought to its place.
func (w *runOut) finished(key map[string]string) (bool, error) {
	if w.s == nil {
		return false, nil
	}
	old, err := result.ReadRun(w.dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && old.Key == key["all"] && old.Shard == key["shard"], err
}

// deliver brings a finished run to its place in a bucket: all its files, the results last. On this
// machine it is there already. again says how to bring it there when that fails.
func (w *runOut) deliver(ctx context.Context, again string) error {
	if w.s == nil {
		return nil
	}
	if err := w.s.Publish(ctx, w.dir, w.a, result.ResultsFile); err != nil {
		return fmt.Errorf("%w; the run is finished and kept in %s: %s", err, w.dir, again)
	}
	// With its results there the run is finished for everybody, whatever else stands beside them.
	_ = w.s.Remove(ctx, w.a.In(keyFile))
	return os.RemoveAll(filepath.Dir(w.dir))
}
