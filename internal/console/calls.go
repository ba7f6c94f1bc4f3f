package console

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// methods are those that the page calls. The token is good for nothing else.
var methods = []string{
	lockv1.LockService_List_FullMethodName, lockv1.LockService_Get_FullMethodName, lockv1.LockService_Watch_FullMethodName,
	lockv1.LockService_Explain_FullMethodName, lockv1.LockService_Break_FullMethodName, lockv1.LockService_Revoke_FullMethodName,
	lockv1.LockService_Claim_FullMethodName, lockv1.LockService_Extend_FullMethodName, lockv1.LockService_Release_FullMethodName,
	membershipv1.MembershipService_List_FullMethodName, membershipv1.MembershipService_Watch_FullMethodName,
	semaphorev1.SemaphoreService_List_FullMethodName, semaphorev1.SemaphoreService_Watch_FullMethodName,
	queuev1.QueueService_List_FullMethodName, barrierv1.BarrierService_List_FullMethodName,
	sequencev1.SequenceService_List_FullMethodName, sequencev1.SequenceService_Get_FullMethodName,
	configv1.ConfigService_List_FullMethodName, configv1.ConfigService_Get_FullMethodName,
	leasev1.LeaseService_List_FullMethodName,
	schedulev1.ScheduleService_List_FullMethodName, schedulev1.ScheduleService_Get_FullMethodName,
	schedulev1.ScheduleService_History_FullMethodName, schedulev1.ScheduleService_Put_FullMethodName,
	schedulev1.ScheduleService_Run_FullMethodName,
	assignmentv1.AssignmentService_List_FullMethodName, assignmentv1.AssignmentService_Get_FullMethodName,
}

// services are those of these methods.
func services() []string {
	var names []string
	for _, method := range methods {
		names = append(names, strings.Split(method, "/")[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// acting are the methods that change something, which takes as long as it takes.
var acting = []string{
	lockv1.LockService_Break_FullMethodName, lockv1.LockService_Revoke_FullMethodName,
	lockv1.LockService_Claim_FullMethodName, lockv1.LockService_Extend_FullMethodName, lockv1.LockService_Release_FullMethodName,
	schedulev1.ScheduleService_Put_FullMethodName, schedulev1.ScheduleService_Run_FullMethodName,
}

// A connection of the page calls its methods, and ends no hold without a reason. A browser has six connections at a time: reads that wait for
// an ensemble that is away would keep the page from what the console knows of that.
type connection struct {
	grpc.ClientConnInterface

	away func() bool // whether the sidecar does not reach the ensemble
}

// Invoke implements grpc.ClientConnInterface.
func (c connection) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	if err := permitted(method); err != nil {
		return err
	}
	if method == lockv1.LockService_Revoke_FullMethodName && reasonOf(request) == "" {
		return status.Error(codes.InvalidArgument, "say why: through the console, holders are asked with a reason")
	}
	if release, is := request.(*lockv1.ReleaseRequest); is && release.GetHoldId() != "" {
		return status.Error(codes.PermissionDenied, "the console releases claims, and no holds")
	}
	if method == schedulev1.ScheduleService_Put_FullMethodName && !pausesAlone(request) {
		return status.Error(codes.PermissionDenied, "the console pauses and resumes schedules, and changes nothing else of them")
	}
	if !slices.Contains(acting, method) {
		bounded, cancel := context.WithTimeout(ctx, whole)
		defer cancel()
		ctx = bounded
		if c.away() && method != leasev1.LeaseService_List_FullMethodName {
			return status.Error(codes.Unavailable, "the ensemble does not answer the sidecar")
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
}

// NewStream implements grpc.ClientConnInterface.
func (c connection) NewStream(ctx context.Context, of *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := permitted(method); err != nil {
		return nil, err
	}
	return c.ClientConnInterface.NewStream(ctx, of, method, options...)
}

func permitted(method string) error {
	if slices.Contains(methods, method) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "the console does not call %s", method)
}

// pausesAlone says whether a PutRequest says nothing but whether a schedule is paused.
func pausesAlone(request any) bool {
	message := request.(proto.Message).ProtoReflect()
	alone := message.Has(message.Descriptor().Fields().ByName("paused"))
	message.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		alone = alone && (field.Name() == "name" || field.Name() == "paused")
		return alone
	})
	return alone
}

func reasonOf(request any) string {
	message := request.(proto.Message).ProtoReflect()
	return strings.TrimSpace(message.Get(message.Descriptor().Fields().ByName(protoreflect.Name("reason"))).String())
}
