package server

import (
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// How many greetings over TLS may be in vain for one address in a second, and at once, until its further ones wait, and for how long. To find
// out whose a connection is costs the sidecar much, and whoever is told that it has too many can come again at once.
const (
	vainGreetings      = 50
	vainGreetingsBurst = 200
	longestGreeting    = 3 * time.Second
)

// greetings are the paces of those addresses whose connections over TLS were greeted in vain lately. A connLimiter's lock guards them.
type greetings map[netip.Prefix]*pace

// of is the pace of a connection's address; nil if there was nothing.
func (g greetings) of(silent io.Closer) *pace { return g[addressIn(silent)] }

// vain notes that a connection was not let in when it had been greeted.
func (g greetings) vain(silent io.Closer) {
	from := addressIn(silent)
	if !from.IsValid() {
		return
	}
	if g[from] == nil {
		for each, of := range g {
			if of.events.Tokens() >= vainGreetingsBurst {
				delete(g, each)
			}
		}
		g[from] = newPace(rate.Limit(vainGreetings), vainGreetingsBurst)
	}
	g[from].count()
}

// addressIn is where a connection comes from: the network of an IPv6 address, of which a machine has many.
func addressIn(silent io.Closer) netip.Prefix {
	conn, ok := silent.(net.Conn)
	if !ok {
		return netip.Prefix{}
	}
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address := from.AddrPort().Addr().Unmap()
	bits := 64
	if address.Is4() {
		bits = 32
	}
	network, _ := address.WithZone("").Prefix(bits) // fails for no address
	return network
}
