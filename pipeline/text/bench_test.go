package text

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jhillyerd/enmime/v2"

	"misroute/pipeline/mail"
)

// weeks are real exports: plain messages, and MIME with HTML.
var weeks = []string{"newsgroups/week-1993-W16.mbox.gz", "spamassassin/2002-W30.mbox.gz", "spamassassin/2002-W36.mbox.gz"}

// unpackWeek writes a week uncompressed, so that what is measured is mail alone.
func unpackWeek(b *testing.B, name string) (path string, size int64) {
	b.Helper()
	f, err := os.Open(shared(b, name))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	path = filepath.Join(b.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	return path, int64(len(data))
}

// cpuRate reports bytes per second of processor time, which a busy machine disturbs less than the
// clock: the peers are measured the same way.
func cpuRate(b *testing.B, size int64) (report func()) {
	start := cpuTime(b)
	return func() {
		b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpuTime(b)-start), "MB/cpu-s")
	}
}

func cpuTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skip(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkBytesToText is everything between an mbox file and the text a router reads, on one
// core: splitting, identity, text, quotes, digests. pipeline/mail/peers/python_mail.py does less
// work over the same files.
func BenchmarkBytesToText(b *testing.B) {
	for _, name := range weeks {
		b.Run("week="+filepath.Base(filepath.Dir(name))+"-"+filepath.Base(name)[:8], func(b *testing.B) {
			path, size := unpackWeek(b, name)
			b.SetBytes(size)
			b.ReportAllocs()
			e := NewExtractor(Options{})
			var labels mail.Labels
			defer cpuRate(b, size)()
			for b.Loop() {
				r, err := mail.Open(context.Background(), []string{path}, mail.Options{})
				if err != nil {
					b.Fatal(err)
				}
				for {
					m, err := r.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					id := labels.Identify(m)
					e.Extract(m, &id)
				}
				r.Close()
			}
		})
	}
}

// BenchmarkEnmime is the peer: the same messages through enmime's envelope, its usual way, already
// split.
func BenchmarkEnmime(b *testing.B) {
	for _, name := range weeks {
		b.Run("week="+filepath.Base(filepath.Dir(name))+"-"+filepath.Base(name)[:8], func(b *testing.B) {
			path, size := unpackWeek(b, name)
			r, err := mail.Open(context.Background(), []string{path}, mail.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			var raw [][]byte
			for {
				m, err := r.Next()
				if err != nil {
					break
				}
				raw = append(raw, m.Raw)
			}
			b.SetBytes(size)
			b.ReportAllocs()
			chars := 0
			defer cpuRate(b, size)()
			for b.Loop() {
				for _, m := range raw {
					if env, err := enmime.ReadEnvelope(bytes.NewReader(m)); err == nil {
						chars += len(env.Text) + len(env.GetHeader("Subject"))
					}
				}
			}
			if chars == 0 {
				b.Fatal("enmime read nothing")
			}
		})
	}
}
