package house

import (
	"strings"
	"testing"
)

// largest is how many bytes a file of the repository may have: pictures have 200,000, and a program has millions.
const largest = 1_000_000

func TestNoProgramIsPartOfTheRepository(t *testing.T) {
	t.Parallel()

	for _, file := range files(t) {
		if len(file.text) > largest || strings.HasPrefix(file.text, "\x7fELF") {
			t.Errorf("%s has %d bytes: what a build makes is no part of the repository", file.path, len(file.text))
		}
	}
}
