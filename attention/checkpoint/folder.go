// Package checkpoint reads and writes model folders: config.json and model.safetensors, as Hugging
// Face transformers saves them.
//
// A model folder is untrusted input. Sizes, offsets, types and shapes are checked before anything is
// allocated for them, so that no folder costs more memory than its files have bytes (twice that for
// 16-bit weights, which become float32). Every problem is one line that names the tensor or field.
package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"misroute/attention"
)

// Options of Load.
type Options struct {
	// Int8 lays the weights out as 8-bit integers: a quarter of the memory and faster, with logits
	// that differ. A family that has no such form is refused.
	Int8 bool
}

// Folder is a model folder that was read whole.
type Folder struct {
	Dir       string
	Model     attention.Model
	Tokenizer string // path of tokenizer.json, else of vocab.txt; empty when the folder has none
	DType     string // storage types of the weights, the most frequent first: "F32", "F16+F32"
	Warnings  []string
	// TrainedOn are the exports that `misroute train` made the model from; nil for other models.
	TrainedOn []TrainedOn
	// Files are config.json, the index if there is one, and the weight files, sorted by name.
	Files []FileDigest
	// SHA256 stands for all Files: the hex digest of the lines that sha256sum prints for them, in that order.
	SHA256 string
}

// TrainedOn names an export that a model was trained on: its base name, and the hex digest of its bytes.
type TrainedOn struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// trainedOn reads what training left in config.json. It is a courtesy to the reader of a report:
// whatever else stands there is no fault of the model.
func trainedOn(config []byte) []TrainedOn {
	var c struct {
		Training struct {
			Exports []TrainedOn `json:"exports"`
		} `json:"misroute_training"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil
	}
	return c.Training.Exports
}

// FileDigest is one file of the folder as it was read.
type FileDigest struct {
	Name     string
	Bytes    int64
	SHA256   string // hex
	modified time.Time
}

// Load reads the model folder dir. The weights are read tensor by tensor into the layout they are
// used in, so there is one copy of them.
func Load(dir string, o Options) (*Folder, error) {
	f, err := load(dir, o)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", dir, err)
	}
	return f, nil
}

func load(dir string, o Options) (*Folder, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, errors.Unwrap(err)
	} else if !info.IsDir() {
		return nil, errors.New("not a folder; a model is a folder with config.json and model.safetensors")
	}
	config, configFile, err := readSmall(filepath.Join(dir, configName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no %s in the folder", configName)
	}
	if err != nil {
		return nil, err
	}
	family, err := familyOf(config)
	if err != nil {
		return nil, err
	}
	weights, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, Tokenizer: findTokenizer(dir), TrainedOn: trainedOn(config)}
	digests := digestLater(dir, append(weights.open, configFile))
	f.Model, f.Warnings, err = family.load(config, weights, o)
	files, digestErr := digests()
	if err = errors.Join(err, weights.close()); err != nil {
		return nil, err
	}
	if digestErr != nil {
		return nil, digestErr
	}
	f.Files, f.SHA256 = files, digestOfDigests(files)
	for _, d := range weights.dtypes() {
		f.DType += "+" + string(d)
	}
	f.DType = strings.TrimPrefix(f.DType, "+")
	return f, nil
}

// load makes the model and checks that no tensor was left over.
func (y *family) load(config []byte, weights *files, o Options) (attention.Model, []string, error) {
	model, err := y.build(config, weights, o)
	if err != nil {
		return nil, nil, err
	}
	if o.Int8 && model.Precision() != "int8" {
		return nil, nil, fmt.Errorf("model_type %q has no int8 form", y.name)
	}
	ignored, extra := weights.unread(y.ignores)
	if extra != "" {
		return nil, nil, fmt.Errorf("tensor %s is not part of a %s model as %s describes it", quote(extra), y.name, configName)
	}
	ignored = slices.DeleteFunc(ignored, isBuffer)
	warnings := settingsWarnings(config)
	if len(ignored) > 0 {
		warnings = append(warnings, fmt.Sprintf("%d tensors are not used for classification and were left out, the first is %s", len(ignored), quote(ignored[0])))
	}
	return model, warnings, nil
}

// isBuffer says whether a tensor is one of the index rows that the library saves beside the weights.
func isBuffer(tensor string) bool {
	return strings.HasSuffix(tensor, ".position_ids") || strings.HasSuffix(tensor, ".token_type_ids")
}

// settingsWarnings names settings that do not change the logits but what they mean.
func settingsWarnings(config []byte) (warnings []string) {
	f := parseFields(config)
	if p := f.text("problem_type", ""); p == "multi_label_classification" {
		warnings = append(warnings, "problem_type is multi_label_classification: the model was not trained to choose one queue, its softmax scores are not probabilities")
	}
	labels := f.labels()
	if len(labels) == 1 {
		warnings = append(warnings, "one label: the logit is a number (regression), not a choice between queues")
	}
	slices.Sort(labels)
	for i := range labels[min(1, len(labels)):] {
		if labels[i] == labels[i+1] {
			return append(warnings, fmt.Sprintf("id2label gives the name %s twice", quote(labels[i])))
		}
	}
	return warnings
}

// findTokenizer is the file that package tokenize reads for this model.
func findTokenizer(dir string) string {
	for _, name := range []string{"tokenizer.json", "vocab.txt"} {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return ""
}

// digestLater hashes the files while the model is built, and returns how to get the result.
func digestLater(dir string, opened []openFile) func() ([]FileDigest, error) {
	digests := make([]FileDigest, len(opened))
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, f := range opened {
			if digests[i], err = digest(dir, f); err != nil {
				return
			}
		}
	}()
	return func() ([]FileDigest, error) {
		<-done
		if err != nil {
			return nil, err
		}
		slices.SortFunc(digests, func(a, b FileDigest) int { return strings.Compare(a.Name, b.Name) })
		return digests, unchanged(dir, digests)
	}
}

func digest(dir string, opened openFile) (d FileDigest, err error) {
	f, err := openRegular(filepath.Join(dir, opened.name))
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	n, err := io.CopyBuffer(onlyWriter{h}, f.File, make([]byte, 1<<18))
	return FileDigest{Name: opened.name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil)), modified: opened.modified}, err
}

// onlyWriter hides other methods, so that io.CopyBuffer uses the buffer it is given.
type onlyWriter struct{ io.Writer }

// Unchanged says whether the folder's files still have the size and time they had when they were
// read: a long run calls it at its end, to be sure that its digests name what it used.
func (f *Folder) Unchanged() error { return unchanged(f.Dir, f.Files) }

func unchanged(dir string, files []FileDigest) error {
	for _, d := range files {
		info, err := os.Stat(filepath.Join(dir, d.Name))
		if err != nil {
			return err
		}
		if info.Size() != d.Bytes || !info.ModTime().Equal(d.modified) {
			return fmt.Errorf("%s changed while it was in use", filepath.Join(dir, d.Name))
		}
	}
	return nil
}

func digestOfDigests(files []FileDigest) string {
	h := sha256.New()
	for _, d := range files {
		fmt.Fprintf(h, "%s  %s\n", d.SHA256, d.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}
