package methods

import (
	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// NamesIn are what a request is about; none if it names nothing.
func (m *Method) NamesIn(request any) []string {
	if m == nil || m.Names == nil || request == nil {
		return nil
	}
	return m.Names(request)
}

// MembersIn are the member, or the participant, that a request is about; none for most methods.
func (m *Method) MembersIn(request any) []string {
	if m == nil || !m.Member || request == nil {
		return nil
	}
	if vote, is := request.(*agreementv1.VoteRequest); is {
		return []string{vote.GetParticipant()}
	}
	return []string{request.(interface{ GetMember() string }).GetMember()}
}

// Costs are the sessions that a request opens, and the writes that it counts as.
func (m *Method) Costs(request any) (sessions, writes int) {
	if m == nil || request == nil {
		return 0, 0
	}
	if m.Sessions != nil {
		sessions = m.Sessions(request)
	}
	if m.Writes != nil {
		writes = m.Writes(request)
	}
	if on, may := request.(interface{ GetLeaseId() string }); may && m.Leased && on.GetLeaseId() == "" {
		sessions++
	}
	return sessions, writes
}

// IsUrgent says so of a method that there is.
func (m *Method) IsUrgent() bool { return m != nil && m.Urgent }

// Where the names stand in requests. A listing is of all that lies under its prefix, so that prefix must be allowed itself.

func nameIn(request any) []string { return []string{request.(interface{ GetName() string }).GetName()} }

func locksOfAcquireAll(request any) (names []string) {
	for _, lock := range request.(*lockv1.AcquireAllRequest).GetLocks() {
		names = append(names, lock.GetName())
	}
	return names
}

func groupIn(request any) []string {
	return []string{request.(interface{ GetGroup() string }).GetGroup()}
}

func setIn(request any) []string { return []string{request.(interface{ GetSet() string }).GetSet()} }

func keyIn(request any) []string { return []string{request.(interface{ GetKey() string }).GetKey()} }

func lockOfTicket(request any) []string {
	return []string{request.(interface{ GetTicket() *holdv1.Ticket }).GetTicket().GetLock()}
}

func locksOfWatch(request any) []string { return request.(*fencingv1.WatchRequest).GetLocks() }

func prefixIn(request any) []string {
	return []string{request.(interface{ GetPrefix() string }).GetPrefix()}
}

// everyName is for a method that shows names of all kinds and of everybody.
func everyName(any) []string { return []string{""} }

func keysOfCommit(request any) (keys []string) {
	for _, operation := range request.(*configv1.CommitRequest).GetOperations() {
		switch of := operation.GetOperation().(type) {
		case *configv1.Operation_Put:
			keys = append(keys, of.Put.GetKey())
		case *configv1.Operation_Delete:
			keys = append(keys, of.Delete.GetKey())
		case *configv1.Operation_Check:
			keys = append(keys, of.Check.GetKey())
		default:
			keys = append(keys, "")
		}
	}
	return keys
}

func keysOfWatch(request any) []string {
	watch := request.(*configv1.WatchRequest)
	if len(watch.GetKeys()) == 0 {
		return []string{watch.GetPrefix()}
	}
	return watch.GetKeys()
}

// GuardsIn are the locks whose tickets guard what a request asks for.
func GuardsIn(request any) (locks []string) {
	if guarded, ok := request.(interface{ GetGuards() []*holdv1.Guard }); ok {
		for _, guard := range guarded.GetGuards() {
			if ticket := guard.GetTicket(); ticket != nil {
				locks = append(locks, ticket.GetLock())
			}
		}
	}
	return locks
}

func hasGrace(request any) bool {
	return request.(interface{ GetGrace() *durationpb.Duration }).GetGrace() != nil
}

// claimsOf counts what it takes to look at claims, each of which sets a clock.
func claimsOf(request any) int { return 2 * len(request.(*lockv1.CheckRequest).GetClaimIds()) }

func isForced(request any) bool    { return request.(*membershipv1.DeleteRequest).GetForce() }
func isRecursive(request any) bool { return request.(*configv1.DeleteRequest).GetRecursive() }

// How many writes a request counts as, and how many sessions it opens.

func once(any) int { return 1 }

// two are of a schedule: the time, and what it is.
func two(any) int { return 2 }

// three are of a delivery: among those who wait, of the item, of itself; and of a vote: the claim, the vote, the decision.
func three(any) int { return 3 }

func locksOf(request any) int { return max(1, len(request.(*lockv1.AcquireAllRequest).GetLocks())) }

// permitsOf counts also that a number is recorded, and freed.
func permitsOf(request any) int {
	asked := request.(*semaphorev1.AcquireRequest)
	if asked.GetNumbered() {
		return three(request)
	}
	return max(1, int(asked.GetPermits()))
}

func operationsOf(request any) int { return len(request.(*configv1.CommitRequest).GetOperations()) }

// ifStrict counts no numbers that come out of a reserved block.
func ifStrict(request any) int {
	if request.(*sequencev1.NextRequest).GetOrdering() == sequencev1.Ordering_ORDERING_RELAXED {
		return 0
	}
	return 1
}

func ifOpened(request any) int {
	if multiplexed, is := request.(*leasev1.MultiplexRequest); is && multiplexed.GetOpen() != nil {
		return 1
	}
	return 0
}
