package main

import (
	"os"
	"runtime"
	"strings"
)

// processor names the machine for the measured part of a run.
func processor() string {
	kind := runtime.GOOS + "/" + runtime.GOARCH
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return kind
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return kind + ", " + strings.TrimSpace(value)
		}
	}
	return kind
}
