package zookeeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/sasl"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// shortestTimeout is what a session gets that asks for less, as one does that is about to be closed.
const shortestTimeout = 3 * time.Second

// demanding are servers that answer nothing to a client that has not authenticated by SASL.
func demanding(servers int, jvm ...string) ensemble.Options {
	return ensemble.Options{
		Servers: servers, JVM: jvm, MaxClientConnections: -1, MinSessionTimeout: shortestTimeout, Config: []string{
			"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "sessionRequireClientSASLAuth=true",
		},
	}
}

// digestServers are flags of servers that know a user by DIGEST-MD5.
func digestServers(t *testing.T, user, password string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jaas")
	text := "Server {\n\torg.apache.zookeeper.server.auth.DigestLoginModule required\n\tuser_" + user + "=\"" + password + "\";\n};\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-Djava.security.auth.login.config=" + file, "-Dzookeeper.fips-mode=false"}
}

func as(who sasl.Identity) func(*Config) { return func(c *Config) { c.SASL = who } }

// user is who knows a password.
func user(name, password string) sasl.Identity {
	return sasl.NewDigest(name, func() string { return password })
}

func TestDigestMD5ProvesBothSides(t *testing.T) {
	e := startEnsemble(t, demanding(1, digestServers(t, "sidekeeper", "sécret")...))
	client := newClient(t, e, as(user("sidekeeper", "sécret")))
	workUnderSASL(t, e, client, "sidekeeper")
	var refusals sync.WaitGroup
	for _, who := range []sasl.Identity{user("sidekeeper", "another"), user("stranger", "sécret")} {
		stranger := newClient(t, e, as(who))
		refusals.Go(func() {
			if _, err := stranger.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnauthenticated) || !errors.Is(err, errSASLRefused) {
				t.Errorf("%v with a wrong password: %v", who, err)
			}
		})
	}
	refusals.Wait()
	if _, err := newClient(t, e).Get(t.Context(), "/sidekeeper"); !errors.Is(err, recipes.ErrAuthDemanded) {
		t.Errorf("without SASL: %v", err)
	}
	want := Demand{Authentication: true, Mechanism: sasl.DigestMD5, Given: sasl.DigestMD5, As: "DIGEST-MD5 as sidekeeper"}
	if got, err := client.Demand(t.Context(), e.Server(1).Address()); got != want || err != nil {
		t.Errorf("it demands %+v, %v", got, err)
	}
	t.Run("a password of the scheme digest beside it", func(t *testing.T) { bothSchemes(t, e) })
	t.Run("a stranger with a session's password", func(t *testing.T) { keepStrangersOut(t, e, client) })
	t.Run("a session that was lost is closed", func(t *testing.T) { closeLostUnderSASL(t, e, client) })
	t.Run("another process comes back to a session", func(t *testing.T) { reattachUnderSASL(t, e, client) })
	t.Run("a silent server", func(t *testing.T) { stayPatient(t, e, client) })
	t.Run("an outage within an exchange", func(t *testing.T) { endWithinSASL(t, e) })
}

// workUnderSASL holds a place across a cut, and has it be the identity's alone.
func workUnderSASL(t *testing.T, e *ensemble.Ensemble, client *Client, identity string) {
	t.Helper()
	s := openSession(t, client)
	path := enqueue(t, s, "/sidekeeper/locks")
	seen, err := client.Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen.Permissions) != 1 || seen.Permissions[0].Scheme != "sasl" || seen.Permissions[0].ID != identity {
		t.Errorf("who may use the node: %v", seen.Permissions)
	}
	for _, server := range e.Servers() {
		server.ClientLink().Reset()
	}
	if err := s.flush(t.Context()); err != nil {
		t.Fatalf("after a cut: %v", err)
	}
	s.Dequeue(t.Context(), path)
	if _, err := client.Get(t.Context(), path); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("after Dequeue: %v", err)
	}
}

