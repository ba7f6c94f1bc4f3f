package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/sasl"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/kdc"
)

const zooKeeperHere = "zookeeper/127.0.0.1"

// How long the sidecar's tickets last, unless kinit gets them: longer than a test runs, or not.
const (
	longLife  = time.Hour
	shortLife = 3 * time.Second
)

// A kerberized ensemble is one server that demands Kerberos, with its KDC.
type kerberized struct {
	*ensemble.Ensemble

	center *kdc.KDC
	keytab string // of the server
	own    string // of the sidecar
}

func startKerberized(t *testing.T, life time.Duration) *kerberized {
	t.Helper()
	k := &kerberized{center: kdc.Start(t, fmt.Sprintf("ticket_lifetime = %ds", int(life.Seconds())), "udp_preference_limit = 1")}
	k.keytab, k.own = k.center.Add(zooKeeperHere), k.center.Add("sidekeeper")
	k.Ensemble = startEnsemble(t, demanding(1, k.center.ServerLogin(zooKeeperHere+"@"+kdc.Realm, k.keytab)...))
	return k
}

func (k *kerberized) principal(t *testing.T, adjust ...func(*sasl.Kerberos)) sasl.Identity {
	t.Helper()
	options := sasl.Kerberos{Principal: "sidekeeper", Keytab: k.own, Config: k.center.Config, Service: "zookeeper"}
	for _, each := range adjust {
		each(&options)
	}
	who, err := sasl.NewKerberos(options)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

func TestKerberosProvesBothSides(t *testing.T) {
	k := startKerberized(t, longLife)
	client := newClient(t, k.Ensemble, as(k.principal(t)))
	workUnderSASL(t, k.Ensemble, client, "sidekeeper@"+kdc.Realm)
	want := Demand{Authentication: true, Mechanism: sasl.GSSAPI, Given: sasl.GSSAPI, As: "GSSAPI as sidekeeper@" + kdc.Realm}
	if got, err := client.Demand(t.Context(), k.Server(1).Address()); got != want || err != nil {
		t.Errorf("it demands %+v, %v", got, err)
	}
	known, err := client.WhoAmI(t.Context())
	if !slices.Contains(known, "sasl:sidekeeper@"+kdc.Realm) || err != nil {
		t.Errorf("it knows %q, %v", known, err)
	}
	t.Run("a node may be another's, too", func(t *testing.T) { shareBySASL(t, k) })
	t.Run("what cannot be proved", func(t *testing.T) { refuseUnproved(t, k) })
	t.Run("the server's key is another one", func(t *testing.T) { changeServerKey(t, k) })
}

// shareBySASL has one principal read what another one owns, as the ACL says, and no more.
func shareBySASL(t *testing.T, k *kerberized) {
	other := k.center.Add("reader/host.example")
	owner := newClient(t, k.Ensemble, as(k.principal(t)), func(c *Config) {
		c.ACL = "sasl:sidekeeper@" + kdc.Realm + ":cdrwa,sasl:reader/host.example@" + kdc.Realm + ":r"
	})
	path := enqueue(t, openSession(t, owner), "/sidekeeper/shared")
	reader := newClient(t, k.Ensemble, func(c *Config) { c.Directories = nil }, as(k.principal(t, func(o *sasl.Kerberos) {
		o.Principal, o.Keytab = "reader/host.example@"+kdc.Realm, other
	})))
	if _, err := reader.Get(t.Context(), path); err != nil {
		t.Errorf("read: %v", err)
	}
	if _, err := reader.Commit(t.Context(), recipes.Set(path, nil, -1)); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("write: %v", err)
	}
	private := newClient(t, k.Ensemble, as(k.principal(t)))
	if _, err := reader.Get(t.Context(), enqueue(t, openSession(t, private), "/sidekeeper/private")); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("read what is not shared: %v", err)
	}
}

