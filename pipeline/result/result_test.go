package result

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

func sampleRows(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		date := time.Date(2026, 11, 16, 9, i%60, 0, int(7*time.Millisecond), time.UTC)
		rows[i] = Row{
			RunID: "r", Source: "week.mbox", RecordNo: int64(i + 1), ByteOffset: int64(i) * 700, ByteLength: 690,
			MessageID: fmt.Sprintf("<%d@example.invalid>", i), ContentSHA256: fmt.Sprintf("%064x", i), Week: "2026-W47", Date: &date,
			Label: "refunds", Prediction: "late deliveries", Score: 0.75, Margin: 1.5,
			Scores:      []QueueScore{{"refunds", 0.25}, {"late deliveries", 0.75}},
			TokensTotal: 300, TokensKept: 256, Kept: []Range{{0, 255}, {299, 300}}, Cap: 256, Strategy: "head",
			Windows: 1, Cells: 65536, FLOPs: 1 << 30, TextChars: 1200, Warnings: []string{"charset_guessed"}, Status: StatusScored,
		}
		if i%3 == 0 { // no date, no lists: what is absent must come back absent
			rows[i].Date, rows[i].Scores, rows[i].Kept, rows[i].Warnings = nil, nil, nil, nil
		}
	}
	return rows
}

func sampleReadings(n int) []Reading {
	out := make([]Reading, n)
	for i := range out {
		out[i] = Reading{Source: "week.mbox", RecordNo: int64(i + 1), Kind: ReadWhole, Prediction: "refunds", LabelMargin: float32(i)}
	}
	return out
}

