package link

import (
	"maps"
	"net"
	"testing"
	"time"
)

func isSprung(t *testing.T, trap *Trap) {
	t.Helper()
	select {
	case <-trap.Sprung():
	case <-time.After(patience):
		t.Fatal("the trap has not sprung")
	}
}

func TestACutRequestIsNeverSeenByTheServer(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	trap := l.CutRequest(Is(Create), 1)
	send(t, client, ask(1, Exists, "/a")+ask(2, Create, "/a")+ask(3, Delete, "/a"))
	expect(t, server, ask(1, Exists, "/a"))
	expectReset(t, client)
	expectReset(t, server)
	isSprung(t, trap)
	client, server = greet(t, l, b)
	send(t, client, ask(1, Create, "/a"))
	expect(t, server, ask(1, Create, "/a"))
	if trap.Count() != 1 {
		t.Fatalf("sprung %d times", trap.Count())
	}
}

func TestACutReplyIsNeverSeenByTheClient(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	trap := l.CutReply(Is(Create), 1)
	send(t, client, ask(1, Exists, "/a")+ask(2, Create, "/a")+ask(3, Delete, "/a"))
	expect(t, server, ask(1, Exists, "/a")+ask(2, Create, "/a")+ask(3, Delete, "/a"))
	send(t, server, reply(1)+reply(-1))
	expect(t, client, reply(1)+reply(-1))
	send(t, server, reply(2)+reply(3))
	expectReset(t, client)
	expectReset(t, server)
	isSprung(t, trap)
}

func TestAHeldReplyIsDeliveredWithWhatFollowsOnceReleased(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	trap := l.HoldReply(Is(Create), 1)
	send(t, client, ask(1, Create, "/a"))
	expect(t, server, ask(1, Create, "/a"))
	send(t, server, reply(1)+reply(-1))
	isSprung(t, trap)
	awaitHeld(t, l, ToClient, len(reply(1)+reply(-1)))
	other, _ := greet(t, l, b)
	other.Close()
	trap.Release()
	expect(t, client, reply(1)+reply(-1))
}

func TestAReleasedTrapSpringsNoMore(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	trap := l.CutReply(Is(Create), -1)
	send(t, client, ask(1, Create, "/a"))
	expect(t, server, ask(1, Create, "/a"))
	trap.Release()
	send(t, server, reply(1))
	expect(t, client, reply(1))
	send(t, client, ask(2, Create, "/a"))
	expect(t, server, ask(2, Create, "/a"))
	if trap.Count() != 0 {
		t.Fatalf("sprung %d times", trap.Count())
	}
}

func TestTheFirstRequestOfAConnectionCanBeTrapped(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	trap := l.CutReply(Is(CreateSession), 1)
	client := dial(t, l)
	send(t, client, hello)
	server := b.next(t)
	expect(t, server, hello)
	send(t, server, hello)
	expectReset(t, client)
	isSprung(t, trap)
	greet(t, l, b)
}

func TestTrapsSpringInTheOrderSetAndAsOftenAsSet(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	first := l.CutRequest(Nth(2, Is(Ping, Create)), 1)
	all := l.CutRequest(Is(Create), -1)
	none := l.CutRequest(Is(Create), 0)
	client, server := greet(t, l, b)
	send(t, client, ask(-2, Ping, ""))
	expect(t, server, ask(-2, Ping, ""))
	for range 3 {
		send(t, client, ask(1, Create, "/a"))
		expectReset(t, client)
		client, _ = greet(t, l, b)
	}
	if got := [3]int{first.Count(), all.Count(), none.Count()}; got != [3]int{1, 2, 0} {
		t.Fatalf("sprung %v times", got)
	}
}

func TestRequestsAreCountedByKindWhenForwarded(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	l.CutRequest(Is(Delete), 1)
	sent := ask(1, Create, "/a") + ask(2, Create, "/b") + ask(-2, Ping, "")
	send(t, client, sent)
	expect(t, server, sent)
	send(t, client, ask(3, Delete, "/a"))
	expectReset(t, client)
	want := map[Opcode]int{CreateSession: 1, Create: 2, Ping: 1}
	if got := l.Requests(); !maps.Equal(got, want) {
		t.Fatalf("counted %v, want %v", got, want)
	}
	if got := l.ResetRequests(); !maps.Equal(got, want) {
		t.Fatalf("counted %v, want %v", got, want)
	}
	if got := l.Requests(); len(got) != 0 {
		t.Fatalf("counted %v after the reset", got)
	}
}

func TestFramesInPiecesAreForwardedWhole(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	sent := ask(1, Create, "/a") + ask(2, GetData, "/b")
	for i := range sent {
		send(t, client, sent[i:i+1])
	}
	expect(t, server, sent)
	send(t, client, ask(3, Create, "/cut short")[:15])
	client.(*net.TCPConn).CloseWrite()
	expect(t, server, ask(3, Create, "/cut short")[:15])
	expectEnd(t, server)
}

func TestWhatIsNotZooKeepersProtocolPassesUnread(t *testing.T) {
	for name, first := range map[string]string{
		"four-letter word": "ruok",
		"TLS":              "\x16\x03\x01\x02\x00\x01\x00",
		"short frame":      "\x00\x00\x00\x02ab",
		"negative length":  "\xff\xff\xff\xffabc",
	} {
		t.Run(name, func(t *testing.T) {
			l, b := open(t, Options{ZooKeeper: true})
			client := dial(t, l)
			send(t, client, first)
			server := b.next(t)
			expect(t, server, first)
			send(t, server, "\x00\x00\x10")
			expect(t, client, "\x00\x00\x10")
			send(t, client, "more")
			expect(t, server, "more")
			if counted := l.Requests(); len(counted) > 0 {
				t.Fatalf("counted %v", counted)
			}
		})
	}
}

func TestTheServersEndIsSeenAfterItsLastReply(t *testing.T) {
	l, b := open(t, Options{ZooKeeper: true})
	client, server := greet(t, l, b)
	send(t, client, ask(1, CloseSession, ""))
	expect(t, server, ask(1, CloseSession, ""))
	send(t, server, reply(1))
	server.Close()
	expect(t, client, reply(1))
	expectEnd(t, client)
	client.Close()
	awaitNone(t, l)
}

func TestPathIsThatOfTheFirstOperation(t *testing.T) {
	path := "\x00\x00\x00\x04/a/b"
	for _, test := range []struct {
		frame Frame
		want  string
	}{
		{Frame{Opcode: Create, Body: []byte(path + "\x00")}, "/a/b"},
		{Frame{Opcode: Multi, Body: []byte("\x00\x00\x00\x0d\x00\xff\xff\xff\xff" + path)}, "/a/b"},
		{Frame{Opcode: Multi, Body: []byte("\x00")}, ""},
		{Frame{Opcode: Ping}, ""},
		{Frame{Opcode: GetData, Body: []byte("\x00\x00\x00\x09/a")}, ""},
		{Frame{Opcode: GetData, Body: []byte("\xff\xff\xff\xff/a")}, ""},
		{Frame{Opcode: SetWatches, Body: []byte(path)}, ""},
	} {
		if got := test.frame.Path(); got != test.want {
			t.Errorf("%v %q: path %q, want %q", test.frame.Opcode, test.frame.Body, got, test.want)
		}
	}
}

func TestOpcodesHaveTheNamesOfZooKeeper(t *testing.T) {
	for opcode, want := range map[Opcode]string{GetChildren2: "getChildren2", CreateSession: "createSession", 99: "99"} {
		if opcode.String() != want {
			t.Errorf("%d is called %v", int32(opcode), opcode)
		}
	}
}
