//go:build kube

package kube

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Every object of every rendering is shown to the API server, which knows all fields and what may be in them.
func TestTheAPIServerAcceptsEveryRendering(t *testing.T) {
	for _, name := range []string{"sidekeeper", "zookeeper"} {
		do(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
	}
	paths, err := filepath.Glob(root + "/helm/sidekeeper/tests/golden/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no renderings: ", err)
	}
	for _, path := range append(paths, root+"/examples/kubernetes/annotated.yaml") {
		for _, manifest := range manifests(t, read(t, path)) {
			if err := show(t, manifest); err != nil {
				t.Errorf("%s: %v %v: %v", filepath.Base(path), manifest["kind"], at(manifest, "metadata", "name"), err)
			}
		}
	}
}

func TestTheAPIServerRefusesAFieldThatDoesNotExist(t *testing.T) {
	manifest := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}, "dater": map[string]any{},
	}
	if refused := refusal(t, show(t, manifest)); !strings.Contains(refused.Message, `unknown field "dater"`) {
		t.Errorf("got %v", refused)
	}
}

// show asks the API server what it thinks of a manifest.
func show(t *testing.T, manifest map[string]any) error {
	t.Helper()
	return cluster.Do(t.Context(), http.MethodPost, collection(t, manifest)+"?dryRun=All&fieldValidation=Strict", manifest, nil)
}

// collection is where objects of a manifest's kind are made.
func collection(t *testing.T, manifest map[string]any) string {
	t.Helper()
	version := manifest["apiVersion"].(string)
	group := "/apis/" + version
	if !strings.Contains(version, "/") {
		group = "/api/" + version
	}
	for _, item := range at(do(t, http.MethodGet, group, nil), "resources").([]any) {
		plural := at(item, "name").(string)
		if at(item, "kind") != manifest["kind"] || strings.Contains(plural, "/") {
			continue
		}
		if !at(item, "namespaced").(bool) {
			return group + "/" + plural
		}
		namespace, told := at(manifest, "metadata", "namespace").(string)
		if !told {
			namespace = "default"
		}
		return fmt.Sprintf("%s/namespaces/%s/%s", group, namespace, plural)
	}
	t.Fatalf("%s has no %s", group, manifest["kind"])
	return ""
}
