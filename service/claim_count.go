package service

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// claimsEvery is how often a sidecar looks for claims whose time is over, at least. One sixth of it is how often at most.
const claimsEvery = time.Minute

// claimCounts are the claims of the ensemble: what the last look has found, and by caller what this sidecar has made since.
type claimCounts struct {
	mu    sync.Mutex
	ends  []time.Time     // of those that are held
	found map[string]int  // by caller, see recipes.CallerOfClaims
	made  map[string]int  // likewise, less those that were released here
	stale map[string]bool // the callers of which claims have ended since, or may have: these are to be read again
}

// takes counts one more of a caller, unless it would then have more than it may; 0 is any number.
func (c *claimCounts) takes(whose string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most > 0 && c.found[whose]+c.made[whose] >= most {
		c.stale[whose] = true
		return false
	}
	c.made[whose]++
	return true
}

// gives counts one less, unless it is not known whose it was: a record of an older sidecar does not say that.
func (c *claimCounts) gives(whose string) {
	if whose == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale[whose] = true
	c.made[whose]--
}

func (c *claimCounts) isStale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stale) > 0
}

// look has a sweep read the claims that it must, and counts what its book has then.
func (c *claimCounts) look(book *recipes.ClaimBook, sweep func()) {
	c.mu.Lock()
	before := maps.Clone(c.made)
	book.Doubt(c.stale)
	clear(c.stale)
	c.mu.Unlock()
	sweep()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends, c.found = book.Ends(), book.Callers()
	for whose, number := range before {
		c.made[whose] -= number
	}
	maps.DeleteFunc(c.made, func(_ string, number int) bool { return number == 0 })
}

// states counts the claims that are held, by state.
func (c *claimCounts) states() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for _, end := range c.ends {
		switch left := time.Until(end); {
		case left > recipes.ClaimEndsSoon:
			counts[claimStands]++
		case left > 0:
			counts[claimEnds]++
		}
	}
	return counts
}

// ClaimStates are what Services.ClaimStates tells.
var ClaimStates = []string{claimStands, claimEnds}

const (
	claimStands = "held"
	claimEnds   = "ends_soon" // within ten minutes
)

// ClaimStates counts the claims that are held in the ensemble, by state, as the sidecar has read them last.
func (s *Services) ClaimStates() map[string]int { return s.claimCounts.states() }

// admitsClaim counts a claim in its caller's share once, before it is made. forget takes that back.
func (s *Services) admitsClaim(from caller.Caller, wanted *recipes.ClaimRequest) (forget func()) {
	admitted := false
	wanted.Caller = recipes.CallerOfClaims(from.Identity)
	wanted.Admit = func() error {
		most := s.options.ClaimShare(from.Identity)
		if admitted = admitted || s.claimCounts.takes(wanted.Caller, most); !admitted {
			return QuotaExceeded("claims", most, from.Identity, 0)
		}
		return nil
	}
	return func() {
		if admitted {
			s.claimCounts.gives(wanted.Caller)
		}
	}
}

// Tend ends claims whose time is over, until ctx ends. Each sidecar does so, whether or not a caller waits: behind a claim there may be
// clients of the ensemble that are not Sidekeeper's.
func (s *Services) Tend(ctx context.Context) {
	var book recipes.ClaimBook
	for due := time.Now(); ; {
		select {
		case <-time.After(min(claimsEvery/6, time.Until(due)) + rand.N(claimsEvery/10)): //nolint:gosec // spreads work, and needs no secrecy
		case <-ctx.Done():
			return
		}
		if time.Now().Before(due) && !s.claimCounts.isStale() {
			continue
		}
		due = time.Now().Add(claimsEvery)
		s.claimCounts.look(&book, func() {
			next, err := s.claims().Sweep(ctx, s.ensemble, &book)
			if err != nil && ctx.Err() == nil && !errors.Is(err, recipes.ErrUnreachable) {
				s.options.Log.Warn("claims whose time is over may stand yet", zap.Error(err))
			}
			if !next.IsZero() {
				due = time.Now().Add(min(claimsEvery, max(claimsEvery/6, time.Until(next))))
			}
		})
	}
}
