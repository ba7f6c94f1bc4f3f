package inject

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The annotations of pods that mean something here, besides those of the settings that a pattern lets pods choose.
const (
	annotationPrefix     = "sidekeeper.io/"
	injectAnnotation     = annotationPrefix + "inject"
	injectedAnnotation   = annotationPrefix + "injected" // written here, for pods that are shown again
	containersAnnotation = annotationPrefix + "containers"
)

// A wish is what the annotations of a pod ask for.
type wish struct {
	sidecar    bool
	containers []string          // those that call the sidecar, as the annotation names them; nil if it does not
	settings   map[string]string // by the flag's name
}

// A Refusal says to whoever made a pod what is wrong with it.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

func refuse(what, value, rule string) error {
	return &Refusal{brokenRule(what, value, fmt.Errorf("%s", rule))}
}

func brokenRule(what, value string, rule error) string {
	return fmt.Sprintf("%s is %q: %s", what, value, rule)
}

// wishOf reads the annotations. Those with our prefix that mean nothing are refused, since somebody meant something by them.
func (p *Pattern) wishOf(annotations map[string]string, namespace string) (wish, error) {
	asked := wish{settings: p.ofNamespace(namespace)}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		setting, ours := strings.CutPrefix(name, annotationPrefix)
		if !ours {
			continue
		}
		if err := p.read(&asked, setting, name, annotations[name]); err != nil {
			return wish{}, err
		}
	}
	return asked, nil
}

func (p *Pattern) read(asked *wish, setting, name, value string) (err error) {
	switch {
	case name == injectAnnotation:
		asked.sidecar, err = readSwitch(name, value)
	case name == containersAnnotation:
		asked.containers, err = readNames(name, value)
	case name == injectedAnnotation:
	case slices.Contains(p.Annotations, setting):
		asked.settings[setting] = value
	default:
		err = &Refusal{fmt.Sprintf("annotation %s: there is no such one; pods may have %s", name, p.annotationNames())}
	}
	return err
}

// annotationNames are the annotations that pods may have, for people.
func (p *Pattern) annotationNames() string {
	names := []string{injectAnnotation, containersAnnotation}
	for _, setting := range p.Annotations {
		names = append(names, annotationPrefix+setting)
	}
	return strings.Join(names, ", ")
}

func readSwitch(name, value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, refuse("annotation "+name, value, `it must be "true" or "false"`)
	}
	return value == "true", nil
}

func readNames(name, value string) ([]string, error) {
	var names []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			return nil, refuse("annotation "+name, value, "it must be names of containers, separated by commas")
		}
		if !slices.Contains(names, item) {
			names = append(names, item)
		}
	}
	return names, nil
}
