package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// A pod is a pod as it came, in which only a few places are looked at.
type pod map[string]any

func readPod(text []byte) (pod, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	p := pod{}
	if err := decoder.Decode(&p); err != nil {
		return nil, &Refusal{fmt.Sprintf("the pod is no JSON object: %v", err)}
	}
	return p, nil
}

func (p pod) spec() map[string]any { return object(p["spec"]) }

// linux is the one operating system that the sidecar's image is for.
const linux = "linux"

// system is the operating system that the pod says it is for, and the field that says so; empty if it does not say.
func (p pod) system() (field, name string) {
	if name := text(p.spec()["os"], "name"); name != "" {
		return "spec.os.name", name
	}
	const label = "kubernetes.io/os"
	return "spec.nodeSelector[" + label + "]", text(p.spec()["nodeSelector"], label)
}

func (p pod) annotations() map[string]string {
	annotations := map[string]string{}
	for name, value := range object(object(p["metadata"])["annotations"]) {
		annotations[name], _ = value.(string)
	}
	return annotations
}

// A container is one of a pod's, and where it stands.
type container struct {
	fields map[string]any
	name   string
	path   string // in JSON Pointer
}

// containers are those of the list, "containers" or "initContainers".
func (p pod) containers(list string) []container {
	var found []container
	for i, item := range items(p.spec()[list]) {
		fields := object(item)
		name, _ := fields["name"].(string)
		found = append(found, container{fields, name, fmt.Sprintf("/spec/%s/%d", list, i)})
	}
	return found
}

// sidecar is the container of our name, or nil.
func (p pod) sidecar() *container {
	all := slices.Concat(p.containers("initContainers"), p.containers("containers"))
	if i := slices.IndexFunc(all, func(c container) bool { return c.name == sidecarName }); i >= 0 {
		return &all[i]
	}
	return nil
}

// object is value if it is a JSON object, else an empty one.
func object(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// items are those of value if it is a JSON array, else none.
func items(value any) []any {
	list, _ := value.([]any)
	return list
}

// has says whether one of the objects in list has this value in this field.
func has(list []any, field, value string) bool {
	return slices.ContainsFunc(list, func(item any) bool { return object(item)[field] == value })
}

// text is a field of an object.
func text(item any, field string) string {
	value, _ := object(item)[field].(string)
	return value
}
