//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// manifest is the part of a Job that says what runs; of a CronJob, the Job in it. That every field is
// one that Kubernetes has is tested in the folder of the manifests, with its own types.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		jobSpec     `yaml:",inline"`
		JobTemplate struct{ Spec jobSpec } `yaml:"jobTemplate"`
	}
}

type jobSpec struct {
	Completions int
	Template    struct {
		Spec struct {
			Containers []struct {
				Command, Args []string
				VolumeMounts  []struct {
					MountPath string `yaml:"mountPath"`
				} `yaml:"volumeMounts"`
			}
		}
	}
}

// jobs reads the jobs of kubernetes/FILE by name.
func jobs(t *testing.T, file string) map[string]jobSpec {
	t.Helper()
	f, err := os.Open(filepath.Join("kubernetes", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]jobSpec{}
	for d := yaml.NewDecoder(f); ; {
		var m manifest
		if err := d.Decode(&m); err != nil {
			break // the other test is strict
		}
		switch m.Kind {
		case "CronJob":
			all[m.Metadata.Name] = m.Spec.JobTemplate.Spec
		case "Job":
			all[m.Metadata.Name] = m.Spec.jobSpec
		}
	}
	return all
}

// runIndex does what the container of index i does, with the volumes under root instead of /.
func (j *jobSpec) runIndex(t *testing.T, root string, i int) {
	t.Helper()
	c := j.Template.Spec.Containers[0]
	command := slices.Concat(c.Command, c.Args)
	for _, v := range c.VolumeMounts {
		for k := range command {
			command[k] = strings.ReplaceAll(command[k], " "+v.MountPath+"/", " "+root+v.MountPath+"/")
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "misroute")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "PATH="+bin+":"+os.Getenv("PATH"), "JOB_COMPLETION_INDEX="+strconv.Itoa(i))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
}

// cluster makes the folders that the volumes are.
func cluster(t *testing.T, export string) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "models", "router"), os.DirFS(wordsModel)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "crumb", "2026-W45.mbox.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(export, ".gz") {
		b = crumbWeeks(t, "2026-W45")
	}
	for _, dir := range []string{"mail", "runs"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "mail", export), b, 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// The commands of the manifests, run as the cluster would: every index, then the merge, and what comes
// of it is the run of one machine.
func TestManifestCommands(t *testing.T) {
	year, week := time.Now().UTC().AddDate(0, 0, -7).ISOWeek()
	name := fmt.Sprintf("%d-W%02d", year, week)
	for _, c := range []struct{ file, job, mergeFile, merge, export, run string }{
		{"weekly.yaml", "misroute-eval", "weekly.yaml", "misroute-merge", "inbox-" + name + ".mbox.gz", name},
		{"once.yaml", "misroute-once", "merge.yaml", "misroute-once-merge", "inbox.mbox", "once"},
	} {
		t.Run(c.file, func(t *testing.T) {
			shards, merge := jobs(t, c.file)[c.job], jobs(t, c.mergeFile)[c.merge]
			if shards.Completions < 2 || len(merge.Template.Spec.Containers) != 1 {
				t.Fatalf("%+v, %+v", shards, merge)
			}
			root := cluster(t, c.export)
			for i := range shards.Completions {
				shards.runIndex(t, root, i)
			}
			merge.runIndex(t, root, 0)
			whole := filepath.Join(t.TempDir(), "whole")
			mustSucceed(t, misroute(t, "eval", "--model", filepath.Join(root, "models", "router"), "--progress", "none", "--out", whole, filepath.Join(root, "mail", c.export)))
			sameRun(t, c.file, whole, filepath.Join(root, "runs", c.run))
			eachOnce(t, filepath.Join(root, "runs", c.run), 310)
		})
	}
}

// Every verb and flag in a manifest is one of this program.
func TestManifestFlags(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("kubernetes", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	for _, c := range commands() {
		known[c.Name] = map[string]bool{}
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				known[c.Name][name] = true
			}
		}
	}
	checked := 0
	for _, file := range files {
		for name, j := range jobs(t, filepath.Base(file)) {
			script := strings.Join(j.Template.Spec.Containers[0].Args, " ")
			for _, call := range regexp.MustCompile(`misroute ([a-z]+) [^&]*`).FindAllStringSubmatch(script, -1) {
				flags := known[call[1]]
				if flags == nil {
					t.Errorf("%s, %s: no verb %q", file, name, call[1])
				}
				for _, flag := range regexp.MustCompile(`\s--?([a-z][a-z-]*)`).FindAllStringSubmatch(call[0], -1) {
					if !flags[flag[1]] {
						t.Errorf("%s, %s: misroute %s has no flag --%s", file, name, call[1], flag[1])
					}
					checked++
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d flags checked: the manifests have more", checked)
	}
}
