package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// begins sends the headers of a request over a connection of its own, and no body.
func (p *probe) begins(address string) {
	p.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(within(p.t), "tcp", address)
	must(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: 100\r\n\r\n", testToken)
	must(p.t, err)
}

func TestRequestsWhoseBodiesDoNotComeFillNoListener(t *testing.T) {
	t.Parallel()
	p := newProbe(t, onLoopback(t), func(o *server.Options) { o.MetricsListen, o.AdminListen = "127.0.0.1:0", "127.0.0.1:0" })
	for name, address := range map[string]string{
		"metrics": p.server.MetricsAddress(), "admin": p.server.AdminAddress(), "http": p.server.HTTPAddress(),
	} {
		for range 300 {
			p.begins(address)
		}
		for i := range 8 {
			request, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://"+address+"/", http.NoBody)
			must(t, err)
			response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
			if err != nil {
				t.Errorf("%s, request %d: %v", name, i, err)
				continue
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}
}

func TestOneCallerDoesNotTakeAllConnectionsOverHTTPS(t *testing.T) {
	t.Parallel()
	authority, folder := newAuthority(t), t.TempDir()
	files := server.TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	authority.writeServer(files)
	authority.writeClientCA(files)
	p := newProbe(t, func(o *server.Options) { o.HTTPListen, o.TLS = "127.0.0.1:0", files })
	const most, share = 256, 192
	var entered atomic.Int32
	refused := make(chan struct{}, most)
	p.get = func(ctx context.Context) error {
		if caller.Of(ctx).Identity == "dns:app.test" {
			entered.Add(1)
			defer entered.Add(-1)
			<-ctx.Done()
		}
		return nil
	}
	url := "https://" + p.server.HTTPAddress() + lockv1.LockService_Get_FullMethodName
	calling := func(name string) *http.Client {
		config := &tls.Config{RootCAs: authority.Pool(), ServerName: "sidecar.test", MinVersion: tls.VersionTLS12}
		config.Certificates = []tls.Certificate{authority.Sign(&x509.Certificate{DNSNames: []string{name}})}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	}
	asked, stop := context.WithCancel(within(t))
	defer stop()
	greedy := calling("app.test")
	for range most {
		go func() {
			for asked.Err() == nil {
				request, err := http.NewRequestWithContext(asked, http.MethodPost, url, strings.NewReader("{}"))
				must(t, err)
				request.Host = "sidecar.test"
				request.Header.Set("Content-Type", "application/json")
				response, err := greedy.Do(request)
				if err == nil {
					response.Body.Close()
				}
				select {
				case refused <- struct{}{}:
				case <-asked.Done():
				}
			}
		}()
	}
	for entered.Load() < share {
		select {
		case <-refused:
		case <-time.After(10 * time.Millisecond):
		case <-asked.Done():
			t.Fatalf("%d of %d calls are under way", entered.Load(), share)
		}
	}
	for range most {
		receive(t, refused)
	}
	same(t, "calls of one caller", entered.Load(), share)
	code, answer := posted(t, calling("other.test"), url, `{}`, "Host: sidecar.test")
	same(t, "another caller", fmt.Sprint(code, answer), "200{}")
}
