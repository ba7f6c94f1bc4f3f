//go:build kube

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/manifest"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

const (
	oldImage = "sidekeeper/sidekeeper:0.1.0" // the chart's own
	newImage = "sidekeeper/sidekeeper:0.2.0"
	newBuild = "v0.2.0"
)

// An injected pod runs on a real ensemble: its sidecar's image is changed in the API, and then its sidecar is killed. Each time only the
// sidecar is started anew, and what the application holds, is a member of and waits for is where it was.
func TestASidecarWhoseImageIsChangedOrThatIsKilledCostsItsPodNothing(t *testing.T) {
	p := deploy(t)
	p.await("holds orders", "waits for reports")
	p.queueBehind()
	standing := p.standing()
	old := p.version()

	refused := refusal(t, cluster.Do(t.Context(), http.MethodPatch, p.path, ofSidecar("args", []string{"serve"}), nil))
	if refused.Code != http.StatusUnprocessableEntity {
		t.Errorf("another command line: %v", refused)
	}
	do(t, http.MethodPatch, p.path, ofSidecar("image", newImage))
	p.isRestarted(1, 0)
	if got := p.version(); got != newBuild || old == newBuild {
		t.Errorf("the sidecar says that it is %s, after %s", got, old)
	}
	p.stands(standing)

	p.kubelet.kill("sidekeeper")
	p.isRestarted(2, 128+int(syscall.SIGKILL))
	p.stands(standing)

	must(t, p.reports.Release(t.Context()))
	p.await("holds reports with token " + p.waits)
	do(t, http.MethodDelete, p.path, nil)
	for name, next := range p.behind {
		lock := receive(t, name, next)
		if lock.FencingToken() <= p.tokens[name] {
			t.Errorf("%s: token %d after %d", name, lock.FencingToken(), p.tokens[name])
		}
		must(t, lock.Release(t.Context()))
	}
	receive(t, "the end of the pod", p.kubelet.gone)
	p.await("still holds orders with token " + fmt.Sprint(p.tokens["orders"]) + ": true")
	t.Logf("the application:\n%s", p.kubelet.log("web"))
}

// A deployed is a pod that runs, and others that want what it has.
type deployed struct {
	t       *testing.T
	path    string
	kubelet *kubelet
	other   *sidekeeper.Client // of a sidecar elsewhere
	reports *sidekeeper.Lock   // which the pod waits for
	behind  map[string]chan *sidekeeper.Lock
	tokens  map[string]int64 // of the pod, by its locks
	waits   string           // the token that the pod will have reports with
	seen    int              // how much of the log is about what was before
}

func deploy(t *testing.T) *deployed {
	t.Helper()
	servers, err := ensemble.Start(t.Context(), ensemble.Options{})
	must(t, err)
	t.Cleanup(servers.Close)
	addresses := servers.ClientAddresses()
	p := &deployed{t: t, path: pods("image") + "/shop", other: elsewhere(t, addresses), behind: map[string]chan *sidekeeper.Lock{}}
	p.reports, err = p.other.Acquire(t.Context(), "reports", sidekeeper.LockOptions{Owner: "other"})
	must(t, err)

	ports, err := FreePorts(1)
	must(t, err)
	install(t, "sidekeeper", "--set", "zookeeper.servers="+strings.Join(addresses, `\,`), "--set", "metrics.port="+ports[0],
		"--set", "settings.adminListen=unix:///run/sidekeeper/admin.sock")
	namespace(t, "image")
	do(t, http.MethodPost, pods("image"), annotated(t, "shop"))
	do(t, http.MethodPost, p.path+"/binding", map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": "shop"}, "target": map[string]any{"kind": "Node", "name": "node"},
	})
	operators := []string{"SIDEKEEPER_OPERATOR_LISTEN=unix:///run/sidekeeper/operator.sock"} // the default, told so that it is seen
	p.kubelet = startKubelet(t, p.path, map[string]image{
		oldImage: {program, operators}, newImage: {buildOf(t, newBuild), operators},
		"shop:1.0.0": {os.Args[0], []string{shopVariable + "=1"}},
	})
	return p
}

// elsewhere is a client of a sidecar in no pod.
func elsewhere(t *testing.T, servers []string) *sidekeeper.Client {
	t.Helper()
	folder, err := os.MkdirTemp("", "elsewhere")
	must(t, err)
	nursery := process.NewNursery()
	address := "unix://" + filepath.Join(folder, "sidekeeper.sock")
	command := exec.Command(program, "serve", "--zookeeper="+strings.Join(servers, ","), "--listen="+address, "--operator-listen=")
	running, err := nursery.Start(command, io.NopCloser(nil))
	must(t, err)
	client, err := sidekeeper.Dial(address)
	must(t, err)
	t.Cleanup(func() {
		must(t, client.Close())
		running.Kill()
		nursery.Close()
		os.RemoveAll(folder)
	})
	return client
}

