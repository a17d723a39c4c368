package window

import "fmt"

// ClampMaxTokens works out the cap actually used: the least of what was asked for, what the tokenizer
// allows and how many positions the model has; 0 stands for "no bound" in all three. Asking for more
// than the model's positions is an error: the rest would be cut behind the asker's back.
func ClampMaxTokens(asked, tokenizerLimit, positions int) (int, error) {
	if asked < 0 {
		return 0, fmt.Errorf("a cap of %d tokens: must be positive, or 0 for the model's own", asked)
	}
	if positions > 0 && asked > positions {
		return 0, fmt.Errorf("a cap of %d tokens is above the model's %d positions", asked, positions)
	}
	maxTokens := 0
	for _, n := range [...]int{asked, tokenizerLimit, positions} {
		if n > 0 && (maxTokens == 0 || n < maxTokens) {
			maxTokens = n
		}
	}
	return maxTokens, nil
}
