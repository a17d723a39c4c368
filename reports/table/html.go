package table

import (
	"fmt"
	"html"
	"html/template"
	"io"
	"strings"
)

// HTML writes the table inside a region that scrolls sideways by itself and takes the keyboard's
// focus, with header cells a screen reader can follow. A caption doubles as the region's name.
func (t *Table) HTML(w io.Writer) error {
	_, err := io.WriteString(w, string(t.Markup()))
	return err
}

// Markup is [Table.HTML] as a value for html/template.
func (t *Table) Markup() template.HTML {
	at := t.shown(InHTML)
	var b strings.Builder
	fmt.Fprintf(&b, `<div class="scroll" tabindex="0" role="region" aria-label="%s"><table>`, escape(t.Caption))
	b.WriteString("<thead><tr>")
	for _, i := range at {
		fmt.Fprintf(&b, `<th scope="col"%s>%s</th>`, classes(t.Columns[i].Align, ""), escape(t.Columns[i].Head))
	}
	b.WriteString("</tr></thead><tbody>")
	for r := range t.Rows {
		row := &t.Rows[r]
		fmt.Fprintf(&b, "<tr%s>", classes(Left, row.Class))
		if row.Rule != "" {
			fmt.Fprintf(&b, `<td colspan="%d">%s</td></tr>`, len(at), escape(row.Rule))
			continue
		}
		for k, i := range at {
			cell := row.cell(i)
			tag := "td"
			scope := ""
			if k == 0 {
				tag, scope = "th", ` scope="row"`
			}
			fmt.Fprintf(&b, "<%s%s%s>%s", tag, scope, classes(t.Columns[i].Align, cell.Class), cell.Mark)
			if cell.Mark != "" && cell.Text != "" {
				b.WriteByte(' ')
			}
			if cell.Tag != "" {
				fmt.Fprintf(&b, `<span class="tag %s">%s</span>`, html.EscapeString(cell.Tag), escape(cell.Text))
			} else {
				b.WriteString(escape(cell.Text))
			}
			if cell.Note != "" {
				fmt.Fprintf(&b, " <small>%s</small>", escape(cell.Note))
			}
			fmt.Fprintf(&b, "</%s>", tag)
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table></div>")
	return template.HTML(b.String())
}

func escape(s string) string { return html.EscapeString(Clean(s)) }

func classes(a Align, class string) string {
	if a == Right {
		class = strings.TrimSpace("num " + class)
	}
	if class == "" {
		return ""
	}
	return fmt.Sprintf(` class="%s"`, html.EscapeString(class))
}
