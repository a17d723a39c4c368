package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"misroute/attention"
	"misroute/attention/checkpoint"
	"misroute/reports/table"
	"misroute/tokenize"
)

// ModelCommand says what a model folder holds, and computes logits of given token ids.
func ModelCommand() *cli.Command {
	return &cli.Command{
		Name:      "model",
		Usage:     "say what a model folder holds and check it; compute logits of token ids",
		ArgsUsage: "DIR",
		Description: "Reads config.json, model.safetensors and the tokenizer of a Hugging Face folder (bert, distilbert, roberta,\n" +
			"xlm-roberta, modernbert, deberta-v2) or of a router made by misroute train, and checks them: every shape,\n" +
			"no weight that is not a number, and one message through the model.\n\n" +
			"With --logits, every line of standard input is a JSON object {\"input_ids\": [...]}, optionally with\n" +
			"\"attention_mask\" and \"token_type_ids\", and becomes a line {\"logits\": [...]}: the way to compare with Python.\n\n" +
			"Examples:\n" +
			"  misroute model models/router\n" +
			"  misroute model --json models/router\n" +
			"  misroute model models/router --logits < ids.jsonl\n\n" +
			"Exit codes: 0 sound; 2 a folder or a line that cannot be used.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "logits", Usage: "turn lines of token ids on standard input into lines of logits"},
			&cli.BoolFlag{Name: "int8", Usage: "8-bit weights: faster, and not the same logits"},
			&cli.BoolFlag{Name: "json", Usage: "print the facts as JSON"},
		},
		Action: func(c *cli.Context) error {
			o := modelOptions{logits: c.Bool("logits"), int8: c.Bool("int8"), json: c.Bool("json"), stdin: c.App.Reader}
			// The folder reads well before the flags: misroute model DIR --logits.
			for i, arg := range c.Args().Slice() {
				switch {
				case i == 0:
					o.dir = arg
				case arg == "--logits", arg == "-logits":
					o.logits = true
				case arg == "--int8", arg == "-int8":
					o.int8 = true
				case arg == "--json", arg == "-json":
					o.json = true
				default:
					return usagef("model: one folder at a time, %q is too much", arg)
				}
			}
			if o.dir == "" {
				return usagef("model needs the DIR of a model (config.json, model.safetensors, tokenizer.json)")
			}
			return runModel(c.Context, o, c.App.Writer)
		},
	}
}

type modelOptions struct {
	dir                string
	logits, int8, json bool
	stdin              io.Reader
}

func runModel(ctx context.Context, o modelOptions, stdout io.Writer) error {
	var err error
	if o.dir, err = bucketsOf(ctx).modelCopy(ctx, o.dir); err != nil {
		return usageError(err)
	}
	if o.logits {
		f, err := checkpoint.Load(o.dir, checkpoint.Options{Int8: o.int8})
		if err != nil {
			return usageError(err)
		}
		return streamLogits(ctx, f.Model, o.stdin, stdout)
	}
	facts, err := inspectModel(o)
	if err != nil {
		return usageError(err)
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(facts)
	}
	return facts.print(stdout)
}

// modelFacts is what misroute model prints.
type modelFacts struct {
	Name            string      `json:"name"`
	Family          string      `json:"family"`
	Layers          int         `json:"layers"`
	Heads           int         `json:"heads"`
	Hidden          int         `json:"hidden"`
	Intermediate    int         `json:"intermediate"`
	Activation      string      `json:"activation"`
	Parameters      int64       `json:"parameters"`
	Vocabulary      int         `json:"vocabulary"`
	Positions       int         `json:"positions"`   // 0: no limit
	TrainedCap      int         `json:"trained_cap"` // 0: unknown
	Labels          []string    `json:"labels"`
	Tokenizer       string      `json:"tokenizer"`
	TokenizerSHA256 string      `json:"tokenizer_sha256"`
	DType           string      `json:"dtype"`
	SHA256          string      `json:"sha256"`
	Files           []modelFile `json:"files"`
	Kernel          string      `json:"kernel"`
	Precision       string      `json:"precision"`
	MemoryBytes     int64       `json:"memory_bytes"` // of the heap, for the loaded model
	LoadMillis      float64     `json:"load_ms"`
	Warnings        []string    `json:"warnings"`
	Check           modelCheck  `json:"check"`
}

type modelFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// modelCheck is the self-check. Shapes and weights are checked by loading, which stops at the first
// that is wrong; so a check that is printed at all has passed those.
type modelCheck struct {
	Shapes        bool    `json:"shapes"`
	Finite        bool    `json:"finite_weights"`
	ForwardTokens int     `json:"forward_tokens"`
	ForwardMillis float64 `json:"forward_ms"`
	Repeatable    bool    `json:"same_bits_twice"`
}

func inspectModel(o modelOptions) (*modelFacts, error) {
	before := heapInUse()
	start := time.Now()
	f, err := checkpoint.Load(o.dir, checkpoint.Options{Int8: o.int8})
	if err != nil {
		return nil, err
	}
	loaded := time.Since(start)
	abs, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	c := f.Model.Config()
	facts := &modelFacts{
		Name: filepath.Base(abs), Family: c.ModelType, Layers: c.Layers, Heads: c.Heads, Hidden: c.Hidden,
		Intermediate: c.Intermediate, Activation: c.Activation, Parameters: f.Model.Parameters(), Vocabulary: c.VocabSize,
		Positions: c.Positions, TrainedCap: c.TrainedCap, Labels: c.Labels, DType: f.DType, SHA256: f.SHA256,
		Kernel: f.Model.Kernel(), Precision: f.Model.Precision(), LoadMillis: millis(loaded),
		MemoryBytes: max(0, heapInUse()-before), Warnings: slices.Concat([]string{}, f.Warnings),
	}
	for _, d := range f.Files {
		facts.Files = append(facts.Files, modelFile{d.Name, d.Bytes, d.SHA256})
	}
	ids := someIDs(min(32, maxTokens(c)), c)
	if f.Tokenizer == "" {
		facts.Warnings = append(facts.Warnings, "no tokenizer.json and no vocab.txt: the model can only be given token ids")
	} else if ids, err = facts.readTokenizer(f.Tokenizer, c); err != nil {
		return nil, fmt.Errorf("model %s: %w", o.dir, err)
	}
	if facts.Check, err = checkForward(f.Model, ids); err != nil {
		return nil, fmt.Errorf("model %s: %w", o.dir, err)
	}
	return facts, nil
}

// readTokenizer adds the tokenizer's facts and encodes a sentence for the self-check.
func (m *modelFacts) readTokenizer(path string, c *attention.Config) ([]int32, error) {
	t, err := tokenize.Load(path)
	if err != nil {
		return nil, err
	}
	m.Tokenizer, m.TokenizerSHA256 = t.Describe(), t.SHA256()
	m.Warnings = append(m.Warnings, t.Warnings()...)
	if int(t.MaxID()) >= c.VocabSize {
		return nil, fmt.Errorf("the tokenizer's ids go up to %d, the model has %d tokens: they do not belong together", t.MaxID(), c.VocabSize)
	}
	var e tokenize.Encoding
	t.Encode(&e, []byte("Where is my order? It was due last week, please check."))
	return e.IDs[:min(len(e.IDs), maxTokens(c))], nil
}

// checkForward runs one message twice.
func checkForward(m attention.Model, ids []int32) (modelCheck, error) {
	check := modelCheck{Shapes: true, Finite: true, ForwardTokens: len(ids)}
	ws := m.NewWorkspace()
	first, second := make([]float32, len(m.Config().Labels)), make([]float32, len(m.Config().Labels))
	in := attention.Input{IDs: ids}
	if err := m.Logits(first, in, ws); err != nil {
		return check, err
	}
	start := time.Now()
	if err := m.Logits(second, in, ws); err != nil {
		return check, err
	}
	check.ForwardMillis = millis(time.Since(start))
	for i, v := range first {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return check, fmt.Errorf("the logit of queue %q is %v: the weights are broken, or so large that float32 overflows", m.Config().Labels[i], v)
		}
	}
	if check.Repeatable = slices.Equal(first, second); !check.Repeatable {
		return check, errors.New("the same message gave two different results")
	}
	return check, nil
}

// maxTokens is the longest message the model takes, for trying it out.
func maxTokens(c *attention.Config) int {
	if c.Positions == 0 {
		return math.MaxInt32
	}
	return c.Positions
}

// someIDs are n token ids spread over the vocabulary: for timing and trying, where words do not matter.
func someIDs(n int, c *attention.Config) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		id := int32((1000 + i*7919) % c.VocabSize)
		if id == c.PadID { // RoBERTa gives padding no position
			id = (id + 1) % int32(c.VocabSize)
		}
		ids[i] = id
	}
	return ids
}

