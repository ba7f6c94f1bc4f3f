package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/kdc"
)

// What docs/kerberos.md tells: three servers that demand SASL, a ticket from kinit, a lock from a terminal. A sidecar beside it that has no
// ticket is refused, says why, and serves as soon as it has one.
func TestALockFromATerminalByATicketOfKinit(t *testing.T) {
	center := kdc.Start(t)
	servers, own := center.Add("zookeeper/127.0.0.1"), center.Add("sidekeeper")
	closeShared() // there is never more than one ensemble
	e, err := ensemble.Start(t.Context(), ensemble.Options{
		TickTime: quickTick, MaxSessionTimeout: 30 * time.Second,
		JVM: center.ServerLogin("zookeeper/127.0.0.1@"+kdc.Realm, servers),
		Config: []string{
			"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "sessionRequireClientSASLAuth=true",
		},
	})
	must(t, err)
	t.Cleanup(e.Close)
	flags := []string{"--zookeeper-sasl=gssapi", "--zookeeper-sasl-kerberos-config=" + center.Config}

	t.Setenv("KRB5CCNAME", "FILE:"+center.Login("sidekeeper", own, time.Hour))
	here := startSidecar(t, kerberosSetup(e, flags))
	held := typeAcquire(t, here.grpcurlAddress(t))
	held.granted(t)
	for _, server := range e.Servers() { // on a new connection it says anew who it is
		server.ClientLink().Reset()
	}
	said := here.doctor(t, e, flags)
	gives := "demands authentication, SASL by GSSAPI; the sidecar gives GSSAPI as sidekeeper@" + kdc.Realm
	if strings.Count(said, gives) != 3 || !strings.Contains(said, "knows the sidecar as ") || !strings.Contains(said, "sasl:sidekeeper@") {
		t.Errorf("the doctor says %s", said)
	}

	cache := filepath.Join(t.TempDir(), "cache")
	t.Setenv("KRB5CCNAME", cache)
	neighbour := launchSidecar(t, kerberosSetup(e, flags))
	refused := typeAcquire(t, neighbour.grpcurlAddress(t))
	if code := refused.awaitExit(t, patient); code == 0 {
		t.Error("a sidecar without a ticket grants a lock")
	}
	if said := refused.errors(t); !strings.Contains(said, "Code: PermissionDenied") || !strings.Contains(said, "ENSEMBLE_DEMANDS_AUTH: ") {
		t.Errorf("the terminal shows %s", said)
	}
	if said := neighbour.doctor(t, e, flags); !strings.Contains(said, "there is no ticket, which kinit gets: open "+cache) {
		t.Errorf("the doctor says %s", said)
	}
	strict := start(t, filepath.Join(t.TempDir(), "strict"), (&sidecar{folder: t.TempDir()}).serving(t, strictly(kerberosSetup(e, flags))))
	if code := strict.awaitExit(t, patient); code == 0 || !strings.Contains(terminal{strict}.errors(t), "there is no ticket, which kinit gets") {
		t.Errorf("a strict sidecar without a ticket ends with %d: %s", code, terminal{strict}.errors(t))
	}
	log, err := os.ReadFile(filepath.Join(neighbour.folder, "log"))
	must(t, err)
	if !strings.Contains(string(log), `"msg":"not authenticated with the ensemble"`) {
		t.Errorf("the log says %s", log)
	}
	must(t, os.Rename(center.Login("sidekeeper", own, time.Hour), cache))
	neighbour.awaitReady(t)
	waiting := typeAcquire(t, neighbour.grpcurlAddress(t))
	waiting.shows(t, `"queued": {`)
	held.kill()
	waiting.granted(t)
}

func kerberosSetup(e *ensemble.Ensemble, flags []string) setup {
	return setup{
		servers: e.ClientAddresses(), tick: quickTick, timeout: 4 * time.Second,
		flags: append([]string{"--heartbeat=250ms", "--listen=127.0.0.1:0", "--reflection"}, flags...),
	}
}

func strictly(with setup) setup {
	with.flags = append(with.flags, "--strict")
	return with
}

func (s *sidecar) grpcurlAddress(t *testing.T) string {
	t.Helper()
	address, _ := s.awaitLine(t, "listening on 127", patient)
	return "127" + address
}

// errors is what the program has said on standard error.
func (s terminal) errors(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(s.command.Stderr.(*os.File).Name())
	must(t, err)
	return string(text)
}

// doctor is what the command says of the ensemble, with the environment of now.
func (s *sidecar) doctor(t *testing.T, e *ensemble.Ensemble, flags []string) string {
	t.Helper()
	program, err := sidekeeper()
	must(t, err)
	said, err := exec.Command(program, append([]string{
		"doctor", "--zookeeper=" + strings.Join(e.ClientAddresses(), ","), "--tick-time=" + quickTick.String(), "--session-timeout=4s",
		"--heartbeat=250ms",
	}, flags...)...).CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return string(said)
}
