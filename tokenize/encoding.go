package tokenize

// Encoding is one message as tokens, the specials of the tokenizer's template included. All slices
// have one length. Encode reuses them.
type Encoding struct {
	IDs     []int32 // token ids
	Start   []int32 // first byte of the message the token stands for
	End     []int32 // byte after the last one; Start == End == 0 for the template's specials
	Special []bool  // true for the template's specials only: a "[SEP]" found in the text is text
	TypeIDs []int32 // segment ids as the template gives them
}

// Len is the number of tokens, specials included.
func (e *Encoding) Len() int { return len(e.IDs) }

func (e *Encoding) reset() {
	e.IDs, e.Start, e.End = e.IDs[:0], e.Start[:0], e.End[:0]
	e.Special, e.TypeIDs = e.Special[:0], e.TypeIDs[:0]
}

func (e *Encoding) add(id int32, sp span, special bool, typeID int32) {
	e.IDs = append(e.IDs, id)
	e.Start = append(e.Start, sp.start)
	e.End = append(e.End, sp.end)
	e.Special = append(e.Special, special)
	e.TypeIDs = append(e.TypeIDs, typeID)
}
