package service

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// What a lease's stream says and is asked, in protobuf, stands here.

var multiplexWords = leaseWords[*leasev1.MultiplexResponse]{
	opened:    eventOf[*leasev1.MultiplexResponse, *leasev1.Opened]("opened"),
	heldWords: wordsOf[*leasev1.MultiplexResponse](),
}

// A heldCall is what begins what is started, and what stands before a call that does the same.
type heldCall struct {
	method  string
	request any
	prepare func(ctx context.Context, of *started) (holder, error)
}

// callOf is the call that does what is started. What a newer client may ask for ends alone: other things stand on the lease.
func (m *multiplex) callOf(request *leasev1.Start) heldCall {
	services := m.leases.services
	switch of := request.GetRequest().(type) {
	case *leasev1.Start_Acquire:
		return calling(lockv1.LockService_Acquire_FullMethodName, of.Acquire, services.lockService, (*lockService).acquire)
	case *leasev1.Start_AcquireAll:
		return calling(lockv1.LockService_AcquireAll_FullMethodName, of.AcquireAll, services.lockService, (*lockService).acquireAll)
	case *leasev1.Start_AcquirePermits:
		semaphores := &semaphoreService{services: services}
		return calling(semaphorev1.SemaphoreService_Acquire_FullMethodName, of.AcquirePermits, semaphores, (*semaphoreService).acquire)
	case *leasev1.Start_Campaign:
		elections := &electionService{services: services}
		return calling(electionv1.ElectionService_Campaign_FullMethodName, of.Campaign, elections, (*electionService).campaign)
	case *leasev1.Start_Enter:
		barriers := &barrierService{services: services}
		return calling(barrierv1.BarrierService_Enter_FullMethodName, of.Enter, barriers, (*barrierService).enter)
	case *leasev1.Start_Begin:
		once := &onceService{services: services}
		return calling(oncev1.OnceService_Begin_FullMethodName, of.Begin, once, (*onceService).begin)
	case *leasev1.Start_Work:
		schedules := &scheduleService{services: services}
		return calling(schedulev1.ScheduleService_Work_FullMethodName, of.Work, schedules, (*scheduleService).work)
	case *leasev1.Start_Share:
		assignments := &assignmentService{services: services}
		return calling(assignmentv1.AssignmentService_Join_FullMethodName, of.Share, assignments, (*assignmentService).join)
	case *leasev1.Start_Join:
		members := &membershipService{services: services}
		return calling(membershipv1.MembershipService_Join_FullMethodName, of.Join, members, (*membershipService).join)
	}
	return heldCall{leasev1.LeaseService_Multiplex_FullMethodName, nil, func(context.Context, *started) (holder, error) {
		return nil, errUnknownKind
	}}
}

func calling[S any, Q keptAlive, M any](method string, request Q, service S, prepare func(S, Q, line[M]) (holder, error)) heldCall {
	return heldCall{method, request, func(ctx context.Context, of *started) (holder, error) {
		if every := request.GetKeepalive(); every != nil {
			return nil, invalid("keepalive", every.AsDuration().String(), "omitted in start: open says it for the whole stream")
		}
		return prepare(service, request, lineOf[M](ctx, of))
	}}
}

// lineOf is the line of a request on its lease's stream.
func lineOf[M any](call context.Context, of *started) line[M] {
	caller.PermissionOf(call).Ends(func(why error) {
		of.over.end(why)
		go of.withdraw(why)
	})
	return line[M]{
		call: call, stream: of.ctx, over: over{call, of.over.end}, left: of.stopped.closed, acknowledged: of.stopped,
		put: func(about outbox.Topic, compose func() (M, bool)) {
			of.box.Put(outbox.Topic(of.number)*topics+about, func() (*leasev1.MultiplexResponse, bool) {
				event, ok := compose()
				return of.event(event), ok
			})
		},
		lease: of.lease, id: of.life, number: of.id, claim: of.claim,
	}
}

// ended is the status of a request as a message.
func (s *started) ended() *leasev1.MultiplexResponse {
	made := new(struct { // in one piece, as there is one for each request
		response leasev1.MultiplexResponse
		of       leasev1.MultiplexResponse_Ended
		ended    leasev1.Ended
	})
	ended, err := &made.ended, s.endedWith
	made.response.Response, made.of.Ended, ended.RequestId = &made.of, ended, s.id
	if answer, _ := StatusOf(err); err != nil && !(s.asked.Load() && answer.Code() == codes.Canceled) {
		ended.Code, ended.Message = int32(answer.Code()), answer.Message()
		for _, detail := range answer.Details() {
			switch of := detail.(type) {
			case *errdetails.ErrorInfo:
				ended.Reason, ended.Metadata = of.GetReason(), of.GetMetadata()
			case *errdetails.RetryInfo:
				ended.RetryDelay = of.GetRetryDelay()
			}
		}
	}
	return &made.response
}

// event is what the single call of a request would send, as a message.
func (s *started) event(of any) *leasev1.MultiplexResponse {
	made := new(struct { // in one piece, as of ended
		response leasev1.MultiplexResponse
		of       leasev1.MultiplexResponse_Event
		event    leasev1.Event
		acquire  leasev1.Event_Acquire
	})
	event := &made.event
	made.response.Response, made.of.Event, event.RequestId = &made.of, event, s.id
	switch of := of.(type) {
	case *lockv1.AcquireResponse:
		made.acquire.Acquire, event.Event = of, &made.acquire
	case *lockv1.AcquireAllResponse:
		event.Event = &leasev1.Event_AcquireAll{AcquireAll: of}
	case *semaphorev1.AcquireResponse:
		event.Event = &leasev1.Event_AcquirePermits{AcquirePermits: of}
	case *electionv1.CampaignResponse:
		event.Event = &leasev1.Event_Campaign{Campaign: of}
	case *barrierv1.EnterResponse:
		event.Event = &leasev1.Event_Enter{Enter: of}
	case *oncev1.BeginResponse:
		event.Event = &leasev1.Event_Begin{Begin: of}
	case *schedulev1.WorkResponse:
		event.Event = &leasev1.Event_Work{Work: of}
	case *assignmentv1.JoinResponse:
		event.Event = &leasev1.Event_Share{Share: of}
	case *membershipv1.JoinResponse:
		event.Event = &leasev1.Event_Join{Join: of}
	}
	return &made.response
}
