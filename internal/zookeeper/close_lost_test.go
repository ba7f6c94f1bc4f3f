package zookeeper

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestWhatALostSessionOwnedGoesWhenContactIsBack(t *testing.T) {
	const timeout = 6 * time.Second
	e := oneServer.ensemble(t)
	holder := newClient(t, e, func(c *Config) { c.SessionTimeout = timeout })
	refusedView := newClient(t, e, func(c *Config) { c.Servers = []string{e.Server(1).RealAddress()} })
	s := openSession(t, holder)
	path := enqueue(t, s, "/sidekeeper/lost")
	e.Server(1).ClientLink().Stall() // what is under way arrives when it heals
	await(t, "the loss", 2*timeout, s.Done())
	if !errors.Is(s.Err(), errUnproved) {
		t.Fatal(s.Err())
	}
	s.Close(t.Context())
	e.Server(1).ClientLink().Heal()
	healed := now()
	gone := awaitGone(t, refusedView, path)
	if took := gone.since(healed); took > timeout/3 {
		t.Errorf("gone %v after contact was back, with a timeout of %v", took, timeout)
	}
}

func TestOnlyWhoDoesNotAnswerAClosingIsTakenForSilent(t *testing.T) {
	for name, c := range map[string]struct {
		dial   func(context.Context, string, string) (net.Conn, error)
		silent bool
	}{
		"refused": {func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }, false},
		"black hole": {func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				list := newServerList([]string{"one", "other"}, zap.NewNop())
				client := &Client{config: Config{Dial: c.dial}, lateClosings: make(gate, 1), silentServers: newSilentServers(list)}
				if _, err := (&remains{client: client}).closeAt(t.Context(), "one", closingLate); err == nil {
					t.Error("it is closed")
				}
				if silent := client.silentServers.avoids("one"); silent != c.silent {
					t.Errorf("avoided: %t", silent)
				}
			})
		})
	}
}
