package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A Session is what a lease stands on: one ZooKeeper session.
type Session interface {
	recipes.MemberSession

	// Timeout is the session's, as negotiated.
	Timeout() time.Duration

	// Key is what another process comes back to the session with.
	Key() recipes.SessionKey

	// ValidFor is how long the session is certainly this caller's; 0 when it is not any more.
	ValidFor() time.Duration

	// Asleep says whether the session is kept but not proved, which it may be when nothing has stood on it for its timeout. Its validity is 0
	// then, until Prove has been called or something has been made on it.
	Asleep() bool

	// AssuredFor is how long whoever asks may count on the session: ValidFor or, while it sleeps, for how long whatever will stand on it will be
	// valid at least.
	AssuredFor() time.Duration

	// Suspended says whether a heartbeat is late, with a channel that is closed when that changes.
	Suspended() (bool, <-chan struct{})

	// Close gives up all that the session owns. It returns when that is confirmed or the session is over. ctx only says
	// on whose behalf.
	Close(ctx context.Context)

	// Err says, after Done, why the session has ended.
	Err() error

	// AfterEnd has f called in a goroutine of its own when the session has ended, at once if it has, unless stop is called before.
	AfterEnd(f func()) (stop func() bool)
}

// An Ensemble is what the services stand on: a tree that all callers read and write, and sessions that own things.
type Ensemble interface {
	recipes.Store
	recipes.Follower
	Reachability

	// Open opens a session. It returns when the ensemble has agreed, when ctx ends, or when the ensemble is given up
	// (recipes.ErrUnreachable). recipes.ErrUnsafeTimeout if sessions of this timeout cannot be kept proved.
	Open(ctx context.Context, timeout time.Duration) (Session, error)
}

// A ReturnedSession is a session that was come back to.
type ReturnedSession interface {
	Session
	recipes.Adopter
}

// A Reachability knows whether the ensemble answers, and gives a channel that is closed when that may have changed.
type Reachability interface {
	Reachable() (bool, <-chan struct{})
}

// leaseService answers sidekeeper.lease.v1.LeaseService.
type leaseService struct {
	leasev1.UnsafeLeaseServiceServer

	services *Services
}

func (l *leaseService) Open(request *leasev1.OpenRequest, stream grpc.ServerStreamingServer[leasev1.OpenResponse]) error {
	began := time.Now()
	every, err := parseKeepalive(request)
	if err != nil {
		return err
	}
	opened, err := l.open(request, stream)
	if err != nil {
		return err
	}
	opened.heedDrain()
	opened.id, opened.key = l.services.leases.ids.enter(opened.identity, opened)
	ended := overOf(stream.Context())
	kept := &leaseStream[*leasev1.OpenResponse]{
		services: l.services, began: began, lease: opened, over: ended, box: newOutbox(ended, stream.Send), words: openWords,
	}
	keepAlive(kept.box, every, &leasev1.OpenResponse{Event: &leasev1.OpenResponse_Keepalive{Keepalive: alive}})
	kept.announce()
	return kept.keep(stream.Context())
}

// open begins the lease that a stream asks for.
func (l *leaseService) open(request *leasev1.OpenRequest, stream grpc.ServerStream) (*lease, error) {
	about, err := parseAbout(request.GetOwner(), request.GetMetadata())
	if err != nil {
		return nil, err
	}
	ttl, err := parseDuration("ttl", request.GetTtl(), time.Millisecond, recipes.LongestTimeout)
	if err != nil {
		return nil, err
	}
	if ttl == nil {
		ttl = &l.services.options.SessionTimeout
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return nil, err
	}
	ctx := stream.Context()
	opened, err := l.services.leases.begin(ctx, caller.Of(ctx), about, *ttl)
	if errors.Is(err, recipes.ErrUnsafeTimeout) && request.GetTtl() != nil {
		return nil, invalid("ttl", ttl.String(), "long enough for the sidecar to prove the lease alive")
	}
	return opened, err
}

// A leaseStream is the stream of a lease, which lives as long as it does. M is what it sends.
type leaseStream[M any] struct {
	services *Services
	began    time.Time
	lease    *lease
	over     over
	box      *outbox.Outbox[M]
	words    leaseWords[M]
	warned   bool // that contact is lost, and not yet told that it is back; only the box reads and sets it

	asked   <-chan error // why the caller has it end, nil if it closes the lease; nil if only the stream's own end can say that
	closing func()       // called before the caller's closing of the lease counts; may be nil
	settled func()       // called when the lease has ended for its caller, before the status; may be nil
	after   func()       // called when the lease has ended in the ensemble; may be nil
}

// leaseWords are what such a stream says.
type leaseWords[M any] struct {
	heldWords[M]

	opened func(*leasev1.Opened) M
}

var openWords = leaseWords[*leasev1.OpenResponse]{
	opened:    eventOf[*leasev1.OpenResponse, *leasev1.Opened]("opened"),
	heldWords: wordsOf[*leasev1.OpenResponse](),
}

// announce tells that the lease is open, before anything else is told of it.
func (s *leaseStream[M]) announce() {
	opened := s.lease
	s.box.Put(topicPlace, func() (M, bool) {
		event := &leasev1.Opened{LeaseId: opened.id, Ttl: durationpb.New(opened.session.Timeout()), Resumable: opened.resumable()}
		return s.words.opened(event), opened.lost() == nil
	})
}

