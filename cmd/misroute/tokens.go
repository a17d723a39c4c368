package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"misroute/tokenize"
	"misroute/tokenize/window"
)

// TokensCommand shows how a tokenizer reads a text.
func TokensCommand() *cli.Command {
	return &cli.Command{
		Name:      "tokens",
		Usage:     "show the tokens of a text, their bytes, and where the cap falls",
		ArgsUsage: "FILE|-",
		Description: "Encodes one text and lists its pieces with their byte ranges; tokens over the cap are marked.\n" +
			"With --jsonl every line of the input is {\"text\"} or {\"text_base64\"}, with max_tokens, strategy, overlap,\n" +
			"head_tokens and direction if wanted, and every line of the output\n" +
			"{\"ids\",\"start\",\"end\",\"tokens\",\"special\",\"windows\"}, offsets in bytes.\n\n" +
			"Examples:\n" +
			"  misroute tokens --tokenizer models/router message.txt\n" +
			"  misroute tokens --tokenizer models/router --max-tokens 128 --strategy head+tail message.txt\n" +
			"  echo 'Where is my order?' | misroute tokens --tokenizer tokenizer.json --json -\n" +
			"  misroute tokens --tokenizer tokenizer.json --jsonl < texts.jsonl > tokens.jsonl",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tokenizer", Aliases: []string{"model"}, Usage: "a tokenizer.json, a vocab.txt, or a `FOLDER` with one"},
			&cli.IntFlag{Name: "max-tokens", Usage: "the cap, specials included (0: none)"},
			&cli.StringFlag{Name: "strategy", Value: window.KeepHead.String(), Usage: "which tokens are kept over the cap: head, tail, head+tail, windows, smart"},
			&cli.IntFlag{Name: "head-tokens", Usage: "head+tail: tokens kept at the start (0: a quarter)"},
			&cli.IntFlag{Name: "overlap", Usage: "windows: tokens that neighbours share"},
			&cli.BoolFlag{Name: "literal-specials", Usage: "special tokens written out in the text are text"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "jsonl", Usage: "one text a line in, one encoding a line out"},
		},
		Action: func(c *cli.Context) error {
			o := tokensOptions{tokenizer: c.String("tokenizer"), json: c.Bool("json"), jsonl: c.Bool("jsonl"), literal: c.Bool("literal-specials"), path: "-",
				cut: truncation{MaxTokens: c.Int("max-tokens"), Strategy: c.String("strategy"), Overlap: c.Int("overlap"), HeadTokens: c.Int("head-tokens")}}
			switch {
			case o.tokenizer == "":
				return usagef("tokens needs --tokenizer: a tokenizer.json, a vocab.txt or a model folder")
			case o.json && o.jsonl:
				return usagef("--json and --jsonl exclude each other")
			case c.NArg() > 1:
				return usagef("tokens reads one FILE, got %d", c.NArg())
			case c.NArg() == 1:
				o.path = c.Args().First()
			case !o.jsonl:
				return usagef("tokens needs a FILE, or - for standard input")
			}
			return runTokens(c.Context, o, c.App.Writer, c.App.ErrWriter)
		},
	}
}

type tokensOptions struct {
	tokenizer, path      string
	json, jsonl, literal bool
	cut                  truncation
}

// truncation are the truncation of one text, from flags or from a line of --jsonl.
type truncation struct {
	MaxTokens  int    `json:"max_tokens"`
	Strategy   string `json:"strategy"`
	Overlap    int    `json:"overlap"`
	HeadTokens int    `json:"head_tokens"`
	Direction  string `json:"direction"` // windows: "left" lays them from the end
}

func runTokens(ctx context.Context, o tokensOptions, stdout, stderr io.Writer) error {
	t, err := tokenize.Load(o.tokenizer)
	if err != nil {
		return usageError(err)
	}
	if o.literal {
		t = t.Literal()
	}
	in := io.Reader(os.Stdin)
	if o.path != "-" {
		f, err := os.Open(o.path)
		if err != nil {
			return usageError(err)
		}
		defer f.Close()
		in = f
	}
	for _, w := range t.Warnings() {
		fmt.Fprintf(stderr, "misroute: warning: %s\n", w)
	}
	if o.jsonl {
		return tokensLines(ctx, t, o, in, stdout)
	}
	text, err := io.ReadAll(io.LimitReader(in, tokenize.MaxTextBytes))
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	shown, err := newShownTokens(t, text, o.cut)
	if err != nil {
		return usageError(err)
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(shown)
	}
	return shown.print(stdout, text, colour(stdout))
}

