package house

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	operationRow   = regexp.MustCompile("(?m)^\\| `sidekeeper_zookeeper_request_seconds` .*?`operation`: ([^|]*) \\|")
	operationNamed = regexp.MustCompile(`(?:call|write|makeNode|Observe)\((?:(?:context\.Background\(\)|[^"()\n]*), )?"(\w+)"`)
)

// unmeasured are what only `sidekeeper doctor` and the preflight ask.
var unmeasured = []string{"getAcl", "whoAmI"}

func TestOperationsOfTheMetricsAreThoseThatSessionsDo(t *testing.T) {
	t.Parallel()

	row := operationRow.FindStringSubmatch(read(t, "docs/metrics.md"))
	if row == nil {
		t.Fatal("docs/metrics.md has no row that this test can read")
	}

	documented := strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")

	done := map[string]bool{}

	for _, file := range files(t, ".go") {
		if path.Dir(file.path) != "internal/zookeeper" || file.isTest() {
			continue
		}

		for _, named := range operationNamed.FindAllStringSubmatch(file.text, -1) {
			done[named[1]] = true
		}
	}

	maps.DeleteFunc(done, func(operation string, _ bool) bool { return slices.Contains(unmeasured, operation) })

	if diff := cmp.Diff(documented, slices.Sorted(maps.Keys(done))); diff != "" {
		t.Errorf("operations (-docs/metrics.md +internal/zookeeper):\n%s", diff)
	}
}
