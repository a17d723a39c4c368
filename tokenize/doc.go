// Package tokenize turns text into the token ids a router reads, exactly as the Hugging Face library
// does, and learns vocabularies.
//
// It reads tokenizer.json files: a chain of normalizers, pre-tokenizers, a model and a post-processor,
// with added tokens matched before all of them. Offsets are bytes of the original message, whatever
// the normalizers did to it. Any bytes are text.
package tokenize
