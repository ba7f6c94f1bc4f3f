package httpconns

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serving serves a handler on a listener with so many connections.
func serving(t *testing.T, handler http.Handler, most int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(handler, most)
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String()
}

// begun sends the headers of a request whose body does not come.
func begun(t *testing.T, address, host string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nx", host); err != nil {
		t.Fatal(err)
	}
	return conn
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

func post(t *testing.T, address, body string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post("http://"+address, "text/plain", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// A handler that reads no body answers at once, and the connection ends, though the body never comes.
func TestABodyThatDoesNotComeKeepsNoConnection(t *testing.T) {
	t.Parallel()
	conn := begun(t, serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }), 1), "a")
	text, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(text), "hello") {
		t.Errorf("answered %q, %v", text, err)
	}
}

// Requests that are not there take no place of one that is.
func TestRequestsWhoseBodiesDoNotComeFillNoListener(t *testing.T) {
	t.Parallel()
	const most = 4
	arrived := make(chan struct{}, 2*most)
	handler := NewBodies(2*most, 1<<10, time.Hour).Given(http.HandlerFunc(echo))
	address := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		handler.ServeHTTP(w, r)
	}), most)
	for range most {
		begun(t, address, "a")
		<-arrived
	}
	for range 8 {
		if got := post(t, address, "a whole one"); got != "a whole one" {
			t.Errorf("answered %q", got)
		}
	}
}

// Silent bodies have their places for little time while others wait, and no handler is left when its connection has ended.
func TestTooManySilentBodiesMakeRoom(t *testing.T) {
	t.Parallel()
	var inside atomic.Int32
	bodies := NewBodies(2, 1<<10, 2*time.Second).Given(http.HandlerFunc(echo))
	address := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.Add(1)
		defer inside.Add(-1)
		bodies.ServeHTTP(w, r)
	}), 16)
	var all sync.WaitGroup
	defer all.Wait()
	flood, stop := context.WithCancel(t.Context())
	defer stop()
	for range 6 {
		all.Go(func() {
			for flood.Err() == nil {
				conn := begun(t, address, "a")
				_, _ = io.ReadAll(conn)
				_ = conn.Close()
			}
		})
	}
	for range 2 {
		if got := post(t, address, "a whole one"); got != "a whole one" {
			t.Errorf("answered %q", got)
		}
	}
	stop()
	all.Wait()
	for inside.Load() > 0 && t.Context().Err() == nil {
		<-time.After(10 * time.Millisecond)
	}
}

func TestAnEvictedConnectionsRequestEnds(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	ended := make(chan struct{})
	address := serving(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Host == "silent" {
			close(waits)
			<-r.Context().Done()
			close(ended)
		}
	}), 1)
	begun(t, address, "silent")
	<-waits
	begun(t, address, "another")
	<-ended
}

// One caller's silent requests leave a quarter of the places to others.
func TestOneCallersBodiesLeavePlacesForOthers(t *testing.T) {
	t.Parallel()
	const most = 4
	arrived := make(chan struct{})
	bodies := NewBodies(most, 1<<10, time.Hour)
	bodies.Whose = func(r *http.Request) string { return r.Host }
	handler := bodies.Given(http.HandlerFunc(echo))
	address := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "greedy" {
			arrived <- struct{}{}
		}
		handler.ServeHTTP(w, r)
	}), 8)
	for range most {
		begun(t, address, "greedy")
		<-arrived
	}
	if got := post(t, address, "a whole one"); got != "a whole one" {
		t.Errorf("another caller was answered %q", got)
	}
}

func TestABodyThatIsTooLongOrTooLateIsRefused(t *testing.T) {
	t.Parallel()
	address := serving(t, NewBodies(4, 10, 20*time.Millisecond).Given(http.HandlerFunc(echo)), 4)
	if got := post(t, address, strings.Repeat("x", 11)); !strings.Contains(got, "too long") {
		t.Errorf("too long: %q", got)
	}
	text, _ := io.ReadAll(begun(t, address, "a"))
	if !strings.Contains(string(text), "did not come in time") {
		t.Errorf("too late: %q", text)
	}
}

func TestABodyOverHTTP2MayComeAfterItsHeaders(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	bodies := NewBodies(4, 1<<10, time.Hour).Given(http.HandlerFunc(echo))
	server := httptest.NewUnstartedServer(nil)
	server.EnableHTTP2 = true
	server.Config = NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		bodies.ServeHTTP(w, r)
	}), 4)
	server.Config.Protocols.SetHTTP2(true)
	server.StartTLS()
	defer server.Close()
	body, late := io.Pipe()
	go func() {
		<-arrived
		_, _ = io.WriteString(late, "late")
		_ = late.Close()
	}()
	answer, err := server.Client().Post(server.URL, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.ProtoMajor != 2 || string(text) != "late" {
		t.Errorf("answered %q over HTTP/%d", text, answer.ProtoMajor)
	}
}
