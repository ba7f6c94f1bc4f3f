package embedded

import (
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startServer serves an ensemble of its own.
func startServer(t *testing.T, options ServerOptions) *Server {
	t.Helper()
	e := New(Options{})
	s, err := Serve(e, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Cleanup(s.Close)
	return s
}

// ask sends bytes on a connection of its own and reads until the server closes it.
func ask(t *testing.T, address string, bytes []byte) string {
	t.Helper()
	socket, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	_ = socket.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := socket.Write(bytes); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(socket)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Fatalf("the server keeps a connection open that sent %q", bytes)
	}
	return string(answer)
}

func TestCommandsOfFourLettersAreAnswered(t *testing.T) {
	server := startServer(t, ServerOptions{MaxConnections: 7})
	s := newScript(t, server.Address(), "/x")
	defer s.close()
	s.run("1 create /a x e")
	s.run("1 get /a watch")
	s.run("1 children / watch")
	for command, want := range map[string]string{
		"ruok": `^imok$`,
		"isro": `^rw$`,
		"envi": `^Environment:\nzookeeper\.version=3\.9\.\d.*\n$`,
		"srvr": `^Zookeeper version: 3\.9\.\d.*\nLatency min/avg/max: .*\nReceived: \d+\nSent: \d+\nConnections: 3\n` +
			`Outstanding: 0\nZxid: 0x4\nMode: standalone\nNode count: 6\n$`,
		"stat": `(?s)^Zookeeper version: .*\nClients:\n( /127\.0\.0\.1:\d+\[1\]\(queued=0,recved=\d,sent=\d\)\n){3}\n` +
			`Latency .*Node count: 6\n$`,
		"cons": `(?s) /127.*,sid=0x1[0-9a-f]{14},lop=GETC,est=\d+,to=15000,lcxid=0x3,lzxid=0x4,lresp=`,
		"wchs": `^1 connections watching 2 paths\nTotal watches:2\n\n$`,
		"wchp": `^/x/a\n\t0x1[0-9a-f]{14}\n\n$`,
		"dump": `(?s)^SessionTracker dump:\n.*\t0x1[0-9a-f]{14}\n.*ephemeral nodes dump:\n` +
			`Sessions with Ephemerals \(1\):\n0x1[0-9a-f]{14}:\n\t/x/a\n$`,
		"conf": `(?m)^maxClientCnxns=7\nminSessionTimeout=4000\nmaxSessionTimeout=40000$`,
		"mntr": `(?s)^zk_version\t3\.9\..*\nzk_server_state\tstandalone\n.*\nzk_znode_count\t6\nzk_watch_count\t2\n` +
			`zk_ephemerals_count\t1\n`,
	} {
		if got := ask(t, server.Address(), []byte(command)); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s answers %q, want %s", command, got, want)
		}
	}
}

func TestConnectionsThatSendNoFramesAreClosed(t *testing.T) {
	server := startServer(t, ServerOptions{})
	for _, garbage := range [][]byte{
		[]byte("GET / HTTP/1.1\r\n\r\n"),
		{0xff, 0xff, 0xff, 0xff},
		{0x7f, 0xff, 0xff, 0xff, 1, 2, 3},
		{0, 0, 0, 0},
		{0, 0, 0, 2, 1, 2},
		binary.BigEndian.AppendUint32(nil, longestFrame+1),
	} {
		if answer := ask(t, server.Address(), garbage); answer != "" {
			t.Errorf("%q is answered with %q", garbage, answer)
		}
	}
}

func TestAClientThatHasSeenTheFutureIsTurnedAway(t *testing.T) {
	server := startServer(t, ServerOptions{})
	out := newFrame()
	out.int32(0)
	out.int64(1 << 40)
	out.int32(15000)
	out.int64(0)
	out.bytes(make([]byte, passwordLength))
	if answer := ask(t, server.Address(), out.seal()); answer != "" {
		t.Errorf("answered with %q", answer)
	}
}

func TestOneAddressHasOnlySoManyConnections(t *testing.T) {
	server := startServer(t, ServerOptions{MaxConnections: 2})
	s := newScript(t, server.Address(), "/x")
	defer s.close()
	s.run("1 ping")
	if answer := ask(t, server.Address(), nil); answer != "" {
		t.Errorf("the third connection is answered with %q", answer)
	}
	if got := s.run("1 ping"); got != "ok" {
		t.Errorf("the second connection answers %q", got)
	}
}

func TestAClientThatDoesNotReadHoldsUpNobody(t *testing.T) {
	server := startServer(t, ServerOptions{})
	s := newScript(t, server.Address(), "/x")
	defer s.close()
	s.run("1 create /big x*1000000")
	lazy := s.clients["1"]
	for range 64 { // replies of 64 MB, requests of 3 kB
		out := newFrame()
		out.int32(7)
		out.int32(int32(opGetData))
		out.string("/x/big")
		out.bool(false)
		lazy.send(out)
	}
	if got := s.run("2 set /big y"); strings.Contains(got, "no reply") {
		t.Error("another client gets no reply")
	}
	e := server.ensemble
	e.mu.Lock()
	for c := range server.connections {
		if len(c.pending) > 3*enoughPending {
			t.Errorf("%d bytes wait for one client", len(c.pending))
		}
	}
	e.mu.Unlock()
	_ = lazy.socket.Close()
	delete(s.clients, "1")
}

// What is in flight when a session is closed still arrives, in order.
func TestRepliesComeInTheOrderOfTheRequests(t *testing.T) {
	server := startServer(t, ServerOptions{})
	s := newScript(t, server.Address(), "/x")
	defer s.close()
	s.run("1 ping")
	c := s.clients["1"]
	for i := range 1000 {
		out := newFrame()
		out.int32(int32(i))
		out.int32(int32(opSync))
		out.string(strconv.Itoa(i))
		c.send(out)
	}
	c.xid = 1000
	closing := newFrame()
	closing.int32(1000)
	closing.int32(int32(opCloseSession))
	c.send(closing)
	for i := range 1001 {
		if got := c.await(int32(i), func(in *decoder) string { return in.Text() }); i < 1000 && got != strconv.Itoa(i) {
			t.Fatalf("reply %d is %q", i, got)
		}
	}
	if _, err := c.socket.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the close: %v", err)
	}
	delete(s.clients, "1")
}
