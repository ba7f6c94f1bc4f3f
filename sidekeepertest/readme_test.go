package sidekeepertest_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// bill is what the README shows.
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

func TestWhatTheReadmeShowsInGoRuns(t *testing.T) {
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
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, found := strings.Cut(shown, "```")
	if !found || !strings.Contains(unindented(string(source)), unindented(shown)) {
		t.Errorf("this test does not run\n%s", shown)
	}
}

func unindented(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	return lines.String()
}
