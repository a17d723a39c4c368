// Package attention is the mathematics of the router: token ids in, logits out.
//
// It has two layers. attention.go holds the definitions as small functions on float64 rows, written
// to be read beside the papers; the tests hold every faster path against them. encoder.go and the
// other families run the same mathematics in float32 on package kernel, one message at a time.
//
// Letters used for shapes, here and in package kernel:
//
//	T   tokens of the message          C   channels (hidden size)
//	NH  attention heads                HS  head size, C / NH
//	F   width of the feed-forward part V   vocabulary size
//
// A matrix is a flat slice, row after row; "T x C" is T rows of C numbers.
package attention
