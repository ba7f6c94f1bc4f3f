package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An exception is commands that are not run here.
type exception struct {
	command *regexp.Regexp
	by      string // who runs them, or that nobody does
}

// elsewhere are the commands that cannot be run here, or need not since others run them.
var elsewhere = []exception{
	of(`make( |$)`, "CI (.ci/run) runs build, check and test, and people the others, which `make help` tells"),
	of(`(bin/chaos|go test -v ./test/mutants) `, "`make chaos`"),
	of(`go test -tags spec `, "`make spec`, with fewer schedules"),
	of(`mvn test -Dtest=OverheadBench `, "`make bench-clients`"),
	of(`go test .* -bench `, "nobody but who measures; `go vet` builds the benchmarks"),
	of(`(pip|npm) install sidekeeper$`, "nobody, since it takes a registry; the clients' checks install what they have packed"),
	of(`docker build `, "`make image-check`, which builds the image without an engine"),
	of(`(kind (load|create)|docker (save|tag|push)|helm upgrade) `, "nobody, since it takes a cluster or a registry"),
	of(`npm .*/path/to/clone/`, "TestAFirstLockIsTakenAndLostInEachLanguage, in a folder that is there"),
	of(`helm install `, "TestAnInjectedPodIsTheOneOfTheTemplates, with the chart on a real API server"),
	of(`helm (dependency build|template) `, "TestTheInjectorMakesOfAnAnnotatedPodWhatTheTemplatesMake, by Helm's Go packages"),
	of(`sidekeeper config sync .* --(signal|exec) `, "TestSyncSendsASignalAfterEachChange and its neighbours in cmd/sidekeeper"),
	of(`sidekeeper barrier (wait|enter) `, "TestExamplesAreTrue, each by itself: here they would wait for others"),
	of(`sidekeeper agree (vote|abort|await) `, "TestExamplesAreTrue, each by itself: here they would wait for others"),
	of(`sidekeeper top --admin unix:`, "nobody; TestTopWritesOnceWhereThereIsNoTerminal asks the other kind of address"),
	of(`sidekeeper console$`, "TestAnOperatorBreaksAHoldWithAReasonThatIsOnRecord, in a browser"),
	of(`(sidekeeper serve .* --http-listen|curl -H) `, "TestACallOverHTTPIsOneOverGRPC"),
	of(`kubectl (apply|create|exec|expose|logs|port-forward) `, "nobody, since it takes a cluster"),
	of(`(python (issue|service|sell|worker)\.py|node service\.js|fg|curl 'localhost:8080)`, "the clients' tests of their examples"),
	of(`grpcurl .*"(invoices|apples)".*/ExpireLease`, "the clients' tests of their examples"),
	of(`go run \./examples/pool `, "TestPoolsShareQueuesUnderNodeIDsOfTheirOwn"),
	of(`go run \./examples/snowflake `, "TestTheProgramMakesIDsUnderANumberAndStopsWhenItIsLost"),
	of(`(mvn compile .*:copy-dependencies$|echo 0 >|java -cp .* Count |python count\.py )`, "examples/onelock/check, by `make one-lock`"),
	of(`curl -s http://HOST:PORT/metrics `, "TestScrapersSeeMetricsHealthAndReadinessAndProfilesAreElsewhere"),
	of(`(kinit |sidekeeper (serve|doctor) .*--zookeeper-sasl |grpcurl .*"kerberized")`, "TestALockFromATerminalByATicketOfKinit, with a KDC"),
	of(`docker compose `, "`make compose-check`, outside CI since it takes a container engine"),
}

func of(command, by string) exception { return exception{regexp.MustCompile("^" + command), by} }

func whoRuns(command string) *exception {
	for i, each := range elsewhere {
		if each.command.MatchString(standIn(command)) {
			return &elsewhere[i]
		}
	}
	return nil
}

func TestExceptionsAreOfCommandsThatDocumentsShow(t *testing.T) {
	used := map[*exception]bool{}
	for _, document := range documents(t) {
		for _, block := range blocksOf(t, document.path, document.lines) {
			for _, step := range block.steps(t, document.path) {
				used[whoRuns(step.command)] = true
			}
		}
	}
	tests := tree(t, "_test.go")
	for i := range elsewhere {
		for _, name := range testName.FindAllString(elsewhere[i].by, -1) {
			if !strings.Contains(tests, "func "+name+"(") {
				t.Errorf("there is no %s, which is to run %s", name, elsewhere[i].command)
			}
		}
		if !used[&elsewhere[i]] {
			t.Errorf("no document shows a command like %s", elsewhere[i].command)
		}
	}
}

var testName = regexp.MustCompile(`\bTest\w+`)

// tree is the text of all files whose names end so.
func tree(t *testing.T, suffix string) string {
	t.Helper()
	var text strings.Builder
	must(t, filepath.WalkDir("../..", func(name string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains(outside, entry.Name()) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, suffix) {
			return err
		}
		content, err := os.ReadFile(name)
		text.Write(content)
		return err
	}))
	return text.String()
}

// kinds are the other kinds of blocks, and who tries what stands in them, unless the reader saves it as a file; nobody where there is nothing
// to try.
var kinds = map[string]string{
	"python":     "clients/python/tests/test_readme.py, test_fence_page.py and test/peers",
	"typescript": "clients/typescript/test/readme.test.ts and fence_page.test.ts",
	"javascript": "clients/typescript/test/readme.test.ts",
	"java":       "ReadmeTest.java and FencePageTest.java of clients/java, ReadmeTest.java of its adapters, and test/peers",
	"go":         "sidekeepertest/readme_test.go, test/goclient/fence_page_test.go and test/peers",
	"sql":        "TestTheSQLOfDocumentsIsWhatIsRun, and tools/databases runs it",
	"yaml":       "",
	"xml":        "",
	"mermaid":    "",
	"text":       "",
}

// command is what a block of plain text must not begin a line with.
var command = regexp.MustCompile(`^\$? ?(bin/)?(sidekeeper|grpcurl|make|go|kubectl|helm|docker|curl|npm|npx|pip|python|node|java|mvn|export) `)

func TestEveryBlockSaysWhatItHolds(t *testing.T) {
	for _, document := range documents(t) {
		for _, block := range blocksOf(t, document.path, document.lines) {
			if _, known := kinds[block.kind]; !known && block.kind != "sh" && block.kind != "console" {
				t.Errorf("%s:%d: a block of kind %q, of which nobody knows what it holds", document.path, block.first, block.kind)
			}
			for i, line := range block.lines {
				if block.kind == "text" && command.MatchString(line) {
					t.Errorf("%s:%d: a command stands in a block of kind text, where nobody runs it", document.path, block.first+i+1)
				}
			}
		}
	}
}

// joined is where a statement goes on in the next line of a source.
var joined = regexp.MustCompile(`" \+\n\s*"`)

func TestTheSQLOfDocumentsIsWhatIsRun(t *testing.T) {
	source, err := os.ReadFile("../../clients/go/sidekeeper/fence/sql.go")
	must(t, err)
	statements := joined.ReplaceAllString(string(source), "")
	for _, document := range documents(t) {
		for _, block := range blocksOf(t, document.path, document.lines) {
			if shown := strings.Join(block.lines, "\n"); block.kind == "sql" && !strings.Contains(statements, shown) {
				t.Errorf("%s:%d: clients/go/sidekeeper/fence/sql.go has no such statement", document.path, block.first)
			}
		}
	}
}
