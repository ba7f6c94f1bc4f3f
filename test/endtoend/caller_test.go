package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// callerVariable makes this program a caller; see callerOrder.
const callerVariable = "SIDEKEEPER_TEST_CALLER"

// A callerOrder is what a caller that is a process of its own shall do.
type callerOrder struct {
	Address string
	Owner   string
	Names   []string // one: hold it; several: take one after the other, at random, for ever
	Group   string   // instead: be a member of this group, named Owner
	Seed    uint64
}

// startCaller starts a process that calls a sidecar.
func startCaller(t *testing.T, s *sidecar, order callerOrder) *process {
	t.Helper()
	order.Address = s.address()
	text, err := json.Marshal(order)
	must(t, err)
	program, err := os.Executable()
	must(t, err)
	command := exec.Command(program)
	command.Env = append(os.Environ(), callerVariable+"="+string(text))
	return start(t, filepath.Join(s.folder, "callers.log"), command)
}

// runCaller is the caller's process.
func runCaller(text string) (code int) {
	var order callerOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		panic(err)
	}
	run := order.hold
	if len(order.Names) > 1 {
		run = order.roam
	}
	if order.Group != "" {
		run = order.attend
	}
	if err := run(context.Background()); err != nil {
		fmt.Println("ended", told(err))
	}
	return 0
}

// hold takes one lock with bare stubs and says `granted TOKEN`, then every 100 ms `valid UNTIL`, as the machine's clock
// will show, and at last `ended` and what it was told.
func (o callerOrder) hold(ctx context.Context) error {
	connection, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	locks := lockv1.NewLockServiceClient(connection)
	stream, err := locks.Acquire(ctx, &lockv1.AcquireRequest{Name: o.Names[0], Owner: o.Owner})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if granted := event.GetGranted(); granted != nil {
			fmt.Println("granted", granted.GetFencingToken())
			return o.check(ctx, locks, granted.GetHoldId())
		}
	}
}

func (o callerOrder) check(ctx context.Context, locks lockv1.LockServiceClient, id string) error {
	for ; ; <-after(100 * time.Millisecond) {
		asked := now()
		answer, err := locks.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{id}})
		if err != nil {
			return err
		}
		hold := answer.GetHolds()[0]
		if hold.GetReason() != "" {
			fmt.Println("ended", hold.GetReason())
			return nil
		}
		fmt.Println("valid", int64(asked.add(hold.GetValidFor().AsDuration())))
	}
}

// roam takes locks at random with the Go client, for a short time each, until the sidecar is gone.
func (o callerOrder) roam(ctx context.Context) error {
	client, err := sidekeeperclient.Dial(o.Address)
	if err != nil {
		return err
	}
	defer client.Close()
	random := rand.New(rand.NewPCG(o.Seed, 0))
	for {
		name := o.Names[random.IntN(len(o.Names))]
		pause := time.Duration(random.IntN(20)) * time.Millisecond
		if random.IntN(4) == 0 {
			err = impatient(ctx, client, name, pause, o.Owner)
		} else {
			err = client.WithLock(ctx, name, sidekeeperclient.LockOptions{Owner: o.Owner},
				func(context.Context, *sidekeeperclient.Lock) error {
					<-after(pause)
					return nil
				})
		}
		if err != nil {
			return err
		}
	}
}

// impatient gives up after a while, having the lock or not.
func impatient(ctx context.Context, client *sidekeeperclient.Client, name string, patience time.Duration, owner string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := client.Acquire(ctx, name, sidekeeperclient.LockOptions{Owner: owner})
	if err == nil {
		return lock.Release(context.WithoutCancel(ctx))
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
