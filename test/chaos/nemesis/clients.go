package nemesis

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// patience is how long a nemesis waits for its victim.
const patience = 6 * time.Second

// stopBetween stops a client between its look at the lock and its act, or its sidecar, or both. The sidecar of a client that
// has fallen silent leaves it the lock for as long as it was told. The first one is always a client.
func stopBetween(ctx context.Context, s *scene) error {
	lot := s.dice.IntN(4)
	switch {
	case s.strikes > 0 && lot == 0:
		return s.freezeSidecar(ctx)
	case s.strikes > 0 && lot == 1:
		return s.ambush(ctx, true)
	default:
		return s.ambush(ctx, false)
	}
}

func (s *scene) freezeSidecar(ctx context.Context) error {
	host := s.host()
	defer s.fault(host.Target())()
	host.Freeze()
	s.pause(ctx, s.expiry())
	host.Continue()
	return nil
}

// silence is how long a sidecar takes to notice that a client does not answer; see its flags.
const silence = 2 * time.Second

// ambush stops whoever works next under the lock that everybody wants, until others have worked under it, or had the time to.
func (s *scene) ambush(ctx context.Context, withSidecar bool) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	visit, err := s.Stage.Stores.Ambush(waiting, s.hot())
	if err != nil {
		return nil // nobody came: the round will show that there was no damage
	}
	victim := s.Stage.Clients()[visit.Client-1]
	defer s.fault(victim.Target())()
	victim.Freeze()
	visit.Release()
	defer victim.Continue()
	frozen := s.expiry() + silence
	if withSidecar {
		defer s.fault(victim.Host.Target())()
		victim.Host.Freeze()
		defer victim.Host.Continue()
		frozen = s.expiry()
	}
	s.pause(ctx, frozen)
	for over := time.Now().Add(2 * frozen); !s.Stage.Stores.Overtaken(visit) && time.Now().Before(over); {
		if !s.pause(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// cutCalls does something to the way between a sidecar and those of its clients that call it over TCP.
func cutCalls(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	defer host.Heal()
	switch s.dice.IntN(6) {
	case 0:
		host.Calls.Drop()
		s.pause(ctx, s.expiry()+silence)
	case 1: // nobody reads what the sidecar says
		host.Calls.Stall(link.ToClient)
		s.pause(ctx, s.expiry())
	case 2:
		host.Calls.Stall()
		s.pause(ctx, s.between(s.Timeout/2, 2*s.Timeout))
	case 3:
		for range 5 {
			host.Calls.Reset()
			s.pause(ctx, s.between(50*time.Millisecond, 400*time.Millisecond))
		}
	case 4: // as a proxy does that ends
		for range 5 {
			host.Calls.GoAway()
			s.pause(ctx, s.between(50*time.Millisecond, 400*time.Millisecond))
		}
	case 5: // sooner than sidecar and clients look after each other
		host.Calls.CutIdle(300 * time.Millisecond)
		s.pause(ctx, s.Timeout)
	}
	return nil
}

// killClients kills clients, one after the other, and starts others in their place.
func killClients(ctx context.Context, s *scene) error {
	present := s.Stage.Present()
	for range 3 {
		victim := present[s.dice.IntN(len(present))]
		heal := s.fault(victim.Target())
		victim.Kill()
		if err := victim.Replace(); err != nil {
			return err
		}
		heal()
		present = s.Stage.Present()
		if !s.pause(ctx, s.between(200*time.Millisecond, 700*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
	return nil
}
