//go:build kube

package kube

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/support/manifest"
)

// Every object of every rendering is shown to the API server, which knows all fields and what may be in them.
func TestTheAPIServerAcceptsEveryRendering(t *testing.T) {
	for _, name := range []string{"sidekeeper", "zookeeper", "shop", "cart"} {
		do(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
	}
	paths, err := filepath.Glob(root + "/helm/sidekeeper/tests/golden/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no renderings: ", err)
	}
	renderings := map[string]string{"dashboard and alerts": monitoring(t)}
	for _, path := range append(paths, root+"/examples/kubernetes/annotated.yaml") {
		renderings[filepath.Base(path)] = read(t, path)
	}
	for name, rendered := range renderings {
		for _, object := range manifest.All(t, rendered) {
			if err := show(t, object); err != nil {
				t.Errorf("%s: %v %v: %v", name, object["kind"], manifest.At(object, "metadata", "name"), err)
			}
		}
	}
}

// monitoring is what the chart renders of its dashboard and its alerts, or of others in a tree without them.
func monitoring(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(root+"/helm/sidekeeper")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"dashboards/sidekeeper.json": "{}",
		"alerts/sidekeeper.yaml":     "groups: [{name: a, rules: [{alert: B, expr: up == 0}]}]",
	} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rendered := helm(t, "template", "monitoring", folder, "--set", "dashboard.enabled=true,prometheusRule.enabled=true")
	if n := len(manifest.All(t, rendered)); n != 2 {
		t.Fatalf("%d manifests for a dashboard and alerts", n)
	}
	return rendered
}

func TestTheAPIServerRefusesAFieldThatDoesNotExist(t *testing.T) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}, "dater": map[string]any{},
	}
	if refused := refusal(t, show(t, object)); !strings.Contains(refused.Message, `unknown field "dater"`) {
		t.Errorf("got %v", refused)
	}
}

// show asks the API server what it thinks of an object.
func show(t *testing.T, object map[string]any) error {
	t.Helper()
	return cluster.Do(t.Context(), http.MethodPost, collection(t, object)+"?dryRun=All&fieldValidation=Strict", object, nil)
}

// collection is where objects of an object's kind are made.
func collection(t *testing.T, object map[string]any) string {
	t.Helper()
	version := object["apiVersion"].(string)
	group := "/apis/" + version
	if !strings.Contains(version, "/") {
		group = "/api/" + version
	}
	for _, item := range manifest.At(do(t, http.MethodGet, group, nil), "resources").([]any) {
		plural := manifest.At(item, "name").(string)
		if manifest.At(item, "kind") != object["kind"] || strings.Contains(plural, "/") {
			continue
		}
		if !manifest.At(item, "namespaced").(bool) {
			return group + "/" + plural
		}
		namespace, told := manifest.At(object, "metadata", "namespace").(string)
		if !told {
			namespace = "default"
		}
		return fmt.Sprintf("%s/namespaces/%s/%s", group, namespace, plural)
	}
	t.Fatalf("%s has no %s", group, object["kind"])
	return ""
}
