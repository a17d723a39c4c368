//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"misroute/pipeline/result"
)

// build makes the programs of this repository in a folder of the test's.
func build(t testing.TB, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "misroute/cmd/"+name).CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}

// evalStream pipes so many generated messages, which never stand on a disk, into an evaluation with
// --memory, and returns its peak resident memory in bytes and the messages a second.
func evalStream(t testing.TB, programs, memory string, messages int) (peak int64, rate float64) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run")
	crumb := exec.Command(filepath.Join(programs, "crumb"), "--week", "2026-W20", "--messages", fmt.Sprint(messages), "--out", "-")
	eval := exec.Command(filepath.Join(programs, "misroute"), "eval", "--model", wordsModel, "--memory", memory, "--progress", "none", "--out", out, "-")
	var err error
	if eval.Stdin, err = crumb.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := crumb.Start(); err != nil {
		t.Fatal(err)
	}
	report, err := eval.CombinedOutput()
	if err := errors.Join(err, crumb.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	rate = float64(messages) / time.Since(began).Seconds()
	run, err := result.ReadRun(out)
	if err != nil {
		t.Fatal(err)
	}
	if run.Ledger.Read != int64(messages) {
		t.Errorf("%d of %d messages in the ledger", run.Ledger.Read, messages)
	}
	peak = eval.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS != "darwin" {
		peak <<= 10 // KiB elsewhere
	}
	return peak, rate
}

// BenchmarkEvalStream measures the whole program, generator and reports included:
//
//	go test -run '^$' -bench EvalStream -benchtime 1x ./cmd/misroute
//
// MISROUTE_LONG=1 makes it a million messages (2 GB of mail) instead of 20,000.
func BenchmarkEvalStream(b *testing.B) {
	programs, messages := build(b, "crumb", "misroute"), 20_000
	if os.Getenv("MISROUTE_LONG") != "" {
		messages = 1_000_000
	}
	for _, memory := range []string{"512MiB"} {
		b.Run("memory="+memory, func(b *testing.B) {
			for b.Loop() {
				peak, rate := evalStream(b, programs, memory, messages)
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
				b.ReportMetric(rate, "messages/s")
			}
		})
	}
}

// Memory stays under what --memory says (and what the program and its model take beside it), whatever
// the size of the export.
func TestMemoryStaysUnderTheLimit(t *testing.T) {
	if os.Getenv("MISROUTE_LONG") == "" {
		t.Skip("set MISROUTE_LONG=1: it takes a minute")
	}
	const (
		limit   = 96 << 20
		program = 40 << 20 // code, stacks, and a model of 1 MB
	)
	programs := build(t, "crumb", "misroute")
	for _, messages := range []int{20_000, 200_000} {
		peak, rate := evalStream(t, programs, "96MiB", messages)
		t.Logf("%d messages: %d MB at the most, %.0f a second", messages, peak>>20, rate)
		if peak > limit+program {
			t.Errorf("%d messages took %d bytes of memory, want at most %d", messages, peak, limit+program)
		}
	}
}
