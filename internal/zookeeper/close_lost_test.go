package zookeeper

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

func TestWhatALostSessionOwnedGoesWhenContactIsBack(t *testing.T) {
	const timeout = 6 * time.Second
	e := startEnsemble(t, ensemble.Options{Servers: 1})
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
