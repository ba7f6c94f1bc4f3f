package zookeeper

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

func TestAnEnsembleThatDemandsAuthenticationIsToldFromOneThatDoesNotAnswer(t *testing.T) {
	e := startEnsemble(t, ensemble.Options{Servers: 1, JVM: []string{
		"-Dzookeeper.enforce.auth.enabled=true", "-Dzookeeper.enforce.auth.schemes=digest",
	}})
	without := newClient(t, e)
	orders := recipes.Lock{Path: "/sidekeeper/orders"}
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
		_, read := without.Get(t.Context(), "/sidekeeper")
		_, wrote := without.Commit(t.Context(), recipes.Create("/sidekeeper/key", nil))
		session, held := without.Open(t.Context(), 0)
		if held == nil {
			_, held = orders.Join(t.Context(), session, recipes.Exclusive, recipes.About{})
			session.Close(t.Context())
		}
		for doing, err := range map[string]error{"read": read, "write": wrote, "join": held} {
			if !errors.Is(err, recipes.ErrAuthDemanded) {
				t.Errorf("%s: %v", doing, err)
			}
		}
	}
	with := newClient(t, e, func(c *Config) { c.Auth = func() [][]byte { return [][]byte{[]byte("app:secret")} } })
	place, err := orders.Join(t.Context(), openSession(t, with), recipes.Exclusive, recipes.About{})
	if err != nil {
		t.Fatal(err)
	}
	place.Leave(t.Context())
}

// The root is made with an access control list that lets no one, not even the sidecar, make anything in it.
func TestAnEnsembleThatDeniesTheDirectoriesIsToldFromOneThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	e := embedded.New(embedded.Options{Tick: tick})
	defer e.Close()
	server, err := embedded.Serve(e, embedded.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const denies = "the ensemble's access control denies the sidecar its directories"
	core, logged := observer.New(zap.WarnLevel)
	told := make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	log := zap.New(core, zap.Hooks(func(line zapcore.Entry) error {
		if line.Message == denies {
			tell()
		}
		return nil
	}))
	c, err := New(Config{
		Servers: []string{server.Address()}, SessionTimeout: 10 * tick, TickTime: tick, SyncLimit: 5, Heartbeat: tick,
		Directories: []string{"/sidekeeper", "/sidekeeper/locks"}, ACL: "world:anyone:r", Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	await(t, "a line that the ensemble denies", patience, told)
	_, read := c.Get(t.Context(), "/sidekeeper")
	_, wrote := c.Commit(t.Context(), recipes.Create("/sidekeeper/key", nil))
	for doing, err := range map[string]error{"read": read, "write": wrote} {
		if !errors.Is(err, recipes.ErrDenied) {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if reached, _ := c.Reachable(); reached {
		t.Error("the sidecar is ready")
	}
	if lines := logged.FilterMessage(denies).Len(); lines != 1 {
		t.Errorf("the log says so %d times", lines)
	}
}
