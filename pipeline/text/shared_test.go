package text

import (
	"os"
	"path/filepath"
	"testing"

	"misroute/pipeline/mail"
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

// extract reads raw bytes as one message.
func extract(raw []byte, o Options) (Text, *mail.Reject) {
	m := &mail.Message{Raw: raw, Format: mail.FormatEML}
	var l mail.Labels
	id := l.Identify(m)
	return NewExtractor(o).Extract(m, &id)
}
