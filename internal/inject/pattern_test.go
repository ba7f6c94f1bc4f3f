package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// A small pattern, of the form that the chart renders.
const patternText = `{
  "container": {"name": "sidekeeper", "restartPolicy": "Always", "args": ["serve", "--listen=own", "--root=/all", "--zookeeper=z:1"],
    "volumeMounts": [{"name": "sidekeeper", "mountPath": "/run/sidekeeper"}]},
  "volumes": [{"name": "sidekeeper", "emptyDir": {}}],
  "labels": {"sidekeeper.io/sidecar": "true"},
  "each": {
    "argument": "--listen=unix:///CONTAINER?identity=CONTAINER",
    "containerVolumeMounts": [{"name": "sidekeeper-CONTAINER", "mountPath": "/sockets/CONTAINER"}],
    "volumes": [{"name": "sidekeeper-CONTAINER", "emptyDir": {}}],
    "volumeMounts": [{"name": "sidekeeper-CONTAINER", "mountPath": "/run/sidekeeper", "readOnly": true}],
    "env": [{"name": "SIDEKEEPER_ADDRESS", "value": "unix:///run/sidekeeper/sidekeeper.sock"}]
  },
  "annotations": ["root", "session-timeout"]
}`

// rooted is the check of a sidecar whose one rule is that roots begin with a slash.
func rooted(arguments []string) (string, error) {
	if root := valueOf(arguments, "root"); root != "" && !strings.HasPrefix(root, "/") {
		return "root", errors.New("it must begin with /")
	}
	return "", nil
}

func patternFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pattern.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pattern(t testing.TB) *Pattern {
	t.Helper()
	read, err := ReadPattern(patternFile(t, patternText), rooted)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestAPatternWhoseSidecarWouldNotStartIsRefused(t *testing.T) {
	for _, bad := range []struct{ text, by, want string }{
		{`"name": "sidekeeper", "r`, `"name": "other", "r`, "container.name is other: it must be sidekeeper"},
		{`"args": ["serve", `, `"args": ["serve", 1, `, "container.args[1] is 1: it must be a word"},
		{`"args"`, `"arguments"`, "container.args: a list of words is missing"},
		{`"--root=/all"`, `"--root=all"`, `container.args: --root is "all": it must begin with /`},
		{`CONTAINER?identity=CONTAINER`, `web`, `each.argument is "--listen=unix:///web": CONTAINER must stand`},
		{`"annotations"`, `"annotation"`, `unknown field "annotation"`},
		{`"each": {`, `"each": [`, "invalid character"},
		{`"labels"`, `"rootPerNamespace": "/all", "labels"`, "annotations[0] is root: with rootPerNamespace, pods cannot choose it"},
		{`"labels"`, `"rootPerNamespace": "all", "labels"`, "annotations[0] is root: with"},
	} {
		path := patternFile(t, strings.Replace(patternText, bad.text, bad.by, 1))
		_, err := ReadPattern(path, rooted)
		if err == nil || !strings.Contains(err.Error(), bad.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", bad.by, err, bad.want)
		}
	}
}

func TestFlagsStandInTheirOrderAndChosenOnesReplaceTheirs(t *testing.T) {
	arguments, err := pattern(t).with(map[string]string{"root": "/mine", "session-timeout": "20s"}, []string{"web", "app"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"serve", "--listen=own", "--listen=unix:///app?identity=app", "--listen=unix:///web?identity=web",
		"--root=/mine", "--session-timeout=20s", "--zookeeper=z:1",
	}
	if !slices.Equal(arguments, want) {
		t.Errorf("got %q, want %q", arguments, want)
	}
}

func TestANamespaceHasARootOfItsOwnThatNoPodChooses(t *testing.T) {
	text := strings.Replace(patternText, `["root", "session-timeout"]`, `["session-timeout"], "rootPerNamespace": "/all"`, 1)
	own, err := ReadPattern(patternFile(t, text), rooted)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ namespace, annotations, want string }{
		{"shop", "", `"--root=/all/shop"`},
		{"cart", "", `"--root=/all/cart"`},
		{"shop", `, "sidekeeper.io/session-timeout": "20s"`, `"--root=/all/shop","--session-timeout=20s"`},
		{"shop", `, "sidekeeper.io/root": "/all/cart"`, "annotation sidekeeper.io/root: there is no such one"},
		{"", "", `the pod's namespace is ""`},
		{"locks", "", `the pod's namespace is "locks": its root would lie inside the data of sidecars with the root /all`},
		{"locks-2", "", `"--root=/all/locks-2"`},
	} {
		metadata := strings.Replace(podWith(asks+c.annotations, ""), `"metadata": {`, `"metadata": {"namespace": "elsewhere", `, 1)
		patch, _, err := own.Patch([]byte(metadata), c.namespace, rooted)
		if got := string(patch) + fmt.Sprint(err); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.namespace, got, c.want)
		}
		if strings.Count(string(patch), "--root=") > 1 {
			t.Errorf("%s: %s", c.namespace, patch)
		}
	}
	text = strings.Replace(text, `"/all"`, `"all"`, 1)
	if _, err := ReadPattern(patternFile(t, text), rooted); err == nil || !strings.Contains(err.Error(), `--root is "`) {
		t.Errorf("a bad path: %v", err)
	}
}

