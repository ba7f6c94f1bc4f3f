package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestAStrictSidecarRefusesARiskyEnsembleAndSaysWhy(t *testing.T) {
	t.Parallel()
	_, address := memoryEnsemble(t)
	folder := t.TempDir()
	replaceFile(t, folder+"/auth", "sidekeeper:secret\n")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"without credentials", []string{"--zookeeper=" + address}, exitWarnings, "--zookeeper-auth-file: the sidecar has no credentials"},
		{
			"with a password in clear",
			[]string{"--zookeeper=" + address, "--zookeeper-auth-file=" + folder + "/auth"},
			exitWarnings,
			"warning: --zookeeper-auth-file: the password is sent in clear",
		},
		{
			"with a tick that is too short",
			[]string{"--zookeeper=" + address, "--tick-time=500ms", "--session-timeout=10s"},
			exitProblems,
			"problem: --tick-time: tickTime is",
		},
		{"with one server gone", []string{"--zookeeper=" + address + ",127.0.0.1:1"}, exitProblems, "problem: 127.0.0.1:1: does not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, failed bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // in case it is served
			defer cancel()
			line := append([]string{"serve", "--strict", "--listen=127.0.0.1:0", "--operator-listen=", "--log-level=error"}, c.args...)
			if code := run(ctx, line, strings.NewReader(""), &out, &failed); code != c.code || !strings.Contains(failed.String(), c.says) {
				t.Errorf("exits with %d and says %s; want %d and %s", code, failed.String(), c.code, c.says)
			}
			if strings.Contains(out.String(), "listening") {
				t.Error("it has listened")
			}
		})
	}
}

func TestAStrictSidecarServesAGoodEnsembleAndALenientOneSaysWhatIsRisky(t *testing.T) {
	t.Parallel()
	_, address := memoryEnsemble(t)
	folder := t.TempDir()
	replaceFile(t, folder+"/auth", "sidekeeper:secret\n")
	authority := newTestAuthority(t, folder)
	authority.issue("server")
	authority.issue("client")
	front := newTLSFront(t, address, authority, "server")
	good := []string{
		"--zookeeper=" + front.listener.Addr().String(), "--zookeeper-tls-ca=" + folder + "/ca.crt",
		"--zookeeper-tls-cert=" + folder + "/client.crt", "--zookeeper-tls-key=" + folder + "/client.key",
		"--zookeeper-auth-file=" + folder + "/auth",
	}
	strict := serve(t, append(good, "--strict", "--drain-timeout=100ms")...)
	if found, failed, code := output(t, append([]string{"doctor"}, good...)...); code != exitWarnings || strings.Count(found, "warning: ") != 1 {
		t.Errorf("beside who may change quotas, the doctor exits with %d and says %s%s", code, found, failed)
	}
	strict.signal(os.Interrupt)
	if code := strict.ends(); code != 0 || strings.Contains(strict.log.String(), "preflight") {
		t.Errorf("exit %d; log: %s", code, strict.log)
	}
	_, other := memoryEnsemble(t)
	lenient := serve(t, "--zookeeper="+other, "--drain-timeout=100ms", "--metrics-listen=unix://"+folder+"/metrics")
	awaitReady(t, folder+"/metrics")
	lenient.signal(syscall.SIGTERM)
	risk := `"msg":"preflight","severity":"warning","about":"--zookeeper-auth-file"`
	if code := lenient.ends(); code != 0 || !strings.Contains(lenient.log.String(), risk) {
		t.Errorf("exit %d; log: %s", code, lenient.log)
	}
}

// awaitReady returns when the sidecar has reached its ensemble.
func awaitReady(t *testing.T, metrics string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !strings.Contains(scrapeUnix(t, metrics), `sidekeeper_zookeeper_request_seconds_count{operation="getAcl"}`) {
		if ctx.Err() != nil {
			t.Fatal("the ensemble has not been looked at")
		}
	}
}
