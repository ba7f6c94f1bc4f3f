package inject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// longestName is what the name of a container may have for its volume to have a name too, of at most 63 characters.
const longestName = 52

// An operation is one of a JSON Patch, RFC 6902. To add a field that is there is to set it; to add an item of a list is to put
// it before those that are there.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Patch is the change, a JSON Patch, that gives a pod what it asks for: nothing if it asks for nothing or has it. What it asks
// for and cannot have is a [Refusal]. A pod that is shown again, since others have changed it meanwhile, gets what is missing. The
// warning, if any, is for whoever makes the pod.
// The namespace is the one that the API server names, whatever the pod says.
func (p *Pattern) Patch(object []byte, namespace string, check Check) (patch []byte, warning string, err error) {
	shown, err := readPod(object)
	if err != nil {
		return nil, "", err
	}
	operations, warning, err := p.change(shown, namespace, check)
	if err != nil || len(operations) == 0 {
		return nil, warning, err
	}
	patch, err = json.Marshal(operations)
	return patch, warning, err
}

func (p *Pattern) change(shown pod, namespace string, check Check) (operations []operation, warning string, err error) {
	asked, err := p.wishOf(shown.annotations(), namespace)
	if err != nil || !asked.sidecar {
		return nil, "", err
	}
	if err := p.checkPlace(shown, namespace); err != nil {
		return nil, "", err
	}
	existing := shown.sidecar()
	if existing != nil && shown.annotations()[injectedAnnotation] != "true" {
		return nil, "the pod has a container named " + sidecarName + " of its own: nothing was injected", nil
	}
	callers, err := callers(shown, asked.containers)
	if err != nil {
		return nil, "", err
	}
	arguments, err := p.checked(asked.settings, callers, check)
	if err != nil {
		return nil, "", err
	}
	missing := slices.DeleteFunc(callers, func(c container) bool { return has(items(c.fields["volumeMounts"]), "name", volumeOf(c)) })
	if existing != nil && len(missing) == 0 {
		return nil, "", nil
	}
	if err := p.checkRoom(shown, missing, existing != nil); err != nil {
		return nil, "", err
	}
	return p.operations(shown, existing, missing, arguments), "", nil
}

// checkPlace refuses a pod of a namespace that can have no root of its own, and one for another system than the sidecar's.
func (p *Pattern) checkPlace(shown pod, namespace string) error {
	switch field, system := shown.system(); {
	case p.RootPerNamespace != "" && namespace == "":
		return refuse("the pod's namespace", "", "its root is that of its namespace")
	case p.RootPerNamespace != "" && slices.Contains(layout, namespace):
		return refuse("the pod's namespace", namespace, "its root would lie inside the data of sidecars with the root "+p.RootPerNamespace)
	case system != "" && system != linux:
		return refuse(field, system, "the sidecar runs on "+linux+" alone")
	}
	return nil
}

