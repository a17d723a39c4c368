package kernel

import (
	"syscall"
	"unsafe"
)

const adviseHugePage = 14 // MADV_HUGEPAGE

// useLargePages asks for 2 MB pages before the memory is first touched. A system that refuses is only
// slower.
func useLargePages(x []float32) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
	_ = syscall.Madvise(bytes[:len(bytes)&^(largePage-1)], adviseHugePage)
}
