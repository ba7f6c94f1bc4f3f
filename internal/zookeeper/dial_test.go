package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// answerNoName takes one question, as name servers do over TCP, and says that there is no such name, unless it hangs.
func answerNoName(conn net.Conn, hangs bool) {
	defer conn.Close()
	var length uint16
	if binary.Read(conn, binary.BigEndian, &length) != nil {
		return
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(conn, message); err != nil {
		return
	}
	if hangs {
		io.Copy(io.Discard, conn) // until the other side gives up
		return
	}
	const response, noName = 0x80, 3
	message[2], message[3] = message[2]|response, noName
	conn.Write(append(binary.BigEndian.AppendUint16(nil, length), message...)) // the other side may have given up
}

func TestALookUpDoesNotWaitForOneThatHung(t *testing.T) {
	usual := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = usual })
	var hangs atomic.Bool
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go answerNoName(far, hangs.Load())
		return near, nil
	}}
	if failure := lookUp(t); !failure.IsNotFound { // package net makes a channel then, which must not be a bubble's
		t.Errorf("the name server answers, and the look-up ends with %v", failure)
	}
	bubble.Test(t, func(t *testing.T) {
		var asking sync.WaitGroup
		defer asking.Wait()
		hangs.Store(true)
		for range 2 {
			asking.Go(func() {
				if failure := lookUp(t); !failure.IsTimeout {
					t.Errorf("the name server hangs, and the look-up ends with %v", failure)
				}
			})
			<-time.After(time.Second / 2)
		}
		hangs.Store(false)
		if failure := lookUp(t); !failure.IsNotFound {
			t.Errorf("the name server answers again, and the look-up ends with %v", failure)
		}
	})
}

// lookUp is why a server was not found within a second.
func lookUp(t *testing.T) (failure *net.DNSError) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := dialAlone(ctx, "tcp", "zookeeper.test:2181"); !errors.As(err, &failure) {
		t.Errorf("the name was found: %v", err)
		return &net.DNSError{}
	}
	return failure
}
