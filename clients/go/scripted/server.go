// Package scripted is a sidecar for tests whose every answer a test decides: a real gRPC server with
// no ensemble and no locks behind it. It is for the tests of this repository: it speaks in stubs, and may change without notice.
package scripted

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// Validity is what Check answers unless the test says otherwise.
const Validity = 10 * time.Second

// A Server is a sidecar under a test's control. The functions may be replaced before the first call.
type Server struct {
	Target string
	Health *health.Server

	// CheckHolds, CheckLease and Release answer; at first as for holds and leases in the best of health.
	CheckHolds func(context.Context, *lockv1.CheckRequest) (*lockv1.CheckResponse, error)
	CheckLease func(context.Context, *leasev1.CheckRequest) (*leasev1.CheckResponse, error)
	Release    func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error)
	Close      func(context.Context, *leasev1.CloseRequest) (*leasev1.CloseResponse, error)

	// The others answer UNIMPLEMENTED at first.
	Get    func(context.Context, *lockv1.GetRequest) (*lockv1.GetResponse, error)
	List   func(context.Context, *lockv1.ListRequest) (*lockv1.ListResponse, error)
	Watch  func(*lockv1.WatchRequest, grpc.ServerStreamingServer[lockv1.WatchResponse]) error
	Claim  func(context.Context, *lockv1.ClaimRequest) (*lockv1.ClaimResponse, error)
	Extend func(context.Context, *lockv1.ExtendRequest) (*lockv1.ExtendResponse, error)
	Revoke func(context.Context, *lockv1.RevokeRequest) (*lockv1.RevokeResponse, error)
	Break  func(context.Context, *lockv1.BreakRequest) (*lockv1.BreakResponse, error)
	Leases func(context.Context, *leasev1.ListRequest) (*leasev1.ListResponse, error)

	SetCapacity func(context.Context, *assignmentv1.SetCapacityRequest) (*assignmentv1.SetCapacityResponse, error)

	// Groups answers for groups and their members.
	Groups Groups

	t        testing.TB
	grpc     *grpc.Server
	acquires chan *Acquire
	opens    chan *Open
	shares   chan *Share

	mu     sync.Mutex
	holds  map[string]*Acquire
	leases map[string]*Open
}

// Start serves over TCP until the test ends. A lock without a lease is one call there.
func Start(t testing.TB) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, listener, listener.Addr().String())
}

