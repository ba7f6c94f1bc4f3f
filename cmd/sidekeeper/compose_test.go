package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// A composition is docker-compose.yaml, as far as it is tested here.
type composition struct{ Services map[string]composed }

type composed struct {
	Command     []string
	Environment map[string]string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct{ Test string }
}

// compose reads docker-compose.yaml and the settings that its sidecar runs with.
func compose(t *testing.T) (composition, *settings) {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all composition
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	sidecar := all.Services["sidecar"]
	if len(sidecar.Command) == 0 || sidecar.Command[0] != "serve" {
		t.Fatalf("the sidecar's command is %q", sidecar.Command)
	}
	s, err := parsed(sidecar.Environment, sidecar.Command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return all, s
}

func TestTheComposeFileSetsWhatTheSidecarKnows(t *testing.T) {
	t.Parallel()
	all, s := compose(t)
	known := map[string]bool{}
	s.flags().VisitAll(func(flag *pflag.Flag) { known[variable(flag.Name)] = true })
	for name := range all.Services["sidecar"].Environment {
		if !known[name] {
			t.Errorf("%s is no setting", name)
		}
	}
}

func TestTheSidecarOfTheComposeFileKnowsItsEnsemble(t *testing.T) {
	t.Parallel()
	all, s := compose(t)
	sidecar := all.Services["sidecar"]
	servers := maps.Clone(all.Services)
	maps.DeleteFunc(servers, func(_ string, of composed) bool { return of.Environment["ZOO_MY_ID"] == "" })
	if len(s.ensemble.Servers) != len(servers) {
		t.Errorf("%d servers, and the sidecar knows %v", len(servers), s.ensemble.Servers)
	}
	for name, server := range servers {
		if !slices.Contains(s.ensemble.Servers, name+":2181") {
			t.Errorf("the sidecar does not know %s", name)
		}
		if sidecar.DependsOn[name].Condition != "service_healthy" || !strings.Contains(server.Healthcheck.Test, "^Mode") {
			t.Errorf("the sidecar does not wait until %s serves", name)
		}
		settings := server.Environment
		itself := fmt.Sprintf("server.%s=%s:2888:3888;2181", settings["ZOO_MY_ID"], name)
		if !slices.Contains(strings.Fields(settings["ZOO_SERVERS"]), itself) {
			t.Errorf("%s is not %q among %s", name, itself, settings["ZOO_SERVERS"])
		}
		has, told := settings["ZOO_TICK_TIME"]+" "+settings["ZOO_SYNC_LIMIT"], fmt.Sprint(s.ensemble.TickTime.Milliseconds(), s.ensemble.SyncLimit)
		if has != told {
			t.Errorf("%s has a tick and a sync limit of %s, and the sidecar was told %s", name, has, told)
		}
		if settings["ZOO_MAX_CLIENT_CNXNS"] != "0" {
			t.Errorf("%s takes %q connections only, and each lease is one", name, settings["ZOO_MAX_CLIENT_CNXNS"])
		}
	}
}
