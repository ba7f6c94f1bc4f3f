package zookeeper

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ConfigPath is the node in which an ensemble shows what servers it consists of.
const ConfigPath = "/zookeeper/config"

// Why an ensemble's list of its servers is of no use, though there is nothing wrong with it.
var (
	ErrNoServerList   = errors.New("the ensemble has no list of its servers: it is standalone")
	ErrPartServerList = errors.New("the ensemble's list of its servers lacks a client address")
)

const (
	mostListedServers = 256 // ids are a byte
	mostPeerHosts     = 16  // of one server
)

// An EnsembleConfig is an ensemble's own list of its servers.
type EnsembleConfig struct {
	Version uint64           // grows with each reconfiguration
	Servers map[int][]string // where clients may reach each server, as host:port, by its id; at least one each

	observers map[int]bool // by id
}

// withoutObservers leaves out the observers but for those that are given: whether one is behind another, the list does not say.
func (e EnsembleConfig) withoutObservers(given []string) EnsembleConfig {
	isGiven := func(address string) bool { return slices.Contains(given, address) }
	e.Servers = maps.Clone(e.Servers)
	maps.DeleteFunc(e.Servers, func(id int, addresses []string) bool {
		return e.observers[id] && !slices.ContainsFunc(addresses, isGiven)
	})
	return e
}

// Addresses are those of all servers, in order.
func (e EnsembleConfig) Addresses() []string {
	all := slices.Concat(slices.Collect(maps.Values(e.Servers))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// ParseEnsembleConfig reads the data of ConfigPath. A server that names no host for its clients, or all that it has, is expected where its
// peers reach it. The list has no ports for TLS (secure), as a rule: then a server is also expected on the port that all the given servers
// have, if that is one. The error is ErrNoServerList or ErrPartServerList if the list is of no use; with any other the data is malformed.
func ParseEnsembleConfig(data []byte, given []string, secure bool) (EnsembleConfig, error) {
	config, versions := EnsembleConfig{Servers: map[int][]string{}, observers: map[int]bool{}}, 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		name, value, found := strings.Cut(line, "=")
		id, isServer := strings.CutPrefix(name, "server.")
		var err error
		switch {
		case line == "":
		case !found:
			err = errors.New("want name=value")
		case isServer:
			err = config.add(id, value, given, secure)
		case name == "version":
			versions++
			if config.Version, err = strconv.ParseUint(value, 16, 63); err != nil {
				err = errors.New("want a hexadecimal number")
			}
		}
		if err != nil {
			return EnsembleConfig{}, fmt.Errorf("line %.200q: %w", line, err)
		}
	}
	return config, config.check(versions)
}

func (e EnsembleConfig) check(versions int) error {
	switch {
	case len(e.Servers) == 0 && versions == 0:
		return ErrNoServerList
	case len(e.Servers) == 0 || len(e.Servers) > mostListedServers || versions != 1:
		return fmt.Errorf("%d servers and %d versions: want 1 to %d servers, and one version", len(e.Servers), versions, mostListedServers)
	}
	for _, id := range slices.Sorted(maps.Keys(e.Servers)) {
		if len(e.Servers[id]) == 0 {
			return fmt.Errorf("%w: that of server.%d", ErrPartServerList, id)
		}
	}
	return nil
}

// add reads a server's line: how its peers reach it, how its clients do and, in newer releases, how those with TLS do.
func (e EnsembleConfig) add(id, value string, given []string, secure bool) error {
	number, err := strconv.ParseUint(id, 10, 31)
	if _, twice := e.Servers[int(number)]; err != nil || twice {
		return fmt.Errorf("id %.100q: want a number that no other server has", id)
	}
	peers, clients, _ := strings.Cut(value, ";")
	open, overTLS, _ := strings.Cut(clients, ";")
	hosts, err := peerHosts(peers)
	if err != nil {
		return err
	}
	hosts, port, err := endpoint(open, hosts)
	if err != nil {
		return err
	}
	addresses := join(hosts, port)
	if secure {
		hosts, port, err = endpoint(cmp.Or(overTLS, commonPort(given)), hosts)
		addresses = append(join(hosts, port), addresses...)
	}
	e.Servers[int(number)], e.observers[int(number)] = addresses, strings.HasSuffix(peers, ":observer")
	return err
}

// peerHosts are those of host:port:port, with a role behind it or not; several are separated by bars.
func peerHosts(text string) (hosts []string, err error) {
	for peer := range strings.SplitSeq(text, "|") {
		host, rest, err := cutHost(peer)
		if err != nil {
			return nil, err
		}
		parts := strings.Split(rest, ":")
		if len(parts) < 2 || len(parts) > 3 || !isPort(parts[0]) || !isPort(parts[1]) || len(hosts) == mostPeerHosts {
			return nil, fmt.Errorf("%.100q: want host:port:port:role, at most %d times", peer, mostPeerHosts)
		}
		if !isWildcard(host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// endpoint is that of port or host:port, with the hosts that are given where there is none. Without text there is no port.
func endpoint(text string, hosts []string) (reached []string, port string, err error) {
	if text == "" || isPort(text) {
		return hosts, text, nil
	}
	host, port, err := cutHost(text)
	if err != nil || !isPort(port) {
		return nil, "", errors.Join(err, fmt.Errorf("%.100q: want host:port or port, with a port of 1 to 65535", text))
	}
	if isWildcard(host) {
		return hosts, port, nil
	}
	return []string{host}, port, nil
}

func join(hosts []string, port string) (addresses []string) {
	for _, host := range hosts {
		if port != "" {
			addresses = append(addresses, net.JoinHostPort(host, port))
		}
	}
	return addresses
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9._])?$`)

// cutHost cuts text behind its first colon, or the one behind a bracket.
func cutHost(text string) (host, rest string, err error) {
	if inside, bracketed := strings.CutPrefix(text, "["); bracketed {
		host, rest, _ = strings.Cut(inside, "]:")
		if _, err := netip.ParseAddr(host); err != nil {
			return "", "", fmt.Errorf("%.100q: want an address in brackets", text)
		}
		return host, rest, nil
	}
	host, rest, _ = strings.Cut(text, ":")
	if !hostName.MatchString(host) {
		return "", "", fmt.Errorf("%.100q: want a host before a colon", text)
	}
	return host, rest, nil
}

func isWildcard(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsUnspecified()
}

func isPort(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0
}

// commonPort is the port of all these servers, or empty.
func commonPort(servers []string) string {
	_, port, _ := net.SplitHostPort(servers[0])
	for _, server := range servers {
		if _, other, _ := net.SplitHostPort(server); other != port {
			return ""
		}
	}
	return port
}
