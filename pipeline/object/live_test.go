package object

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestLive does everything once in a real store: MISROUTE_BUCKET is an address to write under, such as
// s3://bucket/misroute-test, and the AWS environment says where and who. It removes what it wrote.
func TestLive(t *testing.T) {
	place := os.Getenv("MISROUTE_BUCKET")
	if place == "" {
		t.Skip("MISROUTE_BUCKET is not set")
	}
	a, err := Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := map[string][]byte{"small": []byte("x"), "parts": noise(40 << 20), "marker": noise(5000)}
	for name, b := range data {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Remove(t.Context(), a.In(name)); err != nil {
				t.Error(err)
			}
		}()
	}
	for range 2 { // the second time over the first
		if err := s.Publish(t.Context(), dir, a, "marker"); err != nil {
			t.Fatal(err)
		}
	}
	files, folders, err := s.List(t.Context(), a)
	if err != nil || len(files) != len(data) || len(folders) != 0 {
		t.Fatalf("%v, %v, %v", files, folders, err)
	}
	for _, f := range files {
		to := filepath.Join(t.TempDir(), f.Name)
		if _, err := s.Fetch(t.Context(), a.In(f.Name), f, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, data[f.Name]) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(got), err)
		}
	}
	if _, err := s.Stat(t.Context(), a.In("nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	file, err := s.Bucket(t.Context(), a.Bucket).Open(a.In("parts").Key)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got := make([]byte, 100)
	if _, err := file.(io.ReaderAt).ReadAt(got, 30<<20); err != nil || !bytes.Equal(got, data["parts"][30<<20:][:100]) {
		t.Errorf("from the middle: %v", err)
	}
	if err := s.Put(t.Context(), filepath.Join(dir, "marker"), a.In("parts")); err != nil {
		t.Fatal(err)
	}
	if _, err := file.(io.ReaderAt).ReadAt(got, 0); !errors.Is(err, ErrChanged) {
		t.Errorf("another object in its place: %v", err)
	}
}
