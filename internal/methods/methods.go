// Package methods says of each method of the services what a sidecar has to know before it calls its handler: what a policy sees of it, what it
// costs, and how urgent it is. A new method is entered here, once.
package methods

import (
	"maps"
	"slices"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// A Method is one of them.
type Method struct {
	Names    func(request any) []string // that a call is about; nil for methods about the caller's own leases and holds
	Member   bool                       // whether it is about one member of the group that it names, or one participant of the agreement
	Leased   bool                       // whether it stands on a lease, which its callers may open and close, or on a session of its own
	Operator bool                       // whether only operators call it
	Use      string                     // what makes a call an operator's that is not one otherwise
	IsUse    func(request any) bool     // nil without Use
	Writes   func(request any) int      // of the ensemble, which a request counts as; nil for none. What lets go counts as none
	Sessions func(request any) int      // that it opens, beside one of its own where it is Leased and given no lease; nil for none
	Frequent bool                       // whether programs call it all the time, so that its success is a detail
	Urgent   bool                       // whether callers keep what they have by it, or let it go: its requests wait for no others
	Ends     bool                       // whether it ends what its caller was allowed to begin: no policy refuses it
	Reads    int                        // bytes of values that its answer counts before one is known; 0 if it has no values
}

// Of is what is known of a method, by its full name; nil if there is none. A policy denies it to all then.
func Of(method string) *Method { return table[method] }

// All are the full names, in their order.
func All() []string { return slices.Sorted(maps.Keys(table)) }

// Reading are the methods that answer with values, and what an answer of each counts before one is known.
var Reading = func() map[string]int {
	reading := map[string]int{}
	for name, of := range table {
		if of.Reads > 0 {
			reading[name] = of.Reads
		}
	}
	return reading
}()

var table = map[string]*Method{
	leasev1.LeaseService_Open_FullMethodName:      {Sessions: once},
	leasev1.LeaseService_Multiplex_FullMethodName: {Sessions: ifOpened}, // judged as Open
	leasev1.LeaseService_Check_FullMethodName:     {Frequent: true, Urgent: true},
	leasev1.LeaseService_Close_FullMethodName:     {Urgent: true},
	leasev1.LeaseService_List_FullMethodName:      {Names: everyName, Frequent: true},

	lockv1.LockService_Acquire_FullMethodName:    {Names: nameIn, Leased: true, Writes: once},
	lockv1.LockService_AcquireAll_FullMethodName: {Names: locksOfAcquireAll, Leased: true, Writes: locksOf},
	lockv1.LockService_Check_FullMethodName:      {Frequent: true, Urgent: true, Writes: claimsOf},
	lockv1.LockService_Release_FullMethodName:    {Frequent: true, Urgent: true},
	lockv1.LockService_Claim_FullMethodName:      {Names: nameIn, Writes: three},
	lockv1.LockService_Extend_FullMethodName:     {Writes: three, Urgent: true},
	lockv1.LockService_Revoke_FullMethodName:     {Names: nameIn, Use: "grace", IsUse: hasGrace, Writes: once},
	lockv1.LockService_Break_FullMethodName:      {Names: nameIn, Operator: true, Writes: once},
	lockv1.LockService_Get_FullMethodName:        {Names: nameIn},
	lockv1.LockService_Explain_FullMethodName:    {Names: everyName}, // whatever it leads to
	lockv1.LockService_List_FullMethodName:       {Names: prefixIn, Frequent: true},
	lockv1.LockService_Watch_FullMethodName:      {Names: nameIn},

	electionv1.ElectionService_Campaign_FullMethodName: {Names: nameIn, Leased: true, Writes: once},
	electionv1.ElectionService_Proclaim_FullMethodName: {Names: lockOfTicket, Writes: once},
	electionv1.ElectionService_Resign_FullMethodName:   {Frequent: true, Urgent: true},
	electionv1.ElectionService_Transfer_FullMethodName: {Names: nameIn, Use: "grace", IsUse: hasGrace, Writes: once},
	electionv1.ElectionService_Get_FullMethodName:      {Names: nameIn},
	electionv1.ElectionService_Watch_FullMethodName:    {Names: nameIn},

	semaphorev1.SemaphoreService_Create_FullMethodName:  {Names: nameIn, Writes: once},
	semaphorev1.SemaphoreService_Acquire_FullMethodName: {Names: nameIn, Leased: true, Writes: permitsOf},
	semaphorev1.SemaphoreService_Check_FullMethodName:   {Frequent: true, Urgent: true},
	semaphorev1.SemaphoreService_Release_FullMethodName: {Frequent: true, Urgent: true},
	semaphorev1.SemaphoreService_Resize_FullMethodName:  {Names: nameIn, Use: "grace", IsUse: hasGrace, Writes: once},
	semaphorev1.SemaphoreService_Get_FullMethodName:     {Names: nameIn},
	semaphorev1.SemaphoreService_List_FullMethodName:    {Names: prefixIn, Frequent: true},
	semaphorev1.SemaphoreService_Watch_FullMethodName:   {Names: nameIn},

	queuev1.QueueService_Put_FullMethodName:   {Names: nameIn, Writes: once, Frequent: true},
	queuev1.QueueService_Take_FullMethodName:  {Names: nameIn, Leased: true, Writes: three},
	queuev1.QueueService_Check_FullMethodName: {Frequent: true, Urgent: true},
	queuev1.QueueService_Done_FullMethodName:  {Writes: once, Frequent: true, Urgent: true},
	queuev1.QueueService_List_FullMethodName:  {Names: prefixIn, Frequent: true},

	barrierv1.BarrierService_Set_FullMethodName:    {Names: nameIn, Writes: once},
	barrierv1.BarrierService_Remove_FullMethodName: {Names: nameIn, Writes: once},
	barrierv1.BarrierService_Wait_FullMethodName:   {Names: nameIn},
	barrierv1.BarrierService_Enter_FullMethodName:  {Names: nameIn, Leased: true, Writes: once},
	barrierv1.BarrierService_Leave_FullMethodName:  {Urgent: true},
	barrierv1.BarrierService_List_FullMethodName:   {Names: prefixIn, Frequent: true},

	agreementv1.AgreementService_Begin_FullMethodName:  {Names: nameIn, Writes: once},
	agreementv1.AgreementService_Vote_FullMethodName:   {Names: nameIn, Member: true, Leased: true, Writes: three},
	agreementv1.AgreementService_Abort_FullMethodName:  {Names: nameIn, Writes: once},
	agreementv1.AgreementService_Await_FullMethodName:  {Names: nameIn, Writes: once},
	agreementv1.AgreementService_Get_FullMethodName:    {Names: nameIn},
	agreementv1.AgreementService_Forget_FullMethodName: {Names: nameIn, Writes: once},

	oncev1.OnceService_Begin_FullMethodName:  {Names: nameIn, Leased: true, Writes: three},
	oncev1.OnceService_Finish_FullMethodName: {Frequent: true, Urgent: true, Ends: true},
	oncev1.OnceService_Get_FullMethodName:    {Names: nameIn},
	oncev1.OnceService_List_FullMethodName:   {Names: nameIn, Frequent: true},
	oncev1.OnceService_Forget_FullMethodName: {Names: nameIn, Operator: true, Sessions: once, Writes: three},

	schedulev1.ScheduleService_Put_FullMethodName:     {Names: nameIn, Writes: two},
	schedulev1.ScheduleService_Get_FullMethodName:     {Names: nameIn},
	schedulev1.ScheduleService_List_FullMethodName:    {Names: prefixIn, Frequent: true},
	schedulev1.ScheduleService_Delete_FullMethodName:  {Names: nameIn, Operator: true, Writes: once},
	schedulev1.ScheduleService_History_FullMethodName: {Names: nameIn},
	schedulev1.ScheduleService_Run_FullMethodName:     {Names: nameIn, Writes: two},
	schedulev1.ScheduleService_Reset_FullMethodName:   {Names: nameIn, Operator: true, Writes: two},
	schedulev1.ScheduleService_Work_FullMethodName:    {Names: nameIn, Leased: true, Writes: three},
	schedulev1.ScheduleService_Finish_FullMethodName:  {Frequent: true, Urgent: true, Ends: true},

	sequencev1.SequenceService_Create_FullMethodName:    {Names: nameIn, Writes: once},
	sequencev1.SequenceService_Next_FullMethodName:      {Names: nameIn, Writes: ifStrict, Frequent: true},
	sequencev1.SequenceService_Get_FullMethodName:       {Names: nameIn},
	sequencev1.SequenceService_AdvanceTo_FullMethodName: {Names: nameIn, Operator: true, Writes: once},
	sequencev1.SequenceService_Delete_FullMethodName:    {Names: nameIn, Writes: once},
	sequencev1.SequenceService_List_FullMethodName:      {Names: prefixIn, Frequent: true},

	membershipv1.MembershipService_Join_FullMethodName:   {Names: groupIn, Member: true, Leased: true, Writes: once},
	membershipv1.MembershipService_Update_FullMethodName: {Names: groupIn, Member: true, Writes: once},
	membershipv1.MembershipService_Get_FullMethodName:    {Names: groupIn},
	membershipv1.MembershipService_List_FullMethodName:   {Names: prefixIn, Frequent: true},
	membershipv1.MembershipService_Watch_FullMethodName:  {Names: groupIn},
	membershipv1.MembershipService_Create_FullMethodName: {Names: groupIn, Writes: once},
	membershipv1.MembershipService_Delete_FullMethodName: {Names: groupIn, Use: "force", IsUse: isForced, Writes: once},

	assignmentv1.AssignmentService_Define_FullMethodName:      {Names: setIn, Writes: once},
	assignmentv1.AssignmentService_Join_FullMethodName:        {Names: setIn, Member: true, Leased: true, Writes: three},
	assignmentv1.AssignmentService_SetCapacity_FullMethodName: {Names: setIn, Member: true, Writes: once},
	assignmentv1.AssignmentService_Get_FullMethodName:         {Names: setIn},
	assignmentv1.AssignmentService_List_FullMethodName:        {Names: prefixIn, Frequent: true},
	assignmentv1.AssignmentService_Watch_FullMethodName:       {Names: setIn},
	assignmentv1.AssignmentService_Delete_FullMethodName:      {Names: setIn, Writes: once},

	fencingv1.FencingService_Verify_FullMethodName: {Names: lockOfTicket},
	fencingv1.FencingService_Watch_FullMethodName:  {Names: locksOfWatch},

	configv1.ConfigService_Get_FullMethodName:    {Names: keyIn, Frequent: true, Reads: 256 << 10},
	configv1.ConfigService_Put_FullMethodName:    {Names: keyIn, Writes: once},
	configv1.ConfigService_Delete_FullMethodName: {Names: keyIn, Use: "recursive", IsUse: isRecursive, Writes: once},
	configv1.ConfigService_List_FullMethodName:   {Names: prefixIn, Frequent: true, Reads: 1 << 20},
	configv1.ConfigService_Commit_FullMethodName: {Names: keysOfCommit, Writes: operationsOf},
	configv1.ConfigService_Watch_FullMethodName:  {Names: keysOfWatch},
}
