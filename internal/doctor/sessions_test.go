package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/full"
)

func TestSessionsAreToldWithTheirNodesAndOwners(t *testing.T) {
	p := newPatient(t)
	owner := p.session()
	for path, data := range map[string]string{"/sidekeeper/locks/a": `{"owner":"app"}`, "/elsewhere": `{"owner":"other"}`} {
		if _, err := p.memory.Create(path, []byte(data), embedded.Ephemeral, owner); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.client.Get(t.Context(), "/sidekeeper"); err != nil {
		t.Fatal(err)
	}
	all, unheard, err := doctor.Sessions(t.Context(), p.client, p.Settings)
	if err != nil || len(unheard) > 0 {
		t.Fatal(unheard, err)
	}
	want := doctor.Session{ // it has no connection
		ID: fmt.Sprintf("0x%x", uint64(owner)), Nodes: []string{"/elsewhere", "/sidekeeper/locks/a"}, Owners: []string{"app"},
	}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Error(diff)
	}
	connected := slices.IndexFunc(all, func(s doctor.Session) bool { return s.Server == p.Servers[0] })
	if connected < 0 || all[connected].TimeoutMillis != 4000 || !strings.HasPrefix(all[connected].Client, "127.0.0.1:") {
		t.Errorf("nobody is connected, or not as it is: %+v", all)
	}
}

func TestSessionsAndWatchesOfARealEnsembleAreTold(t *testing.T) {
	full.Needs(t, "an ensemble")
	e, err := ensemble.Start(t.Context(), ensemble.Options{Servers: 3, MaxSessionTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	settings := settingsFor(e.ClientAddresses()...)
	settings.TickTime, settings.SessionTimeout = 2*time.Second, 15*time.Second
	client := connect(t, settings)
	session, err := client.Open(t.Context(), settings.SessionTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	lock := recipes.Lock{Path: "/sidekeeper/locks/a"}
	if _, err := lock.Join(t.Context(), session, recipes.Exclusive, recipes.About{Owner: "app"}); err != nil {
		t.Fatal(err)
	}
	if err := client.CatchUp(t.Context()); err != nil { // or the watch fires at once, where the server is behind
		t.Fatal(err)
	}
	if _, _, err := client.Watch(t.Context(), lock.Path); err != nil {
		t.Fatal(err)
	}
	all, unheard, err := doctor.Sessions(t.Context(), client, settings)
	if err != nil || len(unheard) > 0 {
		t.Fatal(unheard, err)
	}
	holder := all[0]
	if len(holder.Nodes) != 1 || !strings.HasPrefix(holder.Nodes[0], lock.Path+"/") || !slices.Equal(holder.Owners, []string{"app"}) ||
		!slices.Contains(settings.Servers, holder.Server) || !strings.HasPrefix(holder.Client, "127.0.0.1:") || holder.TimeoutMillis != 15000 {
		t.Errorf("the holder: %+v", holder)
	}
	watched, unheard, err := doctor.WatchesOf(t.Context(), client, settings)
	if err != nil || len(unheard) > 0 {
		t.Fatal(unheard, err)
	}
	at := slices.IndexFunc(watched, func(w doctor.Watches) bool { return w.Path == lock.Path })
	if at < 0 || len(watched[at].Sessions) != 1 || watched[at].Sessions[0].Client == "" {
		t.Errorf("watches: %+v", watched)
	}
}

func TestServersThatDoNotAnswerAreNamed(t *testing.T) {
	p := newPatient(t)
	p.Servers = append(p.Servers, "127.0.0.1:1")
	_, unheard, err := doctor.Sessions(t.Context(), p.client, p.Settings)
	if err != nil || len(unheard) != 1 || !strings.HasPrefix(unheard[0], "127.0.0.1:1 does not answer: ") {
		t.Errorf("%q, %v", unheard, err)
	}
	p.Servers = p.Servers[1:]
	_, _, err = doctor.Sessions(t.Context(), p.client, p.Settings)
	if err == nil || !strings.Contains(err.Error(), "no server tells of its sessions") {
		t.Error(err)
	}
	if _, _, err = doctor.WatchesOf(t.Context(), p.client, p.Settings); err == nil {
		t.Error("watches of nobody")
	}
}
