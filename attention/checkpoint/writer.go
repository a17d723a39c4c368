package checkpoint

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Tensor is a named array of float32, row-major.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// WriteSafetensors writes the tensors as F32, in the order given, with the metadata
// {"format": "pt"} that Python's loaders ask for. The data starts at a multiple of eight bytes.
func WriteSafetensors(w io.Writer, tensors []Tensor) error {
	header := []byte(`{"__metadata__":{"format":"pt"}`)
	at := 0
	seen := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		if n != len(t.Data) {
			return fmt.Errorf("tensor %s: shape %v has %d elements, the data %d", quote(t.Name), t.Shape, n, len(t.Data))
		}
		if seen[t.Name] || t.Name == "__metadata__" {
			return fmt.Errorf("tensor %s: the name is taken", quote(t.Name))
		}
		seen[t.Name] = true
		entry := struct {
			DType   DType  `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}{F32, slices.Concat([]int{}, t.Shape), [2]int{at, at + 4*n}}
		if entry.Shape == nil { // a scalar's shape is [], not null
			entry.Shape = []int{}
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			return err
		}
		value, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		header = slices.Concat(header, []byte{','}, name, []byte{':'}, value)
		at += 4 * n
	}
	header = append(header, '}')
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	b := bufio.NewWriterSize(w, 1<<16)
	_ = binary.Write(b, binary.LittleEndian, uint64(len(header))) // bufio keeps the first error for Flush
	_, _ = b.Write(header)
	for _, t := range tensors {
		for _, v := range t.Data {
			var p [4]byte
			binary.LittleEndian.PutUint32(p[:], math.Float32bits(v))
			_, _ = b.Write(p[:])
		}
	}
	return b.Flush()
}

// Write makes or replaces the model folder dir: config.json from config (any JSON value) and
// model.safetensors from tensors. Both files are complete under temporary names before either is
// renamed, config.json last, so a reader never sees half a model.
func Write(dir string, config any, tensors []Tensor) (err error) {
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	weights, err := writeTemp(dir, weightsName, func(w io.Writer) error { return WriteSafetensors(w, tensors) })
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(weights))
		}
	}()
	conf, err := writeTemp(dir, configName, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(conf))
		}
	}()
	if err := os.Rename(weights, filepath.Join(dir, weightsName)); err != nil {
		return err
	}
	return os.Rename(conf, filepath.Join(dir, configName))
}

// writeTemp fills a temporary file beside name, flushes it to the disk and returns its path.
func writeTemp(dir, name string, fill func(io.Writer) error) (path string, err error) {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return "", err
	}
	err = fill(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", filepath.Join(dir, name), err), remove(f.Name()))
	}
	return f.Name(), nil
}

// remove deletes a temporary file; one that has been renamed already is no error.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
