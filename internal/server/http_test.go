package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/gateway"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
)

const testToken = "a-token-of-the-tests"

// onLoopback has a probe serve HTTP on loopback, with a token from a file.
func onLoopback(t *testing.T) func(*server.Options) {
	file := t.TempDir() + "/token"
	must(t, os.WriteFile(file, []byte(testToken+"\n"), 0o600))
	return func(o *server.Options) { o.HTTPListen, o.HTTPTokenFile = "127.0.0.1:0", file }
}

// posted is what a caller over HTTP is answered.
func posted(t *testing.T, client *http.Client, url, body string, headers ...string) (code int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), http.MethodPost, url, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+testToken)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(text)
}

func (p *probe) post(method, body string, headers ...string) (code int, answer string) {
	p.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return posted(p.t, client, "http://"+p.server.HTTPAddress()+method, body, headers...)
}

func TestACallOverHTTPIsOneOverGRPC(t *testing.T) {
	t.Parallel()
	book := &logbook{}
	p := newProbe(t, onLoopback(t), func(o *server.Options) { o.Log = book.Logger() })
	met := make(chan caller.Caller, 1)
	p.get = func(ctx context.Context) error { met <- caller.Of(ctx); return nil }
	code, answer := p.post(lockv1.LockService_Get_FullMethodName, `{"name":"orders"}`)
	same(t, "answer", fmt.Sprint(code, answer), "200{}")
	same(t, "caller", described(receive(t, met)), "tcp:loopback operator false")

	p.get = func(context.Context) error { return fmt.Errorf("lock secret-path: %w", recipes.ErrSessionEnded) }
	code, answer = p.post(lockv1.LockService_Get_FullMethodName, `{"name":"orders"}`)
	var told struct {
		Code, Message string
		Details       []struct{ Type string }
	}
	must(t, json.Unmarshal([]byte(answer), &told))
	same(t, "error", fmt.Sprint(code, told.Code, told.Details), "409aborted[{google.rpc.ErrorInfo}]")
	same(t, "message", strings.HasPrefix(told.Message, "LEASE_LOST: "), true)

	code, answer = p.post(lockv1.LockService_Break_FullMethodName, `{"name":"orders"}`)
	same(t, "code of what is for operators", code, http.StatusForbidden)
	same(t, "reason of it", strings.Contains(answer, "OPERATOR_ONLY"), true)
	p.cancel()
	must(t, p.serve())
	same(t, "lines in the log", strings.Count(book.Text(), "finished call"), 3)
}

func TestOverHTTPAFieldThatIsMisspeltIsRefused(t *testing.T) {
	t.Parallel()
	p := newProbe(t, onLoopback(t))
	called := make(chan struct{}, 10)
	p.get = func(context.Context) error { called <- struct{}{}; return nil }
	for _, asked := range []struct{ body, kind, want string }{
		{`{"name":"orders"}`, "application/json", "200 {}"},
		{`{"name":"orders"}`, "application/json; charset=UTF-8", "200 {}"},
		{`{"naem":"orders"}`, "application/json", `400 sidekeeper.lock.v1.GetRequest: (line 1:2): unknown field \"naem\"`},
		{`{"naem":"orders"}`, "application/json; charset=utf-8", `400 sidekeeper.lock.v1.GetRequest: (line 1:2): unknown field \"naem\"`},
		{`{"name":7}`, "application/json", `400 sidekeeper.lock.v1.GetRequest: (line 1:9): invalid value for string field name: 7`},
		{``, "application/json", "400 the request is empty: send a JSON object, at least {}"},
		{`{"name":"orders"}`, "application/x-www-form-urlencoded", "415 the header Content-Type has to say what the request is: application/json"},
	} {
		code, answer := p.post(lockv1.LockService_Get_FullMethodName, asked.body, "Content-Type: "+asked.kind)
		wantCode, text, _ := strings.Cut(asked.want, " ")
		if fmt.Sprint(code) != wantCode || !strings.Contains(answer, text) {
			t.Errorf("%s as %s: got %d %s, want %s", asked.body, asked.kind, code, answer, asked.want)
		}
		if code == http.StatusOK {
			receive(t, called)
		}
	}
	same(t, "other calls", len(called), 0)
	_, answer := p.post(lockv1.LockService_Watch_FullMethodName, `{}`)
	same(t, "what a stream takes", strings.Contains(answer, "application/connect+json"), true)
}