// bothSchemes has a node belong to who the sidecar is by either scheme.
func bothSchemes(t *testing.T, e *ensemble.Ensemble) {
	client := newClient(t, e, as(user("sidekeeper", "sécret")), func(c *Config) { c.Auth = always("app:secret") })
	seen, err := client.Inspect(t.Context(), enqueue(t, openSession(t, client), "/sidekeeper/both"))
	schemes := map[string]bool{}
	for _, each := range seen.Permissions {
		schemes[each.Scheme] = true
	}
	if err != nil || !schemes["sasl"] || !schemes["digest"] {
		t.Errorf("%v, %v", seen.Permissions, err)
	}
}

// keepStrangersOut has a client that has not authenticated take a session over, whose password it has computed. It cannot close it by a request.
func keepStrangersOut(t *testing.T, e *ensemble.Ensemble, client *Client) {
	s := openSession(t, client)
	path := enqueue(t, s, "/sidekeeper/coveted")
	takeOver(t, e.Server(1).Address(), s.ID(), true)
	if err := s.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if node, err := client.Get(t.Context(), path); err != nil || !s.Owns(node) {
		t.Error(err)
	}
}

// closeLostUnderSASL has the node of a session that ends without a word to the ensemble vanish long before that would expire it.
func closeLostUnderSASL(t *testing.T, e *ensemble.Ensemble, client *Client) {
	s := openSession(t, newClient(t, e, as(user("sidekeeper", "sécret"))))
	path := enqueue(t, s, "/sidekeeper/lost")
	s.lose(errClosed)
	s.Close(t.Context())
	lost := now()
	if took := awaitGone(t, client, path).since(lost); took > shortestTimeout/2 {
		t.Errorf("gone after %v, where the shortest timeout is %v", took, shortestTimeout)
	}
}

func reattachUnderSASL(t *testing.T, e *ensemble.Ensemble, client *Client) {
	s := openSession(t, client)
	path := enqueue(t, s, "/sidekeeper/returned")
	s.lose(errUnreturned) // as the end of its process does
	other := newClient(t, e, as(user("sidekeeper", "sécret")))
	back, standing, err := other.Reattach(t.Context(), s.Key())
	if err != nil || len(standing) != 1 || standing[0].Path != path {
		t.Fatalf("%v, %v", standing, err)
	}
	back.Close(t.Context())
}

// stayPatient has a server leave the packets of SASL unanswered: for once, and for good.
func stayPatient(t *testing.T, e *ensemble.Ensemble, client *Client) {
	for ctx := within(t, 20*time.Second); ; { // so that its reader, too, has said who it is
		if _, err := client.Get(ctx, "/"); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	once := e.Server(1).ClientLink().HoldReply(link.Is(link.SASL), 1)
	openSession(t, client).Close(t.Context())
	await(t, "an exchange without an answer", time.Second, once.Sprung())
	once.Release()
	always := e.Server(1).ClientLink().HoldReply(link.Is(link.SASL), -1)
	defer always.Release()
	_, err := client.Open(t.Context(), 0)
	if !errors.Is(err, recipes.ErrUnreachable) || !strings.Contains(err.Error(), "the server does not answer in time") {
		t.Errorf("a silent server: %v", err)
	}
	if _, err := client.Demand(within(t, 300*time.Millisecond), e.Server(1).Address()); err == nil {
		t.Error("a silent server has told what it demands")
	}
}

// endWithinSASL cuts connections while SASL is under way. That says nothing of who the sidecar is. Neither does an outage behind a refusal.
func endWithinSASL(t *testing.T, e *ensemble.Ensemble) {
	password := atomic.Pointer[string]{}
	password.Store(new("sécret"))
	client := newClient(t, e, as(sasl.NewDigest("sidekeeper", func() string { return *password.Load() })))
	server := e.Server(1).ClientLink()
	cuts := server.CutRequest(link.Is(link.SASL), -1)
	if _, err := client.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnreachable) || errors.Is(err, recipes.ErrUnauthenticated) {
		t.Errorf("with SASL cut: %v", err)
	}
	cuts.Release()
	password.Store(new("another"))
	if _, err := client.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnauthenticated) {
		t.Errorf("refused: %v", err)
	}
	server.Refuse()
	defer server.Heal()
	if _, err := client.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnreachable) {
		t.Errorf("without servers: %v", err)
	}
	if _, err := client.Get(t.Context(), "/"); !errors.Is(err, recipes.ErrUnreachable) {
		t.Errorf("without servers: %v", err)
	}
}

