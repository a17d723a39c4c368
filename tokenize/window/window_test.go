package window

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"misroute/tokenize"
)

// encoding makes one of n text tokens of two bytes each (one of white space between) with ids
// 100, 101, ... between the specials 1 and 2.
func encoding(n int) *tokenize.Encoding {
	e := &tokenize.Encoding{}
	add := func(id, start, end int, special bool) {
		e.IDs = append(e.IDs, int32(id))
		e.Start, e.End = append(e.Start, int32(start)), append(e.End, int32(end))
		e.Special, e.TypeIDs = append(e.Special, special), append(e.TypeIDs, 0)
	}
	add(1, 0, 0, true)
	for i := range n {
		add(100+i, 3*i, 3*i+2, false)
	}
	add(2, 0, 0, true)
	return e
}

var before, after = []int32{1}, []int32{2}

// texts returns the windows without their specials, ids from 0.
func texts(p *Plan) [][]int32 {
	var all [][]int32
	for _, w := range p.Windows {
		var ids []int32
		for _, id := range w.IDs[1 : len(w.IDs)-1] {
			ids = append(ids, id-100)
		}
		all = append(all, ids)
	}
	return all
}

func TestStrategies(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       Options
		n       int
		want    [][]int32
		kept    []Range
		dropped []Range
		bytes   []Range
	}{
		{"no cap", Options{}, 3, [][]int32{{0, 1, 2}}, []Range{{1, 4}}, nil, nil},
		{"exactly the cap", Options{MaxTokens: 5}, 3, [][]int32{{0, 1, 2}}, []Range{{1, 4}}, nil, nil},
		{"head", Options{MaxTokens: 5}, 4, [][]int32{{0, 1, 2}}, []Range{{1, 4}}, []Range{{4, 5}}, []Range{{9, 11}}},
		{"tail", Options{MaxTokens: 4, Strategy: KeepTail}, 5, [][]int32{{3, 4}}, []Range{{4, 6}}, []Range{{1, 4}}, []Range{{0, 8}}},
		{"head+tail", Options{MaxTokens: 6, Strategy: KeepHeadTail}, 6, [][]int32{{0, 3, 4, 5}}, []Range{{1, 2}, {4, 7}}, []Range{{2, 4}}, []Range{{3, 8}}},
		{"head+tail, three first", Options{MaxTokens: 6, Strategy: KeepHeadTail, HeadTokens: 3}, 6, [][]int32{{0, 1, 2, 5}}, []Range{{1, 4}, {6, 7}}, []Range{{4, 6}}, []Range{{9, 14}}},
		{"windows", Options{MaxTokens: 5, Strategy: KeepWindows, Overlap: 1}, 6, [][]int32{{0, 1, 2}, {2, 3, 4}, {4, 5}}, []Range{{1, 7}}, nil, nil},
		{"windows that end with the text", Options{MaxTokens: 5, Strategy: KeepWindows, Overlap: 1}, 5, [][]int32{{0, 1, 2}, {2, 3, 4}}, []Range{{1, 6}}, nil, nil},
		{"windows from the end", Options{MaxTokens: 5, Strategy: KeepWindows, Overlap: 1, FromEnd: true}, 6, [][]int32{{3, 4, 5}, {1, 2, 3}, {0, 1}}, []Range{{1, 7}}, nil, nil},
		{"no text", Options{MaxTokens: 5}, 0, [][]int32{nil}, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := NewPlanner(before, after, c.o)
			if err != nil {
				t.Fatal(err)
			}
			var plan Plan
			for range 2 { // the second time in used memory
				if err := p.Plan(&plan, encoding(c.n)); err != nil {
					t.Fatal(err)
				}
				if got := texts(&plan); !reflect.DeepEqual(got, c.want) {
					t.Errorf("windows %v, want %v", got, c.want)
				}
				if !slices.Equal(plan.Kept, c.kept) || !slices.Equal(plan.Dropped, c.dropped) || !slices.Equal(plan.DroppedBytes, c.bytes) {
					t.Errorf("kept %v dropped %v bytes %v, want %v, %v, %v", plan.Kept, plan.Dropped, plan.DroppedBytes, c.kept, c.dropped, c.bytes)
				}
				if plan.Total != c.n+2 || plan.Truncated() != (len(c.dropped) > 0) {
					t.Errorf("total %d, truncated %v", plan.Total, plan.Truncated())
				}
			}
		})
	}
}

