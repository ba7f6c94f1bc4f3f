package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A served is a `sidekeeper serve` in a process of its own.
type served struct {
	t       *testing.T
	command *exec.Cmd
	address string
	log     *bytes.Buffer
	ended   chan error
}

func serve(t *testing.T, args ...string) *served {
	t.Helper()
	return serveWith(t, func(*exec.Cmd) {}, args...)
}

// serveWith is serve with a process that is set up further.
func serveWith(t *testing.T, set func(*exec.Cmd), args ...string) *served {
	t.Helper()
	s := &served{t: t, log: &bytes.Buffer{}, ended: make(chan error, 1)}
	s.command = exec.Command(os.Args[0], append([]string{"serve", "--listen=127.0.0.1:0", "--operator-listen="}, args...)...)
	s.command.Env = append(os.Environ(), role+"=sidekeeper")
	s.command.Stderr = s.log
	set(s.command)
	out, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.command.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.command.Wait()
		t.Fatalf("%v; log: %s", err, s.log)
	}
	s.address = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	go func() { s.ended <- s.command.Wait() }()
	return s
}

// ends waits for the process and returns its exit code.
func (s *served) ends() int {
	s.t.Helper()
	err := receive(s.t, s.ended)
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return failed.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return 0
}

func (s *served) signal(signal os.Signal) {
	s.t.Helper()
	if err := s.command.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

func memoryEnsemble(t testing.TB) (*embedded.Ensemble, string) {
	t.Helper()
	memory := embedded.New(embedded.Options{})
	server, err := embedded.Serve(memory, embedded.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	t.Cleanup(server.Close)
	return memory, server.Address()
}

func TestSIGTERMFreesTheLocksAndEndsWithZero(t *testing.T) {
	t.Parallel()
	memory, address := memoryEnsemble(t)
	s := serve(t, "--zookeeper="+address, "--drain-timeout=200ms")
	client, err := sidekeeper.Dial(s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	held := make(chan struct{})
	lost := make(chan error, 1)
	go func() {
		lost <- client.WithLock(ctx, "orders", sidekeeper.LockOptions{}, func(ctx context.Context, _ *sidekeeper.Lock) error {
			close(held)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	receive(t, held)
	if names := memory.Names("/sidekeeper/locks/orders"); len(names) != 1 {
		t.Fatalf("contenders: %v", names)
	}
	s.signal(syscall.SIGTERM)
	if err := receive(t, lost); err == nil || !strings.Contains(err.Error(), "SIDECAR_STOPPING") {
		t.Errorf("the holder was told %v", err)
	}
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
	if names := memory.Names("/sidekeeper/locks/orders"); len(names) != 0 {
		t.Errorf("contenders afterwards: %v", names)
	}
	for line := range strings.Lines(s.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON in the log: %s", line)
		}
	}
}

func TestASecondSignalEndsTheSidecarAtOnce(t *testing.T) {
	t.Parallel()
	_, address := memoryEnsemble(t)
	s := serve(t, "--zookeeper="+address, "--drain-timeout=1h")
	client, err := sidekeeper.Dial(s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- client.WithLock(ctx, "orders", sidekeeper.LockOptions{}, func(ctx context.Context, _ *sidekeeper.Lock) error {
			close(held)
			<-ctx.Done() // however politely it is asked to let go
			return nil
		})
	}()
	receive(t, held)
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGINT)
	if code := s.ends(); code != 130 {
		t.Errorf("exit %d", code)
	}
	receive(t, ended)
}

func TestWhatCannotBeServedEndsWithTheUsageCodeAndSaysWhy(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--zookeeper=127.0.0.1:1 --listen=0.0.0.0:0":                  "--listen 0.0.0.0:0: without --tls-cert",
		"--zookeeper=127.0.0.1:1 --proof=static":                      "session timeout too short to be proved",
		"--zookeeper=127.0.0.1:1 --operator-listen=127.0.0.1:0":       "--operator-listen 127.0.0.1:0: operators are served on a Unix socket only",
		"--zookeeper=127.0.0.1:1 --zookeeper-auth-file=/no/such/file": "--zookeeper-auth-file: open /no/such/file",
		"--listen=127.0.0.1:0":                                        "--zookeeper []: the ensemble's servers, as host:port,…, are required",
		"--zookeeper=127.0.0.1:1 --no-such-flag":                      "unknown flag: --no-such-flag",
		"--zookeeper=127.0.0.1:1 --acl=nonsense":                      "ACL",
		"--zookeeper=127.0.0.1:1 --audit-log=audit":                   "--audit-log audit: stderr, off, or the absolute path",
		"--zookeeper=127.0.0.1:1 --audit-log=/no/such/audit":          "--audit-log: open /no/such/audit",
		"--zookeeper=127.0.0.1:1 --policy=/no/such/policy":            "--policy: open /no/such/policy",
		"--zookeeper=127.0.0.1:1 --listen=unix:///s?identity=a/b":     `--listen unix:///s?identity=a/b: identity is "a/b"`,
		"--zookeeper=127.0.0.1:1 --admin-listen=0.0.0.0:0":            "--admin-listen 0.0.0.0:0: this listener is for a loopback host:port",
	} {
		line := append([]string{"serve", "--listen=127.0.0.1:0", "--operator-listen="}, strings.Fields(args)...)
		var out, failed bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), patience) // in case it is served
		code := run(ctx, line, strings.NewReader(""), &out, &failed)
		cancel()
		if code != exit.Usage {
			t.Errorf("%s: exit %d", args, code)
		}
		if !strings.Contains(failed.String(), want) {
			t.Errorf("%s: %s; want %q", args, failed.String(), want)
		}
	}
}

func TestTheHelpOfServeShowsSettingsAndNotTheFlagsOfOtherCommands(t *testing.T) {
	t.Parallel()
	var out, failed bytes.Buffer
	if code := run(context.Background(), []string{"serve", "--help"}, strings.NewReader(""), &out, &failed); code != 0 {
		t.Fatalf("exit %d: %s", code, failed.String())
	}
	help := out.String() + failed.String()
	for want, shown := range map[string]bool{"--zookeeper-auth-file": true, "SIDEKEEPER_": true, "--operator-address": false, "--output": false} {
		if strings.Contains(help, want) != shown {
			t.Errorf("%s shown: %v\n%s", want, !shown, help)
		}
	}
}
