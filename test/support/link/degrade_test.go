package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// expectNothing says that nothing arrives for a while.
func expectNothing(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	count, err := conn.Read(make([]byte, 100))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes arrived, %v", count, err)
	}
	conn.SetReadDeadline(time.Now().Add(patience))
}

// lossy has a link lose packets, where that can be done.
func lossy(t *testing.T, l *Link, oneOf uint32) {
	t.Helper()
	err := l.Lose(oneOf)
	if runtime.GOOS != "linux" {
		if err == nil {
			t.Error("it is said to lose packets")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPacketsThatAreLostAreSentAgain(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			lossy(t, l, 1)
			send(t, source(ends, d), "late")
			if runtime.GOOS == "linux" {
				expectNothing(t, sink(ends, d))
			}
			if err := l.Lose(0); err != nil {
				t.Fatal(err)
			}
			expect(t, sink(ends, d), "late")
		})
	}
}

func TestWhatPassesALinkThatLosesPacketsIsWhole(t *testing.T) {
	l, b := open(t, Options{})
	client := dial(t, l)
	server := b.next(t)
	lossy(t, l, 4) // from now on: of a connection's first packets, so many may be lost that it is given up
	for _, end := range []net.Conn{client, server} {
		end.SetDeadline(time.Now().Add(time.Minute)) // packets are sent again ever later
	}
	text := strings.Repeat("0123456789", 20)
	send(t, client, text)
	expect(t, server, text)
	send(t, server, text)
	expect(t, client, text)
}

func TestASlicedStreamArrivesInPieces(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			l.Slice(3)
			send(t, source(ends, d), "0123456789")
			piece := make([]byte, 100)
			if count, err := sink(ends, d).Read(piece); err != nil || count >= 10 {
				t.Errorf("%d bytes at once, %v", count, err)
			} else {
				expect(t, sink(ends, d), "0123456789"[count:])
			}
			l.Slice(0)
			send(t, source(ends, d), "end")
			expect(t, sink(ends, d), "end")
		})
	}
}

func TestARequestIsJudgedOnceThoughItIsSliced(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	l.Slice(5)
	seen := 0
	trap := l.CutReply(func(Frame) bool { seen++; return true }, 1)
	send(t, client, ask(1, Delete, "/a"))
	expect(t, server, ask(1, Delete, "/a"))
	send(t, server, reply(1))
	expectReset(t, client)
	<-trap.Sprung()
	if seen != 1 {
		t.Errorf("judged %d times", seen)
	}
}

func TestAConnectionThatCarriesNothingIsCut(t *testing.T) {
	l, b := open(t, Options{})
	idle := join(t, l, b)
	l.CutIdle(100 * time.Millisecond)
	busy := join(t, l, b)
	for range 20 {
		send(t, busy[ToServer], ".")
		expect(t, busy[ToClient], ".")
		<-time.After(10 * time.Millisecond)
	}
	expectReset(t, idle[ToServer])
	l.CutIdle(0)
	last := join(t, l, b)
	expectNothing(t, last[ToServer])
	send(t, last[ToClient], "still there")
	expect(t, last[ToServer], "still there")
}

// http2Frame is a frame of a server, with so many bytes in it.
func http2Frame(length int) string {
	return string([]byte{byte(length >> 16), byte(length >> 8), byte(length), 0, 0, 0, 0, 0, 1}) + strings.Repeat("x", length)
}

func TestClientsAreToldToGoAwayBetweenTwoFrames(t *testing.T) {
	l, b := open(t, Options{HTTP2: true})
	client := dial(t, l)
	server := b.next(t)
	whole, long := http2Frame(4), http2Frame(70_000)
	send(t, server, whole+long[:100])
	expect(t, client, whole)
	l.GoAway()
	goAway := []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	expect(t, client, string(goAway))
	send(t, server, long[100:])
	expect(t, client, long)
	send(t, client, "as it is")
	expect(t, server, "as it is")
	send(t, server, whole[:3])
	server.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(rest, []byte(whole[:3])) {
		t.Errorf("the rest is %q, %v", rest, err)
	}
}
