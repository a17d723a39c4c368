package attention_test

import (
	"fmt"

	"misroute/attention"
)

// "Eggless chocolate cake": three tokens of two channels. Cake asks for both properties, and its
// output is a blend of all three values.
func ExampleScaledDotProduct() {
	q := [][]float64{{1, 0}, {0, 1}, {1, 1}}
	k := [][]float64{{2, 0}, {0, 1}, {1, 1}}
	v := [][]float64{{10, 0}, {0, 10}, {5, 5}}

	out, weights := attention.ScaledDotProduct(q, k, v, nil)
	for i, token := range []string{"eggless", "chocolate", "cake"} {
		fmt.Printf("%-10s %.2f  %.1f\n", token, weights[i], out[i])
	}
	// Output:
	// eggless    [0.58 0.14 0.28]  [7.2 2.8]
	// chocolate  [0.20 0.40 0.40]  [4.0 6.0]
	// cake       [0.40 0.20 0.40]  [6.0 4.0]
}