// refuseUnproved has the sidecar say what is wrong, and with whom.
func refuseUnproved(t *testing.T, k *kerberized) {
	k.center.Add("zookeeper/elsewhere")
	t.Setenv("KRB5CCNAME", "FILE:"+t.TempDir()+"/none")
	var refusals sync.WaitGroup
	for name, c := range map[string]struct {
		adjust func(*sasl.Kerberos)
		want   string
	}{
		"a server that the KDC does not know": {
			func(o *sasl.Kerberos) { o.Service = "unknown" }, "no ticket for unknown/127.0.0.1: ",
		},
		"a server that is another one": {
			func(o *sasl.Kerberos) { o.Service = "zookeeper/elsewhere" }, "the server refuses the client",
		},
		"a realm without a KDC": {
			func(o *sasl.Kerberos) { o.Service = "zookeeper/127.0.0.1@NOWHERE.TEST" }, "no ticket for zookeeper/127.0.0.1: ",
		},
		"no ticket": {func(o *sasl.Kerberos) { o.Principal, o.Keytab = "", "" }, "there is no ticket, which kinit gets"},
	} {
		client := newClient(t, k.Ensemble, as(k.principal(t, c.adjust)))
		refusals.Go(func() {
			if _, err := client.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnauthenticated) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, not %s", name, err, c.want)
			}
		})
	}
	refusals.Wait()
}

