package link

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

var directions = map[string]Direction{"to server": ToServer, "to client": ToClient}

func TestAStalledDirectionKeepsItsBytesAndTheOtherRuns(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			l.Stall(d)
			send(t, source(ends, d), "one ")
			awaitHeld(t, l, d, 4)
			send(t, source(ends, d), "two")
			awaitHeld(t, l, d, 7)
			send(t, sink(ends, d), "back")
			expect(t, source(ends, d), "back")
			l.Heal()
			expect(t, sink(ends, d), "one two")
			if l.Held(d) != 0 {
				t.Fatalf("%d bytes held", l.Held(d))
			}
		})
	}
}

func TestAStalledDirectionKeepsTheEndOfTheStream(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			l.Stall(d)
			send(t, source(ends, d), "last")
			source(ends, d).(*net.TCPConn).CloseWrite()
			awaitHeld(t, l, d, 4)
			send(t, sink(ends, d), "open")
			expect(t, source(ends, d), "open")
			l.Heal(d)
			expect(t, sink(ends, d), "last")
			expectEnd(t, sink(ends, d))
		})
	}
}

func TestADroppingDirectionStaysDeadForConnectionsThatLostBytes(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			dead, spared := join(t, l, b), join(t, l, b)
			l.Stall(d)
			send(t, source(dead, d), "lost")
			awaitHeld(t, l, d, 4)
			l.Drop(d)
			awaitDead(t, l, d)
			l.Heal()
			send(t, source(dead, d), "lost too")
			send(t, source(spared, d), "kept")
			expect(t, sink(spared, d), "kept")
			send(t, sink(dead, d), "back")
			expect(t, source(dead, d), "back")
			source(dead, d).Close()
			sink(dead, d).Close()
			source(spared, d).Close()
			expectEnd(t, sink(spared, d))
			sink(spared, d).Close()
			awaitNone(t, l)
		})
	}
}

// awaitDead returns when a connection has lost bytes.
func awaitDead(t *testing.T, l *Link, d Direction) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.await(ctx, func() bool { return l.held(d) == 0 }); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyDeadConnectionsAreResetAsSuch(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			dead, spared := join(t, l, b), join(t, l, b)
			l.Stall(d)
			send(t, source(dead, d), "lost")
			awaitHeld(t, l, d, 4)
			l.Drop(d)
			awaitDead(t, l, d)
			l.Heal()
			l.ResetDead()
			expectReset(t, dead[ToServer])
			expectReset(t, dead[ToClient])
			send(t, source(spared, d), "kept")
			expect(t, sink(spared, d), "kept")
		})
	}
}

func TestAConnectionMadeWhileStalledIsForwardedOnceHealed(t *testing.T) {
	l, b := open(t, Options{})
	l.Stall()
	client := dial(t, l)
	send(t, client, "hello")
	awaitHeld(t, l, ToServer, 5)
	if len(b.accepted) > 0 {
		t.Fatal("the server got the connection")
	}
	l.Heal()
	expect(t, b.next(t), "hello")
}

func TestAConnectionMadeAndGivenUpWhileCutNeverReachesTheServer(t *testing.T) {
	for name, cut := range map[string]func(*Link){
		"stalled":  func(l *Link) { l.Stall() },
		"dropping": func(l *Link) { l.Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			cut(l)
			client := dial(t, l)
			send(t, client, "hello")
			if err := l.AwaitConnections(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			client.Close()
			awaitNone(t, l)
			l.Heal()
			join(t, l, b)
			if len(b.accepted) > 0 {
				t.Fatal("the server got the connection")
			}
		})
	}
}

func TestARefusingLinkResetsOnlyNewConnections(t *testing.T) {
	l, b := open(t, Options{})
	ends := join(t, l, b)
	l.Refuse()
	expectRefused(t, l)
	send(t, ends[ToServer], "still")
	expect(t, ends[ToClient], "still")
	l.Heal()
	join(t, l, b)
}

func TestResetResetsBothSidesAlsoOfStalledConnections(t *testing.T) {
	l, b := open(t, Options{})
	ends := join(t, l, b)
	l.Stall()
	send(t, ends[ToServer], "held")
	awaitHeld(t, l, ToServer, 4)
	l.Reset()
	expectReset(t, ends[ToServer])
	expectReset(t, ends[ToClient])
	if l.Connections() != 0 {
		t.Fatal("connections are left")
	}
}

func TestAResetPassesThrough(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			reset(source(ends, d).(*net.TCPConn))
			expectReset(t, sink(ends, d))
			awaitNone(t, l)
		})
	}
}

func TestAnEndInOneDirectionLeavesTheOtherOpen(t *testing.T) {
	for name, d := range directions {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{})
			ends := join(t, l, b)
			source(ends, d).(*net.TCPConn).CloseWrite()
			expectEnd(t, sink(ends, d))
			send(t, sink(ends, d), "answer")
			sink(ends, d).Close()
			expect(t, source(ends, d), "answer")
			expectEnd(t, source(ends, d))
			awaitNone(t, l)
		})
	}
}

func TestATargetThatIsNotThereResetsTheClient(t *testing.T) {
	l, b := open(t, Options{})
	b.listener.Close()
	expectRefused(t, l)
	other := newBackend(t)
	l.SetTarget(other.listener.Addr().String())
	join(t, l, other)
}

func TestAPatientLinkWaitsForItsTarget(t *testing.T) {
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().String()
	reserved.Close()
	l, err := New(Options{Target: address, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	client := dial(t, l)
	send(t, client, "early")
	awaitHeld(t, l, ToServer, 5)
	late, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	server, err := late.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	expect(t, server, "early")
}

func TestDelayedBytesComeLateAndInOrder(t *testing.T) {
	l, b := open(t, Options{})
	ends := join(t, l, b)
	const fixed = 30 * time.Millisecond
	l.Delay(fixed, 20*time.Millisecond, ToServer)
	start := time.Now()
	var sent strings.Builder
	for i := range 50 {
		text := fmt.Sprintf("%d;", i)
		sent.WriteString(text)
		send(t, ends[ToServer], text)
	}
	expect(t, ends[ToClient], sent.String())
	if took := time.Since(start); took < fixed {
		t.Fatalf("took %v", took)
	}
	l.Delay(0, 0)
	send(t, ends[ToClient], "prompt")
	expect(t, ends[ToServer], "prompt")
}

func TestALinkHoldsNoMoreThanItsWindow(t *testing.T) {
	l, b := open(t, Options{})
	ends := join(t, l, b)
	l.Stall(ToServer)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	var writing sync.WaitGroup
	writing.Go(func() {
		ends[ToServer].Write(sent)
		ends[ToServer].Close()
	})
	awaitHeld(t, l, ToServer, window)
	if held := l.Held(ToServer); held > window+32<<10 {
		t.Errorf("%d bytes held", held)
	}
	l.Heal()
	got, err := io.ReadAll(ends[ToClient])
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(sent), err)
	}
	writing.Wait()
}
