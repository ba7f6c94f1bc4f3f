package zookeeper

import (
	"errors"
	"testing"
	"time"

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
