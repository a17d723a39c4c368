package tokenize

import "unicode/utf8"

// special is one token a template adds.
type special struct{ id, typeID int32 }

// template is what the post-processor puts around a single sequence.
type template struct {
	before, after []special
	typeID        int32 // of the sequence
}

// trimOffsets takes white space out of the offsets of byte-level tokens, as the ByteLevel and Roberta
// post-processors do.
type trimOffsets struct {
	prefixSpace bool // a space was put before the text: it is not in the offsets
}

// apply trims the offsets of dst's tokens from first on; text is what they are offsets of.
func (o *trimOffsets) apply(dst *Encoding, first int, text []byte, t *Tokenizer) {
	for i := first; i < len(dst.IDs); i++ {
		lead, trail := t.spaces(dst.IDs[i])
		start, end := dst.Start[i], dst.End[i]
		if lead > 0 && !(o.prefixSpace && (i == first || start == 0)) {
			for ; lead > 0 && start < end; lead-- {
				_, n := utf8.DecodeRune(text[start:])
				start += int32(n)
			}
			start = min(start, end)
		}
		for ; trail > 0 && end > start; trail-- {
			_, n := utf8.DecodeLastRune(text[:end])
			end -= int32(n)
		}
		dst.Start[i], dst.End[i] = start, max(start, end)
	}
}
