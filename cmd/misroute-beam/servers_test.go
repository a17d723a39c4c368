package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startPrism starts Prism as a job server in a process of its own and gives its endpoint.
func startPrism(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(tool(t, "prism"), "--job_port=0", "--serve_http=false", "--log_kind=text")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	background(t, cmd)
	endpoint := make(chan string, 1)
	go func() {
		serving := regexp.MustCompile(`Serving JobManagement.* endpoint=(\S+)`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				endpoint <- m[1]
			}
		}
	}()
	select {
	case e := <-endpoint:
		return e
	case <-time.After(time.Minute):
		t.Fatal("Prism does not say where it serves")
		return ""
	}
}

// startPool starts a worker pool whose workers have a fault, and gives its endpoint.
func startPool(t *testing.T, fault string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), bootEnv+"="+tool(t, "boot"), fmt.Sprintf("%s=%d", portEnv, port), faultEnv+"="+fault)
	cmd.Dir = t.TempDir() // boot leaves the job's options in the folder it stands in
	background(t, cmd)
	endpoint := fmt.Sprintf("localhost:%d", port)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", endpoint); err == nil {
			c.Close()
			return endpoint
		}
		if time.Now().After(deadline) {
			t.Fatal("the worker pool does not serve")
		}
	}
}

// background starts a process in a group of its own, and ends the whole group with the test: a worker
// pool leaves its workers behind.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Beam's programs leave files in the temporary folder.
	cmd.Env = append(environ(cmd), "TMPDIR="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
}

func environ(cmd *exec.Cmd) []string {
	if cmd.Env != nil {
		return cmd.Env
	}
	return os.Environ()
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestStartedByRunner(t *testing.T) {
	for args, want := range map[string]bool{
		"--worker=true --id=1": true, "-worker=true": true, "--worker_binary=x": false, "--workers=1 --worker=false": false, "": false,
	} {
		if got := startedByRunner(strings.Fields(args)); got != want {
			t.Errorf("%q: %v, want %v", args, got, want)
		}
	}
}
