package sasl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

var errKDC = errors.New("the KDC refuses")

// A center is a KDC that gives tickets of this life, or fails.
type center struct {
	life  time.Duration
	err   error
	asked atomic.Int64
}

func (c *center) fetch(types.PrincipalName, string) (ticket, error) {
	c.asked.Add(1)
	return ticket{ends: time.Now().Add(c.life)}, c.err
}

// withTickets is an identity that has just got tickets for hosts.
func withTickets(t *testing.T, c *center, hosts ...string) *kerberos {
	t.Helper()
	k := &kerberos{
		Kerberos: Kerberos{Service: "zookeeper"}, fetch: c.fetch, changed: make(chan struct{}, 1), tickets: make(map[string]*kept),
	}
	err := c.err
	c.err = nil
	for _, host := range hosts {
		if err := k.Ready(t.Context(), host); err != nil {
			t.Fatal(err)
		}
	}
	c.asked.Store(0)
	c.err = err
	return k
}

func needed(string) bool   { return true }
func unneeded(string) bool { return false }

// keep has an identity renew its tickets until the bubble ends.
func (k *kerberos) keep(t *testing.T, needed func(string) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go k.Keep(ctx, needed, func(string, error) {})
}

// A ticket that a server refuses is used until the next one has come, which is asked for at once, unless the ticket is new.
func TestATicketThatAServerRefusesIsReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age     time.Duration
		err     error
		fetches int64
	}{
		"new": {freshFor / 2, nil, 0}, "old": {freshFor * 2, nil, 1}, "old, and the KDC refuses": {freshFor * 2, errKDC, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				kdc := &center{life: time.Hour, err: c.err}
				k := withTickets(t, kdc, "zk1")
				ends := k.tickets["zk1"].ticket.ends
				<-time.After(c.age)
				k.Refused("zk1")
				if err := k.Ready(t.Context(), "zk1"); err != nil {
					t.Error(err)
				}
				if _, err := k.Begin("zk1"); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if replaced := !k.tickets["zk1"].ticket.ends.Equal(ends); kdc.asked.Load() != c.fetches || replaced != (c.fetches > 0 && c.err == nil) {
					t.Errorf("asked %d times, replaced: %t", kdc.asked.Load(), replaced)
				}
				if err := k.Ready(t.Context(), "zk1"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A ticket is good until it ends, and the next one is asked for before.
func TestWhenTicketsAreAskedFor(t *testing.T) {
	t.Parallel()
	const life = time.Hour
	for name, c := range map[string]struct {
		age     time.Duration
		fetches int64
		good    bool
	}{
		"young": {life * 69 / 100, 0, true}, "old": {life * 81 / 100, 1, true}, "over": {life + time.Second, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				kdc := &center{life: life, err: errKDC}
				k := withTickets(t, kdc, "zk1")
				<-time.After(c.age)
				for range 2 { // the second time a KDC has just refused
					if err := k.Ready(t.Context(), "zk1"); (err == nil) != c.good || !c.good && !errors.Is(err, errKDC) {
						t.Error(err)
					}
					synctest.Wait()
				}
				if asked := kdc.asked.Load(); asked != c.fetches {
					t.Errorf("asked %d times", asked)
				}
			})
		})
	}
}

// How often a KDC is asked within the hour behind the end of a ticket.
func TestAKDCIsLeftAloneLongerAndLonger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err         error
		least, most int64
	}{
		"it refuses":        {errKDC, 60, 150},
		"it refuses logins": {failedLogin{errKDC, time.Now().Add(100 * 365 * 24 * time.Hour)}, 1, 1},
		"it does not answer": {
			fmt.Errorf("%w: no route", ErrUnreached), 3600 / 5, 3600 / 2,
		},
		"it is not asked": {unasked{errKDC}, 3600, 7300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				const life = time.Minute
				kdc := &center{life: life, err: c.err}
				k := withTickets(t, kdc, "zk1")
				k.keep(t, needed)
				<-time.After(time.Hour + life)
				if asked := kdc.asked.Load(); asked < c.least || asked > c.most {
					t.Errorf("asked %d times, where %d to %d are right", asked, c.least, c.most)
				}
			})
		})
	}
	t.Run("a server refuses all tickets", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			kdc := &center{life: 100 * time.Hour}
			k := withTickets(t, kdc, "zk1")
			k.keep(t, needed)
			for range 3600 {
				<-time.After(time.Second)
				k.Refused("zk1")
			}
			if asked := kdc.asked.Load(); asked < 60 || asked > 150 {
				t.Errorf("asked %d times", asked)
			}
		})
	})
}

func TestTicketsForHostsThatHaveLeftAreForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needed func(string) bool
		kept   int
	}{
		"listed": {needed, 1}, "not listed": {unneeded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				k := withTickets(t, &center{life: time.Hour}, "zk1")
				k.keep(t, c.needed)
				<-time.After(forgottenIn - time.Minute)
				synctest.Wait()
				k.mu.Lock()
				early := len(k.tickets)
				k.mu.Unlock()
				<-time.After(2 * time.Hour)
				synctest.Wait()
				k.mu.Lock()
				defer k.mu.Unlock()
				if early != 1 || len(k.tickets) != c.kept {
					t.Errorf("%d tickets, then %d", early, len(k.tickets))
				}
			})
		})
	}
}

func TestTicketsThatCameAtOnceAreNotRenewedAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		k := withTickets(t, &center{life: time.Hour}, "zk1", "zk2", "zk3")
		times := map[time.Time]bool{}
		for _, held := range k.tickets {
			times[held.renew] = true
			if at := held.renew.Sub(held.got); at < 42*time.Minute || at > 48*time.Minute {
				t.Errorf("renewed after %v of an hour", at)
			}
		}
		if len(times) != 3 {
			t.Errorf("renewed at %v", times)
		}
	})
}

// The tickets for all servers share a login, and that it has failed.
func TestLoginsAreShared(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var shared grants
		logins := 0
		login := func(err error) func() (grant, error) {
			return func() (grant, error) {
				logins++
				return grant{got: time.Now(), ends: time.Now().Add(10 * time.Hour)}, err
			}
		}
		for range 5 {
			if _, err := shared.get(login(errKDC)); !errors.Is(err, errKDC) {
				t.Error(err)
			}
		}
		if logins != 1 {
			t.Errorf("%d logins that failed", logins)
		}
		<-time.After(retriedIn)
		for range 5 {
			if _, err := shared.get(login(nil)); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Hour)
		_, _ = shared.get(login(nil))
		if logins != 3 {
			t.Errorf("%d logins, where one failed, one was shared, and one grant is too old", logins)
		}
	})
}

func TestATicketThatCannotBeRenewedIsTold(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		k := withTickets(t, &center{life: time.Hour, err: errKDC}, "zk1")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := make(chan error, 1)
		go k.Keep(ctx, needed, func(host string, err error) {
			if host == "zk1" {
				select {
				case told <- err:
				default:
				}
			}
		})
		if err := <-told; !strings.Contains(err.Error(), "no new ticket for ") || !strings.Contains(err.Error(), "the old one runs out at ") {
			t.Error(err)
		}
	})
}
