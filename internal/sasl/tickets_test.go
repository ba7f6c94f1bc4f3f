package sasl

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"
)

// withTicket is an identity that has got a ticket a while ago, and can get no other.
func withTicket(age, life time.Duration) *kerberos {
	got := time.Now().Add(-age)
	return &kerberos{
		Kerberos: Kerberos{Config: "/no/such/file", Service: "zookeeper"}, changed: make(chan struct{}, 1),
		tickets: map[string]*kept{"zk1": {
			service: types.NewPrincipalName(nametype.KRB_NT_SRV_HST, "zookeeper/zk1"), ticket: ticket{ends: got.Add(life)}, got: got,
		}},
	}
}

func TestATicketThatAServerRefusesIsReplacedUnlessItIsNew(t *testing.T) {
	t.Parallel()
	for age, good := range map[time.Duration]bool{freshFor / 2: true, freshFor * 2: false} {
		k := withTicket(age, time.Hour)
		k.Refused("zk1")
		if err := k.Ready(t.Context(), "zk1"); (err == nil) != good {
			t.Errorf("%v old: %v", age, err)
		}
	}
}

// A ticket is good until it ends, and the next one is asked for before. One that has ended is asked for no more than once a second.
func TestWhenTicketsAreAskedFor(t *testing.T) {
	t.Parallel()
	const life = time.Hour
	for name, c := range map[string]struct {
		age     time.Duration
		fetches bool
		good    bool
	}{
		"young": {life / 2, false, true}, "old": {life * 9 / 10, true, true}, "over": {life + time.Second, true, false},
	} {
		k := withTicket(c.age, life)
		if err := k.Ready(t.Context(), "zk1"); (err == nil) != c.good || !c.good && !strings.Contains(err.Error(), "/no/such/file") {
			t.Errorf("%s: %v", name, err)
		}
		k.mu.Lock()
		if tried := !k.tickets["zk1"].tried.IsZero(); tried != c.fetches {
			t.Errorf("%s: asked for: %t", name, tried)
		}
		k.mu.Unlock()
	}
	k := withTicket(life*2, life)
	first := k.Ready(t.Context(), "zk1")
	k.mu.Lock()
	tried := k.tickets["zk1"].tried
	k.mu.Unlock()
	again := k.Ready(t.Context(), "zk1")
	k.mu.Lock()
	defer k.mu.Unlock()
	if first == nil || again == nil || !k.tickets["zk1"].tried.Equal(tried) {
		t.Errorf("asked twice within a second: %v, %v", first, again)
	}
}

func TestATicketThatCannotBeRenewedIsTold(t *testing.T) {
	t.Parallel()
	k := withTicket(time.Hour*9/10, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 1)
	go k.Keep(ctx, func(host string, err error) {
		if host == "zk1" {
			select {
			case told <- err:
			default:
			}
		}
	})
	defer cancel()
	if err := <-told; !strings.Contains(err.Error(), "no new ticket for ") || !strings.Contains(err.Error(), "the old one runs out at ") {
		t.Error(err)
	}
}
