package sidekeepertest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/dev"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// bill is what the README shows, and that of the Go client.
func bill(ctx context.Context, work func(context.Context, int64) error) error {
	client, err := sidekeeper.Dial("") // where SIDEKEEPER_ADDRESS says
	if err != nil {
		return err
	}
	defer client.Close()
	return client.WithLock(ctx, "orders", sidekeeper.LockOptions{Owner: "billing"}, func(ctx context.Context, lock *sidekeeper.Lock) error {
		return work(ctx, lock.FencingToken()) // ctx ends when the lock is lost
	})
}

// secured is what the README of the Go client shows of TLS.
func secured(ctx context.Context) error {
	ca, err := os.ReadFile("certificates/ca.pem") // of the authority that has signed the sidecar's certificate
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(ca)
	client, err := sidekeeper.Dial("", sidekeeper.WithTLS(&tls.Config{
		RootCAs: authorities,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // for each connection
			own, err := tls.LoadX509KeyPair("certificates/client.pem", "certificates/client-key.pem")
			return &own, err
		},
	}))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.WithLock(ctx, "orders", sidekeeper.LockOptions{}, func(context.Context, *sidekeeper.Lock) error { return nil })
}

func TestWhatTheReadmeShowsOfTLSRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	sidecar, err := dev.New(t.Context(), dev.Options{Listen: []string{"127.0.0.1:0"}, TLSFolder: "certificates"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { served <- sidecar.Serve(ctx) }()
	t.Setenv(sidekeeper.AddressVariable, sidecar.Addresses()[1])
	if err := secured(t.Context()); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// deploy is what the README of the Go client shows of claims.
func deploy(ctx context.Context, client *sidekeeper.Client, id string, work func(context.Context, int64) error) error {
	claim, err := client.Claim(ctx, "staging", sidekeeper.ClaimOptions{ID: id, ReserveFor: 2 * time.Hour, Reason: "deploys release 7"})
	if err != nil {
		return err // ask again with the same id: it answers with the same claim
	}
	return work(ctx, claim.FencingToken()) // until claim.Until(), unless it is extended
}

func TestWhatTheReadmesShowInGoRuns(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	t.Setenv(sidekeeper.AddressVariable, sidecar.Address())
	token := int64(0)
	work := func(_ context.Context, fencingToken int64) error {
		token = fencingToken
		return nil
	}
	if err := bill(t.Context(), work); err != nil || token == 0 {
		t.Errorf("token %d, error %v", token, err)
	}
	token = 0
	if err := deploy(t.Context(), sidecar.Client(), strings.Repeat("7", 32), work); err != nil || token == 0 {
		t.Errorf("token %d of the claim, error %v", token, err)
	}
	source := unindented(read(t, "readme_test.go"))
	for _, name := range []string{"../README.md", "../clients/go/README.md"} {
		blocks := strings.Split(read(t, name), "```go\n")
		if len(blocks) < 2 {
			t.Errorf("%s shows nothing", name)
		}
		for _, block := range blocks[1:] {
			if shown, _, found := strings.Cut(block, "```"); !found || !strings.Contains(source, unindented(shown)) {
				t.Errorf("this test does not run what %s shows:\n%s", name, shown)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func unindented(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	return lines.String()
}
