package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"misroute/pipeline/object"
)

// s3:// means here what it means to misroute: the store of the AWS_... variables, AWS or another.
func init() {
	filesystem.Register("s3", func(context.Context) filesystem.Interface { return buckets{} })
}

// store is the process's, opened when it is first needed.
var store struct {
	sync.Mutex
	*object.Store
}

func openStore(ctx context.Context, path string) (*object.Store, object.Address, error) {
	at, err := object.Parse(path)
	if err != nil {
		return nil, at, err
	}
	store.Lock()
	defer store.Unlock()
	if store.Store == nil {
		if store.Store, err = object.Open(context.WithoutCancel(ctx)); err != nil {
			return nil, at, fmt.Errorf("s3://: %w", err)
		}
	}
	return store.Store, at, nil
}

// buckets is a store as Beam knows file systems.
type buckets struct{}

func (buckets) Close() error { return nil }

func (buckets) List(ctx context.Context, glob string) ([]string, error) {
	s, at, err := openStore(ctx, glob)
	if err != nil {
		return nil, err
	}
	if !strings.ContainsAny(at.Key, "*?[") { // stands for itself, there or not
		if _, err := s.Stat(ctx, at); err != nil {
			return nil, absent(err)
		}
		return []string{glob}, nil
	}
	found, err := s.Match(ctx, at)
	if err != nil {
		return nil, absent(err)
	}
	files := make([]string, len(found))
	for i, a := range found {
		files[i] = a.String()
	}
	return files, nil
}

// absent makes nothing of what is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (buckets) OpenRead(ctx context.Context, file string) (io.ReadCloser, error) {
	s, at, err := openStore(ctx, file)
	if err != nil {
		return nil, err
	}
	return s.Bucket(ctx, at.Bucket).Open(at.Key)
}

func (buckets) Size(ctx context.Context, file string) (int64, error) {
	s, at, err := openStore(ctx, file)
	if err != nil {
		return 0, err
	}
	info, err := s.Stat(ctx, at)
	return info.Bytes, err
}

func (buckets) Remove(ctx context.Context, file string) error {
	s, at, err := openStore(ctx, file)
	if err != nil {
		return err
	}
	return s.Remove(ctx, at)
}

// Put stores a file of this machine; it is there whole or not at all.
func (buckets) Put(ctx context.Context, file, to string) error {
	s, at, err := openStore(ctx, to)
	if err != nil {
		return err
	}
	return s.Put(ctx, file, at)
}

func (b buckets) OpenWrite(ctx context.Context, file string) (io.WriteCloser, error) {
	f, err := os.CreateTemp("", name+"-put-")
	if err != nil {
		return nil, err
	}
	return &put{f, func() error { return b.Put(ctx, f.Name(), file) }}, nil
}

// put is a file that is stored when it is closed.
type put struct {
	*os.File
	store func() error
}

func (p *put) Close() error {
	defer os.Remove(p.Name())
	if err := p.File.Close(); err != nil {
		return err
	}
	return p.store()
}
