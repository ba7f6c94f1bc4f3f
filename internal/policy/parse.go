package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Longest is how many bytes a policy has at most.
const Longest = 1 << 20

// A parser reads one file. Its errors name the file, the line, the field, the value and the rule.
type parser struct {
	file    string
	actions []Action
	isName  func(text string) (brokenRule string)
}

// Parse reads a policy about these actions; brokenRule says which rule of names a prefix breaks, and is empty for a good one.
func Parse(file string, content []byte, actions []Action, brokenRule func(name string) string) (*Policy, error) {
	p := parser{file, actions, brokenRule}
	if len(content) > Longest {
		return nil, fmt.Errorf("%s: has %d bytes: at most %d", file, len(content), Longest)
	}
	root, err := p.document(content)
	if err != nil {
		return nil, err
	}
	fields, err := p.fields(root, "the policy", "rules", "limits", "classes")
	if err != nil {
		return nil, err
	}
	if fields["rules"] == nil {
		return nil, p.broken(root, "rules", "missing", "required")
	}
	policy := &Policy{}
	if policy.rules, err = entries(p, fields, "rules", p.rule); err != nil {
		return nil, err
	}
	if policy.limits, err = entries(p, fields, "limits", p.limiting); err != nil {
		return nil, err
	}
	if policy.classes, err = entries(p, fields, "classes", p.class); err != nil {
		return nil, err
	}
	if len(policy.classes) > mostClasses {
		return nil, p.broken(fields["classes"], "classes", fmt.Sprintf("of %d", len(policy.classes)), fmt.Sprintf("at most %d", mostClasses))
	}
	return policy, nil
}

// entries are those of a list; none if there is no such field.
func entries[T any](
	p parser, fields map[string]*yaml.Node, name string, parse func(node *yaml.Node, at string) (T, error),
) (all []T, err error) {
	if fields[name] == nil {
		return nil, nil
	}
	list, err := p.list(fields, nil, name, name)
	if err != nil {
		return nil, err
	}
	for i, node := range list {
		one, err := parse(node, fmt.Sprintf("%s[%d]", name, i))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// document is the one YAML document of a file.
func (p parser) document(content []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, another yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF), err == nil && len(document.Content) == 0:
		return nil, fmt.Errorf("%s: is empty: rules are required, and `rules: []` denies everything", p.file)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", p.file, err)
	}
	if err := decoder.Decode(&another); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: contains more than one document", p.file)
	}
	return document.Content[0], nil
}

func (p parser) rule(node *yaml.Node, at string) (rule, error) {
	fields, err := p.fields(node, at, "identities", "methods", "prefixes", "members")
	if err != nil {
		return rule{}, err
	}
	var parsed rule
	if parsed.identities, err = p.texts(fields, node, at, "identities", p.identity); err != nil {
		return rule{}, err
	}
	methods, err := p.texts(fields, node, at, "methods", p.method)
	if err != nil {
		return rule{}, err
	}
	parsed.actions = p.expand(methods)
	if parsed.prefixes, err = p.names(fields, node, at, "prefixes", p.prefix); err != nil {
		return rule{}, err
	}
	if parsed.members, err = p.names(fields, node, at, "members", p.member); err != nil {
		return rule{}, err
	}
	if fields["members"] != nil && !slices.ContainsFunc(p.actions, func(a Action) bool { return a.Member && parsed.actions[a.Name] }) {
		return rule{}, p.broken(fields["members"], at+".members", "of no use", "for rules with a method about members of groups, or about votes")
	}
	if broken := parsed.brokenPlaceholder(); broken != "" {
		return rule{}, p.broken(fields["identities"], at+".identities", strings.Join(parsed.identities, ", "), broken)
	}
	return parsed, nil
}

// names is an optional field that is a list of names; none for every name.
func (p parser) names(
	fields map[string]*yaml.Node, node *yaml.Node, at, name string, brokenRule func(text string) string,
) ([]string, error) {
	if fields[name] == nil {
		return nil, nil
	}
	names, err := p.texts(fields, node, at, name, brokenRule)
	if slices.Contains(names, everything) {
		names = nil
	}
	return names, err
}

// brokenPlaceholder says which rule of the placeholder a rule breaks: no two of its callers may have the same name.
func (r rule) brokenPlaceholder() string {
	if !slices.ContainsFunc(slices.Concat(r.prefixes, r.members), func(text string) bool { return strings.Contains(text, placeholder) }) {
		return ""
	}
	form, _, _ := strings.Cut(r.identities[0], ":")
	begins := form + ":"
	isOther := func(identity string) bool { return !strings.HasPrefix(identity, begins) }
	isBelow := strings.HasSuffix(r.identities[0], "/*") && len(r.identities) == 1
	if slices.ContainsFunc(r.identities, isOther) || r.identities[0] == Loopback || (begins+"//" == SPIFFE) && !isBelow {
		return "with " + placeholder + ", identities that begin alike, as uid:1 and uid:2, or a single SPIFFE path with /* at its end"
	}
	return ""
}

