package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/inject"
)

func TestAnInjectorThatIsCalledInTheWrongWaySaysHow(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                         "--pattern is required: the file",
		"--pattern x":              "required: --tls-cert and --tls-key, or --secret, --webhook and --host",
		"--pattern x --tls-cert a": `--tls-cert "a": goes together with --tls-key`,
		"--pattern x --tls-cert a --tls-key b --secret a/b":                      "not both",
		"--pattern x --secret a/b --webhook w":                                   "--secret, --webhook and --host",
		"--pattern x --tls-cert a --tls-key b --certificate-lifetime 1s":         "--certificate-lifetime 1s: at least 10s",
		"--pattern x --tls-cert a --tls-key b --shutdown-delay -1s":              "--shutdown-delay -1s: from 0 to 24h",
		"--pattern /nowhere/x --tls-cert a --tls-key b":                          "--pattern open /nowhere/x",
		"--pattern " + empty + " --tls-cert a --tls-key b":                       "container.name is <nil>: it must be sidekeeper",
		"--pattern " + chartPattern(t, "injector") + " --tls-cert a --tls-key b": "--tls-cert open a",
	} {
		var stderr bytes.Buffer
		code := run(t.Context(), append([]string{"inject-webhook"}, strings.Fields(args)...), nil, &bytes.Buffer{}, &stderr)
		if code != exit.Usage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: %d, %s; want %s", args, code, stderr.String(), want)
		}
	}
}

// rendered is a manifest of a kind that the chart renders for values it is tested with.
func rendered(t *testing.T, values, kind string) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../helm/sidekeeper/tests/golden/" + values + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		manifest := map[string]any{}
		if err := decoder.Decode(&manifest); err != nil {
			t.Fatalf("%s: no %s: %v", values, kind, err)
		}
		if manifest["kind"] == kind {
			return manifest
		}
	}
}

// chartPattern is a file with the pattern of an injector that the chart installs.
func chartPattern(t *testing.T, values string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pattern.json")
	text := rendered(t, values, "ConfigMap")["data"].(map[string]any)["pattern.json"].(string)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheChartCallsSidecarAndInjectorInTheRightWay(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"injector", "everything", "cert-manager", "cert-manager-self-signed"} {
		if _, err := inject.ReadPattern(chartPattern(t, values), checkArguments); err != nil {
			t.Errorf("%s: the sidecar: %v", values, err)
		}
		spec := rendered(t, values, "Deployment")["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		var arguments []string
		for _, argument := range spec["containers"].([]any)[0].(map[string]any)["args"].([]any)[1:] {
			arguments = append(arguments, argument.(string))
		}
		injector := &injection{}
		if err := injector.flags().Parse(arguments); err != nil {
			t.Errorf("%s: the injector: %v", values, err)
		}
		if err := injector.check(); err != nil {
			t.Errorf("%s: the injector: %v", values, err)
		}
	}
}

func TestACommandLineThatBreaksARuleIsToldByFlagAndRule(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"serve --zookeeper=a:1 --session-timeout=3s":  "session-timeout: an ensemble grants no less than two ticks",
		"serve --zookeeper=a:1 --session-timeout=bad": "session-timeout: time: invalid duration",
		"serve --zookeeper=a:1 --log-level=loud":      "log-level: must be one of",
		"serve --zookeeper=a":                         "zookeeper: a server is host:port",
		"serve --zookeper=a:1":                        ": --zookeper=a:1 is not a flag of the sidecar",
		"lock --zookeeper=a:1":                        ": the first word must be serve",
	} {
		flag, err := checkArguments(strings.Fields(args))
		if err == nil || !strings.HasPrefix(flag+": "+err.Error(), want) {
			t.Errorf("%s: got %s: %v, want %s", args, flag, err, want)
		}
	}
}
