package object

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"strings"
	"sync"
)

const (
	// Each small object costs a round trip of some ten milliseconds, and a mailbox has a hundred thousand:
	// read one after the other they would take an hour. So many at a time hide most of it.
	aheadObjects = 16
	// Larger ones pay for their round trip, and so much times the number above bounds the memory.
	aheadBytes = 1 << 20
)

// ahead reads the next small objects of a listed folder before they are asked for, in the order of the
// listing, depth first. It belongs to a [Bucket]; a reader that takes another order is served just the
// same.
type ahead struct {
	mu      sync.Mutex
	folders []*listing     // the innermost last
	running sync.WaitGroup // what is being read; it ends with the bucket's context
}

// listing is what is still to come of a folder.
type listing struct {
	prefix string
	files  []listed
	begun  map[string]*early // by name
}

// listed is kept small: a folder may have a million.
type listed struct {
	name  string
	bytes int64
}

// early is an object that is being read, or was.
type early struct {
	done chan struct{}
	info Info
	data []byte
	err  error
	stop context.CancelFunc
}

func (a *ahead) push(prefix string, files []listed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.folders = append(a.folders, &listing{prefix, files, map[string]*early{}})
}

// take gives the object of that key if it was begun, and begins the next ones.
func (a *ahead) take(b *Bucket, key string) *early {
	a.mu.Lock()
	defer a.mu.Unlock()
	for level := len(a.folders) - 1; level >= 0; level-- {
		l := a.folders[level]
		at := l.find(key)
		if at < 0 {
			continue
		}
		for _, over := range a.folders[level+1:] { // the reader has left them
			over.drop(over.files)
		}
		a.folders = a.folders[:level+1]
		l.drop(l.files[:at])
		e := l.begun[l.files[at].name]
		delete(l.begun, l.files[at].name)
		l.files = l.files[at+1:]
		for _, next := range l.files[:min(len(l.files), aheadObjects)] {
			if len(l.begun) < aheadObjects && l.begun[next.name] == nil && next.bytes <= aheadBytes {
				l.begun[next.name] = b.begin(l.prefix + next.name)
			}
		}
		return e
	}
	return nil
}

// find looks for a key among the next files: what lies far ahead is another order.
func (l *listing) find(key string) int {
	name, ok := strings.CutPrefix(key, l.prefix)
	if !ok {
		return -1
	}
	for i := range min(len(l.files), 4*aheadObjects) {
		if l.files[i].name == name {
			return i
		}
	}
	return -1
}

// drop ends what was begun for files that were passed over.
func (l *listing) drop(files []listed) {
	if len(l.begun) == 0 {
		return
	}
	for _, f := range files[:min(len(files), 4*aheadObjects)] {
		if e := l.begun[f.name]; e != nil {
			e.stop()
			delete(l.begun, f.name)
		}
	}
}

func (b *Bucket) begin(key string) *early {
	ctx, stop := context.WithCancel(b.ctx)
	e := &early{done: make(chan struct{}), stop: stop}
	b.ahead.running.Go(func() {
		defer close(e.done)
		defer stop()
		f := &file{ctx: ctx, store: b.store, where: Address{b.name, key}}
		defer f.Close()
		e.data, e.err = io.ReadAll(io.LimitReader(f, aheadBytes+1))
		e.info = f.info
	})
	return e
}

// file waits for the object. It is nil where the object has grown since it was listed.
func (e *early) file() (fs.File, error) {
	<-e.done
	if e.err != nil {
		return nil, e.err
	}
	if len(e.data) > aheadBytes {
		return nil, nil
	}
	return &earlyFile{bytes.NewReader(e.data), e.info}, nil
}

// earlyFile is an object that was read ahead.
type earlyFile struct {
	*bytes.Reader
	info Info
}

func (f *earlyFile) Stat() (fs.FileInfo, error) { return f.info.stat(), nil }
func (f *earlyFile) Close() error               { return nil }
