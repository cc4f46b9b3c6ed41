package session

import (
	"runtime"
	"runtime/debug"
)

// The garbage collector runs when the memory has grown by four times what is in use, as the memory in use is small; but
// a worker stays below 64 MiB as long as it can. A thousand slots or ten thousand clients need more: the collector
// would take half of the processor to stay below that.
const (
	collectPercent  = 400
	memoryLimit     = 56 << 20 // bytes
	memoryBase      = 44 << 20 // without goroutines
	goroutineMemory = 48 << 10 // its stack, its buffers, and as much again to be collected
)

// boundMemory limits the memory of a worker, from now on by how many goroutines there are.
func boundMemory() {
	debug.SetGCPercent(collectPercent)
	var limit int64
	afterCollections(func() {
		wanted := max(memoryLimit, memoryBase+goroutineMemory*int64(runtime.NumGoroutine()))
		if wanted > limit || wanted < limit-limit/8 { // to set it stops everything for a moment
			limit = wanted
			debug.SetMemoryLimit(limit)
		}
	})
}

// afterCollections calls do now and soon after each collection, as the finalizer of something that nobody uses.
func afterCollections(do func()) {
	var next func(*[1]*byte)
	next = func(*[1]*byte) {
		do()
		runtime.SetFinalizer(new([1]*byte), next)
	}
	next(nil)
}
