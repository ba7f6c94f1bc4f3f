package service

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// The rules of names, as the protos state them.
const (
	longestName    = 200
	longestSegment = 64
	longestPath    = 1024 // of one that another library's program has chosen
)

// A name is what a caller calls a lock. It has passed parseName or parseShown, so that it cannot lead out of its directory.
type name struct{ text string }

func (n name) String() string { return n.text }

// parseName checks the name in a request's field.
func parseName(field, value string) (name, error) {
	if rule := BrokenNameRule(value); rule != "" {
		return name{}, invalid(field, value, rule)
	}
	return name{value}, nil
}

// parseSegment checks a name in a request's field that must be one segment.
func parseSegment(field, value string) (string, error) {
	if strings.Contains(value, "/") {
		return "", invalid(field, value, "one segment, without /")
	}
	parsed, err := parseName(field, value)
	return parsed.text, err
}

// BrokenNameRule says which rule of names the value breaks; it is empty for a good name.
func BrokenNameRule(value string) string {
	if value == "" || len(value) > longestName {
		return fmt.Sprintf("a name has 1 to %d bytes", longestName)
	}
	first := true
	for segment := range strings.SplitSeq(value, "/") {
		switch {
		case segment == "":
			return "no segment of a name is empty"
		case len(segment) > longestSegment:
			return fmt.Sprintf("a segment of a name has at most %d bytes", longestSegment)
		case segment == ".", segment == "..":
			return "no segment of a name is . or .."
		case first && segment == "zookeeper":
			return "no name begins with zookeeper"
		case strings.ContainsFunc(segment, isForbidden):
			return "a name has only letters, digits and . _ - in segments joined by /"
		}
		first = false
	}
	return ""
}

func isForbidden(r rune) bool {
	switch {
	case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}

// brokenPathRule says why no node can have the name; it is empty if one can.
func brokenPathRule(value string) string {
	switch {
	case value == "" || len(value) > longestPath:
		return fmt.Sprintf("a name that is shown has 1 to %d bytes", longestPath)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, recipes.IsInNoPath):
		return "a name that is shown has only characters that ZooKeeper takes"
	case value == "zookeeper" || strings.HasPrefix(value, "zookeeper/"):
		return "no name begins with zookeeper"
	}
	for segment := range strings.SplitSeq(value, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "no segment of a name is empty, . or .."
		}
	}
	return ""
}

// ours says whether a caller may have chosen the name.
func (n name) ours() bool { return BrokenNameRule(n.text) == "" }

// under says whether the name lies under the prefix, counted by whole segments. Every name lies under the empty prefix.
func (n name) under(prefix string) bool {
	return prefix == "" || n.text == prefix || strings.HasPrefix(n.text, prefix+"/")
}

// A directory is where names of one kind lie in the ensemble. Paths of names are built here and nowhere else.
type directory struct {
	root   string
	nested bool // a name's segments are nodes; otherwise a name is one node, so that none lies in another's
	shared bool // with programs of other libraries, whose names are listed, too
	latch  bool // candidates of elections are named as Curator's LeaderLatch names them

	losses *recipes.Losses // of locks; may be nil
}

// slash is how `/` stands in the node of a name.
const slash = "%2F"

func (d directory) lock(n name) recipes.Lock {
	if d.nested {
		return recipes.Lock{Path: path.Join(d.root, n.text), Nested: true, Losses: d.losses}
	}
	return recipes.Lock{Path: d.flat(n), Losses: d.losses}
}

// election is the lock that an election is.
func (d directory) election(n name) recipes.Lock {
	lock := d.lock(n)
	lock.Latch = d.latch
	return lock
}

func (d directory) group(n name) recipes.Group {
	return recipes.Group{Path: d.flat(n)}
}

// flat is the one node of a name.
func (d directory) flat(n name) string {
	return path.Join(d.root, strings.ReplaceAll(n.text, "/", slash))
}

// name reads a node's path, relative to the directory, back into a name. What others have put there may be none.
func (d directory) name(relative string) (name, bool) {
	text := relative
	if !d.nested {
		text = strings.ReplaceAll(relative, slash, "/")
	}
	return name{text}, BrokenNameRule(text) == "" || d.shared && brokenPathRule(text) == ""
}

// parseShown checks the name in a request that only shows what is there: that may be one that a program of another library has chosen.
func (d directory) parseShown(value string) (name, error) {
	rule := brokenPathRule(value)
	if !d.nested && strings.Contains(value, slash) {
		rule = "no name has " + slash // which would give the lock a second name, and no policy knows that one
	}
	if rule != "" {
		return name{}, invalid("name", value, rule)
	}
	return name{value}, nil
}

// LockPath is the node that a lock with this name lies in, for whoever looks after the ensemble itself.
func LockPath(root string, nested bool, lock string) (string, error) {
	parsed, err := parseName("name", lock)
	if err != nil {
		return "", err
	}
	return directory{root: root, nested: nested}.lock(parsed).Path, nil
}
