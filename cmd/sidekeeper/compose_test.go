package main

import (
	"os"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

func TestTheComposeFileSetsWhatTheSidecarKnows(t *testing.T) {
	text, err := os.ReadFile("../../docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	sidecar := compose.Services["sidecar"]
	s, err := parsed(sidecar.Environment, sidecar.Command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	if sidecar.Command[0] != "serve" || len(s.zookeeper) != len(compose.Services)-1 {
		t.Errorf("%v: it serves %v", sidecar.Command, s.zookeeper)
	}
	known := map[string]bool{}
	s.flags().VisitAll(func(flag *pflag.Flag) { known[variable(flag.Name)] = true })
	for name := range sidecar.Environment {
		if !known[name] {
			t.Errorf("%s is no setting", name)
		}
	}
}
