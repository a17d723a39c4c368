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
	name  string // model_type
	build func(config json.RawMessage, t Tensors, o Options) (attention.Model, error)
	// ignores says which tensors may stand in the file though classification does not use them.
	ignores func(tensor string) bool
}

var registry = struct {
	sync.RWMutex
	families map[string]family
}{families: map[string]family{
	"bert":        {build: buildBERT, ignores: ignoreBERT},
	"distilbert":  {build: buildDistilBERT, ignores: ignoreBERT},
	"roberta":     {build: buildRoBERTa, ignores: ignoreRoBERTa},
	"xlm-roberta": {build: buildRoBERTa, ignores: ignoreRoBERTa},
	"deberta-v2":  {build: buildDeBERTa, ignores: ignoreDeBERTa},
	"modernbert":  {build: buildModernBERT, ignores: ignoreModernBERT},
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

// familyOf is the family that config.json names.
func familyOf(config []byte) (*family, error) {
	name, err := modelType(config)
	if err != nil {
		return nil, err
	}
	registry.RLock()
	f, ok := registry.families[name]
	registry.RUnlock()
	if !ok {
		return nil, fmt.Errorf("%s: model_type %s is not one of %s", configName, quote(name), strings.Join(ModelTypes(), ", "))
	}
	f.name = name
	return &f, nil
}
