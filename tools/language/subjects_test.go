package main

import (
	"strings"
	"testing"
)

func TestSubjectsOfCommitsAfterTheBase(t *testing.T) {
	t.Parallel()
	long := "build: a" + strings.Repeat("é", longestSubject-len("build: a"))
	for subject, says := range map[string]string{
		"zookeeper: send a heartbeat right after reconnecting": "",
		"python, java: raise what the sidecar answers":         "",
		"make unit: leave out what takes a server":             "",
		long:                  "",
		long + "é":            "has 73 characters, more than 72",
		"Send a heartbeat":    "is not `scope: imperative`",
		"Zookeeper: send":     "is not `scope: imperative`",
		"zookeeper: Sends it": "is not `scope: imperative`",
	} {
		root := repository(t)
		commit(t, root, "Everything before the base is as it is, however long its subject may be, and has no scope at all")
		base := strings.TrimSpace(must(t, root, "rev-parse", "HEAD"))
		commit(t, root, subject)
		must(t, root, "checkout", "--quiet", "-b", "side", base)
		commit(t, root, "side: do something else")
		must(t, root, "merge", "--quiet", "--no-ff", "-m", "Merge whatever", "-")
		got := textOf(checkSubjects(t.Context(), root, base))
		if says == "" && got != "" || !strings.Contains(got, says) || strings.Contains(got, "side") {
			t.Errorf("%s: got %q, want %q", subject, got, says)
		}
	}
}

func TestEveryCommitOfACloneWithoutTheBaseIsChecked(t *testing.T) {
	t.Parallel()
	root := repository(t)
	commit(t, root, "Before")
	base := strings.TrimSpace(must(t, root, "rev-parse", "HEAD"))
	for subject, says := range map[string]string{"build: go on": "", "Go on": "is not `scope: imperative`"} {
		commit(t, root, subject)
		shallow := t.TempDir()
		must(t, root, "clone", "--quiet", "--depth", "1", "file://"+root, shallow)
		got := textOf(checkSubjects(t.Context(), shallow, base))
		if says == "" && got != "" || !strings.Contains(got, says) {
			t.Errorf("%s: got %q, want %q", subject, got, says)
		}
	}
}

// repository makes an empty one.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must(t, root, "init", "--quiet")
	must(t, root, "config", "user.name", "a")
	must(t, root, "config", "user.email", "a@example.org")
	return root
}

func commit(t *testing.T, root, subject string) {
	t.Helper()
	must(t, root, "commit", "--quiet", "--allow-empty", "-m", subject)
}

func must(t *testing.T, root string, args ...string) string {
	t.Helper()
	output, err := git(t.Context(), root, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}
