package mail

import (
	"bytes"
	"strings"
	"time"
)

var months = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// monthOf is 1 to 12 for an English month's name or its first three letters, else 0.
func monthOf(b []byte) int {
	if len(b) < 3 {
		return 0
	}
	for i, m := range months {
		if foldEqual(b[:3], m) {
			return i + 1
		}
	}
	return 0
}

// zones are the names RFC 5322 and habit give a fixed meaning, in minutes east of Greenwich.
// Three-letter names that several regions use are left out: they count as no zone.
var zones = map[string]int{
	"UT": 0, "UTC": 0, "GMT": 0, "Z": 0, "EST": -300, "EDT": -240, "CST": -360, "CDT": -300,
	"MST": -420, "MDT": -360, "PST": -480, "PDT": -420, "CET": 60, "CEST": 120, "MET": 60,
	"MEST": 120, "EET": 120, "EEST": 180, "WET": 0, "WEST": 60, "BST": 60, "MSK": 180, "JST": 540,
	"KST": 540, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780,
}

// parseDate reads the dates of mail headers, mbox lines and help-desk exports: RFC 5322 with its
// obsolete forms, asctime, RFC 850, ISO 8601, comments such as "(GMT+02:00)" ignored. The parts are
// recognised by their shape, not by their position. zoned is false when no zone was named; the time
// is then in loc. ok is false for anything without day, month and year, or before 1970-01-02: mail
// programs write the epoch when they know nothing.
func parseDate(s string, loc *time.Location) (t time.Time, zoned, ok bool) {
	var d dateParts
	d.year = -1
	s = strings.TrimSpace(dropComments(s))
	if !d.iso(&s) {
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\r' || r == '\n' }) {
			d.token(f)
		}
	}
	if d.year >= 0 && d.year < 100 { // RFC 2822, section 4.3: two digits below 50 mean this century
		if d.year += 1900; d.year < 1950 {
			d.year += 100
		}
	}
	if d.bad || d.day < 1 || d.day > 31 || d.month == 0 || d.year < 1970 || d.year > 9999 {
		return time.Time{}, false, false
	}
	if loc == nil {
		loc = time.UTC
	}
	if d.zoned {
		loc = time.FixedZone("", d.offset*60)
	}
	t = time.Date(d.year, time.Month(d.month), d.day, d.hour, d.min, d.sec, 0, loc).UTC()
	if t.Unix() < 86400 {
		return time.Time{}, false, false
	}
	return t, d.zoned, true
}

type dateParts struct {
	year, month, day, hour, min, sec int
	offset                           int
	zoned, clock, bad                bool
}

// iso reads "2026-03-02", "2026/03/02" at the start of s, with "T" or space and a time behind it,
// and leaves the rest to token.
func (d *dateParts) iso(s *string) bool {
	b := []byte(*s)
	if len(b) < 10 || parseInt(b[:4]) < 0 || b[4] != '-' && b[4] != '/' || b[7] != b[4] || parseInt(b[5:7]) < 1 || parseInt(b[8:10]) < 1 {
		return false
	}
	d.year, d.month, d.day = int(parseInt(b[:4])), int(parseInt(b[5:7])), int(parseInt(b[8:10]))
	d.bad = d.month > 12
	rest := strings.TrimLeft(strings.TrimPrefix((*s)[10:], "T"), " ")
	if i := strings.IndexAny(rest, "Zz+- "); i >= 0 {
		d.token(rest[:i])
		d.token(strings.ReplaceAll(strings.TrimSpace(rest[i:]), ":", ""))
	} else {
		d.token(rest)
	}
	return true
}

func (d *dateParts) token(f string) {
	b := []byte(f)
	switch {
	case len(b) == 0:
	case bytes.IndexByte(b, ':') > 0 && b[0] >= '0' && b[0] <= '9':
		d.time(f)
	case (b[0] == '+' || b[0] == '-') && d.clock:
		d.numericZone(b)
	case b[0] >= '0' && b[0] <= '9':
		if strings.Count(f, "-") == 2 { // RFC 850: 02-Mar-26
			for _, p := range strings.Split(f, "-") {
				d.token(p)
			}
			return
		}
		d.number(int(parseInt(b)), len(b))
	default:
		if m := monthOf(b); m > 0 && d.month == 0 && (len(b) < 5 || b[3] != 'd') {
			d.month = m
		} else if o, ok := zones[strings.ToUpper(f)]; ok && !d.zoned && d.clock {
			d.zoned, d.offset = true, o
		} else if rest := strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(f), "GMT"), "UTC"); rest != strings.ToUpper(f) && !d.zoned {
			d.numericZone([]byte(strings.ReplaceAll(rest, ":", "")))
		}
	}
}

func (d *dateParts) number(n, digits int) {
	switch {
	case n < 0:
		d.bad = true
	case digits <= 2 && d.day == 0 && n >= 1 && n <= 31:
		d.day = n
	case d.year < 0 && (digits == 4 || digits == 2 && d.day > 0):
		d.year = n
	case digits == 3 && d.year < 0: // year 2000 bug: 100 to 199
		d.year = 1900 + n
	}
}

// time reads hh:mm, hh:mm:ss, hh:mm:ss.fff.
func (d *dateParts) time(f string) {
	p := strings.Split(f, ":")
	if len(p) > 3 || d.clock {
		return
	}
	sec := "0"
	if len(p) == 3 {
		sec, _, _ = strings.Cut(p[2], ".")
	}
	h, m, s := parseInt([]byte(p[0])), parseInt([]byte(p[1])), parseInt([]byte(sec))
	if h < 0 || h > 24 || m < 0 || m > 59 || s < 0 || s > 60 {
		d.bad = true
		return
	}
	d.hour, d.min, d.sec, d.clock = int(h), int(m), int(s), true
}

// numericZone reads +hhmm, +hmm and +hh.
func (d *dateParts) numericZone(b []byte) {
	if len(b) < 2 || d.zoned || b[0] != '+' && b[0] != '-' {
		return
	}
	n := parseInt(b[1:])
	if n < 0 || len(b) > 5 {
		return
	}
	minutes := int(n/100*60 + n%100)
	if len(b) <= 3 {
		minutes = int(n) * 60
	}
	if minutes > 14*60+59 { // no such zone; the clock time is still worth having
		return
	}
	if b[0] == '-' {
		minutes = -minutes
	}
	d.zoned, d.offset = true, minutes
}

// dropComments removes parenthesised comments.
func dropComments(s string) string {
	if !strings.Contains(s, "(") {
		return s
	}
	out := make([]byte, 0, len(s))
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0:
			out = append(out, c)
		}
	}
	return string(out)
}
