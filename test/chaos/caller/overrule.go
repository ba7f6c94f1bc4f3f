package caller

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// Graces of revocations.
const (
	leastGrace = 200 * time.Millisecond
	mostGrace  = 500 * time.Millisecond
)

// overrule has an operator end whatever hold there is on one of the locks that are held with lent leases: it breaks it, or
// revokes it with a short grace. In either case the hold's caller is left the time that it was told.
func (c *caller) overrule(ctx context.Context) error {
	connection, err := dial(c.order.Operators)
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*c.order.Timeout)
	defer cancel()
	locks := lockv1.NewLockServiceClient(connection)
	name := c.name("%s", LentLock(Lender+c.dice.IntN(Straight-Lender+1)))
	answer, err := locks.Get(ctx, &lockv1.GetRequest{Name: name})
	if err != nil || len(answer.GetView().GetHolders()) == 0 {
		return err
	}
	if c.dice.IntN(2) == 0 {
		_, err = locks.Revoke(ctx, &lockv1.RevokeRequest{Name: name, Grace: durationpb.New(c.between(leastGrace, mostGrace))})
		return err
	}
	token := answer.GetView().GetHolders()[0].GetToken()
	_, err = locks.Break(ctx, &lockv1.BreakRequest{Name: name, FencingToken: token, Reason: "stuck"})
	return err
}
