package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

// parsed reads a command line and an environment as serve does.
func parsed(environment map[string]string, args ...string) (*settings, error) {
	s := &settings{}
	flags := s.flags()
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	lookup := func(name string) (string, bool) { value, ok := environment[name]; return value, ok }
	if err := fillFrom(lookup, flags); err != nil {
		return s, err
	}
	err := s.check()
	return s, err
}

func TestEverySettingHasAVariableThatTheCommandLineOverrides(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"SIDEKEEPER_ZOOKEEPER": "a:1,b:2", "SIDEKEEPER_LISTEN": "127.0.0.1:0", "SIDEKEEPER_SOCKET_MODE": "0666",
		"SIDEKEEPER_EPHEMERAL_BYTES": "1MiB", "SIDEKEEPER_ROOT": "/env", "SIDEKEEPER_REFLECTION": "true",
	}
	s, err := parsed(environment, "--root", "/line", "--listen", "unix:///a", "--listen", "unix:///b")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join([]string{
		strings.Join(s.ensemble.Servers, " "), strings.Join(s.server.Listen, " "), s.socketMode.String(), s.ephemeralBytes.String(),
		s.root, s.place(s.lockRoot, "locks"),
	}, ", ")
	if want := "a:1 b:2, unix:///a unix:///b, 0666, 1MiB, /line, /line/locks"; got != want || !s.server.Reflection {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNoTwoSettingsShareAVariableWithTheCommandsForPeople(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{operatorAddressVariable: true, "SIDEKEEPER_ADDRESS": true}
	new(settings).flags().VisitAll(func(flag *pflag.Flag) {
		if taken[variable(flag.Name)] {
			t.Errorf("--%s: %s means something else", flag.Name, variable(flag.Name))
		}
		if flag.Usage == "" || strings.HasSuffix(flag.Usage, ".") {
			t.Errorf("--%s: its help is not one phrase", flag.Name)
		}
		taken[variable(flag.Name)] = true
	})
}

func TestVariablesThatAreNoSettingsAreTold(t *testing.T) {
	t.Parallel()
	stray := strayVariables([]string{
		"SIDEKEEPER_ZOOKEEPRE=a:2181", "SIDEKEEPER_ZOOKEEPER=a:2181", "SIDEKEEPER_ADDRESS=unix:///a", "SIDEKEEPER_OPERATOR_ADDRESS=unix:///a",
		"SIDEKEEPER_ADMIN_ADDRESS=unix:///a", "SIDEKEEPER_PORT=tcp://10.0.0.1:7181", "SIDEKEEPER_PORT_7181_TCP_ADDR=10.0.0.1",
		"SIDEKEEPER_SERVICE_HOST=10.0.0.1", "SIDEKEEPER_SERVICE_PORT_GRPC=7181", "SIDEKEEPER_ACLS=", "SIDEKEEPERS=2", "HOME=/root",
	})
	if got, want := strings.Join(stray, " "), "SIDEKEEPER_ACLS SIDEKEEPER_ZOOKEEPRE"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestASettingThatBreaksItsRuleIsNamedWithValueAndRule(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                              "--zookeeper []: the ensemble's servers, as host:port,…, are required",
		"--zookeeper=host":              "--zookeeper host: a server is host:port",
		"--zookeeper=a:1,b:2181/app":    "--zookeeper b:2181/app: a server is host:port, with a port of 1 to 65535 and no path, for which",
		"--zookeeper=host:66000":        "--zookeeper host:66000: a server is host:port",
		"--root=relative":               "--root relative: an absolute path",
		"--root=/zookeeper/x":           "--root /zookeeper/x: an absolute path",
		"--lock-root=/a//b":             "--lock-root /a//b: an absolute path",
		"--tick-time=0s":                "--tick-time 0s: more than 0",
		"--clock-tolerance=59s":         "--clock-tolerance 59s: from 1m to 24h",
		"--clock-tolerance=25h":         "--clock-tolerance 25h0m0s: from 1m to 24h",
		"--session-timeout=3s":          "--session-timeout 3s: an ensemble grants no less than two ticks",
		"--max-streams=0":               "--max-streams 0: between 1",
		"--keepalive-time=10ms":         "--keepalive-time 10ms: at least 1s",
		"--proof=faith":                 "must be one of quorum|static",
		"--socket-mode=999":             "permissions in octal",
		"--ephemeral-bytes=2GB":         "a number of bytes up to",
		"--max-memory=1025GiB":          "a number of bytes up to",
		"--drain-timeout=-1s":           "--drain-timeout -1s: at least 0",
		"--zookeeper-tls-cert=/x":       "--zookeeper-tls-cert /x: goes together with --zookeeper-tls-key",
		"--log-level=loud":              "must be one of info|debug|warn|error",
		"--lock-layout=round":           "must be one of flat|nested",
		"--zookeeper-tls-server-name=x": "--zookeeper-tls-server-name x: needs --zookeeper-tls-ca",
	} {
		environment := map[string]string{"SIDEKEEPER_ZOOKEEPER": "localhost:2181"}
		line := []string{args}
		if args == "" {
			environment, line = nil, nil
		}
		_, err := parsed(environment, line...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", args, err, want)
		}
	}
}

func TestABadVariableIsNamed(t *testing.T) {
	t.Parallel()
	_, err := parsed(map[string]string{"SIDEKEEPER_TICK_TIME": "soon"}, "--zookeeper=a:1")
	if err == nil || err.Error() != `SIDEKEEPER_TICK_TIME is "soon": a duration, such as 5s or 1m30s` {
		t.Errorf("got %v", err)
	}
}

func TestCredentialsAreOneOnEachLine(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/auth"
	for content, good := range map[string]bool{
		"user:password\n": true, "user:a:b": true, "user": false, ":x": false, "a:b\nc:d": true, "a:b\n\nc:d\n": true,
		"a:b\nc\n": false, "": false, "\n": false,
		strings.Repeat("a:b\n", 11): false,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &settings{authFile: file}
		auth, err := s.credentials(zap.NewNop())
		if (err == nil) != good || good && string(bytes.Join(auth(), []byte(" "))) != strings.Join(strings.Fields(content), " ") {
			t.Errorf("%q: %v", content, err)
		}
	}
}
