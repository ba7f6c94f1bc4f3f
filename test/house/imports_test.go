package house

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A charter is what the packages of one folder may import: of ours by folder, and of others not at all what
// is closed to them. A folder's charter covers the folders below it.
type charter struct {
	folder string
	ours   []string
	closed []string
}

// Who may stand on whom. The longest folder that fits counts. Tests may import what they like; whatever only tests
// import still needs a line.
var charters = []charter{
	{folder: "gen"},
	{folder: "recipes", ours: []string{"internal/trace"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{
		folder: "service", ours: []string{
			"gen", "recipes", "internal/caller", "internal/cron", "internal/journal", "internal/lease", "internal/outbox", "internal/trace",
		},
		closed: zooKeeper,
	},
	{
		folder: "internal/server",
		ours: []string{
			"service", "gen", "internal/budget", "internal/caller", "internal/certificate", "internal/fields", "internal/gateway",
			"internal/httpconns", "internal/methods", "internal/ownpages", "internal/policy", "internal/reload",
		},
		closed: zooKeeper,
	},
	{
		folder: "internal/budget", ours: []string{"service", "gen", "internal/caller", "internal/fields", "internal/methods", "internal/policy"},
		closed: zooKeeper,
	},
	{folder: "internal/fields", ours: []string{"gen"}, closed: slices.Concat(logs, zooKeeper)},
	{folder: "internal/methods", ours: []string{"gen"}, closed: zooKeeper},
	{folder: "internal/caller", ours: []string{"internal/policy"}, closed: zooKeeper},
	{folder: "internal/policy", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/journal", ours: []string{"recipes"}, closed: slices.Concat(wire, zooKeeper)},
	{folder: "internal/quota", ours: []string{"recipes"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{
		folder: "internal/zookeeper", ours: []string{"recipes", "internal/jute", "internal/quota", "internal/sasl", "internal/trace"},
		closed: wire,
	},
	{folder: "internal/sasl", ours: []string{"internal/reload"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/lease", ours: []string{"internal/trace"}, closed: slices.Concat(wire, logs, zooKeeper, waits)},
	{folder: "internal/cron", closed: slices.Concat(wire, logs, zooKeeper, waits)},
	{folder: "internal/outbox", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/jute"},
	{folder: "internal/trace"},
	{folder: "internal/embedded", ours: []string{"recipes", "internal/jute"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{
		folder: "internal/dev", ours: []string{
			"service", "internal/server", "internal/zookeeper", "internal/embedded", "internal/certificate", "internal/trace",
		},
		closed: slices.Concat(wire, zooKeeper),
	},
	{folder: "internal/tracing", closed: zooKeeper},
	{folder: "internal/doctor", ours: []string{"recipes", "internal/quota", "internal/zookeeper"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "examples", ours: []string{"clients/go"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/exit", ours: []string{"clients/go"}, closed: slices.Concat(logs, zooKeeper)},
	{
		folder: "internal/supervise", ours: []string{"internal/exit", "internal/show", "internal/sink", "clients/go"},
		closed: slices.Concat(wire, logs, zooKeeper),
	},
	{folder: "internal/top", ours: []string{"service", "internal/exit", "internal/show"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{
		folder: "internal/configsync", ours: []string{"internal/exit", "internal/show", "internal/supervise", "clients/go", "gen"},
		closed: slices.Concat(logs, zooKeeper),
	},
	{folder: "internal/show", closed: slices.Concat(wire[:1], logs, zooKeeper)},
	{folder: "internal/sink", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/certificate", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/reload", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/gateway", closed: slices.Concat(logs, zooKeeper)},
	{
		folder: "internal/console", ours: []string{
			"gen", "internal/fields", "internal/gateway", "internal/httpconns", "internal/ownpages", "internal/show",
		},
		closed: slices.Concat(logs, zooKeeper),
	},
	{folder: "internal/ownpages", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "internal/httpconns", closed: slices.Concat(wire, logs, zooKeeper)},
	{
		folder: "internal/inject", ours: []string{"internal/certificate", "internal/httpconns", "internal/reload"},
		closed: slices.Concat(wire, zooKeeper),
	},
	{folder: "clients/go", ours: []string{"gen"}, closed: slices.Concat(logs[:1], zooKeeper)}, // applications give it a slog.Logger
	{folder: "clients/go/k8s", ours: []string{"clients/go/sidekeeper"}, closed: slices.Concat(wire, logs[:1], zooKeeper)},
	{folder: "sidekeepertest", ours: []string{"internal/dev", "clients/go", "gen"}, closed: slices.Concat(logs, zooKeeper)},
	{folder: "cmd", ours: []string{"service", "recipes", "internal", "clients/go", "gen"}, closed: zooKeeper},
	{folder: "tools/reference", closed: slices.Concat(wire[:1], logs, zooKeeper)},
	{folder: "tools/language", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "tools/lanes", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "tools/pictures", ours: []string{"clients/go"}, closed: slices.Concat(wire, zooKeeper)},
	{folder: "tools/alerts", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "tools/controllers", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "tools/databases", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/support", ours: []string{"recipes"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/support/standin", ours: []string{"recipes", "internal/embedded"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/support/ensemble", ours: []string{"test/support"}, closed: wire},
	{folder: "test/support/expect", ours: []string{"gen"}, closed: zooKeeper},
	{folder: "test/ensemble", ours: []string{"test/support"}, closed: wire},
	{folder: "test/simulation", ours: []string{"internal/embedded"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/explore", ours: []string{"internal/lease"}, closed: slices.Concat(wire, logs, zooKeeper, waits)},
	{
		folder: "test/traces", ours: []string{"internal/trace", "test/simulation", "test/chaos/txnlog"},
		closed: slices.Concat(wire, logs, zooKeeper),
	},
	{folder: "test/kube", ours: []string{"test/support"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/bench", ours: []string{"test/support", "clients/go", "gen"}, closed: logs},
	{folder: "test/chaos", ours: []string{"test/support", "clients/go", "gen"}, closed: logs},
	{folder: "test/chaos/history", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/chaos/crosscheck", ours: []string{"test/support/full"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/chaos/linear", closed: slices.Concat(wire, logs, zooKeeper)},
	{folder: "test/chaos/txnlog", ours: []string{"internal/jute", "test/support/link"}, closed: slices.Concat(wire, logs, zooKeeper)},
	{
		folder: "test/chaos/judge", ours: []string{"test/chaos/history", "test/chaos/txnlog", "test/chaos/linear"},
		closed: slices.Concat(wire, logs, zooKeeper),
	},
}

// What some folders must not know about.
var (
	wire      = []string{"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto"}
	logs      = []string{"go.uber.org/zap", "log", "log/slog"}
	zooKeeper = []string{"github.com/go-zookeeper/zk"}
	waits     = []string{"sync", "context"}
)

// A machine decides the same for the same events: it has no goroutine, and reads no clock.
func TestAMachineReadsNoClock(t *testing.T) {
	t.Parallel()
	read := 0
	for _, file := range files(t, ".go") {
		if !strings.HasPrefix(file.path, "internal/lease/") || strings.HasSuffix(file.path, "_test.go") {
			continue
		}
		read++
		if found := regexp.MustCompile(`time\.(Now|Since|Until|After|Sleep)|\bgo func|\bchan\b`).FindString(file.text); found != "" {
			t.Errorf("%s has %q", file.path, found)
		}
	}
	if read == 0 {
		t.Error("there is no machine")
	}
}

func TestPackagesImportOnlyWhatTheirCharterAllows(t *testing.T) {
	t.Parallel()

	for _, file := range files(t, ".go") {
		if file.isTest() {
			continue
		}

		rule, found := charterOf(path.Dir(file.path))
		if !found {
			t.Errorf("%s: no charter says what %s may import", file.path, path.Dir(file.path))

			continue
		}

		for _, imported := range importsOf(t, file) {
			if !rule.allows(imported) {
				t.Errorf("%s imports %s, which the charter of %s does not allow", file.path, imported, rule.folder)
			}
		}
	}
}

func TestCharterIsAboutFoldersThatExist(t *testing.T) {
	t.Parallel()

	for _, rule := range charters {
		for _, folder := range append([]string{rule.folder}, rule.ours...) {
			if !exists(folder) {
				t.Errorf("the charter of %s speaks of %s, which does not exist", rule.folder, folder)
			}
		}
	}
}

func TestCharterRefuses(t *testing.T) {
	t.Parallel()

	for _, refused := range []struct{ folder, imported string }{
		{"recipes", "google.golang.org/grpc/codes"},
		{"recipes", modulePath + "/internal/zookeeper"},
		{"service", modulePath + "/internal/zookeeper"},
		{"service", modulePath + "/internal/server"},
		{"internal/caller", modulePath + "/service"},
		{"service", "github.com/go-zookeeper/zk"},
		{"clients/go", modulePath + "/recipes"},
		{"internal/zookeeper", modulePath + "/test/support/ensemble"},
		{"test/support/link", modulePath + "/service"},
	} {
		rule, found := charterOf(refused.folder)
		if !found || rule.allows(refused.imported) {
			t.Errorf("%s may import %s", refused.folder, refused.imported)
		}
	}
}

func charterOf(folder string) (charter, bool) {
	var best charter

	for _, rule := range charters {
		if within(folder, rule.folder) && len(rule.folder) > len(best.folder) {
			best = rule
		}
	}

	return best, best.folder != ""
}

func (c charter) allows(imported string) bool {
	ours, isOurs := strings.CutPrefix(imported, modulePath+"/")
	if isOurs {
		return within(ours, c.folder) || withinOne(ours, c.ours)
	}

	return !withinOne(imported, c.closed)
}

// within says whether name is the folder or lies below it.
func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func withinOne(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(name, folder) })
}

func importsOf(t *testing.T, file file) []string {
	t.Helper()

	parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}

	imported := make([]string, 0, len(parsed.Imports))

	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}

		imported = append(imported, name)
	}

	return imported
}

// heldRecipes are words of the recipes that stand on the mechanism of what is held, which names none of them.
var heldRecipes = regexp.MustCompile(`(?i)[^c]lock|member|group|semaphore|candidate|barrier`)

// leaseStreams are words of the stream of a lease. What is held is held the same whichever stream tells of it.
var leaseStreams = regexp.MustCompile(`(?i)[*.]started\b|multiplex|carried`)

func TestTheMechanismOfWhatIsHeldNamesNoRecipeAndNoStream(t *testing.T) {
	t.Parallel()

	var read int

	for _, file := range files(t, ".go") {
		if !strings.HasPrefix(file.path, "service/held") || file.isTest() {
			continue
		}

		read++

		if named := leaseStreams.FindString(file.text); named != "" {
			t.Errorf("%s says %q: what tells the kinds of streams apart stands in its line", file.path, named)
		}

		if named := heldRecipes.FindString(file.text); named != "" {
			t.Errorf("%s says %q: what is a recipe's own stands in its heldRecipe", file.path, named)
		}
	}

	if read == 0 {
		t.Error("there is no service/held*.go")
	}
}
