package table

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// Guard keeps a spreadsheet from running a cell as a formula: words that begin with one of
// = + - @ (also full-width, also behind blanks) get an apostrophe in front. Numbers keep their sign.
func Guard(s string) string {
	lead := strings.TrimLeft(s, " \t\r\n\u00a0")
	if lead == "" {
		return s
	}
	first := []rune(lead)[0]
	if !strings.ContainsRune("=+-@＝＋－＠", first) {
		return s
	}
	if _, err := strconv.ParseFloat(lead, 64); err == nil {
		return s
	}
	if lead == "-" { // our sign for "undefined" starts nothing
		return s
	}
	return "'" + s
}

// CSV writes the table with a head line; rules are left out, notes follow their value.
func (t *Table) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	at := t.shown(InCSV)
	record := make([]string, len(at))
	for k, i := range at {
		record[k] = Guard(Clean(t.Columns[i].Head))
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for r := range t.Rows {
		if t.Rows[r].Rule != "" {
			continue
		}
		for k, i := range at {
			record[k] = Guard(Clean(t.Rows[r].cell(i).plain()))
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
