package service

import (
	"io"
	"net"
	"runtime"
	"testing"
)

// What is written after the peer's FIN is answered with a reset, after which a Read finds no trace of the FIN.
func TestACallerThatWasWrittenToAfterItLeftIsNotSilent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	socket, err := listener.Accept()
	must(t, err)
	defer socket.Close()
	must(t, client.Close())
	awaitState := func(statement func(int) bool) {
		for within := within(t); !holdsFor(socket.(*net.TCPConn), statement); runtime.Gosched() {
			must(t, within.Err())
		}
	}
	awaitState(finReceived)

	conn := &rawConn{Conn: socket, ending: newEnding()}
	_, err = conn.Write([]byte("x"))
	must(t, err)
	awaitState(func(descriptor int) bool { return !finReceived(descriptor) })
	_, err = conn.Read(make([]byte, 1))
	same(t, "read after that", err, io.EOF)
	same(t, "silent", conn.ending.silent(), false)
}
