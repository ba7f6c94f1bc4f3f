package house

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var dependency = regexp.MustCompile("(?m)^- `([^`]+)`: \\S.*")

func TestEveryDirectDependencyIsJustified(t *testing.T) {
	t.Parallel()

	justified := map[string]bool{}
	for _, match := range dependency.FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		justified[match[1]] = true
	}

	got := slices.Sorted(maps.Keys(justified))
	if diff := cmp.Diff(directDependencies(t), got); diff != "" {
		t.Errorf("docs/dependencies.md against go.mod (-go.mod +document):\n%s", diff)
	}
}

// Where our modules are that ship. What one of them requires directly, the first may, too.
var shippedModules = []string{".", "gen", "clients/go", "clients/go/k8s"}

func directDependencies(t *testing.T) []string {
	t.Helper()

	var direct []string

	for _, folder := range shippedModules {
		direct = append(direct, requiredBy(t, folder)...)
	}

	slices.Sort(direct)

	return slices.Compact(direct)
}

// requiredBy are the modules of others that the one in a folder requires directly.
func requiredBy(t *testing.T, folder string) []string {
	t.Helper()

	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	command.Dir = filepath.Join("..", "..", folder)

	output, err := command.Output()
	if err != nil {
		t.Fatalf("read go.mod: %v", err)
	}

	var module struct {
		Require []struct {
			Path     string `json:"Path"`
			Indirect bool   `json:"Indirect"`
		} `json:"Require"`
	}

	if err := json.Unmarshal(output, &module); err != nil {
		t.Fatalf("read go.mod: %v", err)
	}

	var direct []string

	for _, required := range module.Require {
		if !required.Indirect && !within(required.Path, modulePath) {
			direct = append(direct, required.Path)
		}
	}

	return direct
}
