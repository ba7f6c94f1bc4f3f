package service

import (
	"context"
	"errors"
	"maps"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// An attendance is the time in which a stream keeps its member: one select, and what it has to remember between two events.
type attendance struct {
	*joining
	contact *contact

	looking *errand[bearing] // a look at the member's node; nil before the first
	looked  <-chan struct{}  // closed when it has an answer
	changed <-chan struct{}  // closed when it is worth to look again

	told map[string]string // the metadata that the caller knows of
}

// A bearing is what a look at the member's node has shown.
type bearing struct {
	recipes.MemberState
	changed <-chan struct{}
}

// keep tells the caller that it is a member, and returns when it is not any more, with the reason.
func (j *joining) keep(ctx context.Context) error {
	j.member = j.services.beginMember(j.thing, j.lease, j.membership)
	a := &attendance{joining: j, contact: newContact(j.lease.session), told: j.aboutWith(j.about).Metadata}
	defer a.contact.stop()
	a.tell(topicPlace, func() *membershipv1.JoinResponse { return joinedEvent(j.membership.Incarnation) })
	if a.contact.suspended {
		a.tellContact()
	}
	looks, cancel := context.WithCancel(ctx)
	defer cancel()
	a.look(looks)
	for {
		if why := a.next(ctx, looks); why != nil {
			return why
		}
	}
}

// next waits for one event and returns why the member has ended, if it has.
func (a *attendance) next(ctx, looks context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.lease.session.Done():
		return errLeaseLost
	case <-a.lease.ended:
		return a.lease.lost()
	case <-a.membership.Gone():
		return a.removed()
	case <-a.services.drain.over:
		return errHoldStopped
	case <-a.slow:
		return errSlowReader
	case <-a.contact.changed:
		if a.contact.look() {
			a.tellContact()
		}
	case <-a.contact.tick:
		a.tellContact()
	case <-a.changed:
		a.look(looks)
	case <-a.looked:
		return a.consider()
	}
	return nil
}

// look asks what has become of the member's node.
func (a *attendance) look(ctx context.Context) {
	a.looking = run(func() (bearing, error) {
		standing, changed, err := a.membership.Look(ctx)
		return bearing{standing, changed}, err
	})
	a.looked, a.changed = a.looking.done, nil
	a.errands = []<-chan struct{}{a.looked}
}

// consider acts on the answer to a look. An error says nothing about the member, save ErrRemoved: look again later.
func (a *attendance) consider() error {
	seen, err := a.looking.wait()
	a.looked = nil
	switch {
	case errors.Is(err, recipes.ErrRemoved):
		return a.removed()
	case err != nil:
		a.changed = after(countdown)
		return nil //nolint:nilerr // the lease alone decides whether the member stands
	case seen.End != nil:
		return ousted(seen.MemberState)
	}
	a.changed = seen.changed
	if !maps.Equal(seen.Metadata, a.told) {
		a.told = seen.Metadata
		a.tell(topicMetadata, func() *membershipv1.JoinResponse { return updatedEvent(seen.Metadata) })
	}
	return nil
}

// removed says why the node is gone: with the session, or by somebody else's hand.
func (a *attendance) removed() error {
	if why := a.lease.lost(); why != nil {
		return why
	}
	return recipes.ErrRemoved
}

// ousted says who has asked for the member's end.
func ousted(standing recipes.MemberState) error {
	text := "asked for by " + quoted(standing.By)
	if standing.Reason != "" {
		text += ": " + quoted(standing.Reason)
	}
	return &fault{kind: standing.End, facts: map[string]string{"by": standing.By, "reason": standing.Reason}, text: text}
}

func (a *attendance) tellContact() {
	suspended := a.contact.suspended
	a.tell(topicContact, func() *membershipv1.JoinResponse {
		if suspended {
			return memberSuspendedEvent(a.remaining())
		}
		return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Resumed{Resumed: &membershipv1.Resumed{}}}
	})
}

// tell sends an event, unless the caller is not a member any more when the event's turn has come.
func (a *attendance) tell(about topic, compose func() *membershipv1.JoinResponse) {
	a.box.put(about, func() (*membershipv1.JoinResponse, bool) {
		event := compose()
		return event, a.mayTell()
	})
}

func joinedEvent(incarnation int64) *membershipv1.JoinResponse {
	return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Joined{
		Joined: &membershipv1.Joined{Incarnation: incarnation},
	}}
}

func updatedEvent(metadata map[string]string) *membershipv1.JoinResponse {
	return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Updated{
		Updated: &membershipv1.Updated{Metadata: metadata},
	}}
}

func memberSuspendedEvent(remaining time.Duration) *membershipv1.JoinResponse {
	return &membershipv1.JoinResponse{Event: &membershipv1.JoinResponse_Suspended{
		Suspended: &membershipv1.Suspended{Remaining: durationpb.New(remaining)},
	}}
}
