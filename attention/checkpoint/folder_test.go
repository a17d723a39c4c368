package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"misroute/attention"
)

// smallBERT is a complete model of two layers with weights from a fixed rule.
func smallBERT() (config map[string]any, tensors []Tensor) { return bertOf(4, 6, 2, 2, 5, 7) }

// bertOf is a complete model of c channels with weights from a fixed rule.
func bertOf(c, wide, layers, heads, vocabulary, positions int) (config map[string]any, tensors []Tensor) {
	config = map[string]any{
		"model_type": "bert", "architectures": []string{"BertForSequenceClassification"},
		"hidden_size": c, "intermediate_size": wide, "num_hidden_layers": layers, "num_attention_heads": heads,
		"vocab_size": vocabulary, "max_position_embeddings": positions,
		"id2label": map[string]string{"0": "orders", "1": "returns", "2": "other"},
	}
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(math.Sin(float64(i+len(name)))) / 2
		}
		tensors = append(tensors, Tensor{name, shape, data})
	}
	add("bert.embeddings.word_embeddings.weight", vocabulary, c)
	add("bert.embeddings.position_embeddings.weight", positions, c)
	add("bert.embeddings.token_type_embeddings.weight", 2, c)
	add("bert.embeddings.LayerNorm.weight", c)
	add("bert.embeddings.LayerNorm.bias", c)
	for i := range layers {
		l := fmt.Sprintf("bert.encoder.layer.%d.", i)
		for _, part := range []string{"self.query", "self.key", "self.value", "output.dense"} {
			add(l+"attention."+part+".weight", c, c)
			add(l+"attention."+part+".bias", c)
		}
		add(l+"attention.output.LayerNorm.weight", c)
		add(l+"attention.output.LayerNorm.bias", c)
		add(l+"intermediate.dense.weight", wide, c)
		add(l+"intermediate.dense.bias", wide)
		add(l+"output.dense.weight", c, wide)
		add(l+"output.dense.bias", c)
		add(l+"output.LayerNorm.weight", c)
		add(l+"output.LayerNorm.bias", c)
	}
	add("bert.pooler.dense.weight", c, c)
	add("bert.pooler.dense.bias", c)
	add("classifier.weight", 3, c)
	add("classifier.bias", 3)
	return config, tensors
}

