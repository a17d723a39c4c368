package stats

// Confusion counts messages by label and prediction, over Queues numbered queues.
type Confusion struct {
	Queues int
	counts []int // [label][prediction]
}

// NewConfusion returns an empty table of the given number of queues.
func NewConfusion(queues int) *Confusion {
	return &Confusion{Queues: queues, counts: make([]int, queues*queues)}
}

// Add counts n messages of a label that were sent to prediction, both in [0, Queues).
func (c *Confusion) Add(label, prediction, n int) { c.counts[label*c.Queues+prediction] += n }

// Reset sets every count to zero.
func (c *Confusion) Reset() { clear(c.counts) }

// At returns the count of a label sent to prediction.
func (c *Confusion) At(label, prediction int) int { return c.counts[label*c.Queues+prediction] }

// Total is the number of messages, and Right the number of them on the diagonal.
func (c *Confusion) Total() (n, right int) {
	for i, k := range c.counts {
		n += k
		if i/c.Queues == i%c.Queues {
			right += k
		}
	}
	return n, right
}

// Label is the number of messages with this label, Predicted the number sent to this queue.
func (c *Confusion) Label(queue int) int {
	n := 0
	for _, k := range c.counts[queue*c.Queues : (queue+1)*c.Queues] {
		n += k
	}
	return n
}

// Predicted is the number of messages sent to the queue.
func (c *Confusion) Predicted(queue int) int {
	n := 0
	for i := queue; i < len(c.counts); i += c.Queues {
		n += c.counts[i]
	}
	return n
}

// Precision is the share of messages sent to the queue that belong there: undefined when nothing
// was sent.
func (c *Confusion) Precision(queue int) Ratio {
	return Ratio{c.At(queue, queue), c.Predicted(queue)}
}

// Recall is the share of the queue's messages that were sent there: undefined when it has none.
func (c *Confusion) Recall(queue int) Ratio { return Ratio{c.At(queue, queue), c.Label(queue)} }

// F1 is the harmonic mean of precision and recall as 2TP/(2TP+FP+FN): undefined only for a queue
// that neither labels nor predictions mention, 0 when just one of them does.
func (c *Confusion) F1(queue int) Ratio {
	return Ratio{2 * c.At(queue, queue), c.Label(queue) + c.Predicted(queue)}
}

// MacroF1 is the mean F1 of the queues for which it is defined, and false when there is none.
func (c *Confusion) MacroF1() (float64, bool) {
	sum, n := 0.0, 0
	for q := range c.Queues {
		if f, ok := c.F1(q).Value(); ok {
			sum += f
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}
