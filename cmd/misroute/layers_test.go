package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// allowed is the import table: what each package of the module may import of the module. A trailing
// /* stands for the packages below. Somebody who has only the folder names should be able to guess
// how a message travels, so nothing may point backwards.
var allowed = map[string][]string{
	"attention/kernel": {},
	"tokenize":         {},
	"pipeline/mail":    {},
	"pipeline/object":  {},
	"pipeline/result":  {},
	"reports/stats":    {},
	"reports/table":    {},

	"tokenize/window":      {"tokenize"},
	"attention":            {"attention/kernel"},
	"attention/checkpoint": {"attention", "attention/kernel"},
	"attention/train":      {"attention", "attention/kernel", "attention/checkpoint"},
	"pipeline/text":        {"pipeline/mail"},
	"reports/cohort":       {"pipeline/result", "reports/stats", "reports/table"},
	"reports/chart":        {"pipeline/result", "reports/stats", "reports/table"},

	"pipeline/router": {"tokenize", "tokenize/window", "attention", "attention/checkpoint"},

	"pipeline": {"pipeline/*", "tokenize/window"},
	"reports":  {"pipeline/result", "reports/*"},
}

// TestImportTable checks every package, its tests included, against the table. Commands may import
// anything that stands above them.
func TestImportTable(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports", "misroute/...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Skipf("go list is not to be had: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct {
			ImportPath           string
			Imports, TestImports []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "misroute/")
		if strings.HasPrefix(name, "cmd/") {
			continue
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the import table", name)
			continue
		}
		for _, imported := range append(p.Imports, p.TestImports...) {
			ours, ok := strings.CutPrefix(imported, "misroute/")
			if ok && ours != name && !matches(may, ours) {
				t.Errorf("%s imports %s: the table allows %v", name, ours, may)
			}
		}
	}
}

func matches(may []string, name string) bool {
	for _, m := range may {
		if below, ok := strings.CutSuffix(m, "/*"); m == name || ok && strings.HasPrefix(name, below+"/") {
			return true
		}
	}
	return false
}