// TestPlanProperties holds for any sizes: every window fits, ranges tile the text, positions agree.
func TestPlanProperties(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	weight := func(id int32) float32 { return float32(id%7) - 3 }
	var plan Plan
	for range 3000 {
		n, room := rng.Intn(60), 1+rng.Intn(20)
		o := Options{MaxTokens: room + 2, Strategy: Strategy(rng.Intn(5)), Overlap: rng.Intn(room), FromEnd: rng.Intn(2) == 0, Importance: weight}
		p, err := NewPlanner(before, after, o)
		if err != nil {
			t.Fatal(err)
		}
		e := encoding(n)
		if err := p.Plan(&plan, e); err != nil {
			t.Fatal(err)
		}
		ranges := append(slices.Clone(plan.Kept), plan.Dropped...)
		slices.SortFunc(ranges, func(a, b Range) int { return a.Start - b.Start })
		at := 1
		for _, r := range ranges {
			if r.Start != at || r.End <= r.Start {
				t.Fatalf("%+v: ranges %v do not tile", o, ranges)
			}
			at = r.End
		}
		if at != n+1 {
			t.Fatalf("%+v: ranges %v end at %d of %d", o, ranges, at, n+1)
		}
		for _, w := range plan.Windows {
			if len(w.IDs) > o.MaxTokens || len(w.IDs) != len(w.Positions) || len(w.IDs) != len(w.TypeIDs) {
				t.Fatalf("%+v: window of %d ids", o, len(w.IDs))
			}
			for i, pos := range w.Positions {
				if e.IDs[pos] != w.IDs[i] || i > 0 && pos <= w.Positions[i-1] {
					t.Fatalf("%+v: positions %v", o, w.Positions)
				}
			}
		}
		if o.Strategy != KeepWindows && plan.KeptTokens() != min(n, room) {
			t.Fatalf("%+v: %d of %d tokens kept in a room of %d", o, plan.KeptTokens(), n, room)
		}
		if o.Strategy == KeepWindows && plan.KeptTokens() != n {
			t.Fatalf("%+v: %d of %d tokens kept", o, plan.KeptTokens(), n)
		}
	}
}

