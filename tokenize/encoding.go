package tokenize

import "slices"

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

func (e *Encoding) addSpecial(s special) {
	e.addText(s.id, span{})
	e.Special = append(e.Special, true)
	e.TypeIDs = append(e.TypeIDs, s.typeID)
}

// addText adds a token of the text; fill completes it.
func (e *Encoding) addText(id int32, sp span) {
	e.IDs = append(e.IDs, id)
	e.Start = append(e.Start, sp.start)
	e.End = append(e.End, sp.end)
}

// fill gives the tokens of the text what is the same for all of them.
func (e *Encoding) fill(typeID int32) {
	from, n := len(e.Special), len(e.IDs)
	e.Special = slices.Grow(e.Special, n-from)[:n]
	e.TypeIDs = slices.Grow(e.TypeIDs, n-from)[:n]
	clear(e.Special[from:])
	for i := from; i < n; i++ {
		e.TypeIDs[i] = typeID
	}
}
