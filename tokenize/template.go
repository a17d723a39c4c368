package tokenize

import "unicode/utf8"

// special is one token a template adds.
type special struct{ id, typeID int32 }

// template is what the post-processor puts around a single sequence.
type template struct {
	before, after []special
	typeID        int32 // of the sequence
}

// wrap puts another template around this one.
func (t *template) wrap(outer template) {
	t.before = append(outer.before, t.before...)
	t.after = append(t.after, outer.after...)
	t.typeID = outer.typeID
}

// trimOffsets takes white space out of the offsets of byte-level tokens, as the ByteLevel and Roberta
// post-processors do.
type trimOffsets struct {
	prefixSpace bool       // a space was put before the text: it is not in the offsets
	spaces      [][2]uint8 // white space at both ends of each token of the model, by id
}

// isTokenSpace says whether a character of a token is white space: as such, or as byte-level
// vocabularies write the space.
func isTokenSpace(r rune) bool { return r == byteRunes[' '] || isSpace(r) }

// measure counts the white space of the vocabulary's tokens.
func (o *trimOffsets) measure(t *Tokenizer) {
	o.spaces = make([][2]uint8, t.model.maxID()+1)
	for id := range o.spaces {
		token, _ := t.model.token(int32(id))
		lead, trail := spacesOf([]byte(token))
		o.spaces[id] = [2]uint8{uint8(min(lead, 255)), uint8(min(trail, 255))}
	}
}

// spacesOf counts white space at both ends; of a text of nothing else both counts are its length.
func spacesOf(b []byte) (lead, trail int) {
	for i := 0; i < len(b); lead++ {
		r, n := utf8.DecodeRune(b[i:])
		if !isTokenSpace(r) {
			break
		}
		i += n
	}
	for i := len(b); i > 0; trail++ {
		r, n := utf8.DecodeLastRune(b[:i])
		if !isTokenSpace(r) {
			break
		}
		i -= n
	}
	return lead, trail
}

// apply trims the offsets of dst's tokens from first on; text is what they are offsets of. As in the
// reference white space is counted in the token and taken off the offsets in characters of the text.
func (o *trimOffsets) apply(dst *Encoding, first int, text []byte, t *Tokenizer) {
	for i := first; i < len(dst.IDs); i++ {
		start, end := dst.Start[i], dst.End[i]
		id := dst.IDs[i]
		var lead, trail int
		if _, ok := t.added.byID[id]; ok {
			lead, trail = spacesOf(text[start:end])
		} else {
			lead, trail = int(o.spaces[id][0]), int(o.spaces[id][1])
		}
		added := o.prefixSpace && lead == 1 && (i == first || start == 0) // by the pre-tokenizer
		if lead > 0 && !added {
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
