package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"misroute": main})
}

// TestScripts runs the verbs as a user does: one script a story, in testdata/script.
//
//	exits N PROGRAM ARG...  runs a program that must exit with code N
//	gzip FILE KEEP          compresses FILE to FILE.gz and keeps KEEP bytes of it (0: all)
//
// $CRUMB is testdata/crumb, $MODELS testdata/models.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("CRUMB", filepath.Join(root, "crumb"))
			e.Setenv("MODELS", filepath.Join(root, "models"))
			e.Setenv("NO_COLOR", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"gzip":  compress,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func compress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gzip FILE KEEP")
	}
	keep, err := strconv.Atoi(args[1])
	ts.Check(err)
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	out := gzipped(ts, data)
	if keep > 0 {
		out = out[:min(keep, len(out))]
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0])+".gz", out, 0o644))
}

// gzipped compresses.
func gzipped(t interface{ Fatalf(string, ...any) }, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatalf("gzip: %v", err)
	}
	return b.Bytes()
}
