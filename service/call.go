package service

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A call is a question to the ensemble that may take long, asked in a goroutine of its own so that whoever
// waits for the answer can leave. Whoever starts one waits for its end, at the latest after the stream's status.
type call[T any] struct {
	once  atomic.Bool
	over  recipes.Signal
	value T
	err   error
}

func run[T any](ask func() (T, error)) *call[T] {
	c := new(call[T])
	go c.answer(ask)
	return c
}

func (c *call[T]) answer(ask func() (T, error)) { c.conclude(answerOf(ask)) }

// answerOf is what a function returns, or its panic as an error.
func answerOf[T any](ask func() (T, error)) (value T, err error) {
	defer contain(&err)
	return ask()
}

// conclude takes the answer. It returns false if there was one.
func (c *call[T]) conclude(value T, err error) bool {
	if !c.once.CompareAndSwap(false, true) {
		return false
	}
	c.value, c.err = value, err
	c.over.Give()
	return true
}

// runThen is run for those who do not wait: over is given when there is an answer, and then is called with it.
func runThen[T any](ask func() (T, error), then func(T, error)) (over *recipes.Signal) {
	c := new(call[T])
	go func() {
		c.answer(ask)
		then(c.value, c.err)
	}()
	return &c.over
}

// contained is what a function returns, or its panic as an error.
func contained(do func() error) (err error) {
	defer contain(&err)
	return do()
}

// contain makes an error of a panic, as the recovery interceptor does for what runs in a handler.
func contain(err *error) { //nolint:gocritic // it sets the result of the function that defers it
	if reason := recover(); reason != nil {
		*err = fmt.Errorf("%w: %v\n%s", errInterrupted, reason, debug.Stack())
	}
}

func (c *call[T]) wait() (T, error) {
	if !c.over.IsGiven() {
		<-c.over.Done()
	}
	return c.value, c.err
}

// after is closed when the time has passed.
func after(pause time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(pause, func() { close(done) })
	return done
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
