package policy

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DefaultClass is that of names about which the policy says nothing.
const DefaultClass = "default"

// mostClasses bounds the series that metrics have for classes.
const mostClasses = 32

var className = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// A class is what metrics call the locks and semaphores below some prefixes, since a series for each name would be too many.
type class struct {
	name     string
	prefixes []string // none for every name
}

// Class is the class of a lock or a semaphore: the first whose prefix the name lies under.
func (p *Policy) Class(name string) string {
	for _, class := range p.classes {
		if len(class.prefixes) == 0 || slices.ContainsFunc(class.prefixes, func(prefix string) bool { return under(prefix, name) }) {
			return class.name
		}
	}
	return DefaultClass
}

// under says whether a name lies under a prefix, by whole segments.
func under(prefix, name string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }

func (p parser) class(node *yaml.Node, at string) (class, error) {
	fields, err := p.fields(node, at, "name", "prefixes")
	if err != nil {
		return class{}, err
	}
	name := fields["name"]
	if name == nil {
		return class{}, p.broken(node, at+".name", "missing", "required")
	}
	if name.Kind != yaml.ScalarNode || name.Tag != "!!str" || !className.MatchString(name.Value) {
		return class{}, p.broken(name, at+".name", shown(name), "1 to 32 lower-case letters, digits, _ and -")
	}
	if fields["prefixes"] == nil {
		return class{}, p.broken(node, at+".prefixes", "missing", "required")
	}
	prefixes, err := p.names(fields, node, at, "prefixes", p.plainPrefix)
	return class{name.Value, prefixes}, err
}

// plainPrefix says which rule a prefix breaks that is the same for all callers.
func (p parser) plainPrefix(text string) string {
	if strings.Contains(text, placeholder) {
		return "without " + placeholder + ", since a class is the same for all callers"
	}
	return p.prefix(text)
}
