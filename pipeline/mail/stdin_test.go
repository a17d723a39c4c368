package mail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// The bytes of a pipe come through, however they arrive.
func TestPipe(t *testing.T) {
	want := bytes.Repeat([]byte("From here to there\n"), 50_000)
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want)), "end with data": iotest.DataErrReader(bytes.NewReader(want))} {
		got, err := io.ReadAll(newPipe(context.Background(), r))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(newPipe(context.Background(), iotest.ErrReader(broken))); err != broken {
		t.Errorf("error %v, want the reader's", err)
	}
}

// An interrupt ends the reading of a pipe that says nothing, and a pipe that ends together with an
// interrupt is not taken for a whole one.
func TestPipeInterrupted(t *testing.T) {
	silent, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := newPipe(ctx, silent).Read(make([]byte, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("silent pipe: %v, want the context's error", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(pipeGrace/5, cancel)
	if _, err := io.ReadAll(newPipe(ctx, strings.NewReader("half of"))); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe whose writer got the interrupt too: %v, want the context's error", err)
	}
}

// A file that is changed while it is read is said to be.
func TestFileChangesWhileRead(t *testing.T) {
	week := strings.Repeat("From a@example.invalid Mon Nov 16 10:00:00 2026\nMessage-ID: <1@example.invalid>\nX-Filler: "+strings.Repeat("x", 1000)+"\n\nbody\n\n", 3000)
	for name, c := range map[string]struct {
		change     func(path string) error
		want       string
		incomplete bool
	}{
		"shrinks":      {func(p string) error { return os.Truncate(p, int64(len(week)/2)) }, "shrank from", true},
		"grows":        {func(p string) error { return appendTo(p, week[:1100]) }, "grew from", false},
		"is rewritten": {func(p string) error { return os.WriteFile(p, []byte(week), 0o644) }, "was written to", false},
		"stays":        {func(string) error { return nil }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "week.mbox")
			if err := os.WriteFile(path, []byte(week), 0o644); err != nil {
				t.Fatal(err)
			}
			past := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
			r, err := Open(context.Background(), []string{path}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			n := int64(0)
			for {
				m, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if n++; m.RecordNo == 10 {
					if err := c.change(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			s := r.Sources()[0]
			if !strings.HasPrefix(s.Changed, c.want) || (c.want == "") != (s.Changed == "") || s.Incomplete != c.incomplete || s.Seen != n {
				t.Errorf("changed %q, incomplete %v, %d of %d seen; want %q, %v", s.Changed, s.Incomplete, s.Seen, n, c.want, c.incomplete)
			}
		})
	}
}

func appendTo(path, more string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(more)
	return errors.Join(err, f.Close())
}
