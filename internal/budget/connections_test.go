package budget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// budgetOf makes a budget of so many connections, with the limits that hold by default.
func budgetOf(connections int, log *zap.Logger, change ...func(*Options)) *Budget {
	options := Options{
		Limits: caller.NewLimits(policy.Limits{policy.Connections: connections - connections/4}), Connections: connections, Log: log,
		Reached: func(policy.Limit) {}, Refused: func(*status.Status, string) {},
		Told: func(_ context.Context, err error) *status.Status {
			answer, _ := service.StatusOf(err)
			return answer
		},
	}
	for _, change := range change {
		change(&options)
	}
	return New(options)
}

// enter is Admit.
func (b *Budget) enter(silent io.Closer) (*Slot, error) {
	slot, err := b.Admit(silent)
	of, _ := slot.(*Slot)
	return of, err
}

func TestAQuarterOfTheConnectionsIsKeptFreeOfAnyOneCaller(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	d := budgetOf(8, zap.New(core))
	var slots []*Slot
	come := func(identity string) string {
		v, err := d.enter(nil)
		if err != nil {
			return "shut"
		}
		slots = append(slots, v)
		if err := v.Identify(identity); err != nil {
			v.Leave()
			return "refused"
		}
		return "in"
	}
	for i, want := range strings.Fields("in in in in in in refused refused in refused") {
		identity := "uid:1"
		if i >= 8 {
			identity = "uid:2"
		}
		same(t, fmt.Sprint(i), come(identity), want)
	}
	same(t, "warnings", logged.Len(), 2) // each once
	same(t, "another", come("uid:3"), "in")
	same(t, "one too many", come("uid:4"), "shut")
	for range 2 {
		slots[0].Leave()
	}
	same(t, "after one has left", come("uid:4"), "in")
	same(t, "and another", come("uid:5"), "shut")
	for _, v := range slots {
		v.Leave()
	}
	same(t, "in the end", fmt.Sprint(d.open, d.accounts["uid:1"].open), "0 0")
}

func TestWhoConnectsAgainAndAgainHasToWait(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		d := budgetOf(0, zap.New(core))
		come := func(identity string) (waited time.Duration, err error) {
			began := time.Now()
			v, err := d.enter(nil)
			if err == nil {
				err = v.Identify(identity)
				v.Leave()
			}
			return time.Since(began), err
		}
		for i := range arrivalsBurst {
			waited, err := come("uid:1")
			same(t, fmt.Sprint(i), fmt.Sprint(waited, err), "0s <nil>")
		}
		waited, err := come("uid:1")
		same(t, "one more", fmt.Sprint(waited, err), "5ms <nil>")
		var crowd sync.WaitGroup
		var refused atomic.Int32
		for range 300 {
			crowd.Go(func() {
				if _, err := come("uid:1"); err != nil {
					refused.Add(1)
				}
			})
		}
		crowd.Wait()
		same(t, "refused of 300 at once", refused.Load(), 100)
		for range 1000 {
			crowd.Go(func() { _, _ = come("uid:1") })
			crowd.Go(func() { _, _ = come("uid:2") }) // is let in, so that the next refusal is news
			synctest.Wait()
		}
		crowd.Wait()
		same(t, "warnings", logged.Len(), 10)
		waited, err = come("uid:4")
		same(t, "another caller", fmt.Sprint(waited, err), "0s <nil>")
		time.Sleep(time.Minute)
		waited, err = come("uid:3")
		same(t, "later", fmt.Sprint(waited, err), "0s <nil>")
		same(t, "callers that are remembered", len(d.accounts), 1)
	})
}

func TestConnectionsWaitOutsideWhenManyAreRefused(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		d := budgetOf(1, zap.NewNop())
		inside, err := d.enter(nil)
		same(t, "the first", errors.Join(err, inside.Identify("uid:1")), nil)
		defer inside.Leave()
		began := time.Now()
		listener := d.Slowed(endlessListener{})
		for range refusalsBurst + 100 {
			_, err := listener.Accept()
			same(t, "accept", err, nil)
			_, err = d.enter(nil)
			same(t, "enter", err, errTooManyConnections)
		}
		same(t, "for a hundred too many", time.Since(began).Round(10*time.Millisecond), 100*time.Millisecond)
	})
}

// An endlessListener always has one more connection.
type endlessListener struct{ net.Listener }

func (endlessListener) Accept() (net.Conn, error) { return nil, nil }

