package server

import (
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// A methodPolicy is how a policy sees the calls of one method. A method that has none is denied to everybody whom a policy applies to.
type methodPolicy struct {
	names    func(request any) []string // that a call is about; nil for methods about the caller's own leases and holds
	member   bool                       // whether it is about one member of the group that it names, or one participant of the agreement
	leased   bool                       // whether it stands on a lease, which its callers then may open and close
	operator bool                       // whether only operators call it
	use      string                     // what makes a call an operator's that is not one otherwise
	isUse    func(request any) bool
}

// methodPolicies are by full method.
var methodPolicies = map[string]methodPolicy{
	leasev1.LeaseService_Open_FullMethodName:      {},
	leasev1.LeaseService_Multiplex_FullMethodName: {}, // judged as Open
	leasev1.LeaseService_Check_FullMethodName:     {},
	leasev1.LeaseService_Close_FullMethodName:     {},
	leasev1.LeaseService_List_FullMethodName:      {names: everyName},

	lockv1.LockService_Acquire_FullMethodName:    {names: nameIn, leased: true},
	lockv1.LockService_AcquireAll_FullMethodName: {names: locksOfAcquireAll, leased: true},
	lockv1.LockService_Check_FullMethodName:      {},
	lockv1.LockService_Release_FullMethodName:    {},
	lockv1.LockService_Revoke_FullMethodName:     {names: nameIn, use: "grace", isUse: hasGrace},
	lockv1.LockService_Break_FullMethodName:      {names: nameIn, operator: true},
	lockv1.LockService_Get_FullMethodName:        {names: nameIn},
	lockv1.LockService_Explain_FullMethodName:    {names: everyName}, // whatever it leads to
	lockv1.LockService_List_FullMethodName:       {names: prefixIn},
	lockv1.LockService_Watch_FullMethodName:      {names: nameIn},

	electionv1.ElectionService_Campaign_FullMethodName: {names: nameIn, leased: true},
	electionv1.ElectionService_Proclaim_FullMethodName: {names: lockOfTicket},
	electionv1.ElectionService_Resign_FullMethodName:   {},
	electionv1.ElectionService_Transfer_FullMethodName: {names: nameIn, use: "grace", isUse: hasGrace},
	electionv1.ElectionService_Get_FullMethodName:      {names: nameIn},
	electionv1.ElectionService_Watch_FullMethodName:    {names: nameIn},

	semaphorev1.SemaphoreService_Create_FullMethodName:  {names: nameIn},
	semaphorev1.SemaphoreService_Acquire_FullMethodName: {names: nameIn, leased: true},
	semaphorev1.SemaphoreService_Check_FullMethodName:   {},
	semaphorev1.SemaphoreService_Release_FullMethodName: {},
	semaphorev1.SemaphoreService_Resize_FullMethodName:  {names: nameIn, use: "grace", isUse: hasGrace},
	semaphorev1.SemaphoreService_Get_FullMethodName:     {names: nameIn},
	semaphorev1.SemaphoreService_List_FullMethodName:    {names: prefixIn},
	semaphorev1.SemaphoreService_Watch_FullMethodName:   {names: nameIn},

	queuev1.QueueService_Put_FullMethodName:   {names: nameIn},
	queuev1.QueueService_Take_FullMethodName:  {names: nameIn, leased: true},
	queuev1.QueueService_Check_FullMethodName: {},
	queuev1.QueueService_Done_FullMethodName:  {},
	queuev1.QueueService_List_FullMethodName:  {names: prefixIn},

	barrierv1.BarrierService_Set_FullMethodName:    {names: nameIn},
	barrierv1.BarrierService_Remove_FullMethodName: {names: nameIn},
	barrierv1.BarrierService_Wait_FullMethodName:   {names: nameIn},
	barrierv1.BarrierService_Enter_FullMethodName:  {names: nameIn, leased: true},
	barrierv1.BarrierService_Leave_FullMethodName:  {},
	barrierv1.BarrierService_List_FullMethodName:   {names: prefixIn},

	agreementv1.AgreementService_Begin_FullMethodName:  {names: nameIn},
	agreementv1.AgreementService_Vote_FullMethodName:   {names: nameIn, member: true, leased: true},
	agreementv1.AgreementService_Abort_FullMethodName:  {names: nameIn},
	agreementv1.AgreementService_Await_FullMethodName:  {names: nameIn},
	agreementv1.AgreementService_Get_FullMethodName:    {names: nameIn},
	agreementv1.AgreementService_Forget_FullMethodName: {names: nameIn},

	sequencev1.SequenceService_Create_FullMethodName:    {names: nameIn},
	sequencev1.SequenceService_Next_FullMethodName:      {names: nameIn},
	sequencev1.SequenceService_Get_FullMethodName:       {names: nameIn},
	sequencev1.SequenceService_AdvanceTo_FullMethodName: {names: nameIn, operator: true},
	sequencev1.SequenceService_Delete_FullMethodName:    {names: nameIn},
	sequencev1.SequenceService_List_FullMethodName:      {names: prefixIn},

	membershipv1.MembershipService_Join_FullMethodName:   {names: groupIn, member: true, leased: true},
	membershipv1.MembershipService_Update_FullMethodName: {names: groupIn, member: true},
	membershipv1.MembershipService_Get_FullMethodName:    {names: groupIn},
	membershipv1.MembershipService_List_FullMethodName:   {names: prefixIn},
	membershipv1.MembershipService_Watch_FullMethodName:  {names: groupIn},
	membershipv1.MembershipService_Create_FullMethodName: {names: groupIn},
	membershipv1.MembershipService_Delete_FullMethodName: {names: groupIn, use: "force", isUse: isForced},

	fencingv1.FencingService_Verify_FullMethodName: {names: lockOfTicket},
	fencingv1.FencingService_Watch_FullMethodName:  {names: locksOfWatch},

	configv1.ConfigService_Get_FullMethodName:    {names: keyIn},
	configv1.ConfigService_Put_FullMethodName:    {names: keyIn},
	configv1.ConfigService_Delete_FullMethodName: {names: keyIn, use: "recursive", isUse: isRecursive},
	configv1.ConfigService_List_FullMethodName:   {names: prefixIn},
	configv1.ConfigService_Commit_FullMethodName: {names: keysOfCommit},
	configv1.ConfigService_Watch_FullMethodName:  {names: keysOfWatch},
}

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

// readsLock is what whoever uses somebody's ticket must be allowed to do.
var readsLock = strings.TrimPrefix(lockv1.LockService_Get_FullMethodName, "/")

// locksOfTickets are the locks whose tickets guard what a request asks for.
func locksOfTickets(request any) (locks []string) {
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
func isForced(request any) bool    { return request.(*membershipv1.DeleteRequest).GetForce() }
func isRecursive(request any) bool { return request.(*configv1.DeleteRequest).GetRecursive() }

// namesIn are what a request is about; none if it names nothing.
func namesIn(method string, request any) []string {
	if names := methodPolicies[method].names; names != nil && request != nil {
		return names(request)
	}
	return nil
}

// memberIn is the member, or the participant, that a request is about; none for most methods.
func memberIn(method string, request any) []string {
	if !methodPolicies[method].member {
		return nil
	}
	if vote, is := request.(*agreementv1.VoteRequest); is {
		return []string{vote.GetParticipant()}
	}
	return []string{request.(interface{ GetMember() string }).GetMember()}
}

// ownLease is what callers do with the lease that something of theirs stands on.
var ownLease = []string{
	strings.TrimPrefix(leasev1.LeaseService_Open_FullMethodName, "/"), strings.TrimPrefix(leasev1.LeaseService_Close_FullMethodName, "/"),
}

// actionsOf are what a policy can speak of, in the order of their names' bytes.
func actionsOf(methods []string) (actions []policy.Action) {
	for _, method := range methods {
		of := methodPolicies[method]
		name := strings.TrimPrefix(method, "/")
		action := policy.Action{Name: name, Operator: of.operator, Member: of.member}
		if of.leased {
			action.Takes = ownLease
		}
		actions = append(actions, action)
		if of.use != "" {
			actions = append(actions, policy.Action{Name: name + ":" + of.use, Operator: true})
		}
	}
	return actions
}

// action is what one call asks for, and whether it is for operators.
func (s methodPolicy) action(method string, request any) policy.Action {
	name := strings.TrimPrefix(method, "/")
	if s.isUse != nil && s.isUse(request) {
		return policy.Action{Name: name + ":" + s.use, Operator: true}
	}
	return policy.Action{Name: name, Operator: s.operator}
}