// changeServerKey gives the server a new key. A ticket for the old one would last for long, and is replaced.
func changeServerKey(t *testing.T, k *kerberized) {
	who := k.principal(t)
	client := newClient(t, k.Ensemble, as(who))
	openSession(t, client).Close(t.Context())
	old := ticketIn(t, who)
	renewed := k.center.Add(zooKeeperHere)
	newcomer := newClient(t, k.Ensemble, as(k.principal(t)))
	if _, err := newcomer.Open(t.Context(), 0); !errors.Is(err, errSASLRefused) {
		t.Errorf("a server that lacks its new key: %v", err)
	}
	openSession(t, client).Close(t.Context())
	if !bytes.Equal(ticketIn(t, who), old) {
		t.Error("the ticket is replaced before it is refused")
	}
	if err := os.Rename(renewed, k.keytab); err != nil { // it reads the file anew
		t.Fatal(err)
	}
	for ctx := within(t, 30*time.Second); ; { // the ticket is not blamed as long as it is new
		s, err := client.Open(ctx, 0)
		if err == nil {
			s.Close(t.Context())
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// A ticket is renewed before it runs out. While that fails, sessions go on; those that lose their connection come back once a KDC answers.
func TestATicketIsRenewedPastItsLife(t *testing.T) {
	k := startKerberized(t, shortLife)
	who := k.principal(t)
	client := newClient(t, k.Ensemble, as(who), func(c *Config) { c.SessionTimeout = 30 * time.Second })
	s := openSession(t, client)
	path := enqueue(t, s, "/sidekeeper/locks")
	for range 2 { // each is asked for after most of the life of the one before
		awaitOtherTicket(t, who)
	}
	k.center.Freeze()
	k.Server(1).ClientLink().Reset()
	if err := s.flush(t.Context()); err != nil {
		t.Fatalf("with a renewed ticket: %v", err)
	}
	err := awaitUnready(t, who, 100*time.Millisecond)
	k.Server(1).ClientLink().Reset()
	if err == nil || !strings.Contains(err.Error(), "no ticket for zookeeper/127.0.0.1: the KDC does not answer") {
		t.Errorf("without a KDC: %v", err)
	}
	if _, err := client.Open(t.Context(), shortestTimeout); !errors.Is(err, recipes.ErrUnreachable) || !errors.Is(err, sasl.ErrUnreached) {
		t.Errorf("a session without a KDC: %v", err) // which proves nothing against the sidecar
	}
	k.center.Continue()
	if err := s.flush(t.Context()); err != nil {
		t.Fatalf("with a KDC again: %v", err)
	}
	s.Dequeue(t.Context(), path)
}

// The files are read at each login.
func TestFilesOfKerberosMayBeReplaced(t *testing.T) {
	k := startKerberized(t, shortLife)
	again := func() error { return k.principal(t).Ready(within(t, 10*time.Second), "127.0.0.1") }
	renewed := k.center.Add("sidekeeper") // which changes the key
	if err := again(); err == nil || !strings.Contains(err.Error(), "login as sidekeeper@"+kdc.Realm) {
		t.Errorf("with the old key: %v", err)
	}
	if err := os.Rename(renewed, k.own); err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Errorf("with the new key: %v", err)
	}

	cached := k.principal(t, func(o *sasl.Kerberos) { o.Keytab = "" })
	t.Setenv("KRB5CCNAME", k.center.Login("sidekeeper", k.own, 2*time.Second))
	if err := cached.Ready(within(t, 10*time.Second), "127.0.0.1"); err != nil {
		t.Errorf("a ticket of kinit: %v", err)
	}
	if err := awaitUnready(t, cached, 10*time.Second); err == nil || !strings.Contains(err.Error(), "ran out at") {
		t.Errorf("a ticket of kinit that has run out: %v", err)
	}
	another := k.center.Add("another")
	t.Setenv("KRB5CCNAME", "FILE:"+k.center.Login("another", another, time.Hour))
	err := k.principal(t, func(o *sasl.Kerberos) { o.Keytab = "" }).Ready(within(t, 10*time.Second), "127.0.0.1")
	if err == nil || !strings.Contains(err.Error(), "is another@"+kdc.Realm+"'s, not sidekeeper@"+kdc.Realm+"'s") {
		t.Errorf("a ticket of another principal: %v", err)
	}
	for variable, want := range map[string]string{"KEYRING:session": "only FILE:/path is supported", k.own: k.own + " is no credential cache"} {
		t.Setenv("KRB5CCNAME", variable)
		err := k.principal(t, func(o *sasl.Kerberos) { o.Keytab = "" }).Ready(within(t, 10*time.Second), "127.0.0.1")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("KRB5CCNAME=%s: %v", variable, err)
		}
	}
}

// That a KDC refuses differs from that it is not there.
func TestTicketsForAllServersShareALogin(t *testing.T) {
	center := kdc.Start(t, "udp_preference_limit = 1")
	hosts := []string{"zk1", "zk2", "zk3"}
	for _, host := range hosts {
		center.Add("zookeeper/" + host)
	}
	who, err := sasl.NewKerberos(sasl.Kerberos{
		Principal: "sidekeeper", Keytab: center.Add("sidekeeper"), Config: center.Config, Service: "zookeeper",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if err := who.Ready(within(t, 10*time.Second), host); err != nil {
			t.Error(err)
		}
	}
	if logins := center.Logins(); logins != 1 {
		t.Errorf("%d logins for %d tickets", logins, len(hosts))
	}
	if err := who.Ready(within(t, 10*time.Second), "stranger"); err == nil || errors.Is(err, sasl.ErrUnreached) {
		t.Errorf("a server that the KDC does not know: %v", err)
	}
	center.Stop()
	if err := who.Ready(within(t, 10*time.Second), "zk4"); !errors.Is(err, sasl.ErrUnreached) {
		t.Errorf("without a KDC: %v", err)
	}
}

// awaitOtherTicket waits until the identity has another ticket than now.
func awaitOtherTicket(t *testing.T, who sasl.Identity) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	first := ticketIn(t, who)
	for range 100 {
		if !bytes.Equal(ticketIn(t, who), first) {
			t.Fatal("two requests with one ticket differ in the ticket")
		}
	}
	for overdue := within(t, 20*time.Second); bytes.Equal(ticketIn(t, who), first); {
		select {
		case <-ticker.C:
		case <-overdue.Done():
			t.Fatal("the ticket is not renewed")
		}
	}
}

// ticketIn is a part of the ticket that the identity has now, out of a request: behind all lengths that depend on the request, and before what
// differs between two requests with one ticket. It holds some of what the KDC has encrypted.
func ticketIn(t *testing.T, who sasl.Identity) []byte {
	t.Helper()
	exchange, err := who.Begin("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	request, _, err := exchange.Next(nil)
	if err != nil {
		t.Fatal(err)
	}
	return request[40:180]
}

// awaitUnready waits until the last ticket has run out, and returns why there is no other.
func awaitUnready(t *testing.T, who sasl.Identity, patience time.Duration) error {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for overdue := within(t, 20*time.Second); ; {
		if err := who.Ready(within(t, patience), "127.0.0.1"); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-overdue.Done():
			t.Fatal("the ticket does not run out")
		}
	}
}
