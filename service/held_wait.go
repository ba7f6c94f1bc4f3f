package service

import (
	"context"
	"errors"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What is here is for a goroutine that waits for a turn. It heeds the end of the waiting by itself.

// take takes a place. That cannot be cancelled: if the waiting ends first, giveUp waits for the place to leave it.
func (s *held[P, M]) take(ctx context.Context, join func(recipes.About) (P, error)) (err error) {
	about := s.about()
	s.taking = run(func() (P, error) { return join(about) })
	if err := s.pause(ctx, wakers{s.taking.done}); err != nil {
		return err
	}
	s.place, err = s.taking.wait()
	return err
}

// leave gives the place up that was taken.
func (s *held[P, M]) leave(ctx context.Context) error {
	_, err := await(ctx, s, func(ctx context.Context) (left struct{}, _ error) {
		s.place.Leave(ctx)
		return left, nil
	})
	return err
}

// await asks the ensemble one thing beside the waiting, so that this can end before there is an answer. The question's context is
// that of the waiting, and not its own: what it watches serves until that ends.
func await[T any, P heldPlace, M any](ctx context.Context, s *held[P, M], ask func(context.Context) (T, error)) (T, error) {
	asked := run(func() (T, error) { return ask(ctx) })
	if err := s.pause(ctx, wakers{asked.done}); err != nil {
		s.calls = append(s.calls, asked.done)
		s.stopWaiting()
		var nothing T
		return nothing, err
	}
	answer, err := asked.wait()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// outwait has a caller that waits try again later if the ensemble did not answer: what the request has is kept for as long as its lease
// lives.
func (s *held[P, M]) outwait(ctx context.Context, err error) error {
	if errors.Is(err, recipes.ErrUnreachable) {
		return s.pause(ctx, wakers{after(countdown)})
	}
	return err
}

// pause returns when one of the wakers is closed, or with what ends the waiting.
func (s *held[P, M]) pause(ctx context.Context, by wakers) error {
	stopping := s.lease.drain.notice
	if s.claim.held() {
		stopping = nil // it goes on until its lease ends, as holds do
	}
	select {
	case <-by[0]:
		return nil
	case <-by[1]:
		return nil
	case <-by[2]:
		return nil
	case <-by[3]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stopping:
		return errStopping
	}
}
