package house

import (
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shipped are the packages that users get: the program, and what their own programs import.
var shipped = []string{"./cmd/...", modulePath + "/clients/go/...", "./sidekeepertest", "./recipes"}

var folderOfTable = regexp.MustCompile("(?m)^\\| `([^`]+)/` \\| \\S.* \\|$")

func TestTheFirstFolderTellsWhatShips(t *testing.T) {
	t.Parallel()

	ships := packages(t, append([]string{"-deps"}, shipped...)...)
	all := packages(t, "./internal/...", "./test/...")

	for _, name := range all {
		switch {
		case within(name, "internal") && !slices.Contains(ships, name):
			t.Errorf("%s is part of nothing that ships: it belongs below test/", name)
		case within(name, "test") && slices.Contains(ships, name):
			t.Errorf("%s ships: it belongs below internal/", name)
		}
	}
}

// Go forbids circles between packages, and not between folders: two that lean on each other are one.
func TestNoTwoFoldersStandOnEachOther(t *testing.T) {
	t.Parallel()

	below := map[string][]string{}

	for _, line := range goList(t, "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...", modulePath+"/clients/go/...") {
		names := strings.Fields(line)
		for _, imported := range names[1:] {
			from, to := storey(names[0]), storey(imported)
			if to != "" && from != to && !slices.Contains(below[from], to) {
				below[from] = append(below[from], to)
			}
		}
	}

	var descend func(way []string)

	descend = func(way []string) {
		for _, next := range below[way[len(way)-1]] {
			if i := slices.Index(way, next); i >= 0 {
				t.Errorf("a circle: %s", strings.Join(append(way[i:], next), " -> "))

				continue
			}

			descend(append(slices.Clone(way), next))
		}
	}
	descend([]string{"cmd/sidekeeper"})
}

// storey is the folder that counts as one in the house: the first, and below internal, test, clients and cmd the second. It is empty
// for what is not ours.
func storey(name string) string {
	ours, isOurs := strings.CutPrefix(name, modulePath+"/")
	if !isOurs {
		return ""
	}

	parts := strings.SplitN(ours, "/", 3)
	if len(parts) > 1 && slices.Contains([]string{"internal", "test", "clients", "cmd"}, parts[0]) {
		return path.Join(parts[:2]...)
	}

	return parts[0]
}

func TestTheArchitectureNamesEveryFolder(t *testing.T) {
	t.Parallel()

	var told []string
	for _, match := range folderOfTable.FindAllStringSubmatch(read(t, "docs/architecture.md"), -1) {
		told = append(told, match[1])
	}

	for _, folder := range told {
		if !exists(folder) {
			t.Errorf("docs/architecture.md tells of %s, which does not exist", folder)
		}
	}

	for _, file := range files(t) {
		parts := strings.Split(file.path, "/")
		if len(parts) == 1 || strings.HasPrefix(parts[0], ".") {
			continue
		}

		if folder := storey(modulePath + "/" + path.Dir(file.path)); !slices.Contains(told, folder) && !slices.Contains(told, parts[0]) {
			t.Errorf("docs/architecture.md does not tell what %s holds", folder)

			told = append(told, folder)
		}
	}
}

// packages are those of ours, as paths from the repository's root.
func packages(t *testing.T, arguments ...string) []string {
	t.Helper()

	var names []string

	for _, line := range goList(t, arguments...) {
		if ours, isOurs := strings.CutPrefix(line, modulePath+"/"); isOurs {
			names = append(names, ours)
		}
	}

	return names
}

func goList(t *testing.T, arguments ...string) []string {
	t.Helper()

	command := exec.CommandContext(t.Context(), "go", append([]string{"list"}, arguments...)...)
	command.Dir = filepath.Join("..", "..")

	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list %q: %v", arguments, err)
	}

	return strings.Split(strings.TrimSpace(string(output)), "\n")
}
