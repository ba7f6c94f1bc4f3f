package sidekeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

type toldOf struct {
	item string
	err  error
}

// A sharer is a call of Share that a test looks at.
type sharer struct {
	stop    context.CancelCauseFunc
	running chan string // items whose handler runs
	stopped chan error  // why a handler was stopped
	told    chan toldOf
	result  chan error
}

// share has a member share the set orders. Its handlers go on until they are stopped.
func share(t *testing.T, client *sidekeeper.Client, options sidekeeper.ShareOptions) *sharer {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	s := &sharer{stop, make(chan string, 10), make(chan error, 10), make(chan toldOf, 10), make(chan error, 1)}
	options.Member, options.OnError = "one", func(item string, err error) { s.told <- toldOf{item, err} }
	go func() {
		s.result <- client.Share(ctx, "orders", func(ctx context.Context, item *sidekeeper.Item) error {
			s.running <- item.Name()
			<-ctx.Done()
			s.stopped <- context.Cause(ctx)
			return ctx.Err()
		}, options)
	}()
	return s
}

// admit makes the member one with an item, whose handler begins.
func (s *sharer) admit(t *testing.T, server *scripted.Server) (*scripted.Share, *scripted.Acquire) {
	t.Helper()
	joined := server.NextShare()
	joined.Admit(1)
	joined.Assign(1, "a")
	lock := server.NextAcquire()
	lock.Grant(7)
	if got := receive(t, s.running); got != "a" {
		t.Errorf("the handler of %q runs", got)
	}
	return joined, lock
}

func TestShareEndsAMembershipWhoseSidecarStops(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	one := share(t, client, sidekeeper.ShareOptions{})
	server.NextOpen().Accept(leaseID)
	joined, lock := one.admit(t, server)
	lock.AskBack(&holdv1.RevocationRequested{RequestedBy: "sidekeeper", Reason: "the sidecar is stopping"})
	if why := receive(t, one.stopped); !errors.Is(why, sidekeeper.ErrSidecarStopping) {
		t.Error(why)
	}
	joined.AwaitGone()
	told := receive(t, one.told)
	want(t, told.err, "member orders/one: Unavailable (SIDECAR_STOPPING): the sidecar is stopping", sidekeeper.ErrSidecarStopping)
	if told.item != "" {
		t.Errorf("told of item %q", told.item)
	}
	server.NextOpen().Accept(leaseID) // of the sidecar that comes next
	one.admit(t, server)
	over := errors.New("it is over")
	one.stop(over)
	if err := receive(t, one.result); !errors.Is(err, over) {
		t.Error(err)
	}
}

func TestShareReturnsThatTheSidecarRefusesALockAsItStops(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, _ := open(t, client, server)
	one := share(t, client, sidekeeper.ShareOptions{Lease: lease})
	joined, _ := one.admit(t, server)
	joined.Assign(2, "a", "b")
	server.NextAcquire().End(scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "it stops"))
	want(t, receive(t, one.result), "member orders/one: Unavailable (SIDECAR_STOPPING): the sidecar is stopping")
	if why := receive(t, one.stopped); !errors.Is(why, sidekeeper.ErrSidecarStopping) || !lease.Valid() {
		t.Error(why, lease.Err())
	}
}

func TestShareWaitsForTheSidecarThatGetsItsLease(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	one := share(t, client, sidekeeper.ShareOptions{})
	server.NextOpen().AcceptResumable(leaseID)
	joined, _ := one.admit(t, server)
	joined.Assign(2, "a", "b")
	server.NextAcquire().End(scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "it stops"))
	server.NextAcquire().Grant(8)
	if got := receive(t, one.running); got != "b" || len(one.stopped) > 0 {
		t.Errorf("the handler of %q runs, %d have stopped", got, len(one.stopped))
	}
	one.stop(nil)
	if err := receive(t, one.result); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestShareTellsThatTheLockOfAnItemIsLost(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	one := share(t, client, sidekeeper.ShareOptions{})
	server.NextOpen().Accept(leaseID)
	_, lock := one.admit(t, server)
	lock.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	if why := receive(t, one.stopped); !errors.Is(why, sidekeeper.ErrLockBroken) {
		t.Error(why)
	}
	told := receive(t, one.told)
	want(t, told.err, "lock orders/a lost: Aborted (LOCK_BROKEN): by an operator", sidekeeper.ErrLost)
	if told.item != "a" {
		t.Errorf("told of item %q", told.item)
	}
	one.stop(nil)
	receive(t, one.result)
	if len(one.told) > 0 {
		t.Error(receive(t, one.told))
	}
}

