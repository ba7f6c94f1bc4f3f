package configsync

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Keys as YAML: a mapping of strings, in which what lies below a key is a mapping of its own. The value of a key that others
// lie below stands there under the empty name. A value that is no text is !!binary.
//
//	db:
//	  "": the value of db
//	  host: db1.example.org
//	  port: "5432"
//	logo: !!binary iVBORw0KGgo=

// writeYAML writes entries in the order of their keys. What it writes, readYAML reads to the byte.
func (e entries) writeYAML(to io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	mappings := map[string]*yaml.Node{"": root}
	names := slices.SortedFunc(maps.Keys(e), compareKeys)
	for i, name := range names {
		leaf := scalar(e[name])
		if i+1 < len(names) && strings.HasPrefix(names[i+1], name+"/") || name == "" {
			add(mappingOf(mappings, name), "", leaf)
			continue
		}
		above, last := splitName(name)
		add(mappingOf(mappings, above), last, leaf)
	}
	encoder := yaml.NewEncoder(to)
	encoder.SetIndent(2)
	return errors.Join(encoder.Encode(root), encoder.Close())
}

// mappingOf is the mapping of what lies below a name, made where it is missing.
func mappingOf(mappings map[string]*yaml.Node, name string) *yaml.Node {
	if mapping := mappings[name]; mapping != nil {
		return mapping
	}
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	mappings[name] = mapping
	above, last := splitName(name)
	add(mappingOf(mappings, above), last, mapping)
	return mapping
}

func splitName(name string) (above, last string) {
	slash := strings.LastIndexByte(name, '/')
	return name[:max(slash, 0)], name[slash+1:]
}

func add(mapping *yaml.Node, name string, content *yaml.Node) {
	mapping.Content = append(mapping.Content, scalar([]byte(name)), content)
}

func scalar(value []byte) *yaml.Node {
	if !isText(value) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: base64.StdEncoding.EncodeToString(value)}
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(value)}
	if !isBlock(node.Value) && strings.Contains(node.Value, "\n") {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// isText says whether a person can read it.
func isText(value []byte) bool {
	return utf8.Valid(value) && !bytes.ContainsFunc(value, func(letter rune) bool {
		return letter != '\n' && letter != '\t' && !unicode.IsPrint(letter)
	})
}

// isBlock says whether the text may stand as it is over several lines: nothing at the ends of its lines gets lost.
func isBlock(text string) bool {
	if strings.Contains(text, "\t") || strings.HasSuffix(text, "\n\n") || strings.HasPrefix(text, "\n") {
		return false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) != line {
			indented := strings.HasPrefix(line, " ") && strings.TrimRight(line, " ") == line
			if !indented || strings.HasPrefix(text, " ") {
				return false
			}
		}
	}
	return true
}

// readYAML reads one document. Names may be several segments, as in db/host. Numbers and the like are taken as they
// are written.
func readYAML(from io.Reader) (entries, error) {
	decoder := yaml.NewDecoder(from)
	var document, another yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errors.New("empty document: write {} for no entries")
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&another); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("more than one document"), err)
	}
	read := entries{}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, atLine(root, "at the top there must be a mapping of keys to values")
	}
	return read, read.addMapping("", root)
}

func (e entries) addMapping(above string, mapping *yaml.Node) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		label, content := mapping.Content[i], mapping.Content[i+1]
		if label.Kind != yaml.ScalarNode || label.Tag == "!!merge" || strings.HasSuffix(label.Value, "/") ||
			strings.HasPrefix(label.Value, "/") {
			return atLine(label, "a key is segments joined by /, or empty for the value of the key above")
		}
		name := keyBelow(above, label.Value)
		take := e.addValue
		if content.Kind == yaml.MappingNode {
			take = e.addMapping
		}
		if err := take(name, content); err != nil {
			return err
		}
	}
	return nil
}

func (e entries) addValue(name string, content *yaml.Node) error {
	if _, twice := e[name]; twice {
		return atLine(content, fmt.Sprintf("key %q occurs twice", name))
	}
	switch {
	case content.Kind != yaml.ScalarNode:
		return atLine(content, fmt.Sprintf("key %q: a value is a string, !!binary or a mapping", name))
	case content.Tag == "!!null":
		return atLine(content, fmt.Sprintf(`key %q has no value; an empty one is written ""`, name))
	case content.Tag == "!!binary":
		value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content.Value), ""))
		if err != nil {
			return atLine(content, fmt.Sprintf("key %q: %v", name, err))
		}
		e[name] = value
	default:
		e[name] = []byte(content.Value)
	}
	return nil
}

func atLine(node *yaml.Node, what string) error { return fmt.Errorf("line %d: %s", node.Line, what) }
