package main

import "runtime/debug"

// limitMemory makes the collector keep the process under memory bytes beside what it holds already
// (the model), and returns how many bytes of mail may be in flight.
//
// A message in flight holds its bytes, its text and its tokens: some five times its size, so an eighth
// leaves room for what grows with the messages (some 50 bytes each for the duplicates while mail is
// read, 200 for the report after that) and for files that are being written. The limit is soft: a run that
// needs more gets slower before it gets larger. A lower GOMEMLIMIT stays.
func limitMemory(memory int64) (inFlight int64) {
	// An eighth is left for what the collector does not see: the program itself, stacks, fragments.
	limit := heapInUse() + memory/8*7
	if limit < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(limit)
	}
	return max(memory/8, 1)
}