// planText encodes and cuts a text.
func planText(t *tokenize.Tokenizer, text []byte, c truncation) (e tokenize.Encoding, pieces []string, p window.Plan, err error) {
	if c.Strategy == "" {
		c.Strategy = window.KeepHead.String()
	}
	o := window.Options{MaxTokens: c.MaxTokens, Overlap: c.Overlap, HeadTokens: c.HeadTokens, AsReference: true}
	if o.Strategy, err = window.ParseStrategy(c.Strategy); err != nil {
		return e, nil, p, err
	}
	switch strings.ToLower(c.Direction) {
	case "", "right":
	case "left":
		o.FromEnd = true
		if o.Strategy == window.KeepHead {
			o.Strategy = window.KeepTail
		}
	default:
		return e, nil, p, fmt.Errorf("unknown direction %q; known: left, right", c.Direction)
	}
	if o.Strategy == window.KeepSmart {
		o.SentenceEnd = window.SentenceEnds(t)
	}
	before, after := t.Specials()
	planner, err := window.NewPlanner(before, after, o)
	if err != nil {
		return e, nil, p, err
	}
	pieces = t.EncodePieces(&e, text)
	return e, pieces, p, planner.Plan(&p, &e)
}

// shownTokens is what the verb says of one text; its JSON form.
type shownTokens struct {
	Tokenizer    string        `json:"tokenizer"`
	SHA256       string        `json:"sha256"`
	Bytes        int           `json:"bytes"`
	Total        int           `json:"total"`
	Cap          int           `json:"cap"`
	Strategy     string        `json:"strategy"`
	Tokens       []shownToken  `json:"tokens"`
	Windows      []shownWindow `json:"windows"`
	Dropped      [][2]int      `json:"dropped"`       // token indices
	DroppedBytes [][2]int      `json:"dropped_bytes"` // of the text
	Warnings     []string      `json:"warnings"`
}

type shownToken struct {
	ID      int32  `json:"id"`
	Piece   string `json:"piece"`
	Start   int32  `json:"start"`
	End     int32  `json:"end"`
	Special bool   `json:"special"`
	Kept    bool   `json:"kept"`
}

type shownWindow struct {
	IDs     []int32 `json:"ids"`
	Start   []int32 `json:"start"`
	End     []int32 `json:"end"`
	Special []bool  `json:"special"`
}

func newShownTokens(t *tokenize.Tokenizer, text []byte, c truncation) (*shownTokens, error) {
	e, pieces, p, err := planText(t, text, c)
	if err != nil {
		return nil, err
	}
	s := &shownTokens{Tokenizer: t.Describe(), SHA256: t.SHA256(), Bytes: len(text), Total: p.Total, Cap: c.MaxTokens, Strategy: c.Strategy,
		Windows: shownWindows(&e, &p), Dropped: ranges(p.Dropped), DroppedBytes: ranges(p.DroppedBytes), Warnings: append([]string{}, t.Warnings()...)}
	for i, id := range e.IDs {
		s.Tokens = append(s.Tokens, shownToken{id, pieces[i], e.Start[i], e.End[i], e.Special[i], true})
	}
	for _, r := range p.Dropped {
		for i := r.Start; i < r.End; i++ {
			s.Tokens[i].Kept = false
		}
	}
	return s, nil
}

func shownWindows(e *tokenize.Encoding, p *window.Plan) []shownWindow {
	all := make([]shownWindow, len(p.Windows))
	for i, w := range p.Windows {
		x := shownWindow{IDs: w.IDs, Start: []int32{}, End: []int32{}, Special: []bool{}}
		for _, at := range w.Positions {
			x.Start, x.End, x.Special = append(x.Start, e.Start[at]), append(x.End, e.End[at]), append(x.Special, e.Special[at])
		}
		all[i] = x
	}
	return all
}

func ranges(in []window.Range) [][2]int {
	out := make([][2]int, len(in))
	for i, r := range in {
		out[i] = [2]int{r.Start, r.End}
	}
	return out
}

