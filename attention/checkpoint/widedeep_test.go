package checkpoint

import (
	"slices"
	"testing"

	"misroute/attention"
)

func TestWideDeepAddsItsParts(t *testing.T) {
	c := tinyConfig("bert")
	c.Labels, c.VocabSize = []string{"refunds", "praise"}, 3
	deep, err := attention.NewEncoder(c, tinyParams(&c))
	if err != nil {
		t.Fatal(err)
	}
	bag := smallBag(t)
	dir := t.TempDir()
	if err := Write(dir, WideDeepConfig(bag, EncoderConfig(&c), 6), WideDeepTensors(bag, EncoderTensors(&c, tinyParams(&c)))); err != nil {
		t.Fatal(err)
	}
	folder, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := folder.Model
	if m.Config().Positions != 0 || m.Parameters() != bag.Parameters()+deep.Parameters() {
		t.Errorf("%d positions and %d parameters, want no limit and both parts'", m.Config().Positions, m.Parameters())
	}
	ws := m.NewWorkspace()
	for _, ids := range [][]int32{{0, 1, 2, 0}, {0, 2, 2, 2, 2, 2, 2, 1, 2, 0}} {
		window := ids
		if len(ids) > 6 {
			window = append(slices.Clone(ids[:5]), ids[len(ids)-1]) // head, and the closing special
		}
		got, wide, want := make([]float32, 2), make([]float32, 2), make([]float32, 2)
		if err := m.Logits(got, attention.Input{IDs: ids}, ws); err != nil {
			t.Fatal(err)
		}
		if err := bag.Logits(wide, attention.Input{IDs: ids}, bag.NewWorkspace()); err != nil {
			t.Fatal(err)
		}
		if err := deep.Logits(want, attention.Input{IDs: window}, deep.NewWorkspace()); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] += wide[i]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d tokens: logits %v, the parts add up to %v", len(ids), got, want)
		}
		if n := testing.AllocsPerRun(10, func() { _ = m.Logits(got, attention.Input{IDs: ids}, ws) }); n != 0 {
			t.Errorf("%v allocations a message in steady state", n)
		}
	}
	if _, err := attention.NewWideDeep(bag, deep, c.Positions+1); err == nil {
		t.Error("a window longer than the positions was taken")
	}
}
