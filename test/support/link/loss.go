package link

import (
	"errors"
	"net"
)

// Lose has the kernel lose one of so many packets that arrive at the link from either side, at random, until it is told
// otherwise; those that open connections too. TCP sends them again, later and later, so that what arrives is slow and whole.
// 1 loses all, 0 none. It is there on Linux only, and needs no privilege.
func (l *Link) Lose(oneOf uint32) error {
	var failed error
	l.change(func() {
		l.loses = oneOf
		failed = lose(l.listener.(*net.TCPListener), oneOf)
		for c := range l.connections {
			failed = errors.Join(failed, c.lose())
		}
	})
	return failed
}

// lose has both sides of the connection lose packets as the link does. The mutex is held.
func (c *connection) lose() error {
	failed := lose(c.client, c.link.loses)
	if c.server != nil {
		failed = errors.Join(failed, lose(c.server, c.link.loses))
	}
	return failed
}
