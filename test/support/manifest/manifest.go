// Package manifest runs Helm for tests, and reads the manifests that it renders.
package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Helm runs helm without anything of the user's, on the cluster that the file kubeConfig tells of, and returns what it writes. It may
// be called when the test is over.
func Helm(t testing.TB, program, kubeConfig string, arguments ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...) //nolint:gosec // the tests say which
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+kubeConfig)
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(arguments, " "), err, complaint.String())
	}
	return output.String(), nil
}

// All is the manifests of a rendering, with the types that JSON knows.
func All(t testing.TB, rendered string) []map[string]any {
	t.Helper()
	var found []map[string]any
	decoder := yaml.NewDecoder(strings.NewReader(rendered))
	for {
		manifest := map[string]any{}
		if decoder.Decode(&manifest) != nil {
			return found
		}
		if len(manifest) > 0 {
			found = append(found, AsJSON(t, manifest))
		}
	}
}

// AsJSON is a value with the types that JSON knows.
func AsJSON(t testing.TB, value map[string]any) map[string]any {
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

// OfKind is the first manifest of a kind; without one it fails the test.
func OfKind(t testing.TB, rendered, kind string) map[string]any {
	t.Helper()
	for _, manifest := range All(t, rendered) {
		if manifest["kind"] == kind {
			return manifest
		}
	}
	t.Fatalf("there is no %s in\n%s", kind, rendered)
	return nil
}

// At follows the names of fields into a manifest; nil where there is none.
func At(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}
