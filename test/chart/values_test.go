package chart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const kubernetesDocument = root + "/docs/kubernetes.md"

func TestTheDocumentTellsEveryValue(t *testing.T) {
	const mark = "<!-- values -->\n"
	document := read(t, kubernetesDocument)
	parts := strings.Split(document, mark)
	if len(parts) != 3 {
		t.Fatalf("%s has %d marks %q, not two", kubernetesDocument, len(parts)-1, strings.TrimSpace(mark))
	}
	var values yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	table := "| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows(t, "", values.Content[0]), "")
	compareOrUpdate(t, kubernetesDocument, parts[0]+mark+table+mark+parts[2])
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
		comment := strings.Join(strings.Fields(strings.ReplaceAll(name.HeadComment, "#", " ")), " ")
		comment = strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(comment, "<settings>", ""), "</settings>", ""))
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
