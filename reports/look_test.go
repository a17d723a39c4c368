package reports

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLook writes the pages of the synthetic week where somebody wants to look at them:
// MISROUTE_LOOK names a folder.
func TestLook(t *testing.T) {
	dir := os.Getenv("MISROUTE_LOOK")
	if dir == "" {
		t.Skip("MISROUTE_LOOK names no folder to write pages to")
	}
	w, err := NewWeekly(crumb(1, 310), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*os.File) error{
		"weekly.html": func(f *os.File) error { return w.HTML(f) },
		"weekly.md":   func(f *os.File) error { return w.Markdown(f) },
		"weekly.json": func(f *os.File) error { return w.JSON(f) },
		"weekly.txt":  func(f *os.File) error { return w.Terminal(f, TermOptions{Folder: "out"}) },
	} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := write(f); err != nil {
			t.Error(name, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