// print lists the tokens for a person. Text is quoted, so that nothing in a mail reaches the terminal
// as a command.
func (s *shownTokens) print(w io.Writer, text []byte, coloured bool) error {
	paint := func(code, line string) string {
		if !coloured {
			return line
		}
		return "\x1b[" + code + "m" + line + "\x1b[0m"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %d tokens of %d bytes", s.Tokenizer, s.Total, s.Bytes)
	read := 0
	for _, k := range s.Tokens {
		if k.Kept {
			read++
		}
	}
	if s.Cap > 0 {
		fmt.Fprintf(&b, "; cap %d, %s: %d read, %d not", s.Cap, s.Strategy, read, s.Total-read)
		if n := len(s.Windows); n > 1 {
			fmt.Fprintf(&b, ", %d windows", n)
		}
	}
	b.WriteString("\n\n")
	b.WriteString(paint("1", fmt.Sprintf("%6s  %8s  %-15s  %-20s  %s\n", "#", "id", "bytes", "piece", "text")))
	cut := 0
	for i, k := range s.Tokens {
		if cut < len(s.Dropped) && i == s.Dropped[cut][0] {
			b.WriteString(paint("33", fmt.Sprintf("------  cut: tokens %d to %d are not read\n", i, s.Dropped[cut][1]-1)))
		}
		bytesOf, of := "", ""
		if !k.Special {
			bytesOf = fmt.Sprintf("%d-%d", k.Start, k.End)
			of = strconv.Quote(string(text[k.Start:k.End]))
		}
		line := strings.TrimRight(fmt.Sprintf("%6d  %8d  %-15s  %-20s  %s", i, k.ID, bytesOf, clean(k.Piece), of), " ") + "\n"
		switch {
		case !k.Kept:
			line = paint("2", line)
		case k.Special:
			line = paint("36", line)
		}
		b.WriteString(line)
		if cut < len(s.Dropped) && i == s.Dropped[cut][1]-1 {
			b.WriteString(paint("33", "------  read on\n"))
			cut++
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// clean is the text without what a terminal obeys.
func clean(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// tokensLine is one line of --jsonl.
type tokensLine struct {
	Text   *string `json:"text"`
	Base64 *string `json:"text_base64"`
	truncation
}

// tokensResult is one line of its output.
type tokensResult struct {
	IDs     []int32       `json:"ids"`
	Start   []int32       `json:"start"`
	End     []int32       `json:"end"`
	Tokens  []string      `json:"tokens"`
	Special []bool        `json:"special"`
	Windows []shownWindow `json:"windows"`
}

// maxTokensLine bounds one line of --jsonl.
const maxTokensLine = 256 << 20

// tokensLines turns lines of texts into lines of encodings. A line that cannot be cut as it asks gets
// {"error"} and the rest is done; the exit code tells.
func tokensLines(ctx context.Context, t *tokenize.Tokenizer, o tokensOptions, in io.Reader, stdout io.Writer) (err error) {
	out := bufio.NewWriterSize(stdout, 1<<16)
	defer func() { err = errors.Join(err, out.Flush()) }()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxTokensLine)
	number, failed := 0, 0
	var first error
	for sc.Scan() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		number++
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		line := tokensLine{truncation: o.cut}
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			return usagef("%s line %d: %w", o.path, number, err)
		}
		var text []byte
		switch {
		case line.Text != nil:
			text = []byte(*line.Text)
		case line.Base64 != nil:
			if text, err = base64.StdEncoding.DecodeString(*line.Base64); err != nil {
				return usagef("%s line %d: text_base64: %w", o.path, number, err)
			}
		default:
			return usagef("%s line %d: neither text nor text_base64", o.path, number)
		}
		e, pieces, p, err := planText(t, text, line.truncation)
		if err != nil {
			if failed++; first == nil {
				first = fmt.Errorf("%s line %d: %w", o.path, number, err)
			}
			if err := enc.Encode(map[string]string{"error": err.Error()}); err != nil {
				return err
			}
			continue
		}
		if err := enc.Encode(tokensResult{nonNil(e.IDs), nonNil(e.Start), nonNil(e.End), nonNil(pieces), nonNil(e.Special), shownWindows(&e, &p)}); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return usagef("%s line %d: %w", o.path, number+1, err)
	}
	if failed > 0 {
		return usagef("%d of %d lines could not be cut as they ask, the first: %w", failed, number, first)
	}
	return nil
}

// nonNil makes an empty list [] in JSON, not null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
