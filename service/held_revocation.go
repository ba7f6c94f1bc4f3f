package service

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A request is a revocation as its holder counts it.
type request struct {
	told       bool // false only before there was any
	by, reason string
	to         string    // who shall hold instead, if that was said
	deadline   time.Time // zero if the hold is never ended by force
}

// grace is what is left until the hold is ended by force; nil if it never is.
func (r request) grace() *durationpb.Duration {
	if r.deadline.IsZero() {
		return nil
	}
	return durationpb.New(max(0, time.Until(r.deadline)))
}

// asks is the state of a place of whose holder this is asked.
func (s *held[P, M]) asks(revocation recipes.Revocation, changed *recipes.Signal) nodeState {
	return nodeState{changed: changed, act: func() error {
		switch {
		case revocation.Break:
			return s.recipe.removed
		case revocation.Asked:
			s.request(s.countGrace(revocation))
		}
		return nil
	}}
}

// askForStop asks for the hold because the sidecar begins to stop.
func (s *held[P, M]) askForStop() {
	if s.recipe.requested == nil || s.stopTold {
		return
	}
	s.stopTold = true
	s.request(request{told: true, by: "sidekeeper", reason: "the sidecar is stopping", deadline: s.services.drain.deadline})
}

// countGrace begins to count a revocation's grace. A deadline that is running stands, unless the new one is sooner.
func (s *held[P, M]) countGrace(asked recipes.Revocation) request {
	counted := request{told: true, by: asked.By, reason: asked.Reason, to: asked.To, deadline: s.asked.deadline}
	if asked.Grace == nil {
		return counted
	}
	deadline := time.Now().Add(*asked.Grace)
	if counted.deadline.IsZero() || deadline.Before(counted.deadline) {
		counted.deadline = deadline
		s.stopGrace()
		s.grace = time.AfterFunc(*asked.Grace, func() {
			s.over.end(s.recipe.revoked)
			s.isEnded()
		})
	}
	return counted
}

func (s *held[P, M]) stopGrace() {
	if s.grace != nil {
		s.grace.Stop()
	}
}

// request tells the caller what is asked of it, once.
func (s *held[P, M]) request(asked request) {
	if asked == s.asked {
		return
	}
	s.asked = asked
	s.tell(topicRevocation, func() M { return s.recipe.requested(asked) })
}
