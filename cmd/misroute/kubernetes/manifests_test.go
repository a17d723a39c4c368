// Package kubernetes holds manifests for a weekly evaluation by many pods. Its test reads them with
// Kubernetes' own types, strictly: a field that does not exist is an error. Whether their commands work
// is tested in cmd/misroute, which runs them.
package kubernetes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// objects are the manifests of all files.
type objects struct {
	jobs   map[string]*batch.JobSpec
	crons  map[string]*batch.CronJobSpec
	claims map[string]*core.PersistentVolumeClaimSpec
}

func read(t *testing.T) objects {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d manifests, %v", len(files), err)
	}
	o := objects{map[string]*batch.JobSpec{}, map[string]*batch.CronJobSpec{}, map[string]*core.PersistentVolumeClaimSpec{}}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range bytes.Split(b, []byte("\n---\n")) {
			if err := o.add(doc); err != nil {
				t.Errorf("%s, document %d: %v", file, i+1, err)
			}
		}
	}
	return o
}

func (o objects) add(doc []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(doc, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "batch/v1 Job":
		var j batch.Job
		if err := yaml.UnmarshalStrict(doc, &j); err != nil {
			return err
		}
		o.jobs[j.Name] = &j.Spec
	case "batch/v1 CronJob":
		var c batch.CronJob
		if err := yaml.UnmarshalStrict(doc, &c); err != nil {
			return err
		}
		o.crons[c.Name], o.jobs[c.Name] = &c.Spec, &c.Spec.JobTemplate.Spec
	case "v1 PersistentVolumeClaim":
		var c core.PersistentVolumeClaim
		if err := yaml.UnmarshalStrict(doc, &c); err != nil {
			return err
		}
		o.claims[c.Name] = &c.Spec
	default:
		return fmt.Errorf("a %q of %q, which no manifest here is", kind.Kind, kind.APIVersion)
	}
	return nil
}

var shard = regexp.MustCompile(`--shard \$\(\(JOB_COMPLETION_INDEX \+ 1\)\)/(\d+)`)

func TestManifests(t *testing.T) {
	o := read(t)
	if len(o.jobs) != 4 || len(o.crons) != 2 || len(o.claims) != 3 {
		t.Fatalf("%d jobs, %d of them weekly, %d claims; want 4, 2, 3", len(o.jobs), len(o.crons), len(o.claims))
	}
	for name, j := range o.jobs {
		pod := j.Template.Spec
		if pod.RestartPolicy != core.RestartPolicyNever || len(pod.Containers) != 1 {
			t.Fatalf("%s: restart policy %q, %d containers", name, pod.RestartPolicy, len(pod.Containers))
		}
		c := pod.Containers[0]
		script := strings.Join(c.Args, "\n")
		found := shard.FindStringSubmatch(script)
		indexed := j.CompletionMode != nil && *j.CompletionMode == batch.IndexedCompletion
		if indexed != (found != nil) {
			t.Errorf("%s: an indexed job is %v, a shard of it %v", name, indexed, found)
		}
		if indexed && (j.Completions == nil || found[1] != fmt.Sprint(*j.Completions) || j.Parallelism == nil || *j.Parallelism > *j.Completions) {
			t.Errorf("%s: %v completions, %v at a time, and shards of %s", name, j.Completions, j.Parallelism, found[1])
		}
		// What the API server demands of an indexed job with a policy for each index.
		if indexed && (j.BackoffLimitPerIndex == nil || j.BackoffLimit != nil) {
			t.Errorf("%s: backoffLimitPerIndex %v, backoffLimit %v", name, j.BackoffLimitPerIndex, j.BackoffLimit)
		}
		if p := j.PodFailurePolicy; p != nil {
			for _, r := range p.Rules {
				if r.OnExitCodes != nil && *r.OnExitCodes.ContainerName != c.Name {
					t.Errorf("%s: a rule for container %q", name, *r.OnExitCodes.ContainerName)
				}
				if r.Action == batch.PodFailurePolicyActionFailIndex && !indexed {
					t.Errorf("%s: FailIndex of a job without indexes", name)
				}
			}
		}
		if c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) < 0 {
			t.Errorf("%s: limit %v below request %v", name, c.Resources.Limits.Memory(), c.Resources.Requests.Memory())
		}
		o.volumes(t, name, &pod)
	}
	for name, c := range o.crons {
		if len(strings.Fields(c.Schedule)) != 5 || c.ConcurrencyPolicy != batch.ForbidConcurrent || c.TimeZone == nil {
			t.Errorf("%s: schedule %q, %s, time zone %v", name, c.Schedule, c.ConcurrencyPolicy, c.TimeZone)
		}
	}
}

// volumes checks that what is mounted is there, by claims that exist, and that scripts name no other
// place.
func (o objects) volumes(t *testing.T, name string, pod *core.PodSpec) {
	t.Helper()
	claims := map[string]bool{}
	for _, v := range pod.Volumes {
		if v.PersistentVolumeClaim == nil || o.claims[v.PersistentVolumeClaim.ClaimName] == nil {
			t.Errorf("%s: volume %s has no claim of volumes.yaml", name, v.Name)
		}
		claims[v.Name] = true
	}
	c := pod.Containers[0]
	script := strings.Join(c.Args, "\n")
	for _, m := range c.VolumeMounts {
		if !claims[m.Name] {
			t.Errorf("%s: %s is mounted and not declared", name, m.Name)
		}
		script = strings.ReplaceAll(script, " "+m.MountPath+"/", " ")
	}
	if at := regexp.MustCompile(` /\w+`).FindString(script); at != "" {
		t.Errorf("%s: the command names%s, which is not mounted", name, at)
	}
}

// The test is strict: what it is there for is found.
func TestStrict(t *testing.T) {
	o := objects{map[string]*batch.JobSpec{}, map[string]*batch.CronJobSpec{}, nil}
	for _, doc := range []string{
		"apiVersion: batch/v1\nkind: Job\nspec: {completion: 8}\n",
		"apiVersion: batch/v1\nkind: Job\nspec: {completions: eight}\n",
		"apiVersion: batch/v1beta1\nkind: CronJob\n",
	} {
		if err := o.add([]byte(doc)); err == nil {
			t.Errorf("%q is accepted", doc)
		}
	}
}
