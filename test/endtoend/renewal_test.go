package endtoend

import (
	"fmt"
	"strings"
	"testing"
)

// What docs/security.md says of renewing the certificates between sidecars and the ensemble: on real servers, while callers of every
// kind go on. Once something is new, all connections are cut, so that nothing goes on but by handshakes with it.
func TestEveryCertificateTowardsTheEnsembleIsRenewedUnderLoad(t *testing.T) {
	r := newRenewal(t)
	before, after := r.before, r.after

	// The sidecars' authority: the servers trust both, once they have been started anew.
	r.put("trust.pem", before.clients.certificate+after.clients.certificate)
	r.expectEach(t, "a new certificate before the restart", after.client, false)
	r.restartInTurn(t)
	r.expectEach(t, "a new certificate after the restart", after.client, true)
	r.expectEach(t, "an old certificate after the restart", before.client, true)

	// The sidecars' certificate: half of it is of no use, and known as such.
	r.put("key", after.client.key)
	r.expectLog(t, "files not reloaded", 1)
	r.crowd.calm(t)
	r.put("crt", after.client.certificate)
	r.expectLog(t, "files reloaded", 1)
	r.cut(t, "the new certificate of the sidecars")

	// The old authority is withdrawn, at once. Who is still served shows the new certificate.
	r.put("trust.pem", after.clients.certificate)
	r.expectEach(t, "an old certificate whose authority has been withdrawn", before.client, false)
	r.cut(t, "servers that trust the new authority alone")

	// The servers' authority: a broken file, then both.
	r.put("ca", "no certificate\n")
	r.expectLog(t, "files not reloaded", 2)
	r.crowd.calm(t)
	r.put("ca", before.servers.certificate+after.servers.certificate)
	r.expectLog(t, "files reloaded", 2)

	// The servers' certificate: each connection meets the file as it is.
	r.expectShown(t, before.server)
	r.put("server.pem", after.server.key+after.server.certificate)
	r.expectShown(t, after.server)
	r.cut(t, "the new certificate of the servers")

	// The old authority is withdrawn. Who shows what it has signed is not spoken to, for as long as that takes.
	r.put("ca", after.servers.certificate)
	r.expectLog(t, "files reloaded", 3)
	r.put("server.pem", before.server.key+before.server.certificate)
	r.expectSuspended(t)
	r.put("server.pem", after.server.key+after.server.certificate)
	r.cut(t, "sidecars that trust the new authority alone")
	r.crowd.finish(t)
}

// Why docs/security.md asks for another name: ZooKeeper keeps the authorities of a PEM file by their subjects.
func TestOfTwoAuthoritiesWithOneNameServersTrustTheLast(t *testing.T) {
	r := &renewal{t: t, folder: t.TempDir(), before: newGeneration(t, "alike"), after: newGeneration(t, "alike")}
	r.startServers(t, 1)
	r.expectEach(t, "the only authority", r.before.client, true)
	r.put("trust.pem", r.before.clients.certificate+r.after.clients.certificate)
	must(t, r.ensemble.Server(1).Restart())
	must(t, r.ensemble.AwaitAll(t.Context()))
	r.expectEach(t, "the first of two", r.before.client, false)
	r.expectEach(t, "the last of two", r.after.client, true)
}

// restartInTurn starts each server anew, the leader last, the next one when every lease has been proved since.
func (r *renewal) restartInTurn(t *testing.T) {
	t.Helper()
	leader, err := r.ensemble.AwaitQuorum(t.Context())
	must(t, err)
	for i, server := range append(r.ensemble.Followers(t.Context()), leader) {
		server.Stop()
		must(t, server.Restart())
		awaitCaughtUp(t, r.ensemble)
		r.prove(t, now())
		r.crowd.calm(t)
		r.crowd.tell(t, fmt.Sprint("servers that trust both authorities: ", i+1))
	}
}

// cut resets all connections to the ensemble, and returns when each holder's lease has been proved on a new one.
func (r *renewal) cut(t *testing.T, what string) {
	t.Helper()
	began := now()
	r.reset()
	r.prove(t, began)
	r.crowd.calm(t)
	r.crowd.tell(t, what)
}

// prove returns when the lease of each holder has been proved by what was sent after a moment.
func (r *renewal) prove(t *testing.T, began moment) {
	t.Helper()
	for _, holder := range r.crowd.holders {
		proveAgain(t, holder, began)
	}
}

func (r *renewal) reset() {
	for _, server := range r.ensemble.Servers() {
		server.ClientLink().Reset()
	}
}

// expectSuspended cuts all connections and returns when each sidecar has noticed that it gets no other.
func (r *renewal) expectSuspended(t *testing.T) {
	t.Helper()
	r.reset()
	for i, s := range r.crowd.sidecars {
		for began := now(); s.gauge(t, "sidekeeper_leases_suspended") == 0; await(t, "a moment", patient, after(pause)) {
			if now().since(began) > patient {
				t.Fatalf("sidecar %d speaks to servers whose authority has been withdrawn", i+1)
			}
		}
	}
}

// expectEach fails the test unless every server serves, or does not serve, who shows a certificate.
func (r *renewal) expectEach(t *testing.T, what string, shown pair509, served bool) {
	t.Helper()
	for _, server := range r.ensemble.Servers() {
		if _, answer, err := r.ask(server.Address(), shown); (answer == "imok") != served {
			t.Errorf("%s: server %d answers %q, %v", what, server.ID(), answer, err)
		}
	}
}

// expectShown fails the test unless every server shows this certificate to whoever connects now.
func (r *renewal) expectShown(t *testing.T, want pair509) {
	t.Helper()
	for _, server := range r.ensemble.Servers() {
		if serial, _, err := r.ask(server.Address(), r.after.client); serial != want.serial {
			t.Errorf("server %d shows certificate %s instead of %s, %v", server.ID(), serial, want.serial, err)
		}
	}
}

// expectLog waits until each sidecar has logged something about the files so often, with the flag by which it knows them.
func (r *renewal) expectLog(t *testing.T, message string, times int) {
	t.Helper()
	const flags = "--zookeeper-tls-ca, --zookeeper-tls-cert, --zookeeper-tls-key"
	for _, s := range r.crowd.sidecars {
		must(t, retry(t, func() error {
			count := 0
			for _, line := range s.logged(t) {
				if strings.Contains(line, `"`+message) && strings.Contains(line, `"flag":"`+flags+`"`) {
					count++
				}
			}
			if count != times {
				return fmt.Errorf("%q was logged %d times instead of %d", message, count, times)
			}
			return nil
		}))
	}
}
