package server

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// What one identity may do in a second where the policy says nothing and there may be others; docs/security.md tells why.
const (
	sessionsPerSecond = 1000
	writesPerSecond   = 20000
	bytesPerSecond    = 8 << 20
)

// NewLimits are the limits of a server with these options, and of services with so many leases and watched nodes, 0 for any number of them.
// The policy of Options.Policy stands before them once the server has been made.
func NewLimits(options Options, leases, watched int) *caller.Limits {
	most := policy.Limits{
		policy.Connections: shareOf(options.MaxConnections), policy.IncompleteRequests: budget.MostIncomplete,
		policy.Leases: leases, policy.WatchedNodes: watched,
	}
	if !options.AllOperate && !IsForOne(options.callerAddresses(), options.TLS) {
		most[policy.Leases], most[policy.WatchedNodes] = shareOf(leases), shareOf(watched)
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

// budgets are what reads the requests of one server's callers, and what bounds their calls.
func (s *Server) budgets() (budget.Reception, *budget.Calls) {
	reception := budget.Reception{
		Limits: s.options.Limits, Memory: budget.NewMemory(s.options.MaxMemory), Told: s.options.Metrics.tellEarly, Large: s.large,
		Complete: cmp.Or(s.options.completeWithin, budget.LongestRequest),
	}
	return reception, &budget.Calls{
		Most: s.options.mostCalls(), Streams: s.options.MaxStreams, Limits: s.options.Limits, Memory: reception.Memory,
		Refused: s.options.Metrics.refused,
	}
}

// shareOf is how much of so many one caller gets: three quarters.
func shareOf(most int) int { return most - most/4 }

// costOf is the cost of a request. What lets go costs nothing; nor do numbers that come out of a reserved block.
func costOf(method string, request any) budget.Cost {
	count, writes := writesOf[method]
	switch method {
	case leasev1.LeaseService_Open_FullMethodName:
		return budget.Cost{1}
	case leasev1.LeaseService_Multiplex_FullMethodName:
		if request, ok := request.(*leasev1.MultiplexRequest); ok && request.GetOpen() != nil {
			return budget.Cost{1}
		}
		return budget.Cost{}
	}
	if !writes || request == nil {
		return budget.Cost{}
	}
	made := budget.Cost{0, count(request), 0}
	if made[1] == 0 {
		return budget.Cost{}
	}
	made[2] = proto.Size(request.(proto.Message))
	if on, may := request.(interface{ GetLeaseId() string }); may && slices.Contains(holding, method) && on.GetLeaseId() == "" {
		made[0] = 1
	}
	return made
}

// holding are the methods that open a session of their own where they are given no lease.
var holding = []string{
	lockv1.LockService_Acquire_FullMethodName, lockv1.LockService_AcquireAll_FullMethodName, semaphorev1.SemaphoreService_Acquire_FullMethodName,
	electionv1.ElectionService_Campaign_FullMethodName, membershipv1.MembershipService_Join_FullMethodName,
	queuev1.QueueService_Take_FullMethodName, barrierv1.BarrierService_Enter_FullMethodName,
	agreementv1.AgreementService_Vote_FullMethodName,
}

// writesOf is how many writes a request of each method that writes counts as.
var writesOf = map[string]func(request any) int{
	lockv1.LockService_Acquire_FullMethodName: once,
	lockv1.LockService_AcquireAll_FullMethodName: func(request any) int {
		return max(1, len(request.(*lockv1.AcquireAllRequest).GetLocks()))
	},
	lockv1.LockService_Revoke_FullMethodName: once,
	lockv1.LockService_Break_FullMethodName:  once,

	electionv1.ElectionService_Campaign_FullMethodName: once,
	electionv1.ElectionService_Proclaim_FullMethodName: once,
	electionv1.ElectionService_Transfer_FullMethodName: once,

	semaphorev1.SemaphoreService_Create_FullMethodName: once,
	semaphorev1.SemaphoreService_Acquire_FullMethodName: func(request any) int {
		return max(1, int(request.(*semaphorev1.AcquireRequest).GetPermits()))
	},
	semaphorev1.SemaphoreService_Resize_FullMethodName: once,

	queuev1.QueueService_Put_FullMethodName:  once,
	queuev1.QueueService_Take_FullMethodName: func(any) int { return 3 }, // among those who wait, of the item and of the delivery
	queuev1.QueueService_Done_FullMethodName: once,

	barrierv1.BarrierService_Set_FullMethodName:    once,
	barrierv1.BarrierService_Remove_FullMethodName: once,
	barrierv1.BarrierService_Enter_FullMethodName:  once,

	agreementv1.AgreementService_Begin_FullMethodName:  once,
	agreementv1.AgreementService_Vote_FullMethodName:   func(any) int { return 3 }, // the claim, the vote and the decision
	agreementv1.AgreementService_Abort_FullMethodName:  once,
	agreementv1.AgreementService_Await_FullMethodName:  once, // the decision
	agreementv1.AgreementService_Forget_FullMethodName: once,

	sequencev1.SequenceService_Create_FullMethodName:    once,
	sequencev1.SequenceService_Next_FullMethodName:      ifStrict,
	sequencev1.SequenceService_AdvanceTo_FullMethodName: once,
	sequencev1.SequenceService_Delete_FullMethodName:    once,

	membershipv1.MembershipService_Join_FullMethodName:   once,
	membershipv1.MembershipService_Update_FullMethodName: once,
	membershipv1.MembershipService_Create_FullMethodName: once,
	membershipv1.MembershipService_Delete_FullMethodName: once,

	configv1.ConfigService_Put_FullMethodName:    once,
	configv1.ConfigService_Delete_FullMethodName: once,
	configv1.ConfigService_Commit_FullMethodName: func(request any) int { return len(request.(*configv1.CommitRequest).GetOperations()) },
}

func once(any) int { return 1 }

func ifStrict(request any) int {
	if request.(*sequencev1.NextRequest).GetOrdering() == sequencev1.Ordering_ORDERING_RELAXED {
		return 0
	}
	return 1
}
