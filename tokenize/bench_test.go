package tokenize

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"
)

// newsgroupsWeek returns the messages of the newsgroups week, headers and all, split at the lines that
// start with "From " (peers/bench.js does the same).
func newsgroupsWeek(tb testing.TB) [][]byte {
	tb.Helper()
	f, err := os.Open(sharedPath(tb, "data", "newsgroups", "week-1993-W16.mbox.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return bytes.Split(all, []byte("\nFrom "))
}

// BenchmarkEncode reads a week of newsgroups on one core. Run with
//
//	MISROUTE_SHARED=../shared go test ./tokenize -bench Encode -cpu 1
func BenchmarkEncode(b *testing.B) {
	messages := newsgroupsWeek(b)
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	for _, name := range []string{"distilbert", "roberta", "t5", "albert"} {
		b.Run(name, func(b *testing.B) {
			tok, err := Load(sharedPath(b, "data", "tokenizer-oracle", name, "tokenizer.json"))
			if err != nil {
				b.Fatal(err)
			}
			var e Encoding
			for _, m := range messages { // buffers and caches grow once
				tok.Encode(&e, m)
			}
			tokens := 0
			b.SetBytes(int64(size))
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				tokens = 0
				for _, m := range messages {
					tok.Encode(&e, m)
					tokens += len(e.IDs)
				}
			}
			total := float64(tokens) * float64(b.N)
			b.ReportMetric(total/b.Elapsed().Seconds(), "tokens/s")
			if cpu := cpuTime() - start; cpu > 0 {
				b.ReportMetric(total/cpu.Seconds(), "tokens/cpu-s")
			}
		})
	}
}
