package house

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Versions that nobody may go below, and what was wrong before them. An older one may come back unseen with a merge or a `replace`.
var floors = []struct{ module, least, before string }{
	{"google.golang.org/grpc", "1.82.1", "GHSA-hrxh-6v49-42gf; before 1.79.3 a malformed path passed by authorization (CVE-2026-33186)"},
	{"google.golang.org/protobuf", "1.33.0", "JSON that never ends being read (CVE-2024-24786)"},
	{"golang.org/x/net", "0.23.0", "floods of HTTP/2 resets and continuations (CVE-2023-39325, CVE-2023-45288)"},
	{"golang.org/x/text", "0.3.8", "language tags that take for ever to read (CVE-2022-32149)"},
	{"github.com/prometheus/client_golang", "1.11.1", "methods of requests that fill the memory (CVE-2022-21698)"},
	{"go.yaml.in/yaml/v3", "3.0.3", "panics on malformed documents (CVE-2022-28948), and the first of the line that is kept up"},
}

func TestNoDependencyIsOlderThanIsSafe(t *testing.T) {
	t.Parallel()

	for _, folder := range shippedModules {
		built := modulesInTheBuild(t, folder)
		for _, floor := range floors {
			switch version := built[floor.module]; {
			case version == "" && folder == ".":
				t.Errorf("%s is no part of the build any more: take it off this list", floor.module)
			case version != "" && isOlder(version, floor.least):
				t.Errorf("%s: %s is %s, older than %s: %s", folder, floor.module, version, floor.least, floor.before)
			}
		}
	}
}

func TestOlderVersionsAreToldFromNewerOnes(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		version, least string
		older          bool
	}{
		{"v1.82.0", "1.82.1", true},
		{"v1.82.1", "1.82.1", false},
		{"v1.9.0", "1.82.1", true},
		{"v2.0.0", "1.82.1", false},
		{"v0.100.0", "0.23.0", false},
		{"v1.82.1-rc.1", "1.82.1", true},
		{"v1.82.1-0.20260101000000-abcdefabcdef", "1.82.1", true},
	} {
		if isOlder(c.version, c.least) != c.older {
			t.Errorf("%s against %s", c.version, c.least)
		}
	}
}

// modulesInTheBuild maps the modules that the build of the one in a folder takes code from, replacements counted, to their versions.
func modulesInTheBuild(t *testing.T, folder string) map[string]string {
	t.Helper()

	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-json", "all")
	command.Dir = filepath.Join("..", "..", folder)

	output, err := command.Output()
	if err != nil {
		t.Fatalf("list modules: %v", err)
	}

	versions := map[string]string{}

	for decoder := json.NewDecoder(strings.NewReader(string(output))); decoder.More(); {
		var module struct {
			Path, Version string
			Replace       *struct{ Version string }
		}

		if err := decoder.Decode(&module); err != nil {
			t.Fatalf("list modules: %v", err)
		}

		versions[module.Path] = module.Version
		if module.Replace != nil {
			versions[module.Path] = module.Replace.Version
		}
	}

	return versions
}

// isOlder compares `v1.2.3` with `1.2.3`. What comes before a release is older than it.
func isOlder(version, least string) bool {
	version, _, pre := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for i, part := range strings.Split(version, ".") {
		have, _ := strconv.Atoi(part)
		want, _ := strconv.Atoi(strings.Split(least, ".")[i])

		if have != want {
			return have < want
		}
	}

	return pre
}
