//go:build kube

package kube

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/test/support/manifest"
)

const annotatedExample = root + "/examples/kubernetes/annotated.yaml"

// example is what the example chart renders.
func example(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for from, to := range map[string]string{
		root + "/examples/kubernetes": folder, root + "/helm/sidekeeper": folder + "/charts/sidekeeper",
	} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return helm(t, "template", "shop", folder)
}

// annotated is a pod that asks for a sidecar.
func annotated(t *testing.T, name string) map[string]any {
	t.Helper()
	return podOf(t, manifest.OfKind(t, read(t, annotatedExample), "Deployment"), name)
}

func pods(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }

func TestAnInjectedPodIsTheOneOfTheTemplates(t *testing.T) {
	install(t, "sidekeeper")
	namespace(t, "equal")
	want := do(t, http.MethodPost, pods("equal"), podOf(t, manifest.OfKind(t, example(t), "Deployment"), "by-template"))
	got := do(t, http.MethodPost, pods("equal"), annotated(t, "by-annotation"))
	if diff := cmp.Diff(want["spec"], got["spec"]); diff != "" {
		t.Errorf("specs (-template +injected):\n%s", diff)
	}
	if diff := cmp.Diff(manifest.At(want, "metadata", "labels"), manifest.At(got, "metadata", "labels")); diff != "" {
		t.Errorf("labels (-template +injected):\n%s", diff)
	}
	first := manifest.At(got, "spec", "initContainers").([]any)[0]
	if manifest.At(first, "name") != "sidekeeper" || manifest.At(first, "restartPolicy") != "Always" {
		t.Errorf("the first init container is %v", first)
	}
}

func TestAPodThatHasASidecarGetsNoSecondOne(t *testing.T) {
	install(t, "sidekeeper")
	namespace(t, "twice")
	created := do(t, http.MethodPost, pods("twice"), annotated(t, "first"))
	copied := map[string]any{"metadata": map[string]any{
		"name": "copy", "annotations": manifest.At(created, "metadata", "annotations"), "labels": manifest.At(created, "metadata", "labels"),
	}, "spec": created["spec"]}
	again := do(t, http.MethodPost, pods("twice"), copied)
	if diff := cmp.Diff(created["spec"], again["spec"]); diff != "" {
		t.Errorf("the copy of an injected pod differs (-first +copy):\n%s", diff)
	}
	byTemplate := podOf(t, manifest.OfKind(t, example(t), "Deployment"), "both")
	byTemplate["metadata"].(map[string]any)["annotations"] = map[string]any{"sidekeeper.io/inject": "true"}
	both := do(t, http.MethodPost, pods("twice"), byTemplate)
	if diff := cmp.Diff(created["spec"], both["spec"]); diff != "" {
		t.Errorf("a pod of the templates that asks as well differs:\n%s", diff)
	}
}

func TestABadAnnotationIsRefusedByNameValueAndRule(t *testing.T) {
	install(t, "sidekeeper")
	namespace(t, "refused")
	for _, bad := range []struct{ annotation, value, want string }{
		{"sidekeeper.io/inject", "yes", `annotation sidekeeper.io/inject is "yes": it must be "true" or "false"`},
		{"sidekeeper.io/rot", "/a", "annotation sidekeeper.io/rot: there is no such one; pods may have sidekeeper.io/inject"},
		{"sidekeeper.io/root", "/a", "annotation sidekeeper.io/root: there is no such one; pods may have sidekeeper.io/inject"},
		{
			"sidekeeper.io/session-timeout", "3s",
			`annotation sidekeeper.io/session-timeout is "3s": an ensemble grants no less than two ticks`,
		},
		{
			"sidekeeper.io/containers", "wbe",
			`annotation sidekeeper.io/containers is "wbe": the pod has no such container; it has migrate, web, statistics`,
		},
	} {
		pod := annotated(t, "bad")
		manifest.At(pod, "metadata", "annotations").(map[string]any)[bad.annotation] = bad.value
		refused := refusal(t, cluster.Do(t.Context(), http.MethodPost, pods("refused"), pod, nil))
		if refused.Code != http.StatusUnprocessableEntity || !strings.Contains(refused.Message, bad.want) {
			t.Errorf("%s=%s: got %v, want %q", bad.annotation, bad.value, refused, bad.want)
		}
	}
}

func TestTwoInjectorsServeWithOneCertificateAndOneIsEnough(t *testing.T) {
	r := install(t, "sidekeeper")
	namespace(t, "available")
	if first, second := r.injectors[0].serial(t), r.injectors[1].serial(t); first != second {
		t.Errorf("the injectors have the certificates %s and %s", first, second)
	}
	for i, name := range []string{"none-killed", "one-killed"} {
		if i > 0 {
			r.injectors[0].process.Kill()
			r.cut()
		}
		created := do(t, http.MethodPost, pods("available"), annotated(t, name))
		if len(manifest.At(created, "spec", "initContainers").([]any)) != 2 {
			t.Errorf("%s: the pod has no sidecar", name)
		}
	}
}

