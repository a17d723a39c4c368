package cohort

import (
	"slices"
	"testing"

	"misroute/pipeline/result"
	"misroute/reports/stats"
)

func TestQueuesKeepModelOrder(t *testing.T) {
	a := &result.Folder{Run: result.Run{Queues: []string{"z", "a"}}, Rows: []result.Row{
		{Label: "m", Prediction: "a", Status: result.StatusScored}, {Label: "", Prediction: "z"},
	}}
	b := &result.Folder{Run: result.Run{Queues: []string{"a", "n"}}, Rows: []result.Row{{Label: "k"}}}
	q := NewQueues(a, b)
	names := q.Names()
	if q.Len() != len(names) || q.Name(0) != "z" {
		t.Errorf("%d queues, the first is %q", q.Len(), q.Name(0))
	}
	if want := []string{"z", "a", "n", "k", "m"}; !slices.Equal(names, want) {
		t.Errorf("queues %q, want %q", names, want)
	}
	if i, ok := q.Of("n"); i != 2 || !ok || !q.Known(i) || q.Known(3) {
		t.Errorf("n is %d %v", i, ok)
	}
	if _, ok := q.Of(""); ok {
		t.Error("no label is no queue")
	}
	if NewQueues().Len() != 0 {
		t.Error("no runs, no queues")
	}
}

func TestThreads(t *testing.T) {
	row := func(thread, label, prediction string) *result.Row {
		return &result.Row{ThreadKey: thread, Label: label, Prediction: prediction, Status: result.StatusScored}
	}
	got := Threads([]*result.Row{
		row("t", "a", "b"), row("t", "a", "a"), row("", "a", "b"), row("", "a", "b"), row("u", "", "b"),
		{ThreadKey: "t", Label: "a", Prediction: "b", Status: result.StatusDuplicate},
	})
	if want := []stats.Group{{K: 1, N: 2}, {K: 1, N: 1}, {K: 1, N: 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: rows without a thread stand alone, unlabelled ones do not count", got, want)
	}
}

func TestMixing(t *testing.T) {
	var m Mixing
	if m.Mixed() != nil {
		t.Error("an empty group mixes nothing")
	}
	run := &result.Run{Model: result.ModelFacts{Name: "crumb-v3", SHA256: "0123456789"}, Quotes: "drop"}
	for _, r := range []result.Row{{Language: "en", Cap: 256}, {Language: "de"}, {Language: "en", Cap: 256}, {Cap: 256}} {
		m.Add(run, &r)
	}
	var said []string
	for _, x := range m.Mixed() {
		said = append(said, x.String())
	}
	if want := []string{"languages: en 2, de 1", "caps: 256 3, none 1"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	other := *run
	other.Model.SHA256 = "9876543210"
	m.Add(&other, &result.Row{})
	if got := m.Mixed()[1].String(); got != "models: crumb-v3 01234567 4, crumb-v3 98765432 1" {
		t.Errorf("%q", got)
	}
}