// A server may let clients in whose token it refuses: it answers that with no token, not with an error.
func TestARefusalThatAServerHidesIsOneToSASL(t *testing.T) {
	options := demanding(1, append(digestServers(t, "sidekeeper", "secret"), "-Dzookeeper.allowSaslFailedClients=true")...)
	options.Config = options.Config[:1]
	e := startEnsemble(t, options)
	_, err := newClient(t, e, as(user("sidekeeper", "another"))).Open(t.Context(), 0)
	if !errors.Is(err, recipes.ErrUnauthenticated) || !errors.Is(err, sasl.ErrNothing) {
		t.Errorf("with another password: %v", err)
	}
	openSession(t, newClient(t, e, as(user("sidekeeper", "secret")))).Close(t.Context())
}

// A refused identity notes that a server has refused it.
type refusedIdentity struct {
	sasl.Identity

	times int
}

func (r *refusedIdentity) Refused(string) { r.times++ }

func TestARefusalOfSASLReachesTheIdentity(t *testing.T) {
	t.Parallel()
	answer := func(code int32, token ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(replyHead+len(token)))
		b = binary.BigEndian.AppendUint32(b, saslXid)
		b = binary.BigEndian.AppendUint64(b, 1)
		return append(binary.BigEndian.AppendUint32(b, uint32(code)), token...)
	}
	none := []byte{255, 255, 255, 255}
	for name, c := range map[string]struct {
		answer []byte
		times  int
	}{
		"code": {answer(codeAuthFailed), 1}, "no token": {answer(0, none...), 1}, "another code": {answer(codeThrottled), 0}, "none": {nil, 0},
	} {
		who := &refusedIdentity{Identity: user("sidekeeper", "secret")}
		if err := exchangeSASL(bytes.NewReader(c.answer), io.Discard, who, "zk1:2181"); err == nil || who.times != c.times {
			t.Errorf("%s: %v, told %d times", name, err, who.times)
		}
	}
}

// The list of servers names them past the links, where the client does not know them yet.
func TestServersThatDemandSASLAreFollowed(t *testing.T) {
	options := demanding(3, digestServers(t, "sidekeeper", "secret")...)
	options.Reconfigurable = true
	e := startEnsemble(t, options)
	client := newClient(t, e, as(user("sidekeeper", "secret")), func(c *Config) { c.FollowServers = true })
	given := client.config.Servers
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for overdue := within(t, 20*time.Second); ; {
		first, _, _ := client.servers.current()
		if len(first) == 3 && !slices.ContainsFunc(first, func(each string) bool { return slices.Contains(given, each) }) {
			break
		}
		select {
		case <-ticker.C:
		case <-overdue.Done():
			t.Fatalf("%v are used still", first)
		}
	}
	openSession(t, client).Close(t.Context())
}

func TestAServerThatTakesPartInNoSASLIsNotTrusted(t *testing.T) {
	e := oneServer.ensemble(t)
	client := newClient(t, e, as(user("sidekeeper", "secret")))
	if _, err := client.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnauthenticated) || !strings.Contains(err.Error(), "without a token") {
		t.Errorf("%v", err)
	}
	if got, err := client.Demand(t.Context(), e.Server(1).Address()); got.Authentication || got.Mechanism != "" || err != nil {
		t.Errorf("it demands %+v, %v", got, err)
	}
}
