package checkpoint

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"misroute/attention"
)

// FuzzSafetensors reads files that may lie. What is accepted must fit into the file: a tensor has no
// more elements than the file has bytes.
func FuzzSafetensors(f *testing.F) {
	_, tensors := smallBERT()
	var b bytes.Buffer
	if err := WriteSafetensors(&b, tensors[:3]); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(file(`{"a":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[6,7]}}`, 7))
	f.Add(file(`{"a":{"dtype":"I64","shape":[0,9],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parse(data)
		if err != nil {
			if strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		total := 0
		for i := range file.Infos() {
			info := &file.Infos()[i]
			total += info.Len()
			if total > len(data) {
				t.Fatalf("%d elements in a file of %d bytes", total, len(data))
			}
			if err := file.ReadFloat32(make([]float32, info.Len()), info); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzConfig gives a folder with good weights settings that may be anything. It must load or be
// refused in one line, and a model that loads must answer.
func FuzzConfig(f *testing.F) {
	config, tensors := smallBERT()
	text, err := json.Marshal(config)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, modelType := range ModelTypes() {
		f.Add([]byte(`{"model_type":"` + modelType + `","hidden_size":4,"num_attention_heads":2,"vocab_size":5}`))
	}
	f.Add([]byte(`{"model_type":"modernbert","layer_types":["full_attention"],"rope_parameters":{"full_attention":{"rope_theta":1}},"num_hidden_layers":1}`))
	f.Add([]byte(`{"model_type":"deberta-v2","pos_att_type":["c2p"],"relative_attention":true,"position_buckets":4}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		m, err := buildText(config, Memory(tensors))
		if err != nil {
			if strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		got := make([]float32, len(m.Config().Labels))
		in := attention.Input{IDs: []int32{0}}
		if err := m.Logits(got, in, m.NewWorkspace()); err != nil {
			t.Error(err)
		}
	})
}
