//go:build amd64 && !purego

package kernel

func processorVariants() []*variant { return nil }