func TestOverHTTPNobodyGetsAnythingFromElsewhereOrWithoutTheToken(t *testing.T) {
	t.Parallel()
	p := newProbe(t, onLoopback(t))
	called := make(chan struct{}, 10)
	p.get = func(context.Context) error { called <- struct{}{}; return nil }
	own := "Origin: http://" + p.server.HTTPAddress()
	for _, asked := range []struct {
		headers string
		want    int
	}{
		{"Authorization: ", http.StatusUnauthorized},
		{"Authorization: Bearer another-token-of-tests", http.StatusUnauthorized},
		{"Authorization: " + testToken, http.StatusUnauthorized},
		{"Authorization: bearer " + testToken, http.StatusOK},
		{"Host: elsewhere.example", http.StatusMisdirectedRequest},
		{"Host: elsewhere.example\nOrigin: http://elsewhere.example", http.StatusMisdirectedRequest},
		{"Origin: http://elsewhere.example", http.StatusForbidden},
		{"Origin: http://127.0.0.1:1", http.StatusForbidden},
		{"Origin: null", http.StatusForbidden},
		{"Sec-Fetch-Site: cross-site", http.StatusForbidden},
		{"Sec-Fetch-Site: same-site", http.StatusForbidden},
		{own + "\nSec-Fetch-Site: same-origin", http.StatusOK},
		{"Host: localhost:1", http.StatusOK},
	} {
		code, answer := p.post(lockv1.LockService_Get_FullMethodName, `{}`, strings.Split(asked.headers, "\n")...)
		same(t, asked.headers, code, asked.want)
		same(t, "answered "+asked.headers, answer == "{}", asked.want == http.StatusOK)
		if asked.want == http.StatusOK {
			receive(t, called)
		}
	}
	same(t, "other calls", len(called), 0)
}

func TestATokenThatIsReplacedCountsForNewRequests(t *testing.T) {
	t.Parallel()
	file := ""
	p := newProbe(t, onLoopback(t), func(o *server.Options) { file = o.HTTPTokenFile })
	authority.Replace(t, file, "another-token-of-tests")
	old, _ := p.post(lockv1.LockService_Get_FullMethodName, `{}`)
	fresh, _ := p.post(lockv1.LockService_Get_FullMethodName, `{}`, "Authorization: Bearer another-token-of-tests")
	same(t, "codes", fmt.Sprint(old, fresh), "401 200")
	authority.Replace(t, file, "short")
	fresh, _ = p.post(lockv1.LockService_Get_FullMethodName, `{}`, "Authorization: Bearer another-token-of-tests")
	same(t, "with a token that is refused in the file", fresh, http.StatusOK)
}

func TestOverHTTPSOnlyCertificatesAreLetIn(t *testing.T) {
	t.Parallel()
	issuer, folder := newAuthority(t), t.TempDir()
	files := server.TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	issuer.writeServer(files)
	issuer.writeClientCA(files)
	p := newProbe(t, func(o *server.Options) { o.HTTPListen, o.TLS = "127.0.0.1:0", files })
	met := make(chan caller.Caller, 2)
	p.get = func(ctx context.Context) error { met <- caller.Of(ctx); return nil }
	url := "https://" + p.server.HTTPAddress() + lockv1.LockService_Get_FullMethodName
	config := &tls.Config{RootCAs: issuer.Pool(), ServerName: "sidecar.test", MinVersion: tls.VersionTLS12}
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config}}).Get(url)
	if err == nil {
		response.Body.Close()
		t.Error("served without a certificate")
	}

	config.Certificates = []tls.Certificate{issuer.Sign(someCaller())}
	for _, modern := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: modern, DisableKeepAlives: true}
		code, answer := posted(t, &http.Client{Transport: transport}, url, `{}`, "Host: sidecar.test")
		same(t, "answer", fmt.Sprint(code, answer), "200{}")
		same(t, "caller", described(receive(t, met)), "dns:app.test operator false")
	}
	code, _ := posted(t, &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, url, `{}`,
		"Host: sidecar.test", "Origin: https://elsewhere.example")
	same(t, "a page of elsewhere", code, http.StatusForbidden)
}

func TestOverHTTPOnlyCallersWhoShowWhoTheyAreAreServed(t *testing.T) {
	t.Parallel()
	for address, token := range map[string]string{"127.0.0.1:0": "", "0.0.0.0:0": t.TempDir() + "/token", "unix:///tmp/http": ""} {
		if token != "" {
			must(t, os.WriteFile(token, []byte(testToken), 0o600))
		}
		_, err := opens(server.Options{HTTPListen: address, HTTPTokenFile: token})
		same(t, address+" is served", err == nil, false)
	}
}

