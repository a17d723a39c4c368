package text

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"misroute/pipeline/mail"
)

// bigMbox writes an mbox of about size bytes.
func bigMbox(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "big.mbox")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := "The cake arrived late and cold, and the candles were broken; please refund it.\n"
	for n, i := int64(0), 0; n < size; i++ {
		body := ""
		for range 1 + i%60 {
			body += line
		}
		k, err := fmt.Fprintf(f, "From a@example.com Mon Mar  2 10:00:00 2026\nMessage-ID: <%d@example.com>\nSubject: order %d\nDate: Mon, 2 Mar 2026 10:00:00 +0000\n\n%s\n", i, i, body)
		if err != nil {
			t.Fatal(err)
		}
		n += int64(k)
	}
	return path
}

// peak reads an export to text and returns the most memory the process held from the system
// meanwhile, sampled every thousand messages. What earlier tests left is given back before.
func peak(t *testing.T, path string) (messages, bytes int64) {
	t.Helper()
	debug.FreeOSMemory()
	r, err := mail.Open(context.Background(), []string{path}, mail.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e := NewExtractor(Options{})
	var labels mail.Labels
	var stats runtime.MemStats
	for {
		m, err := r.Next()
		if err == io.EOF {
			return messages, bytes
		}
		if err != nil {
			t.Fatal(err)
		}
		id := labels.Identify(m)
		if _, rej := e.Extract(m, &id); rej != nil {
			t.Fatalf("record %d: %+v", m.RecordNo, rej)
		}
		if messages++; messages%1000 == 1 {
			runtime.ReadMemStats(&stats)
			bytes = max(bytes, int64(stats.Sys-stats.HeapReleased))
		}
	}
}

// What is held does not grow with the export: ten times the mail, no more memory. MISROUTE_LONG=1
// reads two gigabytes.
func TestFlatMemory(t *testing.T) {
	small, large := int64(4<<20), int64(40<<20)
	if os.Getenv("MISROUTE_LONG") != "" {
		small, large = 200<<20, 2<<30
	}
	_, before := peak(t, bigMbox(t, small))
	n, after := peak(t, bigMbox(t, large))
	t.Logf("%d messages; %d MB held over %d MB, %d MB over %d MB", n, before>>20, small>>20, after>>20, large>>20)
	if after > before+32<<20 || after > 200<<20 {
		t.Errorf("%d MB held over %d MB of mail, %d MB over %d MB", before>>20, small>>20, after>>20, large>>20)
	}
}