func TestFolderRoundTrip(t *testing.T) {
	dir := t.TempDir()
	want := &Folder{
		Dir:      dir,
		Run:      Run{Schema: SchemaVersion, RunID: "r", Cap: 256, Queues: []string{"refunds", "late deliveries"}, Ledger: Ledger{Read: 10, Scored: 10}},
		Rows:     sampleRows(10),
		Readings: sampleReadings(3),
		Rejects:  []Reject{{Source: "week.mbox", RecordNo: 11, Stage: "mime", Code: "mime.too_many_parts", LimitName: "parts", LimitValue: 1000, LimitActual: 12840}},
		Measured: &Measured{Seconds: 2.5, Workers: 2},
	}
	if err := WriteFolder(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Rows {
		if !reflect.DeepEqual(got.Rows[i], want.Rows[i]) {
			t.Fatalf("row %d: read back\n%+v\nwant\n%+v", i, got.Rows[i], want.Rows[i])
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the rows agree, but readings, rejects or run facts do not: read %+v, want %+v", got.Run, want.Run)
	}
}

// The final files depend on the messages alone, not on how they fell into segments.
func TestPartialSegmentsLeaveNoTrace(t *testing.T) {
	// Enough rows for many pages and odd cuts between them.
	const n = 9000
	rows, readings := sampleRows(n), sampleReadings(n)
	write := func(cuts ...int) string {
		out := t.TempDir()
		p, err := OpenPartial(out, map[string]string{"model": "m"}, false)
		if err != nil {
			t.Fatal(err)
		}
		from := 0
		for _, to := range append(cuts, len(rows)) {
			if err := p.Append(&Segment{Rows: rows[from:to], Readings: readings[from:to]}); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		if _, err := p.Assemble(Run{Schema: SchemaVersion, RunID: "abc", Ledger: Ledger{Read: n}}, Measured{}); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(out, PartialDir)); !os.IsNotExist(err) {
			t.Errorf("the partial folder is still there: %v", err)
		}
		return out
	}
	a, b := write(), write(1, 1, 20, 49, 1023, 1025, 5000, 8999)
	for _, f := range []string{ResultsFile, ReadingsFile, RejectsFile, TimingsFile} {
		x, err := os.ReadFile(filepath.Join(a, f))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s: one segment and five give different bytes", f)
		}
	}
	f, err := ReadFolder(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Rows) != n || f.Rows[7].RunID != "abc" {
		t.Errorf("%d rows, run id %q; want %d rows of run abc", len(f.Rows), f.Rows[7].RunID, n)
	}
}

// Rows with texts end their batches and row groups by size; that too leaves no trace of the segments.
func TestTextsBoundBatches(t *testing.T) {
	rows := sampleRows(300)
	for i := range rows {
		rows[i].Text = strings.Repeat(fmt.Sprintf("line %d of a long mail\n", i), 20_000) // 0.48 MB
	}
	write := func(cuts ...int) string {
		out := t.TempDir()
		p, err := OpenPartial(out, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		from := 0
		for _, to := range append(cuts, len(rows)) {
			if err := p.Append(&Segment{Rows: rows[from:to]}); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		if _, err := p.Assemble(Run{Schema: SchemaVersion, Ledger: Ledger{Read: int64(len(rows))}}, Measured{}); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(out, ResultsFile)
	}
	a, b := write(), write(7, 100, 101, 250)
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Error("one segment and five give different bytes")
	}
	f, err := parquet.OpenFile(bytes.NewReader(x), int64(len(x)))
	if err != nil {
		t.Fatal(err)
	}
	// 300 rows of 0.48 MB are 144 MB: two groups that ended when they had 64 MB, and the rest.
	if n := len(f.RowGroups()); n != 3 {
		t.Errorf("%d row groups, want 3", n)
	}
}

func TestPartialResume(t *testing.T) {
	out := t.TempDir()
	key := map[string]string{"model": "sha256:1", "cap": "256"}
	p, err := OpenPartial(out, key, false)
	if err != nil {
		t.Fatal(err)
	}
	rows := sampleRows(9)
	for i := 0; i < 9; i += 3 {
		if err := p.Append(&Segment{Rows: rows[i : i+3]}); err != nil {
			t.Fatal(err)
		}
	}
	// A process that dies while it writes the fourth segment leaves files without the marker.
	if err := os.WriteFile(p.path(3, TimingsFile), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path(3, ResultsFile)+".tmp", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPartial(out, key, true); err == nil || !strings.Contains(err.Error(), "another misroute is writing") {
		t.Errorf("opened twice: error %v, want a refusal", err)
	}
	p.Close()
	if _, err := OpenPartial(out, map[string]string{"model": "sha256:1", "cap": "128"}, true); err == nil ||
		!strings.Contains(err.Error(), `its cap is "256", asked is "128"`) {
		t.Errorf("another cap: error %v, want one that names both values", err)
	}
	if _, err := ReadFolder(out); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("reading an unfinished run: %v, want a word about --resume", err)
	}
	q, err := OpenPartial(out, key, true)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := q.Each(func(s *Segment) error { n += s.Messages(); return nil }); err != nil {
		t.Fatal(err)
	}
	if n != 9 {
		t.Errorf("%d messages after resuming, want the 9 that were durable", n)
	}
	if _, err := os.Stat(p.path(3, TimingsFile)); !os.IsNotExist(err) {
		t.Errorf("the half-written segment is still there")
	}
	if _, err := q.Assemble(Run{Schema: SchemaVersion, Ledger: Ledger{Read: 10}}, Measured{}); err == nil || !strings.Contains(err.Error(), "holds 9 messages and the run counted 10") {
		t.Errorf("a message short: %v, want both counts", err)
	}
	// A process that dies while it removes the folder leaves segments with holes: what follows a hole is
	// no longer a segment.
	q.Close()
	if err := os.Remove(p.path(1, TimingsFile)); err != nil {
		t.Fatal(err)
	}
	r, err := OpenPartial(out, key, true)
	if err != nil || r.Segments() != 1 {
		t.Fatalf("%d segments, error %v; want the one before the hole", r.Segments(), err)
	}
}

func TestReadFolderRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), "no run here") {
		t.Errorf("empty folder: %v", err)
	}
	path := filepath.Join(dir, ResultsFile)
	for name, content := range map[string][]byte{"text": []byte("not parquet at all"), "empty": nil, "magic only": []byte("PAR1PAR1")} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
	}
	if err := writeTable(path, []Reject{{Code: "x"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("another layout: %v, want the missing column named", err)
	}
	if err := WriteFolder(dir, &Folder{Run: Run{Schema: SchemaVersion + 1}, Rows: sampleRows(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), "schema version 2") {
		t.Errorf("newer schema: %v", err)
	}
}

func TestReadingKeepsNaN(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.parquet")
	if err := writeTable(path, []Reading{{LabelMargin: float32(math.NaN())}}); err != nil {
		t.Fatal(err)
	}
	rows, _, err := readTable[Reading](path)
	if err != nil || len(rows) != 1 || !math.IsNaN(float64(rows[0].LabelMargin)) {
		t.Errorf("read %v, %v; want one NaN", rows, err)
	}
}

// Any damaged file is an error, never a panic.
func FuzzReadResults(f *testing.F) {
	dir := f.TempDir()
	if err := WriteFolder(dir, &Folder{Run: Run{Schema: SchemaVersion}, Rows: sampleRows(4)}); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, ResultsFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte("PAR1"))
	path := filepath.Join(dir, "fuzz.parquet")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, _ = readResults(path)
	})
}
