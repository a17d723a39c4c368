package table

import (
	"io"
	"regexp"
	"strings"
)

// markdownEscapes: every character that can start markup inside a line, and the two that can make
// a chat program call somebody or turn words into a link.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`,
	`#`, `\#`, `|`, `\|`, `~`, `\~`, `!`, `\!`, `$`, `\$`,
	`&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`,
	`@`, "@\u200b", `://`, `&#58;//`, `www.`, `www&#46;`,
)

// EscapeMarkdown makes a stranger's words plain text in Markdown, inside a table or outside.
func EscapeMarkdown(s string) string {
	s = markdownEscapes.Replace(Clean(s))
	return lineStarts.ReplaceAllString(s, `$1\$2`)
}

// lineStarts is what is markup only where a line begins: list items, and the line that makes a
// heading of the one before it. A signed number is none of them.
var lineStarts = regexp.MustCompile(`^(\s*(?:\d{1,9})?)([-+.)](?:\s|$)|={2,}\s*$|-{2,}\s*$)`)

// Markdown writes the table in the pipe form that chat programs and forges understand. Rules
// become a row of their own with the words in the first cell.
func (t *Table) Markdown(w io.Writer) error {
	at := t.shown(InMarkdown)
	var b strings.Builder
	cells := make([]string, len(at))
	row := func() {
		b.WriteString("| ")
		b.WriteString(strings.Join(cells, " | "))
		b.WriteString(" |\n")
	}
	for k, i := range at {
		cells[k] = EscapeMarkdown(t.Columns[i].Head)
	}
	row()
	for k, i := range at {
		cells[k] = ":---"
		if t.Columns[i].Align == Right {
			cells[k] = "---:"
		}
	}
	row()
	for r := range t.Rows {
		clear(cells)
		if words := t.Rows[r].Rule; words != "" && len(cells) > 0 {
			cells[0] = "*" + EscapeMarkdown(words) + "*"
			row()
			continue
		}
		for k, i := range at {
			cells[k] = EscapeMarkdown(t.Rows[r].cell(i).plain())
		}
		row()
	}
	_, err := io.WriteString(w, b.String())
	return err
}
