package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/reload"
)

const (
	sidecarName = "sidekeeper"

	// placeholder is the name of the container for which the parts of Each are rendered. No real one has capitals.
	placeholder = "CONTAINER"
)

// A Pattern is what a pod with a sidecar consists of besides its own parts, as the chart renders it.
type Pattern struct {
	Container   map[string]any    `json:"container"` // without the flags and mounts of Each
	Volumes     []any             `json:"volumes"`
	Labels      map[string]string `json:"labels"`
	Each        Each              `json:"each"`
	Annotations []string          `json:"annotations"` // the sidecar's settings that pods may choose

	// RootPerNamespace is the path below which each namespace has a root of its own; empty for the same root in all namespaces.
	RootPerNamespace string `json:"rootPerNamespace"`
}

// Each is what comes with each container that calls the sidecar.
type Each struct {
	Argument              string `json:"argument"`              // of the sidecar
	ContainerVolumeMounts []any  `json:"containerVolumeMounts"` // of the sidecar
	Volumes               []any  `json:"volumes"`
	VolumeMounts          []any  `json:"volumeMounts"`
	Env                   []any  `json:"env"`
}

// A Check finds the first flag of the sidecar's command line whose value breaks a rule. The error is the rule alone; the flag
// is empty if it is no single one's.
type Check func(arguments []string) (flag string, err error)

// ReadPattern reads a pattern from a file, and refuses one whose sidecar would not start.
func ReadPattern(file string, check Check) (*Pattern, error) {
	text, err := reload.Read(file)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	pattern := &Pattern{}
	if err := decoder.Decode(pattern); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := pattern.validate(check); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return pattern, nil
}

func (p *Pattern) validate(check Check) error {
	if p.Container["name"] != sidecarName {
		return fmt.Errorf("container.name is %v: it must be %s", p.Container["name"], sidecarName)
	}
	if !strings.Contains(p.Each.Argument, placeholder) {
		return fmt.Errorf("each.argument is %q: %s must stand for the container's name in it", p.Each.Argument, placeholder)
	}
	chosen := slices.IndexFunc(p.Annotations, func(setting string) bool { return strings.HasSuffix(setting, rootSetting) })
	if p.RootPerNamespace != "" && chosen >= 0 {
		return fmt.Errorf("annotations[%d] is %s: with rootPerNamespace, pods cannot choose it", chosen, p.Annotations[chosen])
	}
	arguments, err := p.with(p.ofNamespace("default"), nil)
	if err != nil {
		return err
	}
	if flag, err := check(arguments); err != nil {
		return fmt.Errorf("container.args: %s", brokenRule("--"+flag, valueOf(arguments, flag), err))
	}
	return nil
}

// rootSetting is the flag that says below which path all data are; those that say so of some end with it.
const rootSetting = "root"

// layout are the directories that a sidecar has below its root.
var layout = []string{
	"agreements", "assignments", "barriers", "claims", "config", "groups", "locks", "once", "queues", "schedules", "semaphores", "sequences",
	"waits",
}

// ofNamespace are the settings that a pod's namespace decides.
func (p *Pattern) ofNamespace(namespace string) map[string]string {
	if p.RootPerNamespace == "" {
		return map[string]string{}
	}
	return map[string]string{rootSetting: path.Join(p.RootPerNamespace, namespace)}
}

// arguments is the sidecar's command line, its first word included.
func (p *Pattern) arguments() ([]string, error) {
	list, ok := p.Container["args"].([]any)
	if !ok || len(list) == 0 {
		return nil, errors.New("container.args: a list of words is missing")
	}
	arguments := make([]string, 0, len(list))
	for i, item := range list {
		word, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("container.args[%d] is %v: it must be a word", i, item)
		}
		arguments = append(arguments, word)
	}
	return arguments, nil
}

// with is the sidecar's command line with chosen settings, and with the sockets of containers. The flags stand in their order.
func (p *Pattern) with(chosen map[string]string, containers []string) ([]string, error) {
	arguments, err := p.arguments()
	if err != nil {
		return nil, err
	}
	flags := slices.DeleteFunc(slices.Clone(arguments[1:]), func(argument string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		_, replaced := chosen[name]
		return replaced
	})
	for name, value := range chosen {
		flags = append(flags, "--"+name+"="+value)
	}
	for _, container := range containers {
		flags = append(flags, strings.ReplaceAll(p.Each.Argument, placeholder, container))
	}
	slices.Sort(flags)
	return append(arguments[:1], flags...), nil
}

// valueOf is what a command line sets a flag to.
func valueOf(arguments []string, flag string) string {
	for _, argument := range arguments {
		if value, ok := strings.CutPrefix(argument, "--"+flag+"="); ok {
			return value
		}
	}
	return ""
}

// forContainer is a copy of parts of Each with the container's name in the place of the placeholder.
func forContainer(parts []any, container string) []any {
	return replaced(parts, container).([]any)
}

func replaced(part any, container string) any {
	switch part := part.(type) {
	case string:
		return strings.ReplaceAll(part, placeholder, container)
	case []any:
		list := make([]any, 0, len(part))
		for _, item := range part {
			list = append(list, replaced(item, container))
		}
		return list
	case map[string]any:
		object := maps.Clone(part)
		for key, value := range object {
			object[key] = replaced(value, container)
		}
		return object
	default:
		return part
	}
}
