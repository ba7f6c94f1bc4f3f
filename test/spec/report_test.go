//go:build spec

package spec_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A line of a report says which code it is about, which schedules were admitted, and how many traces these had.
const reportLine = "%s schedules %d+%d: %d traces admitted\n"

// readReport is how many traces were admitted of which schedules, of this very code.
func readReport(t *testing.T) map[schedulesOf]int {
	t.Helper()
	text, err := os.ReadFile(*report)
	if err != nil && *report != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	admitted := map[schedulesOf]int{}
	for line := range strings.Lines(string(text)) {
		var of string
		var some schedulesOf
		var count int
		if n, _ := fmt.Sscanf(line, reportLine, &of, &some.first, &some.count, &count); n == 4 && of == codeVersion(t) {
			admitted[some] = count
		}
	}
	return admitted
}

func noteAdmitted(t *testing.T, some schedulesOf, count int) {
	t.Helper()
	if *report == "" {
		return
	}
	file, err := os.OpenFile(*report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, reportLine, codeVersion(t), some.first, some.count, count); err != nil {
		t.Fatal(err)
	}
}

// codeVersion names the code of the tree as it stands.
func codeVersion(t *testing.T) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "sh", "-c", "(git rev-parse HEAD; git diff HEAD) | git hash-object --stdin").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(said))
}
