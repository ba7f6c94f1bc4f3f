package nemesis

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// restartSoon ends a sidecar, and starts another in its place while its callers still count on what they have. Half of the time that is at
// once.
func restartSoon(ctx context.Context, s *scene) error {
	away := time.Duration(0)
	if s.dice.IntN(2) == 0 {
		away = s.between(0, s.Timeout/4)
	}
	return s.replace(ctx, away, s.between(0, time.Second))
}

// restartLate ends a sidecar, and starts another in its place when its callers count on nothing any more, or are about to.
func restartLate(ctx context.Context, s *scene) error {
	return s.replace(ctx, s.between(s.Timeout/2, s.Timeout*3/2), s.Timeout/4)
}

// Restarting replaces sidecars so often, in time, all of them at the same time and each at moments of its own.
func Restarting(times int) Nemesis {
	return Nemesis{
		Name: "N22", About: "sidecars killed, or stopped so that they hand over, and started again at once",
		Realm: Sidecars, Long: true, Resuming: true,
		strike: func(ctx context.Context, s *scene) error { return s.restartAll(ctx, times) },
	}
}

// mostUp is how long a sidecar serves before it is replaced again, at most.
const mostUp = 3 * time.Second

func (s *scene) restartAll(ctx context.Context, times int) error {
	group, striking := errgroup.WithContext(ctx)
	for i, host := range s.Stage.Hosts {
		own := *s
		own.dice = rand.New(rand.NewPCG(s.dice.Uint64(), uint64(i)))
		group.Go(func() error {
			for range (times + len(s.Stage.Hosts) - 1 - i) / len(s.Stage.Hosts) {
				if !own.pause(striking, own.between(0, mostUp)) {
					return context.Cause(striking)
				}
				heal := own.fault(host.Target())
				if err := host.Restart(striking, own.inOrder(host), 0); err != nil {
					return err
				}
				heal()
			}
			return nil
		})
	}
	return group.Wait()
}

// replace ends a sidecar, at once or in order, and starts another after a while. The fault lasts for some time more.
func (s *scene) replace(ctx context.Context, away, more time.Duration) error {
	host := s.host()
	defer s.fault(host.Target())()
	err := host.Restart(ctx, s.inOrder(host), away)
	s.pause(ctx, more)
	return err
}

// inOrder draws whether a sidecar is asked to end: one that hands over, since others keep nothing.
func (s *scene) inOrder(host *stage.Host) bool { return s.dice.IntN(2) == 0 && host.HandsOver() }

// startBeside starts a sidecar in the place of one that is frozen, as whoever takes that for dead does. The frozen one goes on after a while,
// or is killed after all and replaced.
func startBeside(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	host.Freeze()
	if err := host.Double(); err != nil {
		return err
	}
	s.pause(ctx, s.between(0, s.expiry()))
	if s.dice.IntN(3) == 0 {
		return s.restart(ctx, host)
	}
	host.Continue()
	s.pause(ctx, s.Timeout/2)
	return nil
}
