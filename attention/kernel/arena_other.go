//go:build !linux

package kernel

func useLargePages([]float32) {}