func TestNewPlannerRefuses(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{MaxTokens: 10, Strategy: KeepWindows, Overlap: 8}, "an overlap of 8 tokens does not fit windows of 8"}, // room 8: the step would be 0
		{Options{MaxTokens: 10, Strategy: KeepWindows, Overlap: -1}, "must not be negative"},
		{Options{MaxTokens: 2}, "no room beside the 2 specials: at least 3"},
		{Options{MaxTokens: -1}, "must be positive"},
		{Options{MaxTokens: 10, Strategy: KeepHeadTail, HeadTokens: 9}, "9 head tokens do not fit a room of 8"},
		{Options{Strategy: 9}, "unknown strategy(9)"},
	} {
		_, err := NewPlanner(before, after, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

func TestPlanRefusesForeignEncoding(t *testing.T) {
	p, err := NewPlanner([]int32{7}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Plan(&Plan{}, encoding(2)); err == nil {
		t.Error("an encoding without the planner's specials was planned")
	}
}

// The default of head+tail is 128 and 382 of 510 tokens: Sun et al. 2019, section 5.3.1.
func TestHeadTailDefault(t *testing.T) {
	p, err := NewPlanner(before, after, Options{MaxTokens: 512, Strategy: KeepHeadTail})
	if err != nil {
		t.Fatal(err)
	}
	var plan Plan
	if err := p.Plan(&plan, encoding(1000)); err != nil {
		t.Fatal(err)
	}
	if want := []Range{{1, 129}, {619, 1001}}; !slices.Equal(plan.Kept, want) {
		t.Errorf("kept %v, want %v", plan.Kept, want)
	}
}

func TestAggregate(t *testing.T) {
	logits := [][]float32{{1, 4}, {3, 2}}
	lengths := []int{1, 3}
	for how, want := range map[Aggregation][]float32{
		AggregateMean:   {2, 3},
		AggregateMax:    {3, 4},
		AggregateFirst:  {1, 4},
		AggregateLength: {2.5, 2.5}, // (1*1+3*3)/4, (4*1+2*3)/4
	} {
		dst := make([]float32, 2)
		Aggregate(dst, how, logits, lengths)
		if !slices.Equal(dst, want) {
			t.Errorf("%v: %v, want %v", how, dst, want)
		}
		if back, err := ParseAggregation(how.String()); err != nil || back != how {
			t.Errorf("%v does not read back: %v, %v", how, back, err)
		}
	}
}

func TestClampMaxTokens(t *testing.T) {
	for _, c := range []struct {
		asked, tokenizer, positions, want int
		err                               string
	}{
		{0, 0, 512, 512, ""},
		{128, 512, 512, 128, ""},
		{0, 128, 512, 128, ""},
		{300, 0, 512, 300, ""},
		{0, 0, 0, 0, ""},
		{300, 128, 512, 128, ""},
		{513, 0, 512, 0, "a cap of 513 tokens is above the model's 512 positions"},
		{-1, 0, 0, 0, "must be positive"},
	} {
		got, err := ClampMaxTokens(c.asked, c.tokenizer, c.positions)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("ClampMaxTokens(%d, %d, %d) = %d, %v; want %d, %q", c.asked, c.tokenizer, c.positions, got, err, c.want, c.err)
		}
	}
}

func TestPlacebo(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	var plan Plan
	places := map[string]bool{}
	for range 50 {
		Placebo(&plan, encoding(10), 8, rng)
		if plan.KeptTokens() != 6 || len(plan.Dropped) != 1 || len(plan.Windows[0].IDs) != 8 {
			t.Fatalf("kept %v, dropped %v", plan.Kept, plan.Dropped)
		}
		places[fmt.Sprint(plan.Dropped)] = true
	}
	if len(places) != 7 { // the span of 4 tokens starts at one of 7 places
		t.Errorf("%d places, want 7", len(places))
	}
	Placebo(&plan, encoding(3), 8, rng)
	if plan.Truncated() {
		t.Error("a short message was cut")
	}
}

func TestPlanAllocatesNothing(t *testing.T) {
	e := encoding(500)
	for s := KeepHead; s <= KeepSmart; s++ {
		p, err := NewPlanner(before, after, Options{MaxTokens: 64, Strategy: s, Importance: func(id int32) float32 { return float32(id % 5) }})
		if err != nil {
			t.Fatal(err)
		}
		var plan Plan
		if n := testing.AllocsPerRun(20, func() {
			if err := p.Plan(&plan, e); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations a message", s, n)
		}
	}
}

// Sentence 2 of three tells most, so it is kept whole, and the first of the others fills the room.
func TestSmart(t *testing.T) {
	e := encoding(15)
	e.IDs[5], e.IDs[10] = 9, 9 // the fifth and the tenth token close a sentence
	p, err := NewPlanner(before, after, Options{MaxTokens: 2 + 7, Strategy: KeepSmart,
		SentenceEnd: func(id, _ int32, gap bool) bool { return id == 9 && gap },
		Importance: func(id int32) float32 {
			if id == 107 {
				return -5 // the eighth token; the sign does not matter
			}
			return 0
		}})
	if err != nil {
		t.Fatal(err)
	}
	var plan Plan
	if err := p.Plan(&plan, e); err != nil {
		t.Fatal(err)
	}
	if want := []Range{{1, 3}, {6, 11}}; !slices.Equal(plan.Kept, want) {
		t.Errorf("kept %v, want %v", plan.Kept, want)
	}
}
