package mail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// readExport reads exports to their end.
func readExport(t *testing.T, o Options, paths ...string) ([]Message, []Source, error) {
	t.Helper()
	r, err := Open(t.Context(), paths, o)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var all []Message
	for {
		m, err := r.Next()
		if err == io.EOF {
			return all, r.Sources(), nil
		}
		if err != nil {
			return all, r.Sources(), err
		}
		all = append(all, *m)
	}
}

// remote is a store that holds what is in a folder of this machine.
func remote(fsys FileSystem) Options {
	return Options{Remote: func(_ context.Context, path string) (FileSystem, string, error) {
		name, ok := strings.CutPrefix(path, "store://")
		if !ok {
			return nil, "", nil
		}
		return fsys, name, nil
	}}
}

// TestRemoteExport: what a file system gives is read as the same files on this machine are.
func TestRemoteExport(t *testing.T) {
	dir := t.TempDir()
	mail := func(id string) string { return "From: a@example.com\nMessage-ID: <" + id + ">\n\nWhere is it?\n" }
	files := map[string]string{
		"week.mbox":         "From a Mon Jan  5 10:00:00 2026\n" + mail("1") + "\nFrom a Mon Jan  5 10:00:00 2026\n" + mail("2"),
		"box/cur/1:2,S":     mail("3"),
		"box/cur/2:2,ST":    mail("4"),
		"box/new/3":         mail("5"),
		"eml/refunds/a.eml": mail("6"),
		"eml/late/b.eml":    mail("7"),
		"eml/.hidden":       "no mail",
	}
	files["all.zip"] = zipOf(entry{name: "refunds/1.eml", body: mail("8")}, entry{name: "late/2.eml", body: mail("9")})
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	store := remote(os.DirFS(dir).(FileSystem))
	for _, name := range []string{"week.mbox", "box", "eml", "all.zip"} {
		want, sources, err := readExport(t, Options{}, filepath.Join(dir, name))
		if err != nil || len(want) < 2 {
			t.Fatalf("%s: %d messages, %v", name, len(want), err)
		}
		got, remoteSources, err := readExport(t, store, "store://"+name)
		if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(remoteSources, sources) {
			t.Errorf("%s: %d messages, %v: %+v, want %+v", name, len(got), err, remoteSources, sources)
		}
		for _, m := range want {
			var b bytes.Buffer
			if err := Cut(t.Context(), &b, "store://"+name, m.Member, m.Offset, m.Length, store); err != nil || b.String() != string(m.Raw) {
				t.Errorf("Cut %s %s: %q, %v", name, m.Member, b.String(), err)
			}
		}
	}
	if _, _, err := readExport(t, store, "store://nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestRemoteFailure: a store that fails ends the run; nothing is passed over, and nothing is rejected.
func TestRemoteFailure(t *testing.T) {
	ok := &fstest.MapFile{Data: []byte("From: a@example.com\nSubject: b\n\nWhere?\n")}
	down := errors.New("the store is down")
	for name, at := range map[string]string{"a file of a folder": "w/2.eml", "a folder": "w/2"} {
		fsys := failing{fstest.MapFS{"w/1.eml": ok, "w/2.eml": ok, "w/2/3.eml": ok}, at, down}
		got, _, err := readExport(t, remote(fsys), "store://w")
		if !errors.Is(err, down) {
			t.Errorf("%s: %v after %d messages", name, err, len(got))
		}
		for _, m := range got {
			if m.Reject != nil {
				t.Errorf("%s: rejected: %s", name, m.Reject.Detail)
			}
		}
	}
	if _, _, err := readExport(t, remote(failing{fstest.MapFS{"w.eml": ok}, "w.eml", down}), "store://w.eml"); !errors.Is(err, down) {
		t.Errorf("a file: %v", err)
	}
}

// failing fails to read one file or folder.
type failing struct {
	fstest.MapFS
	at  string
	err error
}

func (f failing) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	if name == f.at {
		return brokenFile{file, f.err}, err
	}
	return file, err
}

func (f failing) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == f.at {
		return nil, f.err
	}
	return f.MapFS.ReadDir(name)
}

type brokenFile struct {
	fs.File
	err error
}

func (b brokenFile) Read([]byte) (int, error) { return 0, b.err }
