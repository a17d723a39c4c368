package cohort

import (
	"slices"
	"testing"
)

func TestBucketsAreRightClosed(t *testing.T) {
	b := DefaultBuckets()
	for _, c := range []struct{ tokens, bucket int }{
		{1, 0}, {63, 0}, {64, 0}, {65, 1}, {128, 1}, {129, 2}, {256, 2}, {257, 3}, {384, 3},
		{385, 4}, {512, 4}, {513, 5}, {1024, 5}, {1025, 6}, {1 << 30, 6}, {0, 0}, {-1, 0},
	} {
		if got := b.Of(c.tokens); got != c.bucket {
			t.Errorf("%d tokens in bucket %d, want %d", c.tokens, got, c.bucket)
		}
	}
	var labels []string
	for i := range b.Len() {
		labels = append(labels, b.Label(i))
	}
	if want := []string{"1-64", "65-128", "129-256", "257-384", "385-512", "513-1024", ">1024"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
}

func TestParseBuckets(t *testing.T) {
	for _, c := range []struct {
		spec    string
		lengths []int
		edges   []int
	}{
		{"", nil, DefaultEdges},
		{" 10, 20 ", nil, []int{10, 20}},
		{"equal:4", []int{8, 7, 6, 5, 4, 3, 2, 1}, []int{2, 4, 6}},
		{"equal:3", []int{1, 2, 3, 4, 5, 6, 7}, []int{3, 5}},
		{"equal:4", []int{5, 5, 5, 5, 5, 5, 9, 9}, []int{5}}, // ties stay together
		{"equal:4", []int{5, 5}, nil},
		{"equal:4", nil, nil},
		{"equal:1", []int{1, 2}, nil},
	} {
		b, err := ParseBuckets(c.spec, c.lengths)
		if err != nil || !slices.Equal(b.Edges(), c.edges) {
			t.Errorf("%q over %v: edges %v error %v, want %v", c.spec, c.lengths, b.Edges(), err, c.edges)
		}
	}
	for _, spec := range []string{"equal:0", "equal:x", "equal:", "64,64", "64,32", "0,5", "-5", "a", "64,,128", "99999999999"} {
		if _, err := ParseBuckets(spec, []int{1, 2, 3}); err == nil {
			t.Errorf("%q must be refused", spec)
		}
	}
}

// Whatever the edges, every length is in exactly one bucket, and it is the one whose range holds it.
func TestBucketsCoverEveryLength(t *testing.T) {
	lengths := []int{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 97, 93, 1025, 4096}
	for n := 1; n <= 20; n++ {
		b := EqualBuckets(lengths, n)
		if b.Len() > n {
			t.Fatalf("%d buckets asked, %d made", n, b.Len())
		}
		for _, l := range lengths {
			low, high := b.Range(b.Of(l))
			if l <= low || high != 0 && l > high {
				t.Errorf("equal:%d: %d in (%d,%d]", n, l, low, high)
			}
		}
	}
}

func TestShareLost(t *testing.T) {
	for _, c := range []struct {
		tokens, limit int
		want          float64
	}{{256, 256, 0}, {255, 256, 0}, {512, 256, .5}, {257, 256, 1.0 / 257}, {10, 0, 0}, {0, 5, 0}} {
		if got := ShareLost(c.tokens, c.limit); got != c.want {
			t.Errorf("ShareLost(%d, %d) = %v, want %v", c.tokens, c.limit, got, c.want)
		}
	}
}

func FuzzParseBuckets(f *testing.F) {
	for _, s := range []string{"", "64,256,1024", "equal:4", "equal:", "0", "-1,2", " 7 , 9 ", "equal:1001"} {
		f.Add(s)
	}
	lengths := []int{1, 5, 5, 64, 65, 2000}
	f.Fuzz(func(t *testing.T, spec string) {
		b, err := ParseBuckets(spec, lengths)
		if err != nil {
			return
		}
		for _, l := range lengths {
			i := b.Of(l)
			if low, high := b.Range(i); i >= b.Len() || l <= low || high != 0 && l > high {
				t.Errorf("%q puts %d into (%d,%d]", spec, l, low, high)
			}
		}
	})
}
