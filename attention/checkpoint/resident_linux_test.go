package checkpoint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"misroute/attention"
)

const residentFolder = "MISROUTE_RESIDENT_FOLDER"

// TestResident loads a BERT-base with 8,192 positions from its folder and reads a message of that many
// tokens, in a process of its own, whose memory the system counts: the weights once, also while loading,
// and less than 200 MB beside them.
func TestResident(t *testing.T) {
	if dir := os.Getenv(residentFolder); dir != "" {
		loadAndRead(t, dir)
		return
	}
	if os.Getenv("MISROUTE_LONG") == "" {
		t.Skip("half a gigabyte of weights and some 20 s: MISROUTE_LONG is not set")
	}
	const positions = 8192
	config, tensors := bertOf(768, 3072, 12, 12, 30522, positions)
	dir := t.TempDir()
	if err := Write(dir, config, tensors); err != nil {
		t.Fatal(err)
	}
	weights := 0
	for _, x := range tensors {
		weights += 4 * len(x.Data)
	}
	command := exec.Command(os.Args[0], "-test.run=^TestResident$", "-test.v")
	command.Env = append(os.Environ(), residentFolder+"="+dir)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	at := bytes.Index(out, []byte("loaded in"))
	if at < 0 {
		t.Fatalf("%s", out)
	}
	var seconds, longSeconds float64
	var loaded, loadPeak, peak, tokens int
	if _, err := fmt.Sscanf(string(out[at:]), residentLine, &seconds, &loaded, &loadPeak, &tokens, &longSeconds, &peak); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("weights %d MB; "+residentLine, weights/1e6, seconds, loaded, loadPeak, tokens, longSeconds, peak)
	const program, oneLayer = 40, 40 // MB: the test binary itself; a layer on its way into the layout
	if over := loadPeak - weights/1e6; over > program+oneLayer {
		t.Errorf("loading took %d MB over the weights", over)
	}
	if over := peak - weights/1e6; tokens != positions || over > 200 {
		t.Errorf("a message of %d tokens took %d MB over the weights", tokens, over)
	}
}

const residentLine = "loaded in %f s: %d MB resident, %d at most; %d tokens in %f s: %d MB at most"

func loadAndRead(t *testing.T, dir string) {
	start := time.Now()
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seconds := time.Since(start).Seconds()
	runtime.GC()
	loaded, loadPeak := status(t, "VmRSS:"), status(t, "VmHWM:")
	in := attention.Input{IDs: make([]int32, f.Model.Config().Positions)}
	for i := range in.IDs {
		in.IDs[i] = int32(1000 + i)
	}
	start = time.Now()
	if err := f.Model.Logits(make([]float32, 3), in, f.Model.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	t.Logf(residentLine, seconds, loaded, loadPeak, len(in.IDs), time.Since(start).Seconds(), status(t, "VmHWM:"))
}

// status is a size in /proc/self/status, in MB.
func status(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name)
	kib := 0
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%s in /proc/self/status: %v", name, err)
	}
	return kib * 1024 / 1e6
}
