package caller

import (
	"net"
	"testing"
	"time"
)

func TestAConnectionStandsStillWhileItsGateIsClosedAndGoesOnThen(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	g := newGate()
	conn := faltering{ours, g}
	defer conn.Close()
	read := make(chan string, 1)
	go func() {
		for {
			buffer := make([]byte, 1)
			if _, err := conn.Read(buffer); err != nil {
				close(read)
				return
			}
			read <- string(buffer)
		}
	}()
	say := func(text string) {
		if _, err := theirs.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	say("a")
	expect(t, <-read, "a")
	reopen := g.close()
	say("b")
	select {
	case text := <-read:
		t.Errorf("%q came through a closed gate", text)
	case <-time.After(50 * time.Millisecond):
	}
	reopen()
	expect(t, <-read, "b")
	theirs.Close()
	<-read
}
