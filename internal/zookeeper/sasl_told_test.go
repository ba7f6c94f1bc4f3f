package zookeeper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sidekeeper/sidekeeper/internal/sasl"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// resetOf is what a connection from this port ends with.
func resetOf(port int) error {
	here, there := &net.TCPAddr{Port: port}, &net.TCPAddr{Port: 2181}
	return &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

func TestFailuresOfSASLAreToldByServerAndKind(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.WarnLevel)
		c := &Client{
			config:    Config{Log: zap.New(core), SASL: user("sidekeeper", "secret")},
			saslState: saslState{told: make(map[saslReport]time.Time)},
		}
		fail := func(server string, err error, told int) {
			t.Helper()
			if c.unauthenticated(server, err); logs.Len() != told {
				t.Errorf("%s: %v: %d lines, not %d", server, err, logs.Len(), told)
			}
		}
		for port := range 10 {
			fail("zk1:2181", resetOf(port), 1)
		}
		for port := range 10 {
			fail("zk1:2181", fmt.Errorf("%w: sending from port %d", sasl.ErrUnreached, port), 2)
			fail("zk1:2181", resetOf(port), 2)
		}
		fail("zk1:2181", refusal{errSASLRefused}, 3)
		fail("zk2:2181", refusal{errSASLRefused}, 4)
		<-time.After(saslTold)
		fail("zk1:2181", refusal{errSASLRefused}, 5)
		c.authenticated("zk1:2181")
		fail("zk1:2181", refusal{errSASLRefused}, 6)
		fail("zk2:2181", errors.New("another"), 7)
	})
}
