package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A scene is a sidecar over an ensemble in memory, with a Unix socket for callers and one for operators.
type scene struct {
	t        *testing.T
	ensemble *sceneEnsemble
	options  service.Options
	services *service.Services
	socket   string
	memory   *bufconn.Listener // of a scene in virtual time, which has no sockets
	callers
	operators callers
	others    callers // over TCP, so that they are somebody else
	stop      func() error
}

// callers are the stubs of one connection.
type callers struct {
	lockv1.LockServiceClient
	leases leasev1.LeaseServiceClient
	groups membershipv1.MembershipServiceClient

	semaphores semaphorev1.SemaphoreServiceClient
	elections  electionv1.ElectionServiceClient
	barriers   barrierv1.BarrierServiceClient
	agreements agreementv1.AgreementServiceClient

	sequences sequencev1.SequenceServiceClient
	queues    queuev1.QueueServiceClient
	once      oncev1.OnceServiceClient
	schedules schedulev1.ScheduleServiceClient

	assignments assignmentv1.AssignmentServiceClient
}

// A sceneEnsemble opens sessions and keeps them for the test to play with.
type sceneEnsemble struct {
	*standin.Reader
	memory *standin.Ensemble
	opened chan *standin.Session

	mu     sync.Mutex
	refuse error  // what Open answers, if not nil
	hang   bool   // whether Open waits for its context
	before func() // what Commit does first, once; nil for nothing

	wrap func(*standin.Session) service.Session // makes what Open returns of a session; nil for the session itself
}

func (e *sceneEnsemble) Open(ctx context.Context, timeout time.Duration) (service.Session, error) {
	e.mu.Lock()
	refuse, hang := e.refuse, e.hang
	e.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if refuse != nil {
		return nil, refuse
	}
	session := e.OpenSession(timeout)
	e.opened <- session
	if e.wrap != nil {
		return e.wrap(session), nil
	}
	return session, nil
}

// beforeCommit has something done between what the next write is planned by and the write.
func (e *sceneEnsemble) beforeCommit(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.before = do
}

// Commit implements recipes.Store.
func (e *sceneEnsemble) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	e.mu.Lock()
	do := e.before
	e.before = nil
	e.mu.Unlock()
	if do != nil {
		do()
	}
	return e.Reader.Commit(ctx, changes...)
}

func (e *sceneEnsemble) answer(refuse error, hang bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse, e.hang = refuse, hang
}

// serverSettings are those that scenes set.
type serverSettings struct {
	Inside         net.Listener
	Listen         []string
	OperatorListen string
	Log            *zap.Logger
}

// newScene starts a sidecar. Its sessions last longer than a busy machine makes a test wait.
func newScene(t *testing.T, change ...func(*service.Options)) *scene {
	t.Helper()
	s := newEmptyScene(t, change...)
	tcp := s.serveOnSockets()
	s.callers = s.dial(s.target())
	s.operators = s.dial("unix:" + filepath.Dir(s.socket) + "/operators")
	s.others = s.dial(tcp)
	return s
}

// virtually runs a test on a scene in virtual time. Its callers come over connections within the process, and each is an operator.
func virtually(t *testing.T, test func(t *testing.T, s *scene), change ...func(*service.Options)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := newEmptyScene(t, change...)
		s.memory = bufconn.Listen(pipe)
		s.serve(serverSettings{Inside: s.memory})
		s.callers, s.operators, s.others = s.dial(within), s.dial(within), s.dial(within)
		test(t, s)
	})
}

// Of connections within the process.
const (
	within = "passthrough:memory"
	pipe   = 64 << 10 // bytes that are on their way
)

func newEmptyScene(t *testing.T, change ...func(*service.Options)) *scene {
	t.Helper()
	options := service.Options{LockRoot: "/locks", SessionTimeout: 30 * time.Second, TickTime: 1500 * time.Millisecond, Log: zap.NewNop()}
	for _, change := range change {
		change(&options)
	}
	memory := standin.New(standin.Options{Tick: options.TickTime})
	t.Cleanup(memory.Close)
	s := &scene{t: t, ensemble: &sceneEnsemble{
		Reader: memory.NewReader(), memory: memory, opened: make(chan *standin.Session, 2000),
	}}
	s.options, s.services = options, service.New(options, s.ensemble)
	return s
}

// serveOnSockets starts the sidecar and returns its TCP address.
func (s *scene) serveOnSockets() string {
	folder, err := os.MkdirTemp("", "scene")
	s.must(err)
	s.t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s.socket = folder + "/callers"
	return s.serve(serverSettings{
		Listen: []string{"unix://" + s.socket, "127.0.0.1:0"}, OperatorListen: "unix://" + folder + "/operators",
	})[1]
}

