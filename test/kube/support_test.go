//go:build kube

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/sidekeeper/sidekeeper/test/support/manifest"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

const root = "../.."

// What all tests share.
var (
	cluster  *Cluster
	program  string // ours
	helmPath string
)

func TestMain(m *testing.M) {
	if os.Getenv(shopVariable) != "" {
		os.Exit(shop(os.Args[1:]))
	}
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "kube")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		if err := prepare(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		cluster.Stop()
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// prepare builds the program, starts the cluster and makes what a controller manager would have made.
func prepare(folder string) (err error) {
	program = filepath.Join(folder, "sidekeeper")
	if output, err := exec.Command("go", "build", "-o", program, root+"/cmd/sidekeeper").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, output)
	}
	if helmPath, err = toolchain.Program(context.Background(), "helm"); err != nil {
		return err
	}
	if cluster, err = Start(context.Background(), folder); err != nil {
		return err
	}
	return installCRDs(context.Background())
}

// installCRDs installs the types of others that the chart makes objects of, from the projects' own files.
func installCRDs(ctx context.Context) error {
	for module, files := range map[string][]string{
		"github.com/prometheus-operator/prometheus-operator": {
			"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		},
		"github.com/cert-manager/cert-manager": {
			"deploy/crds/cert-manager.io_certificates.yaml",
			"deploy/crds/cert-manager.io_issuers.yaml",
		},
	} {
		folder, err := toolchain.Folder(ctx, "crds", module)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := installCRD(ctx, filepath.Join(folder, file)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

func installCRD(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	definition := map[string]any{}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return err
	}
	if err := cluster.Do(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, nil); err != nil {
		return err
	}
	group, version := manifest.At(definition, "spec", "group"), manifest.At(definition, "spec", "versions").([]any)[0].(map[string]any)["name"]
	resources := fmt.Sprintf("/apis/%s/%s/%s", group, version, manifest.At(definition, "spec", "names", "plural"))
	return eventually(ctx, func() error { return cluster.Do(ctx, http.MethodGet, resources, nil, nil) })
}

// eventually tries until something works or a minute is over.
func eventually(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// inTime fails the test unless something works within a minute.
func inTime(t *testing.T, try func() error) {
	t.Helper()
	if err := eventually(t.Context(), try); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive fails the test unless something comes within a minute.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// do makes a request that must work.
func do(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	result := map[string]any{}
	if err := cluster.Do(t.Context(), method, path, body, &result); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return result
}

// helm runs helm on the cluster, and returns what it writes.
func helm(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := tryHelm(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func tryHelm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	return manifest.Helm(t, helmPath, cluster.KubeConfig, arguments...)
}

// namespace makes a namespace that admits only pods of the Pod Security Standard `restricted`, until the test ends.
func namespace(t *testing.T, name string) {
	t.Helper()
	do(t, http.MethodPost, "/api/v1/namespaces", map[string]any{
		"metadata": map[string]any{"name": name, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}},
	})
	do(t, http.MethodPost, "/api/v1/namespaces/"+name+"/serviceaccounts", map[string]any{"metadata": map[string]any{"name": "default"}})
}

// podOf is the pod of a Deployment's template, without a token, which has a name made at random.
func podOf(t *testing.T, deployment map[string]any, name string) map[string]any {
	t.Helper()
	template := manifest.At(deployment, "spec", "template").(map[string]any)
	template["metadata"].(map[string]any)["name"] = name
	template["spec"].(map[string]any)["automountServiceAccountToken"] = false
	return template
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bytesAt is a field of bytes, which JSON has in base64.
func bytesAt(t *testing.T, value any, path ...string) []byte {
	t.Helper()
	encoded, err := json.Marshal(manifest.At(value, path...))
	if err != nil {
		t.Fatal(err)
	}
	var decoded []byte
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// refusal is the code and message by which the API server has refused something.
func refusal(t *testing.T, err error) *Refused {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) {
		t.Fatalf("not refused: %v", err)
	}
	return refused
}
