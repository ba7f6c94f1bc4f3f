package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const kubernetesDocument = root + "/docs/kubernetes.md"

func TestTheDocumentsTellEveryValue(t *testing.T) {
	const mark = "<!-- values -->\n"
	table := "| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows(t, "", values(t)), "")
	for _, path := range []string{kubernetesDocument, chart + "/README.md"} {
		parts := strings.Split(read(t, path), mark)
		if len(parts) != 3 {
			t.Fatalf("%s has %d marks %q, not two", path, len(parts)-1, strings.TrimSpace(mark))
		}
		compareOrUpdate(t, path, parts[0]+mark+table+mark+parts[2])
	}
}

// The schema says of each value what the comment above it says, for editors that show it. What it says of the settings comes from their flags.
func TestTheSchemaDescribesEveryValue(t *testing.T) {
	path := chart + "/values.schema.json"
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, path)), &schema); err != nil {
		t.Fatal(err)
	}
	describe(t, "", schema, values(t))
	var wanted bytes.Buffer
	encoder := json.NewEncoder(&wanted)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		t.Fatal(err)
	}
	compareOrUpdate(t, path, wanted.String())
}

// describe writes the comments of values into their schema.
func describe(t *testing.T, path string, schema map[string]any, values *yaml.Node) {
	t.Helper()
	for i := 0; i < len(values.Content); i += 2 {
		name, value := values.Content[i], values.Content[i+1]
		property, known := schema["properties"].(map[string]any)[name.Value].(map[string]any)
		if !known {
			t.Fatalf("the schema does not know %s%s", path, name.Value)
		}
		if comment := commentOf(name); comment != "" && path != "settings." {
			property["description"] = comment
		}
		if hasComments(value) {
			describe(t, path+name.Value+".", property, value)
		}
	}
}

// values are the chart's, with their comments.
func values(t *testing.T) *yaml.Node {
	t.Helper()
	var values yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	return values.Content[0]
}

// commentOf is what stands above a value, in one line.
func commentOf(name *yaml.Node) string {
	text := strings.NewReplacer("<settings>", "", "</settings>", "", "#", " ").Replace(name.HeadComment)
	return strings.Join(strings.Fields(text), " ")
}

// rows tell the values below a path, each by the comment above it. What has comments inside is told by its parts.
func rows(t *testing.T, path string, values *yaml.Node) []string {
	t.Helper()
	var told []string
	for i := 0; i < len(values.Content); i += 2 {
		name, value := values.Content[i], values.Content[i+1]
		place := strings.TrimPrefix(path+"."+name.Value, ".")
		if hasComments(value) {
			told = append(told, rows(t, place, value)...)
			continue
		}
		comment := commentOf(name)
		if comment == "" {
			t.Errorf("values.yaml says nothing of %s", place)
		}
		told = append(told, fmt.Sprintf("| %#q | %s | %s |\n", place, defaultOf(t, value), strings.ReplaceAll(comment, "|", `\|`)))
	}
	return told
}

func hasComments(value *yaml.Node) bool {
	if value.Kind != yaml.MappingNode {
		return false
	}
	for _, part := range value.Content {
		if part.HeadComment != "" {
			return true
		}
	}
	return false
}

func defaultOf(t *testing.T, value *yaml.Node) string {
	t.Helper()
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	if decoded == "" {
		return ""
	}
	if text, ok := decoded.(string); ok {
		return "`" + text + "`"
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return "`" + string(encoded) + "`"
}
