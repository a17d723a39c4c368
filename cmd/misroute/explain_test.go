package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRisingCaps(t *testing.T) {
	for _, c := range []struct {
		tokens, limit, positions int
		want                     []int
	}{
		{10, 0, 0, nil},
		{100, 64, 0, []int{16, 24, 32, 48, 64, 96}},
		{100, 50, 0, []int{16, 24, 32, 48, 50, 64, 96}},
		{600, 256, 100, []int{16, 24, 32, 48, 64, 96, 100}}, // a cap over the positions is no cap
	} {
		if got := risingCaps(c.tokens, c.limit, c.positions); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestChooseMessage(t *testing.T) {
	ids := []string{"<a.1@x>", "<a.2@x>", "<b@x>", "<b@x>", "<b@x.org>"}
	for asked, want := range map[string]string{
		"a.1@x": "<a.1@x>", "<a.1@x>": "<a.1@x>", "a.2": "<a.2@x>", "b@x": "<b@x>", // the exact one before those that begin so
		"#3": "<b@x>", "a": "", "c": "", "#9": "",
	} {
		c := chooser{w: parseWanted(asked)}
		for i, id := range ids {
			x := candidate{id: id, at: i}
			x.place.RecordNo = int64(i + 1)
			c.add(x)
		}
		got, err := c.choose("here")
		if got.id != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", asked, got.id, err, want)
		}
	}
	c := chooser{w: parseWanted("a.3@x")}
	for _, id := range ids {
		c.add(candidate{id: id})
	}
	if _, err := c.choose("here"); err == nil || !strings.Contains(err.Error(), "did you mean a.1@x") {
		t.Errorf("no near miss is suggested: %v", err)
	}
}

// A transformer shows its attention: two layers of two heads, rows that add up to 1.
func TestExplainTransformer(t *testing.T) {
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", "..", root)
	}
	model := filepath.Join(root, "data", "encoder-oracle", "tiny-bert")
	if _, err := os.Stat(model); err != nil {
		t.Fatal(err)
	}
	export := filepath.Join("..", "..", "testdata", "crumb", "2026-W47.mbox")
	var stdout, stderr bytes.Buffer
	if code := run([]string{"misroute", "explain", "--model", model, "--cap", "64", "--form", "json", export, "#43"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var got struct {
		Tokens    struct{ Total, Kept int }
		Attention struct {
			Layers, Heads, Tokens int
			Maps                  []struct {
				Layer, Head int
				First       []float64 `json:"first_row"`
				Outside     float64   `json:"outside_strongest"`
			}
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	a := got.Attention
	if got.Tokens.Kept != 64 || a.Tokens != 64 || a.Layers != 2 || a.Heads != 2 || len(a.Maps) != 2 {
		t.Fatalf("kept %d of %d, attention %d layers, %d heads, %d tokens, %d maps", got.Tokens.Kept, got.Tokens.Total, a.Layers, a.Heads, a.Tokens, len(a.Maps))
	}
	for _, m := range a.Maps {
		sum := 0.0
		for _, v := range m.First {
			sum += v
		}
		if m.Layer != 2 || sum < 0.999 || sum > 1.001 || !(m.Outside > 0 && m.Outside < 1) {
			t.Errorf("layer %d head %d: a row adds up to %v, %v outside the strongest", m.Layer, m.Head, sum, m.Outside)
		}
	}
	stdout.Reset()
	if code := run([]string{"misroute", "explain", "--model", model, "--cap", "64", "--layer", "9", export, "#43"}, &stdout, &stderr); code != 2 {
		t.Errorf("layer 9 of 2: exit %d, want 2", code)
	}
}
