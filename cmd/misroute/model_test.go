package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"misroute/attention/checkpoint"
)

// onesModel writes a BERT of one layer in which every weight is small and regular.
func onesModel(t *testing.T, labels ...string) (dir string) {
	t.Helper()
	const c, wide, vocabulary, positions = 8, 12, 40, 24
	id2label := map[string]string{}
	for i, l := range labels {
		id2label[fmt.Sprint(i)] = l
	}
	config := map[string]any{
		"model_type": "bert", "hidden_size": c, "intermediate_size": wide, "num_hidden_layers": 1, "num_attention_heads": 2,
		"vocab_size": vocabulary, "max_position_embeddings": positions, "id2label": id2label, "max_trained_tokens": 16,
	}
	var tensors []checkpoint.Tensor
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(math.Sin(float64(7*i + len(name))))
		}
		tensors = append(tensors, checkpoint.Tensor{Name: name, Shape: shape, Data: data})
	}
	pair := func(name string, out, in int) {
		add(name+".weight", out, in)
		add(name+".bias", out)
	}
	norm := func(name string) {
		add(name+".weight", c)
		add(name+".bias", c)
	}
	add("bert.embeddings.word_embeddings.weight", vocabulary, c)
	add("bert.embeddings.position_embeddings.weight", positions, c)
	add("bert.embeddings.token_type_embeddings.weight", 2, c)
	norm("bert.embeddings.LayerNorm")
	const layer = "bert.encoder.layer.0."
	for _, part := range []string{"self.query", "self.key", "self.value", "output.dense"} {
		pair(layer+"attention."+part, c, c)
	}
	norm(layer + "attention.output.LayerNorm")
	pair(layer+"intermediate.dense", wide, c)
	pair(layer+"output.dense", c, wide)
	norm(layer + "output.LayerNorm")
	pair("bert.pooler.dense", c, c)
	pair("classifier", len(labels), c)
	dir = filepath.Join(t.TempDir(), "router")
	if err := checkpoint.Write(dir, config, tensors); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestModelFacts(t *testing.T) {
	dir := onesModel(t, "orders", "returns", "other\x1b[2J")
	var out bytes.Buffer
	if code := run([]string{"misroute", "model", dir}, &out, &out); code != exitOK {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	for _, part := range []string{"router", "bert, 1 layer x 8, 2 heads, feed-forward 12 (gelu)", "24 tokens", "a cap of 16 tokens", "3 queues", "orders, returns, other", "twice the same bits", "no tokenizer.json"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a queue's name reaches the terminal unescaped")
	}
	out.Reset()
	if code := run([]string{"misroute", "model", "--json", dir}, &out, &out); code != exitOK {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	var facts modelFacts
	if err := json.Unmarshal(out.Bytes(), &facts); err != nil {
		t.Fatal(err)
	}
	// 40*8+24*8+2*8 embeddings, 16 norm; 4*(64+8)+16 attention, 96+12+96+8+16 feed-forward; 72 pooler, 27 classifier.
	if facts.Parameters != 40*8+24*8+2*8+16+4*72+16+96+12+96+8+16+72+27 || len(facts.Files) != 2 || !facts.Check.Repeatable {
		t.Errorf("facts %+v", facts)
	}
}

// TestModelLogits gives lines in the order flags may stand in, and checks each answer against the same
// ids given alone.
func TestModelLogits(t *testing.T) {
	dir := onesModel(t, "a", "b")
	f, err := checkpoint.Load(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(input string) []string {
		var out bytes.Buffer
		if err := streamLogits(context.Background(), f.Model, strings.NewReader(input), &out); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	got := answer(`{"input_ids": [1, 2, 3]}` + "\n\n" + `{"input_ids": [1, 2, 3, 0], "attention_mask": [1, 1, 1, 0]}` + "\r\n" + `{"input_ids":[9],"token_type_ids":[1]}`)
	if len(got) != 3 || got[0] == got[2] || !strings.HasPrefix(got[0], `{"logits":[`) {
		t.Fatalf("answers %q", got)
	}
	var first, padded struct{ Logits []float64 }
	for i, v := range []any{&first, &padded} {
		if err := json.Unmarshal([]byte(got[i]), v); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range first.Logits {
		if math.Abs(v-padded.Logits[i]) > 1e-5 {
			t.Errorf("logit %d is %v alone and %v with padding", i, v, padded.Logits[i])
		}
	}
	for input, want := range map[string]string{
		`{"input_ids": [1]}` + "\n" + `{"input_ids": [40]}`: "line 2: model input: token id 40 at position 0",
		`{"input_ids": [-1]}`:                               "token id -1",
		`{"input_ids": []}`:                                 "no tokens",
		`{"ids": [1]}`:                                      "no input_ids",
		`[1]`:                                               "line 1: not a JSON object",
		`{"input_ids": [1.5]}`:                              "line 1: not a JSON object",
		`{"input_ids": [1, 2], "attention_mask": [1]}`:       "mask of 1 for 2 tokens",
		`{"input_ids": [1], "attention_mask": [2]}`:          "attention_mask has 2",
		`{"input_ids": [1], "token_type_ids": [2]}`:          "token type 2",
		`{"input_ids": [` + strings.Repeat("1,", 24) + `1]}`: "25 tokens, the model has positions for 24",
		strings.Repeat(" ", longestLine+1):                   "longer than",
	} {
		var out bytes.Buffer
		err := streamLogits(context.Background(), f.Model, strings.NewReader(input), &out)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v, want %q", input, err, want)
		}
	}
}

func TestModelUsage(t *testing.T) {
	dir := onesModel(t, "a", "b")
	for _, args := range [][]string{{"model"}, {"model", dir, dir}, {"model", filepath.Join(dir, "absent")}, {"bench"}, {"bench", "--model", dir, "--lengths", "12,x"},
		{"bench", "--model", dir, "--lengths", "25"}, {"bench", "--model", dir, "--lengths", "0"}, {"bench", "--model", dir, "--workers", "0"}, {"bench", "--model", dir, "--plot", "x.svg"}} {
		var out bytes.Buffer
		if code := run(append([]string{"misroute"}, args...), &out, &out); code != exitUsage || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, want %d and one line: %s", args, code, exitUsage, out.String())
		}
	}
}

func TestBenchJSON(t *testing.T) {
	dir := onesModel(t, "a", "b")
	var out bytes.Buffer
	o := benchOptions{model: dir, lengths: []int{8, 24}, json: true, workers: 2, time: time.Millisecond, window: 16}
	if err := runBench(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	var r benchResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[1].Tokens != 24 || !(r.Peak > 0) {
		t.Fatalf("result %+v", r)
	}
	for _, row := range r.Rows {
		if !(row.MinMillis > 0 && row.MinMillis <= row.MedianMillis && row.PerSecond > 0 && row.GFLOPS > 0 && row.PeakShare > 0 && row.QuadraticShare > 0 && row.QuadraticShare < 1) {
			t.Errorf("row %+v", row)
		}
	}
	o.lengths, o.mixed, o.json = nil, []int{3, 9}, false
	out.Reset()
	if err := runBench(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "2 mixed, mean 6") {
		t.Errorf("no row of the mixed set in\n%s", out.String())
	}
}

// TestQuadraticShare: with C = 8 channels, F = 12 * 2/3 in a gated part and T tokens, one full layer's
// arithmetic is 2T(3C*C + C*C + 3C*F) for the products and 4*T*T*C for the grid; the head adds 2(C*C + C).
func TestQuadraticShare(t *testing.T) {
	f, err := checkpoint.Load(onesModel(t, "a", "b"), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shape := f.Model.Config()
	full, err := oneLayer(shape, 0)
	if err != nil {
		t.Fatal(err)
	}
	local, err := oneLayer(shape, 16)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []float64{1, 10, 1000} {
		cells, flops := full.Cost(int(n))
		grid := 4 * n * n * 8
		if want := 2*n*(4*64+3*8*8) + grid + 2*(64+8); float64(flops) != want || quadraticFLOPs(shape, cells) != grid {
			t.Errorf("%v tokens: %d flops, %v in the grid; want %v, %v", n, flops, quadraticFLOPs(shape, cells), want, grid)
		}
	}
	// A window of 16 shows 8 neighbours to each side: 17 keys, fewer at the ends, where 2*(1+...+8) are missing.
	if cells, _ := local.Cost(1000); cells != 2*(1000*17-72) {
		t.Errorf("the window's grid has %d cells, want %d", cells, 2*(1000*17-72))
	}
}