func mustLogits(t *testing.T, m attention.Model) []float32 {
	t.Helper()
	got := make([]float32, len(m.Config().Labels))
	if err := m.Logits(got, attention.Input{IDs: []int32{1, 2, 3, 4}}, m.NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWriteAndLoad(t *testing.T) {
	config, tensors := smallBERT()
	config["max_trained_tokens"] = 6
	dir := filepath.Join(t.TempDir(), "model")
	if err := Write(dir, config, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := f.Model.Config()
	if want := []string{"orders", "returns", "other"}; !slices.Equal(cfg.Labels, want) {
		t.Errorf("labels %q, want %q", cfg.Labels, want)
	}
	if cfg.ModelType != "bert" || cfg.Positions != 7 || cfg.TrainedCap != 6 || cfg.TypeVocab != 2 || cfg.NormEps != 1e-12 {
		t.Errorf("config %+v", cfg)
	}
	parameters := 0
	for _, tensor := range tensors {
		parameters += len(tensor.Data)
	}
	if f.Model.Parameters() != int64(parameters) || f.DType != "F32" || f.Tokenizer != "" || len(f.Warnings) > 0 {
		t.Errorf("%d parameters (want %d), dtype %s, tokenizer %q, warnings %q", f.Model.Parameters(), parameters, f.DType, f.Tokenizer, f.Warnings)
	}
	if err := f.Unchanged(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v (%v), want config.json and model.safetensors", entries, err)
	}
	config["num_hidden_layers"] = 1
	if err := Write(dir, config, tensors); err != nil {
		t.Fatal(err)
	}
	if err := f.Unchanged(); err == nil {
		t.Error("a rewritten folder counts as unchanged")
	}
}

// TestEncoderTensors writes the parameters of a model under Hugging Face's names and reads them back.
func TestEncoderTensors(t *testing.T) {
	config, tensors := smallBERT()
	original := mustBuild(t, config, tensors)
	r := &reader{t: Memory(tensors), keep: true}
	cfg := *original.Config()
	p := readEncoderParams(r, &cfg, bertNames, cfg.Positions)
	for i := range cfg.Layers {
		p.Layers = append(p.Layers, readEncoderLayer(r, &cfg, bertNames, i))
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	dir := t.TempDir()
	if err := Write(dir, EncoderConfig(&cfg), EncoderTensors(&cfg, p)); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustLogits(t, f.Model), mustLogits(t, original); !slices.Equal(got, want) {
		t.Errorf("logits %v after writing and reading, want %v", got, want)
	}
	if got := f.Model.Config(); got.Activation != cfg.Activation || got.NormEps != cfg.NormEps || !slices.Equal(got.Labels, cfg.Labels) {
		t.Errorf("config %+v, want %+v", got, cfg)
	}
}

// mustBuild builds a model from memory.
func mustBuild(t *testing.T, config map[string]any, tensors []Tensor) attention.Model {
	t.Helper()
	m, err := fromMemory(config, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fromMemory(config map[string]any, tensors []Tensor) (attention.Model, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return buildText(text, Memory(tensors))
}

func buildText(config []byte, t Tensors) (attention.Model, error) {
	family, err := familyOf(config)
	if err != nil {
		return nil, err
	}
	return family.build(config, t, Options{})
}

// TestLegacyNorms: checkpoints converted from TensorFlow call a norm's scale gamma and its shift beta.
func TestLegacyNorms(t *testing.T) {
	config, tensors := smallBERT()
	want := mustLogits(t, mustBuild(t, config, tensors))
	for i := range tensors {
		if strings.Contains(tensors[i].Name, "LayerNorm") {
			tensors[i].Name = strings.NewReplacer(".weight", ".gamma", ".bias", ".beta").Replace(tensors[i].Name)
		}
	}
	dir := t.TempDir()
	if err := Write(dir, config, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustLogits(t, f.Model); !slices.Equal(got, want) {
		t.Errorf("logits %v, want %v", got, want)
	}
}

// TestShards spreads the tensors over two files under an index.
func TestShards(t *testing.T) {
	config, tensors := smallBERT()
	want := mustLogits(t, mustBuild(t, config, tensors))
	dir := writeShards(t, config, tensors)
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustLogits(t, f.Model); !slices.Equal(got, want) {
		t.Errorf("logits %v, want %v", got, want)
	}
	if len(f.Files) != 4 {
		t.Errorf("%d files in the digest, want config, index and two shards", len(f.Files))
	}
}

func writeShards(t *testing.T, config map[string]any, tensors []Tensor) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := Write(dir, config, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, weightsName)); err != nil {
		t.Fatal(err)
	}
	weightMap := map[string]string{}
	half := len(tensors) / 2
	for name, part := range map[string][]Tensor{"model-00001-of-00002.safetensors": tensors[:half], "model-00002-of-00002.safetensors": tensors[half:]} {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(WriteSafetensors(f, part), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range part {
			weightMap[tensor.Name] = name
		}
	}
	writeJSON(t, filepath.Join(dir, indexName), map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": weightMap})
	return dir
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestBadFolders breaks a good folder in one place after the other. Each message must be one line that
// names what is wrong.
func TestBadFolders(t *testing.T) {
	type folder struct {
		config  map[string]any
		tensors []Tensor
	}
	at := func(f *folder, name string) *Tensor {
		i := slices.IndexFunc(f.tensors, func(t Tensor) bool { return t.Name == name })
		return &f.tensors[i]
	}
	const query = "bert.encoder.layer.1.attention.self.query.weight"
	for _, c := range []struct {
		name   string
		spoil  func(f *folder)
		wanted []string // parts of the message
	}{
		{"shape", func(f *folder) { q := at(f, query); q.Shape, q.Data = []int{4, 3}, q.Data[:12] }, []string{query, "[4 3]", "[4 4]"}},
		{"transposed", func(f *folder) { at(f, "bert.encoder.layer.0.output.dense.weight").Shape = []int{6, 4} }, []string{"layer.0.output.dense.weight", "[6 4]", "[4 6]"}},
		{"missing", func(f *folder) {
			f.tensors = slices.DeleteFunc(f.tensors, func(t Tensor) bool { return t.Name == query })
		}, []string{query, "missing"}},
		{"extra", func(f *folder) {
			f.tensors = append(f.tensors, Tensor{"bert.encoder.layer.2.output.dense.bias", []int{4}, make([]float32, 4)})
		}, []string{"bert.encoder.layer.2.output.dense.bias", "not part"}},
		{"NaN", func(f *folder) { at(f, query).Data[6] = float32(math.NaN()) }, []string{query, "NaN", "[1 2]"}},
		{"infinity", func(f *folder) { at(f, query).Data[15] = float32(math.Inf(-1)) }, []string{query, "infinite", "[3 3]"}},
		{"labels", func(f *folder) { f.config["id2label"] = map[string]string{"0": "a", "1": "b"} }, []string{"classifier.weight", "[3 4]", "[2 4]"}},
		{"label ids", func(f *folder) { f.config["id2label"] = map[string]string{"0": "a", "1": "b", "3": "c"} }, []string{"id2label", `"3"`}},
		{"no labels", func(f *folder) { f.config["id2label"] = map[string]string{} }, []string{"id2label"}},
		{"model type", func(f *folder) { f.config["model_type"] = "t5" }, []string{"model_type", `"t5"`, "bert", "deberta-v2"}},
		{"no model type", func(f *folder) { delete(f.config, "model_type") }, []string{"model_type", "missing"}},
		{"activation", func(f *folder) { f.config["hidden_act"] = "softplus" }, []string{"hidden_act", `"softplus"`, "gelu_new"}},
		{"positions", func(f *folder) { f.config["position_embedding_type"] = "relative_key" }, []string{"position_embedding_type", `"relative_key"`}},
		{"heads", func(f *folder) { f.config["num_attention_heads"] = 3 }, []string{"num_attention_heads", "3", "4"}},
		{"no heads", func(f *folder) { f.config["num_attention_heads"] = 0 }, []string{"num_attention_heads", "0"}},
		{"negative", func(f *folder) { f.config["hidden_size"] = -4 }, []string{"hidden_size", "-4"}},
		{"huge", func(f *folder) { f.config["num_hidden_layers"] = 2e9 }, []string{"bert.encoder.layer.2.", "missing"}},
		{"beyond any", func(f *folder) { f.config["vocab_size"] = 1e300 }, []string{"vocab_size"}},
		{"fraction", func(f *folder) { f.config["hidden_size"] = 4.5 }, []string{"hidden_size", "4.5"}},
		{"text", func(f *folder) { f.config["hidden_size"] = "4" }, []string{"hidden_size", `"4"`}},
		{"eps", func(f *folder) { f.config["layer_norm_eps"] = 0 }, []string{"layer_norm_eps"}},
		{"decoder", func(f *folder) { f.config["is_decoder"] = true }, []string{"is_decoder"}},
		{"pruned", func(f *folder) { f.config["pruned_heads"] = map[string][]int{"0": {1}} }, []string{"pruned_heads"}},
		{"quantised", func(f *folder) { f.config["quantization_config"] = map[string]any{"bits": 4} }, []string{"quantization_config"}},
		{"other task", func(f *folder) { f.config["architectures"] = []string{"BertForMaskedLM"} }, []string{"architectures", "BertForMaskedLM"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &folder{}
			f.config, f.tensors = smallBERT()
			f.config = maps.Clone(f.config)
			c.spoil(f)
			dir := t.TempDir()
			if err := Write(dir, f.config, f.tensors); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir, Options{})
			oneLine(t, err, c.wanted...)
		})
	}
}

// oneLine checks that err is a line that holds every part.
func oneLine(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.ContainsRune(err.Error(), '\n') || len(err.Error()) > 600 {
		t.Errorf("not one line: %v", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not name %q", err, p)
		}
	}
}

// TestHarmlessExtras lets tensors stand that the library writes and does not read.
func TestHarmlessExtras(t *testing.T) {
	config, tensors := smallBERT()
	tensors = append(tensors,
		Tensor{"bert.embeddings.position_ids", []int{1, 7}, make([]float32, 7)},
		Tensor{"cls.predictions.bias", []int{5}, make([]float32, 5)})
	dir := t.TempDir()
	if err := Write(dir, config, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "cls.predictions.bias") {
		t.Errorf("warnings %q, want one that names cls.predictions.bias", f.Warnings)
	}
}

func TestBadFiles(t *testing.T) {
	config, tensors := smallBERT()
	good := t.TempDir()
	if err := Write(good, config, tensors); err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(filepath.Join(good, weightsName))
	if err != nil {
		t.Fatal(err)
	}
	folder := func(t *testing.T, files map[string]string) string {
		dir := t.TempDir()
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	configText, err := os.ReadFile(filepath.Join(good, configName))
	if err != nil {
		t.Fatal(err)
	}
	index := func(file string) string { return `{"weight_map":{"classifier.bias":"` + file + `"}}` }
	for name, c := range map[string]struct {
		files  map[string]string
		wanted []string
	}{
		"empty":       {nil, []string{"config.json"}},
		"no weights":  {map[string]string{configName: string(configText)}, []string{"no model.safetensors"}},
		"pickle":      {map[string]string{configName: string(configText), "pytorch_model.bin": "x"}, []string{"pytorch_model.bin", "save_pretrained", "safe_serialization=True"}},
		"not JSON":    {map[string]string{configName: "{'a': 1}", weightsName: string(weights)}, []string{"config.json", "JSON"}},
		"a list":      {map[string]string{configName: "[1]", weightsName: string(weights)}, []string{"config.json", "JSON object"}},
		"cut off":     {map[string]string{configName: string(configText), weightsName: string(weights[:len(weights)-3])}, []string{weightsName, "cut off"}},
		"too long":    {map[string]string{configName: string(configText), weightsName: string(weights) + "x"}, []string{weightsName, "belong to no tensor"}},
		"no file":     {map[string]string{configName: string(configText), indexName: index("model-1.safetensors")}, []string{"model-1.safetensors"}},
		"path":        {map[string]string{configName: string(configText), indexName: index("../model.safetensors")}, []string{indexName, "classifier.bias"}},
		"other path":  {map[string]string{configName: string(configText), indexName: index(`..\\x.safetensors`)}, []string{indexName, "classifier.bias"}},
		"not there":   {map[string]string{configName: string(configText), indexName: `{"weight_map":{"x":"a.safetensors"}}`, "a.safetensors": string(weights)}, []string{indexName, `"x"`, "a.safetensors"}},
		"empty index": {map[string]string{configName: string(configText), indexName: `{}`}, []string{indexName, "weight_map"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(folder(t, c.files), Options{})
			oneLine(t, err, c.wanted...)
		})
	}
	t.Run("no folder", func(t *testing.T) {
		_, err := Load(filepath.Join(good, "absent"), Options{})
		oneLine(t, err, "absent", "no such file")
	})
	t.Run("a file", func(t *testing.T) {
		_, err := Load(filepath.Join(good, configName), Options{})
		oneLine(t, err, "not a folder")
	})
}

func TestDefaultLabels(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`:                                      {"LABEL_0", "LABEL_1"},
		`{"id2label": null, "num_labels": 3}`:     {"LABEL_0", "LABEL_1", "LABEL_2"},
		`{"id2label": {"1": "b", "0": "a"}}`:      {"a", "b"},
		`{"id2label": {"0": 7}, "num_labels": 5}`: {"7"},
	} {
		f := parseFields([]byte(text))
		if got := f.labels(); f.err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, f.err, want)
		}
	}
}
