// Package service is what the RPCs do: names, requests, replies and statuses. Each rpc parses its request, gets the lease's
// session, runs a recipe and replies. What stands around them is package server's.
//
// What is held lives by events: whatever brings one does what follows, one after the other (inbox), and waits for nothing.
// What may block runs beside that: questions to the ensemble as calls, messages to the caller in an outbox. So no slow
// ensemble and no slow reader keeps anything from ending in time.
//
// Ends come before hand-overs: a request first zeroes what Check answers (settle), then tells its end, and only when
// that was handed to the transport, and no caller counts on it, lets go of anything in the ensemble (giveUp).
package service

import (
	"context"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"

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
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Options is how the services behave. Zero values mean what stands behind them.
type Options struct {
	LockRoot       string                    // where locks lie; "/sidekeeper/locks"
	NestedLocks    bool                      // a name's segments are nodes, for directories that foreign clients made
	LatchElections bool                      // candidates are named as Curator's LeaderLatch names them
	SequenceRoot   string                    // where sequences lie; "/sidekeeper/sequences"
	GroupRoot      string                    // where groups lie; "/sidekeeper/groups"
	SemaphoreRoot  string                    // where semaphores lie; "/sidekeeper/semaphores"
	QueueRoot      string                    // where queues lie; "/sidekeeper/queues"
	BarrierRoot    string                    // where barriers lie; "/sidekeeper/barriers"
	AgreementRoot  string                    // where agreements lie; "/sidekeeper/agreements"
	OnceRoot       string                    // where the records of work lie that is done once; "/sidekeeper/once"
	ScheduleRoot   string                    // where schedules lie; "/sidekeeper/schedules"
	AssignmentRoot string                    // where sets of items lie; "/sidekeeper/assignments"
	ClaimRoot      string                    // where the records of claims lie; "/sidekeeper/claims"
	ConfigRoot     string                    // where the configuration lies; "/sidekeeper/config"
	WaitRoot       string                    // where leases publish what they wait for; "/sidekeeper/waits"
	SessionTimeout time.Duration             // of leases that ask for none; Break assumes it of others'; 15 s
	TickTime       time.Duration             // the ensemble's; 2 s
	ClockTolerance time.Duration             // between the clocks of this machine and the ensemble, for schedules; 2 h
	MostLeases     int                       // per sidecar; 10,000
	MostWaiters    int                       // per lock and sidecar; 1,000
	MostWatched    int                       // keys and members that are watched at the same time; 100,000
	LeaseShare     func(identity string) int // how many of the leases one caller may have, 0 for all; all
	WatchShare     func(identity string) int // how many of those that are watched; all
	ClaimShare     func(identity string) int // how many of the ensemble's claims, 0 for all; all
	Log            *zap.Logger               // nowhere
	Audit          *zap.Logger               // for what docs/audit.md tells; nowhere
	AuditStrict    Record                    // of Audit, without which nothing is granted; it is not asked
	Events         Events                    // nobody
	Resumption     *Resumption               // of leases by the process that comes after this one; none
}

// A Resumption has leases outlive the sidecar's process.
type Resumption struct {
	Journal  *journal.Journal // of leases that may be resumed
	HandOver bool             // whether Drain leaves them as they are

	// Reattach comes back to a session that another process opened, and returns what it owns. When it returns, the session is proved to be
	// alive. recipes.ErrSessionEnded if it is over; with any other error it may be tried again.
	Reattach func(ctx context.Context, key recipes.SessionKey) (ReturnedSession, []recipes.Standing, error)
}

// Events is told what happens to leases and locks, for metrics. Its methods return at once.
type Events interface { //nolint:interfacebloat // one for each thing that is counted
	LeaseOpened()
	LeaseNotNoted()                                 // it cannot be resumed, though the sidecar has a directory for that
	LeaseEnded(reason string, lasted time.Duration) // `CLOSED` or a reason of errors.proto
	WaitBegun(kind string)
	WaitEnded(kind, name string, granted bool, waited time.Duration) // of what is waited for; of several locks, the first
	HoldBegun()
	HoldEnded(reason string, held time.Duration) // `RELEASED` or a reason of errors.proto
	MemberJoined()
	MemberEnded(reason string, lasted time.Duration) // `LEFT` or a reason of errors.proto
	NumbersIssued(ordering string, count int64)      // `STRICT` or `RELAXED`
	SequenceWritten(outcome string)                  // one of WriteOutcomes
	PlanWritten(outcome string)                      // of a set of items; one of WriteOutcomes
	SharesChanged(members, items int)                // of sets: how many more have joined, and how many more items they are assigned
	KeyWatchBegun()
	KeyWatchEnded()
	NodesWatched(sum int)                                        // for all who watch groups and keys
	TickBegun(schedule string, late time.Duration)               // for the first time
	TicksMissed(schedule string, count int)                      // and noted as such by this sidecar
	AttemptEnded(schedule, outcome string, lasted time.Duration) // one of AttemptOutcomes, which this sidecar has recorded
}

// Services are this sidecar's services. Make them with New.
type Services struct {
	options  Options
	losses   recipes.Losses
	ensemble Ensemble
	leases   *leases
	holds    idRegistry[*hold]
	held     openCount // the holds that have not ended, and the stops without an answer
	usual    usualHold
	waiters  waiterLimit
	drain    *drain
	members  memberList
	locks    *broadcasts[name, *lockView]
	permits  *broadcasts[name, *semaphoreView]
	groups   *broadcasts[watchedName, *groupView]
	sets     *broadcasts[watchedName, *setView]
	plans    *broadcasts[watchedName, *recipes.AssignmentView]
	watched  watchCount
	issuers  *issuers
	rests    recipes.Rests
	audit    audit

	schedules   scheduleBook
	claimCounts claimCounts
	lockService *lockService
}

// New makes the services over an ensemble.
func New(options Options, ensemble Ensemble) *Services {
	options = options.orDefaults()
	drain := newDrain()
	s := &Services{
		options:  options,
		ensemble: ensemble,
		leases:   newLeases(options, ensemble, drain),
		waiters:  waiterLimit{most: options.MostWaiters, waiting: map[resource]int{}},
		drain:    drain,
		members:  memberList{members: map[resource][]*member{}},
		watched: watchCount{
			most: options.MostWatched, shares: caller.NewShares(options.WatchShare), tell: options.Events.NodesWatched,
			nodes: map[context.Context]int{},
		},
	}
	s.schedules.known = map[string]*bookedSchedule{}
	s.claimCounts = claimCounts{made: map[string]int{}, making: map[string]int{}}
	s.audit = newAudit(options.Audit, options.AuditStrict)
	s.lockService = &lockService{services: s, directory: s.lockDirectory()}
	s.locks = newBroadcasts(ensemble, s.lookAtLock)
	s.permits = newBroadcasts(ensemble, s.lookAtSemaphore)
	s.groups = newBroadcasts(ensemble, s.lookAtGroup)
	s.sets = newBroadcasts(ensemble, s.lookAtSet)
	s.plans = newBroadcastsOf(ensemble, s.planning)
	s.issuers = newIssuers(options, ensemble, drain)
	return s
}

// Register offers the services on a server.
func (s *Services) Register(registrar grpc.ServiceRegistrar) {
	leasev1.RegisterLeaseServiceServer(registrar, &leaseService{services: s})
	lockv1.RegisterLockServiceServer(registrar, s.lockService)
	configv1.RegisterConfigServiceServer(registrar, newConfigService(s))
	semaphorev1.RegisterSemaphoreServiceServer(registrar, &semaphoreService{services: s})
	queuev1.RegisterQueueServiceServer(registrar, &queueService{services: s})
	barrierv1.RegisterBarrierServiceServer(registrar, &barrierService{services: s})
	agreementv1.RegisterAgreementServiceServer(registrar, &agreementService{services: s})
	oncev1.RegisterOnceServiceServer(registrar, &onceService{services: s})
	schedulev1.RegisterScheduleServiceServer(registrar, &scheduleService{services: s})
	assignmentv1.RegisterAssignmentServiceServer(registrar, &assignmentService{services: s})
	membershipv1.RegisterMembershipServiceServer(registrar, &membershipService{services: s})
	electionv1.RegisterElectionServiceServer(registrar, &electionService{services: s})
	fencingv1.RegisterFencingServiceServer(registrar, &fencingService{services: s})
	sequencev1.RegisterSequenceServiceServer(registrar, &sequenceService{services: s, directory: s.issuers.directory})
}

// Drain ends everything in an orderly way: waiters at once, holders when they have let go or when timeout is over, whichever is
// first, and members when nobody holds anything. It returns when nobody counts on anything any more and every session is
// closed, so that all locks are free, or with ctx's cause when ctx ends. Connections must not be told to go away
// before: a holder that has heard of its end says so on its own.
//
// With Resumption.HandOver it leaves the leases that may be resumed as they are, for the process that comes after this one: this one must end
// without ending a stream.
func (s *Services) Drain(ctx context.Context, timeout time.Duration) error {
	s.drain.begin(timeout)
	defer s.drain.finish()
	if s.options.Resumption != nil && s.options.Resumption.HandOver {
		return s.handOver(ctx, timeout)
	}
	over := time.NewTimer(timeout)
	defer over.Stop()
	select {
	case <-s.held.empty():
	case <-over.C:
	case <-ctx.Done():
	}
	s.drain.finish()
	for _, open := range []*openCount{&s.leases.sessions, &s.issuers.fetches} {
		select {
		case <-open.empty():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Stop ends everything now and returns when every session is closed, or with ctx's cause.
func (s *Services) Stop(ctx context.Context) error { return s.Drain(ctx, 0) }

// foreignTicks is the longest session timeout that an ensemble grants, in ticks, if its settings do not say otherwise.
const foreignTicks = 20

// forceAfter is for how long a holder's or a member's sidecar is left to end it: after, or if that is nil, until its session
// must have expired.
func (s *Services) forceAfter(after *time.Duration) recipes.ForceAfter {
	tick := s.options.TickTime
	return recipes.ForceAfter{After: after, Timeout: max(s.options.SessionTimeout, foreignTicks*tick), Tick: tick}
}

func (s *Services) lockDirectory() directory {
	return directory{
		root: s.options.LockRoot, nested: s.options.NestedLocks, shared: true, latch: s.options.LatchElections, losses: &s.losses,
	}
}

func (s *Services) groupDirectory() directory { return directory{root: s.options.GroupRoot} }

func (s *Services) semaphoreDirectory() directory { return directory{root: s.options.SemaphoreRoot} }

func (s *Services) queueDirectory() directory { return directory{root: s.options.QueueRoot} }

func (o Options) orDefaults() Options {
	orElse(&o.LockRoot, "/sidekeeper/locks")
	orElse(&o.SequenceRoot, "/sidekeeper/sequences")
	orElse(&o.GroupRoot, "/sidekeeper/groups")
	orElse(&o.SemaphoreRoot, "/sidekeeper/semaphores")
	orElse(&o.QueueRoot, "/sidekeeper/queues")
	orElse(&o.BarrierRoot, "/sidekeeper/barriers")
	orElse(&o.AgreementRoot, "/sidekeeper/agreements")
	orElse(&o.OnceRoot, "/sidekeeper/once")
	orElse(&o.ScheduleRoot, "/sidekeeper/schedules")
	orElse(&o.AssignmentRoot, "/sidekeeper/assignments")
	orElse(&o.ClaimRoot, "/sidekeeper/claims")
	orElse(&o.ConfigRoot, "/sidekeeper/config")
	orElse(&o.WaitRoot, "/sidekeeper/waits")
	orElse(&o.SessionTimeout, 15*time.Second)
	orElse(&o.TickTime, 2*time.Second)
	orElse(&o.ClockTolerance, 2*time.Hour)
	orElse(&o.MostLeases, 10000)
	orElse(&o.MostWaiters, 1000)
	if o.ClaimShare == nil {
		o.ClaimShare = func(string) int { return 0 }
	}
	orElse(&o.MostWatched, 100000)
	orElse(&o.Log, zap.NewNop())
	orElse(&o.Events, Events(noEvents{}))
	return o
}

func orElse[T comparable](setting *T, otherwise T) {
	var none T
	if *setting == none {
		*setting = otherwise
	}
}

type noEvents struct{}

func (noEvents) LeaseOpened()                                  {}
func (noEvents) LeaseNotNoted()                                {}
func (noEvents) LeaseEnded(string, time.Duration)              {}
func (noEvents) WaitBegun(string)                              {}
func (noEvents) WaitEnded(string, string, bool, time.Duration) {}
func (noEvents) HoldBegun()                                    {}
func (noEvents) HoldEnded(string, time.Duration)               {}
func (noEvents) MemberJoined()                                 {}
func (noEvents) MemberEnded(string, time.Duration)             {}
func (noEvents) NumbersIssued(string, int64)                   {}
func (noEvents) SequenceWritten(string)                        {}
func (noEvents) PlanWritten(string)                            {}
func (noEvents) SharesChanged(int, int)                        {}
func (noEvents) KeyWatchBegun()                                {}
func (noEvents) KeyWatchEnded()                                {}
func (noEvents) NodesWatched(int)                              {}
func (noEvents) TickBegun(string, time.Duration)               {}
func (noEvents) TicksMissed(string, int)                       {}
func (noEvents) AttemptEnded(string, string, time.Duration)    {}

// A waiterLimit counts the callers that wait for each lock, semaphore or double barrier through this sidecar.
type waiterLimit struct {
	most    int
	mu      sync.Mutex
	waiting map[resource]int
}

// A wait is a caller's for all of these. A request that enters leaves, once or more; one of none does nothing.
type wait struct {
	limit *waiterLimit
	all   []resource
	once  sync.Once
}

// enter enters for each or for none. Who stood there before the sidecar was started is not refused.
func (c *waiterLimit) enter(goesOn bool, all ...resource) (*wait, error) {
	most := c.most
	if goesOn {
		most = math.MaxInt
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for entered, of := range all {
		if c.waiting[of] >= most {
			c.leave(all[:entered])
			return nil, limited(errWaiterLimit, "max-waiters", most)
		}
		c.waiting[of]++
	}
	return &wait{limit: c, all: all}, nil
}

func (w *wait) leave() {
	if w == nil {
		return
	}
	w.once.Do(func() {
		w.limit.mu.Lock()
		defer w.limit.mu.Unlock()
		w.limit.leave(w.all)
	})
}

// leave leaves for each. The lock is held.
func (c *waiterLimit) leave(all []resource) {
	for _, of := range all {
		c.waiting[of]--
		if c.waiting[of] == 0 {
			delete(c.waiting, of)
		}
	}
}