// identity says which rule a pattern of identities breaks.
func (p parser) identity(pattern string) string {
	if pattern == everything {
		return ""
	}
	if below, ok := strings.CutSuffix(pattern, "/*"); ok && strings.HasPrefix(pattern, SPIFFE) {
		return BrokenIdentityRule(below)
	}
	return BrokenIdentityRule(pattern)
}

// method says which rule a pattern of methods breaks.
func (p parser) method(pattern string) string {
	service, method, ok := strings.Cut(pattern, "/")
	var known []string
	for _, action := range p.actions {
		if of, name, _ := strings.Cut(action.Name, "/"); of == service {
			known = append(known, name)
		}
	}
	switch {
	case !ok:
		return "a method is SERVICE/METHOD, such as " + p.actions[0].Name + ", or SERVICE/*"
	case len(known) == 0:
		return "a service of the sidecar: " + strings.Join(p.services(), ", ")
	case method != everything && !slices.Contains(known, method):
		return "a method of that service: *, " + strings.Join(known, ", ")
	}
	return ""
}

// services are the names of all services.
func (p parser) services() (services []string) {
	for _, action := range p.actions {
		service, _, _ := strings.Cut(action.Name, "/")
		services = append(services, service)
	}
	slices.Sort(services)
	return slices.Compact(services)
}

// prefix says which rule a prefix of names breaks.
func (p parser) prefix(text string) string {
	if text == everything {
		return ""
	}
	return p.isName(strings.ReplaceAll(text, placeholder, "x"))
}

// member says which rule a name of members breaks.
func (p parser) member(text string) string {
	if strings.Contains(text, "/") {
		return "one segment, without /"
	}
	return p.prefix(text)
}

// expand finds the actions that good patterns name, and those that they take.
func (p parser) expand(patterns []string) map[string]bool {
	named := map[string]bool{}
	for _, action := range p.actions {
		service, _, _ := strings.Cut(action.Name, "/")
		if slices.Contains(patterns, action.Name) || !action.Operator && slices.Contains(patterns, service+"/"+everything) {
			named[action.Name] = true
			for _, taken := range action.Takes {
				named[taken] = true
			}
		}
	}
	return named
}

// fields are a mapping's, which must be among the known ones.
func (p parser) fields(node *yaml.Node, at string, known ...string) (map[string]*yaml.Node, error) {
	rule := "a mapping with " + strings.Join(known, ", ")
	if node.Kind != yaml.MappingNode {
		return nil, p.broken(node, at, shown(node), rule)
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		switch {
		case !slices.Contains(known, name.Value):
			return nil, p.broken(name, "a field of "+at, shown(name), "one of "+strings.Join(known, ", "))
		case fields[name.Value] != nil:
			return nil, p.broken(name, "a field of "+at, shown(name), "each field once")
		}
		fields[name.Value] = node.Content[i+1]
	}
	return fields, nil
}

// list is the items of a field that is required.
func (p parser) list(fields map[string]*yaml.Node, parent *yaml.Node, name, at string) ([]*yaml.Node, error) {
	node := fields[name]
	if node == nil {
		return nil, p.broken(parent, at, "missing", "required")
	}
	if node.Kind != yaml.SequenceNode {
		return nil, p.broken(node, at, shown(node), "a list")
	}
	return node.Content, nil
}

// texts is a field that is a list of texts, at least one, none of which breaks its rule.
func (p parser) texts(
	fields map[string]*yaml.Node, parent *yaml.Node, at, name string, brokenRule func(text string) string,
) ([]string, error) {
	at += "." + name
	list, err := p.list(fields, parent, name, at)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, p.broken(fields[name], at, "empty", "at least one")
	}
	var texts []string
	for i, item := range list {
		rule := "a text"
		if item.Kind == yaml.ScalarNode && item.Tag == "!!str" {
			rule = brokenRule(item.Value)
		}
		if rule != "" {
			return nil, p.broken(item, fmt.Sprintf("%s[%d]", at, i), shown(item), rule)
		}
		texts = append(texts, item.Value)
	}
	return texts, nil
}

func (p parser) broken(node *yaml.Node, field, value, rule string) error {
	return fmt.Errorf("%s:%d: %s is %s: %s", p.file, node.Line, field, value, rule)
}

// shown is a value fit for a line of a message.
func shown(node *yaml.Node) string {
	const most = 80
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if len(node.Value) > most {
		return fmt.Sprintf("%q…", node.Value[:most])
	}
	return fmt.Sprintf("%q", node.Value)
}
