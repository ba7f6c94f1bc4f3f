package main

import "slices"

// When a lane runs.
type When int

const (
	Always  When = iota // with each `make test`
	Changed             // with `make test`, unless a record says that it passed with these inputs
	Nightly             // with `make nightly` alone
)

// A Lane is a part of the tests with inputs of its own.
type Lane struct {
	Name    string
	When    When
	Owns    []string // files and folders that belong to this lane and to no other; the longest name counts
	Reads   []string // what else it rests on
	Needs   []string // the parts of tools/need whose versions count
	Builds  []string // folders in which its targets build: they run beside no other that builds there
	Targets []string // of the Makefile
	Covers  []string // targets of other lanes that its own do as well
}

// common are the inputs of every lane: how it is run, what several lanes take, and the pins of the sidecar. They belong to
// all lanes.
var common = []string{
	".ci", ".editorconfig", ".gitignore", "Makefile", "buf.gen.yaml", "buf.yaml", "go.mod", "go.sum",
	"tools/buf", "tools/databases", "tools/go.mod", "tools/go.sum", "tools/grpcurl", "tools/lanes", "tools/need", "tools/versitygw",
}

// program is what the sidecar's program and its test rig are made of.
var program = []string{
	"clients/go", "cmd", "gen", "internal", "proto", "recipes", "service", "sidekeepertest", "test/support", "test/traces",
}

// records are what lanes that have passed leave in the tree. They are no input.
const records = ".ci/passed"