// keep keeps the lease open for as long as its stream lives.
func (s *leaseStream[M]) keep(ctx context.Context) error {
	opened, leases := s.lease, s.services.leases
	s.over.endWith(opened)
	caller.AfterStatus(ctx, func() {
		leases.finish(ctx, opened)
		s.box.Wait()
		if s.after != nil {
			s.after()
		}
	})
	defer func() { // also after a panic
		opened.end(errLeaseClosed)
		leases.ids.end(opened.key, tombstone{why: opened.lost(), gone: opened.gone, free: opened.freed})
		if s.settled != nil {
			s.settled()
		}
	}()
	why := s.watchOver(ctx)
	switch from := caller.Of(ctx); {
	case gaveUp(ctx, from, s.began), s.asked != nil && why == nil:
		if s.closing != nil {
			s.closing()
		}
		opened.close(from)
	case mayNotHear(ctx, from, why):
		opened.drive.tell(0, from, opened.session.ValidFor())
	}
	opened.end(endOfLease(why))
	if errors.Is(why, errLeaseClosed) {
		return nil
	}
	return why
}

// watchOver returns when the lease must end, with the reason.
func (s *leaseStream[M]) watchOver(ctx context.Context) error {
	connectivity := newConnectivity(s.lease.session)
	defer connectivity.stop()
	if connectivity.suspended {
		s.tellConnectivity(ctx, true)
	}
	for {
		select {
		case <-s.over.Done():
			return s.over.why()
		case why := <-s.asked:
			return why
		case <-connectivity.changed:
			if connectivity.look() {
				s.tellConnectivity(ctx, connectivity.suspended)
			}
		case <-connectivity.tick:
			s.tellConnectivity(ctx, true)
		}
	}
}

func (s *leaseStream[M]) tellConnectivity(ctx context.Context, suspended bool) {
	s.box.Put(topicConnectivity, func() (M, bool) {
		if !suspended {
			tells := s.warned && (s.lease.validFor() > 0 || s.lease.session.Asleep() && s.lease.lost() == nil)
			s.warned = s.warned && !tells
			return s.words.resumed(&holdv1.Resumed{}), tells
		}
		remaining := s.lease.tell(caller.Of(ctx), s.lease.session.ValidFor())
		s.warned = s.warned || remaining > 0
		return s.words.suspendedFor(remaining), remaining > 0
	})
}

func (l *leaseService) Check(ctx context.Context, request *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
	found, err := l.services.leases.find(ctx, request.GetLeaseId())
	if err != nil {
		return nil, err
	}
	validFor := found.tell(caller.Of(ctx), found.session.AssuredFor())
	if err := found.lost(); err != nil {
		return nil, err
	}
	return &leasev1.CheckResponse{ValidFor: durationpb.New(validFor)}, nil
}

func (l *leaseService) Close(ctx context.Context, request *leasev1.CloseRequest) (*leasev1.CloseResponse, error) {
	found, ended, err := l.services.leases.lookUp(ctx, request.GetLeaseId())
	if err != nil {
		return nil, err
	}
	if ended == nil {
		found.close(caller.Of(ctx))
		ended = &tombstone{why: found.lost(), gone: found.gone, free: found.freed}
	}
	if !errors.Is(ended.why, errLeaseClosed) {
		return nil, ended.why
	}
	return &leasev1.CloseResponse{}, ended.await(ctx)
}

// await returns when all is gone that stood on the lease.
func (t *tombstone) await(ctx context.Context) error {
	select {
	case <-t.gone:
	case <-t.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (l *leaseService) List(_ context.Context, request *leasev1.ListRequest) (*leasev1.ListResponse, error) {
	page, err := parsePage(request)
	if err != nil {
		return nil, err
	}
	after := int64(0)
	if page.after != "" {
		if after, err = strconv.ParseInt(page.after, 10, 64); err != nil {
			return nil, invalidToken(request)
		}
	}
	open := l.services.leases.all()
	open = slices.DeleteFunc(open, func(l *lease) bool { return l.serial <= after })
	slices.SortFunc(open, func(a, b *lease) int { return cmp.Compare(a.serial, b.serial) })
	response := &leasev1.ListResponse{}
	for _, found := range open[:min(len(open), page.size)] {
		response.Leases = append(response.Leases, found.described())
	}
	if len(open) > page.size {
		response.NextPageToken = nextToken(strconv.FormatInt(open[page.size-1].serial, 10))
	}
	return response, nil
}

// mostPossessions is how many possessions a lease is described with.
const mostPossessions = 100

func (l *lease) described() *leasev1.Lease {
	state := leasev1.State_STATE_CONNECTED
	if suspended, _ := l.session.Suspended(); suspended {
		state = leasev1.State_STATE_SUSPENDED
	} else if l.session.Asleep() {
		state = leasev1.State_STATE_SLEEPING
	}
	described := &leasev1.Lease{
		Identity: caller.Caller{Identity: l.identity}.Distinct(), Owner: l.about.Owner, Metadata: l.about.Metadata, State: state,
		Age: durationpb.New(time.Since(l.opened)), ValidFor: durationpb.New(l.validFor()),
		Ttl: durationpb.New(l.session.Timeout()),
	}
	var possessions []*leasev1.Possession
	for of, had := range l.possessions() {
		possessions = append(possessions, &leasev1.Possession{Kind: of.kind, Name: of.name, Held: had.held})
	}
	slices.SortFunc(possessions, func(a, b *leasev1.Possession) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetKind(), b.GetKind()))
	})
	described.Possessions = possessions[:min(len(possessions), mostPossessions)]
	return described
}
