package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/inject"
	"github.com/sidekeeper/sidekeeper/test/support/manifest"
)

func TestTheInjectorMakesOfAnAnnotatedPodWhatTheTemplatesMake(t *testing.T) {
	template := manifest.At(manifest.OfKind(t, render(t, example(t)), "Deployment"), "spec", "template").(map[string]any)
	deployment := manifest.OfKind(t, read(t, root+"/examples/kubernetes/annotated.yaml"), "Deployment")
	annotated := manifest.At(deployment, "spec", "template").(map[string]any)

	values := manifest.At(manifest.All(t, read(t, root+"/examples/kubernetes/values.yaml"))[0], "sidekeeper").(map[string]any)
	values["settings"] = map[string]any{"sessionTimeout": "19s"} // the pod chooses its own
	for name, more := range map[string]map[string]any{
		"as the example has it": {},
		"with credentials, identities and metrics": {
			"zookeeper": map[string]any{
				"servers": manifest.At(values, "zookeeper", "servers"),
				"auth":    map[string]any{"secret": "login"},
				"tls":     map[string]any{"secret": "tls", "certificate": "tls.crt"},
			},
			"identities": true, "metrics": map[string]any{"port": 9464}, "readinessRequiresEnsemble": true,
		},
	} {
		pattern := patternFor(t, values, more)
		injected := apply(t, annotated, pattern)
		want := manifest.AsJSON(t, template)
		if len(more) > 0 {
			chosen := valuesFile(t, map[string]any{"sidekeeper": more})
			want = manifest.At(manifest.OfKind(t, render(t, example(t), "--values", chosen), "Deployment"), "spec", "template").(map[string]any)
		}
		if diff := cmp.Diff(want["spec"], injected["spec"]); diff != "" {
			t.Errorf("%s (-template +injected):\n%s", name, diff)
		}
		if diff := cmp.Diff(manifest.At(want, "metadata", "labels"), manifest.At(injected, "metadata", "labels")); diff != "" {
			t.Errorf("%s: labels (-template +injected):\n%s", name, diff)
		}
		if again := apply(t, injected, pattern); cmp.Diff(injected, again) != "" {
			t.Errorf("%s: shown again, the pod changes:\n%s", name, cmp.Diff(injected, again))
		}
	}
}

// The pods of the first lock call their sidecar, which is the one that the page about Kubernetes has installed.
func TestTheFirstLocksPodsGetASidecarThatTheyCall(t *testing.T) {
	deployment := manifest.OfKind(t, read(t, root+"/examples/kubernetes/first-lock.yaml"), "Deployment")
	annotated := manifest.At(deployment, "spec", "template").(map[string]any)
	servers := map[string]any{"zookeeper": map[string]any{"servers": "zookeeper.default:2181"}}
	injected := apply(t, annotated, patternFor(t, servers, map[string]any{}))
	sidecar := manifest.At(injected, "spec", "initContainers").([]any)[0].(map[string]any)
	app := manifest.At(injected, "spec", "containers").([]any)[0].(map[string]any)
	if sidecar["image"] != app["image"] {
		t.Errorf("the image is %v, and that of the chart %v", app["image"], sidecar["image"])
	}
	for part, want := range map[string]string{
		fmt.Sprint(sidecar["args"]): "--zookeeper=zookeeper.default:2181", fmt.Sprint(app["env"]): "SIDEKEEPER_ADDRESS",
		fmt.Sprint(app["volumeMounts"]): "/run/sidekeeper", fmt.Sprint(app["command"]): "/sidekeeper lock run orders -- ",
	} {
		if !strings.Contains(part, want) {
			t.Errorf("%s is not in %s", want, part)
		}
	}
}

// patternFor is what the injector of a chart with these values reads.
func patternFor(t *testing.T, values, more map[string]any) *inject.Pattern {
	t.Helper()
	rendered := render(t, chart, "--set", "injector.enabled=true", "--values", valuesFile(t, values), "--values", valuesFile(t, more))
	path := filepath.Join(t.TempDir(), "pattern.json")
	text := manifest.At(manifest.OfKind(t, rendered, "ConfigMap"), "data", "pattern.json").(string)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	pattern, err := inject.ReadPattern(path, anything)
	if err != nil {
		t.Fatal(err)
	}
	return pattern
}

// anything is the check of a sidecar without rules.
func anything([]string) (string, error) { return "", nil }

func valuesFile(t *testing.T, values map[string]any) string {
	t.Helper()
	encoded, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(path, encoded, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// apply shows a pod to the injector and makes the change.
func apply(t *testing.T, pod map[string]any, pattern *inject.Pattern) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	patch, warning, err := pattern.Patch(encoded, "shop", anything)
	if err != nil || warning != "" {
		t.Fatal(warning, err)
	}
	changed := manifest.AsJSON(t, pod)
	if patch == nil {
		return changed
	}
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	for _, operation := range operations {
		path := strings.Split(strings.TrimPrefix(operation.Path, "/"), "/")
		changed = set(changed, path, operation.Op, operation.Value).(map[string]any)
	}
	return changed
}

// set makes one change of a JSON Patch, of those that the injector makes.
func set(target any, path []string, op string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch target := target.(type) {
	case map[string]any:
		target[path[0]] = set(target[path[0]], path[1:], op, value)
		return target
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		if len(path) == 1 && op == "add" {
			return append(target[:i:i], append([]any{value}, target[i:]...)...)
		}
		target[i] = set(target[i], path[1:], op, value)
		return target
	default:
		panic("there is nothing at " + strings.Join(path, "/"))
	}
}
