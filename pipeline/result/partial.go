package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Segment is what a run of consecutive messages left. Every message is in it exactly once: as a row
// or as a reject.
type Segment struct {
	Rows     []Row
	Readings []Reading
	Rejects  []Reject
	Timings  []Timing
}

// Messages counts the messages of the segment.
func (s *Segment) Messages() int { return len(s.Rows) + len(s.Rejects) }

// Partial is a run that is being written: durable segments under OUT/.partial, each a few Parquet
// files of which the results are renamed last, so that a segment is there whole or not at all
// whenever the process dies. [Partial.Assemble] makes the final files of them. How the messages fell
// into segments leaves no trace in the final bytes.
type Partial struct {
	out      string // the run folder
	dir      string // out/.partial
	segments int
}

// A mismatch is a resumed run whose configuration is another one.
type keyFile struct {
	Schema int               `json:"schema_version"`
	Key    map[string]string `json:"key"`
}

// OpenPartial starts a run in folder out, or with resume goes on with the one that is there. The key
// says what the rows depend on (model digest, cap, ...): resuming with another key is refused with
// the name and the two values that differ. Without resume, leftovers of an unfinished run with
// another key are refused as well, since they may hold hours of work; with the same key they are
// begun anew.
func OpenPartial(out string, key map[string]string, resume bool) (*Partial, error) {
	p := &Partial{out: out, dir: filepath.Join(out, PartialDir)}
	keyPath := filepath.Join(p.dir, "key.json")
	b, err := os.ReadFile(keyPath)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		var old keyFile
		if err := json.Unmarshal(b, &old); err != nil {
			return nil, fmt.Errorf("%s: %w: remove the folder to start anew", keyPath, err)
		}
		if diff := keyDifference(old.Key, key); diff != "" {
			what := "resume"
			if !resume {
				what = "start over"
			}
			return nil, fmt.Errorf("%s holds an unfinished run of another kind: cannot %s: %s; use another --out or remove %s", out, what, diff, p.dir)
		}
		if resume {
			return p, p.scan()
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	return p, writeJSON(keyPath, keyFile{SchemaVersion, key})
}

// keyDifference names the first key whose value differs, or "".
func keyDifference(a, b map[string]string) string {
	names := map[string]bool{}
	for k := range a {
		names[k] = true
	}
	for k := range b {
		names[k] = true
	}
	sorted := make([]string, 0, len(names))
	for k := range names {
		sorted = append(sorted, k)
	}
	sort.Strings(sorted)
	for _, k := range sorted {
		if a[k] != b[k] {
			return fmt.Sprintf("its %s is %q, asked is %q", k, a[k], b[k])
		}
	}
	return ""
}

// scan counts the whole segments and removes what a killed process left half-written.
func (p *Partial) scan() error {
	for p.has(p.segments) {
		p.segments++
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	whole := map[string]bool{"key.json": true}
	for i := range p.segments {
		for _, f := range segmentFiles {
			whole[segmentName(i, f)] = true
		}
	}
	for _, e := range entries {
		if !whole[e.Name()] {
			if err := os.RemoveAll(filepath.Join(p.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// segmentFiles in the order of writing; the last one is the marker.
var segmentFiles = []string{TimingsFile, ReadingsFile, RejectsFile, ResultsFile}

func segmentName(i int, file string) string { return fmt.Sprintf("%06d-%s", i, file) }

func (p *Partial) path(i int, file string) string { return filepath.Join(p.dir, segmentName(i, file)) }

func (p *Partial) has(i int) bool {
	_, err := os.Stat(p.path(i, ResultsFile))
	return err == nil
}

// Append makes a segment durable.
func (p *Partial) Append(s *Segment) error {
	i := p.segments
	if err := errors.Join(
		writeTable(p.path(i, TimingsFile), s.Timings),
		writeTable(p.path(i, ReadingsFile), s.Readings),
		writeTable(p.path(i, RejectsFile), s.Rejects)); err != nil {
		return err
	}
	if err := writeTable(p.path(i, ResultsFile), s.Rows); err != nil {
		return err
	}
	p.segments++
	return nil
}

// Each calls fn for every segment that is there, in order.
func (p *Partial) Each(fn func(*Segment) error) error {
	for i := range p.segments {
		var s Segment
		var err error
		if s.Rows, _, err = readTable[Row](p.path(i, ResultsFile)); err != nil {
			return err
		}
		if s.Rejects, _, err = readTable[Reject](p.path(i, RejectsFile)); err != nil {
			return err
		}
		if s.Readings, _, err = readTable[Reading](p.path(i, ReadingsFile)); err != nil {
			return err
		}
		if s.Timings, _, err = readTable[Timing](p.path(i, TimingsFile)); err != nil {
			return err
		}
		if err := fn(&s); err != nil {
			return err
		}
	}
	return nil
}

// final is the folder in which the finished files are gathered before they are published.
func (p *Partial) final() string { return filepath.Join(p.dir, "final") }

// Assemble writes the final Parquet files from the segments, one segment in memory at a time, and
// returns the folder they stand in. Further files (reports) may be added there before [Partial.Publish].
func (p *Partial) Assemble(run Run, measured Measured) (dir string, err error) {
	dir = p.final()
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	rows, err := createTable[Row](filepath.Join(dir, ResultsFile))
	if err != nil {
		return "", err
	}
	readings, err := createTable[Reading](filepath.Join(dir, ReadingsFile))
	if err != nil {
		return "", err
	}
	rejects, err := createTable[Reject](filepath.Join(dir, RejectsFile))
	if err != nil {
		return "", err
	}
	timings, err := createTable[Timing](filepath.Join(dir, TimingsFile))
	if err != nil {
		return "", err
	}
	err = p.Each(func(s *Segment) error {
		for i := range s.Rows {
			s.Rows[i].RunID = run.RunID
		}
		return errors.Join(rows.write(s.Rows), readings.write(s.Readings), rejects.write(s.Rejects), timings.write(s.Timings))
	})
	if err == nil {
		var meta []byte
		if meta, err = json.Marshal(run); err == nil {
			rows.w.SetKeyValueMetadata(metadataKey, string(meta))
		}
	}
	err = errors.Join(err, rows.close(), readings.close(), rejects.close(), timings.close())
	if err != nil {
		return "", err
	}
	return dir, writeJSON(filepath.Join(dir, MeasuredFile), measured)
}

// Publish moves the assembled files into the run folder, the results last: their presence says that
// the run is finished. A finished run of the same folder is replaced.
func (p *Partial) Publish() error {
	entries, err := os.ReadDir(p.final())
	if err != nil {
		return err
	}
	// The marker goes first where an older run is replaced, and comes last.
	if err := os.Remove(filepath.Join(p.out, ResultsFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Name() != ResultsFile && !strings.HasSuffix(e.Name(), ".tmp") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range append(names, ResultsFile) {
		if err := os.Rename(filepath.Join(p.final(), name), filepath.Join(p.out, name)); err != nil {
			return err
		}
	}
	return os.RemoveAll(p.dir)
}
