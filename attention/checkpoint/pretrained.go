package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"misroute/attention"
)

// Pretrained is an encoder to go on training from.
type Pretrained struct {
	Config    attention.Config
	Params    *attention.EncoderParams // without a classifier; Pool is empty when the folder has none
	Tokenizer string                   // path, empty when the folder has none
}

// ReadPretrained reads the encoder in dir for a new set of queues. Unlike Load it also takes models
// that were trained for something else (BertModel, BertForMaskedLM, sentence encoders): the head for
// the old task is left out, and a name may lack the family's prefix.
func ReadPretrained(dir string, labels []string) (*Pretrained, error) {
	p, err := readPretrained(dir, labels)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", dir, err)
	}
	return p, nil
}

func readPretrained(dir string, labels []string) (*Pretrained, error) {
	text, _, err := readSmall(filepath.Join(dir, configName))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configName, err)
	}
	f := parseFields(text)
	modelType := f.text("model_type", "")
	if f.err != nil {
		return nil, f.err
	}
	plan, ok := encoderPlans[modelType]
	if !ok {
		return nil, fmt.Errorf("%s: model_type %s cannot be fine-tuned here; bert, distilbert, roberta and xlm-roberta can", configName, quote(modelType))
	}
	// The old task is nobody's business any more.
	for _, name := range []string{"architectures", "id2label", "label2id", "num_labels", "problem_type", "max_trained_tokens"} {
		delete(f.raw, name)
	}
	id2label, _ := labelMaps(labels)
	if f.raw["id2label"], err = json.Marshal(id2label); err != nil {
		return nil, err
	}
	cfg, names, rows := plan(f)
	if completeEncoder(&cfg, f, rows); f.err != nil {
		return nil, f.err
	}
	weights, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	r := &reader{t: headless{weights, names}, keep: true}
	params := readEncoderParams(r, &cfg, names, rows)
	for i := 0; i < cfg.Layers && r.err == nil; i++ {
		params.Layers = append(params.Layers, readEncoderLayer(r, &cfg, names, i))
	}
	if err := errors.Join(r.err, weights.close()); err != nil {
		return nil, err
	}
	params.Classify = attention.Linear{}
	return &Pretrained{Config: cfg, Params: params, Tokenizer: findTokenizer(dir)}, nil
}

// headless are the tensors of an encoder whose head is another or missing.
type headless struct {
	Tensors
	names encoderNames
}

// found is the name under which the file has a tensor.
func (h headless) found(name string) string {
	if h.Has(name) {
		return name
	}
	_, bare, _ := strings.Cut(name, ".") // "bert.embeddings..." as BertModel saves it
	return bare
}

func (h headless) Float32(name string, shape ...int) ([]float32, error) {
	head := strings.HasPrefix(name, h.names.classify+".")
	if head {
		return nil, nil
	}
	found := h.found(name)
	if strings.HasPrefix(name, h.names.pool+".") {
		if have, ok := h.Shape(found); !ok || !slices.Equal(have, shape) {
			return nil, nil // drawn anew
		}
	}
	if !h.Has(found) {
		found = name // the error should name what was looked for
	}
	return h.Tensors.Float32(found, shape...)
}