// callers are the containers that call the sidecar: those named, or all but init containers.
func callers(shown pod, named []string) ([]container, error) {
	ordinary := slices.DeleteFunc(shown.containers("containers"), isSidecar)
	if named == nil {
		return ordinary, checkNames(ordinary)
	}
	all := append(slices.DeleteFunc(shown.containers("initContainers"), isSidecar), ordinary...)
	var chosen []container
	for _, name := range named {
		i := slices.IndexFunc(all, func(c container) bool { return c.name == name })
		if i < 0 {
			return nil, refuse("annotation "+containersAnnotation, name, "the pod has no such container; it has "+strings.Join(namesOf(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, checkNames(chosen)
}

func isSidecar(c container) bool { return c.name == sidecarName }

func namesOf(containers []container) []string {
	names := make([]string, 0, len(containers))
	for _, c := range containers {
		names = append(names, c.name)
	}
	return names
}

// checkNames refuses names from which no volume's name can be made.
func checkNames(containers []container) error {
	for _, c := range containers {
		if len(c.name) > longestName || c.name == "zookeeper-auth" || c.name == "zookeeper-tls" {
			return refuse("container", c.name,
				fmt.Sprintf("one with a sidecar has a name of at most %d characters, and neither zookeeper-auth nor zookeeper-tls", longestName))
		}
	}
	return nil
}

func volumeOf(c container) string { return sidecarName + "-" + c.name }

// checked is the sidecar's command line, if it obeys the sidecar's rules.
func (p *Pattern) checked(settings map[string]string, callers []container, check Check) ([]string, error) {
	arguments, err := p.with(settings, namesOf(callers))
	if err != nil {
		return nil, err
	}
	flag, err := check(arguments)
	if err == nil {
		return arguments, nil
	}
	if value, chosen := settings[flag]; chosen {
		return nil, refuse("annotation "+annotationPrefix+flag, value, err.Error())
	}
	return nil, &Refusal{"with the settings of this pod, " + brokenRule("--"+flag, valueOf(arguments, flag), err)}
}

// checkRoom refuses pods that have something of their own where the sidecar's parts belong.
func (p *Pattern) checkRoom(shown pod, callers []container, injected bool) error {
	var volumes []any
	if !injected {
		volumes = slices.Clone(p.Volumes)
	}
	for _, c := range callers {
		volumes = append(volumes, forContainer(p.Each.Volumes, c.name)...)
		for _, mount := range forContainer(p.Each.VolumeMounts, c.name) {
			if path := text(mount, "mountPath"); has(items(c.fields["volumeMounts"]), "mountPath", path) {
				return refuse("container "+c.name+": mountPath", path, "the sidecar's socket belongs there")
			}
		}
	}
	for _, volume := range volumes {
		if name := text(volume, "name"); has(items(shown.spec()["volumes"]), "name", name) {
			return refuse("volume", name, "the sidecar's volume has that name")
		}
	}
	return nil
}

func (p *Pattern) operations(shown pod, existing *container, callers []container, arguments []string) []operation {
	var operations []operation
	for _, c := range callers {
		operations = append(operations, p.toCaller(c)...)
	}
	volumes := slices.Clone(items(shown.spec()["volumes"]))
	if existing == nil {
		volumes = append(volumes, p.Volumes...)
	}
	for _, c := range callers {
		volumes = append(volumes, forContainer(p.Each.Volumes, c.name)...)
	}
	return append(operations,
		operation{"add", "/spec/volumes", volumes},
		p.toSidecar(shown, existing, callers, arguments),
		marked(shown, "annotations", map[string]string{injectedAnnotation: "true"}),
		marked(shown, "labels", p.Labels),
	)
}

// toCaller gives a container its socket, and the variable that says where it is unless it has one of its own.
func (p *Pattern) toCaller(c container) []operation {
	mounts := append(slices.Clone(items(c.fields["volumeMounts"])), forContainer(p.Each.VolumeMounts, c.name)...)
	env := slices.Clone(items(c.fields["env"]))
	for _, variable := range forContainer(p.Each.Env, c.name) {
		if !has(env, "name", text(variable, "name")) {
			env = append(env, variable)
		}
	}
	return []operation{{"add", c.path + "/volumeMounts", mounts}, {"add", c.path + "/env", env}}
}

// toSidecar puts the sidecar before all other init containers, so that they can call it, or completes the one that is there.
func (p *Pattern) toSidecar(shown pod, existing *container, callers []container, arguments []string) operation {
	sidecar := maps.Clone(p.Container)
	if existing != nil {
		sidecar = maps.Clone(existing.fields)
	}
	mounts := slices.Clone(items(sidecar["volumeMounts"]))
	for _, c := range callers {
		mounts = append(mounts, forContainer(p.Each.ContainerVolumeMounts, c.name)...)
	}
	sidecar["args"], sidecar["volumeMounts"] = arguments, mounts
	switch {
	case existing != nil:
		return operation{"replace", existing.path, sidecar}
	case len(items(shown.spec()["initContainers"])) > 0:
		return operation{"add", "/spec/initContainers/0", sidecar}
	default:
		return operation{"add", "/spec/initContainers", []any{sidecar}}
	}
}

// marked adds to the labels or annotations of a pod.
func marked(shown pod, field string, marks map[string]string) operation {
	all := map[string]any{}
	maps.Copy(all, object(object(shown["metadata"])[field]))
	for name, value := range marks {
		all[name] = value
	}
	return operation{"add", "/metadata/" + field, all}
}
