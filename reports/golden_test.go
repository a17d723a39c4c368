package reports

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what a report writes with testdata/name, and leaves a .got file beside it where
// they differ.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		if err := os.WriteFile(path+".got", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s differs: diff it with %s.got, and go test -update once it is right", path, path)
	}
}

func TestWeeklyGolden(t *testing.T) {
	w, err := NewWeekly(crumb(1, 310), Options{Threshold: 0.75})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "weekly.html", w.HTML)
	golden(t, "weekly.md", w.Markdown)
	golden(t, "weekly.json", w.JSON)
	golden(t, "weekly.txt", func(out io.Writer) error { return w.Terminal(out, TermOptions{Folder: "out"}) })
}