func TestWithoutInjectorsPodsThatAskAreRefusedOrHaveNoSidecarAsTheValueSays(t *testing.T) {
	r := install(t, "sidekeeper")
	namespace(t, "down")
	r.stop()
	r.cut()

	refused := refusal(t, cluster.Do(t.Context(), http.MethodPost, pods("down"), annotated(t, "closed"), nil))
	if !strings.Contains(refused.Message, "inject.sidekeeper.io") {
		t.Errorf("closed: got %v", refused)
	}
	stranger := annotated(t, "stranger")
	delete(stranger["metadata"].(map[string]any), "annotations")
	do(t, http.MethodPost, pods("down"), stranger)

	r.upgrade(t, "injector.failurePolicy=Ignore")
	inTime(t, func() error { return cluster.Do(t.Context(), http.MethodPost, pods("down"), annotated(t, "open"), nil) })
	open := do(t, http.MethodGet, pods("down")+"/open", nil)
	if n := len(manifest.At(open, "spec", "initContainers").([]any)); n != 1 {
		t.Errorf("open: the pod has %d init containers", n)
	}
}

func TestAnUpgradeKeepsTheCertificatesAndAnUninstallLeavesNothing(t *testing.T) {
	r := install(t, "sidekeeper")
	bundle := bytesAt(t, r.configuration(t), "clientConfig", "caBundle")
	secret := manifest.At(do(t, http.MethodGet, r.path("/api/v1", "secrets"), nil), "data")
	r.upgrade(t, "injector.timeoutSeconds=7")
	if got := bytesAt(t, r.configuration(t), "clientConfig", "caBundle"); len(bundle) == 0 || !bytes.Equal(got, bundle) {
		t.Errorf("the bundle was %q and is %q", bundle, got)
	}
	if diff := cmp.Diff(secret, manifest.At(do(t, http.MethodGet, r.path("/api/v1", "secrets"), nil), "data")); diff != "" {
		t.Errorf("the Secret has changed:\n%s", diff)
	}
	installed := helm(t, "get", "manifest", r.name, "--namespace", injectorNamespace)
	helm(t, "uninstall", r.name, "--namespace", injectorNamespace)
	for _, object := range manifest.All(t, installed) {
		err := cluster.Do(t.Context(), http.MethodGet, collection(t, object)+"/"+manifest.At(object, "metadata", "name").(string), nil, nil)
		if refusal(t, err).Code != http.StatusNotFound {
			t.Errorf("%s %s is left: %v", object["kind"], manifest.At(object, "metadata", "name"), err)
		}
	}
}

func TestTheInjectorsAccountMayDoNothingElse(t *testing.T) {
	r := install(t, "sidekeeper")
	token := strings.TrimSpace(read(t, r.token(t, t.TempDir())))
	injector := *cluster
	injector.Token = token
	for path, want := range map[string]int{
		r.path("/api/v1", "secrets"):                                 http.StatusOK,
		"/api/v1/namespaces/" + injectorNamespace + "/secrets":       http.StatusForbidden,
		"/api/v1/namespaces/" + injectorNamespace + "/secrets/other": http.StatusForbidden,
		"/api/v1/pods": http.StatusForbidden,
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": http.StatusForbidden,
	} {
		got := http.StatusOK
		if err := injector.Do(t.Context(), http.MethodGet, path, nil, nil); err != nil {
			got = refusal(t, err).Code
		}
		if got != want {
			t.Errorf("GET %s: %d, not %d", path, got, want)
		}
	}
}

// Certificates live for half a minute here, and are renewed when ten seconds are left. All the while pods are made, each with a
// handshake of its own, and at every moment the authorities that API servers are told fit what each injector serves with.
func TestCertificatesAreRenewedWhilePodsAreMade(t *testing.T) {
	r := install(t, "sidekeeper", "--set", "injector.certificates.lifetime=30s")
	namespace(t, "rotation")
	serials, most, made := map[string]bool{}, 0, 0
	for deadline := time.Now().Add(2 * time.Minute); len(serials) < 4 && time.Now().Before(deadline); made++ {
		err := cluster.Do(t.Context(), http.MethodPost, pods("rotation")+"?dryRun=All", annotated(t, "pod"), nil)
		if err != nil && isCut.MatchString(err.Error()) {
			continue
		}
		if err != nil {
			t.Fatalf("after %d pods and %d certificates: %v", made, len(serials), err)
		}
		bundle := bytesAt(t, r.configuration(t), "clientConfig", "caBundle")
		for _, each := range r.injectors {
			serials[trusted(t, r, each, bundle)] = true
		}
		most = max(most, strings.Count(string(bundle), "BEGIN CERTIFICATE"))
		r.cut()
	}
	t.Logf("%d pods, %d certificates, at most %d authorities at the same time", made, len(serials), most)
	if len(serials) < 4 || most < 2 || most > 4 {
		t.Errorf("%d certificates, at most %d authorities", len(serials), most)
	}
}

// isCut matches what the API server says of a connection that was cut just when it wrote to it.
var isCut = regexp.MustCompile(`broken pipe|connection reset|EOF|use of closed`)

// trusted is the number of the certificate that an injector serves with, which the bundle must be good for.
func trusted(t *testing.T, r *release, each *injector, bundle []byte) string {
	t.Helper()
	pool := x509.NewCertPool()
	if block, _ := pem.Decode(bundle); block == nil || !pool.AppendCertsFromPEM(bundle) {
		t.Fatalf("the bundle is %q", bundle)
	}
	conn, err := tls.Dial("tcp", each.webhook, &tls.Config{RootCAs: pool, ServerName: r.object() + "." + injectorNamespace + ".svc"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}
