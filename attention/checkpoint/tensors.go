package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	configName  = "config.json"
	weightsName = "model.safetensors"
	indexName   = "model.safetensors.index.json"
)

// Tensors gives a model family its parameters by name. The functions that build models ask for what
// their config.json promises; what is missing, misshapen or not a number is an error that names it.
type Tensors interface {
	// Has says whether there is a tensor of that name.
	Has(name string) bool
	// Shape of a tensor, for families whose config.json does not tell every size.
	Shape(name string) ([]int, bool)
	// Float32 reads a tensor of exactly this shape, row-major. The slice is the caller's own.
	Float32(name string, shape ...int) ([]float32, error)
	// ReadFloat32 is Float32 into memory of the caller, as long as the shape wants.
	ReadFloat32(dst []float32, name string, shape ...int) error
}

// files are the open weight files of a folder, and what was asked of them.
type files struct {
	open   []openFile // the index too, closed already
	tensor map[string]located
	used   map[string]bool
}

type located struct {
	file *File
	info *Info
}

// add takes over the tensors of one checked file.
func (s *files) add(f *File) error {
	for i := range f.infos {
		info := &f.infos[i]
		if other, ok := s.tensor[info.Name]; ok {
			return fmt.Errorf("tensor %s is in %s and in %s", quote(info.Name), other.file.name, f.name)
		}
		s.tensor[info.Name] = located{f, info}
	}
	return nil
}

