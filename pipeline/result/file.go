package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	// metadataKey is where results.parquet keeps the [Run] as JSON.
	metadataKey = "misroute"
	// rowGroup bounds what a reader must hold at once: 64 Ki rows are some 10 MB of columns. It is
	// counted in rows, never in bytes or in time, so that the same rows make the same file.
	rowGroup = 64 << 10
)

// A table writes one Parquet file of T. The bytes depend on the rows and on the metadata alone.
type table[T any] struct {
	f *os.File
	w *parquet.GenericWriter[T]
	// pending rows wait until they are a whole batch: pages end between two writes, so how the caller
	// cuts its rows would show in the bytes.
	pending []T
	texts   int64 // bytes of the pending rows' texts
	group   int64 // and of the row group's
}

const (
	// writeBatch is the rows of one write to the Parquet writer.
	writeBatch = 1024
	// Rows with texts may be of any size: a batch and a row group end early where they have this much.
	batchTexts = 8 << 20
	groupTexts = 64 << 20
)

// textual rows carry texts of any size.
type textual interface{ TextBytes() int64 }

func textBytes(row any) int64 {
	if r, ok := row.(textual); ok {
		return r.TextBytes()
	}
	return 0
}

func createTable[T any](path string) (*table[T], error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := parquet.NewGenericWriter[T](f,
		parquet.CreatedBy("misroute", fmt.Sprint(SchemaVersion), ""),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}),
		parquet.MaxRowsPerRowGroup(rowGroup))
	return &table[T]{f: f, w: w}, nil
}