// StartOnSocket serves over a Unix socket, where clients open a lease for a lock without one.
func StartOnSocket(t testing.TB) *Server {
	t.Helper()
	// Not t.TempDir: its path can be longer than a Unix socket's may be.
	dir, err := os.MkdirTemp("", "sidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, listener, "unix://"+path)
}

func serve(t testing.TB, listener net.Listener, target string) *Server {
	t.Helper()
	s := newServer(t, target)
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return s
}

func newServer(t testing.TB, target string) *Server {
	t.Helper()
	s := &Server{
		Target: target, Health: health.NewServer(), Groups: newGroups(t), t: t,
		acquires: make(chan *Acquire, 100), opens: make(chan *Open, 100), shares: make(chan *Share, 100),
		holds: map[string]*Acquire{}, leases: map[string]*Open{},
	}
	s.CheckHolds, s.CheckLease, s.Release, s.Close = s.holdsAreValid, s.leaseIsValid, s.releaseHold, s.closeLease
	s.grpc = grpc.NewServer(grpc.UnaryInterceptor(s.answers().intercept))
	lockv1.RegisterLockServiceServer(s.grpc, lockServer{s: s})
	membershipv1.RegisterMembershipServiceServer(s.grpc, groupServer{g: &s.Groups})
	assignmentv1.RegisterAssignmentServiceServer(s.grpc, assignmentServer{})
	leasev1.RegisterLeaseServiceServer(s.grpc, leaseServer{s: s})
	healthv1.RegisterHealthServer(s.grpc, s.Health)
	return s
}

// answers are the test's functions for calls with one answer, by the calls' full names. What is not among them is answered by whoever
// is registered for it.
type answers map[string]func(ctx context.Context, request any) (any, error)

func (s *Server) answers() answers {
	g := &s.Groups
	return answers{
		lockv1.LockService_Check_FullMethodName:                   scripted(&s.CheckHolds),
		lockv1.LockService_Release_FullMethodName:                 scripted(&s.Release),
		lockv1.LockService_Get_FullMethodName:                     scripted(&s.Get),
		lockv1.LockService_List_FullMethodName:                    scripted(&s.List),
		lockv1.LockService_Claim_FullMethodName:                   scripted(&s.Claim),
		lockv1.LockService_Extend_FullMethodName:                  scripted(&s.Extend),
		lockv1.LockService_Revoke_FullMethodName:                  scripted(&s.Revoke),
		lockv1.LockService_Break_FullMethodName:                   scripted(&s.Break),
		leasev1.LeaseService_Check_FullMethodName:                 scripted(&s.CheckLease),
		leasev1.LeaseService_Close_FullMethodName:                 scripted(&s.Close),
		leasev1.LeaseService_List_FullMethodName:                  scripted(&s.Leases),
		assignmentv1.AssignmentService_SetCapacity_FullMethodName: scripted(&s.SetCapacity),
		membershipv1.MembershipService_Update_FullMethodName:      scripted(&g.Update),
		membershipv1.MembershipService_Get_FullMethodName:         scripted(&g.Get),
		membershipv1.MembershipService_List_FullMethodName:        scripted(&g.List),
		membershipv1.MembershipService_Create_FullMethodName:      scripted(&g.Create),
		membershipv1.MembershipService_Delete_FullMethodName:      scripted(&g.Delete),
	}
}

// scripted answers as the function does that a test has put there by the time of the call.
func scripted[Request, Response any](by *func(context.Context, *Request) (*Response, error)) func(context.Context, any) (any, error) {
	return func(ctx context.Context, request any) (any, error) {
		if *by == nil {
			return nil, errUnscripted
		}
		return (*by)(ctx, request.(*Request))
	}
}

func (a answers) intercept(ctx context.Context, request any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if answer, found := a[call.FullMethod]; found {
		return answer(ctx, request)
	}
	return handle(ctx, request)
}

var errUnscripted = status.Error(codes.Unimplemented, "not scripted")

// Stop breaks every connection, as the death of a sidecar does.
func (s *Server) Stop() { s.grpc.Stop() }

// NextAcquire is the next call of Acquire.
func (s *Server) NextAcquire() *Acquire { s.t.Helper(); return next(s.t, s.acquires, "Acquire") }

// NextOpen is the next call of Open.
func (s *Server) NextOpen() *Open { s.t.Helper(); return next(s.t, s.opens, "Open") }

func next[T any](t testing.TB, calls <-chan T, what string) T {
	t.Helper()
	select {
	case call := <-calls:
		return call
	case <-time.After(patience):
		t.Fatalf("nobody called %s", what)
		panic("unreachable")
	}
}

// Frozen is an answer that never comes.
func Frozen[Request, Response any](ctx context.Context, _ *Request) (*Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Status is an error as a sidecar sends it.
func Status(code codes.Code, reason, message string) error {
	plain := status.New(code, reason+": "+message)
	detailed, err := plain.WithDetails(&errdetails.ErrorInfo{Domain: "sidekeeper", Reason: reason})
	if err != nil {
		panic(fmt.Sprintf("details of %s: %v", reason, err))
	}
	return detailed.Err()
}

// HoldsValidFor answers Check with the same time for every hold.
func HoldsValidFor(request *lockv1.CheckRequest, validFor time.Duration) *lockv1.CheckResponse {
	reply := &lockv1.CheckResponse{}
	for _, id := range request.GetHoldIds() {
		reply.Holds = append(reply.Holds, &lockv1.CheckedHold{HoldId: id, ValidFor: durationpb.New(validFor)})
	}
	return reply
}

func (s *Server) holdsAreValid(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
	return HoldsValidFor(request, Validity), nil
}

func (s *Server) leaseIsValid(context.Context, *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
	return &leasev1.CheckResponse{ValidFor: durationpb.New(Validity)}, nil
}

func (s *Server) releaseHold(_ context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
	s.mu.Lock()
	hold := s.holds[request.GetHoldId()]
	s.mu.Unlock()
	if hold == nil {
		return nil, Status(codes.NotFound, "HOLD_NOT_FOUND", "no such hold")
	}
	hold.End(nil)
	return &lockv1.ReleaseResponse{}, nil
}

func (s *Server) closeLease(_ context.Context, request *leasev1.CloseRequest) (*leasev1.CloseResponse, error) {
	s.mu.Lock()
	lease := s.leases[request.GetLeaseId()]
	s.mu.Unlock()
	if lease == nil {
		return nil, Status(codes.NotFound, "LEASE_NOT_FOUND", "no such lease")
	}
	lease.End(nil)
	return &leasev1.CloseResponse{}, nil
}
