package main

import (
	"fmt"
	"strings"
	"time"
)

// isoWeek is a week of ISO 8601: it starts on Monday, and week 1 holds January 4th.
type isoWeek struct{ year, week int }

func (w isoWeek) String() string { return fmt.Sprintf("%04d-W%02d", w.year, w.week) }

// monday returns the week's first instant in UTC.
func (w isoWeek) monday() time.Time {
	fourth := time.Date(w.year, time.January, 4, 0, 0, 0, 0, time.UTC)
	sinceMonday := (int(fourth.Weekday()) + 6) % 7
	return fourth.AddDate(0, 0, 7*(w.week-1)-sinceMonday)
}

func (w isoWeek) next() isoWeek {
	year, week := w.monday().AddDate(0, 0, 7).ISOWeek()
	return isoWeek{year, week}
}

func (w isoWeek) before(o isoWeek) bool {
	return w.year < o.year || w.year == o.year && w.week < o.week
}

// parseWeek reads "2026-W47".
func parseWeek(s string) (isoWeek, error) {
	var w isoWeek
	if n, err := fmt.Sscanf(s, "%4d-W%2d", &w.year, &w.week); n != 2 || err != nil || w.String() != s {
		return isoWeek{}, fmt.Errorf("week %q: want a year and an ISO week such as 2026-W47", s)
	}
	if year, week := w.monday().ISOWeek(); year != w.year || week != w.week {
		return isoWeek{}, fmt.Errorf("week %q: that year has no such week", s)
	}
	return w, nil
}

// parseWeeks reads "2026-W35..2026-W47", or one week.
func parseWeeks(s string) ([]isoWeek, error) {
	from, to, isRange := strings.Cut(s, "..")
	first, err := parseWeek(from)
	if err != nil {
		return nil, err
	}
	if !isRange {
		return []isoWeek{first}, nil
	}
	last, err := parseWeek(to)
	if err != nil {
		return nil, err
	}
	if last.before(first) {
		return nil, fmt.Errorf("weeks %q: the last week is before the first", s)
	}
	weeks := []isoWeek{first}
	for w := first; w != last; {
		w = w.next()
		weeks = append(weeks, w)
	}
	return weeks, nil
}

// The calendar of pools: what a week's wording is unless --split says otherwise.
var (
	validationWeek  = isoWeek{2026, 46}
	firstJudgedWeek = isoWeek{2026, 47}
)

func (w isoWeek) pool() pool {
	switch {
	case w.before(validationWeek):
		return train
	case w.before(firstJudgedWeek):
		return validation
	default:
		return judged
	}
}

// hourWeights say how much mail each hour (UTC) of a day brings.
var hourWeights = [24]int{1, 1, 0, 0, 1, 2, 5, 9, 14, 18, 20, 18, 15, 14, 15, 15, 13, 12, 12, 14, 16, 14, 9, 4}

// dayWeights say the same for the days from Monday: the weekend's parties bring
// Monday's mail.
var dayWeights = [7]int{7, 5, 5, 5, 6, 5, 4}

// A clock deals the moments of a week's messages out in order. It holds no list of
// them, so that a week of a million messages costs no memory.
type clock struct {
	start    time.Time
	messages int
	hour     int // of the week, 0 to 167
	passed   int // weight of the hours before it
	total    int
}

func newClock(w isoWeek, messages int) *clock {
	c := &clock{start: w.monday(), messages: messages}
	for h := range 7 * 24 {
		c.total += hourWeight(h)
	}
	return c
}

// hourWeight leaves Monday's first and Sunday's last hours empty, so that a message
// belongs to the same ISO week in its sender's zone and in UTC.
func hourWeight(hour int) int {
	if hour < 6 || hour >= 7*24-4 {
		return 0
	}
	return dayWeights[hour/24] * hourWeights[hour%24]
}

// moment returns when message i is sent; jitter in [0, 1) moves it inside its own
// slice of the week. Call it with rising i.
func (c *clock) moment(i int, jitter float64) time.Time {
	at := (float64(i) + jitter) / float64(c.messages) * float64(c.total)
	for float64(c.passed+hourWeight(c.hour)) <= at && c.hour < 7*24-5 {
		c.passed += hourWeight(c.hour)
		c.hour++
	}
	seconds := int((at - float64(c.passed)) / float64(hourWeight(c.hour)) * 3600)
	return c.start.Add(time.Duration(c.hour)*time.Hour + time.Duration(seconds)*time.Second)
}

// britishOffset is the zone of most customers: an hour ahead of UTC from the last
// Sunday of March to the last Sunday of October, 01:00 UTC. Computed, because a
// machine without time zone files must write the same bytes.
func britishOffset(t time.Time) time.Duration {
	lastSunday := func(m time.Month) time.Time {
		d := time.Date(t.Year(), m, 31, 1, 0, 0, 0, time.UTC)
		return d.AddDate(0, 0, -int(d.Weekday()))
	}
	if t.Before(lastSunday(time.March)) || !t.Before(lastSunday(time.October)) {
		return 0
	}
	return time.Hour
}
