package attention

import "testing"

// TestLongMessageMemory: the scratch for 8,192 tokens stays under 200 MB at the size of the base
// models, 768 channels, and doubles with the length rather than squaring.
func TestLongMessageMemory(t *testing.T) {
	base := Config{Hidden: 768, Heads: 12, Intermediate: 3072, Labels: make([]string, 20), Layers: 12}
	modern := &ModernBERT{cfg: base}
	deberta := &DeBERTa{
		encoder: Encoder{cfg: base}, embedding: 768,
		distances: &distanceTable{Distances: Distances{Span: 256, Buckets: 256, MaxDistance: 512}},
	}
	for name, floats := range map[string]func(tokens int) int{
		"modernbert": modern.workspaceFloats,
		"deberta-v2": func(n int) int { return deberta.encoder.workspaceFloats(n) + deberta.relativeFloats(n) },
	} {
		if mb := float64(floats(8192)) * 4 / 1e6; mb > 200 {
			t.Errorf("%s: %.0f MB for 8,192 tokens", name, mb)
		}
		if growth := float64(floats(8192)-floats(4096)) / float64(floats(4096)-floats(2048)); growth > 2.01 {
			t.Errorf("%s: doubling the length multiplies what is added by %.2f", name, growth)
		}
	}
}
