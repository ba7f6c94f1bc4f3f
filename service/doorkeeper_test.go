package service

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestADoorkeeperKeepsAQuarterFreeOfAnyOneCaller(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	d := newDoorkeeper(8, zap.New(core))
	var visits []*visit
	come := func(identity string) string {
		v, err := d.enter()
		if err != nil {
			return "shut"
		}
		visits = append(visits, v)
		if err := v.introduce(identity); err != nil {
			v.leave()
			return "refused"
		}
		return "in"
	}
	for i, want := range strings.Fields("in in in in in in refused refused in in shut shut") {
		identity := "uid:1"
		if i >= 8 {
			identity = "uid:2"
		}
		same(t, fmt.Sprint(i), come(identity), want)
	}
	same(t, "warnings", logged.Len(), 2) // each once
	for range 2 {
		visits[0].leave()
	}
	same(t, "after one has left", come("uid:1"), "in")
	same(t, "and another", come("uid:3"), "shut")
	for _, v := range visits {
		v.leave()
	}
	same(t, "in the end", fmt.Sprint(d.open, d.each), "0 map[]")
}

func TestOneConnectionTooManyIsClosedAndTheOthersStay(t *testing.T) {
	s := newScene(t)
	server, err := NewServer(ServerOptions{
		Listen: []string{"127.0.0.1:0"}, KeepaliveTime: time.Second, KeepaliveTimeout: time.Second, MaxStreams: 1, MaxConnections: 4,
		Log: zap.NewNop(), Metrics: NewMetrics(),
	}, s.services, s.ensemble)
	s.must(err)
	served := make(chan error, 1)
	go func() { served <- server.serveDoor(server.doors[0]) }()
	t.Cleanup(func() {
		nothing := make(chan struct{})
		close(nothing)
		s.must(closeGRPC(server.grpc[0], nothing))
		s.must(<-served)
	})
	var open []net.Conn
	greet := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.Addresses()[0], "tcp://"))
		s.must(err)
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patient))
		return conn
	}
	answered := func(conn net.Conn) bool { // by the server's settings
		_, err := conn.Read(make([]byte, 9))
		return err == nil
	}
	for i := range 4 {
		conn := greet()
		open = append(open, conn)
		same(t, fmt.Sprintf("connection %d is served", i), answered(conn), i < 3)
	}
	open[0].Close()
	for conn := greet(); !answered(conn); conn = greet() {
		conn.Close() // the server has not seen the other one's end yet
	}
}
