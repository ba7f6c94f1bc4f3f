package inject

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/test/support/authority"
)

// files writes a pair for host into a folder.
func files(t *testing.T, folder string) (made pair, certificate, key string) {
	t.Helper()
	made, _, err := issue(host, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	for path, text := range map[string][]byte{certificate: made.Certificate, key: made.Key} {
		authority.Replace(t, path, string(text))
	}
	return made, certificate, key
}

// running starts a server, and stops it when the test ends.
func running(t *testing.T, options Options) (s *Server, stop func()) {
	t.Helper()
	options.Listen, options.MetricsListen, options.Log = "127.0.0.1:0", "127.0.0.1:0", zap.NewNop()
	s, err := NewServer(options, pattern(t), rooted)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func fetch(t *testing.T, address string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestTheWebhookAnswersOverTLSAndCounts(t *testing.T) {
	_, certificate, key := files(t, t.TempDir())
	s, stop := running(t, Options{Certificate: certificate, Key: key})
	defer stop()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	ask := func(body string) (int, review) {
		response, err := client.Post("https://"+s.Addresses()[0]+"/inject", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer review
		if response.StatusCode == http.StatusOK {
			if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
		}
		return response.StatusCode, answer
	}
	about := func(pod string) string {
		return fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u-1", "object": %s}}`, pod)
	}

	if code, answer := ask(about(podWith(asks, ""))); code != 200 || answer.Response.UID != "u-1" || !answer.Response.Allowed ||
		answer.Response.PatchType != "JSONPatch" || !bytes.Contains(answer.Response.Patch, []byte("sidekeeper-web")) {
		t.Errorf("injected: %d %+v", code, answer.Response)
	}
	if code, answer := ask(about(podWith("", ""))); code != 200 || !answer.Response.Allowed || answer.Response.Patch != nil {
		t.Errorf("unchanged: %d %+v", code, answer.Response)
	}
	if code, answer := ask(about(podWith(`"sidekeeper.io/inject": "x"`, ""))); code != 200 || answer.Response.Allowed ||
		answer.Response.Status.Code != 422 || !strings.HasPrefix(answer.Response.Status.Message, "sidekeeper: annotation sidekeeper.io/inject") {
		t.Errorf("denied: %d %+v", code, answer.Response)
	}
	for _, body := range []string{"", "{}", `{"kind": "AdmissionReview"}`, `[]`} {
		if code, _ := ask(body); code != http.StatusBadRequest {
			t.Errorf("%q: %d", body, code)
		}
	}
	_, metrics := fetch(t, s.Addresses()[1]+"/metrics")
	for _, line := range []string{
		`sidekeeper_injector_reviews_total{outcome="injected"} 1`, `sidekeeper_injector_reviews_total{outcome="denied"} 1`,
		`sidekeeper_injector_reviews_total{outcome="unchanged"} 1`, "sidekeeper_injector_certificate_failures_total 0",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// Whoever reaches the port sends what it likes: API servers show no certificate.
func TestBodiesThatDoNotComeKeepNoAPIServerOut(t *testing.T) {
	_, certificate, key := files(t, t.TempDir())
	s, stop := running(t, Options{Certificate: certificate, Key: key})
	defer stop()
	flood, end := context.WithCancel(t.Context())
	var silent sync.WaitGroup
	defer silent.Wait()
	defer end()
	begun := make(chan struct{}, 3*mostAtOnce)
	for range cap(begun) {
		silent.Go(func() {
			for flood.Err() == nil {
				conn, err := tls.Dial("tcp", s.Addresses()[0], &tls.Config{InsecureSkipVerify: true})
				if err != nil {
					continue
				}
				fmt.Fprint(conn, "POST /inject HTTP/1.1\r\nHost: injector\r\nContent-Length: 100\r\n\r\n{")
				select {
				case begun <- struct{}{}:
				default:
				}
				_, _ = io.ReadAll(conn)
				conn.Close()
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for range 5 {
		response, err := client.Post("https://"+s.Addresses()[0]+"/inject", "application/json", strings.NewReader(
			`{"kind": "AdmissionReview", "request": {"uid": "u-1", "object": `+podWith("", "")+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("answered with %d", response.StatusCode)
		}
	}
}

func TestDuringTheShutdownDelayTheWebhookAnswersAndSaysThatItIsNotReady(t *testing.T) {
	_, certificate, key := files(t, t.TempDir())
	s, stop := running(t, Options{Certificate: certificate, Key: key, ShutdownDelay: time.Second})
	if code, text := fetch(t, s.Addresses()[1]+"/readyz"); code != 200 {
		t.Errorf("ready: %d %s", code, text)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	for !s.stopping.Load() {
		<-time.After(time.Millisecond)
	}
	if code, text := fetch(t, s.Addresses()[1]+"/readyz"); code != 503 || text != "stopping\n" {
		t.Errorf("stopping: %d %s", code, text)
	}
	if code, _ := fetch(t, s.Addresses()[1]+"/healthz"); code != 200 {
		t.Errorf("stopping, alive: %d", code)
	}
	<-stopped
}

func TestACertificateInFilesIsReadAgainAndABadOneIsNot(t *testing.T) {
	folder := t.TempDir()
	_, certificate, key := files(t, folder)
	k, err := newKeyFile(certificate, key, zap.NewNop(), newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	second, _, _ := files(t, folder)
	if err := k.files.Look(); err != nil || !sameCertificate(k.certificate(), second) {
		t.Errorf("the second pair is not used: %v", err)
	}
	authority.Replace(t, key, "x")
	if err := k.files.Look(); err == nil || !strings.Contains(err.Error(), key) || !sameCertificate(k.certificate(), second) {
		t.Errorf("a bad key: %v", err)
	}
}

func sameCertificate(serving *tls.Certificate, made pair) bool {
	block, _ := pem.Decode(made.Certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	return err == nil && parsed.Equal(serving.Leaf)
}

// An API server that refuses a write because of a newer version, or a patch because of its test, has told of a conflict.
func TestTheClientTellsConflictsFromOtherRefusals(t *testing.T) {
	code := http.StatusOK
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("Authorization: %s", r.Header.Get("Authorization"))
		}
		w.WriteHeader(code)
		fmt.Fprint(w, `{"data": {"tls.crt": "YQ=="}, "message": "why"}`)
	}))
	defer api.Close()
	folder := t.TempDir()
	authorities, token := filepath.Join(folder, "ca"), filepath.Join(folder, "token")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for path, text := range map[string][]byte{authorities: ca, token: []byte("secret\n")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, err := newClient(API{Server: api.URL, TokenFile: token, CAFile: authorities}, "system/injector", "injector")
	if err != nil {
		t.Fatal(err)
	}
	defer client.close()
	data, save, err := client.load(t.Context())
	if err != nil || string(data["tls.crt"]) != "a" {
		t.Fatalf("got %v, %v", data, err)
	}
	for refusal, want := range map[int]string{
		http.StatusConflict:  "PUT /api/v1/namespaces/system/secrets/injector: why: " + errConflict.Error(),
		http.StatusForbidden: "PUT /api/v1/namespaces/system/secrets/injector: why",
	} {
		code = refusal
		if err := save(t.Context(), data); err == nil || err.Error() != want {
			t.Errorf("%d: got %v, want %s", refusal, err, want)
		}
	}
}

func TestAnInjectorOutsideAPodMustBeToldWhereTheAPIServerIs(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for secret, want := range map[string]string{
		"injector": "--secret injector: it must be namespace/name", "a/b": "not in a pod",
	} {
		_, err := NewServer(Options{Secret: secret, Webhook: "w", Host: host}, pattern(t), rooted)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", secret, err)
		}
	}
}
