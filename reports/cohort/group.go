package cohort

import (
	"slices"

	"misroute/pipeline/result"
	"misroute/reports/stats"
)

// Queues is the union of queues in their order: those of the models first, model by model, then
// labels and predictions that no model knows, by name.
type Queues struct {
	names []string
	index map[string]int
	known int // the first so many belong to a model
}

// NewQueues starts from the queues of the runs and adds what their rows mention besides. Of rows
// that are not scored only labels count.
func NewQueues(runs ...*result.Folder) *Queues {
	var known []string
	for _, f := range runs {
		known = append(known, f.Run.Queues...)
	}
	others := map[string]bool{}
	for _, f := range runs {
		for i := range f.Rows {
			others[f.Rows[i].Label] = true
			others[f.Rows[i].Prediction] = true
		}
	}
	delete(others, "")
	return QueuesOf(known, others)
}

// QueuesOf starts from the queues of the models and adds the others.
func QueuesOf(known []string, others map[string]bool) *Queues {
	q := &Queues{index: map[string]int{}}
	for _, name := range known {
		q.add(name)
	}
	q.known = len(q.names)
	var sorted []string
	for name := range others {
		if _, ok := q.index[name]; !ok {
			sorted = append(sorted, name)
		}
	}
	slices.Sort(sorted)
	for _, name := range sorted {
		q.add(name)
	}
	return q
}

func (q *Queues) add(name string) {
	if _, ok := q.index[name]; !ok {
		q.index[name] = len(q.names)
		q.names = append(q.names, name)
	}
}

// Len is the number of queues.
func (q *Queues) Len() int { return len(q.names) }

// Name returns the name of queue i.
func (q *Queues) Name(i int) string { return q.names[i] }

// Names lists the queues in their order.
func (q *Queues) Names() []string { return slices.Clone(q.names) }

// Of returns the number of a queue, and false for one that was never mentioned.
func (q *Queues) Of(name string) (int, bool) {
	i, ok := q.index[name]
	return i, ok
}

// Known says whether a model has queue i.
func (q *Queues) Known(i int) bool { return i < q.known }

// Clusters numbers threads. Numbers mean nothing but "the same" and "another".
type Clusters struct {
	index map[string]int32
	next  int32
}

// Of returns the number of a thread key. A message without one is a cluster of its own.
func (c *Clusters) Of(key string) int32 {
	if key != "" {
		if c.index == nil {
			c.index = map[string]int32{}
		}
		if i, ok := c.index[key]; ok {
			return i
		}
		c.index[key] = c.next
	}
	c.next++
	return c.next - 1
}

// Threads counts misroutes among labelled, scored rows by thread, for [stats.DesignEffect].
func Threads(rows []*result.Row) []stats.Group {
	var clusters Clusters
	var groups []stats.Group
	for _, r := range rows {
		if !r.Scored() || r.Label == "" {
			continue
		}
		i := int(clusters.Of(r.ThreadKey))
		if i == len(groups) {
			groups = append(groups, stats.Group{})
		}
		groups[i].N++
		if r.Wrong() {
			groups[i].K++
		}
	}
	return groups
}
