package kube

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/process"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

// services is where the addresses of Services lie: on loopback, so that whoever listens there is the Service.
const services = "127.96.0.0/16"

// patience is how long a program may take to serve.
const patience = 2 * time.Minute

// A Cluster is an API server and its etcd.
type Cluster struct {
	Server     string // https://host:port
	CAFile     string
	Token      string // of somebody who may do everything
	KubeConfig string // a file with all three

	folder  string
	nursery *process.Nursery
	running []*process.Process
	http    *http.Client
}

// Start starts a cluster whose files lie in folder, and returns when it serves. The caller must stop it.
func Start(ctx context.Context, folder string) (*Cluster, error) {
	c := &Cluster{folder: folder, nursery: process.NewNursery()}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop ends both programs, and returns when they have ended.
func (c *Cluster) Stop() {
	for _, program := range slices.Backward(c.running) {
		program.Kill() // nothing of theirs is kept
	}
	c.nursery.Close()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

func (c *Cluster) start(ctx context.Context) error {
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}
	store := "http://127.0.0.1:" + ports[0]
	if err := c.startEtcd(ctx, store, "http://127.0.0.1:"+ports[1]); err != nil {
		return err
	}
	if err := c.startServer(ctx, store, ports[2]); err != nil {
		return err
	}
	return c.await(ctx)
}

func (c *Cluster) startEtcd(ctx context.Context, clients, peers string) error {
	return c.run(ctx, "etcd", "--data-dir", filepath.Join(c.folder, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)
}

func (c *Cluster) startServer(ctx context.Context, store, port string) error {
	key, err := c.signingKey()
	if err != nil {
		return err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	c.Token = hex.EncodeToString(token)
	users := filepath.Join(c.folder, "users.csv")
	if err := os.WriteFile(users, []byte(c.Token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return err
	}
	c.Server = "https://127.0.0.1:" + port
	c.CAFile = filepath.Join(c.folder, "certificates", "apiserver.crt")
	return c.run(ctx, "kube-apiserver", "--etcd-servers", store,
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", filepath.Dir(c.CAFile), "--token-auth-file", users, "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", key, "--service-account-signing-key-file", key,
		"--service-cluster-ip-range", services, "--endpoint-reconciler-type", "none", "--allow-privileged")
}

// signingKey makes the key by which the API server signs the tokens of service accounts.
func (c *Cluster) signingKey() (path string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	path = filepath.Join(c.folder, "accounts.key")
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600)
}

// run starts a program, whose output goes to a file named after it.
func (c *Cluster) run(ctx context.Context, name string, arguments ...string) error {
	program, err := toolchain.Program(ctx, name)
	if err != nil {
		return err
	}
	log, err := os.Create(c.log(name))
	if err != nil {
		return err
	}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	started, err := c.nursery.Start(command, log)
	if err != nil {
		return err
	}
	c.running = append(c.running, started)
	return nil
}

func (c *Cluster) log(name string) string { return filepath.Join(c.folder, name+".log") }

// await returns when the API server is ready, and writes the file for those who talk to it by a file.
func (c *Cluster) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := c.connect()
		if err == nil {
			err = c.Do(ctx, http.MethodGet, "/readyz", nil, nil)
		}
		if err == nil {
			return c.writeKubeConfig()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w; its log ends: %s", err, c.lastWords("kube-apiserver"))
		case <-c.running[len(c.running)-1].Exited():
			return fmt.Errorf("the API server has ended: %s", c.lastWords("kube-apiserver"))
		}
	}
}

// connect makes a client that trusts the certificate which the API server has made.
func (c *Cluster) connect() error {
	if c.http != nil {
		return nil
	}
	authorities, err := os.ReadFile(c.CAFile)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	c.http = &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true},
	}
	return nil
}

func (c *Cluster) lastWords(name string) string {
	log, err := os.ReadFile(c.log(name))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

func (c *Cluster) writeKubeConfig() error {
	c.KubeConfig = filepath.Join(c.folder, "kubeconfig.yaml")
	return os.WriteFile(c.KubeConfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: admin, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
`, c.Server, c.CAFile, c.Token), 0o600)
}

// A Refused is an answer of the API server other than that it has done what it was asked.
type Refused struct {
	Code    int
	Message string
}

func (r *Refused) Error() string { return fmt.Sprintf("%d: %s", r.Code, r.Message) }

// Do makes one request as somebody who may do everything. A body goes as JSON, and the answer comes into result; either may be nil.
func (c *Cluster) Do(ctx context.Context, method, path string, body, result any) error {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Server+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json") // as kubectl sends it
	}
	request.Header.Set("Accept", "application/json, */*")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return readAnswer(response, result)
}

func readAnswer(response *http.Response, result any) error {
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(answer, &status) != nil || status.Message == "" {
			status.Message = strings.TrimSpace(string(answer))
		}
		return &Refused{response.StatusCode, status.Message}
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer, result)
}

// FreePorts are ports of loopback that nobody listens on.
func FreePorts(count int) (ports []string, err error) {
	var listeners []net.Listener
	defer func() {
		for _, listener := range listeners {
			listener.Close()
		}
	}()
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener) // all stay open until the last, so that no two are the same
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
