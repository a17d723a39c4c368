package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/beam/sdks/v2/go/container/pool"
)

// The test binary is the program as well, so that it can be submitted, staged and killed. With faultEnv
// something goes wrong in it. With bootEnv it is a worker pool on a port, and what the pool starts.
const (
	programEnv = "MISROUTE_BEAM_PROGRAM"
	faultEnv   = "MISROUTE_BEAM_FAULT" // panic, kill
	bootEnv    = "MISROUTE_BEAM_BOOT"  // Beam's program that fetches a worker and starts it
	portEnv    = "MISROUTE_BEAM_PORT"
)

func TestMain(m *testing.M) {
	switch os.Getenv(faultEnv) {
	case "panic":
		batchStarts = func() { panic("a planted panic") }
	case "kill":
		batchStarts = func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	}
	boot := os.Getenv(bootEnv)
	switch {
	case startedByRunner(os.Args[1:]), os.Getenv(programEnv) != "":
		if boot != "" {
			removeCopy()
		}
		main()
	case boot != "" && len(os.Args) > 1:
		// The pool has no word for where boot keeps what it fetches.
		fail(syscall.Exec(boot, append(os.Args, "--semi_persist_dir="+os.TempDir()), os.Environ()))
	case boot != "":
		fail(servePool())
	default:
		code := m.Run()
		removeTools()
		os.Exit(code)
	}
}

// removeCopy removes the copy of this program that boot made to start it, and its folder: boot leaves both
// behind, where no environment can tell it otherwise.
func removeCopy() {
	self, err := os.Executable()
	if err == nil && filepath.Base(self) == "worker" && strings.HasPrefix(filepath.Base(filepath.Dir(self)), "bin") {
		os.RemoveAll(filepath.Dir(self))
	}
}

func servePool() error {
	port, err := strconv.Atoi(os.Getenv(portEnv))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := pool.New(context.Background(), port, self)
	if err != nil {
		return err
	}
	return p.ServeAndWait()
}

func fail(err error) {
	os.Stderr.WriteString(err.Error() + "\n")
	os.Exit(1)
}