// heapInUse is the memory that is reachable now.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// print writes the facts for people.
func (m *modelFacts) print(w io.Writer) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, a ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, a...)) }
	row("model", "%s", table.Clean(m.Name))
	if m.Heads > 0 {
		row("family", "%s, %s x %d, %s, feed-forward %d (%s)", m.Family, plural(m.Layers, "layer"), m.Hidden, plural(m.Heads, "head"), m.Intermediate, m.Activation)
	} else {
		row("family", "%s", m.Family)
	}
	row("parameters", "%s", thousands(m.Parameters))
	if m.Positions > 0 {
		row("positions", "%s tokens", thousands(int64(m.Positions)))
	} else {
		row("positions", "no limit")
	}
	if m.TrainedCap > 0 {
		row("trained with", "a cap of %d tokens", m.TrainedCap)
	} else {
		row("trained with", "a cap the folder does not tell")
	}
	if m.Tokenizer != "" {
		row("tokenizer", "%s (sha256 %.12s)", m.Tokenizer, m.TokenizerSHA256)
	} else {
		row("tokenizer", "none in the folder")
	}
	row("vocabulary", "%s", thousands(int64(m.Vocabulary)))
	row("weights", "%s in the files, computed in %s on %s", m.DType, m.Precision, m.Kernel)
	row("memory", "%s, loaded in %.0f ms", megabytes(m.MemoryBytes), m.LoadMillis)
	row("sha256", "%s", m.SHA256)
	for _, f := range m.Files {
		row("", "%.12s  %s, %s bytes", f.SHA256, table.Clean(f.Name), thousands(f.Bytes))
	}
	labels := make([]string, len(m.Labels))
	for i, l := range m.Labels {
		labels[i] = table.Clean(l)
	}
	row(plural(len(labels), "queue"), "%s", strings.Join(labels, ", "))
	row("check", "every shape fits; every weight is finite; %s in %.2f ms, twice the same bits", plural(m.Check.ForwardTokens, "token"), m.Check.ForwardMillis)
	for _, warning := range m.Warnings {
		row("warning", "%s", table.Clean(strings.Join(strings.Fields(warning), " ")))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// idLine is one line of --logits.
type idLine struct {
	IDs   []int32 `json:"input_ids"`
	Types []int32 `json:"token_type_ids"`
	// A []uint8 would be read from base64.
	MaskNumbers []int `json:"attention_mask"`
}

// longestLine is the longest line of token ids that is read: more than a million tokens.
const longestLine = 16 << 20

// streamLogits answers line by line, so that another program can wait for each answer.
func streamLogits(ctx context.Context, m attention.Model, in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 1<<16)
	w := bufio.NewWriter(out)
	ws, logits := m.NewWorkspace(), make([]float32, len(m.Config().Labels))
	for number := 1; ctx.Err() == nil; number++ {
		line, err := readLine(r)
		if len(bytes.TrimSpace(line)) > 0 {
			answer, e := answerLine(m, line, ws, logits)
			if e != nil {
				return errors.Join(w.Flush(), usagef("standard input, line %d: %w", number, e))
			}
			if _, e := w.Write(append(answer, '\n')); e != nil {
				return e
			}
		}
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return errors.Join(w.Flush(), usagef("standard input, line %d: %w", number, err))
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return errors.Join(w.Flush(), ctx.Err())
}

// readLine reads up to the next line end; the last line may lack it and comes with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > longestLine:
			return nil, fmt.Errorf("longer than the %d bytes that are read", longestLine)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// answerLine computes the answer to one line.
func answerLine(m attention.Model, line []byte, ws *attention.Workspace, logits []float32) ([]byte, error) {
	var l idLine
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, fmt.Errorf("not a JSON object with input_ids: %w", err)
	}
	if l.IDs == nil {
		return nil, errors.New("no input_ids")
	}
	in := attention.Input{IDs: l.IDs, TypeIDs: l.Types}
	if l.MaskNumbers != nil {
		in.Mask = make([]uint8, len(l.MaskNumbers))
		for i, v := range l.MaskNumbers {
			if v != 0 && v != 1 {
				return nil, fmt.Errorf("attention_mask has %d at position %d, want 0 or 1", v, i)
			}
			in.Mask[i] = uint8(v)
		}
	}
	if err := m.Logits(logits, in, ws); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(struct {
		Logits []float32 `json:"logits"`
	}{logits})
	if err != nil {
		return nil, fmt.Errorf("the logits %v cannot be written: %w", logits, err)
	}
	return answer, nil
}
