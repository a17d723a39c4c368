package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"misroute/pipeline/object"
)

const (
	// A model folder in a bucket is as untrusted as any other, and it takes disk: ten times the largest
	// classifiers in use.
	mostModelBytes = 64 << 30
	mostModelFiles = 1000
	// fetchedName lists the files of a fetched model with their digests; it stands beside the folder.
	fetchedName = "fetched.json"
	// A model of the same address that was replaced in the bucket may be in use by a process that began
	// with it; after a day nobody does.
	oldModel = 24 * time.Hour
)

// modelCopy fetches a model folder, or finds the copy that was fetched before: the same names, sizes and
// ETags are the same model. A copy is checked against the digests of when it was fetched.
func (b *buckets) modelCopy(ctx context.Context, path string) (string, error) {
	if !object.IsAddress(path) {
		return path, nil
	}
	s, a, err := b.at(ctx, path)
	if err != nil {
		return "", err
	}
	files, err := modelFiles(ctx, s, a)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder(s, "models", a)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s\x00%d\x00%s\x00%d\n", f.Name, f.Bytes, f.ETag, f.Modified.UnixNano())
	}
	version := filepath.Join(cache, hex.EncodeToString(h.Sum(nil)[:8]))
	folder := filepath.Join(version, a.Base())
	if !intact(version, folder) {
		var sum int64
		for _, f := range files {
			sum += f.Bytes
		}
		b.note("fetching", a, sum)
		if err := fetchModel(ctx, s, a, files, version); err != nil {
			return "", err
		}
	}
	now := time.Now()
	if err := os.Chtimes(version, now, now); err != nil {
		return "", err
	}
	b.copies[folder] = strings.TrimSuffix(a.String(), "/")
	return folder, forgetOld(cache, version, now)
}

// tokenizerCopy is modelCopy for a tokenizer's file as well: what stands beside it belongs to it.
func (b *buckets) tokenizerCopy(ctx context.Context, path string) (string, error) {
	if ext := filepath.Ext(path); ext != ".json" && ext != ".txt" {
		return b.modelCopy(ctx, path)
	}
	i := strings.LastIndexByte(path, '/')
	folder, err := b.modelCopy(ctx, path[:i+1])
	return filepath.Join(folder, path[i+1:]), err
}

// modelFiles lists what of a folder a model consists of.
func modelFiles(ctx context.Context, s *object.Store, a object.Address) ([]object.Info, error) {
	all, _, err := s.List(ctx, a)
	if err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(all, func(f object.Info) bool {
		return !slices.Contains([]string{".json", ".txt", ".safetensors"}, filepath.Ext(f.Name)) || !filepath.IsLocal(f.Name)
	})
	var sum int64
	for _, f := range files {
		sum += f.Bytes
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%s: no model there; a model is a folder with config.json, model.safetensors and tokenizer.json", a)
	case len(files) > mostModelFiles:
		return nil, fmt.Errorf("%s: %d files, more than the %d of any model", a, len(files), mostModelFiles)
	case sum > mostModelBytes:
		return nil, fmt.Errorf("%s: %d bytes, more than the %d that are fetched", a, sum, int64(mostModelBytes))
	}
	return files, nil
}

// intact says whether a fetched model is there as it came.
func intact(version, folder string) bool {
	text, err := os.ReadFile(filepath.Join(version, fetchedName))
	if err != nil {
		return false
	}
	var digests map[string]string
	if json.Unmarshal(text, &digests) != nil || len(digests) == 0 {
		return false
	}
	for name, want := range digests {
		if got, err := fileDigest(filepath.Join(folder, name)); err != nil || got != want {
			return false
		}
	}
	return true
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// fetchModel fetches the files aside and renames their folder: a copy is there whole or not at all.
func fetchModel(ctx context.Context, s *object.Store, a object.Address, files []object.Info, version string) (err error) {
	fresh, err := os.MkdirTemp(filepath.Dir(version), ".new-") // readable by its owner alone
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	folder := filepath.Join(fresh, a.Base())
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	digests := map[string]string{}
	for _, f := range files {
		if digests[f.Name], err = s.Fetch(ctx, a.In(f.Name), f, filepath.Join(folder, f.Name)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(digests)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, fetchedName), text, 0o600); err != nil {
		return err
	}
	if err := os.RemoveAll(version); err != nil { // damaged, or half of one
		return err
	}
	if err := os.Rename(fresh, version); err != nil {
		if intact(version, filepath.Join(version, a.Base())) {
			return nil // another process was first
		}
		return err
	}
	return nil
}

// modelMarker is the file of a model folder that is written last.
const modelMarker = "config.json"

// trainInto makes the folder of --out one of this machine: for an address, one that keeps the model, and
// what --resume needs, until bring has taken the model there.
func trainInto(ctx context.Context, o *trainOptions) (bring func() error, err error) {
	if !object.IsAddress(o.out) {
		return func() error { return nil }, nil
	}
	s, a, err := bucketsOf(ctx).at(ctx, o.out)
	if err != nil {
		return nil, usageError(err)
	}
	_, err = s.Stat(ctx, a.In(modelMarker))
	switch {
	case err != nil && !notThere(err):
		return nil, usageError(err)
	case err == nil && !o.force && !o.resume:
		return nil, usagef("--out %s is there already; --force replaces it", o.out)
	}
	dir, err := cacheFolder(s, "training", a)
	if err != nil {
		return nil, usageError(err)
	}
	o.out = filepath.Join(dir, a.Base())
	return func() error {
		if err := s.Publish(ctx, o.out, a, modelMarker); err != nil {
			return fmt.Errorf("%w; the model is kept in %s: copy its files there, %s last", err, o.out, modelMarker)
		}
		return os.RemoveAll(o.out)
	}, nil
}

// forgetOld removes copies of what the address held before.
func forgetOld(cache, version string, now time.Time) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || filepath.Join(cache, e.Name()) == version || now.Sub(info.ModTime()) < oldModel {
			continue // one that is gone was removed by another process
		}
		if err := os.RemoveAll(filepath.Join(cache, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
