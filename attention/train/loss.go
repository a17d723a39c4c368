package train

import (
	"math"
	"slices"

	"misroute/attention/kernel"
)

// Loss is softmax cross-entropy, averaged over the batch as PyTorch's CrossEntropyLoss does.
type Loss struct {
	Weights   []float64 // of each queue; nil: all 1
	Smoothing float64   // share of the target spread over all queues (Szegedy et al. 2016, section 7)
}

func (l *Loss) weight(label int32) float64 {
	if l.Weights == nil {
		return 1
	}
	return l.Weights[label]
}

// total is what the sum over a batch is divided by.
func (l *Loss) total(examples []Example) (sum float64) {
	for _, e := range examples {
		sum += l.weight(e.Label)
	}
	return sum
}

// row turns one message's logits into the derivative of its share of the loss, in place, and returns
// that share. total is the batch's.
func (l *Loss) row(logits []float32, label int32, total float64) (loss float64) {
	classes := float64(len(logits))
	highest := float64(slices.Max(logits))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - highest)
	}
	logSum := highest + math.Log(sum)
	// target[c] is what class c wants: its weight times its share; the derivative is p * all - target.
	all := 0.0
	targets := make([]float64, len(logits))
	for c, v := range logits {
		target := l.Smoothing / classes * l.weight(int32(c))
		if int32(c) == label {
			target += (1 - l.Smoothing) * l.weight(label)
		}
		targets[c] = target
		all += target
		loss += target * (logSum - float64(v))
	}
	kernel.Softmax(logits, 1)
	for c, p := range logits {
		logits[c] = float32((float64(p)*all - targets[c]) / total)
	}
	return loss / total
}
