package nemesis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// A prey is who holds a lock with a lease that another connection has opened.
type prey struct {
	client *stage.Client
	lock   string
	token  int64
}

// endLease freezes whoever holds with a lease of another connection, or that connection alone, while the lease ends: as its
// lender will have it, which lends none for longer than it is frozen, or with its lender.
func endLease(ctx context.Context, s *scene) error {
	victim, thaw, err := s.catch(ctx)
	if err != nil || victim == nil {
		return err
	}
	defer thaw()
	frozen := s.Timeout * 3 / 2
	if s.dice.IntN(2) == 0 {
		s.pause(ctx, s.between(0, s.Timeout/4))
		if err := s.killLender(victim.client.Host); err != nil {
			return err
		}
		frozen = s.Timeout
	}
	s.pause(ctx, frozen)
	return nil
}

// killLender kills the client that lends leases to those beside it, and starts another in its place.
func (s *scene) killLender(host *stage.Host) error {
	lender := lenderOf(s.Stage, host)
	if lender == nil {
		return nil
	}
	defer s.fault(lender.Target())()
	lender.Kill()
	return lender.Replace()
}

// lenderOf is the client of a host that lends; nil if there is none.
func lenderOf(on *stage.Stage, host *stage.Host) *stage.Client {
	for _, client := range on.Present() {
		if client.Host == host && client.Rank() == caller.Lender {
			return client
		}
	}
	return nil
}

// force freezes whoever holds a lock, or its connection alone, and has an operator end the hold: by force, when the grace of a
// revocation is over or, for which nothing is promised, without any patience.
func force(ctx context.Context, s *scene) error {
	victim, thaw, err := s.catch(ctx)
	if err != nil || victim == nil {
		return err
	}
	defer thaw()
	if lender := lenderOf(s.Stage, victim.client.Host); lender != nil && s.dice.IntN(4) > 0 {
		defer s.fault(lender.Target())()
		lender.Freeze() // or the lease would end first, now and then
		defer lender.Continue()
	}
	over := time.Now().Add(s.expiry())
	err = s.operate(func(locks lockv1.LockServiceClient) {
		operating, cancel := context.WithTimeout(ctx, 2*s.expiry())
		defer cancel()
		s.end(operating, locks, victim)
	})
	s.pause(ctx, time.Until(over))
	return err
}

// operate does what an operator does, at any sidecar.
func (s *scene) operate(do func(lockv1.LockServiceClient)) error {
	connection, err := grpc.NewClient(s.host().Operators(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	do(lockv1.NewLockServiceClient(connection))
	return nil
}

// end fails where the hold has ended by itself, or a sidecar is away: there are other strikes.
func (s *scene) end(ctx context.Context, locks lockv1.LockServiceClient, victim *prey) {
	breaking := &lockv1.BreakRequest{Name: victim.lock, FencingToken: victim.token, Reason: "stuck"}
	switch s.dice.IntN(7) {
	case 0:
		breaking.ForceAfter = durationpb.New(s.between(0, s.Timeout/8))
		s.Stage.Note(history.Event{Kind: history.Exempted, Lock: victim.lock, Token: victim.token})
		fallthrough
	case 1, 2, 3:
		locks.Break(ctx, breaking) //nolint:errcheck // see above
	default:
		grace := durationpb.New(s.between(200*time.Millisecond, 500*time.Millisecond))
		locks.Revoke(ctx, &lockv1.RevokeRequest{Name: victim.lock, Grace: grace}) //nolint:errcheck // see above
	}
}

// catch freezes whoever holds one of the locks that are held with lent leases, or its connection. It returns nobody if nobody
// holds one in time. The caller must thaw them.
func (s *scene) catch(ctx context.Context) (victim *prey, thaw func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for victim == nil {
		if victim, err = s.seek(waiting); err != nil {
			return nil, nil, err
		}
		if victim == nil && !s.pause(waiting, 50*time.Millisecond) {
			return nil, nil, context.Cause(ctx)
		}
	}
	return victim, s.freeze(victim), nil
}

// freeze stalls the connections of borrowers, where that spares the lender, or freezes the process. A lender holds over such a
// connection, too, and must go on.
func (s *scene) freeze(victim *prey) (thaw func()) {
	client := victim.client
	heal := s.fault(client.Target())
	if rank := client.Rank(); rank == caller.Straight || rank == caller.Borrower && s.dice.IntN(2) == 0 {
		client.Freeze()
		return func() {
			client.Continue()
			heal()
		}
	}
	borrowing := client.Host.Borrowing
	borrowing.Stall()
	return func() {
		borrowing.Heal()
		heal()
	}
}

// seek asks who holds one of the locks; nil if nobody does, or no sidecar can tell.
func (s *scene) seek(ctx context.Context) (found *prey, err error) {
	rank := caller.Lender + s.dice.IntN(caller.Straight-caller.Lender+1)
	lock := s.Prefix + "/" + caller.LentLock(rank)
	err = s.operate(func(locks lockv1.LockServiceClient) {
		answer, err := locks.Get(ctx, &lockv1.GetRequest{Name: lock})
		if err == nil && len(answer.GetView().GetHolders()) > 0 {
			holder := answer.GetView().GetHolders()[0]
			if client := s.clientOf(holder.GetOwner()); client != nil {
				found = &prey{client, lock, holder.GetToken()}
			}
		}
	})
	return found, err
}

// clientOf is the client that names this owner; nil if it is there no more.
func (s *scene) clientOf(owner string) *stage.Client {
	number, _, _ := strings.Cut(owner, "/")
	for _, client := range s.Stage.Present() {
		if strconv.Itoa(client.Number) == number {
			return client
		}
	}
	return nil
}
