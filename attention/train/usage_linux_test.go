package train

import (
	"syscall"
	"time"
)

// usage is what this process has taken so far.
type usage struct {
	cpu    time.Duration
	peakMB float64
}

func processUsage() usage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return usage{}
	}
	return usage{time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(u.Maxrss) * 1024 / 1e6}
}
