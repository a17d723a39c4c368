package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"
)

// configName is looked for in the working folder.
const configName = "misroute.yaml"

// configFile holds settings by verb, so that the weekly job is one short line in cron. The part
// "all" applies to every verb that has such a flag; a verb's own part wins over it, and a flag on
// the command line wins over both. The settings are the flags' names; "exports" stands for the
// arguments. {week} in a value is the last complete ISO week, {this_week} the running one.
type configFile struct {
	path  string
	parts map[string]map[string]configValue
}

// configValue is one setting: a scalar is a list of one.
type configValue struct {
	values []string
	line   int
}

// configAll is the part that applies to every verb.
const configAll = "all"

// configExports is the setting that stands for the arguments.
const configExports = "exports"

// loadConfig reads path; now decides what {week} is. Every key is checked against the verbs.
func loadConfig(path string, verbs []*cli.Command, now time.Time) (*configFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dec := yaml.NewDecoder(f)
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &configFile{path: path}, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &configFile{path: path, parts: map[string]map[string]configValue{}}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want verbs and their settings, like\neval:\n  model: models/router", path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		verb, settings := root.Content[i], root.Content[i+1]
		flags, err := flagsOf(verb.Value, verbs)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, verb.Line, err)
		}
		if settings.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s:%d: %s: want settings, one a line, like model: models/router", path, settings.Line, verb.Value)
		}
		part := map[string]configValue{}
		for k := 0; k+1 < len(settings.Content); k += 2 {
			name, value := settings.Content[k], settings.Content[k+1]
			if name.Value != configExports && !slices.Contains(flags, name.Value) {
				return nil, fmt.Errorf("%s:%d: %s has no setting %q%s", path, name.Line, verb.Value, name.Value, closest(name.Value, flags))
			}
			v, err := configScalars(value, now)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %s: %w", path, value.Line, name.Value, err)
			}
			part[name.Value] = v
		}
		c.parts[verb.Value] = part
	}
	return c, nil
}

// flagsOf lists what may be set for a verb; for "all" what any verb has.
func flagsOf(verb string, verbs []*cli.Command) ([]string, error) {
	var names, known []string
	found := verb == configAll
	for _, v := range verbs {
		known = append(known, v.Name)
		if v.Name != verb && verb != configAll {
			continue
		}
		found = true
		for _, f := range v.Flags {
			names = append(names, f.Names()[0])
		}
	}
	if !found {
		return nil, fmt.Errorf("no verb %q%s", verb, closest(verb, append(known, configAll)))
	}
	return names, nil
}

func configScalars(n *yaml.Node, now time.Time) (configValue, error) {
	v := configValue{line: n.Line}
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	year, week := now.ISOWeek()
	lastYear, lastWeek := now.AddDate(0, 0, -7).ISOWeek()
	replace := strings.NewReplacer("{this_week}", fmt.Sprintf("%d-W%02d", year, week), "{week}", fmt.Sprintf("%d-W%02d", lastYear, lastWeek))
	for _, s := range list {
		if s.Kind != yaml.ScalarNode {
			return v, errors.New("want a value or a list of values")
		}
		v.values = append(v.values, replace.Replace(s.Value))
	}
	return v, nil
}

