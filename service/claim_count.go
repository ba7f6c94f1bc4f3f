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

// longestClaimLook is within what time a sidecar looks again that has refused a claim.
const longestClaimLook = claimsEvery/6 + claimsEvery/10

// claimCounts are the claims of the ensemble: what the last look has found, and by caller what this sidecar has made since. A claim that has
// ended counts for as long as its record stands: it fills the ensemble, too. Nothing is counted less but by a look.
type claimCounts struct {
	mu      sync.Mutex
	ends    []time.Time    // of those that are held
	found   map[string]int // by caller, see recipes.CallerOfClaims
	made    map[string]int // likewise
	making  map[string]int // likewise: those that are being made
	refused bool           // since the last look
}

// makes counts one more of a caller, unless it would then have more than it may; 0 is any number. done is called when the making was answered.
func (c *claimCounts) makes(whose string, most int) (done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most > 0 && c.found[whose]+c.made[whose]+c.making[whose] >= most {
		c.refused = true
		return nil, false
	}
	c.making[whose]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made[whose]++
		if c.making[whose]--; c.making[whose] == 0 {
			delete(c.making, whose)
		}
	}, true
}

// isDue says whether a look is due before its time.
func (c *claimCounts) isDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// look counts what a book has after a sweep. What was made before counts for itself until a sweep has read all.
func (c *claimCounts) look(book *recipes.ClaimBook, sweep func() (all bool)) {
	c.mu.Lock()
	before := maps.Clone(c.made)
	c.refused = false
	c.mu.Unlock()
	if !sweep() {
		return
	}
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

// admitClaim has a claim count in its caller's share.
func (s *Services) admitClaim(from caller.Caller, wanted *recipes.ClaimRequest) {
	wanted.Caller = recipes.CallerOfClaims(from.Identity)
	wanted.Admit = func() (done func(), _ error) {
		most := s.options.ClaimShare(from.Identity)
		done, ok := s.claimCounts.makes(wanted.Caller, most)
		if !ok {
			return nil, QuotaExceeded("claims", most, from.Identity, longestClaimLook)
		}
		return done, nil
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
		if time.Now().Before(due) && !s.claimCounts.isDue() {
			continue
		}
		due = time.Now().Add(claimsEvery)
		s.claimCounts.look(&book, func() (all bool) {
			next, err := s.claims().Sweep(ctx, s.ensemble, &book)
			unreachable := errors.Is(err, recipes.ErrUnreachable)
			if err != nil && ctx.Err() == nil && !unreachable {
				s.options.Log.Warn("claims whose time is over may stand yet", zap.Error(err))
			}
			if !next.IsZero() {
				due = time.Now().Add(min(claimsEvery, max(claimsEvery/6, time.Until(next))))
			}
			return ctx.Err() == nil && !unreachable
		})
	}
}