// change is what the pattern makes of a pod, in short: the operations' paths, or the refusal.
func change(t *testing.T, text string) string {
	t.Helper()
	patch, warning, err := pattern(t).Patch([]byte(text), "shop", rooted)
	if err != nil {
		if refusal := (*Refusal)(nil); !errors.As(err, &refusal) {
			t.Fatalf("%s: no refusal: %v", text, err)
		}
		return "refused: " + err.Error()
	}
	if patch == nil {
		return "nothing" + warning
	}
	var operations []operation
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, each := range operations {
		short = append(short, each.Op+" "+each.Path)
	}
	return strings.Join(short, ", ")
}

// pod is one with an init container, two containers and these annotations.
func podWith(annotations, spec string) string {
	return fmt.Sprintf(`{"metadata": {"annotations": {%s}}, "spec": {%s
		"initContainers": [{"name": "first"}], "containers": [{"name": "web", "x-new": 1e400}, {"name": "app"}]}}`, annotations, spec)
}

const asks = `"sidekeeper.io/inject": "true"`

func TestAPodGetsWhatItAsksFor(t *testing.T) {
	const rest = "add /spec/volumes, add /spec/initContainers/0, add /metadata/annotations, add /metadata/labels"
	callers := func(paths ...string) string {
		var each []string
		for _, path := range paths {
			each = append(each, "add /spec/"+path+"/volumeMounts", "add /spec/"+path+"/env")
		}
		return strings.Join(append(each, rest), ", ")
	}
	for annotations, want := range map[string]string{
		``:                                "nothing",
		`"other": "x"`:                    "nothing",
		`"sidekeeper.io/inject": "false"`: "nothing",
		asks:                              callers("containers/0", "containers/1"),
		asks + `, "sidekeeper.io/containers": "app"`:             callers("containers/1"),
		asks + `, "sidekeeper.io/containers": "first, app, app"`: callers("initContainers/0", "containers/1"),
		asks + `, "sidekeeper.io/root": "/mine"`:                 callers("containers/0", "containers/1"),
	} {
		if got := change(t, podWith(annotations, "")); got != want {
			t.Errorf("{%s}: got %s, want %s", annotations, got, want)
		}
	}
}

