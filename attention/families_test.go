package attention_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"misroute/attention"
)

// shared finds recorded numbers under MISROUTE_SHARED, which may be relative to the module's root.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root) // this package stands one folder below the module's root
	}
	path := filepath.Join(append([]string{root, "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("MISROUTE_SHARED is set and %s is missing", filepath.Join(elem...))
	}
	return path
}

// TestNaiveOracle holds the naive models against the float64 logits recorded from the library's own
// classes. 1e-9 is the tolerance that those records name for a float64 engine.
func TestNaiveOracle(t *testing.T) {
	for _, collection := range []string{"encoder-oracle", "hf-oracle"} {
		files, err := filepath.Glob(filepath.Join(shared(t, collection), "*", "cases.json"))
		if err != nil || len(files) == 0 {
			t.Fatal("no cases in ", collection, err)
		}
		for _, file := range files {
			dir := filepath.Dir(file)
			t.Run(filepath.Base(dir), func(t *testing.T) {
				checkNaive(t, dir)
			})
		}
	}
}

func checkNaive(t *testing.T, dir string) {
	var recorded struct {
		Cases []struct {
			Name    string
			IDs     [][]int32 `json:"input_ids"`
			Mask    [][]uint8 `json:"attention_mask"`
			Types   [][]int32 `json:"token_type_ids"`
			Float64 []float64 `json:"logits_float64"`
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := readNaive(t, dir)
	for _, c := range recorded.Cases {
		// A long case takes seconds; the engine itself runs them all.
		if len(c.IDs[0]) > 150 && os.Getenv("MISROUTE_LONG") == "" {
			continue
		}
		for b, ids := range c.IDs {
			in := attention.Input{IDs: ids, Mask: c.Mask[b]}
			if c.Types != nil {
				in.TypeIDs = c.Types[b]
			}
			got := m.run(in).logits
			for j, v := range got {
				if want := c.Float64[b*len(got)+j]; !(math.Abs(v-want) < 1e-9) {
					t.Errorf("%s row %d logit %d: %v, want %v", c.Name, b, j, v, want)
				}
			}
		}
	}
}

// TestBuckets compares the buckets of distances with those that the library's own function gave.
func TestBuckets(t *testing.T) {
	text, err := os.ReadFile(shared(t, "hf-oracle", "deberta-buckets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Tables []struct {
			Buckets int   `json:"position_buckets"`
			Longest int   `json:"max_position"`
			From    int   `json:"rel_from"`
			Bucket  []int `json:"bucket"`
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	const span = 10_000 // so that no row is clamped
	for _, table := range recorded.Tables {
		d := attention.Distances{Span: span, Buckets: table.Buckets, MaxDistance: table.Longest}
		for i, want := range table.Bucket {
			if got := d.Row(table.From+i) - span; got != want {
				t.Errorf("distance %d in %d buckets to %d: %d, want %d", table.From+i, table.Buckets, table.Longest, got, want)
			}
		}
	}
	if len(recorded.Tables) == 0 {
		t.Error("no tables")
	}
}
