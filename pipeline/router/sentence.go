package router

import (
	"bytes"
	"context"
	"unicode"
	"unicode/utf8"

	"misroute/tokenize/window"
)

// Sentences appends the byte ranges of the text's sentences to dst: they end after . ! ? (and their
// closing quotes) before white space, at an empty line, and at a line end that a line of a letter's
// length does not run over. They cover all text but the white space between them. Rules, not a
// model: an abbreviation splits a sentence in two, which costs a little sharpness and nothing else.
func Sentences(dst []window.Range, text []byte) []window.Range {
	start := -1
	end := func(at int) {
		if start >= 0 {
			dst = append(dst, window.Range{Start: start, End: at})
			start = -1
		}
	}
	lineStart := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n':
			if endsSentence(text[:i]) || emptyLine(text[i+1:]) || i-lineStart < shortLine {
				end(trimRight(text, i))
			}
			lineStart = i + 1
		case unicode.IsSpace(r):
			if start >= 0 && endsSentence(text[:i]) {
				end(i)
			}
		case start < 0:
			start = i
		}
		i += n
	}
	end(trimRight(text, len(text)))
	return dst
}

// A line shorter than this was broken on purpose (a greeting, an item of a list), not by a mail
// program that wraps at 60 to 78 columns.
const shortLine = 45

func endsSentence(text []byte) bool {
	text = bytes.TrimRight(text, " \t\r\"')]»”’")
	if len(text) == 0 {
		return false
	}
	switch r, _ := utf8.DecodeLastRune(text); r {
	case '.', '!', '?', '。', '！', '？', '…', ':':
		return true
	}
	return false
}

func emptyLine(text []byte) bool {
	for _, c := range text {
		if c == '\n' {
			return true
		}
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

func trimRight(text []byte, end int) int {
	return len(bytes.TrimRight(text[:end], " \t\r\n"))
}

// Decisive is a sentence, and what its removal costs a queue. [Decide] finds the one that costs most.
type Decisive struct {
	Tokens window.Range // indices of the encoding
	Bytes  window.Range // of the text
	Drop   float32      // of the queue's margin, in logits; negative: the queue gains without it
}

// maxOccluded bounds the work on one message: the sentences are merged in pairs until they are fewer.
const maxOccluded = 64

// Decide finds by occlusion the sentence that decides for queue (an index of Queues): each is left
// out of the whole reading in turn, and the one without which the queue's margin over the best other
// falls most is it. found is false for a message of one sentence, or when no removal costs anything.
func Decide(ctx context.Context, r Router, s Session, e *Encoded, queue int) (d Decisive, found bool, err error) {
	all, err := Occlude(ctx, r, s, e, queue)
	if err != nil {
		return d, false, err
	}
	for _, x := range all {
		if x.Drop > d.Drop {
			d, found = x, true
		}
	}
	return d, found, nil
}

// Occlude leaves every sentence out of the whole reading in turn and says what that costs queue, in
// the order of the text. A message of one sentence has none to leave out: nil.
func Occlude(ctx context.Context, r Router, s Session, e *Encoded, queue int) ([]Decisive, error) {
	whole, _ := r.Whole()
	var reading Reading
	if err := s.Read(ctx, e, whole, &reading); err != nil {
		return nil, err
	}
	full := MarginOf(reading.Logits, queue)
	sentences := Sentences(nil, e.Text)
	for len(sentences) > maxOccluded {
		sentences = pairs(sentences)
	}
	if len(sentences) < 2 {
		return nil, nil
	}
	all := make([]Decisive, 0, len(sentences))
	var without Encoded
	for _, b := range sentences {
		tokens := tokensOf(e, b)
		if tokens.Start == tokens.End {
			continue
		}
		without.leaveOut(e, tokens)
		if err := s.Read(ctx, &without, whole, &reading); err != nil {
			return nil, err
		}
		all = append(all, Decisive{Tokens: tokens, Bytes: b, Drop: full - MarginOf(reading.Logits, queue)})
	}
	return all, nil
}

// MarginOf is the queue's logit minus the best other one.
func MarginOf(logits []float32, queue int) float32 {
	best, any := float32(0), false
	for i, v := range logits {
		if i != queue && (!any || v > best) {
			best, any = v, true
		}
	}
	return logits[queue] - best
}

func pairs(in []window.Range) []window.Range {
	out := in[:0]
	for i := 0; i < len(in); i += 2 {
		last := min(i+1, len(in)-1)
		out = append(out, window.Range{Start: in[i].Start, End: in[last].End})
	}
	return out
}

// tokensOf is the run of tokens that start within the byte range.
func tokensOf(e *Encoded, b window.Range) window.Range {
	from, to := -1, 0
	for i := range e.IDs {
		if !e.Special[i] && int(e.Start[i]) >= b.Start && int(e.Start[i]) < b.End {
			if from < 0 {
				from = i
			}
			to = i + 1
		}
	}
	return window.Range{Start: max(from, 0), End: to}
}

// leaveOut makes e the encoding of from without a run of tokens. The text keeps its length, with
// spaces where they stood: a deployed router is sent text, not tokens.
func (e *Encoded) leaveOut(from *Encoded, r window.Range) {
	e.Text = append(e.Text[:0], from.Text...)
	for i := from.Start[r.Start]; i < from.End[r.End-1]; i++ {
		e.Text[i] = ' '
	}
	e.IDs = append(append(e.IDs[:0], from.IDs[:r.Start]...), from.IDs[r.End:]...)
	e.Start = append(append(e.Start[:0], from.Start[:r.Start]...), from.Start[r.End:]...)
	e.End = append(append(e.End[:0], from.End[:r.Start]...), from.End[r.End:]...)
	e.Special = append(append(e.Special[:0], from.Special[:r.Start]...), from.Special[r.End:]...)
	if len(from.TypeIDs) == len(from.IDs) {
		e.TypeIDs = append(append(e.TypeIDs[:0], from.TypeIDs[:r.Start]...), from.TypeIDs[r.End:]...)
	} else {
		e.TypeIDs = e.TypeIDs[:0]
	}
}
