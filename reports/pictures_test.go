package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestPictures(t *testing.T) {
	list, err := weekly(t, crumbSweep(1, 310), Options{}).Pictures()
	if err != nil || len(list) != 2 {
		t.Fatalf("%d pictures, %v", len(list), err)
	}
	for _, p := range list {
		for _, format := range Formats {
			var b bytes.Buffer
			if err := p.Write(&b, format); err != nil {
				t.Fatal(err)
			}
			if dir := os.Getenv("MISROUTE_LOOK"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, p.Name+"."+format), b.Bytes(), 0o644); err != nil {
					t.Error(err)
				}
			}
			switch format {
			case "png":
				if _, err := png.Decode(&b); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			case "svg":
				d := xml.NewDecoder(&b)
				for {
					if _, err := d.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatalf("%s: %v", p.Name, err)
					}
				}
			}
		}
		if err := p.Write(io.Discard, "bmpx"); err == nil {
			t.Error("an unknown format draws")
		}
	}
	none := crumb(1, 20)
	none.Rows = nil
	if list, err := weekly(t, none, Options{}).Pictures(); err != nil || len(list) != 0 {
		t.Errorf("%d pictures of nothing, %v", len(list), err)
	}
}