// closest suggests the name that shares most with word, if any is near.
func closest(word string, names []string) string {
	best, most := "", max(2, len(word)/2)
	for _, n := range names {
		if d := editDistance(word, n); d <= most {
			best, most = n, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// lookup gives a verb's setting and the part that it stands in.
func (c *configFile) lookup(verb, name string) (configValue, string, bool) {
	for _, part := range []string{verb, configAll} {
		if v, ok := c.parts[part][name]; ok {
			return v, part, true
		}
	}
	return configValue{}, "", false
}

// apply sets the verb's flags that the command line left alone.
func (c *configFile) apply(ctx *cli.Context) error {
	for _, f := range ctx.Command.Flags {
		name := f.Names()[0]
		v, _, ok := c.lookup(ctx.Command.Name, name)
		if !ok || ctx.IsSet(name) {
			continue
		}
		for _, value := range v.values {
			if err := ctx.Set(name, value); err != nil {
				return usagef("%s:%d: %s: %w", c.path, v.line, name, err)
			}
		}
	}
	return nil
}

// configKey is where the loaded file stands in the App's metadata.
const configKey = "config"

// loadedConfig is the outcome of looking for the file. An error waits until a verb runs: help must be
// there all the same.
type loadedConfig struct {
	file *configFile // nil: there is none
	err  error
}

// configOf gives the configuration that the verb runs with; nil where there is none.
func configOf(ctx *cli.Context) (*configFile, error) {
	l, _ := ctx.App.Metadata[configKey].(loadedConfig)
	return l.file, l.err
}

// applyConfig is what every verb does before anything else.
func applyConfig(ctx *cli.Context) error {
	c, err := configOf(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		if err := c.apply(ctx); err != nil {
			return err
		}
	}
	return fetchFlags(ctx)
}

// exportsOf gives the arguments, or the configured exports where there are none.
func exportsOf(ctx *cli.Context) []string {
	if ctx.NArg() > 0 {
		return ctx.Args().Slice()
	}
	if c, _ := configOf(ctx); c != nil {
		if v, _, ok := c.lookup(ctx.Command.Name, configExports); ok {
			return v.values
		}
	}
	return nil
}

// findConfig loads the file that --config names, or misroute.yaml where there is one.
func findConfig(ctx *cli.Context, now time.Time) (*configFile, error) {
	path := ctx.String("config")
	if path == "" {
		if _, err := os.Stat(configName); err != nil {
			return nil, nil
		}
		path = configName
	}
	c, err := loadConfig(path, ctx.App.Commands, now)
	if err != nil {
		return nil, usageError(err)
	}
	return c, nil
}

// ConfigCommand explains the configuration file.
func ConfigCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "explain the configuration file",
		Subcommands: []*cli.Command{{
			Name:  "check",
			Usage: "say what the file sets for each verb, and what is wrong with it",
			Description: "The file (misroute.yaml, or --config FILE before the verb) holds settings by verb; the names are the flags':\n\n" +
				"  all:\n" +
				"    model: models/router\n" +
				"    label-header: X-Queue\n" +
				"  eval:\n" +
				"    exports: [mail/inbox-{week}.mbox.gz]\n" +
				"    out: runs/{week}\n" +
				"    cap: 256\n" +
				"  compare:\n" +
				"    margin: 0.5\n\n" +
				"{week} is the last complete ISO week, {this_week} the running one. A flag on the command line wins.\n" +
				"The weekly job is then one line in cron:\n\n" +
				"  0 6 * * 1  cd /srv/router && misroute eval",
			Action: func(c *cli.Context) error {
				config, err := configOf(c)
				if err != nil {
					return err
				}
				if config == nil {
					return usagef("no %s here; write one (misroute config check --help shows how) or name it: misroute --config FILE config check", configName)
				}
				return config.explain(c.App.Writer, c.App.Commands)
			},
		}},
	}
}

// explain lists what each verb gets.
func (c *configFile) explain(w io.Writer, verbs []*cli.Command) error {
	fmt.Fprintf(w, "%s\n", c.path)
	for _, v := range verbs {
		var names []string
		for _, f := range v.Flags {
			names = append(names, f.Names()[0])
		}
		names = append(names, configExports)
		sort.Strings(names)
		first := true
		for _, name := range slices.Compact(names) {
			value, part, ok := c.lookup(v.Name, name)
			if !ok || name == configExports && part == configAll && v.ArgsUsage != "EXPORT..." {
				continue
			}
			if first {
				fmt.Fprintf(w, "\n%s\n", v.Name)
				first = false
			}
			fmt.Fprintf(w, "  %-16s %s  (%s, line %d)\n", name, strings.Join(value.values, " "), part, value.line)
		}
	}
	return nil
}
