package house

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
	{"clients/go/k8s/go.mod", `(?m)^\tgithub\.com/sidekeeper/sidekeeper/\S+ v(\S+?)(?: // indirect)?$`, 2},
	{"clients/go/go.mod", `(?m)^\tgithub\.com/sidekeeper/sidekeeper/\S+ v(\S+)$`, 1},
	{"helm/sidekeeper/Chart.yaml", `(?m)^(?:appV|v)ersion: (\S+)$`, 2},
	{"helm/sidekeeper/values.yaml", `(?m)^  tag: "(.*)"$`, 1},
	{"examples/kubernetes/Chart.yaml", `(?m)^    version: (\S+)$`, 1},
	{"clients/python/src/sidekeeper/__init__.py", `(?m)^__version__ = "(.*)"$`, 1},
	{"clients/python/CHANGELOG.md", `(?s)\n## (\S+)\n.*`, 1},
	{"clients/typescript/package.json", `"version": "(.*)"`, 1},
	{"clients/typescript/package-lock.json", `"name": "sidekeeper",\s+"version": "(.*)"`, 2},
	{"clients/typescript/CHANGELOG.md", `(?s)\n## (\S+)\n.*`, 1},
	{"clients/java/pom.xml", `<artifactId>sidekeeper</artifactId>\s+<version>(.*)</version>`, 1},
	{"clients/java/README.md", `<version>(.*)</version>`, 1},
	{"clients/java/adapters/pom.xml", `<artifactId>sidekeeper-adapters</artifactId>\s+<version>(.*)</version>`, 1},
	{"clients/java/adapters/shedlock/pom.xml", `<artifactId>sidekeeper-adapters</artifactId>\s+<version>(.*)</version>`, 1},
	{"clients/java/adapters/shedlock/README.md", `<version>(.*)</version>`, 1},
	{"clients/java/adapters/spring/pom.xml", `<artifactId>sidekeeper-adapters</artifactId>\s+<version>(.*)</version>`, 1},
	{"clients/java/adapters/spring/README.md", `<version>(.*)</version>`, 1},
	{"clients/java/CHANGELOG.md", `(?s)\n## (\S+)\n.*`, 1},
	{"docs/first-lock-java.md", `<artifactId>sidekeeper</artifactId>\s+<version>(.*)</version>`, 1},
	{"docs/releases.md", `sidekeeper_([^_]+)_linux_amd64`, 1},
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

// What docs/versions.md says that each package requires, and where the program that demands it stands: the first group of each expression.
var requirements = []struct{ file, expression, said string }{
	{"internal/doctor/servers.go", `"upgrade to (\S+, \S+) or later"`, "| ensemble | ZooKeeper %s or later;"},
	{"clients/go/go.mod", `(?m)^go (\d+\.\d+)`, "| Go client | Go %s |"},
	{"clients/python/pyproject.toml", `requires-python = ">=(.*)"`, "| Python client | Python %s;"},
	{"clients/python/pyproject.toml", `"grpcio>=([\d.]+)"`, " gRPC %s, protobuf "},
	{"clients/python/pyproject.toml", `"protobuf>=([\d.]+)"`, ", protobuf %s |"},
	{"clients/typescript/package.json", `"node": ">=(.*)"`, "| TypeScript client | Node.js %s;"},
	{"clients/java/pom.xml", `<maven.compiler.release>(.*)<`, "| Java client | Java %s |"},
	{"clients/java/adapters/pom.xml", `<maven.compiler.release>(.*)<`, "| `sidekeeper-shedlock` | Java %s; "},
	{"clients/java/adapters/shedlock/pom.xml", `<artifactId>shedlock-core</artifactId>\s+<version>(.*)<`, "| ShedLock %s |"},
	{"clients/java/adapters/pom.xml", `<maven.compiler.release>(.*)<`, "| `sidekeeper-spring-boot-starter` | Java %s; "},
	{"clients/java/adapters/spring/pom.xml", `<spring-boot.version>(.*)<`, "| Spring Boot %s with "},
	{"clients/java/adapters/spring/pom.xml", `<spring-integration.version>(.*)<`, " with Spring Integration %s, "},
	{"clients/java/adapters/spring/pom.xml", `<spring-boot-4.version>(.*)<`, ", Spring Boot %s with "},
	{"clients/java/adapters/spring/pom.xml", `<spring-integration-7.version>(.*)<`, " with Spring Integration %s |"},
	{"helm/sidekeeper/Chart.yaml", `kubeVersion: ">=(\d+\.\d+)`, "| chart | Kubernetes %s |"},
	{"test/support/toolchain/toolchain.go", `gitVersion=v([\d.]+)`, "| an API server %s |"},
}

func TestTheSupportMatrixSaysWhatThePackagesRequire(t *testing.T) {
	t.Parallel()

	matrix := read(t, "docs/versions.md")

	for _, required := range requirements {
		found := regexp.MustCompile(required.expression).FindStringSubmatch(read(t, required.file))
		if found == nil {
			t.Errorf("%s: nothing matches %s", required.file, required.expression)

			continue
		}

		if said := fmt.Sprintf(required.said, found[1]); !strings.Contains(matrix, said) {
			t.Errorf("docs/versions.md: %q is not there, as %s has it", said, required.file)
		}
	}
}

var pinned = regexp.MustCompile(`^\s*(?:- )?uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// A tag can be moved to other code; a commit cannot.
func TestWorkflowsNameActionsByTheirCommit(t *testing.T) {
	t.Parallel()

	for _, workflow := range []string{".github/workflows/ci.yaml", ".github/workflows/govulncheck.yaml", ".github/workflows/release.yaml"} {
		for line := range strings.Lines(read(t, workflow)) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(strings.TrimRight(line, "\n")) {
				t.Errorf("%s: %q names no commit and version", workflow, strings.TrimSpace(line))
			}
		}
	}
}

// A job that may sign or publish runs nothing of the repository, and nothing that its build has fetched.
func TestWhatHasRightsInAReleaseRunsNothingOfTheRepository(t *testing.T) {
	t.Parallel()

	var release struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Uses, Run string }
		}
	}

	text := read(t, ".github/workflows/release.yaml")
	if err := yaml.Unmarshal([]byte(text), &release); err != nil {
		t.Fatal(err)
	}

	if rights := fmt.Sprint(release.Permissions); rights != "map[contents:read]" {
		t.Errorf("every job may %s", rights)
	}

	holders := 0

	for name, job := range release.Jobs {
		own := section(text, "  "+name+":")
		if len(job.Permissions) == 0 && !strings.Contains(own, "secrets.") {
			continue
		}

		holders++

		for _, step := range job.Steps {
			if strings.Contains(step.Uses, "checkout") || regexp.MustCompile(`\b(make|tools/|sudo|go|npm|pip|mvn)\b`).MatchString(step.Run) {
				t.Errorf("%s runs %s%s", name, step.Uses, step.Run)
			}
		}
	}

	if holders != 1 {
		t.Errorf("%d jobs have rights", holders)
	}
}

// section is what follows a line, up to the next job.
func section(text, line string) string {
	_, own, _ := strings.Cut(text, "\n"+line+"\n")
	if end := regexp.MustCompile(`(?m)^  \w+:$`).FindStringIndex(own); end != nil {
		own = own[:end[0]]
	}

	return own
}
