package zookeeper

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/sasl"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/kdc"
)

// demanding are servers that answer nothing to a client that has not authenticated by SASL.
func demanding(servers int, jvm ...string) ensemble.Options {
	return ensemble.Options{
		Servers: servers, JVM: jvm, Config: []string{
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

func knowing(password string) func() string { return func() string { return password } }

func TestDigestMD5ProvesBothSides(t *testing.T) {
	e := startEnsemble(t, demanding(1, digestServers(t, "sidekeeper", "sécret")...))
	client := newClient(t, e, as(sasl.NewDigest("sidekeeper", knowing("sécret"))))
	workUnderSASL(t, e, client, "sidekeeper")
	for about, who := range map[string]sasl.Identity{
		"wrong password": sasl.NewDigest("sidekeeper", knowing("another")), "unknown": sasl.NewDigest("stranger", knowing("sécret")),
	} {
		stranger := newClient(t, e, as(who))
		if _, err := stranger.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnauthenticated) || !errors.Is(err, errSASLRefused) {
			t.Errorf("%s: %v", about, err)
		}
	}
}

func TestKerberosProvesBothSides(t *testing.T) {
	center := kdc.Start(t)
	servers := center.Add("zookeeper/127.0.0.1")
	own := center.Add("sidekeeper")
	e := startEnsemble(t, demanding(1, center.ServerLogin("zookeeper/127.0.0.1@"+kdc.Realm, servers)...))
	who, err := sasl.NewKerberos(sasl.Kerberos{Principal: "sidekeeper", Keytab: own, Config: center.Config, Service: "zookeeper"})
	if err != nil {
		t.Fatal(err)
	}
	workUnderSASL(t, e, newClient(t, e, as(who)), "sidekeeper@"+kdc.Realm)
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
	e.Server(1).ClientLink().Reset()
	if err := s.flush(t.Context()); err != nil {
		t.Fatalf("after a cut: %v", err)
	}
	s.Dequeue(t.Context(), path)
	if _, err := client.Get(t.Context(), path); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("after Dequeue: %v", err)
	}
}
