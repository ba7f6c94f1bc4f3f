package chart

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sidekeeper/sidekeeper/test/support/manifest"
)

func TestHelmFindsNothingToComplainOf(t *testing.T) {
	for name, values := range valueFiles(t) {
		if output, err := helm(t, "lint", "--strict", chart, "--values", values); err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
	if output, err := helm(t, "lint", "--strict", example(t)); err != nil {
		t.Errorf("the example: %v\n%s", err, output)
	}
}

func TestTemplatesRenderAsTheyDid(t *testing.T) {
	for name, values := range valueFiles(t) {
		compareOrUpdate(t, chart+"/tests/golden/"+name+".yaml", render(t, chart, "--values", values))
	}
	compareOrUpdate(t, chart+"/tests/golden/example.yaml", render(t, example(t)))
}

func TestNothingIsInstalledUnlessItIsSwitchedOn(t *testing.T) {
	if found := manifest.All(t, render(t, chart)); len(found) != 0 {
		t.Errorf("the default values install %v", found)
	}
}

// Grafana's dashboard and the alerts are files of the chart. Whoever switches them on gets the file or is told that it is missing.
func TestFilesOfTheChartAreInstalledAsTheyAre(t *testing.T) {
	for _, packed := range []struct{ file, value, kind string }{
		{"dashboards/sidekeeper.json", "dashboard.enabled", "ConfigMap"},
		{"alerts/sidekeeper.yaml", "prometheusRule.enabled", "PrometheusRule"},
	} {
		const text = `{"groups": [{"name": "a", "rules": [{"record": "b", "expr": "1 > 0"}]}]}`
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(chart)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, packed.file)
		os.Remove(path)
		if _, err := helm(t, "template", folder, "--set", packed.value+"=true"); err == nil || !strings.Contains(err.Error(), packed.file) {
			t.Errorf("%s without %s: %v", packed.value, packed.file, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		object := manifest.OfKind(t, render(t, folder, "--set", packed.value+"=true"), packed.kind)
		switch packed.kind {
		case "ConfigMap":
			if got := manifest.At(object, "data", "sidekeeper.json"); got != text+"\n" && got != text {
				t.Errorf("the dashboard is %q", got)
			}
		default:
			rule := manifest.At(object, "spec", "groups").([]any)[0].(map[string]any)["rules"].([]any)[0]
			if got := manifest.At(rule, "expr"); got != "1 > 0" {
				t.Errorf("the alerts are %v", object["spec"])
			}
		}
	}
}

func TestValuesThatCannotBeAreRefusedWithFieldAndRule(t *testing.T) {
	const servers = "zookeeper.servers=a:1"
	for set, want := range map[string]string{
		"zookeeper.servers=a":                                             "'/zookeeper/servers': 'a' does not match pattern",
		"zookeeper.servers=a b:1":                                         "'/zookeeper/servers': 'a b:1' does not match pattern",
		"injector.enabled=yes":                                            "'/injector/enabled': got string, want boolean",
		"injector.failurePolicy=Open,injector.enabled=true":               "'/injector/failurePolicy': value must be one of",
		"injector.replicas=0":                                             "'/injector/replicas': minimum: got 0, want 1",
		"injector.annotations={rot}":                                      "'/injector/annotations/0': value must be one of",
		"injector.certificates.from=nobody":                               "'/injector/certificates/from': value must be one of",
		"injector.certificates.lifetime=3 days":                           "'/injector/certificates/lifetime': '3 days' does not match pattern",
		"settings.sessionTimeout=15":                                      "'/settings/sessionTimeout': got number, want string",
		"settings.sessiontimeout=15s":                                     "additional properties 'sessiontimeout' not allowed",
		"settings.maxLeases=many":                                         "'/settings/maxLeases'",
		"settings.logLevel=loud":                                          "'/settings/logLevel': value must be one of",
		"image.digest=latest":                                             "'/image/digest': 'latest' does not match pattern",
		"podMonitor.enabled=true,metrics.port=0":                          "metrics.port must say where",
		"serviceMonitor.enabled=true":                                     "injector.enabled must be true too",
		"networkPolicies.ensemble.enabled=true":                           "networkPolicies.ensemble.podLabels: say by which labels",
		"injector.enabled=true,zookeeper.servers=":                        "zookeeper.servers: the ensemble's servers are required",
		"readinessRequiresEnsemble=maybe":                                 "'/readinessRequiresEnsemble': got string, want boolean",
		"metrics.port=70000":                                              "'/metrics/port': maximum",
		"injectors.enabled=true":                                          "additional properties 'injectors' not allowed",
		"zookeeper.tls.secret=Capitals":                                   "'/zookeeper/tls/secret': 'Capitals' does not match pattern",
		"networkPolicies.ensemble.clientPort=http":                        "'/networkPolicies/ensemble/clientPort': got string, want integer",
		"probes.liveness.periodSeconds=0":                                 "'/probes/liveness/periodSeconds': minimum",
		"settings.socketMode=rw":                                          "'/settings/socketMode': 'rw' does not match pattern",
		"injector.certificates.issuer.kind=Vault,injector.enabled=true":   "'/injector/certificates/issuer/kind': value must be one of",
		"probes.kind=tcp":                                                 "'/probes/kind': value must be one of",
		"probes.kind=httpGet,metrics.port=0,injector.enabled=true":        "probes.kind is httpGet: metrics.port must say where",
		"probes.kind=grpc,metrics.port=0,injector.enabled=true":           "probes.kind is grpc: metrics.port must say where",
		"zookeeper.servers=[::1:2181":                                     "'/zookeeper/servers': '[::1:2181' does not match pattern",
		"zookeeper.servers=::1:2181":                                      "'/zookeeper/servers': '::1:2181' does not match pattern",
		"settings.sessionTimeout=1s,injector.enabled=true":                "settings.sessionTimeout is \"1s\": at least two ticks",
		"injector.timeoutSeconds=60,injector.certificates.lifetime=2160h": "'/injector/timeoutSeconds': maximum",

		"networkPolicies.metrics.enabled=true": "networkPolicies.metrics.from who scrapes them",
		"networkPolicies.metrics.enabled=true,metrics.port=0,networkPolicies.metrics.from[0].podSelector=": "metrics.port must say where",

		"injector.enabled=true,injector.rootPerNamespace=true,injector.annotations={lock-root}": "injector.annotations: lock-root cannot be chosen",
	} {
		_, err := helm(t, "template", chart, "--set", servers, "--set", set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: want %q, got %v", set, want, err)
		}
	}
}

func TestBlanksAroundTheServersDoNotCount(t *testing.T) {
	output := render(t, example(t), "--set-json", `sidekeeper.zookeeper.servers=" a:1 ,  b:2\n"`)
	if !strings.Contains(output, "--zookeeper=a:1,b:2\n") {
		t.Error(output)
	}
}

// A policy that closes one port closes none of the application's.
func TestThePolicyOfMetricsIsAboutTheirPortAlone(t *testing.T) {
	for port, want := range map[string]string{
		"9464":  "TCP 1-9463, TCP 9465-65535, UDP 1-65535, SCTP 1-65535; from 1: TCP 9464",
		"1":     "TCP 2-65535, UDP 1-65535, SCTP 1-65535; from 1: TCP 1",
		"65535": "TCP 1-65534, UDP 1-65535, SCTP 1-65535; from 1: TCP 65535",
	} {
		policy := manifest.OfKind(t, render(t, chart, "--set", "networkPolicies.metrics.enabled=true,metrics.port="+port,
			"--set-json", `networkPolicies.metrics.from=[{"podSelector": {"matchLabels": {"app": "prometheus"}}}]`), "NetworkPolicy")
		var rules []string
		for _, rule := range manifest.At(policy, "spec", "ingress").([]any) {
			var ports []string
			for _, item := range rule.(map[string]any)["ports"].([]any) {
				one := item.(map[string]any)
				text := fmt.Sprint(one["protocol"], " ", one["port"])
				if end, ok := one["endPort"]; ok {
					text += fmt.Sprint("-", end)
				}
				ports = append(ports, text)
			}
			text := strings.Join(ports, ", ")
			if from, ok := rule.(map[string]any)["from"]; ok {
				text = fmt.Sprint("from ", len(from.([]any)), ": ", text)
			}
			rules = append(rules, text)
		}
		if got := strings.Join(rules, "; "); got != want {
			t.Errorf("port %s: got %s, want %s", port, got, want)
		}
	}
}

func TestAContainerWhoseVolumeCannotHaveANameIsRefused(t *testing.T) {
	folder := example(t)
	path := filepath.Join(folder, "templates", "deployment.yaml")
	name := strings.Repeat("w", 53)
	renamed := strings.ReplaceAll(read(t, path), `"web"`, `"`+name+`"`)
	if err := os.WriteFile(path, []byte(renamed), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := helm(t, "template", folder); err == nil || !strings.Contains(err.Error(), "a name of at most 52 characters") {
		t.Errorf("a container named %s: %v", name, err)
	}
}

// With --reuse-values, Helm renders a newer chart with the values of an older one, which lack what has come since.
func TestValuesThatLackSomeAreToldOrTakenForSwitchedOff(t *testing.T) {
	for group, inside := range valuesByGroup("", values(t)) {
		for _, lacking := range [][]string{{cmp.Or(group, "extraEnv")}, inside} {
			arguments := []string{"template", chart, "--values", chart + "/tests/values/everything.yaml"}
			for _, path := range lacking {
				arguments = append(arguments, "--set", path+"=null")
			}
			output, err := helm(t, arguments...)
			if err != nil && !strings.Contains(err.Error(), ": the values lack it, as those of an older chart do") {
				t.Errorf("without %q: %v\n%s", lacking, err, output)
			}
		}
	}
}

// demanded are values that something which is switched on cannot do without.
var demanded = []string{
	"zookeeper.servers", "metrics.port", "injector.enabled", "networkPolicies.ensemble.podLabels", "networkPolicies.metrics.from",
}

// valuesByGroup are the paths of the groups of values, each with those of the values in it that may be missing.
func valuesByGroup(group string, values *yaml.Node) map[string][]string {
	found := map[string][]string{}
	for i := 0; i < len(values.Content); i += 2 {
		place := strings.TrimPrefix(group+"."+values.Content[i].Value, ".")
		if value := values.Content[i+1]; hasComments(value) {
			maps.Copy(found, valuesByGroup(place, value))
		} else if !slices.Contains(demanded, place) {
			found[group] = append(found[group], place)
		}
	}
	return found
}

func TestServersMayHaveAddressesOfIPv6(t *testing.T) {
	for _, servers := range []string{"[::1]:2181", "a:1, [fd00::1:2]:2181,[fe80::1%eth0]:2182", "[::ffff:10.0.0.1]:2181"} {
		output := render(t, example(t), "--set-json", `sidekeeper.zookeeper.servers="`+servers+`"`)
		if !strings.Contains(output, "--zookeeper="+strings.ReplaceAll(servers, " ", "")+"\n") {
			t.Error(output)
		}
	}
}

func TestASessionTimeoutOfTwoTicksIsTheShortest(t *testing.T) {
	for set, want := range map[string]string{
		"sessionTimeout=3999ms":                    `settings.sessionTimeout is "3999ms": at least two ticks of the ensemble, 4000ms`,
		"sessionTimeout=1s":                        `settings.sessionTimeout is "1s": at least two ticks of the ensemble, 4000ms`,
		"sessionTimeout=0m1.5s,tickTime=1s":        `settings.sessionTimeout is "0m1.5s": at least two ticks of the ensemble, 2000ms`,
		"sessionTimeout=4s":                        "",
		"sessionTimeout=1s,tickTime=500ms":         "",
		"sessionTimeout=1m0.5s,tickTime=30s250ms":  "",
		"sessionTimeout=1m0.49s,tickTime=30s250ms": "two ticks of the ensemble, 60500ms",
	} {
		set = "sidekeeper.settings." + strings.ReplaceAll(set, ",", ",sidekeeper.settings.")
		_, err := helm(t, "template", example(t), "--set", set)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
}

func TestTheKubeletAsksAtThePortOfTheMetricsIfThereIsOne(t *testing.T) {
	for set, want := range map[string]string{
		"metrics.port=7185":   "httpGet /healthz sidekeeper, httpGet /readyz sidekeeper", // as it is by default
		"metrics.port=0":      "exec, exec --ready",
		"probes.kind=exec":    "exec, exec --ready",
		"probes.kind=httpGet": "httpGet /healthz sidekeeper, httpGet /readyz sidekeeper",
		"probes.kind=grpc":    "grpc  7185, grpc sidekeeper.readiness 7185",
		"probes.kind=grpc,sidekeeper.metrics.port=9464": "grpc  9464, grpc sidekeeper.readiness 9464",
	} {
		output := render(t, example(t), "--set", "sidekeeper.readinessRequiresEnsemble=true,sidekeeper."+set)
		sidecar := manifest.At(manifest.OfKind(t, output, "Deployment"), "spec", "template", "spec", "initContainers").([]any)[0]
		if got := howAsked(sidecar, "livenessProbe") + ", " + howAsked(sidecar, "readinessProbe"); got != want {
			t.Errorf("%s: got %s, want %s", set, got, want)
		}
	}
}

// howAsked is how a container's probe asks, and for what.
func howAsked(container any, probe string) string {
	if command, is := manifest.At(container, probe, "exec", "command").([]any); is {
		return strings.TrimSuffix("exec "+strings.Trim(fmt.Sprint(command[4:]), "[]"), " ")
	}
	if port := manifest.At(container, probe, "grpc", "port"); port != nil {
		return fmt.Sprint("grpc ", manifest.At(container, probe, "grpc", "service"), " ", port)
	}
	return fmt.Sprint("httpGet ", manifest.At(container, probe, "httpGet", "path"), " ", manifest.At(container, probe, "httpGet", "port"))
}
