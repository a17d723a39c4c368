package text

import (
	"context"
	"io"
	"testing"

	"misroute/pipeline/mail"
)

// The real weeks read whole: as many records as their "From " lines, none rejected, every labelled
// one with its label. The counts are those of the corpus.
func TestRealWeeks(t *testing.T) {
	for _, w := range []struct {
		name, labels string
		messages     int
		labelled     int
	}{
		{"spamassassin/2002-W30", "spamassassin/2002-W30-labels.csv", 635, 635},
		{"newsgroups/week-1993-W16", "", 4017, 4017},
	} {
		o := mail.Options{}
		if w.labels != "" {
			var err error
			if o.Labels.File, err = mail.LoadLabels(shared(t, w.labels)); err != nil {
				t.Fatal(err)
			}
		}
		r, err := mail.Open(context.Background(), []string{shared(t, w.name+".mbox.gz")}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		e := NewExtractor(Options{})
		n, labelled := 0, 0
		for {
			m, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
			id := o.Labels.Identify(m)
			if id.Label != "" {
				labelled++
			}
			if got, rej := e.Extract(m, &id); rej != nil || got.Salvaged {
				t.Errorf("%s record %d: salvaged %v, %+v", w.name, m.RecordNo, got.Salvaged, rej)
			}
		}
		if n != w.messages || labelled != w.labelled {
			t.Errorf("%s: %d messages, %d labelled; want %d and %d", w.name, n, labelled, w.messages, w.labelled)
		}
	}
}
