package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"misroute/pipeline/object"
)

// Exit codes of the whole program. They follow the printed verdict: an input that does not parse is
// never "no regression".
const (
	exitOK           = 0   // done, PASS
	exitFatal        = 1   // something failed that is nobody's input: disk, memory, a bug
	exitUsage        = 2   // usage, or input that cannot be used
	exitRejected     = 3   // finished, but more records were rejected than --max-reject-rate allows
	exitRegression   = 4   // compare: REGRESSION
	exitInconclusive = 5   // compare --strict: INCONCLUSIVE
	exitInterrupted  = 130 // interrupted; the run can be resumed
)

// exitError is an error that knows the exit code it stands for.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError marks err as the caller's: a flag that makes no sense, an input that cannot be used. Work
// that was interrupted and a store that is down are nobody's fault.
func usageError(err error) error {
	var store *object.Error
	if errors.Is(err, context.Canceled) || errors.As(err, &store) && store.Temporary {
		return err
	}
	return &exitError{exitUsage, err}
}

// usagef is usageError over fmt.Errorf.
func usagef(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

// rejectedError says that a run finished with more rejects than allowed.
func rejectedError(err error) error { return &exitError{exitRejected, err} }

// regressionError and inconclusiveError carry a comparison's verdict.
func regressionError(err error) error   { return &exitError{exitRegression, err} }
func inconclusiveError(err error) error { return &exitError{exitInconclusive, err} }

// fullDisk says whether err is about room on the disk, which is never the fault of the input, whoever
// passed the error on.
func fullDisk(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.EIO)
}

// report prints err as one line and returns the exit code. An error that is interrupted work says so.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "misroute: %v\n", err)
	var e *exitError
	switch {
	case fullDisk(err):
		return exitFatal
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFatal
}