func TestShareTellsOnceThatItsLeaseIsLost(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	one := share(t, client, sidekeeper.ShareOptions{})
	server.NextOpen().Accept(leaseID)
	one.admit(t, server)
	server.Stop()
	if told := receive(t, one.told); told.item != "" || !errors.Is(told.err, sidekeeper.ErrLost) {
		t.Errorf("told of item %q: %v", told.item, told.err)
	}
	one.stop(nil)
	receive(t, one.result)
	if len(one.told) > 0 {
		t.Error(receive(t, one.told))
	}
}

var frozenCapacity = scripted.Frozen[assignmentv1.SetCapacityRequest, assignmentv1.SetCapacityResponse]

// A sidecar that never answers SetCapacity holds up neither the plan nor the end of the membership.
func TestADrainGoesOnBesideItsCall(t *testing.T) {
	for name, goOn := range map[string]func(*scripted.Share){
		"the items move": func(joined *scripted.Share) { joined.Assign(2) },
		"the membership ends": func(joined *scripted.Share) {
			joined.End(scripted.Status(codes.Aborted, "MEMBER_REMOVED", "by an operator"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := scripted.Start(t), make(chan *assignmentv1.SetCapacityRequest, 10)
			server.SetCapacity = func(ctx context.Context, request *assignmentv1.SetCapacityRequest) (*assignmentv1.SetCapacityResponse, error) {
				asked <- request
				return frozenCapacity(ctx, request)
			}
			client, _ := dial(t, server)
			one := share(t, client, sidekeeper.ShareOptions{Drain: true, DrainTimeout: time.Hour})
			server.NextOpen().Accept(leaseID)
			joined, _ := one.admit(t, server)
			over := errors.New("it is over")
			one.stop(over)
			if request := receive(t, asked); request.GetSet() != "orders" || request.GetMember() != "one" || request.GetCapacity() != 0 {
				t.Errorf("asked for %v", request)
			}
			goOn(joined)
			if err := receive(t, one.result); !errors.Is(err, over) && !errors.Is(err, sidekeeper.ErrMemberRemoved) {
				t.Error(err)
			}
			if len(one.told) > 0 {
				t.Error(receive(t, one.told))
			}
		})
	}
}

func TestADrainThatFailsIsTold(t *testing.T) {
	refuse := func(context.Context, *assignmentv1.SetCapacityRequest) (*assignmentv1.SetCapacityResponse, error) {
		return nil, scripted.Status(codes.PermissionDenied, "POLICY_DENIED", "no rule allows it")
	}
	for name, test := range map[string]struct {
		answer  func(context.Context, *assignmentv1.SetCapacityRequest) (*assignmentv1.SetCapacityResponse, error)
		timeout time.Duration
		want    error
	}{
		"it is refused":        {refuse, time.Hour, sidekeeper.ErrPolicyDenied},
		"it is never answered": {frozenCapacity, time.Millisecond, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			server := scripted.Start(t)
			server.SetCapacity = test.answer
			client, _ := dial(t, server)
			one := share(t, client, sidekeeper.ShareOptions{Drain: true, DrainTimeout: test.timeout})
			server.NextOpen().Accept(leaseID)
			one.admit(t, server)
			over := errors.New("it is over")
			one.stop(over)
			if told := receive(t, one.told); told.item != "" || !errors.Is(told.err, test.want) {
				t.Errorf("told of item %q: %v", told.item, told.err)
			}
			if err := receive(t, one.result); !errors.Is(err, over) {
				t.Error(err)
			}
		})
	}
}

func TestADrainEndsWhenItsTimeIsOver(t *testing.T) {
	server := scripted.Start(t)
	server.SetCapacity = func(context.Context, *assignmentv1.SetCapacityRequest) (*assignmentv1.SetCapacityResponse, error) {
		return &assignmentv1.SetCapacityResponse{}, nil
	}
	client, _ := dial(t, server)
	one := share(t, client, sidekeeper.ShareOptions{Drain: true, DrainTimeout: time.Second})
	server.NextOpen().Accept(leaseID)
	one.admit(t, server)
	over := errors.New("it is over")
	one.stop(over)
	if err := receive(t, one.result); !errors.Is(err, over) || len(one.told) > 0 {
		t.Error(err, len(one.told))
	}
}
