//go:build unix

package result

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFolder takes the folder for this process, or says that another one has it. The system lets go
// of it when the process ends, however that happens. A file system without locks gives none.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("%s: another misroute is writing this run: wait for it, or use another --out", dir)
	}
	if err != nil {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// syncFolder makes the names in a folder durable: after a loss of power a segment is there whole or
// not at all. Not every file system knows it, and none of those loses a finished run by it.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
