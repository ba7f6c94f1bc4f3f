package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// Whatever can be limited, by a flag or in the policy, stands in the one table of limits, and in that of the policy's fields.
func TestTheTableOfLimitsHasEveryLimit(t *testing.T) {
	t.Parallel()
	table := section(t, "../../docs/limits.md", "## What one caller may have")
	fields := section(t, "../../docs/security.md", "### Limits in the policy")
	for _, name := range policy.LimitNames() {
		if !hasRow(table, "(`"+name+"`)") || !hasRow(fields, "| `"+name+"` |") {
			t.Errorf("docs/limits.md or docs/security.md lacks a row of %s", name)
		}
	}
	new(settings).flags().VisitAll(func(flag *pflag.Flag) {
		if (strings.HasPrefix(flag.Name, "max-") || flag.Name == "ephemeral-bytes") && !hasRow(table, "`--"+flag.Name+"`") {
			t.Errorf("docs/limits.md lacks a row of --%s", flag.Name)
		}
	})
}

// section is what stands below a heading of a page, up to the next chapter.
func section(t *testing.T, path, heading string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(content), "\n"+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func hasRow(table, part string) bool {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, part) {
			return true
		}
	}
	return false
}

func TestServeGivesAnIdentityWhatThePolicySays(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "policy.yaml")
	text := "rules: []\nlimits: [{identities: ['socket:one'], leases: 5, watched_nodes: 6}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parsed(nil, "--zookeeper", "localhost:1", "--policy", file, "--max-leases", "100", "--max-watched", "1000",
		"--listen", "unix://"+folder+"/a?identity=one", "--listen", "unix://"+folder+"/b?identity=two")
	if err != nil {
		t.Fatal(err)
	}
	metrics := server.NewMetrics()
	serving := s.serverOptions(zap.NewNop(), audit{}, metrics, traces{})
	services := s.serviceOptions(zap.NewNop(), audit{}, metrics, serving.Limits)
	content, err := policy.Parse(file, []byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	serving.Limits.Follow(func() *policy.Policy { return content })
	for identity, want := range map[string][2]int{"socket:one": {5, 6}, "socket:two": {75, 750}} {
		if got := [2]int{services.LeaseShare(identity), services.WatchShare(identity)}; got != want {
			t.Errorf("%s: got %v; want %v", identity, got, want)
		}
	}
}
