package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"misroute/attention"
)

// maxJSON is the longest config.json or index that is read: the index of a model with a hundred
// thousand tensors, or the names of a hundred thousand queues.
const maxJSON = 16 << 20

// maxUnnamed is how many queues may go without names: the names made up for them must not cost more
// memory than a file that lists them.
const maxUnnamed = 10_000

// fields reads the settings of a config.json one by one. The first problem stays in err and names its
// field, so that a family can read all its settings before it looks. A field that is missing or null
// has the default of the Hugging Face class, which is not always what its documentation says.
type fields struct {
	raw map[string]json.RawMessage
	err error
}

func parseFields(text []byte) *fields {
	f := &fields{}
	if err := json.Unmarshal(text, &f.raw); err != nil {
		f.err = fmt.Errorf("%s is not a JSON object: %w", configName, err)
	}
	return f
}

func (f *fields) fail(name, format string, a ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %s %s", configName, name, fmt.Sprintf(format, a...))
	}
}

// set says whether the field is there and not null.
func (f *fields) set(name string) bool {
	raw, ok := f.raw[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// isNull says whether the field is there and null.
func (f *fields) isNull(name string) bool {
	_, ok := f.raw[name]
	return ok && !f.set(name)
}

// decode reads the field into v and says whether it could.
func (f *fields) decode(name string, v any, kind string) bool {
	if f.err != nil || !f.set(name) {
		return false
	}
	if err := json.Unmarshal(f.raw[name], v); err != nil {
		f.fail(name, "is %s, not %s", shorten(string(f.raw[name])), kind)
		return false
	}
	return true
}

// integer reads a whole number of at least lowest.
func (f *fields) integer(name string, missing, lowest int) int {
	v := float64(missing)
	if !f.decode(name, &v, "a number") {
		return missing
	}
	if v != math.Trunc(v) || v < float64(lowest) || v > math.MaxInt32 {
		f.fail(name, "is %v, not a whole number from %d on", v, lowest)
		return missing
	}
	return int(v)
}

// positive reads a finite number over 0.
func (f *fields) positive(name string, missing float64) float64 {
	v := missing
	if f.decode(name, &v, "a number") && !(v > 0) {
		f.fail(name, "is %v, not a number over 0", v)
	}
	return v
}

func (f *fields) boolean(name string, missing bool) bool {
	v := missing
	f.decode(name, &v, "true or false")
	return v
}

func (f *fields) text(name, missing string) string {
	v := missing
	f.decode(name, &v, "a string")
	return v
}

// refuse stops at a setting that changes the mathematics in a way that is not built.
func (f *fields) refuse(name, value, why string) {
	f.fail(name, "is %s, which this program does not compute (%s)", value, why)
}

// oneOf reads a string that must be one of the choices.
func (f *fields) oneOf(name, missing string, choices ...string) string {
	v := f.text(name, missing)
	for _, c := range choices {
		if v == c {
			return v
		}
	}
	f.fail(name, "is %s, not one of %s", quote(v), strings.Join(choices, ", "))
	return v
}

// activation reads the name of an activation function and checks that it is known.
func (f *fields) activation(name string) string {
	v := f.text(name, "gelu")
	if known := attention.Activations(); !slices.Contains(known, v) {
		f.fail(name, "is %s, not one of %s", quote(v), strings.Join(known, ", "))
	}
	return v
}

// heads checks that the head count divides the hidden size.
func (f *fields) heads(name string, missing, hidden int) int {
	n := f.integer(name, missing, 1)
	if f.err == nil && hidden%n != 0 {
		f.fail(name, "is %d, which does not divide the hidden size %d", n, hidden)
	}
	return n
}

// labels reads the queue names in the order of the logits. id2label wins over num_labels; without
// either there are two, as in the library.
func (f *fields) labels() []string {
	var byID map[string]json.RawMessage
	if !f.decode("id2label", &byID, "an object") {
		n := f.integer("num_labels", 2, 1)
		if n > maxUnnamed {
			f.fail("num_labels", "is %d without names in id2label", n)
			return nil
		}
		labels := make([]string, n)
		for i := range labels {
			labels[i] = "LABEL_" + strconv.Itoa(i)
		}
		return labels
	}
	if len(byID) == 0 {
		f.fail("id2label", "is empty: the model has no queues")
	}
	labels := make([]string, len(byID))
	taken := make([]bool, len(byID))
	for key, raw := range byID {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= len(labels) || taken[id] {
			f.fail("id2label", "has the key %s; with %d queues the keys are 0 to %d", quote(key), len(labels), len(labels)-1)
			return nil
		}
		taken[id] = true
		if json.Unmarshal(raw, &labels[id]) != nil {
			labels[id] = string(raw) // a number as a name
		}
	}
	return labels
}

// common checks what is true of every Hugging Face family: settings that change the result and are
// not built are refused by name rather than ignored.
func (f *fields) common() {
	var architectures []string
	if f.decode("architectures", &architectures, "a list of strings") && len(architectures) > 0 {
		classifier := false
		for _, a := range architectures {
			classifier = classifier || strings.HasSuffix(a, "ForSequenceClassification")
		}
		if !classifier {
			f.fail("architectures", "is %s, not a ...ForSequenceClassification: the model does not choose between queues; fine-tune it first", quote(architectures[0]))
		}
	}
	if f.boolean("is_decoder", false) {
		f.refuse("is_decoder", "true", "causal attention")
	}
	if f.set("quantization_config") {
		f.fail("quantization_config", "is set: quantised weights are not read; save the model in float32, float16 or bfloat16")
	}
	var pruned map[string]json.RawMessage
	if f.decode("pruned_heads", &pruned, "an object") && len(pruned) > 0 {
		f.refuse("pruned_heads", "not empty", "layers with fewer heads")
	}
	if t := f.text("position_embedding_type", "absolute"); t != "absolute" {
		f.refuse("position_embedding_type", quote(t), "only absolute positions")
	}
}

// modelType is the family that config.json names.
func modelType(config []byte) (string, error) {
	f := parseFields(config)
	if f.err == nil && !f.set("model_type") {
		return "", fmt.Errorf("%s: model_type is missing; known are %s", configName, strings.Join(ModelTypes(), ", "))
	}
	t := f.text("model_type", "")
	return t, f.err
}

// readSmall reads a whole file of at most maxJSON bytes.
func readSmall(path string) (text []byte, f openFile, err error) {
	f, err = openRegular(path)
	if err != nil {
		return nil, f, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if f.size > maxJSON {
		return nil, f, fmt.Errorf("%s has %d bytes, more than the %d that are read", f.name, f.size, maxJSON)
	}
	text, err = io.ReadAll(io.LimitReader(f, maxJSON))
	return text, f, err
}

// shorten cuts a piece of untrusted text to fit in a line.
func shorten(s string) string {
	const most = 60
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// rename gives fields the name their family uses, unless that is there too.
func (f *fields) rename(names map[string]string) {
	for from, to := range names {
		if f.set(from) && !f.set(to) {
			f.raw[to] = f.raw[from]
		}
	}
}
