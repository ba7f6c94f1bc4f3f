package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Limit is something of which one identity may have only so much.
type Limit int

// Every limit; those with a second in their names are of what may be done in one.
const (
	Connections        Limit = iota
	Streams                  // long-lived ones
	IncompleteRequests       // that are read at once
	Leases
	WatchedNodes // keys and members
	Claims       // that stand, wait, or ended within a day
	SessionsPerSecond
	WritesPerSecond
	BytesPerSecond // of requests that write
	limitCount
)

// limitNames are the fields of a policy, and what an error calls a limit.
var limitNames = [limitCount]string{
	"connections", "streams", "incomplete_requests", "leases", "watched_nodes", "claims",
	"sessions_per_second", "writes_per_second", "bytes_per_second",
}

func (l Limit) String() string { return limitNames[l] }

// LimitNames are the names of all limits, by their values.
func LimitNames() []string { return slices.Clone(limitNames[:]) }

// Limits are a value of each limit; 0 where nothing is said.
type Limits [limitCount]int

// highestLimit is what any limit may be.
const highestLimit = 1 << 40

// A limiting is what a policy says of the limits of some callers.
type limiting struct {
	identities []string
	limits     Limits
}

// Limit is what the caller may have of it: what the first entry says that is about the caller and names the limit; 0 if none does.
func (p *Policy) Limit(identity string, limit Limit) int {
	for _, entry := range p.limits {
		if entry.limits[limit] > 0 && anyMatches(entry.identities, identity) {
			return entry.limits[limit]
		}
	}
	return 0
}

func (p parser) limiting(node *yaml.Node, at string) (limiting, error) {
	fields, err := p.fields(node, at, append([]string{"identities"}, limitNames[:]...)...)
	if err != nil {
		return limiting{}, err
	}
	var parsed limiting
	if parsed.identities, err = p.texts(fields, node, at, "identities", p.identity); err != nil {
		return limiting{}, err
	}
	for limit, name := range limitNames {
		if fields[name] == nil {
			continue
		}
		if parsed.limits[limit], err = p.number(fields[name], at+"."+name); err != nil {
			return limiting{}, err
		}
	}
	if parsed.limits == (Limits{}) {
		return limiting{}, p.broken(node, at, "without a limit", "at least one of "+strings.Join(limitNames[:], ", "))
	}
	return parsed, nil
}

// number is a field that is a whole number above 0, in decimal digits.
func (p parser) number(node *yaml.Node, at string) (int, error) {
	number, err := strconv.ParseUint(node.Value, 10, 64)
	if node.Kind != yaml.ScalarNode || node.Tag != "!!int" || err != nil || number < 1 || number > highestLimit {
		return 0, p.broken(node, at, shown(node), fmt.Sprintf("a whole number from 1 to %d", highestLimit))
	}
	return int(number), nil
}
