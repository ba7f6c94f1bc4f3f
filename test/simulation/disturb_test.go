package simulation_test

import (
	"math/rand/v2"
	"time"
)

// disturb lets things fail for about a minute and heals them.
func (s *stage) disturb(dice *rand.Rand, hosts int) {
	time.Sleep(upTo(dice, 5*time.Second))
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		s.fail(dice, hosts)
		time.Sleep(upTo(dice, 8*time.Second))
	}
	s.Heal()
	s.heal()
}

// fail lets one thing fail, for some time.
func (s *stage) fail(dice *rand.Rand, hosts int) {
	server, other, host := dice.IntN(3), dice.IntN(3), dice.IntN(hosts)
	leader := s.Leader()
	if leader >= 0 && dice.IntN(3) == 0 {
		server = leader
	}
	while := upTo(dice, 16*time.Second)
	later := func(undo func()) { time.AfterFunc(while, undo) }
	switch dice.IntN(12) {
	case 0, 1:
		s.Kill(server)
		later(func() { s.Start(server) })
	case 2:
		s.Freeze(server)
		later(func() { s.Thaw(server) })
	case 3, 4:
		s.Isolate(server)
		later(func() { s.Rejoin(server) })
	case 5:
		s.Cut(server, other)
		later(func() { s.Mend(server, other) })
	case 6, 7:
		s.stallAndDie(dice, server)
	case 8:
		s.CutHost(host, server, dice.IntN(2) == 0, dice.IntN(2) == 0)
		later(func() { s.MendHost(host, server) })
	case 9:
		s.Reset(host, server)
	case 10:
		s.Lag(server, upTo(dice, 3*time.Second))
		s.Slow(server, other, upTo(dice, 300*time.Millisecond))
		later(func() { s.Lag(server, 0); s.Slow(server, other, 0) })
	case 11:
		s.Reap(locks[dice.IntN(len(locks))].Path)
	}
}

// stallAndDie is the worst for a proof: what the leader sends to a server stalls and arrives in a burst, and then what the
// server sends to the leader does not arrive any more, until it dies.
func (s *stage) stallAndDie(dice *rand.Rand, server int) {
	leader := s.Leader()
	if leader < 0 || leader == server {
		return
	}
	stall, late, dead := upTo(dice, 9*time.Second), upTo(dice, 2*time.Second), upTo(dice, 10*time.Second)
	s.Cut(leader, server)
	time.AfterFunc(stall, func() { s.Mend(leader, server) })
	time.AfterFunc(stall+late, func() { s.Cut(server, leader) })
	time.AfterFunc(stall+late+dead/2, func() { s.Kill(server) })
	time.AfterFunc(stall+late+dead, func() { s.Start(server); s.Mend(server, leader) })
}
