// Package policy decides who may call what about which names. A policy is a list of rules that allow; what no rule allows is
// denied. It knows nothing of gRPC: methods are words to it, which it is given.
//
//	rules:
//	  - identities: ["uid:1000", "spiffe://prod.example/ns/web/*"]
//	    methods: ["sidekeeper.lock.v1.LockService/*"]
//	    prefixes: ["billing"]
//
// It also says how much some callers may have of what is limited for each:
//
//	limits:
//	  - identities: ["uid:1000"]
//	    leases: 50
//
// And it names classes of locks, by which metrics tell them apart:
//
//	classes:
//	  - name: checkout
//	    prefixes: ["shop/orders", "shop/stock"]
package policy

import (
	"slices"
	"strings"
)

// An Action is one thing that a caller can ask for: a method, `sidekeeper.lock.v1.LockService/Acquire`, or a use of a method that
// is an operator's, `sidekeeper.lock.v1.LockService/Revoke:grace`.
type Action struct {
	Name     string
	Operator bool     // only rules that name it allow it: the * behind a service leaves it out
	Member   bool     // it is about a member of a group
	Takes    []string // further actions that it takes: a rule that allows it allows these
}

// A Policy is rules, limits and classes. It is not modified.
type Policy struct {
	rules  []rule
	limits []limiting

	classes []class
}

// A rule allows some callers some actions on some names.
type rule struct {
	identities []string
	actions    map[string]bool
	prefixes   []string // none for every name
	members    []string // none for every member
}

// everybody, and every name.
const everything = "*"

// Size is how many rules there are.
func (p *Policy) Size() int { return len(p.rules) }

// Allows says whether the caller may do this to all of these names. A listing has the prefix asked for as its name, which is empty
// for one of everything. An action about nothing that has a name comes with no names. One about a member, of the group that is its
// name, comes with that, too.
func (p *Policy) Allows(identity, action string, names []string, member ...string) bool {
	for _, name := range names {
		if !p.some(func(r rule) bool {
			return r.grants(identity, action) && r.covers(identity, name) && (len(member) == 0 || r.admits(identity, member[0]))
		}) {
			return false
		}
	}
	return len(names) > 0 || p.some(func(r rule) bool { return r.grants(identity, action) })
}

// MayAsk says whether there is anything that some rule allows the caller of these actions: a method, or a use of it.
func (p *Policy) MayAsk(identity string, actions ...string) bool {
	return p.some(func(r rule) bool {
		return slices.ContainsFunc(actions, func(action string) bool { return r.actions[action] }) && r.isAbout(identity)
	})
}

// some says whether there is such a rule. It stands before every call, and makes no copy.
func (p *Policy) some(such func(rule) bool) bool { return slices.ContainsFunc(p.rules, such) }

func (r rule) grants(identity, action string) bool { return r.actions[action] && r.isAbout(identity) }

func (r rule) isAbout(identity string) bool { return anyMatches(r.identities, identity) }

func anyMatches(patterns []string, identity string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, identity) })
}

// matches compares an identity with a pattern, which may end in /* for all SPIFFE ids below.
func matches(pattern, identity string) bool {
	if below, ok := strings.CutSuffix(pattern, "/*"); ok && strings.HasPrefix(pattern, SPIFFE) {
		return strings.HasPrefix(identity, below+"/")
	}
	return pattern == everything || pattern == identity
}

// covers says whether the rule is about a name: if that lies under one of the prefixes, by whole segments.
func (r rule) covers(identity, name string) bool {
	return len(r.prefixes) == 0 || slices.ContainsFunc(r.prefixes, func(pattern string) bool {
		prefix, ok := r.filled(pattern, identity)
		return ok && under(prefix, name)
	})
}

// admits says whether the rule is about a member of this name.
func (r rule) admits(identity, member string) bool {
	return len(r.members) == 0 || slices.ContainsFunc(r.members, func(pattern string) bool {
		name, ok := r.filled(pattern, identity)
		return ok && name == member
	})
}

// placeholder stands in prefixes and members for the caller's own name.
const placeholder = "{identity}"

// filled puts the caller's own name where the placeholder stands: what follows the beginning of its identity or, of SPIFFE ids below a
// path, what stands for the *. It is one segment, so that nobody's own name lies in another's; ok is false for who has none.
func (r rule) filled(pattern, identity string) (filled string, ok bool) {
	if !strings.Contains(pattern, placeholder) {
		return pattern, true
	}
	_, own, _ := strings.Cut(identity, ":")
	if strings.HasPrefix(identity, SPIFFE) {
		own = strings.TrimPrefix(identity, strings.TrimSuffix(r.identities[0], everything))
	}
	return strings.ReplaceAll(pattern, placeholder, own), own != "" && !strings.Contains(own, "/")
}