func TestAPodThatSaysItIsForLinuxIsAsAnyOther(t *testing.T) {
	const linux = `"os": {"name": "linux"}, "nodeSelector": {"kubernetes.io/os": "linux"},`
	if got, want := change(t, podWith(asks, linux)), change(t, podWith(asks, "")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := change(t, podWith("", `"os": {"name": "windows"},`)); got != "nothing" {
		t.Errorf("a pod that asks for nothing: %s", got)
	}
}

func TestAPodThatCannotHaveWhatItAsksForIsRefused(t *testing.T) {
	long := strings.Repeat("w", 53)
	alone := func(container string) string {
		return `{"metadata": {"annotations": {` + asks + `}}, "spec": {"containers": [` + container + `]}}`
	}
	for _, bad := range []struct{ pod, want string }{
		{`[]`, "the pod is no JSON object"},
		{podWith(`"sidekeeper.io/inject": "1"`, ""), `annotation sidekeeper.io/inject is "1": it must be "true" or "false"`},
		{
			podWith(asks+`, "sidekeeper.io/roots": "/"`, ""),
			"annotation sidekeeper.io/roots: there is no such one; pods may have sidekeeper.io/inject, sidekeeper.io/containers, " +
				"sidekeeper.io/root, sidekeeper.io/session-timeout",
		},
		{podWith(asks+`, "sidekeeper.io/root": "mine"`, ""), `annotation sidekeeper.io/root is "mine": it must begin with /`},
		{
			podWith(asks+`, "sidekeeper.io/containers": "a,,b"`, ""),
			`annotation sidekeeper.io/containers is "a,,b": it must be names of containers, separated by commas`,
		},
		{
			podWith(asks+`, "sidekeeper.io/containers": "sidekeeper"`, ""),
			`annotation sidekeeper.io/containers is "sidekeeper": the pod has no such container; it has first, web, app`,
		},
		{podWith(asks, `"os": {"name": "windows"},`), `spec.os.name is "windows": the sidecar runs on linux alone`},
		{
			podWith(asks, `"nodeSelector": {"kubernetes.io/os": "windows"},`),
			`spec.nodeSelector[kubernetes.io/os] is "windows": the sidecar runs on linux alone`,
		},
		{podWith(asks, `"volumes": [{"name": "sidekeeper-app"}],`), `volume is "sidekeeper-app": the sidecar's volume has that name`},
		{alone(`{"name": "` + long + `"}`), `container is "` + long + `": one with a sidecar has a name of at most 52 characters`},
		{
			alone(`{"name": "web", "volumeMounts": [{"name": "x", "mountPath": "/run/sidekeeper"}]}`),
			`container web: mountPath is "/run/sidekeeper": the sidecar's socket belongs there`,
		},
	} {
		if got := change(t, bad.pod); !strings.HasPrefix(got, "refused: "+bad.want) {
			t.Errorf("%s: got %s, want %s", bad.pod, got, bad.want)
		}
	}
}

func TestAnInjectedPodGetsOnlyWhatIsMissing(t *testing.T) {
	injected := asks + `, "sidekeeper.io/injected": "true"`
	sidecar := `"containers": [{"name": "web", "volumeMounts": [{"name": "sidekeeper-web"}]}%s], "initContainers": [{"name": "sidekeeper"}]`
	pod := `{"metadata": {"annotations": {` + injected + `}}, "spec": {` + sidecar + `}}`
	if got := change(t, fmt.Sprintf(pod, "")); got != "nothing" {
		t.Errorf("complete: %s", got)
	}
	want := "add /spec/containers/1/volumeMounts, add /spec/containers/1/env, add /spec/volumes, replace /spec/initContainers/0, " +
		"add /metadata/annotations, add /metadata/labels"
	if got := change(t, fmt.Sprintf(pod, `, {"name": "late"}`)); got != want {
		t.Errorf("with a container that came later: got %s, want %s", got, want)
	}
	if got := change(t, podWith(injected, "")); !strings.Contains(got, "add /spec/initContainers/0") {
		t.Errorf("the annotation without a sidecar: %s", got)
	}
}

func TestASidecarThatSomebodyElsePutThereStays(t *testing.T) {
	pod := `{"metadata": {"annotations": {` + asks + `}}, "spec": {"containers": [{"name": "sidekeeper"}, {"name": "web"}]}}`
	if got := change(t, pod); got != "nothingthe pod has a container named sidekeeper of its own: nothing was injected" {
		t.Errorf("got %s", got)
	}
}

func TestAVariableOfTheContainersOwnStays(t *testing.T) {
	pod := `{"metadata": {"annotations": {` + asks + `}}, "spec": {"containers":
		[{"name": "web", "env": [{"name": "SIDEKEEPER_ADDRESS", "value": "mine"}]}]}}`
	patch, _, err := pattern(t).Patch([]byte(pod), "shop", rooted)
	if err != nil || !strings.Contains(string(patch), `"value":[{"name":"SIDEKEEPER_ADDRESS","value":"mine"}]`) {
		t.Errorf("got %s, %v", patch, err)
	}
}

// Whatever a pod holds, it is refused or changed, and what was changed is not changed again but for containers that came later.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		podWith(asks, ""), podWith("", ""), `{}`, `[`,
		`{"spec": {"containers": [1, null, {"name": 2}]}, "metadata": {"annotations": {` + asks + `}}}`,
	} {
		f.Add(seed)
	}
	read := pattern(f)
	f.Fuzz(func(t *testing.T, text string) {
		patch, _, err := read.Patch([]byte(text), "shop", rooted)
		if err == nil && patch != nil && !json.Valid(patch) {
			t.Errorf("%q gives %q", text, patch)
		}
	})
}

// Whatever an API server sends, it is refused as a whole or answered with its own uid, and with a patch only where the pod is let in.
func FuzzReviews(f *testing.F) {
	const around = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-1", "object": %s}}`
	for _, pod := range []string{podWith(asks, ""), `null`, `1`, `{"metadata": {"name": 1}}`} {
		f.Add(fmt.Sprintf(around, pod))
	}
	f.Add(`{"kind": "AdmissionReview"}`)
	f.Add(`[]`)
	reviewer := newReviewer(pattern(f), rooted, zap.NewNop(), newMetrics())
	f.Fuzz(func(t *testing.T, body string) {
		answer := httptest.NewRecorder()
		reviewer.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if answer.Code == http.StatusBadRequest {
			return
		}
		var asked, told review
		if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &told) != nil || told.Response == nil {
			t.Fatalf("%q is answered with %d, %s", body, answer.Code, answer.Body)
		}
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&asked); err != nil || told.Response.UID != asked.Request.UID {
			t.Errorf("%q is answered for %q, %v", body, told.Response.UID, err)
		}
		if patch := told.Response.Patch; len(patch) > 0 && (!told.Response.Allowed || !json.Valid(patch)) {
			t.Errorf("%q: allowed %t, with the patch %s", body, told.Response.Allowed, patch)
		}
	})
}
