package caller

import (
	"io"
	"runtime"
	"testing"
)

// What is written after the peer's FIN is answered with a reset, after which a Read finds no trace of the FIN.
func TestACallerThatWasWrittenToAfterItLeftIsNotSilent(t *testing.T) {
	client, socket := connected(t)
	must(t, client.Close())
	awaitState := func(statement func(int) bool) {
		for within := within(t); !holdsFor(socket, statement); runtime.Gosched() {
			must(t, within.Err())
		}
	}
	awaitState(finReceived)

	conn := &rawConn{Conn: socket, ending: newEnding(), slot: roomy{}, local: true}
	_, err := conn.Write([]byte("x"))
	must(t, err)
	awaitState(func(descriptor int) bool { return !finReceived(descriptor) })
	_, err = conn.Read(make([]byte, 1))
	same(t, "read after that", err, io.EOF)
	same(t, "silent", conn.ending.silent(), false)
}