func (s *files) close() error {
	var err error
	for _, f := range s.open {
		if f.name != indexName {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// find looks a name up, also in the spelling of checkpoints that were converted from TensorFlow,
// where the scale and shift of a layer norm are called gamma and beta.
func (s *files) find(name string) (located, bool) {
	for _, n := range []string{name, legacyName(name)} {
		if t, ok := s.tensor[n]; ok {
			return t, true
		}
	}
	return located{}, false
}

func legacyName(name string) string {
	if n, ok := strings.CutSuffix(name, ".weight"); ok {
		return n + ".gamma"
	}
	if n, ok := strings.CutSuffix(name, ".bias"); ok {
		return n + ".beta"
	}
	return name
}

func (s *files) Has(name string) bool {
	_, ok := s.find(name)
	return ok
}

func (s *files) Shape(name string) ([]int, bool) {
	t, ok := s.find(name)
	if !ok {
		return nil, false
	}
	return slices.Clone(t.info.Shape), true
}

func (s *files) Float32(name string, shape ...int) ([]float32, error) {
	t, err := s.want(name, shape)
	if err != nil {
		return nil, err
	}
	data := make([]float32, t.info.Len())
	return data, s.read(data, t)
}

func (s *files) ReadFloat32(dst []float32, name string, shape ...int) error {
	t, err := s.want(name, shape)
	if err != nil {
		return err
	}
	return s.read(dst, t)
}

// want finds a tensor and checks its shape, before anything is allocated for it.
func (s *files) want(name string, shape []int) (located, error) {
	t, ok := s.find(name)
	if !ok {
		return t, missingTensor(name)
	}
	return t, checkShape(t.info.Name, t.info.Shape, shape)
}

func (s *files) read(dst []float32, t located) error {
	s.used[t.info.Name] = true
	if err := t.file.ReadFloat32(dst, t.info); err != nil {
		return err
	}
	return checkFinite(t.info.Name, t.info.Shape, dst)
}

func missingTensor(name string) error { return fmt.Errorf("tensor %s is missing", quote(name)) }

func checkShape(name string, have, want []int) error {
	if slices.Equal(have, want) {
		return nil
	}
	return fmt.Errorf("tensor %s has shape %v, config.json asks for %v", quote(name), have, want)
}

// checkFinite refuses weights that would turn every logit into NaN.
func checkFinite(name string, shape []int, data []float32) error {
	for i, v := range data {
		if v-v == 0 { // false for NaN and for both infinities
			continue
		}
		kind := "infinite"
		if math.IsNaN(float64(v)) {
			kind = "NaN"
		}
		at := make([]int, len(shape))
		for d := len(shape) - 1; d >= 0; d-- {
			at[d], i = i%shape[d], i/shape[d]
		}
		return fmt.Errorf("tensor %s is %s at %v", quote(name), kind, at)
	}
	return nil
}

// unread is the first tensor, in alphabetical order, that no one asked for.
func (s *files) unread(ignore func(name string) bool) (ignored []string, extra string) {
	for name := range s.tensor {
		switch {
		case s.used[name]:
		case ignore(name):
			ignored = append(ignored, name)
		case extra == "" || name < extra:
			extra = name
		}
	}
	slices.Sort(ignored)
	return ignored, extra
}

// dtypes lists the storage types of the parameters, the one with most elements first.
func (s *files) dtypes() []DType {
	elements := map[DType]int{}
	for name := range s.used {
		info := s.tensor[name].info
		elements[info.DType] += info.Len()
	}
	var list []DType
	for d := range elements {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b DType) int {
		if elements[a] != elements[b] {
			return elements[b] - elements[a]
		}
		return strings.Compare(string(a), string(b))
	})
	return list
}

// openWeights opens model.safetensors, or the shards that model.safetensors.index.json lists.
func openWeights(dir string) (s *files, err error) {
	s = &files{tensor: map[string]located{}, used: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	names := []string{weightsName}
	var index map[string]string
	if !exists(filepath.Join(dir, weightsName)) && exists(filepath.Join(dir, indexName)) {
		if names, index, err = s.readIndex(dir); err != nil {
			return s, err
		}
	}
	for _, name := range names {
		f, err := openRegular(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return s, missingWeights(dir, name)
		}
		if err != nil {
			return s, err
		}
		s.open = append(s.open, f)
		file, err := NewFile(f, f.size, name)
		if err != nil {
			return s, err
		}
		if err := s.add(file); err != nil {
			return s, err
		}
	}
	for name, shard := range index {
		if t, ok := s.tensor[name]; !ok || t.file.name != shard {
			return s, fmt.Errorf("%s: tensor %s is not in %s", indexName, quote(name), shard)
		}
	}
	return s, nil
}

// readIndex reads the map from tensor to shard. File names come from an untrusted file: they must be
// plain names, so that no index can point outside its folder.
func (s *files) readIndex(dir string) (shards []string, weightMap map[string]string, err error) {
	text, f, err := readSmall(filepath.Join(dir, indexName))
	if err != nil {
		return nil, nil, err
	}
	s.open = append(s.open, f)
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", indexName, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, nil, fmt.Errorf("%s: no weight_map", indexName)
	}
	listed := map[string]bool{}
	for tensor, shard := range index.WeightMap {
		if shard != filepath.Base(shard) || strings.ContainsAny(shard, `/\`) || !strings.HasSuffix(shard, ".safetensors") {
			return nil, nil, fmt.Errorf("%s: tensor %s is said to be in %s, which is not the name of a .safetensors file", indexName, quote(tensor), quote(shard))
		}
		listed[shard] = true
	}
	return slices.Sorted(maps.Keys(listed)), index.WeightMap, nil
}

// missingWeights explains a folder without weights; one with a pickle gets the way to convert it.
func missingWeights(dir, name string) error {
	for _, other := range []string{"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack"} {
		if exists(filepath.Join(dir, other)) {
			return fmt.Errorf("the weights are in %s, which is not read (a pickle can run code); convert it once with Python: "+
				`from transformers import AutoModelForSequenceClassification as M; M.from_pretrained(%q).save_pretrained(%q, safe_serialization=True)`,
				other, dir, dir)
		}
	}
	return fmt.Errorf("no %s in the folder", name)
}

// openFile is a file of the folder as it was when it was opened.
type openFile struct {
	*os.File
	name     string // base name
	size     int64
	modified time.Time
}

// openRegular opens a plain file (or a link to one); a pipe or a device would block or never end.
func openRegular(path string) (openFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return openFile{}, err
	}
	if !info.Mode().IsRegular() {
		return openFile{}, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	return openFile{f, filepath.Base(path), info.Size(), info.ModTime()}, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Memory makes Tensors of arrays that are in memory already, for models that were just trained. The
// arrays are copied when read.
func Memory(tensors []Tensor) Tensors {
	m := make(memory, len(tensors))
	for _, t := range tensors {
		m[t.Name] = t
	}
	return m
}

type memory map[string]Tensor

func (m memory) Has(name string) bool {
	_, ok := m[name]
	return ok
}

func (m memory) Shape(name string) ([]int, bool) {
	t, ok := m[name]
	return slices.Clone(t.Shape), ok
}

func (m memory) Float32(name string, shape ...int) ([]float32, error) {
	data := slices.Clone(m[name].Data)
	return data, m.ReadFloat32(data, name, shape...)
}

func (m memory) ReadFloat32(dst []float32, name string, shape ...int) error {
	t, ok := m[name]
	if !ok {
		return missingTensor(name)
	}
	if err := checkShape(name, t.Shape, shape); err != nil {
		return err
	}
	copy(dst, t.Data)
	return checkFinite(name, shape, t.Data)
}
