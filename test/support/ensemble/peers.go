package ensemble

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// peerLinks is how one server reaches another: the follower's connection to its leader, and the one for elections.
type peerLinks struct {
	quorum, election *link.Link
}

func (l peerLinks) each() []*link.Link { return []*link.Link{l.quorum, l.election} }

func (l peerLinks) close() {
	for _, each := range l.each() {
		each.Close()
	}
}

// connect opens the links between servers, one pair for each two servers and way to dial.
func (e *Ensemble) connect(context.Context) error {
	for _, from := range e.servers {
		for _, to := range e.servers {
			if from == to {
				continue
			}
			links, err := newPeerLinks(from, to)
			if err != nil {
				return err
			}
			from.peers[to.id] = links
		}
	}
	return nil
}

// patience is about how long a follower tries to connect to a leader that does not listen yet. Without it, one that is
// faster than its leader would think it has lost it, and the two would find each other a whole InitLimit later.
const patience = 400 * time.Millisecond

func newPeerLinks(from, to *Server) (peerLinks, error) {
	quorum, err := link.New(link.Options{Target: to.ports.quorum.address(), Patience: patience})
	if err != nil {
		return peerLinks{}, err
	}
	election, err := link.New(link.Options{
		Target: to.ports.election.address(),
		Rewrite: func(first []byte) []byte {
			return callBack(first, to.peers[from.id].election.Address())
		},
	})
	if err != nil {
		quorum.Close()
		return peerLinks{}, err
	}
	return peerLinks{quorum: quorum, election: election}, nil
}

// callBack puts another address into the message with which a server opens a connection for elections: protocol
// version, id, and where it listens itself. A server that is dialled by one with a smaller id closes the connection and
// dials that address in place of the one in its configuration, past all links.
func callBack(message []byte, address string) []byte {
	const version, header = 8, 8 + 8 + 4
	if len(message) < header || !speaksOfAddresses(int64(binary.BigEndian.Uint64(message[:version]))) {
		return message
	}
	length := int64(binary.BigEndian.Uint32(message[header-4:]))
	if length > int64(len(message)-header) {
		return message
	}
	rewritten := append([]byte(nil), message[:header-4]...)
	rewritten = binary.BigEndian.AppendUint32(rewritten, uint32(len(address)))
	rewritten = append(rewritten, address...)
	return append(rewritten, message[header+length:]...)
}

// speaksOfAddresses tells whether a version of the protocol is one of the two whose first message has addresses.
func speaksOfAddresses(version int64) bool { return version == -65536 || version == -65535 }

// members is the lines of a server's configuration that name all servers: itself by the ports it binds, the others by
// the links that lead to them, unless they are direct.
func (e *Ensemble) members(s *Server) []string {
	if len(e.servers) == 1 {
		return nil
	}
	var lines []string
	for _, member := range e.servers {
		if e.options.Reconfigurable {
			lines = append(lines, member.Member())
			continue
		}
		quorum, election := member.ports.quorum.number, member.ports.election.number
		if member != s && !e.options.DirectPeers {
			quorum, election = s.peers[member.id].quorum.Port(), s.peers[member.id].election.Port()
		}
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", member.id, quorum, election))
	}
	return lines
}

// PeerLinks is the links through which one server dials another: the one on which it follows it, and the one for
// elections. Which of two servers has dialled the other changes with every election; [Ensemble.CutPeers] cuts traffic
// whoever has.
func (e *Ensemble) PeerLinks(from, to int) (quorum, election *link.Link) {
	links := e.Server(from).peers[to]
	return links.quorum, links.election
}

// CutPeers does to all traffic that flows from one server to another what mode says. The other way is left as it is, and
// so are clients.
//
// [link.Pass] heals it, and resets connections that have lost bytes: ZooKeeper notices by itself only that a leader or a
// follower has gone silent. An election's connection that is dead but open would keep the two apart for ever.
func (e *Ensemble) CutPeers(from, to int, mode link.Mode) {
	for _, dialled := range e.Server(from).peers[to].each() {
		set(dialled, mode, link.ToServer)
	}
	for _, answered := range e.Server(to).peers[from].each() {
		set(answered, mode, link.ToClient)
	}
}

func set(l *link.Link, mode link.Mode, directions ...link.Direction) {
	l.Set(mode, directions...)
	if mode == link.Pass {
		l.ResetDead()
	}
}

// Isolate stalls all traffic between a server and its peers. Its clients stay attached to it.
func (e *Ensemble) Isolate(id int) { e.setPeers(id, link.Stall) }

// Rejoin ends Isolate: what was held back is delivered.
func (e *Ensemble) Rejoin(id int) { e.setPeers(id, link.Pass) }

func (e *Ensemble) setPeers(id int, mode link.Mode) {
	for _, peer := range e.servers {
		if peer.id != id {
			e.CutPeers(id, peer.id, mode)
			e.CutPeers(peer.id, id, mode)
		}
	}
}

// Heal heals all links, those between servers, as CutPeers does, and those of clients.
func (e *Ensemble) Heal() {
	for _, s := range e.servers {
		s.clients.Heal()
		for _, links := range s.peers {
			for _, each := range links.each() {
				set(each, link.Pass)
			}
		}
	}
}
