package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

func TestCloseEndsConnectionsInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(*Link){
		"passing":  func(*Link) {},
		"stalled":  func(l *Link) { l.Stall() },
		"dropping": func(l *Link) { l.Drop() },
		"delayed":  func(l *Link) { l.Delay(time.Hour, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			prepare(l)
			fresh := dial(t, l)
			send(t, ends[ToServer], "held")
			send(t, fresh, "held")
			l.Close()
			for _, conn := range []net.Conn{ends[ToServer], ends[ToClient], fresh} {
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("a connection is still open")
				}
			}
			if conn, err := net.Dial("tcp", l.Address()); err == nil {
				conn.Close()
				t.Error("the link still listens")
			}
			l.Close()
		})
	}
}

func TestAwaitingEndsWithTheContext(t *testing.T) {
	l, _ := open(t, Options{})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := l.AwaitConnections(ctx, 1); err != cause {
		t.Fatal(err)
	}
	dial(t, l)
	if err := l.AwaitConnections(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
}

func TestTheFirstBytesOfAClientAreRewritten(t *testing.T) {
	l, b := open(t, Options{Rewrite: func(first []byte) []byte {
		return bytes.ReplaceAll(first, []byte("here"), []byte("there"))
	}})
	client := dial(t, l)
	send(t, client, "I am here.")
	server := b.next(t)
	expect(t, server, "I am there.")
	send(t, client, "here")
	expect(t, server, "here")
	send(t, server, "here")
	expect(t, client, "here")
}

func TestALinkMayBeChangedWhileItRuns(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	var running sync.WaitGroup
	for range 4 {
		client, server := dial(t, l), b.next(t)
		running.Go(func() { io.Copy(server, server) })
		running.Go(func() { io.Copy(io.Discard, client) })
		running.Go(func() {
			for xid := range int32(300) {
				if _, err := io.WriteString(client, ask(xid, Create, "/a")); err != nil {
					return
				}
			}
		})
	}
	for range 100 {
		for _, change := range []func(){
			func() { l.Stall() }, func() { l.Delay(time.Millisecond, time.Millisecond) },
			func() { l.Heal(ToServer) }, func() { l.HoldReply(Is(Create), 1).Release() },
			func() { l.Refuse() }, func() { l.Heal() }, func() { l.Held(ToServer) },
		} {
			change()
		}
	}
	l.Close()
	running.Wait()
}
