package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

var (
	errClosed     = errors.New("the lock is closed")
	errNotElected = errors.New("not elected yet")
)

// recordSeconds is for how long an elector takes a record to stand that it does not see again: longer than it waits between two looks.
const recordSeconds = 60

// A Lock is a resourcelock.Interface whose lock is an election of Sidekeeper: for leaderelection.LeaderElectionConfig of client-go, or
// LeaderElectionResourceLockInterface of controller-runtime. It is for one elector and one term. It campaigns from the elector's first look on.
//
// Run the elector, or the manager, with the context that Context returns, so that it stops as soon as it must. Without that it stops when its
// RenewDeadline is over, if the process has not ended before. A program that goes on in the same process afterwards must Close the Lock.
type Lock struct {
	client   *sidekeeper.Client
	election string
	options  Options
	stopped  context.Context //nolint:containedctx // ends when what acts for the term must end
	stop     context.CancelCauseFunc

	campaigns sync.WaitGroup

	mu          sync.Mutex
	campaigning bool
	refused     error // why the newest campaign ended without a term
	elected     *sidekeeper.Leadership
	since       time.Time // when it was elected
	term        *term
	closed      bool
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock makes a Lock that does nothing until an elector looks at it. An election that is no name becomes one as sidekeeper.NameOf says.
func NewLock(client *sidekeeper.Client, election string, options Options) *Lock {
	l := &Lock{client: client, election: sidekeeper.NameOf(election), options: options}
	l.stopped, l.stop = context.WithCancelCause(context.Background())
	return l
}

// Context is ctx that also ends when what acts for the term must end: the term is lost (sidekeeper.ErrLost), at risk (ErrAtRisk), or asked for
// (ErrYieldRequested).
func (l *Lock) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	acting, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(l.stopped, func() { cancel(context.Cause(l.stopped)) })
	return acting, func() {
		unlink()
		cancel(nil)
	}
}

// Close says that nothing acts for the term any more, or ever will, and returns when the campaign is given up or the term resigned. Closing
// again is harmless.
func (l *Lock) Close(ctx context.Context) error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.stop(errClosed)
	l.mu.Unlock()
	l.campaigns.Wait()
	switch {
	case closed:
		return nil
	case l.term != nil:
		return l.term.end(ctx)
	case l.elected != nil:
		return l.elected.Resign(ctx)
	}
	return nil
}

// Identity is the candidate.
func (l *Lock) Identity() string { return l.options.Candidate }

// Describe names the election.
func (l *Lock) Describe() string { return "election " + l.election }

// RecordEvent tells the log what the elector does: there is no object in the API server that could tell of it.
func (l *Lock) RecordEvent(event string) {
	if l.options.Log != nil {
		l.options.Log.Info(event, "election", l.election, "candidate", l.options.Candidate)
	}
}

// Get says who leads, and renews that: an elector that looks at it often never takes it for expired. It shows the elector no leader once this
// process is elected and may begin.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	holder, mine, err := l.own()
	if err == nil && !mine {
		holder, err = l.other(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	now := metav1.Now()
	record := &resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaseDurationSeconds: recordSeconds, AcquireTime: now, RenewTime: now,
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create is Update: there is always a record.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update begins the term, or confirms it: nil says that it is not at risk. A record without a holder, by which an elector releases the lock,
// changes nothing, since electors do so before what acts has ended: that is what Close says, and the end of the process.
func (l *Lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.options.Candidate {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped.Err() != nil:
		return context.Cause(l.stopped)
	case l.term != nil:
		return nil
	case !l.isReady():
		return errors.Join(errNotElected, l.refused)
	}
	begun, err := begin(l.elected, l.options, l.stop)
	l.term = begun
	return err
}

// isReady says whether the process is elected and may begin. The lock is held.
func (l *Lock) isReady() bool { return l.elected != nil && time.Since(l.since) >= l.options.settle() }

// own is who leads, for the elector, if it is this process or will be as soon as the elector says so. Otherwise it sees to the campaign.
func (l *Lock) own() (holder string, mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.term != nil:
		return l.options.Candidate, true, nil
	case l.stopped.Err() != nil:
		return "", false, context.Cause(l.stopped)
	case l.elected != nil && l.elected.Valid():
		return "", l.isReady(), nil
	case !l.campaigning:
		l.campaigning = true
		l.campaigns.Go(l.campaign)
	}
	return "", false, nil
}

// campaign makes one campaign, after what is left of the one before.
func (l *Lock) campaign() {
	l.mu.Lock()
	lost := l.elected
	l.elected = nil
	l.mu.Unlock()
	if lost != nil {
		_ = resigned(l.stopped, lost.Resign) // it was lost before the elector took it
	}
	led, err := l.client.Campaign(l.stopped, l.election, l.options.campaign())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.campaigning, l.refused = false, err
	if err == nil {
		l.elected, l.since = led, time.Now()
	}
}

// other is who else leads.
func (l *Lock) other(ctx context.Context) (string, error) {
	view, err := l.client.GetElection(ctx, l.election)
	switch {
	case err != nil:
		return "", err
	case view.Leader == nil:
		return "", nil
	case view.Leader.Candidate == l.options.Candidate: // this process before it begins, or one that had its name before
		return fmt.Sprintf("%s in term %d", view.Leader.Candidate, view.Leader.Term.FencingToken), nil
	}
	return view.Leader.Candidate, nil
}