func TestAConnectionWhoseCallsAreTakenBackIsReadMoreSlowly(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPace(withdrawals, withdrawalsBurst)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range withdrawalsBurst {
			p.withdrawn(over)
			p.keep()
		}
		ended, end := context.WithCancelCause(t.Context())
		end(errors.New("the sidecar has ended it"))
		for range 10 * withdrawalsBurst {
			p.withdrawn(t.Context())
			p.withdrawn(ended)
			p.keep()
		}
		same(t, "time in which a connection may take back what it likes", time.Since(began), 0*time.Second)
		for range withdrawals {
			p.withdrawn(over)
			p.keep()
		}
		same(t, "time for more", time.Since(began).Round(time.Millisecond), time.Second)
		for range 10 * withdrawals {
			p.withdrawn(over)
		}
		began = time.Now()
		p.keep()
		same(t, "longest wait", time.Since(began), longestBreak)
		(*pace)(nil).withdrawn(over)
		(*pace)(nil).keep()
	})
}

func TestConnectionsThatDoNotSayWhoseTheyAreTakeNoPlaces(t *testing.T) {
	t.Parallel()
	d := budgetOf(8, zap.NewNop())
	var slots []*Slot
	conns := make([]closing, 5)
	for i := range conns {
		slot, err := d.enter(&conns[i])
		must(t, err)
		slots = append(slots, slot)
	}
	same(t, "closed", fmt.Sprint(conns), "[true false false false false]") // the oldest makes room for the newest
	same(t, "the oldest, which speaks too late", slots[0].Identify("dns:late.test"), errTooManyConnections)
	for i := range 6 {
		slot, err := d.enter(nil)
		same(t, fmt.Sprint(i), errors.Join(err, slot.Identify("uid:1")), nil)
	}
	must(t, slots[1].Identify("dns:a.test"))
	same(t, "open and silent", fmt.Sprint(d.open, d.silent.Len()), "7 3")
	_, err := d.enter(new(closing))
	must(t, err)
	for _, slot := range slots {
		slot.Leave()
		slot.Leave()
	}
	same(t, "in the end", fmt.Sprint(d.open, d.silent.Len()), "6 1")
	same(t, "one that has left", slots[1].Identify("dns:a.test"), errTooManyConnections)
	same(t, "then", fmt.Sprint(d.open, d.silent.Len()), "6 1")
}

// closing is a connection that notes whether it was closed.
type closing bool

func (c *closing) Close() error {
	*c = true
	return nil
}

func TestPlacesAreKeptForRootAndTheSidecarsUser(t *testing.T) {
	t.Parallel()
	d := budgetOf(100, zap.NewNop())
	come := func(identity string) error {
		slot, err := d.enter(nil)
		if err != nil {
			return err
		}
		return slot.Identify(identity)
	}
	for i := range 98 {
		must(t, come(fmt.Sprint("dns:", i)))
	}
	same(t, "a caller", come("dns:x"), errTooManyConnections)
	same(t, "root", come("uid:0"), nil)
	same(t, "the sidecar's user", come("uid:"+uid()), nil)
	same(t, "one too many", come("uid:0"), errTooManyConnections)
}

// Callers that take what they can leave something to those who come later.
func TestAFewCallersDoNotTakeAllConnections(t *testing.T) {
	t.Parallel()
	d := budgetOf(1000, zap.NewNop())
	took := func(identity string) (took int) {
		for range 1000 {
			slot, err := d.enter(nil)
			must(t, err)
			if slot.Identify(identity) != nil {
				slot.Leave()
				return took
			}
			took++
		}
		return took
	}
	var all []int
	for i := range 7 {
		all = append(all, took(fmt.Sprint("dns:", i)))
	}
	same(t, "taken", fmt.Sprint(all), "[750 27 24 22 19 17 15]")
}

// exhausted is a listener of a process without a file descriptor.
type exhausted struct{ net.Listener }

func (exhausted) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

func TestALackOfDescriptorsIsToldOnceAMinute(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.ErrorLevel)
		listener := budgetOf(8, zap.New(core)).Slowed(exhausted{})
		for range 3 * 60 {
			if _, err := listener.Accept(); err == nil {
				t.Fatal("accepted")
			}
			<-time.After(time.Second)
		}
		same(t, "lines", logged.FilterMessageSnippet("no file descriptor left").Len(), 3)
	})
}
