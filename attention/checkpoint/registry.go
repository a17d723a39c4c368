package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"misroute/attention"
)

// family is how the folders of one model_type are read.
type family struct {
	build func(config json.RawMessage, t Tensors, o Options) (attention.Model, error)
	// ignores says which tensors may stand in the file though classification does not use them.
	ignores func(tensor string) bool
}

var registry = struct {
	sync.RWMutex
	families map[string]family
}{families: map[string]family{
	"bert":        {buildBERT, ignoreBERT},
	"distilbert":  {buildDistilBERT, ignoreBERT},
	"roberta":     {buildRoBERTa, ignoreRoBERTa},
	"xlm-roberta": {buildRoBERTa, ignoreRoBERTa},
	"deberta-v2":  {buildDeBERTa, ignoreDeBERTa},
	"modernbert":  {buildModernBERT, ignoreModernBERT},
}}

// Builder makes a model from config.json and its tensors. Problems name the tensor or field.
type Builder func(config json.RawMessage, t Tensors) (attention.Model, error)

// Register adds a model_type. It is meant for package initialisation; a name that is taken panics.
func Register(modelType string, b Builder) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.families[modelType]; taken {
		panic("checkpoint: model_type " + modelType + " is registered twice")
	}
	registry.families[modelType] = family{
		build: func(config json.RawMessage, t Tensors, _ Options) (attention.Model, error) {
			return b(config, t)
		},
		ignores: func(string) bool { return false },
	}
}

// ModelTypes lists the known values of model_type, sorted.
func ModelTypes() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.families))
}

func lookup(modelType string) (family, error) {
	registry.RLock()
	f, ok := registry.families[modelType]
	registry.RUnlock()
	if !ok {
		return f, fmt.Errorf("%s: model_type %s is not one of %s", configName, quote(modelType), strings.Join(ModelTypes(), ", "))
	}
	return f, nil
}
