package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestTopWritesOnceWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t, "--admin-listen=127.0.0.1:0")
	admin := said(t, welcome, `page: +http://(127\.0\.0\.1:\d+)/`)
	out, problem, code := output(t, "top", "--admin", admin)
	if code != 0 || !strings.Contains(out, "ensemble answers") || !strings.Contains(out, "no open leases") {
		t.Errorf("exit %d, %s\n%s", code, problem, out)
	}
	out, problem, code = output(t, "top", "--admin", "http://"+admin+"/", "-o", "json")
	if code != 0 || !strings.HasPrefix(out, `{"version":`) {
		t.Errorf("exit %d, %s\n%s", code, problem, out)
	}
	s.signal(syscall.SIGINT)
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
	_, problem, code = output(t, "top", "--admin", admin)
	if code != exit.Unreachable || !strings.Contains(problem, "start it with --admin-listen") {
		t.Errorf("exit %d without a sidecar: %s", code, problem)
	}
}

func TestTopSaysWhatIsWrongWithAnAddress(t *testing.T) {
	t.Parallel()
	_, problem, code := output(t, "top", "--admin", "nonsense")
	if code != exit.Usage || !strings.Contains(problem, `--admin "nonsense": an address is host:port or unix:///path`) {
		t.Errorf("exit %d: %s", code, problem)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("\x1b[2J no HTTP\n"))
			conn.Close()
		}
	}()
	defer other.Close()
	_, problem, code = output(t, "top", "--admin", other.Addr().String())
	if code != exit.Unreachable || strings.Contains(problem, "\x1b") {
		t.Errorf("exit %d: %q", code, problem)
	}
}
