package router

import (
	"context"
	"math"
	"slices"
	"testing"

	"misroute/tokenize/window"
)

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"  \n ", nil},
		{"One.", []string{"One."}},
		{"One. Two! Three?", []string{"One.", "Two!", "Three?"}},
		{"He said \"stop.\" Then he left", []string{"He said \"stop.\"", "Then he left"}},
		{"Dear all,\nthe cake came late.\nThanks\nAnn", []string{"Dear all,", "the cake came late.", "Thanks", "Ann"}},
		// A line wrapped by the mail program runs on.
		{"This is a sentence that a mail program has wrapped at some\nseventy columns, as they do.", []string{"This is a sentence that a mail program has wrapped at some\nseventy columns, as they do."}},
		{"A paragraph without a stop that is long enough to have been wrapped\n\nAnother", []string{"A paragraph without a stop that is long enough to have been wrapped", "Another"}},
		{"版本很好。 谢谢！", []string{"版本很好。", "谢谢！"}},
	} {
		var got []string
		for _, r := range Sentences(nil, []byte(c.text)) {
			got = append(got, c.text[r.Start:r.End])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// byteSum is a router of one token a byte: queue 1 has as many points as the message has "!".
type byteSum struct{}

func (byteSum) Facts() Facts             { return Facts{} }
func (byteSum) Queues() []string         { return []string{"calm", "loud"} }
func (byteSum) Check(Setting) error      { return nil }
func (byteSum) Whole() (Setting, string) { return Setting{}, "one pass" }
func (b byteSum) NewSession() Session    { return b }
func (byteSum) Encode(dst *Encoded, text []byte) {
	*dst = Encoded{Text: text}
	for i, c := range text {
		dst.IDs, dst.Start, dst.End = append(dst.IDs, int32(c)), append(dst.Start, int32(i)), append(dst.End, int32(i+1))
		dst.Special = append(dst.Special, false)
	}
}
func (byteSum) Read(_ context.Context, e *Encoded, _ Setting, dst *Reading) error {
	dst.Logits = append(dst.Logits[:0], 0.5, 0)
	for _, id := range e.IDs {
		if id == '!' {
			dst.Logits[1]++
		}
	}
	return nil
}

func TestDecide(t *testing.T) {
	var e Encoded
	r := byteSum{}
	text := "All is well. Help!!! It burns! Bye."
	r.Encode(&e, []byte(text))
	d, found, err := Decide(context.Background(), r, r.NewSession(), &e, 1)
	if err != nil || !found {
		t.Fatalf("found %v, error %v", found, err)
	}
	if got := text[d.Bytes.Start:d.Bytes.End]; got != "Help!!!" || d.Drop != 3 || d.Tokens != (window.Range{Start: 13, End: 20}) {
		t.Errorf("decisive %q (tokens %v, drop %v), want Help!!! at tokens 13 to 20 with a drop of 3", got, d.Tokens, d.Drop)
	}
	all, err := Occlude(context.Background(), r, r.NewSession(), &e, 1)
	if err != nil {
		t.Fatal(err)
	}
	// A point is lost for every "!" that goes; "calm" has half a point throughout.
	for i, want := range []float32{0, 3, 1, 0} {
		if len(all) != 4 || all[i].Drop != want {
			t.Fatalf("drops %v, want 0, 3, 1, 0", all)
		}
	}
	r.Encode(&e, []byte("Just one!"))
	if _, found, _ := Decide(context.Background(), r, r, &e, 1); found {
		t.Error("a message of one sentence has no decisive one")
	}
}

// A deployed router is sent the text without the sentence. Without "refund" its margin for refunds
// falls from ln 0.8 - ln 0.2 = ln 4 to ln 0.1 - ln 0.9 = -ln 9.
func TestDecideOfADeployedRouter(t *testing.T) {
	server := predictServer(t, nil)
	h, err := OpenHTTP(context.Background(), server.URL+"/predict", HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := "The cake was good. I want a refund today. Bye then."
	var e Encoded
	h.Encode(&e, []byte(text))
	d, found, err := Decide(context.Background(), h, h.NewSession(), &e, slices.Index(h.Queues(), "refunds"))
	if err != nil || !found {
		t.Fatalf("found %v, error %v", found, err)
	}
	if got := text[d.Bytes.Start:d.Bytes.End]; got != "I want a refund today." || math.Abs(float64(d.Drop)-math.Log(36)) > 1e-5 {
		t.Errorf("decisive %q with a drop of %v, want the refund with ln 36", got, d.Drop)
	}
	if string(e.Text) != text {
		t.Error("the message's own text was changed")
	}
}
