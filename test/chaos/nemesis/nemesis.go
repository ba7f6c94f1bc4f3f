// Package nemesis is what goes wrong on the stage of a fault test. Each nemesis strikes again and again while a round lasts,
// and undoes what it did after each time.
package nemesis

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// A Realm is what a nemesis does things to. Two of one realm would undo each other's faults.
type Realm string

// The realms.
const (
	Servers  Realm = "servers"
	Sidecars Realm = "sidecars"
	Clients  Realm = "clients"
)

// A Nemesis is one kind of fault.
type Nemesis struct {
	Name  string
	About string
	Realm Realm
	// Steady says that it costs no lease whose timeout is a default one: a quorum can always be reached, or soon again.
	Steady bool
	// Forces says that locks change hands by it that nobody has released.
	Forces bool
	// Stops says that it stops clients between their look at a lock and what they do then, so that a store that does not
	// look at tokens must have lost updates afterwards.
	Stops bool
	// Slow says that each strike takes long, so that there are few in the usual time.
	Slow bool
	// Long says that it shows something only where leases, and what lies between two heartbeats, are as long as they are by
	// default.
	Long bool
	// Resuming says that sidecars must keep what leases outlive them by.
	Resuming bool
	// Restarts says that it starts servers anew.
	Restarts bool
	// Adjust changes the stage that it needs; nil if it needs nothing special.
	Adjust func(*stage.Options)

	strike func(ctx context.Context, s *scene) error
}

// A Setting is what nemeses know of the round they strike in.
type Setting struct {
	Stage   *stage.Stage
	Prefix  string        // of all names
	Timeout time.Duration // of sessions
	Tick    time.Duration // of the ensemble
	Silence time.Duration // after which a server that hears no more of its leader gives up
	// Patience is how long something may take after a fault, for the judge.
	Patience time.Duration
}

// A scene is the stage as one nemesis sees it.
type scene struct {
	Setting

	nemesis string
	dice    *rand.Rand
	strikes int // so far
}

// Haunt strikes until the time is over, at least once; a strike that has begun is finished. It ends early with the
// context, and with the first strike that could not be done.
func (n Nemesis) Haunt(ctx context.Context, setting Setting, dice *rand.Rand, d time.Duration) error {
	s := &scene{Setting: setting, nemesis: n.Name, dice: dice}
	for over := time.Now().Add(d); ; {
		if err := n.strike(ctx, s); err != nil {
			return err
		}
		s.strikes++
		if !s.pause(ctx, s.between(200*time.Millisecond, 600*time.Millisecond)) {
			return context.Cause(ctx)
		}
		if time.Now().After(over) {
			return nil
		}
	}
}

// fault notes that something goes wrong, and returns what notes its end.
func (s *scene) fault(target string) (heal func()) { return s.Stage.Fault(s.nemesis, target) }

func (s *scene) pause(ctx context.Context, d time.Duration) bool { return stage.Pause(ctx, d) }

// between draws a time.
func (s *scene) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.dice.Int64N(int64(most-least)+1))
}

// expiry is how long it takes until a session that the ensemble has heard the last of is gone, and its locks are another's.
func (s *scene) expiry() time.Duration { return s.Timeout + 2*s.Tick + 500*time.Millisecond }

// host draws a host.
func (s *scene) host() *stage.Host { return s.Stage.Hosts[s.dice.IntN(len(s.Stage.Hosts))] }

// hot is the lock that everybody wants.
func (s *scene) hot() string { return s.Prefix + "/hot" }

// quorumTime is how long an ensemble may take to find a leader.
const quorumTime = time.Minute

// roles returns the leader and a follower.
func (s *scene) roles(ctx context.Context) (leader, follower *ensemble.Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, quorumTime)
	defer cancel()
	for {
		if leader, err = s.Stage.Ensemble.AwaitQuorum(ctx); err != nil {
			return nil, nil, err
		}
		if followers := s.Stage.Ensemble.Followers(ctx); len(followers) > 0 {
			return leader, followers[s.dice.IntN(len(followers))], nil
		}
	}
}

// whole returns when all servers serve.
func (s *scene) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quorumTime)
	defer cancel()
	return s.Stage.Ensemble.AwaitAll(ctx)
}
