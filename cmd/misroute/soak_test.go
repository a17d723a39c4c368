//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"misroute/pipeline/result"
)

// TestSoak evaluates random weeks with random options and interrupts them at random, until the time is
// up: MISROUTE_SOAK says how long (default 10m), MISROUTE_SOAK_SEED where to begin. A failure prints
// the seed of the round that failed.
func TestSoak(t *testing.T) {
	if os.Getenv("MISROUTE_LONG") == "" {
		t.Skip("set MISROUTE_LONG=1: it takes ten minutes, or MISROUTE_SOAK")
	}
	length := 10 * time.Minute
	if s := os.Getenv("MISROUTE_SOAK"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("MISROUTE_SOAK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	programs := build(t, "crumb")
	rounds, total := 0, soaked{}
	for end := time.Now().Add(length); time.Now().Before(end); rounds, seed = rounds+1, seed+1 {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { soak(t, seed, programs, &total) }) {
			t.Fatalf("round %d failed: MISROUTE_LONG=1 MISROUTE_SOAK=1s MISROUTE_SOAK_SEED=%d repeats it", rounds, seed)
		}
	}
	t.Logf("%d rounds, %d messages, %d interruptions (%d while something was done and something left), %d rejects, %d duplicates",
		rounds, total.messages, total.interruptions, total.during, total.rejects, total.duplicates)
}

type soaked struct {
	messages, interruptions, during, rejects, duplicates int64
}

// soak is one round: a week, evaluated in one go and with interruptions, whole or in parts.
func soak(t *testing.T, seed uint64, programs string, total *soaked) {
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	export := soakExport(t, random, programs, dir)
	model := []string{wordsModel, wordsModel, "../../testdata/models/crumb-wide-deep"}[random.IntN(3)]
	options := []string{
		"--model", model, "--progress", "none", "--max-reject-rate", "1", "--allow-incomplete",
		"--cap", []string{"32", "64", "256", "none"}[random.IntN(4)],
		"--strategy", []string{"head", "tail", "head+tail", "smart"}[random.IntN(4)],
		"--control", fmt.Sprint(random.IntN(4)),
	}
	if random.IntN(4) == 0 {
		options = append(options, "--with-text")
	}
	whole := filepath.Join(dir, "whole")
	took := mustSucceed(t, misroute(t, slices.Concat([]string{"eval", "--out", whole}, options, []string{export})...))
	run, err := result.ReadRun(whole)
	if err != nil {
		t.Fatal(err)
	}
	total.messages += run.Ledger.Read
	total.rejects += run.Ledger.Rejected
	total.duplicates += run.Ledger.Duplicate
	eachOnce(t, whole, int(run.Ledger.Read))

	out := filepath.Join(dir, "out")
	if parts := random.IntN(4); parts < 2 {
		interrupted(t, random, took, int(run.Ledger.Read), out, slices.Concat(options, []string{export}), total)
	} else {
		merge := []string{"merge", "--max-reject-rate", "1", "--allow-incomplete", "--out", out}
		for i := range parts {
			part := filepath.Join(dir, fmt.Sprint("part", i))
			interrupted(t, random, took, int(run.Ledger.Read), part, slices.Concat(options, []string{"--shard", fmt.Sprintf("%d/%d", i+1, parts), export}), total)
			merge = append(merge, part)
		}
		mustSucceed(t, misroute(t, merge...))
	}
	sameRun(t, "interrupted", whole, out)
	eachOnce(t, out, int(run.Ledger.Read))
	mustSucceed(t, misroute(t, slices.Concat([]string{"verify", "--sample", "20"}, options, []string{out, export})...))
}

// soakExport writes a generated week, now and then with copies of its own beginning, damage, a cut
// end, or compressed.
func soakExport(t *testing.T, random *rand.Rand, programs, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "week.mbox")
	cmd := exec.Command(filepath.Join(programs, "crumb"), "--seed", fmt.Sprint(random.Uint64()>>1), "--week", fmt.Sprintf("2026-W%02d", 1+random.IntN(52)),
		"--messages", fmt.Sprint(1+random.IntN(1200)), "--out", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if random.IntN(3) == 0 {
		b = append(b, b[:random.IntN(len(b))]...)
	}
	if random.IntN(3) == 0 {
		b = bytes.Clone(b)
		for range 1 + random.IntN(100) {
			b[random.IntN(len(b))] = byte(random.IntN(256))
		}
	}
	if random.IntN(4) == 0 {
		path += ".gz"
		b = gzipped(t, b)
		if random.IntN(2) == 0 {
			b = b[:len(b)/2+random.IntN(len(b)/2)]
		}
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// interrupted runs eval until it ends by itself, each time with other workers, and sends signals.
func interrupted(t *testing.T, random *rand.Rand, took time.Duration, messages int, out string, args []string, total *soaked) {
	t.Helper()
	for round := 0; ; round++ {
		command := []string{"eval", "--resume", "--out", out, "--workers", fmt.Sprint(1 + random.IntN(8)), "--checkpoint", fmt.Sprint(20 + random.IntN(400)), "--memory", []string{"8MiB", "64MiB", "1GiB"}[random.IntN(3)]}
		cmd := misroute(t, slices.Concat(command, args)...)
		wait := begin(t, cmd)
		if round < 6 {
			time.Sleep(time.Duration(random.Int64N(int64(took) + 1)))
			cmd.Process.Signal([]os.Signal{os.Kill, os.Interrupt, syscall.SIGTERM}[random.IntN(3)])
			if random.IntN(3) == 0 {
				cmd.Process.Signal(os.Interrupt)
			}
		}
		e := wait()
		switch e.code {
		case 0:
			return
		case -1, exitInterrupted:
			total.interruptions++
			if n := durable(t, out); n > 0 && n < messages {
				total.during++
			}
		default:
			t.Fatalf("%q: exit %d\n%s", cmd.Args[1:], e.code, e.stderr)
		}
	}
}