// What is held ends with its stream, and over HTTP nobody would learn of it in time.
func TestOverHTTPNothingIsHeld(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules: []\n")
	var held, watched []string
	for _, method := range s.methods() {
		switch of := descriptorOf(t, method); {
		case gateway.Refuses(of):
			held = append(held, method)
		case of.IsStreamingServer():
			watched = append(watched, method)
		}
	}
	same(t, "held", strings.Join(held, " "), strings.Join(slices.Sorted(slices.Values([]string{
		leasev1.LeaseService_Open_FullMethodName, leasev1.LeaseService_Multiplex_FullMethodName, lockv1.LockService_Acquire_FullMethodName,
		lockv1.LockService_AcquireAll_FullMethodName, membershipv1.MembershipService_Join_FullMethodName,
		semaphorev1.SemaphoreService_Acquire_FullMethodName, electionv1.ElectionService_Campaign_FullMethodName,
		queuev1.QueueService_Take_FullMethodName,
		barrierv1.BarrierService_Enter_FullMethodName,
		agreementv1.AgreementService_Vote_FullMethodName,
		oncev1.OnceService_Begin_FullMethodName,
		schedulev1.ScheduleService_Work_FullMethodName,
		assignmentv1.AssignmentService_Join_FullMethodName,
	})), " "))
	same(t, "a stream that is not held", slices.Contains(watched, fencingv1.FencingService_Watch_FullMethodName), true)

	p := newProbe(t, onLoopback(t))
	begun := make(chan struct{}, 3)
	p.acquire = func(grpc.ServerStreamingServer[lockv1.AcquireResponse]) error { begun <- struct{}{}; return nil }
	for _, kind := range []string{"application/json", "application/connect+json"} {
		_, answer := p.post(lockv1.LockService_Acquire_FullMethodName, `{}`, "Content-Type: "+kind)
		same(t, "the reason is told as "+kind, strings.Contains(answer, "held over gRPC only"), true)
	}
	same(t, "acquired", len(begun), 0)
}

// watching is a probe whose watches send one view, until they end.
func watching(t *testing.T, change ...func(*server.Options)) (p *probe, ended chan struct{}) {
	p, ended = newProbe(t, append(change, onLoopback(t))...), make(chan struct{})
	p.watch = func(stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
		defer close(ended)
		if err := stream.Send(&lockv1.WatchResponse{View: &lockv1.View{Name: "orders"}}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	return p, ended
}

func TestAWatchOverHTTPLastsUntilItsReaderLeaves(t *testing.T) {
	t.Parallel()
	p, ended := watching(t, func(o *server.Options) { server.CompleteWithin(o, 50*time.Millisecond) })
	conn, err := (&net.Dialer{}).DialContext(within(t), "tcp", p.server.HTTPAddress())
	must(t, err)
	body := "\x00\x00\x00\x00\x02{}"
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/connect+json\r\n"+
		"Content-Length: %d\r\n\r\n%s", lockv1.LockService_Watch_FullMethodName, testToken, len(body), body)
	lines := bufio.NewScanner(conn)
	for lines.Scan() && !strings.Contains(lines.Text(), `{"view":{"name":"orders"}}`) {
		continue
	}
	must(t, lines.Err())
	select {
	case <-ended:
		t.Error("a watch ended with the time that requests have to come")
	case <-time.After(200 * time.Millisecond):
	}
	must(t, conn.Close())
	receive(t, ended)
}

func TestARequestOverHTTPIsShortAndComesInTime(t *testing.T) {
	t.Parallel()
	p := newProbe(t, onLoopback(t), func(o *server.Options) { server.CompleteWithin(o, 200*time.Millisecond) })
	code, _ := p.post(lockv1.LockService_Get_FullMethodName, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)
	same(t, "a long one", code, http.StatusRequestEntityTooLarge)
	conn, err := (&net.Dialer{}).DialContext(within(t), "tcp", p.server.HTTPAddress())
	must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: 2\r\n\r\n{", lockv1.LockService_Get_FullMethodName, testToken)
	first, err := bufio.NewReader(conn).ReadString('\n')
	must(t, err)
	same(t, "one that never ends", strings.Contains(first, " 413 "), true)
}

func TestOverHTTPThePolicyDecidesToo(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules:\n- identities: [dns:batch.test]\n  methods: [sidekeeper.lock.v1.LockService/Get]\n  prefixes: [batch]\n")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: s.authority.Pool(), ServerName: "sidecar.test", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{s.authority.Sign(&x509.Certificate{DNSNames: []string{"batch.test"}})},
	}}}
	url := "https://" + s.server.HTTPAddress() + lockv1.LockService_Get_FullMethodName
	allowed, _ := posted(t, client, url, `{"name":"batch"}`, "Host: sidecar.test")
	denied, answer := posted(t, client, url, `{"name":"orders"}`, "Host: sidecar.test")
	same(t, "codes", fmt.Sprint(allowed, denied), "200 403")
	same(t, "reason", strings.Contains(answer, "POLICY_DENIED"), true)
	entry := s.awaitEntry("denial", func(line recorded) bool { return line["caller"] == "dns:batch.test" })
	same(t, "what is on record", fmt.Sprint(entry["names"]), "[orders]")
}

func TestCallersOverHTTPAreOthersThanThoseOfASocket(t *testing.T) {
	t.Parallel()
	options := server.Options{Listen: []string{"unix:///run/app?identity=app"}, MaxConnections: 1000}
	same(t, "leases of one identity", server.NewLimits(options, 1000, 1000, 0).Of("socket:app", policy.Leases), 1000)
	options.HTTPListen = "127.0.0.1:0"
	same(t, "leases of one of two", server.NewLimits(options, 1000, 1000, 0).Of("socket:app", policy.Leases), 750)
}