// serve starts the sidecar and returns the addresses of its callers.
func (s *scene) serve(settings serverSettings) []string {
	settings.Log = s.options.Log
	addresses, serve, err := startServer(settings, s.services, s.ensemble)
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx) }()
	s.stop = sync.OnceValue(func() error { cancel(); return <-served })
	s.t.Cleanup(func() {
		if err := s.stop(); err != nil {
			s.t.Errorf("the sidecar stopped with %v", err)
		}
	})
	return addresses
}

// connect makes a connection to the sidecar's callers.
func (s *scene) connect(ctx context.Context) (net.Conn, error) {
	if s.memory != nil {
		return s.memory.DialContext(ctx)
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
}

// target is where a scene's callers reach the sidecar.
func (s *scene) target() string {
	if s.memory != nil {
		return within
	}
	return "unix:" + s.socket
}

func (s *scene) dial(target string, options ...grpc.DialOption) callers {
	s.t.Helper()
	connection := s.connection(target, append(options, watchGrants(s.t))...)
	stubs := callers{
		LockServiceClient: lockv1.NewLockServiceClient(connection), leases: leasev1.NewLeaseServiceClient(connection),
		groups: membershipv1.NewMembershipServiceClient(connection), semaphores: semaphorev1.NewSemaphoreServiceClient(connection),
		barriers: barrierv1.NewBarrierServiceClient(connection), agreements: agreementv1.NewAgreementServiceClient(connection),
		elections: electionv1.NewElectionServiceClient(connection), sequences: sequencev1.NewSequenceServiceClient(connection),
		queues: queuev1.NewQueueServiceClient(connection), once: oncev1.NewOnceServiceClient(connection),
		schedules: schedulev1.NewScheduleServiceClient(connection), assignments: assignmentv1.NewAssignmentServiceClient(connection),
	}
	return stubs.carried(s.t)
}

func (s *scene) connection(target string, options ...grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true))) // the sidecar gives up a handshake that takes long
	if target == within {
		connect := func(ctx context.Context, _ string) (net.Conn, error) { return s.connect(ctx) }
		options = append([]grpc.DialOption{grpc.WithContextDialer(connect)}, options...)
	}
	connection, err := grpc.NewClient(target, options...)
	s.must(err)
	s.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	s.t.Cleanup(cancel)
	return ctx
}

// An acquiring is one Acquire stream.
type acquiring struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[lockv1.AcquireResponse]
	cancel context.CancelFunc
	last   *lockv1.AcquireResponse
	hold   string
	token  int64
}

func (s *scene) acquire(from callers, request *lockv1.AcquireRequest) *acquiring {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.Acquire(ctx, request)
	s.must(err)
	return &acquiring{t: s.t, stream: stream, cancel: cancel}
}

// hold acquires a lock that is free.
func (s *scene) hold(from callers, request *lockv1.AcquireRequest) *acquiring {
	s.t.Helper()
	a := s.acquire(from, request)
	a.sees("granted")
	return a
}

// next is the next event or the end, in words.
func (a *acquiring) next() string {
	event, err := a.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	a.last = event
	switch event := event.GetEvent().(type) {
	case *lockv1.AcquireResponse_Queued:
		return fmt.Sprintf("queued %d", event.Queued.GetPosition())
	case *lockv1.AcquireResponse_Granted:
		a.hold, a.token = event.Granted.GetHoldId(), event.Granted.GetFencingToken()
		return "granted"
	case *lockv1.AcquireResponse_Suspended:
		return "suspended"
	case *lockv1.AcquireResponse_Resumed:
		return "resumed"
	case *lockv1.AcquireResponse_RevocationRequested:
		return strings.TrimSpace("asked by " + event.RevocationRequested.GetRequestedBy() + " " +
			event.RevocationRequested.GetReason())
	}
	return "an event without a name"
}

// sees fails unless these come next, in this order.
func (a *acquiring) sees(events ...string) {
	a.t.Helper()
	for _, event := range events {
		same(a.t, "event", a.next(), event)
	}
}

// skips reads over events of one kind and fails unless the next is another one.
func (a *acquiring) skips(kind, then string) {
	a.t.Helper()
	for {
		if next := a.next(); next != kind {
			same(a.t, "event after "+kind, next, then)
			return
		}
	}
}

