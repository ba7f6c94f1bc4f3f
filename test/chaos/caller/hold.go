package caller

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// A hold is a lock that was granted, while its caller believes in it.
type hold struct {
	caller *caller
	op     int64
	name   string
	lock   lock

	mu          sync.Mutex
	first, last history.Instant // it was found valid
	written     history.Instant // what was noted of last
	stop        chan struct{}
	stopped     sync.WaitGroup
	lost        bool // and noted
}

// with acquires a lock, calls do while it is held, and gives it up. It says whether it was granted.
func (c *caller) with(ctx context.Context, name string, options sidekeeper.LockOptions, do func(*hold)) bool {
	h := c.acquire(ctx, name, options)
	if h == nil {
		return false
	}
	do(h)
	h.end(h.lock.Release)
	return true
}

// acquire returns nil if the lock was not granted.
func (c *caller) acquire(ctx context.Context, name string, options sidekeeper.LockOptions) *hold {
	called := history.Event{Kind: history.Called, Lock: name, Mode: modes[options.Mode], Resumes: c.order.Resumes}
	if options.Wait != nil {
		called.Wait = *options.Wait
	}
	op := c.begin(called)
	options.Owner = history.Owner(c.order.Client, op)
	options.OnQueued = func(queued sidekeeper.Queued) {
		c.note(op, history.Event{Kind: history.Queued, Position: queued.Position})
	}
	options.OnSuspended = func(time.Duration) { c.note(op, history.Event{Kind: history.Suspended}) }
	options.OnResumed = func() { c.note(op, history.Event{Kind: history.Resumed}) }
	granted, err := c.locks.acquire(ctx, name, options)
	if err != nil {
		c.noteEnd(ctx, op, err)
		return nil
	}
	c.note(op, history.Event{Kind: history.Granted, Token: granted.FencingToken()})
	h := &hold{caller: c, op: op, name: name, lock: granted, stop: make(chan struct{})}
	h.look()
	h.stopped.Go(h.watch)
	return h
}

// modes are what histories call the modes of a lock.
var modes = map[sidekeeper.Mode]history.Mode{
	0:                    history.Exclusive, // the default
	sidekeeper.Exclusive: history.Exclusive,
	sidekeeper.Read:      history.Read,
	sidekeeper.Write:     history.Write,
}

// noteEnd notes that an operation has ended with an error, or was ended by the caller, whose context it is.
func (c *caller) noteEnd(ctx context.Context, op int64, err error) {
	event := ending(err)
	event.ByUser = ctx.Err() != nil
	c.note(op, event)
}

// ending is how something ended.
func ending(err error) history.Event {
	event := history.Event{Kind: history.Ended, Code: codes.OK.String()}
	var told *sidekeeper.Error
	switch {
	case err == nil:
	case errors.As(err, &told):
		event.Code, event.Reason = told.Code.String(), told.Reason
	case errors.Is(err, io.EOF): // of a stream
	case errors.Is(err, context.Canceled):
		event.Code = codes.Canceled.String()
	case errors.Is(err, context.DeadlineExceeded):
		event.Code = codes.DeadlineExceeded.String()
	default:
		event.Code, event.Reason = Bare(err)
	}
	return event
}

// Bare is the code and the reason of the error of a call with bare stubs.
func Bare(err error) (code, reason string) {
	from, is := status.FromError(err)
	if !is {
		return codes.Unknown.String(), err.Error()
	}
	for _, detail := range from.Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			reason = info.GetReason()
		}
	}
	return from.Code().String(), reason
}

// look says whether the lock is still the caller's, as the caller itself knows it, and notes that now and then.
func (h *hold) look() bool {
	asked := history.Now()
	if !h.lock.Valid() {
		return false
	}
	answered := history.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first == 0 {
		h.first = answered
	}
	h.last = max(h.last, asked)
	if h.last.Since(h.written) >= rarely || h.lock.ValidFor() < risky {
		h.write()
	}
	return true
}

// write notes for how long the caller has believed. The mutex is held.
func (h *hold) write() {
	if h.last >= h.first && h.last != h.written && h.first != 0 {
		h.written = h.last
		h.caller.note(h.op, history.Event{Kind: history.Believed, From: h.first, To: h.last})
	}
}

// How often a holder looks and notes: more often where it is about to lose the lock, since then it matters when it looked
// last.
const (
	rarely = 100 * time.Millisecond
	often  = 30 * time.Millisecond
	risky  = 400 * time.Millisecond
	soon   = 4 * time.Millisecond
)

// watch looks again and again, and notes the loss of the lock.
func (h *hold) watch() {
	timer := time.NewTimer(often)
	defer timer.Stop()
	for {
		select {
		case <-h.stop:
			select {
			case <-h.lock.Done(): // at the same moment
				h.noteLoss()
			default:
			}
			return
		case <-h.lock.Done():
			h.noteLoss()
			return
		case <-timer.C:
		}
		if h.look() && h.lock.ValidFor() < risky {
			timer.Reset(soon)
		} else {
			timer.Reset(often)
		}
	}
}

func (h *hold) noteLoss() {
	err := h.lock.Err()
	if err == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = true
	h.write()
	h.caller.note(h.op, ending(err))
}

// stay keeps the lock for a while, and says whether it is held then.
func (h *hold) stay(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return h.look()
	case <-h.lock.Done():
	case <-ctx.Done():
	}
	return false
}

// end gives the lock up in the way given, and notes how that went unless it was lost before.
func (h *hold) end(giveUp func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	close(h.stop)
	h.stopped.Wait()
	h.mu.Lock()
	h.write()
	lost := h.lost
	h.mu.Unlock()
	if !lost {
		h.caller.note(h.op, history.Event{Kind: history.Releasing})
	}
	err := giveUp(ctx)
	if !lost {
		h.caller.note(h.op, ending(err))
	}
}
