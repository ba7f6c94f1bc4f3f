package stage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"
)

// domain is what the names of servers end with. All of them are on this machine.
const domain = ".chaos.test"

// A NameServer says where the servers are, unless it hangs.
type NameServer struct {
	conn   net.PacketConn
	hangs  atomic.Bool
	closed chan struct{}
}

// serveNames begins a name server. Its port is the one that resolv.conf has no word for, so it has an address of its own.
func serveNames() (n *NameServer, err error) {
	const port, attempts = "53", 8
	n = &NameServer{closed: make(chan struct{})}
	for range attempts {
		address := net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254)))
		if n.conn, err = new(net.ListenConfig).ListenPacket(context.Background(), "udp4", net.JoinHostPort(address.String(), port)); err == nil {
			go n.serve()
			return n, nil
		}
	}
	return nil, err
}

func (n *NameServer) serve() {
	defer close(n.closed)
	for packet := make([]byte, 1<<10); ; {
		size, from, err := n.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		if answer := answerTo(packet[:size]); answer != nil && !n.hangs.Load() {
			_, _ = n.conn.WriteTo(answer, from) // as with any name server, an answer may be lost
		}
	}
}

// answerTo is the answer to a question; nil if it is none.
func answerTo(question []byte) []byte {
	var message dnsmessage.Message
	if err := message.Unpack(question); err != nil || len(message.Questions) != 1 {
		return nil
	}
	asked := message.Questions[0]
	message.Response, message.RecursionAvailable, message.Additionals = true, true, nil
	switch {
	case !strings.HasSuffix(asked.Name.String(), domain+"."):
		message.RCode = dnsmessage.RCodeNameError
	case asked.Type == dnsmessage.TypeA:
		message.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: asked.Class},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	answer, err := message.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// Hang has the name server answer nothing until Answer.
func (n *NameServer) Hang() { n.hangs.Store(true) }

// Answer ends Hang.
func (n *NameServer) Answer() { n.hangs.Store(false) }

func (n *NameServer) close() {
	n.conn.Close()
	<-n.closed
}

func (h *Host) resolverSettings() string { return filepath.Join(h.directory, "resolv.conf") }

// nameServers begins the host's name server, and writes down where it is. A program that sets no limit of its own waits for half a minute.
func (h *Host) nameServers() (err error) {
	if h.Names, err = serveNames(); err != nil {
		return err
	}
	address, _, err := net.SplitHostPort(h.Names.conn.LocalAddr().String())
	if err != nil {
		return err
	}
	return os.WriteFile(h.resolverSettings(), []byte("nameserver "+address+"\noptions timeout:30\n"), 0o600)
}

// asking is what a command begins with that is to ask the host's name server; nothing if there is none.
func (h *Host) asking() []string {
	if h.Names == nil {
		return nil
	}
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, h.resolverSettings()}
}

// given is where the sidecar is told that the servers are.
func (h *Host) given() []string {
	if h.Names == nil {
		return h.Servers()
	}
	var names []string
	for i, way := range h.ToServers {
		names = append(names, fmt.Sprintf("server-%d%s:%d", i+1, domain, way.Port()))
	}
	return names
}
