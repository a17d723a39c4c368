package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPanelStart multiplies with the columns from the panel of every column on: panels at the end are
// narrower than the others, and not all of one width.
func TestPanelStart(t *testing.T) {
	eachVariant(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 8))
		const m, k = 3, 5
		for n := 1; n < 150; n++ {
			a, w := random(r, m*k, 1), random(r, n*k, 1)
			b := Pack(w, nil, n, k)
			for j := range n {
				n0 := b.PanelStart(j)
				if n0 > j || j-n0 >= b.PanelWidth() {
					t.Fatalf("column %d of %d is said to be in the panel at %d", j, n, n0)
				}
				c := make([]float32, m*(n-n0))
				MatMulPart(c, n-n0, a, k, m, b, n0, n, 0, k)
				for i := range m {
					want := 0.0
					for p := range k {
						want += float64(a[i*k+p]) * float64(w[j*k+p])
					}
					closeTo(t, fmt.Sprintf("column %d of %d from %d", j, n, n0), c[i*(n-n0)+j-n0:][:1], []float64{want}, 1e-5)
				}
			}
		}
	})
}
