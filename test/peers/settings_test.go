package peers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const credentials = "app:a secret"

// A place is where a sidecar has the locks, and how other clients call one of them.
type place struct {
	flags      []string
	name, path string
	known      bool   // the credentials, to the other clients
	want       string // of one of them that comes while a caller holds the lock: waits or failed
}

func TestOtherClientsShareLocksWhereTheSettingsPutThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	must(t, os.WriteFile(file, []byte(credentials), 0o600))
	guarded := "--zookeeper-auth-file=" + file
	nested := documentedFlags(t, "--lock-root /app/locks --lock-layout nested")
	open := documentedFlags(t, "--acl open")
	s := stage{servers: realEnsemble(t).ClientAddresses()}
	peers := map[bool]map[string]*peer{false: s.foreign(t)}
	s.credentials = []string{credentials}
	peers[true] = s.foreign(t)
	for name, at := range map[string]place{
		"a name is one node":           {nil, "orders/7", lockRoot + "orders%2F7", false, "waits"},
		"a name is a path":             {nested, "orders/7", "/app/locks/orders/7", false, "waits"},
		"nodes are open":               {append(open, "--root=/open", guarded), "orders", "/open/locks/orders", false, "waits"},
		"with the same credentials":    {[]string{"--root=/closed", guarded}, "orders", "/closed/locks/orders", true, "waits"},
		"without the same credentials": {[]string{"--root=/denied", guarded}, "orders", "/denied/locks/orders", false, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			client := realStage(t, 1, at.flags...).client(t)
			for kind := range deaf {
				t.Run(kind.String(), func(t *testing.T) { comeBehindUs(t, client, peers[at.known][kind.library], kind, at) })
			}
		})
	}
}

// documentedFlags are those with which the document starts a sidecar, where it uses these.
func documentedFlags(t *testing.T, using string) (flags []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(document))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		settings, found := strings.CutPrefix(strings.TrimSpace(line), "sidekeeper serve ")
		if !found || !strings.Contains(settings, using) {
			continue
		}
		words := strings.Fields(settings)
		for pair := range slices.Chunk(words, 2) {
			if pair[0] != "--zookeeper" { // the ensemble is the test's
				flags = append(flags, strings.Join(pair, "="))
			}
		}
		return flags
	}
	t.Fatalf("%s starts no sidecar with %s", document, using)
	return nil
}

// comeBehindUs has somebody ask for a lock that a caller holds and calls by its name.
func comeBehindUs(t *testing.T, client *sidekeeper.Client, theirs *peer, kind kind, at place) {
	t.Helper()
	ours, err := client.Acquire(t.Context(), at.name, sidekeeper.LockOptions{})
	must(t, err)
	expect(t, theirs, "made", "make", "behind", kind.recipe, at.path)
	expect(t, theirs, "asked", "ask", "behind")
	if at.want == "failed" {
		if got := theirs.tell(t, "granted", "behind", patience.Milliseconds()); !strings.HasPrefix(got, "failed") {
			t.Errorf("%s, want failed", got)
		}
		must(t, ours.Release(t.Context()))
		return
	}
	awaitWaiter(t, client, at.name)
	expect(t, theirs, "waits", "granted", "behind", 0)
	must(t, ours.Release(t.Context()))
	expect(t, theirs, "held", "granted", "behind", patience.Milliseconds())
	expect(t, theirs, "released", "release", "behind")
}

// awaitWaiter returns when the sidecar shows that somebody waits for a lock.
func awaitWaiter(t *testing.T, client *sidekeeper.Client, name string) {
	t.Helper()
	for view, err := range client.Watch(t.Context(), name) {
		must(t, err)
		if len(view.Waiters) > 0 {
			return
		}
	}
}
