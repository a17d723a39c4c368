// Package train learns routers: from token ids and labels to the tensors of a model of package
// attention. It opens no files and prints nothing; what happens while it works goes to a callback.
//
// Everything here is repeatable: the result depends on the examples, the options and the seed, never
// on how many goroutines worked.
package train

// Example is one labelled message.
type Example struct {
	IDs   []int32 // with specials, not cut
	Label int32   // index into the queues
}

// Progress is called while a stage of the work goes on, from one goroutine at a time.
type Progress func(stage string, done, total int)
