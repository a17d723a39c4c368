package mail

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// shared returns the path of a file of the test data beside the checkout. Without MISROUTE_SHARED
// the test is skipped; with it, a missing file is a failure.
func shared(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			if dir == filepath.Dir(dir) {
				t.Fatal("no go.mod above the test")
			}
			dir = filepath.Dir(dir)
		}
		root = filepath.Join(dir, root)
	}
	path := filepath.Join(root, "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// write puts a file into a temporary folder.
func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll reads an export to its end; the error is that of Open or Next.
func readAll(t testing.TB, path string, o Options) ([]*Message, []Source, error) {
	t.Helper()
	r, err := Open(context.Background(), []string{path}, o)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var out []*Message
	for {
		m, err := r.Next()
		if err == io.EOF {
			return out, r.Sources(), nil
		}
		if err != nil {
			return out, r.Sources(), err
		}
		out = append(out, m)
	}
}

// must is readAll without an error.
func must(t testing.TB, path string, o Options) ([]*Message, []Source) {
	t.Helper()
	ms, src, err := readAll(t, path, o)
	if err != nil {
		t.Fatal(err)
	}
	return ms, src
}
