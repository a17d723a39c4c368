package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"misroute/pipeline/result"
	"misroute/pipeline/router"
)

// numerics changes whenever the same model and text may get another score: it keeps runs apart that
// must not be resumed into each other.
const numerics = "1"

// runFacts is the part of the run's metadata that is known before the first message.
func runFacts(o *evalOptions, r router.Router) result.Run {
	run := result.Run{
		Schema: result.SchemaVersion, ToolVersion: version,
		Shard: o.shard.String(), Cap: o.setting.MaxTokens, Strategy: o.setting.Strategy.String(), Caps: o.caps,
		Quotes: string(o.text.Quotes), Subject: o.subject, Seed: o.seed,
		Model: result.ModelFacts{Name: "as routed", Family: "as-routed"},
	}
	for _, s := range o.strategies {
		run.Strategies = append(run.Strategies, s.String())
	}
	if r == nil {
		run.Cap = 0
		return run
	}
	f := r.Facts()
	run.Model = result.ModelFacts{
		Name: f.Name, Family: f.Family, SHA256: f.SHA256, TokenizerSHA256: f.TokenizerSHA256, Tokenizer: f.Tokenizer,
		Parameters: f.Parameters, Layers: f.Layers, Heads: f.Heads, Hidden: f.Hidden, Positions: f.Positions, TrainedCap: f.TrainedCap,
	}
	run.Queues, run.Kernel, run.Precision = r.Queues(), f.Kernel, f.Precision
	run.Overlap, run.HeadTokens, run.Aggregate = o.setting.Overlap, o.setting.HeadTokens, o.setting.Aggregate.String()
	if o.whole {
		_, run.Reference = r.Whole()
	}
	run.Warnings = append(run.Warnings, f.Warnings...)
	if f.TrainedCap > 0 && (o.setting.MaxTokens == 0 || o.setting.MaxTokens > f.TrainedCap) {
		run.Warnings = append(run.Warnings, fmt.Sprintf("the router was trained with a cap of %d tokens; it reads longer messages here than it ever saw", f.TrainedCap))
	}
	return run
}

// runKey says what the rows depend on, each part by name: a run is resumed only under the same key.
// The content of the exports is checked message by message as they are read.
func runKey(o *evalOptions, run result.Run) (map[string]string, error) {
	key := map[string]string{
		"model": run.Model.SHA256, "tokenizer": run.Model.TokenizerSHA256, "kernel": run.Kernel, "precision": run.Precision,
		"cap": fmt.Sprint(o.setting.MaxTokens), "strategy": o.setting.Strategy.String(),
		"setting": fmt.Sprintf("%+v", o.setting), "others": fmt.Sprint(o.caps, o.strategies, o.placebos, o.control, o.whole),
		"exports": fmt.Sprint(baseNames(o.exports)), "seed": fmt.Sprint(o.seed), "numerics": numerics,
		"subject": fmt.Sprint(o.subject), "with-text": fmt.Sprint(o.withText), "literal-specials": fmt.Sprint(o.router.LiteralSpecials),
		"as-routed": fmt.Sprint(o.asRouted), "queues": fmt.Sprint(run.Queues),
		"only rejects of": filepath.Base(o.onlyRejects),
	}
	if err := inputKey(key, o); err != nil {
		return nil, err
	}
	b, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	key["all"] = hex.EncodeToString(sum[:])
	key["shard"] = o.shard.String() // parts of one run share the configuration
	return key, nil
}

// baseNames keeps paths of this machine out of what is stored.
func baseNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return names
}

// inputKey adds how the export is read: options, and the content of the labels file.
func inputKey(key map[string]string, o *evalOptions) error {
	m := o.mail
	key["format"] = fmt.Sprint(m.Format, m.Preset)
	key["labels from"] = fmt.Sprint(m.Labels.From, m.Labels.Header, m.Labels.RoutedHeader, m.Labels.Zone)
	key["limits"] = fmt.Sprintf("%+v", m.Limits)
	for name, v := range map[string]any{"columns": m.Map, "groups": m.Groups, "text options": o.text} {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		key[name] = string(b)
	}
	if m.Labels.File != nil {
		b, err := os.ReadFile(m.Labels.File.Path)
		if err != nil {
			return usageError(err)
		}
		sum := sha256.Sum256(b)
		key["labels file"] = hex.EncodeToString(sum[:])
	}
	return nil
}

// runID is a hash of configuration and inputs: the same run has the same id.
func runID(run result.Run) (string, error) {
	run.RunID = ""
	b, err := json.Marshal(run)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// processor names the machine for the measured part of a run.
func processor() string {
	kind := runtime.GOOS + "/" + runtime.GOARCH
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return kind
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return kind + ", " + strings.TrimSpace(value)
		}
	}
	return kind
}
