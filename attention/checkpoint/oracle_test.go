package checkpoint

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"misroute/attention"
	"misroute/attention/kernel"
)

// oracleCase is a padded batch with the logits that PyTorch gave for it, float32 and all in float64.
type oracleCase struct {
	Name      string
	Shape     [2]int
	IDs       [][]int32 `json:"input_ids"`
	Mask      [][]uint8 `json:"attention_mask"`
	Types     [][]int32 `json:"token_type_ids"`
	Float64   []float64 `json:"logits_float64"`
	Recorded  []float64 `json:"logits"`
	Dims      int       `json:"hidden_first_dims"`
	LastState []float64 `json:"last_hidden_state"`
}

// TestOracle runs every recorded case of every model folder, on every kernel variant, against the
// float64 logits of the library's own classes.
func TestOracle(t *testing.T) {
	for _, collection := range []struct {
		name, pattern string
		tolerance     float64
	}{
		{"encoder-oracle", "tiny-*", 2e-5}, // the floor of its README: "a good engine gets below 2e-5"
		{"hf-oracle", "*", 5e-5},           // the tolerance of its README
	} {
		dirs, err := filepath.Glob(filepath.Join(shared(t, collection.name), collection.pattern, configName))
		if err != nil || len(dirs) == 0 {
			t.Fatal("no models in ", collection.name, err)
		}
		for _, config := range dirs {
			dir := filepath.Dir(config)
			t.Run(collection.name+"/"+filepath.Base(dir), func(t *testing.T) {
				for _, variant := range kernel.Variants() {
					t.Run(variant, func(t *testing.T) { checkFolder(t, dir, variant, collection.tolerance) })
				}
			})
		}
	}
}

func checkFolder(t *testing.T, dir, variant string, tolerance float64) {
	restore, err := kernel.Use(variant)
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct{ Cases []oracleCase }
	decodeFile(t, filepath.Join(dir, "cases.json"), &recorded)
	if len(recorded.Cases) == 0 {
		t.Fatal("no cases")
	}
	worst, ws := 0.0, f.Model.NewWorkspace()
	for _, c := range recorded.Cases {
		d, err := c.difference(f.Model, ws)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if !(d <= tolerance) {
			t.Errorf("%s: logits are off by %.3g, want at most %g", c.Name, d, tolerance)
		}
		worst = max(worst, d)
	}
	t.Logf("%d cases, worst %.2g", len(recorded.Cases), worst)
}

// difference is the largest of any logit of the batch, each row run by itself.
func (c *oracleCase) difference(m attention.Model, ws *attention.Workspace) (worst float64, err error) {
	labels := len(m.Config().Labels)
	want := c.Float64
	if len(want) == 0 {
		want = c.Recorded
	}
	logits := make([]float32, labels)
	for b := range c.IDs {
		in := attention.Input{IDs: c.IDs[b]}
		if c.Mask != nil {
			in.Mask = c.Mask[b]
		}
		if c.Types != nil {
			in.TypeIDs = c.Types[b]
		}
		if err := m.Logits(logits, in, ws); err != nil {
			return math.Inf(1), fmt.Errorf("row %d: %w", b, err)
		}
		for j, v := range logits {
			d := math.Abs(float64(v) - want[b*labels+j])
			if math.IsNaN(d) {
				return math.NaN(), nil
			}
			worst = max(worst, d)
		}
	}
	return worst, nil
}

// TestDTypes reads a file with one tensor of every storage type; the values beside it are Python's.
func TestDTypes(t *testing.T) {
	path := shared(t, "encoder-oracle", "dtypes.safetensors")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := NewFile(r, info.Size(), "dtypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	decodeFile(t, shared(t, "encoder-oracle", "dtypes.json"), &want)
	if len(f.Infos()) != len(want) {
		t.Errorf("%d tensors, want %d", len(f.Infos()), len(want))
	}
	for i := range f.Infos() {
		info := &f.Infos()[i]
		got := make([]float32, info.Len())
		if err := f.ReadFloat32(got, info); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want[info.Name]) {
			t.Fatalf("%s: %d values, want %d", info.Name, len(got), len(want[info.Name]))
		}
		for j, text := range want[info.Name] {
			w, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := math.Float32bits(got[j]), math.Float32bits(float32(w)); a != b && !(got[j] != got[j] && w != w) {
				t.Errorf("%s[%d] = %v, want %v", info.Name, j, got[j], w)
			}
		}
	}
}

// TestNewFieldNames loads a ModernBERT under the field names of transformers 5: the same logits.
func TestNewFieldNames(t *testing.T) {
	from := shared(t, "hf-oracle", "modernbert-c-mean-w16-every2")
	dir := t.TempDir()
	for source, name := range map[string]string{"config-v5-names.json": configName, weightsName: weightsName, "cases.json": "cases.json"} {
		data, err := os.ReadFile(filepath.Join(from, source))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	checkFolder(t, dir, kernel.Variant(), 5e-5)
}
