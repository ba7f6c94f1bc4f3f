package k8s

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const tick = 10 * time.Millisecond

// acting is a scene in which something acts.
func acting(t *testing.T, validFor time.Duration) (*scene, *term) {
	t.Helper()
	s := newScene(validFor)
	begun, err := begin(s, s.options(), s.stop)
	must(t, err)
	return s, begun
}

func ends(t *testing.T, s *scene, acted *term) {
	t.Helper()
	must(t, acted.end(context.Background()))
	if !s.resigned {
		t.Error("the term is not resigned")
	}
}

func TestWhatActsIsStoppedAtTheGraceAndTheProcessEndsAtTheMargin(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, acted := acting(t, 10*time.Second)
		s.at(7*time.Second - tick)
		s.want(t, nil, false)
		s.at(7 * time.Second)
		s.want(t, ErrAtRisk, false)
		s.at(9*time.Second - tick)
		s.want(t, ErrAtRisk, false)
		s.at(9 * time.Second)
		s.want(t, ErrAtRisk, true)
		if !errors.Is(s.why, ErrStillActing) {
			t.Errorf("it ends because of %v", s.why)
		}
		ends(t, s, acted)
	})
}

func TestATermThatIsConfirmedGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, acted := acting(t, 10*time.Second)
		for second := range 60 {
			s.at(time.Duration(second) * time.Second)
			s.confirm(5 * time.Second)
		}
		s.want(t, nil, false)
		ends(t, s, acted)
	})
}

func TestTheProcessGoesOnWhenWhatActsHasEndedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, acted := acting(t, 10*time.Second)
		s.at(8 * time.Second)
		ends(t, s, acted)
		s.at(20 * time.Second)
		s.want(t, ErrAtRisk, false)
	})
}

func TestWhatEndsATermByForceStopsWhatActsAtOnceAndLeavesItTheTimeThatWasPromised(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, acted := acting(t, 10*time.Second)
		s.at(time.Second)
		revoked := fmt.Errorf("%w: %w", sidekeeper.ErrLost, sidekeeper.ErrLockRevoked)
		s.lose(revoked)
		s.want(t, revoked, false)
		s.at(8 * time.Second)
		s.want(t, revoked, false)
		s.at(9 * time.Second)
		s.want(t, revoked, true)
		ends(t, s, acted)
	})
}

func TestTheProcessEndsAtOnceWhenTheEnsembleHasDroppedTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, acted := acting(t, 10*time.Second)
		s.at(time.Second)
		expired := fmt.Errorf("%w: %w", sidekeeper.ErrLost, sidekeeper.ErrLeaseLost)
		s.lose(expired)
		s.want(t, expired, true)
		ends(t, s, acted)
	})
}

func TestWhoIsAskedToYieldLeadsUntilWhatActsHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, acted := acting(t, 10*time.Second)
		s.at(time.Second)
		s.yield <- sidekeeper.Revocation{To: "two"}
		s.want(t, ErrYieldRequested, false)
		s.confirm(time.Minute)
		s.at(40 * time.Second)
		s.want(t, ErrYieldRequested, false)
		ends(t, s, acted)
	})
}

func TestATermDoesNotBeginThatIsAtRisk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newScene(3 * time.Second)
		if _, err := begin(s, s.options(), s.stop); !errors.Is(err, ErrAtRisk) {
			t.Errorf("it begins: %v", err)
		}
		s.at(time.Minute)
		s.want(t, nil, false)
	})
}

func TestRunResignsAlsoWhenWhatActsPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newScene(10 * time.Second)
		defer func() {
			if recover() == nil || !s.resigned {
				t.Errorf("resigned: %v", s.resigned)
			}
		}()
		_ = run(context.Background(), s, s.options(), s.stop, func() error { panic("a bug") })
	})
}

func TestAnElectedLeaderWaitsForWhatTheOneBeforeHasSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newScene(10 * time.Second)
		must(t, settle(context.Background(), s, Options{}.settle()))
		if waited := time.Since(s.began); waited != time.Second {
			t.Errorf("it waits for %v", waited)
		}
		must(t, settle(context.Background(), s, Options{Settle: -1}.settle()))
		if waited := time.Since(s.began); waited != time.Second {
			t.Errorf("it waits for %v more", waited-time.Second)
		}
	})
}
