package server

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// Limits of one connection that no setting changes.
const (
	longestMessage    = 1 << 20         // bytes of one request
	longestHeaders    = 16 << 10        // bytes of one call's headers
	handshakeTimeout  = 5 * time.Second // from accept to the HTTP/2 preface
	shortestPing      = 5 * time.Second // how often a client may ping
	streamWindow      = 64 << 10        // bytes a caller may send on one stream before they are read
	connectionWindow  = 1 << 20
	connectionBuffers = 4 << 10 // small: a thousand connections are to stay small

	mostHTTP    = 64               // connections of one listener for scrapers, or for those who look at the page
	scrapeWrite = 30 * time.Second // from a scrape's headers to the end of its answer
)

// limitsOf are the transport's limits and its keepalive, each set on purpose: by default gRPC notices neither a frozen caller
// nor a dropped network within minutes, and bounds neither streams nor headers. There is no MaxConnectionAge,
// since a connection's end is the end of every lock held over it.
func limitsOf(options Options) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: options.KeepaliveTime, Timeout: options.KeepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestPing, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(longestMessage),
		grpc.MaxHeaderListSize(longestHeaders),
		// Twice the long-lived streams, so that Check and Release never queue behind them.
		grpc.MaxConcurrentStreams(uint32(2 * options.MaxStreams)),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.ReadBufferSize(connectionBuffers),
		grpc.WriteBufferSize(connectionBuffers),
	}
}

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
	streamConnections = 4  // connections' worth of them for one caller over all its connections, where there are others
	fewStreams        = 64 // of one connection, whether there is memory or not
)

// beginStream admits one more long-lived stream of the connection, and of its caller, which may have so many as share says, or any number
// if it is 0. Who was admitted calls endStream. When memory is short, a connection that has many streams gets no more, and the others do.
func (s *connSlot) beginStream(most, share int, identity string, memory memory) error {
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
			s.endStream()
		}
	}
	return err
}

func (s *connSlot) endStream() {
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

// A pace slows somebody down in whose wake too much happens.
type pace struct{ events *rate.Limiter }

func newPace(perSecond rate.Limit, burst int) *pace { return &pace{rate.NewLimiter(perSecond, burst)} }

// count notes that it has happened. A nil pace slows nobody down.
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