func (t *table[T]) write(rows []T) error {
	for i := range rows {
		t.pending = append(t.pending, rows[i])
		t.texts += textBytes(&rows[i])
		if len(t.pending) == writeBatch || t.texts > batchTexts {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *table[T]) flush() error {
	_, err := t.w.Write(t.pending)
	clear(t.pending) // let go of texts and lists
	t.pending = t.pending[:0]
	t.group += t.texts
	t.texts = 0
	if err == nil && t.group > groupTexts {
		t.group = 0
		err = t.w.Flush()
	}
	return err
}

// close finishes the file and makes it durable; the first error of write or close counts.
func (t *table[T]) close() error {
	return first(t.flush(), t.w.Close(), t.f.Sync(), t.f.Close())
}

func (t *table[T]) abandon() { t.f.Close(); os.Remove(t.f.Name()) }

// writeTable writes rows, and pairs of metadata, to a temporary name beside path and renames it, so
// that path is either absent or whole.
func writeTable[T any](path string, rows []T, metadata ...string) error {
	tmp := path + ".tmp"
	t, err := createTable[T](tmp)
	if err != nil {
		return err
	}
	if err := t.write(rows); err != nil {
		t.abandon()
		return err
	}
	for i := 0; i+1 < len(metadata); i += 2 {
		t.w.SetKeyValueMetadata(metadata[i], metadata[i+1])
	}
	if err := t.close(); err != nil {
		os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, path)
}

// eachRow calls fn with runs of rows in file order; the slice is reused. It returns the metadata under
// key. A damaged file is an error that names it, never a panic: parquet-go checks little of what it
// reads.
func eachRow[T any](path, key string, fn func([]T) error) (meta string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: not a readable Parquet file: %v", path, p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	pf, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return "", fmt.Errorf("%s: not a readable Parquet file: %w", path, err)
	}
	if err := sameColumns[T](pf); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	meta, _ = pf.Lookup(key)
	r := parquet.NewGenericReader[T](pf)
	defer r.Close()
	var zero T
	buf := make([]T, 512)
	for {
		// Lists are appended to what stands in the row: start from zero values.
		for i := range buf {
			buf[i] = zero
		}
		n, err := r.Read(buf)
		if n > 0 {
			if err := fn(buf[:n]); err != nil {
				return meta, err
			}
		}
		if err == io.EOF {
			return meta, nil
		}
		if err != nil {
			return meta, fmt.Errorf("%s: %w", path, err)
		}
	}
}

// sameColumns refuses a Parquet file of another layout before the reader maps columns by name and
// leaves the missing ones silently zero.
func sameColumns[T any](pf *parquet.File) error {
	var zero T
	want := parquet.SchemaOf(zero)
	have := map[string]bool{}
	for _, f := range pf.Schema().Fields() {
		have[f.Name()] = true
	}
	for _, f := range want.Fields() {
		if !have[f.Name()] {
			return fmt.Errorf("column %q is missing: not a file of a misroute run", f.Name())
		}
	}
	return nil
}

func readTable[T any](path string) (rows []T, meta string, err error) {
	meta, err = eachRow(path, metadataKey, func(part []T) error {
		rows = append(rows, part...)
		return nil
	})
	return rows, meta, err
}

// Folder is a finished run, read back whole. Rows, Readings and Rejects are in the order of the
// messages. Measured is nil where the folder has no times.
type Folder struct {
	Dir      string // as it was given, for messages to a person; no part of the run
	Run      Run
	Rows     []Row
	Readings []Reading
	Rejects  []Reject
	Measured *Measured
}

// ReadFolder reads the run in dir. A folder that is no finished run is an error that says what is
// missing.
func ReadFolder(dir string) (*Folder, error) {
	f := &Folder{Dir: dir}
	var err error
	if f.Run, f.Rows, err = readResults(filepath.Join(dir, ResultsFile)); err != nil {
		return nil, unfinished(dir, err)
	}
	if f.Readings, _, err = readTable[Reading](filepath.Join(dir, ReadingsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if f.Rejects, _, err = readTable[Reject](filepath.Join(dir, RejectsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f.Measured, err = ReadMeasured(dir)
	return f, err
}

// unfinished says why there are no results in dir, where that is so.
func unfinished(dir string, err error) error {
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, statErr := os.Stat(filepath.Join(dir, PartialDir)); statErr == nil {
		return fmt.Errorf("%s: the run is not finished: finish it with eval --resume --out %s", dir, dir)
	}
	return fmt.Errorf("%s: no run here: %s is missing", dir, ResultsFile)
}

// ReadFinished is [ReadRun] with [ReadFolder]'s errors.
func ReadFinished(dir string) (Run, error) {
	run, err := ReadRun(dir)
	if err != nil {
		return run, unfinished(dir, err)
	}
	return run, nil
}

// ReadMeasured reads the times of the run in dir; nil where there are none.
func ReadMeasured(dir string) (*Measured, error) {
	path := filepath.Join(dir, MeasuredFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := new(Measured)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Stream gives the rows of one Parquet file in order, a few in memory at a time. An error ends it.
func Stream[T any](path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := errors.New("stopped")
		_, err := eachRow(path, metadataKey, func(rows []T) error {
			for i := range rows {
				if !yield(rows[i], nil) {
					return stopped
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			var zero T
			yield(zero, err)
		}
	}
}

// ReadRun reads the run facts of the finished run in dir alone. os.ErrNotExist: there is none.
func ReadRun(dir string) (Run, error) {
	path := filepath.Join(dir, ResultsFile)
	meta, err := eachRow(path, metadataKey, func([]struct {
		RunID string `parquet:"run_id,dict"`
	}) error {
		return io.EOF // the metadata is read by now
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return Run{}, err
	}
	run, err := parseRun(meta)
	if err != nil {
		return Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

func readResults(path string) (Run, []Row, error) {
	rows, meta, err := readTable[Row](path)
	if err != nil {
		return Run{}, nil, err
	}
	for i := range rows {
		rows[i].Absent()
	}
	run, err := parseRun(meta)
	if err != nil {
		return Run{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, rows, nil
}

// Absent makes lists of length zero nil again, so that a row that was read equals the row that was
// written, in UTC.
func (r *Row) Absent() {
	if len(r.Scores) == 0 {
		r.Scores = nil
	}
	if len(r.Kept) == 0 {
		r.Kept = nil
	}
	if len(r.Warnings) == 0 {
		r.Warnings = nil
	}
	if r.Date != nil {
		*r.Date = r.Date.UTC()
	}
}

func parseRun(meta string) (Run, error) {
	if meta == "" {
		return Run{}, fmt.Errorf("no run facts in the metadata (key %q): not a finished run", metadataKey)
	}
	var run Run
	if err := json.Unmarshal([]byte(meta), &run); err != nil {
		return Run{}, fmt.Errorf("run facts: %w", err)
	}
	if run.Schema > SchemaVersion {
		return Run{}, fmt.Errorf("schema version %d, this program reads up to %d: use a newer misroute", run.Schema, SchemaVersion)
	}
	return run, nil
}

// WriteFolder writes a whole run at once, for runs that are made in memory (merged, filtered,
// generated in tests). The evaluation itself streams through [Partial].
func WriteFolder(dir string, f *Folder) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeTable(filepath.Join(dir, ReadingsFile), f.Readings); err != nil {
		return err
	}
	if err := writeTable(filepath.Join(dir, RejectsFile), f.Rejects); err != nil {
		return err
	}
	if f.Measured != nil {
		if err := writeJSON(filepath.Join(dir, MeasuredFile), f.Measured); err != nil {
			return err
		}
	}
	meta, err := json.Marshal(f.Run)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ResultsFile)
	t, err := createTable[Row](path + ".tmp")
	if err != nil {
		return err
	}
	if err := t.write(f.Rows); err != nil {
		t.abandon()
		return err
	}
	t.w.SetKeyValueMetadata(metadataKey, string(meta))
	if err := t.close(); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