// buildOf builds a sidecar that says that it is of a version, as the linker is told for those of a tagged commit.
func buildOf(t *testing.T, version string) (path string) {
	t.Helper()
	const frame = "0123456789abcdef" // of a length that counts, and not read
	info := fmt.Sprintf("%spath\t%[2]s/cmd/sidekeeper\nmod\t%[2]s\t%[3]s\t\n%[1]s", frame, "github.com/sidekeeper/sidekeeper", version)
	path = filepath.Join(t.TempDir(), "sidekeeper")
	linked := "-ldflags=-X 'runtime.modinfo=" + info + "'"
	building := exec.CommandContext(t.Context(), "go", "build", linked, "-o", path, root+"/cmd/sidekeeper")
	if output, err := building.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, output)
	}
	return path
}

// ofSidecar is a patch of one field of the sidecar's container, as `kubectl set image` sends it for its image.
func ofSidecar(field string, value any) map[string]any {
	return map[string]any{"spec": map[string]any{"initContainers": []any{map[string]any{"name": "sidekeeper", field: value}}}}
}

// await waits until the application has written lines that begin so.
func (p *deployed) await(lines ...string) {
	p.t.Helper()
	inTime(p.t, func() error {
		for _, line := range lines {
			if !strings.Contains(p.kubelet.log("web")[p.seen:], line) {
				return fmt.Errorf("the application has not written: %s", line)
			}
		}
		return nil
	})
}

// queueBehind has others wait for what the pod holds and waits for.
func (p *deployed) queueBehind() {
	p.t.Helper()
	for _, name := range []string{"orders", "reports"} {
		queued, granted := make(chan struct{}, 100), make(chan *sidekeeper.Lock, 1)
		p.behind[name] = granted
		go func() {
			lock, err := p.other.Acquire(p.t.Context(), name, sidekeeper.LockOptions{
				Owner: "behind", OnQueued: func(sidekeeper.Queued) { queued <- struct{}{} },
			})
			if err == nil {
				granted <- lock
			}
		}()
		receive(p.t, "a place behind the pod", queued)
	}
}

// standing is who holds and waits, and who is a member, each by the number of its node, as others see it.
func (p *deployed) standing() string {
	p.t.Helper()
	var all []string
	p.tokens = map[string]int64{}
	for _, name := range []string{"orders", "reports"} {
		view, err := p.other.Get(p.t.Context(), name)
		must(p.t, err)
		for _, each := range append(view.Holders, view.Waiters...) {
			all = append(all, fmt.Sprintf("%s: %s %d", name, each.Owner, each.FencingToken))
			if each.Owner == "web" {
				p.tokens[name] = each.FencingToken
			}
		}
	}
	group, err := p.other.GetGroup(p.t.Context(), "shops")
	must(p.t, err)
	for _, each := range group.Members {
		all = append(all, fmt.Sprintf("shops: %s %d", each.Member, each.Incarnation))
	}
	p.waits = fmt.Sprint(p.tokens["reports"])
	return strings.Join(all, "\n")
}

// stands fails the test unless all is as it was.
func (p *deployed) stands(before string) {
	p.t.Helper()
	if now := p.standing(); now != before || len(strings.Split(now, "\n")) != 6 {
		p.t.Errorf("before:\n%s\nand now:\n%s", before, now)
	}
}

// isRestarted returns when the sidecar was started anew so often, and the application has all again. Nothing else was started anew.
func (p *deployed) isRestarted(times, code int) {
	p.t.Helper()
	p.await("has orders again", "has shops again")
	log := p.kubelet.log("web")
	if word := regexp.MustCompile("(?m)^(failed|gets no|does not).*").FindString(log); word != "" {
		p.t.Error(word)
	}
	p.seen = len(log)
	var status map[string]any
	inTime(p.t, func() error {
		status = statusOf(do(p.t, http.MethodGet, p.path, nil), "initContainerStatuses", "sidekeeper")
		if manifest.At(status, "restartCount") != float64(times) || manifest.At(status, "ready") != true {
			return fmt.Errorf("the sidecar's status is %v", status)
		}
		return nil
	})
	if manifest.At(status, "image") != newImage || manifest.At(status, "lastState", "terminated", "exitCode") != float64(code) {
		p.t.Errorf("the sidecar's status is %v", status)
	}
	for _, name := range []string{"web", "statistics"} {
		if other := statusOf(do(p.t, http.MethodGet, p.path, nil), "containerStatuses", name); manifest.At(other, "restartCount") != 0.0 {
			p.t.Errorf("%s: %v", name, other)
		}
	}
}

// statusOf is that of one container of a pod; nil if there is none.
func statusOf(pod map[string]any, list, name string) map[string]any {
	statuses, _ := manifest.At(pod, "status", list).([]any)
	for _, status := range statuses {
		if manifest.At(status, "name") == name {
			return status.(map[string]any)
		}
	}
	return nil
}

// version is what the sidecar in the pod says that it is.
func (p *deployed) version() string {
	p.t.Helper()
	socket := filepath.Join(p.kubelet.volumes, "sidekeeper", "admin.sock")
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}, Timeout: time.Minute}
	response, err := client.Get("http://sidecar/state")
	must(p.t, err)
	defer response.Body.Close()
	var state struct {
		Version string `json:"version"`
	}
	must(p.t, json.NewDecoder(response.Body).Decode(&state))
	return state.Version
}
