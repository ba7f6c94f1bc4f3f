package server

import (
	"cmp"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// What one identity may do in a second where the policy says nothing and there may be others; docs/security.md tells why.
const (
	sessionsPerSecond = 1000
	writesPerSecond   = 20000
	bytesPerSecond    = 8 << 20
)

// NewLimits are the limits of a server with these options, and of services with so many leases, watched nodes and claims, 0 for any number of
// them. The policy of Options.Policy stands before them once the server has been made.
func NewLimits(options Options, leases, watched, claims int) *caller.Limits {
	most := policy.Limits{
		policy.Connections: shareOf(options.MaxConnections), policy.IncompleteRequests: shareOf(budget.MostLong(options.MaxMemory)),
		policy.Leases: leases, policy.WatchedNodes: watched,
	}
	if !options.AllOperate && !IsForOne(options.callerAddresses(), options.TLS) {
		most[policy.Leases], most[policy.WatchedNodes], most[policy.Claims] = shareOf(leases), shareOf(watched), shareOf(claims)
		most[policy.Streams] = budget.StreamConnections * options.MaxStreams
		most[policy.SessionsPerSecond] = sessionsPerSecond
		most[policy.WritesPerSecond], most[policy.BytesPerSecond] = writesPerSecond, bytesPerSecond
	}
	return caller.NewLimits(most)
}

// callConnections are the connections' worth of long-lived streams that one caller gets of calls under way, over all its connections.
const callConnections = 8

// mostCalls is how many calls of one caller may be under way.
func (o Options) mostCalls() int {
	if IsForOne(o.callerAddresses(), o.TLS) {
		return math.MaxInt
	}
	return callConnections * o.MaxStreams
}

// budgetOf is what the callers of a server have, of whom one may have so much as limits say.
func (o Options) budgetOf(judges authorizer) *budget.Budget {
	return budget.New(budget.Options{
		Limits: o.Limits, Connections: o.MaxConnections, Streams: o.MaxStreams, Calls: o.mostCalls(), Memory: o.MaxMemory,
		Complete: cmp.Or(o.completeWithin, budget.LongestRequest), Log: o.Log,
		May: judges.mayAsk, Reached: o.Metrics.limitReached, Refused: o.Metrics.refused, Told: o.Metrics.tellEarly,
	})
}

// shareOf is how much of so many one caller gets: three quarters.
func shareOf(most int) int { return most - most/4 }

// costOf is the cost of a request.
func costOf(method string, request any) budget.Cost {
	sessions, writes := methods.Of(method).Costs(request)
	made := budget.Cost{sessions, writes, 0}
	if writes > 0 {
		made[2] = proto.Size(request.(proto.Message))
	}
	return made
}
