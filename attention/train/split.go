package train

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Origin is where an example stands among the others, for a split without leaks.
type Origin struct {
	Thread string    // messages with the same one never part; empty: a thread of its own
	Date   time.Time // zero: unknown, counts as older than all others
	Label  int32
}

// HeldOut chooses about share of the messages to judge a router by while it is trained: whole threads,
// the newest first. Replies quote what they answer, so a thread on both sides would leak the answers;
// and a router is used on mail that comes after the mail it learned from.
//
// A thread stays in training when it holds the last training message of a queue, or more than half of
// all that is to be held out. Without dates the order of the messages is their time. The result is one
// flag a message; an error says that there is too little to split.
func HeldOut(messages []Origin, share float64) ([]bool, error) {
	type thread struct {
		newest  time.Time
		last    int
		members []int
	}
	byName := map[string]*thread{}
	var threads []*thread
	left := map[int32]int{}
	for i, m := range messages {
		left[m.Label]++
		t := byName[m.Thread]
		if t == nil || m.Thread == "" {
			t = &thread{}
			byName[m.Thread] = t
			threads = append(threads, t)
		}
		if m.Date.After(t.newest) {
			t.newest = m.Date
		}
		t.members = append(t.members, i)
		t.last = i
	}
	slices.SortStableFunc(threads, func(a, b *thread) int {
		if c := b.newest.Compare(a.newest); c != 0 {
			return c
		}
		return cmp.Compare(b.last, a.last)
	})
	want := max(1, int(share*float64(len(messages))+0.5))
	held, count := make([]bool, len(messages)), 0
	for _, t := range threads {
		if count >= want {
			break
		}
		if len(t.members) > max(1, want/2) {
			continue
		}
		takes := map[int32]int{}
		for _, i := range t.members {
			takes[messages[i].Label]++
		}
		empties := false
		for label, n := range takes {
			empties = empties || left[label] <= n
		}
		if empties {
			continue
		}
		for _, i := range t.members {
			held[i] = true
			left[messages[i].Label]--
		}
		count += len(t.members)
	}
	if count == 0 {
		return nil, errors.New("no thread can be held out without emptying a queue: too few messages")
	}
	return held, nil
}
