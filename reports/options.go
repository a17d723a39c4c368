// Package reports makes the reports of misroute out of run folders: weekly, sweep, compare, trend,
// and explain, which is made of one message read again.
//
// A report is computed once, into a value whose fields are the numbers; afterwards it is drawn as
// terminal text, HTML, Markdown and JSON. The drawings never compute, so the numbers are the same
// in all of them. Order of rows, number of workers and the time of day leave no trace.
package reports

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"misroute/reports/cohort"
	"misroute/reports/stats"
)

// SchemaVersion is the version of the JSON form of every report.
const SchemaVersion = 1

// Options of the reports. The zero value is what a first run wants.
type Options struct {
	// Buckets are the length buckets: "" for edges at the usual caps and at the run's own,
	// "64,256,1024" for edges of one's own, "equal:4" for equal counts.
	Buckets string
	// Costs weigh misroutes; nil counts every misroute as 1.
	Costs *Costs
	// Threshold is the score below which the router would hand a message to a person; 0: none.
	Threshold float64
	// Margin is the non-inferiority margin as a share: how much worse still counts as not worse.
	Margin float64
	// Alpha is the level of tests.
	Alpha float64
	// Examples is the most messages listed each way; counts are never capped.
	Examples int
	// WithText shows subjects and text where the run stored them.
	WithText bool
	// Seed of everything random in the report.
	Seed uint64
}

// defaults fills zero fields.
func (o Options) defaults() Options {
	if o.Margin == 0 {
		o.Margin = stats.DefaultMargin
	}
	if o.Alpha == 0 {
		o.Alpha = stats.DefaultAlpha
	}
	if o.Examples == 0 {
		o.Examples = 200 // keeps a page of any run well under two megabytes
	}
	if o.Seed == 0 {
		o.Seed = stats.DefaultSeed
	}
	return o
}

// CheckBuckets says what is wrong with a --buckets value, before a run is made for it.
func CheckBuckets(spec string) error {
	_, err := cohort.ParseBuckets(spec, nil)
	return err
}

// TermOptions of the terminal form.
type TermOptions struct {
	Width  int    // columns; 0: 80
	Color  bool   // only when somebody asked, or the output is a terminal
	Folder string // the run folder as the user typed it, for pointers to files; "": none
}

// Costs weigh misroutes by where a message belonged and where it went: an allergy question in
// general feedback is worse than the reverse.
type Costs struct {
	pairs map[[2]string]float64
}

// anyQueue in a costs file stands for every queue that has no line of its own.
const anyQueue = "*"

// ParseCosts reads a costs file: CSV with the columns from,to,cost, where from is the queue a
// message belongs to, to the one it was sent to, and * stands for any queue. The most exact line
// wins: from and to, then from alone, then to alone, then *,*. A misroute without a line costs 1.
func ParseCosts(r io.Reader) (*Costs, error) {
	in := csv.NewReader(r)
	in.TrimLeadingSpace = true
	in.FieldsPerRecord = -1
	c := &Costs{pairs: map[[2]string]float64{}}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("costs: %w", err)
		}
		line, _ := in.FieldPos(0)
		if len(record) != 3 {
			return nil, fmt.Errorf("costs line %d: %d columns, want from,to,cost", line, len(record))
		}
		from, to := strings.TrimSpace(strings.TrimPrefix(record[0], "\ufeff")), strings.TrimSpace(record[1])
		if line == 1 && strings.EqualFold(from, "from") && strings.EqualFold(to, "to") {
			continue
		}
		cost, err := strconv.ParseFloat(strings.TrimSpace(record[2]), 64)
		if err != nil || !(cost >= 0 && cost <= 1e9) {
			return nil, fmt.Errorf("costs line %d: cost %q is not a number from 0 to 1e9", line, record[2])
		}
		if from == "" || to == "" {
			return nil, fmt.Errorf("costs line %d: a queue has no name; * stands for any queue", line)
		}
		if _, twice := c.pairs[[2]string{from, to}]; twice {
			return nil, fmt.Errorf("costs line %d: %q to %q has a cost already", line, from, to)
		}
		c.pairs[[2]string{from, to}] = cost
	}
	if len(c.pairs) == 0 {
		return nil, errors.New("costs: no line with from,to,cost")
	}
	return c, nil
}

// Of is the cost of sending a message of one queue to another: 0 where it belongs.
func (c *Costs) Of(from, to string) float64 {
	if from == to {
		return 0
	}
	if c == nil {
		return 1
	}
	for _, key := range [][2]string{{from, to}, {from, anyQueue}, {anyQueue, to}, {anyQueue, anyQueue}} {
		if cost, ok := c.pairs[key]; ok {
			return cost
		}
	}
	return 1
}

// Unknown lists the queues that a costs file names and no message or model does, in the order of
// the alphabet: most likely a misspelling.
func (c *Costs) Unknown(queues []string) []string {
	if c == nil {
		return nil
	}
	known := map[string]bool{anyQueue: true}
	for _, q := range queues {
		known[q] = true
	}
	missing := map[string]bool{}
	for pair := range c.pairs {
		for _, q := range pair {
			if !known[q] {
				missing[q] = true
			}
		}
	}
	return sortedKeys(missing)
}
