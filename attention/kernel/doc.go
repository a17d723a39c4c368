// Package kernel holds the float32 primitives under package attention: products with packed
// matrices, softmax, GELU, layer norm, and what training needs besides.
//
// Every primitive has a plain Go definition, always compiled, which is also the oracle of its tests.
// On amd64 the processor's features choose a faster variant once, at start; Variant names it and Use
// lets a test switch. Build tag purego leaves the assembly out.
//
// Matrices are flat slices, row after row; ld (leading dimension) is the distance of two rows in
// elements. Shapes that do not fit are programming errors and panic, as slice indexing does: callers
// check what comes from files.
//
// Within one variant every element of a product is summed in the same order, whatever the number of
// rows beside it: a message has the same bits alone, in a batch and on any number of goroutines.
// Between variants the last bits differ.
package kernel
