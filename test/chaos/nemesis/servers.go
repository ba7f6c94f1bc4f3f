package nemesis

import (
	"context"
	"net"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// settling is how long sessions may take to find the one server that is left to them.
const settling = 700 * time.Millisecond

// cutFollower cuts a follower from the others that goes on answering a host that can reach no other.
func cutFollower(ctx context.Context, s *scene) error {
	_, follower, err := s.roles(ctx)
	if err != nil {
		return err
	}
	host := s.host()
	heal := s.fault(host.Target())
	defer heal()
	host.Pin(follower.ID())
	defer host.Heal()
	s.pause(ctx, settling+s.between(0, s.Timeout/4))
	s.Stage.Ensemble.Isolate(follower.ID())
	s.pause(ctx, s.expiry())
	s.Stage.Ensemble.Rejoin(follower.ID())
	return s.whole(ctx)
}

// cutLeader cuts the leader off, from all or from one, in both ways or in one. Half of the time a host can reach no other
// server.
func cutLeader(ctx context.Context, s *scene) error {
	leader, follower, err := s.roles(ctx)
	if err != nil {
		return err
	}
	defer s.fault(stage.ServerTarget(leader.ID()))()
	if s.dice.IntN(2) == 0 {
		host := s.host()
		defer s.fault(host.Target())()
		host.Pin(leader.ID())
		defer host.Heal()
		s.pause(ctx, settling)
	}
	s.cutAround(leader, follower)
	s.pause(ctx, max(s.expiry(), s.Silence/2))
	s.Stage.Ensemble.Heal()
	s.resetPeers()
	return s.whole(ctx)
}

func (s *scene) cutAround(leader, follower *ensemble.Server) {
	e := s.Stage.Ensemble
	switch s.dice.IntN(4) {
	case 0:
		e.Isolate(leader.ID())
	case 1: // it hears, and is not heard
		s.cutFrom(leader, link.Stall)
	case 2: // a bridge: the other follower reaches both
		e.CutPeers(leader.ID(), follower.ID(), link.Drop)
		e.CutPeers(follower.ID(), leader.ID(), link.Drop)
	case 3: // what was sent is delivered late, and no answer comes back
		e.CutPeers(leader.ID(), follower.ID(), link.Stall)
		e.CutPeers(follower.ID(), leader.ID(), link.Drop)
	}
}

// cutFrom cuts what a server sends to the others.
func (s *scene) cutFrom(server *ensemble.Server, mode link.Mode) {
	for _, peer := range s.Stage.Ensemble.Servers() {
		if peer != server {
			s.Stage.Ensemble.CutPeers(server.ID(), peer.ID(), mode)
		}
	}
}

// resetPeers resets the connections between servers: those that have lost something would be noticed only when the limit of
// silence is over.
func (s *scene) resetPeers() {
	for _, from := range s.Stage.Ensemble.Servers() {
		for _, to := range s.Stage.Ensemble.Servers() {
			if from != to {
				quorum, election := s.Stage.Ensemble.PeerLinks(from.ID(), to.ID())
				quorum.ResetDead()
				election.ResetDead()
			}
		}
	}
}

// killServers kills the leader, a follower or all servers, and starts them again.
func killServers(ctx context.Context, s *scene) error {
	leader, follower, err := s.roles(ctx)
	if err != nil {
		return err
	}
	victims := [][]*ensemble.Server{{leader}, {leader}, {follower}, s.Stage.Ensemble.Servers()}[s.dice.IntN(4)]
	var heals []func()
	for _, victim := range victims {
		heals = append(heals, s.fault(stage.ServerTarget(victim.ID())))
		victim.Kill()
	}
	defer func() {
		for _, heal := range heals {
			heal()
		}
	}()
	s.pause(ctx, s.between(100*time.Millisecond, 1500*time.Millisecond))
	for _, victim := range victims {
		if err := victim.Restart(); err != nil {
			return err
		}
	}
	return s.whole(ctx)
}

// freezeLeader freezes the leader for less or more than a session's timeout.
func freezeLeader(ctx context.Context, s *scene) error {
	leader, _, err := s.roles(ctx)
	if err != nil {
		return err
	}
	defer s.fault(stage.ServerTarget(leader.ID()))()
	leader.Freeze()
	s.pause(ctx, []time.Duration{s.Timeout / 2, s.Timeout * 3 / 2, s.Timeout * 3}[s.dice.IntN(3)])
	leader.Continue()
	return s.whole(ctx)
}

// hangServer has a server accept connections and answer nothing, or resets connections over and over.
func hangServer(ctx context.Context, s *scene) error {
	server := s.Stage.Ensemble.Servers()[s.dice.IntN(len(s.Stage.Ensemble.Servers()))]
	defer s.fault(stage.ServerTarget(server.ID()))()
	hung := s.between(s.Timeout/8, s.Timeout/3)
	switch s.dice.IntN(3) {
	case 0:
		server.Freeze()
		s.pause(ctx, hung)
		server.Continue()
	case 1:
		for _, host := range s.Stage.Hosts {
			host.ToServers[server.ID()-1].Stall()
		}
		s.pause(ctx, hung)
		for _, host := range s.Stage.Hosts {
			host.ToServers[server.ID()-1].Heal()
		}
	case 2:
		s.resetStorm(ctx)
	}
	return s.whole(ctx)
}

// resetStorm resets all connections to the ensemble for two seconds, at no particular moments.
func (s *scene) resetStorm(ctx context.Context) {
	for over := time.Now().Add(2 * time.Second); time.Now().Before(over); {
		for _, host := range s.Stage.Hosts {
			host.ToServers[s.dice.IntN(len(host.ToServers))].Reset()
		}
		if !s.pause(ctx, s.between(50*time.Millisecond, 300*time.Millisecond)) {
			return
		}
	}
}

// fillDiskOfServer has a server find its disk full. It cannot go on without its log and ends.
func fillDiskOfServer(ctx context.Context, s *scene) error {
	servers := s.Stage.Ensemble.Servers()
	victim := servers[s.dice.IntN(len(servers))]
	defer s.fault(stage.ServerTarget(victim.ID()))()
	if err := fillDisk(victim.ProcessID()); err != nil {
		return err
	}
	s.pause(ctx, s.between(time.Second, 3*time.Second))
	if err := victim.Restart(); err != nil {
		return err
	}
	return s.whole(ctx)
}

// connections is how many connections a server takes from one address where they are few, as is ZooKeeper's default.
const connections = 60

func withFewConnections(options *stage.Options) { options.Ensemble.MaxClientConnections = connections }

// takeConnections has a stranger on the sidecars' address take all connections that one or all servers give, while those of
// a sidecar break.
func takeConnections(ctx context.Context, s *scene) error {
	servers := s.Stage.Ensemble.Servers()
	if s.dice.IntN(2) == 0 {
		servers = servers[s.dice.IntN(len(servers)):][:1]
	}
	defer s.fault("")()
	taken := takeAll(ctx, servers)
	defer closeAll(taken)
	host := s.host()
	for range 3 {
		s.eachWay(host, (*link.Link).Reset)
		s.pause(ctx, s.between(s.Timeout/8, s.Timeout/2))
	}
	return nil
}

// takeAll opens all connections that servers still give.
func takeAll(ctx context.Context, servers []*ensemble.Server) (taken []net.Conn) {
	for _, server := range servers {
		for range connections {
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", server.RealAddress())
			if err != nil { // it gives no more
				break
			}
			taken = append(taken, connection)
		}
	}
	return taken
}

func closeAll(taken []net.Conn) {
	for _, connection := range taken {
		connection.Close()
	}
}

// rollServers restarts all servers, one after the other.
func rollServers(ctx context.Context, s *scene) error {
	for _, server := range s.Stage.Ensemble.Servers() {
		heal := s.fault(stage.ServerTarget(server.ID()))
		server.Stop()
		if err := server.Restart(); err != nil {
			return err
		}
		if err := s.whole(ctx); err != nil {
			return err
		}
		heal()
		if !s.pause(ctx, s.between(200*time.Millisecond, 800*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
	return nil
}
