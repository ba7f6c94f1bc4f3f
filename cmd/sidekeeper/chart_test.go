package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the chart's settings and the references anew instead of comparing them with the flags")

const (
	chartValues = "../../helm/sidekeeper/values.yaml"
	chartSchema = "../../helm/sidekeeper/values.schema.json"
)

// The flags that no setting of the chart has the name of, and why.
var elsewhereInTheChart = map[string]string{
	"listen":              "each container has a socket of its own",
	"metrics-listen":      "metrics.port",
	"operator-listen":     "a socket in a volume that only the sidecar mounts, which is its default",
	"tls-cert":            "callers are in the pod",
	"tls-key":             "callers are in the pod",
	"tls-client-ca":       "callers are in the pod",
	"tls-trust-domain":    "callers are in the pod",
	"zookeeper":           "zookeeper.servers",
	"zookeeper-auth-file": "zookeeper.auth",
	"zookeeper-tls-ca":    "zookeeper.tls",
	"zookeeper-tls-cert":  "zookeeper.tls",
	"zookeeper-tls-key":   "zookeeper.tls",
}

// The settings that the chart has a default of its own for, and why.
var chartDefaults = map[string]struct{ value, why string }{
	"state-dir":   {"/run/sidekeeper/state", "Here /run/sidekeeper/state: in a volume in memory that outlives the container."},
	"sigterm":     {"handover", "Here handover: the pod's other containers end before the sidecar is stopped with the pod."},
	"socket-mode": {"0666", "Here 0666: only its own container can reach a socket, and any user there may use it."},
}

// settingsOfTheChart are the flags that are settings in the chart, in their order.
func settingsOfTheChart() []*pflag.Flag {
	var flags []*pflag.Flag
	all := new(settings).flags()
	all.SortFlags = false
	all.VisitAll(func(each *pflag.Flag) {
		if elsewhereInTheChart[each.Name] == "" {
			flags = append(flags, each)
		}
	})
	return flags
}

// valueName is what the chart calls a flag: session-timeout is sessionTimeout.
func valueName(flagName string) string {
	name := ""
	for i, word := range strings.Split(flagName, "-") {
		if i > 0 {
			word = string(unicode.ToUpper(rune(word[0]))) + word[1:]
		}
		name += word
	}
	return name
}

func settingsAsValues() string {
	var text strings.Builder
	for _, each := range settingsOfTheChart() {
		fmt.Fprintf(&text, "  # %s\n", told(each))
		fmt.Fprintf(&text, "  %s: %q\n", valueName(each.Name), chartDefaults[each.Name].value)
	}
	return text.String()
}

// told is what the chart says of a flag.
func told(each *pflag.Flag) string {
	_, help := pflag.UnquoteUsage(each)
	if first, _, _ := strings.Cut(help, " "); first == strings.ToLower(first) { // no name of the ensemble's
		help = strings.ToUpper(help[:1]) + help[1:]
	}
	if value := defaultOf(each); value != "" {
		help += ". Default: " + strings.Trim(value, "`")
	}
	return strings.TrimRight(help+". "+chartDefaults[each.Name].why, " ")
}

func settingsAsSchema() map[string]any {
	properties := map[string]any{}
	for _, each := range settingsOfTheChart() {
		property := schemaOf(each)
		property["description"] = told(each)
		properties[valueName(each.Name)] = property
	}
	return properties
}

// schemaOf is what a setting may be in the chart, which an empty one always may.
func schemaOf(each *pflag.Flag) map[string]any {
	text := func(pattern string) map[string]any {
		return map[string]any{"type": "string", "pattern": "^(|" + pattern + ")$"}
	}
	if words, ok := each.Value.(*choice); ok {
		return map[string]any{"enum": append([]string{""}, words.values...)}
	}
	switch kind := each.Value.Type(); kind {
	case "duration":
		return text(`([0-9]+(\.[0-9]+)?(ms|s|m|h))+`)
	case "bytes":
		return text(`[0-9]+(KiB|MiB|GiB)?`)
	case "mode":
		return text(`0?[0-7]{3}`)
	case "bool":
		return map[string]any{"enum": []any{"", true, false}}
	case "int":
		return map[string]any{"anyOf": []any{map[string]any{"const": ""}, map[string]any{"type": "integer", "minimum": 0}}}
	case "float64":
		return map[string]any{"anyOf": []any{map[string]any{"const": ""}, map[string]any{"type": "number", "minimum": 0}}}
	case "string":
		return map[string]any{"type": "string"}
	default:
		panic("say what a value of the chart looks like for a flag of the type " + kind)
	}
}

func TestTheChartHasEveryFlagAsASetting(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(chartValues)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "  # <settings>\n", "  # </settings>\n"
	before, rest, begins := strings.Cut(string(written), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no lines %q and %q", chartValues, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	compareOrUpdate(t, chartValues, string(written), before+begin+settingsAsValues()+end+after)
}

func TestTheChartsSchemaKnowsEverySetting(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(chartSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(written, &schema); err != nil {
		t.Fatal(err)
	}
	property(schema, "settings")["properties"] = settingsAsSchema()
	property(property(schema, "injector"), "annotations")["items"] = map[string]any{"enum": flagNames()}
	var wanted bytes.Buffer
	encoder := json.NewEncoder(&wanted)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		t.Fatal(err)
	}
	compareOrUpdate(t, chartSchema, string(written), wanted.String())
}

func TestTheChartSetsNoFlagThatDoesNotExist(t *testing.T) {
	t.Parallel()
	flags := new(settings).flags()
	for _, name := range slices.Concat(slices.Collect(maps.Keys(elsewhereInTheChart)), slices.Collect(maps.Keys(chartDefaults))) {
		if flags.Lookup(name) == nil {
			t.Errorf("the chart speaks of --%s, which the sidecar does not have", name)
		}
	}
	written, err := os.ReadFile(chartValues)
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Settings map[string]any `yaml:"settings"`
	}
	if err := yaml.Unmarshal(written, &values); err != nil {
		t.Fatal(err)
	}
	for name := range values.Settings {
		if !slices.ContainsFunc(settingsOfTheChart(), func(each *pflag.Flag) bool { return valueName(each.Name) == name }) {
			t.Errorf("settings.%s of the chart is not a flag of the sidecar", name)
		}
	}
}

func flagNames() []string {
	var names []string
	for _, each := range settingsOfTheChart() {
		names = append(names, each.Name)
	}
	return names
}

func property(schema map[string]any, name string) map[string]any {
	return schema["properties"].(map[string]any)[name].(map[string]any)
}

func compareOrUpdate(t *testing.T, path, written, wanted string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(written, wanted); diff != "" {
		t.Errorf("%s against its source (-file +source); go test ./cmd/sidekeeper -run 'TheChart|ThePage' -update writes it:\n%s", path, diff)
	}
}