// table is all lanes. Four targets run at a time, in this order: what takes long stands first, and what fills two cores by itself last.
var table = []Lane{
	{
		Name: "ensembles", Targets: []string{"test-ensembles-1", "test-ensembles-2"},
		Owns: []string{
			"cmd", "internal/doctor", "internal/embedded", "internal/supervise", "internal/zookeeper", "test/ensemble", "test/goclient",
			"test/support/ensemble",
		},
	},
	{
		Name: "core", Targets: []string{"test-core"},
		Owns: []string{
			"gen", "internal", "proto", "recipes", "service", "sidekeepertest", "test/bench", "test/support", "test/traces",
			"tools/etcd", "tools/flaky",
		},
	},
	{
		Name: "simulation", When: Changed, Needs: []string{"race"}, Targets: []string{"test-simulation"},
		Owns: []string{"test/explore", "test/simulation"}, Reads: slices.Concat(program, []string{"test/chaos"}),
	},
	{
		Name: "endtoend", When: Changed, Needs: []string{"java", "kerberos", "proxies"},
		Targets: []string{"test-endtoend-2", "test-endtoend-1", "test-doors"}, Owns: []string{"test/doors", "test/endtoend", "tools/envoy"},
		Reads: slices.Concat(program, []string{"helm", "test/chaos", "test/mutants"}),
	},
	{
		Name: "peers", When: Changed, Needs: []string{"java", "python"}, Targets: []string{"test-peers"},
		Owns: []string{"test/chaos", "test/peers"}, Reads: slices.Concat(program, []string{"docs/interoperability.md"}),
	},
	{Name: "conformance-java", Targets: []string{"conformance-java", "one-lock"}, Builds: []string{"clients/java"}},
	{Name: "conformance-typescript", Targets: []string{"conformance-typescript"}, Builds: []string{"clients/typescript"}},
	{Name: "conformance", Targets: []string{"conformance-python"}, Owns: []string{"clients/conformance", "examples/onelock"}},

	{
		Name: "go", When: Changed, Needs: []string{"race", "databases"}, Targets: []string{"test-go", "test-databases", "test-controllers"},
		Owns: []string{"clients/go", "tools/controllers"}, Reads: []string{"gen", "clients/conformance", "docs/fencing.md", "examples/fencing"},
	},
	{
		Name: "python", When: Changed, Needs: []string{"python", "databases"}, Targets: []string{"python"}, Covers: []string{"conformance-python"},
		Owns: []string{"clients/python"}, Reads: []string{"proto", "clients/conformance", "README.md", "docs/fencing.md", "examples"},
	},
	{
		Name: "typescript", When: Changed, Needs: []string{"node", "databases"}, Targets: []string{"typescript"},
		Covers: []string{"conformance-typescript"}, Builds: []string{"clients/typescript"},
		Owns: []string{"clients/typescript"}, Reads: []string{"proto", "clients/conformance", "README.md", "docs/fencing.md", "examples/flags"},
	},
	{
		Name: "java", When: Changed, Needs: []string{"java", "databases"}, Targets: []string{"java"},
		Covers: []string{"conformance-java"}, Builds: []string{"clients/java"},
		Owns: []string{"clients/java"}, Reads: []string{"proto", "clients/conformance", "README.md", "docs/fencing.md"},
	},
	{
		Name: "stubs", When: Changed, Needs: []string{"stubs"}, Targets: []string{"stubs"},
		Owns: []string{"clients/bare"}, Reads: []string{"proto"},
	},
	{
		Name: "console", When: Changed, Needs: []string{"node", "browser"}, Targets: []string{"browser", "test-console"},
		Owns: []string{"internal/console", "tools/pictures"}, Reads: []string{
			"proto", "internal/fields", "internal/gateway", "internal/httpconns", "internal/ownpages", "internal/show",
		},
	},
	{
		Name: "packaging", When: Changed, Needs: []string{"git", "image", "packages", "python", "node", "java"},
		Targets: []string{"release-check", "image-check", "test-chart"}, Builds: []string{"clients/java", "clients/typescript"},
		Owns: []string{
			"Dockerfile", ".dockerignore", "docker-compose.yaml", "helm", "test/chart", "tools/compose-check", "tools/helm", "tools/image-check",
			"tools/nfpm", "tools/registry", "tools/release", "tools/sbom",
		},
		Reads: []string{
			"clients/python/pack", "clients/python/pyproject.toml", "clients/typescript/pack", "clients/typescript/package.json",
			".github", "clients/java/pack", "clients/java/pom.xml", "clients/java/adapters", "LICENSE", "docs/kubernetes.md", "internal/inject",
		},
	},
	{
		Name: "models", When: Changed, Needs: []string{"java"}, Targets: []string{"models"},
		Owns: []string{"test/spec"}, Reads: []string{"test/traces"},
	},
	{
		Name: "traced", When: Changed, Needs: []string{"java", "python"}, Targets: []string{"traces-check"},
		Reads: []string{
			"clients/conformance", "clients/go", "clients/python", "cmd", "internal", "proto", "recipes", "service", "test/goclient", "test/simulation",
			"test/spec", "test/support", "test/traces",
		},
	},
	{
		Name: "documents", When: Changed, Needs: []string{"java", "python", "node", "git"}, Targets: []string{"test-documents", "test-alerts"},
		Owns: []string{
			"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "docs", "examples", "test/documents",
			"tools/alerts", "tools/site",
		},
		Reads: []string{
			"clients/go", "clients/java", "clients/python", "clients/typescript", "cmd", "gen", "helm", "internal/show", "proto",
		},
	},

	{
		Name: "check", Targets: []string{"check"},
		Owns: []string{
			".github", ".golangci.yaml", ".vale.ini", "test/house", "tools/check-breaking", "tools/check-generated", "tools/golangci-lint", "tools/language",
			"tools/reference", "tools/vale",
		},
	},
	{Name: "mutants", Targets: []string{"mutants"}, Owns: []string{"test/mutants"}},

	{Name: "kube", When: Nightly, Targets: []string{"kube-test"}, Owns: []string{"examples/kubernetes", "test/kube", "tools/crds", "tools/kube-apiserver"}},
	{Name: "mutants-all", When: Nightly, Targets: []string{"mutants-all"}},
	{Name: "schedules", When: Nightly, Targets: []string{"schedules"}},
	{Name: "traces", When: Nightly, Targets: []string{"traces"}},
	{Name: "chaos", When: Nightly, Targets: []string{"chaos"}},
	{Name: "restarts", When: Nightly, Targets: []string{"chaos-restarts"}},
	{Name: "ticks", When: Nightly, Targets: []string{"chaos-ticks"}},
	{Name: "alone", When: Nightly, Targets: []string{"chaos-alone"}},
	{Name: "versions", When: Nightly, Targets: []string{"skew"}, Owns: []string{"tools/skew"}},
	{Name: "fuzz", When: Nightly, Targets: []string{"fuzz"}, Owns: []string{"tools/fuzz"}},
}
