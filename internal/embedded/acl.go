package embedded

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Permissions, as bits.
const (
	permRead int32 = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
	permAll int32 = 1<<iota - 1
)

// An Identity is who a client has proved to be, or whom an ACL entry speaks of.
type Identity struct{ Scheme, ID string }

// An ACL is one entry of a node's access control list.
type ACL struct {
	Permissions int32
	Identity    Identity
}

var (
	anyone        = Identity{Scheme: "world", ID: "anyone"}
	super         = Identity{Scheme: "super"}
	open          = []ACL{{Permissions: permAll, Identity: anyone}}
	readableByAll = []ACL{{Permissions: permRead, Identity: anyone}}
)

// permitted is nil if one of the caller's identities may do this by the list. No list permits everything.
func permitted(list []ACL, permission int32, identities []Identity) error {
	if len(list) == 0 || slices.ContainsFunc(identities, func(i Identity) bool { return i.Scheme == super.Scheme }) {
		return nil
	}
	for _, entry := range list {
		if entry.Permissions&permission == 0 {
			continue
		}
		if entry.Identity == anyone || slices.ContainsFunc(identities, entry.Identity.matches) {
			return nil
		}
	}
	return codeNoAuth
}

// matches says whether an entry for i speaks of this caller.
func (i Identity) matches(caller Identity) bool {
	if i.Scheme != caller.Scheme {
		return false
	}
	if i.Scheme == "ip" {
		return addressMatches(i.ID, caller.ID)
	}
	return i.ID == caller.ID
}

// settle turns the list a client sent into the one that is stored: no entry twice, the scheme "auth" replaced by who
// the client is.
func settle(list []ACL, identities []Identity) ([]ACL, error) {
	var settled []ACL
	for i, entry := range list {
		if slices.Contains(list[:i], entry) {
			continue
		}
		if entry.Identity.Scheme == "auth" {
			proved := provedBy(entry.Permissions, identities)
			if len(proved) == 0 {
				return nil, codeInvalidACL
			}
			settled = append(settled, proved...)
			continue
		}
		if !entry.Identity.valid() {
			return nil, codeInvalidACL
		}
		settled = append(settled, entry)
	}
	if len(settled) == 0 {
		return nil, codeInvalidACL
	}
	return settled, nil
}

// provedBy gives an entry for each identity that was proved with a secret.
func provedBy(permissions int32, identities []Identity) []ACL {
	var list []ACL
	for _, identity := range identities {
		if identity.Scheme == "digest" {
			list = append(list, ACL{Permissions: permissions, Identity: identity})
		}
	}
	return list
}

// valid says whether an ACL entry may speak of i.
func (i Identity) valid() bool {
	switch i.Scheme {
	case "world":
		return i == anyone
	case "digest":
		return strings.Count(strings.TrimRight(i.ID, ":"), ":") == 1
	case "ip":
		_, ok := parsePrefix(i.ID)
		return ok
	}
	return false
}

// mask hides the digests of a list from those who may not administer it.
func mask(list []ACL) []ACL {
	masked := slices.Clone(list)
	for i, entry := range masked {
		if user, _, found := strings.Cut(entry.Identity.ID, ":"); found && entry.Identity.Scheme == "digest" {
			masked[i].Identity.ID = user + ":x"
		}
	}
	return masked
}

// parsePrefix reads "address" or "address/bits".
func parsePrefix(text string) (netip.Prefix, bool) {
	host, bitsText, hasBits := strings.Cut(text, "/")
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}, false
	}
	bits := address.BitLen()
	if hasBits {
		if bits, err = strconv.Atoi(bitsText); err != nil {
			return netip.Prefix{}, false
		}
	}
	prefix, err := address.Prefix(bits)
	return prefix, err == nil
}

func addressMatches(pattern, caller string) bool {
	prefix, ok := parsePrefix(pattern)
	address, err := netip.ParseAddr(caller)
	return ok && err == nil && prefix.Contains(address)
}
