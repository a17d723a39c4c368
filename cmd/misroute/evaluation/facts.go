package evaluation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"misroute/pipeline/result"
	"misroute/pipeline/router"
)

// numerics changes whenever the same model and text may get another score: it keeps runs apart that
// must not be resumed into each other.
const numerics = "2"

// Facts is the part of the run's metadata that is known before the first message.
func (o *Options) Facts(r router.Router) result.Run {
	run := result.Run{
		Schema: result.SchemaVersion, ToolVersion: Version,
		Shard: o.Shard.String(), Cap: o.Setting.MaxTokens, Strategy: o.Setting.Strategy.String(), Caps: o.Caps,
		Quotes: string(o.Text.Quotes), Subject: o.Subject, Seed: o.Seed,
		Model: result.ModelFacts{Name: "as routed", Family: "as-routed"},
	}
	for _, s := range o.Strategies {
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
	run.Overlap, run.HeadTokens, run.Aggregate = o.Setting.Overlap, o.Setting.HeadTokens, o.Setting.Aggregate.String()
	if o.Whole {
		_, run.Reference = r.Whole()
	}
	run.Warnings = append(run.Warnings, f.Warnings...)
	if f.TrainedCap > 0 && (o.Setting.MaxTokens == 0 || o.Setting.MaxTokens > f.TrainedCap) {
		run.Warnings = append(run.Warnings, fmt.Sprintf("the router was trained with a cap of %d tokens; it reads longer messages here than it ever saw", f.TrainedCap))
	}
	return run
}

// Key says what the rows depend on, each part by name, and "all" together: a run is resumed only under
// the same key.
// The content of the exports is checked message by message as they are read.
func (o *Options) Key(run result.Run) (map[string]string, error) {
	key := map[string]string{
		"model": run.Model.SHA256, "tokenizer": run.Model.TokenizerSHA256, "kernel": run.Kernel, "precision": run.Precision,
		"cap": fmt.Sprint(o.Setting.MaxTokens), "strategy": o.Setting.Strategy.String(),
		"setting": fmt.Sprintf("%+v", o.Setting), "others": fmt.Sprint(o.Caps, o.Strategies, o.Placebos, o.Control, o.Whole),
		"exports": fmt.Sprint(baseNames(o.Exports)), "seed": fmt.Sprint(o.Seed), "numerics": numerics,
		"subject": fmt.Sprint(o.Subject), "with-text": fmt.Sprint(o.WithText), "literal-specials": fmt.Sprint(o.Router.LiteralSpecials),
		"as-routed": fmt.Sprint(o.AsRouted), "queues": fmt.Sprint(run.Queues),
		"only rejects of": filepath.Base(o.OnlyRejects),
	}
	if err := o.inputKey(key); err != nil {
		return nil, err
	}
	b, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	key["all"] = hex.EncodeToString(sum[:])
	key["shard"] = o.Shard.String() // parts of one run share the configuration
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
func (o *Options) inputKey(key map[string]string) error {
	m := o.Mail
	key["format"] = fmt.Sprint(m.Format, m.Preset)
	key["labels from"] = fmt.Sprint(m.Labels.From, m.Labels.Header, m.Labels.RoutedHeader, m.Labels.Zone)
	key["limits"] = fmt.Sprintf("%+v", m.Limits)
	for name, v := range map[string]any{"columns": m.Map, "groups": m.Groups, "text options": o.Text} {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		key[name] = string(b)
	}
	if m.Labels.File != nil {
		b, err := os.ReadFile(m.Labels.File.Path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		key["labels file"] = hex.EncodeToString(sum[:])
	}
	return nil
}
