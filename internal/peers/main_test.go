package peers

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/ensemble"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = time.Minute

// onBoth runs a test on the embedded ensemble and on a real server.
func onBoth(t *testing.T, test func(t *testing.T, servers string)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, startEmbedded(t)) })
	t.Run("real", func(t *testing.T) { test(t, startReal(t)) })
}

func startEmbedded(t *testing.T) string {
	t.Helper()
	memory := embedded.New(embedded.Options{})
	server, err := embedded.Serve(memory, embedded.ServerOptions{})
	must(t, err)
	t.Cleanup(func() {
		server.Close()
		memory.Close()
	})
	return server.Address()
}

func startReal(t *testing.T) string {
	t.Helper()
	started, err := ensemble.Start(t.Context(), ensemble.Options{Servers: 1})
	must(t, err)
	t.Cleanup(started.Close)
	return started.ClientAddresses()[0]
}

// startSidecar starts a sidecar over an embedded ensemble, and says where ZooKeeper clients join it.
func startSidecar(t *testing.T) (sidecar *sidekeepertest.Sidecar, servers string) {
	t.Helper()
	sidecar = sidekeepertest.Start(t, sidekeepertest.Options{})
	servers = sidecar.EnsembleAddress()
	return sidecar, servers
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
