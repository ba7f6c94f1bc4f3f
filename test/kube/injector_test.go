//go:build kube

package kube

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/manifest"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A release is the chart as helm has installed it, with injectors that run as processes: what a kubelet would do, with the
// arguments, the pattern and the account that the chart gives them.
type release struct {
	name    string
	service net.Listener
	calls   sync.WaitGroup
	nursery *process.Nursery

	mu        sync.Mutex
	injectors []*injector
	open      map[net.Conn]bool // of API servers
}

// all are the injectors that were started.
func (r *release) all() []*injector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.injectors)
}

// cut ends the API server's connections, so that the next call begins with a handshake.
func (r *release) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.open {
		conn.Close()
	}
}

// keep notes a connection until forget is called.
func (r *release) keep(conn net.Conn) (forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[conn] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, conn)
	}
}

// An injector is one replica.
type injector struct {
	process           *process.Process
	webhook, watching string // addresses
	log               *syncBuffer
}

const injectorNamespace = "injectors"

// install installs the chart and starts its Service and as many injectors as it says, until the test ends.
func install(t *testing.T, name string, arguments ...string) *release {
	t.Helper()
	r := &release{name: name, nursery: process.NewNursery(), open: map[net.Conn]bool{}}
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		helm(t, "uninstall", name, "--namespace", injectorNamespace, "--ignore-not-found")
		r.stop()
		if r.service != nil {
			r.service.Close()
		}
		r.cut()
		r.calls.Wait()
		r.nursery.Close()
		if t.Failed() {
			for i, each := range r.all() {
				t.Logf("injector %d:\n%s", i, each.log)
			}
		}
	})
	helm(t, append([]string{
		"install", name, root + "/helm/sidekeeper", "--namespace", injectorNamespace, "--create-namespace",
		"--set", "injector.enabled=true,zookeeper.servers=zookeeper-0.zookeeper:2181\\,zookeeper-1.zookeeper:2181\\,zookeeper-2.zookeeper:2181",
		"--set", "injector.servicePort=" + ports[0],
	}, arguments...)...)
	r.serve(t, ports[0])
	replicas := manifest.At(do(t, http.MethodGet, r.path("/apis/apps/v1", "deployments"), nil), "spec", "replicas").(float64)
	for range int(replicas) {
		r.start(t)
	}
	return r
}

// upgrade gives the chart another value.
func (r *release) upgrade(t *testing.T, value string) {
	t.Helper()
	helm(t, "upgrade", r.name, root+"/helm/sidekeeper", "--namespace", injectorNamespace, "--reuse-values", "--set", value)
}

// object is what the chart calls everything that belongs to the injector.
func (r *release) object() string { return r.name + "-injector" }

func (r *release) path(group, resource string) string {
	return group + "/namespaces/" + injectorNamespace + "/" + resource + "/" + r.object()
}

func (r *release) configuration(t *testing.T) map[string]any {
	t.Helper()
	configuration := do(t, http.MethodGet, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"+r.object(), nil)
	return manifest.At(configuration, "webhooks").([]any)[0].(map[string]any)
}

// start runs one more injector as its Deployment says, and returns when it is ready.
func (r *release) start(t *testing.T) *injector {
	t.Helper()
	deployment := do(t, http.MethodGet, r.path("/apis/apps/v1", "deployments"), nil)
	containers := manifest.At(deployment, "spec", "template", "spec", "containers").([]any)
	folder := t.TempDir()
	pattern := filepath.Join(folder, "pattern.json")
	configured := do(t, http.MethodGet, r.path("/api/v1", "configmaps"), nil)
	if err := os.WriteFile(pattern, []byte(manifest.At(configured, "data", "pattern.json").(string)), 0o600); err != nil {
		t.Fatal(err)
	}
	var arguments []string
	for _, argument := range manifest.At(containers[0], "args").([]any) {
		arguments = append(arguments, argument.(string))
	}
	arguments = append(arguments, "--pattern", pattern, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--shutdown-delay", "0s",
		"--kube-api", cluster.Server, "--kube-ca-file", cluster.CAFile, "--kube-token-file", r.token(t, folder))

	each := &injector{log: &syncBuffer{}}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = writer, each.log
	if each.process, err = r.nursery.Start(command, writer); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.injectors = append(r.injectors, each)
	r.mu.Unlock()
	if _, err := fmt.Fscanf(reader, "listening on %s\nlistening on %s\n", &each.webhook, &each.watching); err != nil {
		t.Fatalf("the injector has not begun: %v\n%s", err, each.log)
	}
	inTime(t, func() error { return each.get("/readyz") })
	return each
}

// token is one for the injector's service account, as the kubelet gets them.
func (r *release) token(t *testing.T, folder string) (path string) {
	t.Helper()
	answer := do(t, http.MethodPost, r.path("/api/v1", "serviceaccounts")+"/token", map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{},
	})
	path = filepath.Join(folder, "token")
	if err := os.WriteFile(path, []byte(manifest.At(answer, "status", "token").(string)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// get asks an injector over plain HTTP, as probes do.
func (i *injector) get(path string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Get("http://" + i.watching + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}

// serial is the number of the certificate that an injector serves with.
func (i *injector) serial(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", i.webhook, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// serve is the Service: it listens on the address that the API server gave it, and passes each connection on to an injector
// that accepts it.
func (r *release) serve(t *testing.T, port string) {
	t.Helper()
	service := do(t, http.MethodGet, r.path("/api/v1", "services"), nil)
	var err error
	if r.service, err = net.Listen("tcp", net.JoinHostPort(manifest.At(service, "spec", "clusterIP").(string), port)); err != nil {
		t.Fatal(err)
	}
	r.calls.Go(func() {
		for turn := 0; ; turn++ {
			conn, err := r.service.Accept()
			if err != nil {
				return
			}
			r.calls.Go(func() { r.pass(conn, turn) })
		}
	})
}

func (r *release) pass(conn net.Conn, turn int) {
	defer conn.Close()
	defer r.keep(conn)()
	injectors := r.all()
	for i := range injectors {
		behind, err := net.Dial("tcp", injectors[(turn+i)%len(injectors)].webhook)
		if err != nil {
			continue
		}
		var both sync.WaitGroup
		both.Go(func() { io.Copy(behind, conn); behind.Close() })
		both.Go(func() { io.Copy(conn, behind); conn.Close() })
		both.Wait()
		return
	}
}

// stop ends all injectors as the kubelet does.
func (r *release) stop() {
	for _, each := range r.all() {
		each.process.End(syscall.SIGTERM)
	}
}

// A syncBuffer is what a process writes, to be read at any time.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.text.String())
}
