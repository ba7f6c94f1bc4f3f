package service_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// numbered asks for a permit with a number.
func (s *scene) numbered(lease string) *permitting {
	s.t.Helper()
	return s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "ids", Numbered: true, LeaseId: lease})
}

// at says which number is granted, after it was queued, or what else comes.
func (p *permitting) at() string {
	event, err := p.stream.Recv()
	for event.GetQueued() != nil { // the one before may be about to leave the queue
		event, err = p.stream.Recv()
	}
	if err != nil {
		return outcome(err)
	}
	granted := event.GetGranted()
	if granted == nil {
		return "no grant"
	}
	p.hold, p.token = granted.GetHoldId(), granted.GetToken()
	if granted.Number == nil {
		return "no number"
	}
	return fmt.Sprint("number ", granted.GetNumber())
}

// numbers are the numbers of the holders, and those in quarantine, with a star where that has not begun.
func (s *scene) numbers() string {
	s.t.Helper()
	got, err := s.semaphores.Get(s.context(), &semaphorev1.GetRequest{Name: "ids"})
	s.must(err)
	text := ""
	for _, holder := range got.GetView().GetHolders() {
		text += fmt.Sprint(holder.GetNumber(), " ")
	}
	text += "|"
	for _, of := range got.GetView().GetQuarantines() {
		text += fmt.Sprint(" ", of.GetNumber())
		if of.GetUntil() == nil {
			text += "*"
		}
	}
	return text
}

func TestANumberIsFreeAtOnceWhenItsCallerEndsTheHold(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("ids", 3)
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		for range 2 {
			for _, on := range []string{"", lease.id} {
				first := s.numbered("")
				same(t, "first", first.at(), "number 0")
				second := s.numbered(on)
				same(t, "second", second.at(), "number 1")
				same(t, "numbers", s.numbers(), "0 1 |")
				for _, of := range []*permitting{first, second} {
					_, err := s.semaphores.Release(s.context(), &semaphorev1.ReleaseRequest{HoldId: of.hold})
					same(t, "Release", outcome(err), "OK")
				}
				s.awaitShown("ids", "0 of 3:")
				same(t, "numbers", s.numbers(), "|")
			}
		}
		cancelled := s.numbered("")
		same(t, "cancelled", cancelled.at(), "number 0")
		cancelled.cancel()
		s.awaitShown("ids", "0 of 3:")
		same(t, "numbers", s.numbers(), "|")
	})
}

func TestANumberThatIsLostOrTakenRestsForItsQuarantine(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("ids", 2)
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		lost := s.numbered(lease.id)
		same(t, "lost", lost.at(), "number 0")
		revoked := s.numbered("")
		same(t, "revoked", revoked.at(), "number 1")
		lease.session.Expire()
		lost.skips("suspended", "Aborted LEASE_LOST")
		_, err := s.operators.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "ids", Limit: 1, Grace: durationpb.New(0)})
		s.must(err)
		revoked.skips("asked: ", "Aborted LOCK_REVOKED")
		s.awaitShown("ids", "0 of 1:")
		same(t, "numbers", s.numbers(), "| 0* 1*")
		_, err = s.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "ids", Limit: 2})
		s.must(err)

		at := time.Now()
		waiting := s.numbered("")
		waiting.skips("queued 1", "queued 0")
		same(t, "numbers", s.numbers(), "| 0 1")
		once := &semaphorev1.AcquireRequest{Name: "ids", Numbered: true, WaitTimeout: durationpb.New(0)}
		s.permits(s.callers, once).sees("FailedPrecondition SEMAPHORE_FULL")
		plain := &semaphorev1.AcquireRequest{Name: "ids", WaitTimeout: durationpb.New(0)}
		s.permits(s.callers, plain).sees("FailedPrecondition SEMAPHORE_FULL")
		same(t, "waiting", waiting.at(), "number 0")
		if rested := time.Since(at); rested < time.Minute || rested > time.Minute+6*time.Second {
			t.Errorf("it rested for %v", rested)
		}
	})
}

// The text says it to the first in the queue.
func TestACallerThatDoesNotWaitIsToldHowManyNumbersRest(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("ids", 1)
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		lost := s.numbered(lease.id)
		same(t, "lost", lost.at(), "number 0")
		lease.session.Expire()
		lost.skips("suspended", "Aborted LEASE_LOST")
		once := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "ids", Numbered: true, WaitTimeout: durationpb.New(0)})
		_, err := once.stream.Recv()
		same(t, "the end", fmt.Sprint(err), "rpc error: code = FailedPrecondition desc = "+
			"SEMAPHORE_FULL: not enough free permits: no number is free, and 1 are in quarantine")
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "ids", WaitTimeout: durationpb.New(0)}).sees("granted") // which needs none
	})
}

func TestAReleasedNumberWhoseFreeingIsNotAnsweredRests(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("ids", 2)
		request := &semaphorev1.AcquireRequest{Name: "ids", Numbered: true, Quarantine: durationpb.New(time.Hour)}
		held := s.permits(s.callers, request)
		same(t, "held", held.at(), "number 0")
		s.ensemble.Before(func(of standin.Operation) error {
			if of.Name == "Commit" {
				return recipes.ErrUnreachable
			}
			return nil
		})
		_, err := s.semaphores.Release(s.context(), &semaphorev1.ReleaseRequest{HoldId: held.hold})
		same(t, "Release", outcome(err), "OK")
		s.ensemble.Before(nil)
		s.awaitShown("ids", "0 of 2:")
		same(t, "numbers", s.numbers(), "| 0*")
		same(t, "the next", s.permits(s.callers, request).at(), "number 1")
	})
}

func TestNumberedRequestsThatBreakARuleWriteNothing(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("ids", 2)
		for _, c := range []struct {
			field   string
			request *semaphorev1.AcquireRequest
		}{
			{"permits", &semaphorev1.AcquireRequest{Numbered: true, Permits: 2}},
			{"quarantine", &semaphorev1.AcquireRequest{Quarantine: durationpb.New(0)}},
			{"quarantine", &semaphorev1.AcquireRequest{Numbered: true, Quarantine: durationpb.New(24*time.Hour + 1)}},
			{"quarantine", &semaphorev1.AcquireRequest{Numbered: true, Quarantine: durationpb.New(-1)}},
		} {
			c.request.Name = "ids"
			s.permits(s.callers, c.request).sees("InvalidArgument INVALID_FIELD " + c.field)
		}
		_, err := s.semaphores.Create(s.context(), &semaphorev1.CreateRequest{Name: "ids.numbers", Limit: 1})
		same(t, "Create", outcome(err), "InvalidArgument INVALID_FIELD name")
		if names := s.ensemble.memory.Names("/sidekeeper/semaphores"); len(names) != 1 {
			t.Errorf("written: %q", names)
		}
	})
}
