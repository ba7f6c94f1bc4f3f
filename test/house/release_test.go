package house

import (
	"regexp"
	"slices"
	"testing"
)

// released is the version of everything that a release publishes; the tag that makes one is `v` and this.
const released = "0.1.0"

// Where the version stands for the tools of packages, and for those who copy a line of a README: the first group of each expression.
var versions = []struct {
	file       string
	expression string
	times      int
}{
	{"go.mod", `(?m)^\tgithub\.com/sidekeeper/sidekeeper/\S+ v(\S+)$`, 2},
	{"clients/go/go.mod", `(?m)^\tgithub\.com/sidekeeper/sidekeeper/\S+ v(\S+)$`, 1},
	{"helm/sidekeeper/Chart.yaml", `(?m)^(?:appV|v)ersion: (\S+)$`, 2},
	{"helm/sidekeeper/values.yaml", `(?m)^  tag: "(.*)"$`, 1},
	{"examples/kubernetes/Chart.yaml", `(?m)^    version: (\S+)$`, 1},
	{"clients/python/pyproject.toml", `(?m)^version = "(.*)"$`, 1},
	{"clients/python/CHANGELOG.md", `(?s)\n## (\S+)\n.*`, 1},
	{"clients/typescript/package.json", `"version": "(.*)"`, 1},
	{"clients/typescript/package-lock.json", `"name": "sidekeeper",\s+"version": "(.*)"`, 2},
	{"clients/typescript/CHANGELOG.md", `(?s)\n## (\S+)\n.*`, 1},
	{"clients/java/pom.xml", `<artifactId>sidekeeper</artifactId>\s+<version>(.*)</version>`, 1},
	{"clients/java/README.md", `<version>(.*)</version>`, 1},
	{"clients/java/CHANGELOG.md", `(?s)\n## (\S+)\n.*`, 1},
}

func TestEverythingThatIsReleasedHasOneVersion(t *testing.T) {
	t.Parallel()

	for _, place := range versions {
		found := regexp.MustCompile(place.expression).FindAllStringSubmatch(read(t, place.file), -1)
		if len(found) != place.times {
			t.Errorf("%s: the version stands there %d times, not %d", place.file, len(found), place.times)
		}

		if wrong := slices.IndexFunc(found, func(match []string) bool { return match[1] != released }); wrong >= 0 {
			t.Errorf("%s has version %s, not %s", place.file, found[wrong][1], released)
		}
	}
}
