package peers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

func TestLocksAreSharedWhereOtherClientsHaveThem(t *testing.T) {
	for path, flags := range map[string][]string{
		"/app/locks/orders/7":   documentedFlags(t, "--lock-root /app/locks --lock-layout nested"),
		lockRoot + "orders%2F7": nil,
	} {
		t.Run(path, func(t *testing.T) {
			s := realStage(t, 1, flags...)
			for kind := range deaf {
				t.Run(kind.String(), func(t *testing.T) { waitBehindUs(t, s, kind, "orders/7", path) })
			}
		})
	}
}

const credentials = "app:a secret"

// With credentials, a sidecar makes nodes that nobody else may use, unless it is told otherwise.
func TestOtherClientsNeedTheCredentialsOfTheSidecarOrOpenNodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	must(t, os.WriteFile(file, []byte(credentials), 0o600))
	closed := realStage(t, 1, "--root=/closed", "--zookeeper-auth-file="+file)
	open := realStage(t, 1, append(documentedFlags(t, "--acl open"), "--root=/open", "--zookeeper-auth-file="+file)...)
	for kind := range deaf {
		t.Run(kind.String(), func(t *testing.T) {
			waitBehindUs(t, open, kind, "orders", "/open/locks/orders")
			closed.credentials = []string{credentials}
			waitBehindUs(t, closed, kind, "orders", "/closed/locks/orders")
			closed.credentials = nil
			failBehindUs(t, closed, kind, "orders", "/closed/locks/orders")
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

// waitBehindUs has somebody wait for a lock that a caller holds and calls by its name, and then hold it.
func waitBehindUs(t *testing.T, s stage, kind kind, name, path string) {
	t.Helper()
	ours, err := s.client(t).Acquire(t.Context(), name, sidekeeper.LockOptions{})
	must(t, err)
	theirs, look := s.contenders(t, kind.library), s.look(t)
	if len(s.credentials) > 0 {
		must(t, look.AddAuth("digest", []byte(credentials)))
	}
	expect(t, theirs, "made", "make", "behind", kind.recipe, path)
	expect(t, theirs, "asked", "ask", "behind")
	awaitPlaces(t, look, path, 2)
	expect(t, theirs, "waits", "granted", "behind", 0)
	must(t, ours.Release(t.Context()))
	expect(t, theirs, "held", "granted", "behind", patience.Milliseconds())
	expect(t, theirs, "released", "release", "behind")
}

// failBehindUs has somebody ask for a lock that a caller holds and that may not be seen.
func failBehindUs(t *testing.T, s stage, kind kind, name, path string) {
	t.Helper()
	ours, err := s.client(t).Acquire(t.Context(), name, sidekeeper.LockOptions{})
	must(t, err)
	theirs := s.contenders(t, kind.library)
	expect(t, theirs, "made", "make", "behind", kind.recipe, path)
	expect(t, theirs, "asked", "ask", "behind")
	if got := theirs.tell(t, "granted", "behind", patience.Milliseconds()); !strings.HasPrefix(got, "failed") {
		t.Errorf("%s, want failed", got)
	}
	must(t, ours.Release(t.Context()))
}
