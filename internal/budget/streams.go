package budget

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// A streamCount counts the long-lived streams of one connection.
type streamCount struct{ open atomic.Int64 }

// enter admits one more stream unless there are most already. Who was admitted calls leave.
func (c *streamCount) enter(most int) error {
	if c.open.Add(1) > int64(most) {
		c.open.Add(-1)
		return service.StreamLimit(most)
	}
	return nil
}

func (c *streamCount) leave() { c.open.Add(-1) }

// What there may be of long-lived streams.
const (
	StreamConnections = 4  // connections' worth of them for one caller over all its connections, where there are others
	fewStreams        = 64 // of one connection, whether there is memory or not
)

// BeginStream admits one more long-lived stream of the connection, and of its caller, which may have so many as share says, or any number
// if it is 0. Who was admitted calls EndStream. When memory is short, a connection that has many streams gets no more, and the others do.
func (s *Slot) BeginStream(most, share int, identity string, memory Memory) error {
	if err := s.streams.enter(most); err != nil {
		return err
	}
	if s.quota == nil {
		return nil
	}
	err := s.quota.streams.enter(orAny(share))
	if err != nil {
		s.streams.leave()
		return service.QuotaExceeded(policy.Streams.String(), share, identity, 0)
	}
	if s.streams.open.Load() > fewStreams {
		if err = memory.spare(); err != nil {
			s.EndStream()
		}
	}
	return err
}

// EndStream is for each stream that was admitted.
func (s *Slot) EndStream() {
	s.streams.leave()
	if s.quota != nil {
		s.quota.streams.leave()
	}
}

// What a connection may take back of its calls until it is read more slowly: a call that is made and taken back at once costs the
// caller next to nothing and the sidecar a goroutine.
const (
	withdrawals      = 200 // calls in a second
	withdrawalsBurst = 1000
)

// longestBreak is how long a pace waits at a time, so that who waits still sees soon what happens.
const longestBreak = 100 * time.Millisecond

// A pace slows down a caller, or a connection, in whose wake too much happens.
type pace struct{ events *rate.Limiter }

func newPace(perSecond rate.Limit, burst int) *pace { return &pace{rate.NewLimiter(perSecond, burst)} }

// count notes that it has happened. A nil pace slows nothing down.
func (p *pace) count() {
	if p != nil {
		p.events.Reserve()
	}
}

// withdrawn notes the end of a call, if it was taken back or had no time.
func (p *pace) withdrawn(ctx context.Context) {
	if ctx.Err() != nil {
		p.count()
	}
}

// owes says whether it has happened too often.
func (p *pace) owes() bool { return p.events.Tokens() < 0 }

// keep waits while it has happened too often, but not for long.
func (p *pace) keep() { p.keepFor(longestBreak) }

// keepFor is keep with the longest wait.
func (p *pace) keepFor(longest time.Duration) {
	if p == nil {
		return
	}
	if debt := -p.events.Tokens(); debt > 0 {
		due := time.Duration(debt / float64(p.events.Limit()) * float64(time.Second))
		<-time.After(min(longest, due))
	}
}
