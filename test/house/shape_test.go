package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// longest is how many lines a file of ours may have. A longer one holds two things.
const longest = 400

// longer are files that may have more, and why. What a service's methods take refers to what its file has, and the other way round, and messages
// that clients have generated code of do not move.
var longer = map[string]int{"proto/sidekeeper/lock/v1/lock.proto": 660}

// emptyNames say nothing about what a folder holds, so that anything ends up in it.
var emptyNames = []string{"util", "utils", "common", "helpers", "helper", "types", "misc", "shared", "base"}

func TestNoFolderHasANameThatSaysNothing(t *testing.T) {
	t.Parallel()

	for _, file := range files(t) {
		for folder := range strings.SplitSeq(path.Dir(file.path), "/") {
			if slices.Contains(emptyNames, folder) {
				t.Errorf("%s: name the folder %q after what it holds", file.path, folder)
			}
		}
	}
}

func TestNoFileIsTooLong(t *testing.T) {
	t.Parallel()

	for _, file := range files(t, ".go", ".proto", ".sh", "Makefile", "Dockerfile") {
		if file.isGenerated() || file.isTest() {
			continue
		}

		if lines, most := file.lines(), max(longest, longer[file.path]); lines > most {
			t.Errorf("%s has %d lines, more than %d: it holds two things", file.path, lines, most)
		}
	}
}

// mostCases is how many things a select of the core may wait for. One that waits for more decides by chance which of them comes first.
const mostCases = 6

func TestNoSelectWaitsForTooMuch(t *testing.T) {
	t.Parallel()

	found := 0
	for _, file := range files(t, ".go") {
		if file.isTest() || !strings.HasPrefix(file.path, "service/") && !strings.HasPrefix(file.path, "recipes/") {
			continue
		}

		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file.path, file.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if waits, is := node.(*ast.SelectStmt); is {
				found++
				if cases := len(waits.Body.List); cases > mostCases {
					t.Errorf("%v: %d cases, more than %d", positions.Position(waits.Pos()), cases, mostCases)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("there is no select")
	}
}
