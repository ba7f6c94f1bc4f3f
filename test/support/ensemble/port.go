package ensemble

import (
	"net"
	"strconv"
)

// A port is one on 127.0.0.1 that a server will bind, now and again when it is restarted. Until it is released nobody
// gets it from the system by chance.
type port struct {
	number  int
	release func()
}

func (p port) text() string { return strconv.Itoa(p.number) }

func (p port) address() string { return net.JoinHostPort("127.0.0.1", p.text()) }

// ports are those of one server. Those for its peers, and the one for TLS, are bound only where there are such.
type ports struct {
	client, secure, quorum, election port
}

// reservePorts chooses a server's ports.
func reservePorts() (ports, error) {
	var p ports
	for _, each := range []*port{&p.client, &p.secure, &p.quorum, &p.election} {
		reserved, err := reserve()
		if err != nil {
			p.release()
			return ports{}, err
		}
		*each = reserved
	}
	return p, nil
}

func (p ports) release() {
	for _, each := range []port{p.client, p.secure, p.quorum, p.election} {
		if each.release != nil {
			each.release()
		}
	}
}
