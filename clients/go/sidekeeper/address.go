package sidekeeper

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

const (
	// DefaultAddress is where a sidecar listens when nothing else is said.
	DefaultAddress = "unix:///run/sidekeeper/sidekeeper.sock"
	// AddressVariable is the environment variable that Dial looks at when it is given no target.
	AddressVariable = "SIDEKEEPER_ADDRESS"
)

// resolve makes a target that gRPC understands, and says whether it stays on this machine.
func resolve(target string) (resolved string, local bool, err error) {
	if target == "" {
		target = os.Getenv(AddressVariable)
	}
	if target == "" {
		target = DefaultAddress
	}
	if strings.HasPrefix(target, "/") {
		target = "unix://" + target
	}
	if isSocket(target) {
		return target, true, nil
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil || port == "" {
		return "", false, fmt.Errorf("sidecar address %q is neither unix:///path, a path nor host:port", target)
	}
	return target, isLoopback(host), nil
}

func isSocket(target string) bool { return strings.HasPrefix(target, "unix:") }

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
