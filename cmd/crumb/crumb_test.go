package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jhillyerd/enmime/v2"
)

func mustGrammar(t testing.TB) *grammar {
	t.Helper()
	g, err := loadGrammar()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// export returns the bytes of one week.
func export(t testing.TB, seed uint64, week isoWeek, messages int, split *pool) []byte {
	t.Helper()
	var b bytes.Buffer
	o := options{seed: seed, weeks: []isoWeek{week}, messages: messages, split: split, recipe: usual}
	if err := writeExport(context.Background(), &b, mustGrammar(t), o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var w47 = isoWeek{2026, 47}

// each calls fn with every composed letter of a pool, before it becomes mail.
func each(t testing.TB, p pool, messages int, fn func(*letter, *composer)) {
	t.Helper()
	eachOf(t, usual, p, messages, fn)
}

// eachOf is each for messages of another recipe.
func eachOf(t testing.TB, r recipe, p pool, messages int, fn func(*letter, *composer)) {
	t.Helper()
	c := newComposer(mustGrammar(t), 7, r)
	weights, clock := shares(w47), newClock(w47, messages)
	for n := range messages {
		fn(c.compose(w47, n, p, weights[:], clock), c)
	}
}

// record is one message read back from an export.
type record struct {
	fromLine string
	*enmime.Envelope
}

var fromLine = regexp.MustCompile(`(?m)^From \S+@\S+ [A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d \d{4}\n`)

// parseExport splits mboxrd by its definition and parses each message with enmime.
func parseExport(t testing.TB, export []byte) []record {
	t.Helper()
	unquote := regexp.MustCompile(`(?m)^>(>*From )`)
	starts := regexp.MustCompile(`(?m)^From `).FindAllIndex(export, -1)
	// No guessing of character sets: the declared one must be right.
	parser := enmime.NewParser(enmime.DisableCharacterDetection(true))
	var records []record
	for i, at := range starts {
		end := len(export)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		raw := export[at[0]:end]
		head := fromLine.Find(raw)
		if head == nil || !bytes.HasPrefix(raw, head) || !bytes.HasSuffix(raw, []byte("\n\n")) {
			t.Fatalf("record %d: %.80q is not one mbox record", i, raw)
		}
		message := unquote.ReplaceAll(raw[len(head):len(raw)-1], []byte("$1"))
		e, err := parser.ReadEnvelope(bytes.NewReader(message))
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		for _, problem := range e.Errors {
			if problem.Name != enmime.ErrorPlainTextFromHTML { // said of every HTML mail
				t.Errorf("record %d: %v", i, problem)
			}
		}
		records = append(records, record{string(head), e})
	}
	return records
}

func TestSameSeedSameBytes(t *testing.T) {
	a, b := export(t, 1, w47, 200, nil), export(t, 1, w47, 200, nil)
	if !bytes.Equal(a, b) {
		t.Error("two exports of one seed differ")
	}
	if bytes.Equal(a, export(t, 2, w47, 200, nil)) {
		t.Error("another seed wrote the same export")
	}
	var weeks bytes.Buffer
	o := options{seed: 1, weeks: []isoWeek{{2026, 46}, w47}, messages: 200, recipe: usual}
	if err := writeExport(context.Background(), &weeks, mustGrammar(t), o); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(weeks.Bytes(), a) {
		t.Error("a week's bytes depend on the weeks before it")
	}
}

// The files of testdata/crumb are what the commands of its README write.
func TestShippedExports(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "crumb")
	weeks, err := parseWeeks("2026-W40..2026-W47")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range weeks {
		want := export(t, 1, w, 310, nil)
		name := filepath.Join(dir, w.String()+".mbox")
		got, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			name += ".gz"
			got, err = readGzip(name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what `crumb --seed 1 --week %s --messages 310` writes now", name, w)
		}
	}
}

func TestMessagesParseBack(t *testing.T) {
	seen := make(map[string]int)
	ids := make(map[string]bool)
	records := parseExport(t, export(t, 3, w47, 1500, nil))
	if len(records) != 1500 {
		t.Fatalf("%d records, want 1500", len(records))
	}
	previous := ""
	for i, r := range records {
		if q := r.GetHeader("X-Queue"); queueNumber(q) < 0 {
			t.Errorf("record %d: X-Queue %q", i, q)
		}
		seen[r.GetHeader("X-Queue")]++
		seen[r.GetHeader("X-Crumb-Confounder")]++
		seen[r.GetHeader("X-Crumb-Voice")]++
		seen[r.Root.ContentType]++
		id := r.GetHeader("Message-ID")
		if ids[id] {
			t.Errorf("record %d: Message-ID %s twice", i, id)
		}
		ids[id] = true
		date, err := r.Date()
		if err != nil {
			t.Errorf("record %d: %v", i, err)
			continue
		}
		utc := date.UTC().Format("Mon Jan _2 15:04:05 2006")
		if !strings.HasSuffix(r.fromLine, utc+"\n") {
			t.Errorf("record %d: Date %s, From_ line %q", i, date, r.fromLine)
		}
		for _, d := range []string{date.Format("2006-01-02"), date.UTC().Format("2006-01-02")} {
			if d < "2026-11-16" || d > "2026-11-22" { // ISO week 47 of 2026
				t.Errorf("record %d: %s is outside the week", i, d)
			}
		}
		if sorted := date.UTC().Format("2006-01-02 15:04:05"); sorted < previous {
			t.Errorf("record %d: sent before its predecessor", i)
		} else {
			previous = sorted
		}
		if refs := r.GetHeader("References"); refs != "" {
			seen["reply"]++
			if first := strings.Fields(refs)[0]; !ids[first] {
				t.Errorf("record %d: References %s, which is not in the export", i, first)
			}
		}
		if strings.ContainsRune(r.GetHeader("Subject"), '�') || strings.ContainsRune(r.Text, '�') {
			t.Errorf("record %d: undecodable text in %q", i, r.GetHeader("Subject"))
		}
	}
	want := slices.Concat(queueNames[:], confounderNames[:], voiceNames[:],
		[]string{"text/plain", "text/html", "multipart/alternative", "multipart/mixed", "reply"})
	for _, w := range want {
		if seen[w] == 0 {
			t.Errorf("no message is %q", w)
		}
	}
}

var decisiveHeader = regexp.MustCompile(`^(early|middle|late); word=(\d+); words=(\d+); byte=(\d+); length=(\d+)$`)

// The header's byte range must hold the decisive sentence, as composed: letters are
// composed a second time here, independently of the mail.
func TestDecisiveSentenceStandsWhereTheHeaderSays(t *testing.T) {
	const messages = 1000
	records := parseExport(t, export(t, 5, w47, messages, nil))
	c := newComposer(mustGrammar(t), 5, usual)
	weights, clock := shares(w47), newClock(w47, messages)
	for n, r := range records {
		l := c.compose(w47, n, judged, weights[:], clock)
		want := string(l.body[l.decisive.at : l.decisive.at+l.decisive.length])
		m := decisiveHeader.FindStringSubmatch(r.GetHeader("X-Crumb-Decisive"))
		if m == nil {
			t.Fatalf("record %d: X-Crumb-Decisive %q", n, r.GetHeader("X-Crumb-Decisive"))
		}
		text := strings.ReplaceAll(r.Text, "\r\n", "\n")
		if r.Root.ContentType == "text/html" {
			if oneLine := strings.Join(strings.Fields(text), " "); !strings.Contains(oneLine, want) {
				t.Errorf("record %d: %q is not in the HTML's text", n, want)
			}
			continue
		}
		at, length := number(t, m[4]), number(t, m[5])
		if at+length > len(text) {
			t.Fatalf("record %d: %d+%d is past the text's %d bytes", n, at, length, len(text))
		}
		got := strings.ReplaceAll(text[at:at+length], "\n", " ")
		if got != want {
			t.Errorf("record %d: bytes %d+%d hold %q, want %q", n, at, length, got, want)
		}
		word, words := number(t, m[2]), number(t, m[3])
		third := "late"
		if 3*word < words {
			third = "early"
		} else if 3*word < 2*words {
			third = "middle"
		}
		if m[1] != third {
			t.Errorf("record %d: %s at word %d of %d", n, m[1], word, words)
		}
	}
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// About 15 % of the messages have over 190 words, 256 WordPiece tokens; a few per cent
// say what they want only after that.
func TestLengths(t *testing.T) {
	const messages = 6000
	long, cut, late := 0, 0, 0
	each(t, train, messages, func(l *letter, _ *composer) {
		if l.words > 190 {
			long++
		}
		if l.wordAt > 190 {
			cut++
		}
		if l.third() == "late" {
			late++
		}
	})
	// The intervals are wide: binomial noise at 6000 is under half a point.
	for _, c := range []struct {
		what      string
		n         int
		low, high float64
	}{{"over 190 words", long, .12, .18}, {"decisive after 190 words", cut, .015, .045}, {"late", late, .08, .3}} {
		if share := float64(c.n) / messages; share < c.low || share > c.high {
			t.Errorf("%s: %.3f of the messages, want %.3f to %.3f", c.what, share, c.low, c.high)
		}
	}
}

// No decisive frame is shared between pools: the lines of split sections are dealt to
// one pool each, no two of them are equal, and each pool has some of each section.
func TestPoolsAreDisjoint(t *testing.T) {
	g := mustGrammar(t)
	decisive := regexp.MustCompile(`^(do|say|more|cold|bank|with)/|^(ask|say|not-this|about-this|swap|it|passing|history|want|unwant|about|unabout|payback|keep|good|bad|payit)$`)
	for name, s := range g.sections {
		if !decisive.MatchString(name) {
			continue
		}
		if !s.split {
			t.Errorf("section %q is not split", name)
		}
		users := make(map[int]int)
		for _, lines := range s.pools {
			for _, i := range lines {
				users[i]++
			}
		}
		text := make(map[string]int)
		for i, l := range s.lines {
			if users[i] != 1 {
				t.Errorf("section %q, line %d is used by %d pools", name, i, users[i])
			}
			key := fmt.Sprint(l.template)
			if j, ok := text[key]; ok && key != fmt.Sprint(template{{kind: argCore}}) {
				t.Errorf("section %q: lines %d and %d are the same", name, i, j)
			}
			text[key] = i
		}
	}
}

// What the frames make must be disjoint too: a plain sentence of one pool must not come
// out of another.
func TestPoolsShareNoSentence(t *testing.T) {
	of := make(map[string]pool)
	shared, total := 0, 0
	for p := range pool(pools) {
		each(t, p, 4000, func(l *letter, c *composer) {
			s := string(bytes.ToLower(l.body[l.decisive.at : l.decisive.at+l.decisive.length]))
			total++
			if q, ok := of[s]; ok && q != p {
				shared++
			} else {
				of[s] = p
			}
		})
	}
	if shared > total/200 {
		t.Errorf("%d of %d decisive sentences were seen in another pool", shared, total)
	}
}

// A router can only be asked for new sentences, not for new words: each word of a line
// that belongs to the validation or the judged pool stands in knownLines lines that
// training may use.
func TestPoolsShareTheirVocabulary(t *testing.T) {
	g := mustGrammar(t)
	known := make(map[string]int)
	for _, s := range g.sections {
		for _, i := range s.pools[train] {
			for word := range s.lines[i].words() {
				known[word]++
			}
		}
	}
	for name, s := range g.sections {
		if !s.split {
			continue // its lines are everybody's
		}
		for _, p := range []pool{validation, judged} {
			for _, i := range s.pools[p] {
				for word := range s.lines[i].words() {
					if known[word] < knownLines {
						t.Errorf("section %q, line %d of pool %s: training has %q in %d lines", name, i, poolNames[p], word, known[word])
					}
				}
			}
		}
	}
}

// A drill has what its recipe says: the queue may forbid some confounders, so that a
// few messages of a drill have none.
func TestDrill(t *testing.T) {
	const messages = 2000
	for _, c := range []struct {
		recipe
		low, high float64 // share with a confounder
	}{{recipe{confounded: 1, medianWords: 25}, .85, 1}, {recipe{confounded: 0, medianWords: 25}, 0, 0}} {
		confounded := 0
		var words []int
		eachOf(t, c.recipe, train, messages, func(l *letter, _ *composer) {
			if l.confounder != none {
				confounded++
			}
			words = append(words, l.words)
		})
		if share := float64(confounded) / messages; share < c.low || share > c.high {
			t.Errorf("%+v: %.3f of the messages have a confounder, want %.2f to %.2f", c.recipe, share, c.low, c.high)
		}
		// The sentence that decides, greeting and name take 20 words of the shortest mail.
		slices.Sort(words)
		if median := words[messages/2]; median < 22 || median > 45 {
			t.Errorf("%+v: half of the messages have up to %d words", c.recipe, median)
		}
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args, wants string
	}{
		{"--week 2026-W47 --messages 2 --out -", ""},
		{"--week 2026-W47", "--out"},
		{"--week 2026-W54 --out -", "no such week"},
		{"--week 47 --out -", "2026-W47"},
		{"--weeks 2026-W47..2026-W40 --out -", "before"},
		{"--weeks 2026-W47 --week 2026-W47 --out -", "either"},
		{"--week 2026-W47 --messages 0 --out -", "at least 1"},
		{"--week 2026-W47 --split test --out -", "judged"},
		{"--week 2026-W47 --out - extra", "extra"},
		{"--week 2026-W47 --messages x --out -", "invalid value"},
		{"--week 2026-W47 --confounded 1.5 --out -", "from 0 to 1"},
		{"--week 2026-W47 --confounded NaN --out -", "from 0 to 1"},
		{"--week 2026-W47 --words 2 --out -", "from 6 to 620"},
	} {
		var out bytes.Buffer
		app := newApp(&out)
		app.ErrWriter = io.Discard
		err := app.Run(append([]string{"crumb"}, strings.Fields(c.args)...))
		var usage usageError
		switch {
		case c.wants == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.wants != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.wants)):
			t.Errorf("%s: %v, want a usage error with %q", c.args, err, c.wants)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	weeks := []isoWeek{{2026, 46}, w47}
	o := options{seed: 1, weeks: weeks, messages: 5, out: filepath.Join(dir, "{week}.mbox.gz"), recipe: usual}
	if err := run(context.Background(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, w := range weeks {
		got, err := readGzip(filepath.Join(dir, w.String()+".mbox.gz"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, export(t, 1, w, 5, nil)) {
			t.Errorf("%s: other bytes than the stream", w)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.out = filepath.Join(dir, "cancelled.mbox")
	if err := run(ctx, o, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*cancelled*"))
	if err != nil || len(left) > 0 {
		t.Errorf("a cancelled run left %v (%v)", left, err)
	}
	o.out = filepath.Join(dir, "absent", "x.mbox")
	if err := run(context.Background(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Quoted-printable read back by the standard library, on the lines that are hard.
func TestQuotedPrintable(t *testing.T) {
	for _, text := range []string{
		"", "\n", " ", " \n \n", "a =b\n", strings.Repeat("x", 75), strings.Repeat("x", 76) + "\n",
		strings.Repeat("x", 74) + " ", strings.Repeat("x", 73) + "é", strings.Repeat("é ", 80) + "\nend ",
		strings.Repeat("=", 30), "From here\n.\n--\n",
	} {
		encoded := appendQuotedPrintable(nil, []byte(text))
		for line := range strings.Lines(string(encoded)) {
			if n := len(strings.TrimRight(line, "\n")); n > 76 {
				t.Errorf("%q: a line of %d", text, n)
			}
		}
		got, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(encoded)))
		if err != nil || string(got) != text {
			t.Errorf("%q came back as %q (%v)", text, got, err)
		}
	}
}
