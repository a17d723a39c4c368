//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// quietLimits turns the signal of a file that has reached its size limit (ulimit -f) into an error of
// the write, which says what could not be written.
func quietLimits() { signal.Ignore(syscall.SIGXFSZ) }
