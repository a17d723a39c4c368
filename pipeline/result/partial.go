package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Segment is what a run of consecutive messages left. Every message is in it exactly once: as a row
// or as a reject.
type Segment struct {
	Rows     []Row
	Readings []Reading
	Rejects  []Reject
	Timings  []Timing
	// Checksum of the messages' bytes, in order, by whoever writes the segment; a resumed run compares
	// it with what it reads. 0: unknown.
	Checksum uint32
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
	lock     *os.File // nil where the system has no locks
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
// begun anew. A folder that another process is writing is refused: two would mix their segments.
func OpenPartial(out string, key map[string]string, resume bool) (*Partial, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFolder(out)
	if err != nil {
		return nil, err
	}
	p := &Partial{out: out, dir: filepath.Join(out, PartialDir), lock: lock}
	if err := p.begin(key, resume); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Partial) begin(key map[string]string, resume bool) error {
	keyPath := filepath.Join(p.dir, "key.json")
	b, err := os.ReadFile(keyPath)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		var old keyFile
		if err := json.Unmarshal(b, &old); err != nil {
			return fmt.Errorf("%s: %w: remove the folder to start anew", keyPath, err)
		}
		if diff := keyDifference(old.Key, key); diff != "" {
			what := "resume"
			if !resume {
				what = "start over"
			}
			return fmt.Errorf("%s holds an unfinished run of another kind: cannot %s: %s; use another --out or remove %s", p.out, what, diff, p.dir)
		}
		if resume {
			return p.scan()
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	return writeJSON(keyPath, keyFile{SchemaVersion, key})
}

// Close lets another process have the folder. What was made durable stays.
func (p *Partial) Close() {
	if p.lock != nil {
		p.lock.Close()
		p.lock = nil
	}
}

// keyOfAll is the digest over the whole key: it differs whenever another part does, and says nothing.
const keyOfAll = "all"

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
	for _, k := range append(slices.DeleteFunc(sorted, func(k string) bool { return k == keyOfAll }), keyOfAll) {
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

// has says whether segment i is there whole. The results are written last, but a folder that was being
// removed when the process died may lack any file.
func (p *Partial) has(i int) bool {
	for _, f := range segmentFiles {
		if _, err := os.Stat(p.path(i, f)); err != nil {
			return false
		}
	}
	return true
}

// Append makes a segment durable. After an error the segment is not there, and nothing of it is left
// that a resumed run would take for a segment.
func (p *Partial) Append(s *Segment) error {
	i := p.segments
	if err := writeTable(p.path(i, TimingsFile), s.Timings); err != nil {
		return err
	}
	if err := writeTable(p.path(i, ReadingsFile), s.Readings); err != nil {
		return err
	}
	if err := writeTable(p.path(i, RejectsFile), s.Rejects); err != nil {
		return err
	}
	if err := writeTable(p.path(i, ResultsFile), s.Rows, checksumKey, strconv.FormatUint(uint64(s.Checksum), 16)); err != nil {
		return err
	}
	p.segments++
	return syncFolder(p.dir)
}

// checksumKey is where the results of a segment keep [Segment.Checksum].
const checksumKey = "misroute.checksum"

// Segments is the number of segments that are there.
func (p *Partial) Segments() int { return p.segments }

// Placed is where a message of a segment stood.
type Placed struct {
	Source     string `parquet:"source,dict"`
	Member     string `parquet:"member,dict"`
	RecordNo   int64  `parquet:"record_no,delta"`
	ByteOffset int64  `parquet:"byte_offset,delta"`
	ByteLength int64  `parquet:"byte_length"`
}

// Places says where the messages of segment i stood, rows and rejects apart, each in order, and gives
// the segment's checksum.
func (p *Partial) Places(i int) (rows, rejects []Placed, checksum uint32, err error) {
	rows, checksum, err = placesOf(p.path(i, ResultsFile))
	if err != nil {
		return nil, nil, 0, err
	}
	rejects, _, err = placesOf(p.path(i, RejectsFile))
	return rows, rejects, checksum, err
}

func placesOf(path string) (list []Placed, checksum uint32, err error) {
	meta, err := eachRow(path, checksumKey, func(part []Placed) error {
		list = append(list, part...)
		return nil
	})
	if n, parseErr := strconv.ParseUint(meta, 16, 32); parseErr == nil {
		checksum = uint32(n)
	}
	return list, checksum, err
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
	var messages int64
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
		messages += int64(s.Messages())
		return first(rows.write(s.Rows), readings.write(s.Readings), rejects.write(s.Rejects), timings.write(s.Timings))
	})
	if err == nil && messages != run.Ledger.Read {
		err = fmt.Errorf("%s holds %d messages and the run counted %d: something else changed the folder; start over without --resume", p.dir, messages, run.Ledger.Read)
	}
	if err == nil {
		var meta []byte
		if meta, err = json.Marshal(run); err == nil {
			rows.w.SetKeyValueMetadata(metadataKey, string(meta))
		}
	}
	err = first(err, rows.close(), readings.close(), rejects.close(), timings.close())
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
	if err := syncFolder(p.out); err != nil {
		return err
	}
	p.Close()
	return os.RemoveAll(p.dir)
}

// first is the first error of a list: what a full disk says four times is said once.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
