package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
)

// counter discards what is written and knows how much it was.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// BenchmarkExport measures composing and encoding mail, without a disk.
func BenchmarkExport(b *testing.B) {
	g := mustGrammar(b)
	for _, p := range []pool{train, judged} {
		b.Run(fmt.Sprintf("pool=%s", poolNames[p]), func(b *testing.B) {
			const messages = 2000
			o := options{seed: 1, weeks: []isoWeek{w47}, messages: messages, split: &p, recipe: usual}
			var c counter
			b.ReportAllocs()
			for b.Loop() {
				c.n = 0
				if err := writeExport(context.Background(), &c, g, o); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(c.n)
			b.ReportMetric(float64(b.N)*messages/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// A million messages must need no more memory than a thousand.
func TestStreamingNeedsConstantMemory(t *testing.T) {
	messages := 20_000
	if os.Getenv("MISROUTE_LONG") == "1" {
		messages = 1_000_000
	}
	g := mustGrammar(t)
	heapAfter := func(messages int) uint64 {
		o := options{seed: 1, weeks: []isoWeek{w47}, messages: messages, recipe: usual}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := writeExport(context.Background(), io.Discard, g, o); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	// All memory ever asked for, not only what is held at the end: buffers grow to the
	// longest message and no further.
	const allowed = 4 << 20
	if n := heapAfter(messages); n > allowed {
		t.Errorf("%d messages asked for %d bytes of memory, want at most %d", messages, n, allowed)
	}
}