// end reads over all events and returns how the stream ended.
func (a *acquiring) end() string {
	for {
		if _, err := a.stream.Recv(); err != nil {
			return outcome(err)
		}
	}
}

// ends fails unless the stream ends so, whatever comes before.
func (a *acquiring) ends(with string) {
	a.t.Helper()
	same(a.t, "end", a.end(), with)
}

// An opening is one Open stream.
type opening struct {
	t       *testing.T
	stream  grpc.ServerStreamingClient[leasev1.OpenResponse]
	cancel  context.CancelFunc
	leave   func() // closes the connection
	last    *leasev1.OpenResponse
	id      string
	session *standin.Session
}

func (s *scene) open(from callers, request *leasev1.OpenRequest) *opening {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.leases.Open(ctx, request)
	s.must(err)
	o := &opening{t: s.t, stream: stream, cancel: cancel}
	o.sees("opened")
	o.session = <-s.ensemble.opened
	return o
}

func (o *opening) next() string {
	event, err := o.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	o.last = event
	switch event := event.GetEvent().(type) {
	case *leasev1.OpenResponse_Opened:
		o.id = event.Opened.GetLeaseId()
		return "opened"
	case *leasev1.OpenResponse_Suspended:
		return "suspended"
	case *leasev1.OpenResponse_Resumed:
		return "resumed"
	}
	return "an event without a name"
}

func (o *opening) sees(events ...string) {
	o.t.Helper()
	for _, event := range events {
		same(o.t, "event", o.next(), event)
	}
}

// checked is what Check says of a hold: "held", or why it has ended.
func (s *scene) checked(from callers, hold string) string {
	s.t.Helper()
	response, err := from.Check(s.context(), &lockv1.CheckRequest{HoldIds: []string{hold}})
	if err != nil {
		return outcome(err)
	}
	answer := response.GetHolds()[0]
	if answer.GetReason() == "" && answer.GetValidFor().AsDuration() > 0 {
		return "held"
	}
	same(s.t, "valid_for of a hold that has ended", answer.GetValidFor().AsDuration(), time.Duration(0))
	return answer.GetReason()
}

// contenders are the nodes of a lock in the ensemble.
func (s *scene) contenders(lock string) int { return len(s.ensemble.memory.Names("/locks/" + lock)) }

// awaitContenders returns when a lock has so many of them.
func (s *scene) awaitContenders(lock string, count int) {
	s.t.Helper()
	ctx := s.context()
	for s.contenders(lock) != count {
		_, changed, err := s.ensemble.WatchChildren(ctx, "/locks/"+lock)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			s.t.Fatal(err)
		}
		if s.contenders(lock) == count {
			return
		}
		select {
		case <-changed.Done():
		case <-ctx.Done():
			s.t.Fatalf("lock %s has %d contenders, not %d", lock, s.contenders(lock), count)
		}
	}
}

// A frozenCaller is a connection whose other end can be made to fall silent: it neither reads nor writes, and stays open.
type frozenCaller struct {
	net.Conn
	freeze <-chan struct{}
	over   <-chan struct{}
}

func (f frozenCaller) Read(buffer []byte) (int, error) {
	read, err := f.Conn.Read(buffer)
	select {
	case <-f.freeze:
		<-f.over
		return 0, net.ErrClosed
	default:
		return read, err
	}
}

// dialFrozen gives callers that fall silent when the function it returns is called.
func (s *scene) dialFrozen() (callers, func()) {
	frozen, freeze, _ := s.dialFreezing()
	return frozen, freeze
}

// dialSilent gives callers that fall silent when the function it returns is called, which the sidecar notices at once: it closes the
// connection of its own accord, as for a ping that is not answered, since what comes last is no frame.
func (s *scene) dialSilent() (callers, func()) {
	silent, freeze, sockets := s.dialFreezing()
	return silent, func() {
		freeze()
		_, err := (<-sockets).Write(bytes.Repeat([]byte{0xff}, 9))
		s.must(err)
	}
}

func (s *scene) dialFreezing() (frozen callers, freeze func(), sockets <-chan net.Conn) {
	freezing, over, connected := make(chan struct{}), make(chan struct{}), make(chan net.Conn, 1)
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		socket, err := s.connect(ctx)
		connected <- socket
		return frozenCaller{socket, freezing, over}, err
	}
	frozen = s.dial(within, grpc.WithContextDialer(dialer))
	s.t.Cleanup(func() { close(over) })
	return frozen, func() { close(freezing) }, connected
}

func lasting(duration time.Duration) *durationpb.Duration { return durationpb.New(duration) }
