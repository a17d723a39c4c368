package reports

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"misroute/reports/table"
)

// One stylesheet serves every report, light and dark, phone, desk and paper.
//
//go:embed page.css
var stylesheet string

//go:embed page.tmpl
var pageSource string

// policyFor allows one stylesheet, by its digest, and nothing else: no script, no image, no request of
// any kind, whatever a stranger wrote into a subject.
func policyFor(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"clean":  table.Clean,
	"tight":  glue,
	"style":  func(more string) template.HTML { return template.HTML("<style>" + stylesheet + more + "</style>") },
	"policy": func(more string) string { return policyFor(stylesheet + more) },
}).Parse(pageSource))

// page is what the template draws.
type page struct {
	Title    string
	Style    string // rules of this report alone, after those of all
	Eyebrow  string
	Lead     string
	Rest     string
	Fine     bool // nothing wrong: the headline is not red
	Lede     []string
	Do       []string
	Doubt    []string
	Cards    []card
	Sections []section
	Facts    []fact
}

// card is one number of the row under the headline.
type card struct{ Value, Label, Class string }

// section is a part of a page with its own heading.
type section struct {
	ID, Nav, Heading string
	Parts            []part
}

// part is one thing in a section: any of its fields that is set, in this order.
type part struct {
	Heading string
	Figure  template.HTML // charts
	Caption string        // of the figure
	Key     []keyEntry    // legend of the figure
	Table   template.HTML
	Class   string // around the table
	Notes   []string
	More    *more  // folded away
	Columns []part // parts side by side
}

type keyEntry struct{ Class, Label string }

// more is folded text.
type more struct {
	Summary string
	Body    template.HTML
	Texts   []textBlock
}

// textBlock is the text of one message, under --with-text.
type textBlock struct{ Title, Text string }

// write draws a page.
func (p *page) write(out io.Writer) error {
	var b strings.Builder // a page is small; a template that fails half-way must not leave half a page
	if err := pages.Execute(&b, p); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}
