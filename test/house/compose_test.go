package house

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A composed service is what of one in docker-compose.yaml is tested.
type composed struct {
	Image       string
	Build       string
	User        string
	Command     []string
	Environment map[string]string
	Ports       []string
	Networks    []string
	NetworkMode string `yaml:"network_mode"`
}

func composition(t *testing.T) map[string]composed {
	t.Helper()
	var file struct{ Services map[string]composed }
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

var (
	published = regexp.MustCompile(`^127\.0\.0\.1:(\d+):(\d+)$`)
	shown     = regexp.MustCompile(`(?m)^#   (?:http://)?127\.0\.0\.1:(\d+)`)
	versioned = regexp.MustCompile(`:\d+\.\d+\.\d+(\.\d+)?$`)
)

func TestTheCompositionPublishesWhatItsCommentsSayAndOnLoopbackAlone(t *testing.T) {
	var ports, told []string
	for name, service := range composition(t) {
		for _, port := range service.Ports {
			if match := published.FindStringSubmatch(port); match != nil {
				ports = append(ports, match[1])
			} else {
				t.Errorf("%s publishes %s, which is not on 127.0.0.1", name, port)
			}
		}
	}
	for _, match := range shown.FindAllStringSubmatch(read(t, "docker-compose.yaml"), -1) {
		told = append(told, match[1])
	}
	slices.Sort(ports)
	if !slices.Equal(ports, told) || len(told) == 0 {
		t.Errorf("published are %v, and the comments tell of %v", ports, told)
	}
}

// What listens behind a published port is named by a flag, a variable or a relay in the same network.
func TestEachPortOfTheCompositionHasAListener(t *testing.T) {
	services := composition(t)
	for name, service := range services {
		listeners := slices.Concat(service.Command, slices.Collect(maps.Values(service.Environment)))
		for _, other := range services {
			if other.NetworkMode == "service:"+name {
				listeners = slices.Concat(listeners, other.Command)
			}
		}
		for _, port := range service.Ports {
			inside := port[strings.LastIndex(port, ":")+1:]
			listens := func(text string) bool {
				return strings.HasPrefix(text, "TCP-LISTEN:"+inside+",") || text == "0.0.0.0:"+inside
			}
			if !slices.ContainsFunc(listeners, listens) {
				t.Errorf("%s publishes %s, at which nothing listens", name, port)
			}
		}
	}
}

func TestRelaysOfTheCompositionAreNeitherOperatorsNorBesideTheEnsemble(t *testing.T) {
	relays := 0
	for name, service := range composition(t) {
		if service.Build == "" && service.Image != "sidekeeper" && !versioned.MatchString(service.Image) {
			t.Errorf("%s has image %s, whose version is not told", name, service.Image)
		}
		if !strings.Contains(service.Image, "socat") {
			continue
		}
		relays++
		if user, group, _ := strings.Cut(service.User, ":"); user == "0" || user == "65532" || user == "" || group != "65532" {
			t.Errorf("%s runs as %q", name, service.User)
		}
		if !slices.Equal(service.Networks, []string{"machine"}) && service.NetworkMode == "" {
			t.Errorf("%s is in the networks %v", name, service.Networks)
		}
	}
	if relays == 0 {
		t.Error("there is no relay")
	}
}

func TestTheCompositionSetsSettingsThatThereAre(t *testing.T) {
	known := read(t, "docs/configuration.md")
	for name := range composition(t)["sidecar"].Environment {
		if !strings.Contains(known, "| `"+name+"` |") {
			t.Errorf("there is no setting %s", name)
		}
	}
}
