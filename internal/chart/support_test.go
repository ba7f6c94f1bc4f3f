package chart

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/sidekeeper/sidekeeper/internal/toolchain"
)

var update = flag.Bool("update", false, "write the expected files anew instead of comparing")

const (
	root  = "../.."
	chart = root + "/helm/sidekeeper"
)

// helm runs helm without anything of the user's, and returns what it writes.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	program, err := toolchain.Program(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"KUBECONFIG="+filepath.Join(home, "none"))
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("%w: %s", err, complaint.String())
	}
	return output.String(), nil
}

// render is what `helm template` makes of a chart.
func render(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	output, err := helm(t, append([]string{"template", "test", folder, "--namespace", "sidekeeper"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// example is a copy of the example chart with the chart that it depends on.
func example(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for from, to := range map[string]string{root + "/examples/kubernetes": folder, chart: folder + "/charts/sidekeeper"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return folder
}

// manifests are the documents of a rendering.
func manifests(t *testing.T, rendered string) []map[string]any {
	t.Helper()
	var found []map[string]any
	decoder := yaml.NewDecoder(strings.NewReader(rendered))
	for {
		manifest := map[string]any{}
		if decoder.Decode(&manifest) != nil {
			return found
		}
		if len(manifest) > 0 {
			found = append(found, asJSON(t, manifest))
		}
	}
}

// asJSON is a value with the types that JSON knows.
func asJSON(t *testing.T, value map[string]any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// ofKind is the only manifest of a kind.
func ofKind(t *testing.T, rendered, kind string) map[string]any {
	t.Helper()
	for _, manifest := range manifests(t, rendered) {
		if manifest["kind"] == kind {
			return manifest
		}
	}
	t.Fatalf("there is no %s in\n%s", kind, rendered)
	return nil
}

// at follows the names of fields into a manifest.
func at(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	return string(text)
}

// compareOrUpdate compares a file with what it should hold, or writes it.
func compareOrUpdate(t *testing.T, path, wanted string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(read(t, path), wanted); diff != "" {
		t.Errorf("%s (-file +rendered); go test ./internal/chart -update writes it:\n%s", path, diff)
	}
}

// valueFiles are the values that the chart is tested with, by name.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := fs.Glob(os.DirFS(chart), "tests/values/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no values to test with: ", err)
	}
	files := map[string]string{}
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = filepath.Join(chart, path)
	}
	return files
}
