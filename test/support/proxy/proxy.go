// Package proxy runs real proxies, nginx and Envoy, for tests. They listen on the loopback interface, on a port that the system has chosen, and
// cut streams that are silent for five seconds.
package proxy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// Idle is after how long of silence each proxy ends a stream.
const Idle = 5 * time.Second

// A Proxy runs until the test ends.
type Proxy struct {
	Address string

	t       testing.TB
	folder  string
	kind    Kind
	to      string // the sidecar's address
	nursery *process.Nursery
	process *process.Process
}

// A Kind is a program and how it is told what to do.
type Kind struct {
	Name    string
	find    func() (string, error)
	lacking string
	config  string   // with the folder, the proxy's host and port, those of the sidecar, and the seconds of silence
	flags   []string // before the path of that
}

// Nginx is nginx as Debian has it.
var Nginx = Kind{
	Name: "nginx", lacking: "no nginx: apt-get install nginx-light", flags: []string{"-c"},
	find: func() (string, error) {
		if path, err := exec.LookPath("nginx"); err == nil {
			return path, nil
		}
		return exec.LookPath("/usr/sbin/nginx")
	},
	config: `daemon off;
pid %[1]s/pid;
error_log %[1]s/log;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s:%[3]s http2;
		client_max_body_size 0;
		client_body_timeout %[6]ds;
		location / {
			grpc_pass grpc://%[4]s:%[5]s;
			grpc_read_timeout %[6]ds;
			grpc_send_timeout %[6]ds;
		}
	}
}
`,
}

// Envoy is the Envoy that tools/need installs.
var Envoy = Kind{
	Name: "Envoy", lacking: "no Envoy: tools/need proxies", flags: []string{"--use-dynamic-base-id", "--concurrency", "1", "-l", "warn", "-c"},
	find: func() (string, error) {
		if path, err := exec.LookPath("envoy"); err == nil {
			return path, nil
		}
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		return exec.LookPath(filepath.Join(cache, "sidekeeper", "envoy", "envoy", "_bin", "envoy"))
	},
	config: `# %[1]s
static_resources:
  listeners:
  - name: callers
    address: { socket_address: { address: %[2]s, port_value: %[3]s } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: callers
          codec_type: HTTP2
          stream_idle_timeout: %[6]ds
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: { prefix: "/" }
                route: { cluster: sidecar, timeout: 0s }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters:
  - name: sidecar
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: {} }
    load_assignment:
      cluster_name: sidecar
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: %[4]s, port_value: %[5]s } } }
`,
}

// Start starts a proxy before a sidecar that listens at host:port.
func Start(t testing.TB, kind Kind, sidecar string) *Proxy {
	t.Helper()
	full.Needs(t, kind.Name)
	if _, err := kind.find(); err != nil {
		full.Lacks(t, kind.lacking)
	}
	p := &Proxy{t: t, folder: t.TempDir(), kind: kind, to: sidecar, nursery: process.NewNursery()}
	t.Cleanup(func() {
		p.process.Kill()
		p.nursery.Close()
	})
	const attempts = 5 // another program may take the port between choice and start
	for range attempts {
		p.Address = freePort(t)
		if p.start() {
			return p
		}
	}
	log, _ := os.ReadFile(filepath.Join(p.folder, "out"))
	t.Fatalf("%s does not start:\n%s", kind.Name, log)
	return nil
}

// Restart kills the proxy, with all that goes through it, and starts it again at its address.
func (p *Proxy) Restart() {
	p.t.Helper()
	p.process.Kill()
	if !p.start() {
		p.t.Fatalf("%s does not start again", p.kind.Name)
	}
}

// freePort is an address that was free just now.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start starts the program, and says whether it serves.
func (p *Proxy) start() bool {
	p.t.Helper()
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		p.t.Fatal(err)
	}
	toHost, toPort, err := net.SplitHostPort(p.to)
	if err != nil {
		p.t.Fatal(err)
	}
	path := filepath.Join(p.folder, "proxy.yaml")
	config := fmt.Sprintf(p.kind.config, p.folder, host, port, toHost, toPort, int(Idle.Seconds()))
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(p.folder, "out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	program, err := p.kind.find()
	if err != nil {
		p.t.Fatal(err)
	}
	command := exec.Command(program, append(slices.Clip(p.kind.flags), path)...) //nolint:gosec,noctx // it is nginx or Envoy, and is killed
	command.Stdout, command.Stderr = log, log
	if p.process, err = p.nursery.Start(command, log); err != nil {
		p.t.Fatal(err)
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for p.process.Running() {
		if conn, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", p.Address); err == nil {
			conn.Close()
			return p.process.Running()
		}
		<-ticker.C
	}
	return false
}
