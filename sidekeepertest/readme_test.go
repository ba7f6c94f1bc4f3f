package sidekeepertest_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
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

func TestWhatTheReadmesShowInGoRuns(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	t.Setenv(sidekeeper.AddressVariable, sidecar.Address())
	token := int64(0)
	err := bill(t.Context(), func(_ context.Context, fencingToken int64) error {
		token = fencingToken
		return nil
	})
	if err != nil || token == 0 {
		t.Errorf("token %d, error %v", token, err)
	}
	source := read(t, "readme_test.go")
	for _, name := range []string{"../README.md", "../clients/go/README.md"} {
		_, shown, _ := strings.Cut(read(t, name), "```go\n")
		shown, _, found := strings.Cut(shown, "```")
		if !found || !strings.Contains(unindented(source), unindented(shown)) {
			t.Errorf("this test does not run what %s shows:\n%s", name, shown)
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
