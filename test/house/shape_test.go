package house

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// longest is how many lines a file of ours may have. A longer one holds two things.
const longest = 400

// longer are files that may have more, and why. What a service's methods take refers to what its file has, and the other way round, and messages
// that clients have generated code of do not move.
var longer = map[string]int{"proto/sidekeeper/lock/v1/lock.proto": 580}

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
